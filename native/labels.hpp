// The best label of each arc: a maximum along short rows, and where it stands.
#pragma once

#include "packing.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// For each row the largest of the entries that exist and the first place where it stands; -inf and -1 where none does.
// A row is an arc of (batch, n, n); NaN inside the mask is a fault, except on arcs that cannot be.
template <class T>
void best_labels(const T* scores, const uint8_t* mask, int64_t batch, int64_t n, int64_t width, T* best, int32_t* which,
                 int threads, FaultBox& faults) {
    constexpr int W = lane_count<T>;
    auto body = [&](int64_t task) {  // a task is a head: n rows
        const int64_t h = task % n, first = task * n;
        for (int64_t m = 0; m < n; ++m) {
            const T* from = scores + (first + m) * width;
            const uint8_t* here = mask + (first + m) * width;
            T top = minus_infinity<T>;
            int32_t place = -1;
            if (m > 0 && m != h) {
                Lanes<T> most = spread(minus_infinity<T>);
                typename LaneTraits<T>::Bits odd{};
                for (int64_t l = 0; l < width; l += W) {
                    const Lanes<T> v = l + W <= width ? load_existing(from + l, here + l)
                                                      : load_existing(from + l, here + l, width - l);
                    odd |= v != v;
                    most = larger(most, v);
                }
                top = largest<T>(most);
                int64_t l = 0;
                if (any_lane(odd)) {
                    while (!here[l] || from[l] == from[l]) ++l;
                    faults.report(FAULT_NAN, first / (n * n), h, m, l);
                    return;
                }
                while (l < width && !(here[l] && from[l] == top)) ++l;
                if (l < width) place = static_cast<int32_t>(l);
            }
            best[first + m] = top;
            which[first + m] = place;
        }
    };
    const double steps = static_cast<double>(batch) * static_cast<double>(n * n) * (4 + static_cast<double>(width) / W);
    parallel_for(batch * n, worthwhile_threads(steps / 4, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
