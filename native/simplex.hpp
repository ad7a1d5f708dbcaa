// Projections onto simplices: along rows, over the heads of each word, over the labels of each arc.
//
// Michelot's iteration: drop what lies below the threshold, recompute the threshold, until nothing is dropped. Started
// from the largest entry less one, which no threshold lies below, it takes two or three rounds.
#pragma once

#include <cmath>

#include "batch.hpp"
#include "lanes.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// A row in whole vectors, with -inf where an entry is missing.
template <class T>
class Row {
public:
    static constexpr int W = lane_count<T>;
    using V = Lanes<T>;

    Row(Scratch& scratch, int64_t width)
        : width_(width), vectors_((width + W - 1) / W), values(scratch.take<T>(vectors_ * W)) {
        for (int64_t i = 0; i < vectors_ * W; ++i) values[i] = minus_infinity<T>;
    }

    // Copies the entries that exist; false if one of them is NaN.
    bool load(const T* from, const uint8_t* exists) {
        bool clean = true;
        for (int64_t i = 0; i < width_; ++i) {
            const T v = exists[i] ? from[i] : minus_infinity<T>;
            clean &= v == v;
            values[i] = v;
        }
        return clean;
    }

    T top() const {
        V best = SPIGOT_ARCH::load(values);
        for (int64_t i = 1; i < vectors_; ++i) best = larger(best, SPIGOT_ARCH::load(values + i * W));
        return largest<T>(best);
    }

    // Replaces the row by its projection onto the entries >= 0 that sum to `goal` > 0. `top` is the largest entry, finite.
    void project(T top, T goal) {
        const V shift = spread(top);
        T threshold = -goal;
        T count = 0, before;
        do {
            before = count;
            V sum{}, kept{};
            const V cut = spread(threshold);
            for (int64_t i = 0; i < vectors_; ++i) {
                const V v = SPIGOT_ARCH::load(values + i * W) - shift;
                sum += v > cut ? v : V{};
                kept += v > cut ? spread(T(1)) : V{};
            }
            count = total<T>(kept);
            threshold = (total<T>(sum) - goal) / count;
        } while (count != before);
        const V cut = spread(threshold);
        for (int64_t i = 0; i < vectors_; ++i) {
            const V v = SPIGOT_ARCH::load(values + i * W) - shift - cut;
            SPIGOT_ARCH::store(values + i * W, v > T(0) ? v : V{});
        }
    }

private:
    int64_t width_, vectors_;

public:
    T* values;
};

template <class T>
constexpr T largest_finite = std::numeric_limits<T>::max();

template <class T>
bool finite(T x) {
    return std::fabs(x) <= largest_finite<T>;
}

template <class T>
void project_rows(const T* point, const uint8_t* mask, int64_t rows, int64_t width, T* to, int threads,
                  FaultBox& faults) {
    constexpr int64_t block = 64;
    auto body = [&](int64_t task) {
        Scratch scratch;
        Row<T> row(scratch, width);
        for (int64_t r = task * block; r < rows && r < (task + 1) * block; ++r) {
            const T* from = point + r * width;
            if (!row.load(from, mask + r * width)) {
                for (int64_t i = 0; i < width; ++i)
                    if (mask[r * width + i] && from[i] != from[i]) {
                        faults.report(FAULT_NAN, r, i);
                        break;
                    }
                continue;
            }
            const T top = row.top();
            if (!finite(top)) {  // nothing there, or nothing but infinities
                bool any = false;
                for (int64_t i = 0; i < width; ++i) any |= mask[r * width + i] != 0;
                if (any) faults.report(FAULT_INFINITE, r);
                std::memset(to + r * width, 0, sizeof(T) * width);
                continue;
            }
            row.project(top, T(1));
            std::memcpy(to + r * width, row.values, sizeof(T) * width);
        }
    };
    parallel_for((rows + block - 1) / block, worthwhile_threads(2.0 * rows * width, threads), body);
}

