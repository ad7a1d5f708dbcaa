// Members of factor graphs from points of the relaxation: outputs follow from their inputs, and all factors are asked.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "factors/factors.hpp"
#include "kernels.hpp"
#include "lanes.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

inline Factor factor_of(const FactorTables& t, int64_t f) {
    const int64_t from = t.start[f];
    return {static_cast<FactorKind>(t.kind[f]), static_cast<int>(t.start[f + 1] - from), t.weight + from, t.least[f],
            t.most[f]};
}

inline double sum_of_products(const double* a, const double* b, int64_t count) {
    constexpr int W = lane_count<double>;
    Lanes<double> sums{};
    int64_t i = 0;
    for (; i + W <= count; i += W) sums += load(a + i) * load(b + i);
    double sum = total<double>(sums);
    for (; i < count; ++i) sum += a[i] * b[i];
    return sum;
}

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

    bool is_on(int64_t k, const uint8_t* z) const { return z[t.variable[k]] ^ t.negated[k]; }

    // How many of some literals are on.
    int64_t on(int64_t from, int64_t to, const uint8_t* z) const {
        int64_t count = 0;
        for (int64_t k = from; k < to; ++k) count += is_on(k, z);
        return count;
    }

    // What a factor says that its last variable is.
    uint8_t output(int64_t f, const uint8_t* z) const {
        const int64_t end = t.start[f + 1] - 1;
        const bool any = on(t.start[f], end, z) > 0;
        return any != ((t.negated[end] != 0) != (t.kind[f] == FACTOR_ONE));  // of exactly one, the output is negated
    }

    // How often `derive` goes over all factors: once where no output is the input of another factor with one.
    int depth(int64_t parts) const {
        std::vector<uint8_t> follows(parts);
        for (int64_t f = first; f < last; ++f)
            if (t.defines[f]) follows[t.variable[t.start[f + 1] - 1]] = 1;
        for (int64_t f = first; f < last; ++f)
            for (int64_t k = t.start[f]; t.defines[f] && k < t.start[f + 1] - 1; ++k)
                if (follows[t.variable[k]]) return kDepth;
        return 1;
    }

    // Lets outputs follow from their inputs, as far as chains of them are followed.
    void derive(uint8_t* z, int depth) const {
        bool changed = true;
        for (int round = 0; round < depth && changed; ++round) {
            changed = false;
            for (int64_t f = first; f < last; ++f) {
                if (!t.defines[f]) continue;
                uint8_t& value = z[t.variable[t.start[f + 1] - 1]];
                const uint8_t next = output(f, z);
                changed |= next != value;
                value = next;
            }
        }
    }

    bool holds(int64_t f, const uint8_t* z) const {
        const int64_t from = t.start[f], to = t.start[f + 1];
        switch (t.kind[f]) {
            case FACTOR_ONE: return on(from, to, z) == 1;
            case FACTOR_AT_MOST_ONE: return on(from, to, z) <= 1;
            case FACTOR_AT_LEAST_ONE: return on(from, to, z) >= 1;
            case FACTOR_ANY: return (on(from, to - 1, z) > 0) == is_on(to - 1, z);
            case FACTOR_NEEDS: return is_on(to - 1, z) || on(from, to - 1, z) == 0;
            default: break;
        }
        for (int64_t k = from; k < to; ++k) local[k - from] = is_on(k, z);
        return excess(factor_of(t, f), local) <= 1e-9;
    }

    // Whether all factors agree to a 0/1 vector in which nothing that is fixed has moved.
    bool holds(const uint8_t* z, int64_t parts) const {
        for (int64_t i = 0; i < parts; ++i)
            if (fixed[i] >= 0 && z[i] != fixed[i]) return false;
        for (int64_t f = first; f < last; ++f)
            if (!holds(f, z)) return false;
        return true;
    }

    // Switches a variable of a member on, and with it whatever follows. Returns what that gains; nothing, and the member
    // stays as it was, where the result is no member or no better.
    double switch_on(int32_t variable, uint8_t* z, const double* scores, const Neighbours& neighbours) const {
        std::vector<int32_t> flipped{variable};
        z[variable] = 1;
        bool good = true;
        for (size_t k = 0; k < flipped.size() && good; ++k) {
            for (const int64_t* f = neighbours.begin(flipped[k]); f != neighbours.end(flipped[k]); ++f) {
                if (!t.defines[*f]) continue;
                const int32_t last = t.variable[t.start[*f + 1] - 1];
                const uint8_t next = output(*f, z);
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

    // Switches on, the best first, what a point of the relaxation is in two minds about. Returns what that gains.
    double switch_on_more(const double* point, const double* scores, int64_t parts, uint8_t* z) const {
        std::vector<int32_t> tried;
        for (int64_t i = 0; i < parts; ++i)
            if (point[i] > kSure && point[i] < 1 - kSure && fixed[i] < 0 && scores[i] > 0)
                tried.push_back(static_cast<int32_t>(i));
        std::stable_sort(tried.begin(), tried.end(), [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
        if (tried.size() > kTries) tried.resize(kTries);
        if (tried.empty()) return 0;
        const Neighbours neighbours(t, first, last, parts);
        double gain = 0;
        for (const int32_t i : tried)
            if (!z[i]) gain += switch_on(i, z, scores, neighbours);
        return gain;
    }

    static constexpr double kSure = 1e-2;  // how far from 0 and 1 a variable counts as undecided
    static constexpr size_t kTries = 64;   // how many of them are tried
    static constexpr int kDepth = 8;
    static constexpr size_t kMost = 1000;
};

// By how much each instance breaks its worst factor, those from outside aside.
inline void factor_excess(const FactorTables& t, const double* point, int64_t batch, int64_t parts, double* to,
                          int64_t* which, int threads) {
    auto body = [&](int64_t b) {
        const int64_t g = t.graph[b];
        const double* p = point + b * parts;
        double worst = 0;
        int64_t where = -1;
        for (int64_t f = t.factors_from[g]; f < t.factors_from[g + 1]; ++f) {
            if (t.kind[f] == FACTOR_OUTSIDE) continue;
            const int64_t from = t.start[f], size = t.start[f + 1] - from;
            Scratch scratch;
            double* local = scratch.take<double>(size);
            for (int64_t k = 0; k < size; ++k)
                local[k] = t.negated[from + k] ? 1 - p[t.variable[from + k]] : p[t.variable[from + k]];
            const double off = excess(factor_of(t, f), local);
            if (off > worst) worst = off, where = f - t.factors_from[g];
        }
        to[b] = worst;
        which[b] = where;
    };
    parallel_for(batch, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
