// Projections onto simplices: along rows, over the heads of each word, over the labels of each arc.
//
// Michelot's iteration: drop what lies below the threshold, recompute the threshold, until nothing is dropped. Started
// from the largest entry less one, which no threshold lies below, it takes two or three rounds.
#pragma once

#include <cmath>

#include "batch.hpp"
#include "lanes.hpp"
#include "pool.hpp"
#include "press.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr T largest_finite = std::numeric_limits<T>::max();

template <class T>
bool finite(T x) {
    return std::fabs(x) <= largest_finite<T>;
}

// A few rows in whole vectors, with -inf where an entry is missing. Rows are projected together: the steps of one are a
// chain that the processor would wait for, several chains keep it busy.
template <class T>
class Rows {
public:
    static constexpr int W = lane_count<T>;
    static constexpr int together = 8;
    using V = Lanes<T>;

    Rows(Scratch& scratch, int64_t width)
        : width_(width),
          vectors_((width + W - 1) / W),
          values_(scratch.take<T>(together * vectors_ * W)),
          work_(scratch.take<T>(together * (vectors_ + 1) * W)) {}

    T* row(int r) { return values_ + r * vectors_ * W; }

    // Copies the entries that exist and finds the largest; false if one of them is NaN.
    bool load(int r, const T* from, const uint8_t* exists, T& top) {
        T* to = row(r);
        typename LaneTraits<T>::Bits bad{};
        V best = spread(minus_infinity<T>);
        for (int64_t i = 0; i < width_; i += W) {
            const V v = i + W <= width_ ? load_existing(from + i, exists + i)
                        : i > 0         ? load_last(from + i, exists + i, width_ - i)
                                        : load_existing(from + i, exists + i, width_ - i);
            bad |= v != v;
            best = larger(best, v);
            store(to + i, v);
        }
        top = largest<T>(best);
        return !any_lane(bad);
    }

    // Replaces each of the first `count` rows by its projection onto the entries >= 0 that sum to goal > 0, or writes
    // it to `out`. `tops` are the largest entries, finite.
    void project(int count, const T* tops, const T* goals, T* const* out = nullptr) {
        T threshold[together], kept[together];
        int64_t left[together];
        const int64_t room = (vectors_ + 1) * W;
        for (int r = 0; r < count; ++r) {
            T sum;
            threshold[r] = -goals[r];
            left[r] = begin(row(r), tops[r], threshold[r], work_ + r * room, sum, kept[r]);
            if (kept[r] > 0 && finite(kept[r])) threshold[r] = (sum - goals[r]) / kept[r];
        }
        bool moving = true;
        while (moving) {
            moving = false;
            for (int r = 0; r < count; ++r) {
                T sum, some;
                tally(work_ + r * room, left[r], threshold[r], sum, some);
                if (!(some < kept[r] && some > 0)) continue;  // settled; rounding may also make the count rise again
                threshold[r] = (sum - goals[r]) / some;
                kept[r] = some;
                moving = true;
            }
        }
        for (int r = 0; r < count; ++r) {
            T* to = row(r);
            const V shift = spread(tops[r]), cut = spread(threshold[r]);
            if (out && width_ >= W) {  // whole vectors, the last of which may overlap the one before
                for (int64_t i = 0; i < width_; i += W) {
                    const int64_t place = i + W <= width_ ? i : width_ - W;
                    const V v = SPIGOT_ARCH::load(to + place) - shift - cut;
                    store(out[r] + place, v > T(0) ? v : V{});
                }
                continue;
            }
            for (int64_t i = 0; i < vectors_; ++i) {
                const V v = SPIGOT_ARCH::load(to + i * W) - shift - cut;
                store(to + i * W, v > T(0) ? v : V{});
            }
            if (out) std::memcpy(out[r], to, sizeof(T) * width_);
        }
    }

private:
    // Copies a row less `shift`, and returns how many vectors are left to look at. Where lanes can be pressed together
    // cheaply, those of entries above the cut; elsewhere all, with the sum and the number of those above for a start.
    int64_t begin(const T* from, T shift, T cut, T* to, T& sum, T& count) const {
#if defined(__AVX512F__)
        sum = 0;
        count = std::numeric_limits<T>::infinity();
        return keep_above(from, vectors_, shift, cut, to);
#else
        V all{}, some{};
        for (int64_t i = 0; i < vectors_; ++i) {
            const V v = SPIGOT_ARCH::load(from + i * W) - shift;
            store(to + i * W, v);
            all += v > cut ? v : V{};
            some += v > cut ? spread(T(1)) : V{};
        }
        sum = total<T>(all);
        count = total<T>(some);
        return vectors_;
#endif
    }