// One column of words in each lane: modifiers side by side, heads one after the other, so nothing is transposed.
template <class T>
void project_heads(const T* point, const uint8_t* mask, int64_t batch, int64_t n, T* to, int threads,
                   FaultBox& faults) {
    constexpr int W = lane_count<T>;
    using V = Lanes<T>;
    auto body = [&](int64_t b) {
        Scratch scratch;
        const int64_t columns = (n + W - 1) / W * W;
        T* values = scratch.take<T>(n * columns);
        uint8_t* out = scratch.take<uint8_t>(n);
        const T* from = point + b * n * n;
        const uint8_t* exists = mask + b * n * n;
        for (int64_t h = 0; h < n; ++h) {
            T* row = values + h * columns;
            bool clean = true, any = false;
            for (int64_t m = 0; m < n; ++m) {
                const bool here = exists[h * n + m] && m != h && m != 0;
                const T v = here ? from[h * n + m] : minus_infinity<T>;
                clean &= v == v;
                any |= here;
                row[m] = v;
            }
            for (int64_t m = n; m < columns; ++m) row[m] = minus_infinity<T>;
            out[h] = any;
            if (clean) continue;
            for (int64_t m = 1; m < n; ++m)
                if (row[m] != row[m]) {
                    faults.report(FAULT_NAN, b, h, m);
                    return;
                }
        }
        for (int64_t first = 0; first < columns; first += W) {
            V top = load(values + first);
            for (int64_t h = 1; h < n; ++h) top = larger(top, load(values + h * columns + first));
            for (int64_t m = first; m < first + W && m < n; ++m) {
                if (finite(top[m - first])) continue;
                bool any = false;
                for (int64_t h = 0; h < n; ++h) any |= exists[h * n + m] && h != m && m != 0;
                if (any) faults.report(FAULT_INFINITE, b);
                else if (m && out[m]) faults.report(FAULT_HEADLESS, b, m);
            }
            const auto empty = !(top > minus_infinity<T>);
            const V shift = empty ? V{} : top;
            V threshold = spread(T(-1)), count{};
            while (true) {
                V sum{}, kept{};
                for (int64_t h = 0; h < n; ++h) {
                    const V v = load(values + h * columns + first) - shift;
                    sum += v > threshold ? v : V{};
                    kept += v > threshold ? spread(T(1)) : V{};
                }
                const V divisor = kept > T(0) ? kept : spread(T(1));
                threshold = (sum - T(1)) / divisor;
                const auto moved = kept != count;
                bool any = false;
                for (int lane = 0; lane < W; ++lane) any |= moved[lane] != 0;
                if (!any) break;
                count = kept;
            }
            for (int64_t h = 0; h < n; ++h) {
                T* row = values + h * columns + first;
                const V v = load(row) - shift - threshold;
                store(row, v > T(0) ? v : V{});
            }
        }
        for (int64_t h = 0; h < n; ++h) std::memcpy(to + (b * n + h) * n, values + h * columns, sizeof(T) * n);
    };
    parallel_for(batch, worthwhile_threads(4.0 * batch * n * n, threads), body);
}

template <class T>
void project_arc_labels(const T* point, const uint8_t* mask, int64_t batch, int64_t n, int64_t width, bool sequential,
                        T* to, int threads, FaultBox& faults) {
    auto clipped = [](T x) { return x > T(1) ? T(1) : x > T(0) ? x : T(0); };
    auto body = [&](int64_t task) {  // one task for each predicate
        const int64_t b = task / n, i = task % n;
        Scratch scratch;
        Row<T> row(scratch, width);
        uint8_t* exists = scratch.take<uint8_t>(width);
        for (int64_t j = 0; j < n; ++j) {
            const int64_t place = (task * n + j) * width;
            const T* from = point + place;
            T* out = to + place;
            std::memset(out, 0, sizeof(T) * width);
            const bool diagonal = i == j;
            if (!mask[place] || (j == 0 && !diagonal)) continue;
            if (diagonal) {
                if (from[0] != from[0]) faults.report(FAULT_NAN, b, i, j, 0);
                out[0] = clipped(from[0]);
                continue;
            }
            std::memcpy(exists, mask + place, width);
            if (sequential) exists[0] = 0;
            bool clean = row.load(from, exists);
            if (from[0] != from[0]) clean = false;
            if (!clean) {
                for (int64_t c = 0; c < width; ++c)
                    if (mask[place + c] && from[c] != from[c]) {
                        faults.report(FAULT_NAN, b, i, j, c);
                        break;
                    }
                continue;
            }
            if (!sequential) row.values[0] = T(1) - from[0];  // the slack that stands for "no arc"
            const T top = row.top();
            const T goal = sequential ? clipped(from[0]) : T(1);
            if (top == std::numeric_limits<T>::infinity() || (!sequential && !finite(top))) {
                faults.report(FAULT_INFINITE, b);
                continue;
            }
            if (!(top > minus_infinity<T>) || !(goal > T(0))) continue;
            row.project(top, goal);
            std::memcpy(out, row.values, sizeof(T) * width);
            out[0] = sequential ? goal : clipped(T(1) - row.values[0]);
        }
    };
    parallel_for(batch * n, worthwhile_threads(2.0 * batch * n * n * width, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
