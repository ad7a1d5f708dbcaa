// Members of factor graphs from points of the relaxation: outputs follow from their inputs, and all factors are asked.
#pragma once

#include <cmath>
#include <vector>

#include "factors.hpp"
#include "kernels.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// The factors that know each variable.
class Neighbours {
public:
    Neighbours(const FactorTables& t, int64_t first, int64_t last, int64_t parts) : from_(parts + 1), factor_() {
        for (int64_t k = t.start[first]; k < t.start[last]; ++k) ++from_[t.variable[k] + 1];
        for (int64_t i = 0; i < parts; ++i) from_[i + 1] += from_[i];
        factor_.resize(from_[parts]);
        std::vector<int64_t> next(from_.begin(), from_.end() - 1);
        for (int64_t f = first; f < last; ++f)
            for (int64_t k = t.start[f]; k < t.start[f + 1]; ++k) factor_[next[t.variable[k]]++] = f;
    }
    const int64_t* begin(int64_t i) const { return factor_.data() + from_[i]; }
    const int64_t* end(int64_t i) const { return factor_.data() + from_[i + 1]; }

private:
    std::vector<int64_t> from_, factor_;
};

struct Rounding {
    const FactorTables& t;
    int64_t first, last;
    const int8_t* fixed;
    double* local;  // room for the largest factor

    bool has_outside() const {
        return std::any_of(t.kind + first, t.kind + last, [](uint8_t kind) { return kind == FACTOR_OUTSIDE; });
    }

    // What a factor says that its last variable is.
    double output(int64_t f, const double* z) const {
        const int64_t end = t.start[f + 1] - 1;
        bool any = false;
        for (int64_t k = t.start[f]; k < end; ++k) any |= (z[t.variable[k]] != 0) != (t.negated[k] != 0);
        return any != ((t.negated[end] != 0) != (t.kind[f] == FACTOR_ONE));  // of exactly one, the output is negated
    }

    // Lets outputs follow from their inputs, as far as chains of them are followed.
    void derive(double* z) const {
        bool changed = true;
        for (int round = 0; round < kDepth && changed; ++round) {
            changed = false;
            for (int64_t f = first; f < last; ++f) {
                if (!t.defines[f]) continue;
                double& value = z[t.variable[t.start[f + 1] - 1]];
                const double next = output(f, z);
                changed |= next != value;
                value = next;
            }
        }
    }

    bool holds(int64_t f, const double* z) const {
        const int64_t from = t.start[f], size = t.start[f + 1] - from;
        for (int64_t k = 0; k < size; ++k) {
            const double x = z[t.variable[from + k]];
            local[k] = t.negated[from + k] ? 1 - x : x;
        }
        const Factor factor{static_cast<FactorKind>(t.kind[f]), static_cast<int>(size), t.weight + from, t.least[f],
                            t.most[f]};
        return excess(factor, local) <= 1e-9;
    }

    // Whether all factors agree to a 0/1 vector in which nothing that is fixed has moved.
    bool holds(const double* z, int64_t parts) const {
        for (int64_t i = 0; i < parts; ++i)
            if (fixed[i] >= 0 && z[i] != fixed[i]) return false;
        for (int64_t f = first; f < last; ++f)
            if (!holds(f, z)) return false;
        return true;
    }

    // Switches a variable of a member on, and with it whatever follows. Returns what that gains; nothing, and the member
    // stays as it was, where the result is no member or no better.
    double switch_on(int32_t variable, double* z, const double* scores, const Neighbours& neighbours) const {
        std::vector<int32_t> flipped{variable};
        z[variable] = 1;
        bool good = true;
        for (size_t k = 0; k < flipped.size() && good; ++k) {
            for (const int64_t* f = neighbours.begin(flipped[k]); f != neighbours.end(flipped[k]); ++f) {
                if (!t.defines[*f]) continue;
                const int32_t last = t.variable[t.start[*f + 1] - 1];
                const double next = output(*f, z);
                if (next == z[last]) continue;
                good = fixed[last] < 0 && flipped.size() < kMost;
                flipped.push_back(last);
                z[last] = next;
            }
        }
        double gain = 0;
        for (const int32_t i : flipped) gain += z[i] != 0 ? scores[i] : -scores[i];
        good = good && gain > 0;
        for (size_t k = 0; k < flipped.size() && good; ++k)
            for (const int64_t* f = neighbours.begin(flipped[k]); f != neighbours.end(flipped[k]) && good; ++f)
                good = holds(*f, z);
        if (good) return gain;
        for (size_t k = flipped.size(); k-- > 0;) z[flipped[k]] = 1 - z[flipped[k]];
        return 0;
    }

    static constexpr int kDepth = 8;
    static constexpr size_t kMost = 1000;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