    int64_t width_, vectors_;
    T *values_, *work_;
};

template <class T>
void project_rows(const T* point, const uint8_t* mask, int64_t rows, int64_t width, T* to, int threads,
                  FaultBox& faults) {
    constexpr int64_t block = 64;
    constexpr int together = Rows<T>::together;
    auto body = [&](int64_t task) {
        Scratch scratch;
        Rows<T> pack(scratch, width);
        T tops[together], goals[together];
        T* place[together];
        int count = 0;
        auto flush = [&] {
            pack.project(count, tops, goals, place);
            count = 0;
        };
        const int64_t end = rows < (task + 1) * block ? rows : (task + 1) * block;
        for (int64_t r = task * block; r < end; ++r) {
            const T* from = point + r * width;
            const uint8_t* exists = mask + r * width;
            if (!pack.load(count, from, exists, tops[count])) {
                int64_t i = 0;
                while (!exists[i] || from[i] == from[i]) ++i;
                faults.report(FAULT_NAN, r, i);
                continue;
            }
            if (finite(tops[count])) {
                goals[count] = 1;
                place[count++] = to + r * width;
            } else {  // nothing there, or nothing but infinities
                bool any = false;
                for (int64_t i = 0; i < width; ++i) any |= exists[i] != 0;
                if (any) faults.report(FAULT_INFINITE, r);
                std::memset(to + r * width, 0, sizeof(T) * width);
            }
            if (count == together) flush();
        }
        flush();
    };
    parallel_for((rows + block - 1) / block, worthwhile_threads(2.0 * rows * width, threads), body);
}

// One column of words in each lane: modifiers side by side, heads one after the other, so nothing is transposed.
template <class T>
class HeadColumns {
public:
    static constexpr int W = lane_count<T>;
    using V = Lanes<T>;

    HeadColumns(Scratch& scratch, int64_t n)
        : n_(n),
          columns_((n + W - 1) / W * W),
          values_(scratch.take<T>(n * columns_)),
          out_(scratch.take<uint8_t>(n)) {}

    const T* row(int64_t head) const { return values_ + head * columns_; }

    // Projects the points of sentence b, n x n; false if one of them is NaN.
    bool project(const T* from, const uint8_t* exists, int64_t b, FaultBox& faults) {
        if (!load_points(from, exists, b, faults)) return false;
        for (int64_t first = 0; first < columns_; first += W) project_words(first, exists, b, faults);
        return true;
    }

private:
    bool load_points(const T* from, const uint8_t* exists, int64_t b, FaultBox& faults) {
        for (int64_t h = 0; h < n_; ++h) {
            T* row = values_ + h * columns_;
            const T* point_row = from + h * n_;
            const uint8_t* exists_row = exists + h * n_;
            int64_t m = 0;
            for (; m + W <= n_; m += W) store(row + m, load_existing(point_row + m, exists_row + m));
            for (; m < n_; ++m) row[m] = exists_row[m] ? point_row[m] : minus_infinity<T>;
            for (; m < columns_; ++m) row[m] = minus_infinity<T>;
            row[0] = row[h] = minus_infinity<T>;  // nothing into the root, no loops
            V highest = spread(minus_infinity<T>);
            typename LaneTraits<T>::Bits bad{};
            for (m = 0; m < columns_; m += W) {
                const V v = load(row + m);
                bad |= v != v;
                highest = larger(highest, v);
            }
            if (any_lane(bad)) {
                for (m = 1; row[m] == row[m]; ++m) {
                }
                faults.report(FAULT_NAN, b, h, m);
                return false;
            }
            out_[h] = largest<T>(highest) > minus_infinity<T>;
        }
        return true;
    }

