// Sentences of like length side by side: scores of a group of sentences, one in each lane, words compacted.
#pragma once

#include <cmath>

#include "batch.hpp"
#include "lanes.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// One sentence's scores in float64, compacted to (size, size), infinities replaced by numbers that no sum of the others
// outweighs: as few -inf and as many +inf arcs as possible, then the best finite sum. `absent` marks missing arcs.
template <class T>
void finite_scores(const T* scores, const uint8_t* mask, int64_t n, const int32_t* at, int size, double absent,
                   double* to) {
    double top = 0;
    for (int h = 0; h < size; ++h)
        for (int m = 1; m < size; ++m) {
            double v = scores[at[h] * n + at[m]];
            if (h != m && mask[at[h] * n + at[m]] && std::isfinite(v) && std::fabs(v) > top) top = std::fabs(v);
        }
    const double shrink = top > 1e290 ? 0x1p-64 : 1.0;
    double limit = 1;
    for (int m = 1; m < size; ++m) {
        double most = 0;
        for (int h = 0; h < size; ++h) {
            double v = scores[at[h] * n + at[m]] * shrink;
            if (h != m && mask[at[h] * n + at[m]] && std::isfinite(v) && std::fabs(v) > most) most = std::fabs(v);
        }
        limit += 2 * most;
    }
    for (int h = 0; h < size; ++h)
        for (int m = 0; m < size; ++m) {
            double v = scores[at[h] * n + at[m]];
            bool here = m > 0 && h != m && mask[at[h] * n + at[m]];
            to[h * size + m] = !here ? absent : std::isinf(v) ? (v > 0 ? limit : -limit) : v * shrink;
        }
}

// Scores whose sums cannot overflow. Anything larger goes through finite_scores; so does -inf, but only where a
// sentence has no tree without it.
template <class T>
constexpr T tame_limit = sizeof(T) == 4 ? T(1e30) : T(1e290);

template <class T>
inline bool is_wild(T v) {
    return !(std::fabs(v) <= tame_limit<T>)&(v != minus_infinity<T>);  // no branches: it sits in inner loops
}

// Copies `count` of the n entries of a row, with -inf where there is none; true if any might be wild.
template <class T>
bool copy_existing(const T* from, const uint8_t* exists, int64_t count, int64_t n, T* to) {
    constexpr int W = lane_count<T>;
    typename LaneTraits<T>::Bits wild{};
    for (int64_t m = 0; m < count; m += W) {
        const Lanes<T> v =
            m + W <= n ? load_existing(from + m, exists + m) : load_existing(from + m, exists + m, n - m);
        wild |= (v > tame_limit<T>) | ((v < -tame_limit<T>)&(v != minus_infinity<T>)) | (v != v);
        store(to + m, v);
    }
    return any_lane(wild);
}

// Puts the scores of up to lane_count<C> sentences into lanes, converted to C: packed[h * size + m], `absent` where
// there is no arc. Lanes beyond the group, and words beyond a sentence, get `absent` throughout. Returns a bit for each
// lane whose scores include NaN, +inf or a giant.
template <class T, class C>
uint32_t pack_scores(const ArcBatch<T>& arcs, const Words& words, const int32_t* group, int count, int size, C absent,
                     Lanes<C>* packed) {
    constexpr int W = lane_count<C>;
    const int64_t n = arcs.n;
    Scratch scratch;
    T* row = scratch.take<T>(n + lane_count<T>);
    uint32_t odd = 0;
    for (int64_t i = 0; i < int64_t{size} * size; ++i) packed[i] = spread(absent);
    for (int lane = 0; lane < count; ++lane) {
        const int64_t b = group[lane];
        const int length = words.lengths[b];
        const int32_t* at = words.of(b);
        const T* scores = arcs.sentence(b);
        const uint8_t* mask = arcs.exists(b);
        const bool dense = at[length] == length;
        bool wild = false;
        for (int h = 0; h <= length; ++h) {
            C* to = reinterpret_cast<C*>(packed + int64_t{h} * size) + lane;
            const T* from = scores + at[h] * n;
            const uint8_t* here = mask + at[h] * n;
            if (dense && absent == minus_infinity<C>) {
                const bool suspect = copy_existing(from, here, length + 1, n, row);
                row[h] = minus_infinity<T>;  // a loop, whatever the mask says
                for (int m = 1; m <= length; ++m) to[m * W] = static_cast<C>(row[m]);
                for (int m = 1; suspect && m <= length; ++m) wild |= is_wild(row[m]);
            } else {
                for (int m = 1; m <= length; ++m) {
                    const bool exists = here[at[m]] != 0 && m != h;
                    wild |= exists && is_wild(from[at[m]]);
                    to[m * W] = exists ? static_cast<C>(from[at[m]]) : absent;
                }
            }
        }
        if (wild) odd |= 1u << lane;
    }
    return odd;
}

// Reports the first NaN inside the mask of sentence b; false if there is none.
template <class T>
bool report_nan(const ArcBatch<T>& arcs, int64_t b, FaultBox& faults) {
    const int64_t n = arcs.n;
    for (int64_t h = 0; h < n; ++h)
        for (int64_t m = 1; m < n; ++m) {
            if (h == m || !arcs.exists(b)[h * n + m]) continue;
            const T v = arcs.sentence(b)[h * n + m];
            if (v != v) {
                faults.report(FAULT_NAN, b, h, m);
                return true;
            }
        }
    return false;
}

// Clears the arcs of the sentences that have no words; the others are cleared by the thread that fills them.
template <class T>
void clear_empty(const Words& words, int64_t batch, T* z) {
    for (int64_t b = 0; b < batch; ++b)
        if (!words.lengths[b]) std::memset(z + b * words.n * words.n, 0, sizeof(T) * words.n * words.n);
}

template <class T>
void write_tree(const int32_t* heads, int length, const int32_t* at, int64_t n, T* z) {
    std::memset(z, 0, sizeof(T) * n * n);
    for (int m = 1; m <= length; ++m) z[at[heads[m]] * n + at[m]] = T(1);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
