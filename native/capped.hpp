// Projection onto the capped simplex: entries in [0, 1] whose sum lies between two whole numbers.
//
// The nearest point is clip(v - tau) with one threshold tau for the row: zero if the sum then is within its bounds,
// otherwise the tau that makes it the bound that was passed. The sum falls along pieces of straight lines as tau rises.
// Newton steps kept inside a bracket find the piece, and on the piece the last step is exact. Entries that the bracket
// has decided leave the array, so that later rounds look at few.
#pragma once

#include <cmath>

#include "batch.hpp"
#include "lanes.hpp"
#include "pool.hpp"
#include "press.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// One row, and the threshold it is cut at.
template <class T>
class CappedRow {
public:
    static constexpr int W = lane_count<T>;
    using V = Lanes<T>;
    using B = typename LaneTraits<T>::Bits;

    CappedRow(Scratch& scratch, int64_t width)
        : width_(width),
          values_(scratch.take<T>(width + 2 * W)),
          work_(scratch.take<T>(width + 3 * W)) {}

    enum Look { FINE, NOT_A_NUMBER, INFINITE };

    // Copies the entries that exist, -inf for the others, and measures them.
    Look load(const T* from, const uint8_t* exists) {
        B bad{}, real{};
        V top = spread(minus_infinity<T>), bottom = -top;
        int64_t i = 0;
        for (; i + W <= width_; i += W) take(load_existing(from + i, exists + i), i, bad, real, top, bottom);
        if (i < width_) take(load_existing(from + i, exists + i, width_ - i), i, bad, real, top, bottom);
        if (any_lane(bad)) return NOT_A_NUMBER;
        vectors_ = (width_ + W - 1) / W;
        finite_ = -static_cast<int64_t>(sum_of(real));
        top_ = largest<T>(top);
        bottom_ = -largest<T>(-bottom);
        return top_ <= std::numeric_limits<T>::max() ? FINE : INFINITE;
    }

    int64_t finite() const { return finite_; }

    // Finds the threshold for entries that sum to `minimum` at least and `maximum` at most; minimum <= finite().
    void settle(int64_t minimum, int64_t maximum) {
        hi_ = lo_ = 0;
        if (finite_ == 0) return;
        if (minimum >= finite_) {  // all of them
            place(double(bottom_) - 2);
            return;
        }
        if (maximum == 0) {  // none of them
            place(double(top_) + 1);
            return;
        }
        double low = double(bottom_) - 1, high = double(top_), tau;
        int64_t goal = maximum;
        if (minimum == maximum) {
            tau = double(top_) - 1;
        } else {
            const Sums at = tally(values_, vectors_, 0);
            if (at.total >= double(minimum) && at.total <= double(maximum)) return;
            if (at.total > double(maximum)) low = 0;
            else high = 0, goal = minimum;
            tau = at.inside ? (at.total - double(goal)) / double(at.inside) : 0.5 * (low + high);
        }
        search(double(goal), low, high, tau);
    }

    void write(T* to) const {
        const V hi = spread(hi_), lo = spread(lo_);
        int64_t i = 0;
        for (; i + W <= width_; i += W) store(to + i, clipped((SPIGOT_ARCH::load(values_ + i) - hi) - lo));
        const V rest = clipped((SPIGOT_ARCH::load(values_ + i) - hi) - lo);
        if (i < width_) std::memcpy(to + i, &rest, sizeof(T) * (width_ - i));
    }

private:
    struct Sums {
        double total;          // of the clipped entries
        int64_t inside, full;  // entries strictly between 0 and 1, and at 1
    };

    static V clipped(V d) {
        d = d > T(0) ? d : V{};
        return d < T(1) ? d : spread(T(1));
    }

    static int64_t sum_of(B counts) {
        int64_t sum = 0;
        for (int lane = 0; lane < W; ++lane) sum += counts[lane];
        return sum;
    }

    void take(V v, int64_t i, B& bad, B& real, V& top, V& bottom) {
        store(values_ + i, v);
        const B there = v > minus_infinity<T>;
        bad |= v != v;
        real += there;
        top = larger(top, v);
        const V low = there ? v : spread(-minus_infinity<T>);
        bottom = low < bottom ? low : bottom;
    }

    // The threshold as the sum of two numbers, since one float is too coarse for entries far from zero.
    void place(double tau) {
        hi_ = static_cast<T>(tau);
        lo_ = static_cast<T>(tau - double(hi_));
    }

    Sums tally(const T* from, int64_t vectors, double tau) {
        place(tau);
        const V hi = spread(hi_), lo = spread(lo_);
        V sum{}, other{};
        B some{}, full{};
        int64_t i = 0;
        for (; i + 2 <= vectors; i += 2) {  // two chains of additions
            const V a = (SPIGOT_ARCH::load(from + i * W) - hi) - lo;
            const V b = (SPIGOT_ARCH::load(from + i * W + W) - hi) - lo;
            sum += clipped(a), other += clipped(b);
            some += (a > T(0)) + (b > T(0)), full += (a >= T(1)) + (b >= T(1));
        }
        if (i < vectors) {
            const V a = (SPIGOT_ARCH::load(from + i * W) - hi) - lo;
            sum += clipped(a), some += B(a > T(0)), full += B(a >= T(1));
        }
        const int64_t ones = -sum_of(full);
        return {double(total<T>(sum + other)), -sum_of(some) - ones, ones};
    }

