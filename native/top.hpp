// The best subset of each row: the entries above zero, or as many of the largest as the bounds on its size ask for.
#pragma once

#include <algorithm>

#include "batch.hpp"
#include "lanes.hpp"
#include "pool.hpp"
#include "press.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// The `rank`-th largest of `count` values, which are `vectors` whole vectors with -inf at the end. A small sample says
// below which value it hardly lies, so that few values remain to be ordered.
template <class T>
T ranked_value(const T* values, int64_t vectors, int64_t count, int64_t rank, T* work) {
    constexpr int W = lane_count<T>;
    constexpr int64_t sample = 256;
    const auto falling = [](T a, T b) { return a > b; };
    const int64_t expected = rank * sample / count;
    const int64_t guess = expected + expected / 2 + 8;
    if (count > 4 * sample && guess < sample) {
        T some[sample];
        for (int64_t i = 0; i < sample; ++i) some[i] = values[i * count / sample];
        std::nth_element(some, some + guess, some + sample, falling);
        const T cut = some[guess];
        int64_t kept = 0;
        for (int64_t i = 0; i < vectors; ++i) {
            const Lanes<T> v = load(values + i * W);
            kept += press(v, typename LaneTraits<T>::Bits(v >= cut), work + kept);
        }
        if (cut > minus_infinity<T> && kept >= rank) {
            std::nth_element(work, work + rank - 1, work + kept, falling);
            return work[rank - 1];
        }
    }
    std::memcpy(work, values, sizeof(T) * count);
    std::nth_element(work, work + rank - 1, work + count, falling);
    return work[rank - 1];
}

template <class T>
void best_subsets(const T* scores, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                  T* z, int threads, FaultBox& faults) {
    constexpr int W = lane_count<T>;
    using V = Lanes<T>;
    using B = typename LaneTraits<T>::Bits;
    auto body = [&](int64_t r) {
        Scratch scratch;
        const int64_t vectors = (width + W - 1) / W;
        T* values = scratch.take<T>(vectors * W);
        T* work = scratch.take<T>(vectors * W + W);
        const T* from = scores + r * width;
        const uint8_t* exists = mask + r * width;
        T* to = z + r * width;
        B bad{}, gains{};
        for (int64_t i = 0; i < width; i += W) {
            const V v = i + W <= width ? load_existing(from + i, exists + i)
                                       : load_existing(from + i, exists + i, width - i);
            bad |= v != v;
            gains += B(v > T(0));
            store(values + i, v);
        }
        if (any_lane(bad)) {
            int64_t i = 0;
            while (!exists[i] || from[i] == from[i]) ++i;
            return faults.report(FAULT_NAN, r, i);
        }
        int64_t size = 0, count = 0;
        for (int lane = 0; lane < W; ++lane) size -= gains[lane];
        for (int64_t i = 0; i < width; ++i) count += exists[i] != 0;
        if (count > 0 && count < minimum) return faults.report(FAULT_IMPOSSIBLE, r, count);
        const int64_t least = count ? minimum : 0, most = maximum < 0 || maximum > count ? count : maximum;
        int64_t wanted = size < least ? least : size > most ? most : size;
        T cut = 0;
        if (wanted == 0) cut = -minus_infinity<T>;
        else if (wanted != size) cut = ranked_value(values, vectors, width, wanted, work);
        const bool level = wanted != size && wanted > 0;
        B above{};
        for (int64_t i = 0; i < vectors * W; i += W) {
            const V v = load(values + i);
            above += B(v > cut);
            const V one = v > cut ? spread(T(1)) : V{};
            if (i + W <= width) store(to + i, one);
            else std::memcpy(to + i, &one, sizeof(T) * (width - i));
        }
        if (!level) return;
        for (int lane = 0; lane < W; ++lane) wanted += above[lane];
        for (int64_t i = 0; i < width && wanted > 0; ++i) {  // of those at the cut, the first
            if (values[i] != cut || !exists[i]) continue;
            to[i] = 1;
            --wanted;
        }
    };
    parallel_for(rows, worthwhile_threads(4.0 * rows * width, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
