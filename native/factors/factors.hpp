// Factors over a few binary variables: the nearest point of a factor's polytope, what a direction becomes on the face of
// that point, the best vertex, and how far a point is outside.
//
// A factor sees its variables as literals: 1 - x where one is negated. So "and" is "or" with everything negated, and an
// exactly-one with an output is an exactly-one in which the output is negated.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "pool.hpp"

namespace spigot {

// The numbers are those of `FactorKind` in Python.
enum FactorKind : uint8_t {
    FACTOR_ONE = 0,          // exactly one
    FACTOR_AT_MOST_ONE = 1,
    FACTOR_AT_LEAST_ONE = 2,
    FACTOR_ANY = 3,          // the last is on exactly if any of the others is
    FACTOR_NEEDS = 4,        // whichever of the others is on, the last is on
    FACTOR_SUM = 5,          // weights . literals between two bounds
    FACTOR_OUTSIDE = 6,      // a structure that somebody else projects onto
};

namespace SPIGOT_ARCH {

struct Factor {
    FactorKind kind;
    int size;
    const double* weight;  // of FACTOR_SUM, positive
    double least, most;    // of FACTOR_SUM
};

inline double clipped(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }

// The tau at which sum max(v - tau, 0) is 1, by Newton's method from the left: the function is convex, so that each step
// stays left of the root, and after finitely many steps the entries above tau no longer change.
inline double simplex_threshold(const double* v, int k) {
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += v[i];
    double tau = (sum - 1) / k;
    int above = k;
    for (int round = 0; round <= k; ++round) {
        double inside = 0;
        int count = 0;
        for (int i = 0; i < k; ++i)
            if (v[i] > tau) inside += v[i], ++count;
        if (count == 0) {  // all equal, up to rounding
            tau = *std::max_element(v, v + k) - 1.0 / k;
            break;
        }
        tau = (inside - 1) / count;
        if (count == above) break;
        above = count;
    }
    return tau;
}

// The level t at which t - last = sum max(v - t, 0), for k entries before the last: those above it come down to it.
inline double lifted_level(const double* v, int k) {
    const double last = v[k];
    double level = last;
    int above = -1;
    for (int round = 0; round <= k; ++round) {
        double sum = last;
        int count = 0;
        for (int i = 0; i < k; ++i)
            if (v[i] > level) sum += v[i], ++count;
        if (count == above) break;
        above = count;
        if (count) level = sum / (1 + count);
        else break;
    }
    return level;
}

// sum w clip(v - w tau).
inline double weighed(const double* v, const double* w, int k, double tau) {
    double sum = 0;
    for (int i = 0; i < k; ++i) sum += w[i] * clipped(v[i] - w[i] * tau);
    return sum;
}

// The tau at which the sum above is `target`: Newton's method inside a bracket. The sum falls in tau, in pieces.
inline double sum_threshold(const double* v, const double* w, int k, double target) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (int i = 0; i < k; ++i) low = std::min(low, (v[i] - 1) / w[i]), high = std::max(high, v[i] / w[i]);
    double tau = low < 0 && high > 0 ? 0 : 0.5 * (low + high);
    for (int round = 0; round < 200; ++round) {
        double sum = 0, slope = 0;
        for (int i = 0; i < k; ++i) {
            const double x = v[i] - w[i] * tau;
            sum += w[i] * clipped(x);
            if (x > 0 && x < 1) slope += w[i] * w[i];
        }
        const double off = sum - target;
        if (std::fabs(off) <= 1e-15 * (1 + std::fabs(target))) return tau;
        if (off > 0) low = tau;
        else high = tau;
        double next = slope > 0 ? tau + off / slope : 0.5 * (low + high);
        if (!(next > low && next < high)) next = 0.5 * (low + high);
        if (high - low <= 1e-15 * (1 + std::fabs(tau))) return next;
        tau = next;
    }
    return tau;
}

// Where the nearest point lies: which of the faces below. `face` follows from the same cases.
enum FactorCase : uint8_t { CASE_BOX, CASE_SIMPLEX, CASE_LIFTED, CASE_TOTAL, CASE_SUM };

struct Nearest {
    FactorCase where;
    double level;  // tau or t
};

// The nearest point of the polytope, in place; what was projected is `v` on the way in.
inline Nearest project_factor(const Factor& f, double* v) {
    const int k = f.size;
    auto onto_simplex = [&](FactorCase where) {
        const double tau = simplex_threshold(v, k);
        for (int i = 0; i < k; ++i) v[i] = std::max(v[i] - tau, 0.0);
        return Nearest{where, tau};
    };
    auto into_box = [&] {
        for (int i = 0; i < k; ++i) v[i] = clipped(v[i]);
        return Nearest{CASE_BOX, 0};
    };
    switch (f.kind) {
        case FACTOR_ONE: return onto_simplex(CASE_SIMPLEX);
        case FACTOR_AT_MOST_ONE: {
            double sum = 0;
            for (int i = 0; i < k; ++i) sum += std::max(v[i], 0.0);
            if (sum > 1) return onto_simplex(CASE_SIMPLEX);
            return into_box();
        }
        case FACTOR_AT_LEAST_ONE: {
            double sum = 0;
            for (int i = 0; i < k; ++i) sum += clipped(v[i]);
            if (sum < 1) return onto_simplex(CASE_SIMPLEX);
            return into_box();
        }
        case FACTOR_ANY:
        case FACTOR_NEEDS: {
            const int n = k - 1;
            double level = v[n];
            bool lifted = false;
            for (int i = 0; i < n; ++i) lifted |= v[i] > level;
            if (lifted) level = lifted_level(v, n);
            if (f.kind == FACTOR_ANY) {
                double sum = 0;
                for (int i = 0; i < n; ++i) sum += clipped(std::min(v[i], level));
                if (sum < clipped(level)) {  // the last is the sum of the others: 1 - last makes a simplex of them
                    v[n] = 1 - v[n];
                    const Nearest found = onto_simplex(CASE_TOTAL);
                    v[n] = 1 - v[n];
                    return found;
                }
            }
            for (int i = 0; i < n; ++i) v[i] = clipped(std::min(v[i], level));
            v[n] = clipped(level);
            return {lifted ? CASE_LIFTED : CASE_BOX, level};
        }
        case FACTOR_SUM: {
            const double sum = weighed(v, f.weight, k, 0);
            if (sum <= f.most && sum >= f.least) return into_box();
            const double tau = sum_threshold(v, f.weight, k, sum > f.most ? f.most : f.least);
            for (int i = 0; i < k; ++i) v[i] = clipped(v[i] - f.weight[i] * tau);
            return {CASE_SUM, tau};
        }
        case FACTOR_OUTSIDE: break;
    }
    return {CASE_BOX, 0};
}

// The derivative of the projection at v, applied to d in place: the part of d along the face that v is projected onto.
inline void project_onto_face(const Factor& f, const double* v, double* d, Scratch& scratch) {
    const int k = f.size, n = k - 1;
    double* nearest = scratch.take<double>(k);
    std::copy(v, v + k, nearest);
    const Nearest found = project_factor(f, nearest);
    auto inside = [](double x) { return x > 0 && x < 1; };
    // Entries in the open interval share the sum; the others stay.
    auto along_sum = [&](auto is_free) {
        double sum = 0, squares = 0;
        for (int i = 0; i < k; ++i) {
            if (!is_free(i)) continue;
            const double w = found.where == CASE_SUM ? f.weight[i] : 1;
            sum += w * d[i], squares += w * w;
        }
        for (int i = 0; i < k; ++i) {
            const double w = found.where == CASE_SUM ? f.weight[i] : 1;
            d[i] = is_free(i) ? d[i] - w * sum / squares : 0;
        }
    };
    switch (found.where) {
        case CASE_BOX:
            for (int i = 0; i < k; ++i)
                if (!inside(v[i])) d[i] = 0;
            return;
        case CASE_SIMPLEX: along_sum([&](int i) { return nearest[i] > 0; }); return;
        case CASE_SUM: along_sum([&](int i) { return inside(v[i] - f.weight[i] * found.level); }); return;
        case CASE_TOTAL:
            d[n] = -d[n];
            along_sum([&](int i) { return i == n ? nearest[n] < 1 : nearest[i] > 0; });
            d[n] = -d[n];
            return;
        case CASE_LIFTED: {  // those at the level move together with the last
            double sum = d[n];
            int count = 1;
            for (int i = 0; i < n; ++i)
                if (v[i] > found.level) sum += d[i], ++count;
            const double mean = inside(found.level) ? sum / count : 0;
            for (int i = 0; i < n; ++i) {
                if (v[i] > found.level) d[i] = mean;
                else if (!inside(v[i])) d[i] = 0;
            }
            d[n] = mean;
            return;
        }
    }
}

// max c . q over the polytope.
inline double best_value(const Factor& f, const double* c, Scratch& scratch) {
    const int k = f.size, n = k - 1;
    double sum = 0, most = -std::numeric_limits<double>::infinity();
    const int some = f.kind == FACTOR_ANY || f.kind == FACTOR_NEEDS ? n : k;
    for (int i = 0; i < some; ++i) sum += std::max(c[i], 0.0), most = std::max(most, c[i]);
    switch (f.kind) {
        case FACTOR_ONE: return most;
        case FACTOR_AT_MOST_ONE: return std::max(most, 0.0);
        case FACTOR_AT_LEAST_ONE: return most > 0 ? sum : most;
        case FACTOR_ANY: return n ? std::max(0.0, c[n] + (most > 0 ? sum : most)) : 0;
        case FACTOR_NEEDS: return std::max(0.0, c[n] + sum);
        case FACTOR_SUM: {
            // All that gains, then what costs least for its weight until the sum is within its bounds.
            double taken = 0;
            for (int i = 0; i < k; ++i)
                if (c[i] > 0) taken += f.weight[i];
            if (taken <= f.most && taken >= f.least) return sum;
            const bool over = taken > f.most;
            double off = over ? taken - f.most : f.least - taken;
            int* order = scratch.take<int>(k);
            int count = 0;
            for (int i = 0; i < k; ++i)
                if ((c[i] > 0) == over) order[count++] = i;
            std::sort(order, order + count, [&](int a, int b) {
                return std::fabs(c[a]) * f.weight[b] < std::fabs(c[b]) * f.weight[a];
            });
            for (int j = 0; j < count && off > 0; ++j) {
                const int i = order[j];
                const double share = std::min(1.0, off / f.weight[i]);
                sum -= share * std::fabs(c[i]);
                off -= share * f.weight[i];
            }
            return sum;
        }
        case FACTOR_OUTSIDE: break;
    }
    return 0;
}

// By how much a point of the box breaks the factor's worst inequality.
inline double excess(const Factor& f, const double* q) {
    const int k = f.size, n = k - 1;
    double sum = 0, most = 0;
    for (int i = 0; i < k; ++i) sum += q[i];
    switch (f.kind) {
        case FACTOR_ONE: return std::fabs(sum - 1);
        case FACTOR_AT_MOST_ONE: return std::max(0.0, sum - 1);
        case FACTOR_AT_LEAST_ONE: return std::max(0.0, 1 - sum);
        case FACTOR_ANY: most = 2 * q[n] - sum; [[fallthrough]];
        case FACTOR_NEEDS:
            for (int i = 0; i < n; ++i) most = std::max(most, q[i] - q[n]);
            return std::max(0.0, most);
        case FACTOR_SUM: {
            double total = 0;
            for (int i = 0; i < k; ++i) total += f.weight[i] * q[i];
            return std::max({0.0, total - f.most, f.least - total});
        }
        case FACTOR_OUTSIDE: break;
    }
    return 0;
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