    // The same with the sum in double precision: what the answer rests on.
    Sums tally_exactly(const T* from, int64_t vectors, double tau) {
        place(tau);
        double sum = 0;
        int64_t some = 0, full = 0;
        for (int64_t i = 0; i < vectors * W; ++i) {
            const T d = (from[i] - hi_) - lo_;
            sum += d > T(0) ? (d < T(1) ? double(d) : 1.0) : 0.0;
            some += d > T(0), full += d >= T(1);
        }
        return {sum, some - full, full};
    }

    // Keeps what lies between `low` and `high` + 1; what lies above goes into `full`.
    int64_t narrow(const T* from, int64_t vectors, double low, double high, int64_t& full) {
        // Rounded outwards, so that nothing undecided is lost.
        const T floor = std::nextafter(static_cast<T>(low), minus_infinity<T>);
        const T ceiling = std::nextafter(static_cast<T>(high + 1), -minus_infinity<T>);
        int64_t count = 0;
        B above{};
        for (int64_t i = 0; i < vectors; ++i) {
            const V v = SPIGOT_ARCH::load(from + i * W);
            const B over = v > ceiling;
            above += over;
            count += press(v, B((v > floor) & ~over), work_ + count);
        }
        full -= sum_of(above);
        store(work_ + count, spread(minus_infinity<T>));
        return (count + W - 1) / W;
    }

    void search(double goal, double low, double high, double tau) {
        const T* from = values_;
        int64_t vectors = vectors_, full = 0, inside = -1, ones = -1;
        double width = high - low;
        bool straight = false;  // whether tau is where the line of the round before meets the goal
        for (int round = 0; round < 300; ++round) {
            if (!(tau > low && tau < high)) {
                tau = low + 0.5 * (high - low);
                straight = false;
                if (!(tau > low && tau < high)) break;  // neighbours
            }
            const Sums at = tally(from, vectors, tau);
            if (straight && at.inside == inside && at.full + full == ones) break;  // still on that line
            inside = at.inside, ones = at.full + full;
            const double over = at.total + double(full) - goal;
            if (inside == 0 && over == 0) return;  // a whole number of ones: any threshold here does
            (over > 0 ? low : high) = tau;
            straight = inside > 0;
            if (round % 4 == 3) {  // a bracket that hardly shrinks is halved
                straight = straight && high - low <= 0.25 * width;
                width = high - low;
            }
            const double next = straight ? tau + over / double(inside) : low + 0.5 * (high - low);
            if (next == tau) break;
            if (vectors > 4) {
                vectors = narrow(from, vectors, low, high, full);
                from = work_;
            }
            tau = next;
        }
        for (int round = 0; round < 2; ++round) {
            const Sums at = tally_exactly(from, vectors, tau);
            if (at.inside == 0) break;
            tau += (at.total + double(full) - goal) / double(at.inside);
        }
        place(tau);
    }

    int64_t width_, vectors_ = 0, finite_ = 0;
    T *values_, *work_;
    T top_ = 0, bottom_ = 0, hi_ = 0, lo_ = 0;
};

// Rows without any entry are zero; a row with fewer than `minimum` is reported with the number it has. `maximum` < 0
// stands for any number.
template <class T>
void project_capped(const T* point, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                    T* to, int threads, FaultBox& faults) {
    auto body = [&](int64_t r) {
        Scratch scratch;
        CappedRow<T> row(scratch, width);
        const T* from = point + r * width;
        const uint8_t* exists = mask + r * width;
        const auto look = row.load(from, exists);
        if (look == CappedRow<T>::NOT_A_NUMBER) {
            int64_t i = 0;
            while (!exists[i] || from[i] == from[i]) ++i;
            faults.report(FAULT_NAN, r, i);
            return;
        }
        int64_t least = minimum;
        if (row.finite() < minimum) {
            int64_t count = 0;
            for (int64_t i = 0; i < width; ++i) count += exists[i] != 0;
            if (count > 0 && count < minimum) {
                faults.report(FAULT_IMPOSSIBLE, r, count);
                return;
            }
            if (count > 0) {
                faults.report(FAULT_INFINITE, r);
                return;
            }
            least = 0;
        }
        if (look == CappedRow<T>::INFINITE) {
            faults.report(FAULT_INFINITE, r);
            return;
        }
        row.settle(least, maximum < 0 || maximum > row.finite() ? row.finite() : maximum);
        row.write(to + r * width);
    };
    parallel_for(rows, worthwhile_threads(4.0 * rows * width, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