    // As many words as there are lanes, from `first` on.
    void project_words(int64_t first, const uint8_t* exists, int64_t b, FaultBox& faults) {
        V top = load(values_ + first);
        for (int64_t h = 1; h < n_; ++h) top = larger(top, load(values_ + h * columns_ + first));
        const auto unfit = (top < -largest_finite<T>) | (top > largest_finite<T>);
        for (int64_t m = first; any_lane(unfit) && m < first + W && m < n_; ++m) {
            if (finite(top[m - first])) continue;
            bool any = false;
            for (int64_t h = 0; h < n_; ++h) any |= exists[h * n_ + m] && h != m && m != 0;
            if (any) faults.report(FAULT_INFINITE, b);
            else if (m && out_[m]) faults.report(FAULT_HEADLESS, b, m);
        }
        const auto empty = !(top > minus_infinity<T>);
        const V shift = empty ? V{} : top;
        V threshold = spread(T(-1)), count = spread(std::numeric_limits<T>::infinity());
        while (true) {
            V sum{}, kept{};
            for (int64_t h = 0; h < n_; ++h) {
                const V v = load(values_ + h * columns_ + first) - shift;
                sum += v > threshold ? v : V{};
                kept += v > threshold ? spread(T(1)) : V{};
            }
            const auto falls = (kept < count) & (kept > T(0));  // rounding may also make the count rise again
            if (!any_lane(falls)) break;
            threshold = falls ? (sum - T(1)) / kept : threshold;
            count = falls ? kept : count;
            if (!any_lane(kept > T(1))) break;  // one head each, which is as few as there can be
        }
        for (int64_t h = 0; h < n_; ++h) {
            T* row = values_ + h * columns_ + first;
            const V v = load(row) - shift - threshold;
            store(row, v > T(0) ? v : V{});
        }
    }

    int64_t n_, columns_;
    T* values_;
    uint8_t* out_;
};

template <class T>
void project_heads(const T* point, const uint8_t* mask, int64_t batch, int64_t n, T* to, int threads,
                   FaultBox& faults) {
    auto body = [&](int64_t b) {
        Scratch scratch;
        HeadColumns<T> columns(scratch, n);
        if (!columns.project(point + b * n * n, mask + b * n * n, b, faults)) return;
        for (int64_t h = 0; h < n; ++h) std::memcpy(to + (b * n + h) * n, columns.row(h), sizeof(T) * n);
    };
    parallel_for(batch, worthwhile_threads(4.0 * batch * n * n, threads), body);
}

// The labels of one arc and "no arc" on a simplex.
template <class T>
class ArcProjection {
public:
    ArcProjection(int64_t width, bool sequential)
        : width_(width), sequential_(sequential), pack_(scratch_, width), exists_(scratch_.take<uint8_t>(width)) {}

    static T clipped(T x) { return x > T(1) ? T(1) : x > T(0) ? x : T(0); }

    // Projects channels `from` of the arc i -> j of sentence b, where `mask` says which exist; zeros elsewhere.
    void operator()(const T* from, const uint8_t* mask, int64_t b, int64_t i, int64_t j, T* out, FaultBox& faults) {
        std::memset(out, 0, sizeof(T) * width_);
        const bool diagonal = i == j;
        if (!mask[0] || (j == 0 && !diagonal)) return;
        if (diagonal) {  // a predicate
            if (from[0] != from[0]) faults.report(FAULT_NAN, b, i, j, 0);
            out[0] = clipped(from[0]);
            return;
        }
        T* row = pack_.row(0);
        std::memcpy(exists_, mask, width_);
        T top;
        exists_[0] = 0;  // the arc itself is not a label
        const bool clean = pack_.load(0, from, exists_, top) && from[0] == from[0];
        if (!clean) {
            for (int64_t c = 0; c < width_; ++c)
                if (mask[c] && from[c] != from[c]) {
                    faults.report(FAULT_NAN, b, i, j, c);
                    break;
                }
            return;
        }
        if (!sequential_) {  // the slack that stands for "no arc"
            row[0] = T(1) - from[0];
            top = row[0] > top ? row[0] : top;
        }
        const T goal = sequential_ ? clipped(from[0]) : T(1);
        if (top == std::numeric_limits<T>::infinity() || (!sequential_ && !finite(top))) {
            faults.report(FAULT_INFINITE, b);
            return;
        }
        if (!(top > minus_infinity<T>) || !(goal > T(0))) return;
        pack_.project(1, &top, &goal);
        std::memcpy(out, row, sizeof(T) * width_);
        out[0] = sequential_ ? goal : clipped(T(1) - row[0]);
    }

private:
    int64_t width_;
    bool sequential_;
    Scratch scratch_;
    Rows<T> pack_;
    uint8_t* exists_;
};

template <class T>
void project_arc_labels(const T* point, const uint8_t* mask, int64_t batch, int64_t n, int64_t width, bool sequential,
                        T* to, int threads, FaultBox& faults) {
    auto body = [&](int64_t task) {  // one task for each predicate
        ArcProjection<T> project(width, sequential);
        for (int64_t j = 0; j < n; ++j) {
            const int64_t place = (task * n + j) * width;
            project(point + place, mask + place, task / n, task % n, j, to + place, faults);
        }
    };
    parallel_for(batch * n, worthwhile_threads(2.0 * batch * n * n * width, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
