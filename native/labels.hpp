// The best label of each arc, and what all labels of each arc come to: maxima and sums along short rows.
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
                for (; l + W <= width && !any_lane(load_existing(from + l, here + l) == top); l += W) {
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

// For each arc the log of the sum of exponentiated scores over the labels that exist, -inf where there is no mass; the
// share of each label in it, unless `share` is null; and whether the arc exists.
template <class T>
void label_sums(const T* scores, const uint8_t* mask, int64_t batch, int64_t n, int64_t width, T* log_sum, T* share,
                uint8_t* arcs, int threads, FaultBox& faults) {
    constexpr int W = lane_count<double>;
    auto body = [&](int64_t task) {  // a task is a head: n rows
        Scratch scratch;
        const int64_t h = task % n, first = task * n, padded = (width + W - 1) / W * W;
        double* row = scratch.take<double>(padded + W);
        for (int64_t m = 0; m < n; ++m) {
            const T* from = scores + (first + m) * width;
            const uint8_t* here = mask + (first + m) * width;
            T* to = share ? share + (first + m) * width : nullptr;
            const bool possible = m > 0 && m != h;
            uint8_t exists = 0;
            for (int64_t l = 0; possible && l < width; ++l) {
                exists |= here[l];
                row[l] = here[l] ? static_cast<double>(from[l]) : minus_infinity<double>;
            }
            arcs[first + m] = exists != 0;
            log_sum[first + m] = minus_infinity<T>;
            if (!exists) {
                for (int64_t l = 0; to && l < width; ++l) to[l] = 0;
                continue;
            }
            for (int64_t l = width; l < padded; ++l) row[l] = minus_infinity<double>;
            Lanes<double> tops = load(row);
            LaneTraits<double>::Bits odd{};
            for (int64_t l = 0; l < padded; l += W) {
                const Lanes<double> v = load(row + l);
                odd |= v != v;
                tops = larger(tops, v);
            }
            const double top = largest<double>(tops);
            if (any_lane(odd)) {
                int64_t l = 0;
                while (row[l] == row[l]) ++l;
                return faults.report(FAULT_NAN, first / (n * n), h, m, l);
            }
            if (top == std::numeric_limits<double>::infinity()) return faults.report(FAULT_INFINITE, first / (n * n));
            const double shift = top > minus_infinity<double> ? top : 0;
            Lanes<double> sums{};
            for (int64_t l = 0; l < padded; l += W) {
                const Lanes<double> e = exp_nonpositive(load(row + l) - shift);
                store(row + l, e);
                sums += e;
            }
            const double sum = total<double>(sums);
            if (sum > 0) log_sum[first + m] = static_cast<T>(shift + std::log(sum));
            const double scale = sum > 0 ? 1 / sum : 0;
            for (int64_t l = 0; to && l < width; ++l) to[l] = static_cast<T>(row[l] * scale);
        }
    };
    const double steps = static_cast<double>(batch) * static_cast<double>(n * n) * (8 + static_cast<double>(width));
    parallel_for(batch * n, worthwhile_threads(steps / 2, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
