// The entries of a row as coins, with chances that make the sizes asked for likely: see subsets.hpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "batch.hpp"
#include "lanes.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// The entries of one row as coins.
class Coins {
    static constexpr int W = lane_count<double>;
    using V = Lanes<double>;

public:
    enum Look { FINE, NOTHING, HOPELESS, FAULTY };  // no entry at all; too few of a finite score; reported

    template <class T>
    Look load(Scratch& scratch, const T* scores, const uint8_t* exists, int64_t row, int64_t width, int64_t least,
              int64_t most, FaultBox& faults) {
        score_ = scratch.take<double>(width + W);
        place_ = scratch.take<int32_t>(width);
        p = scratch.take<double>(width + W);
        q = scratch.take<double>(width + W);
        int64_t existing = 0;
        n = 0;
        for (int64_t i = 0; i < width; ++i) {
            if (!exists[i]) continue;
            const double s = scores[i];
            if (s != s) {
                faults.report(FAULT_NAN, row, i);
                return FAULTY;
            }
            if (s == -minus_infinity<double>) {
                faults.report(FAULT_INFINITE, row);
                return FAULTY;
            }
            ++existing;
            if (s == minus_infinity<double>) continue;
            score_[n] = s;
            place_[n++] = static_cast<int32_t>(i);
        }
        if (existing == 0) return NOTHING;
        if (existing < least) {
            faults.report(FAULT_IMPOSSIBLE, row, existing);
            return FAULTY;
        }
        if (n < least) return HOPELESS;
        store(score_ + n, spread(minus_infinity<double>));  // coins that never show heads fill the last vector
        minimum = least;
        maximum = most < 0 || most > n ? n : most;
        tilt();
        return FINE;
    }

    int64_t place(int64_t i) const { return place_[i]; }
    // Whether the bounds change nothing, so that entries do not know of each other.
    bool free() const { return free_; }

    // What j heads are worth, up to the factor that `log_factor` gives.
    double worth(int64_t j) const {
        return j < minimum || j > maximum ? 0.0 : tilted_ ? std::exp(theta() * double(j - goal_)) : 1.0;
    }

    // The logarithm of prod (1 + exp(s - theta)) * exp(theta * goal). With large = max(p, q), a factor of the product is
    // exp(max(s - theta, 0)) / large. Many factors share one logarithm, and as many theta as cancel are left out.
    double log_factor() const {
        V sum{}, product = spread(1.0);
        LaneTraits<double>::Bits likely{};
        double logs = 0, excess = double(goal_);
        for (int64_t i = 0; i < n; i += W) {
            const V s = SPIGOT_ARCH::load(score_ + i), x = (s - reference_) - shift_;
            sum += x > 0.0 ? s : V{};
            likely += x > 0.0;
            product *= larger(SPIGOT_ARCH::load(p + i), SPIGOT_ARCH::load(q + i));
            if (i / W % 64 == 63 || i + W >= n) {
                for (int lane = 0; lane < W; ++lane) logs += std::log(product[lane]);
                product = spread(1.0);
            }
        }
        for (int lane = 0; lane < W; ++lane) excess += double(likely[lane]);
        return (tilted_ ? theta() * excess : 0.0) + total<double>(sum) - logs;
    }

    // How far from its mean a number of heads of this variance may be: further with chance exp(-57) at most.
    static double reach(double variance) { return 19.0 + std::sqrt(361.0 + 114.0 * variance); }

    int64_t n = 0, minimum = 0, maximum = 0;
    double *p = nullptr, *q = nullptr;  // heads and tails

private:
    double theta() const { return reference_ + shift_; }

    // Fills p and q for theta = reference + shift.
    void toss(double shift) {
        V mean{}, variance{};
        shift_ = shift;
        for (int64_t i = 0; i < n; i += W) {
            const V x = (SPIGOT_ARCH::load(score_ + i) - reference_) - shift;
            const V e = exp_nonpositive(x > 0.0 ? -x : x);
            const V large = 1.0 / (1.0 + e), small = e * large;
            const V heads = x > 0.0 ? large : small, tails = x > 0.0 ? small : large;
            store(p + i, heads), store(q + i, tails);
            mean += heads, variance += heads * tails;
        }
        mean_ = total<double>(mean), variance_ = total<double>(variance);
    }

    // Chooses theta: zero if the expected number is within the bounds then, otherwise so that it is near the closer one.
    void tilt() {
        reference_ = 0;
        tilted_ = false;
        free_ = minimum == 0 && maximum == n;
        if (free_ || minimum < maximum) {
            toss(0);
            const double far = reach(variance_);
            free_ = free_ || ((minimum == 0 || mean_ - far > double(minimum)) &&
                              (maximum == n || mean_ + far < double(maximum)));
            if (free_ || (mean_ >= double(minimum) && mean_ <= double(maximum))) return;
            goal_ = mean_ > double(maximum) ? maximum : minimum;
        } else {
            goal_ = minimum;
        }
        tilted_ = true;
        if (n == 0) return;
        // Theta is near the goal-th largest score: so far above it all smaller ones together are less than one head.
        Scratch scratch;
        double* order = scratch.take<double>(n);
        std::memcpy(order, score_, sizeof(double) * n);
        const int64_t rank = goal_ > 0 ? goal_ - 1 : 0;
        std::nth_element(order, order + rank, order + n, [](double a, double b) { return a > b; });
        reference_ = order[rank];
        if (goal_ == 0 || goal_ == n) return toss(goal_ == 0 ? 40 : -40);
        // Newton's steps on the log-odds of the mean, which are nearly straight where heads or tails are few.
        const double goal = double(goal_), all = double(n);
        double low = -7 - std::log(all), high = -low, shift = 0;
        for (int round = 0; round < 100; ++round) {
            toss(shift);
            const double over = mean_ - goal;
            if (std::fabs(over) < 0.1 + 0.1 * std::sqrt(variance_)) break;
            (over > 0 ? low : high) = shift;
            const double odds = std::log(mean_ / goal) - std::log((all - mean_) / (all - goal));
            shift += odds * mean_ * (all - mean_) / (all * variance_);
            if (!(shift > low && shift < high) || round > 8) shift = 0.5 * (low + high);
        }
        if (minimum < maximum && (goal_ == maximum) != (theta() > 0)) {  // zero was as good
            tilted_ = false;
            reference_ = 0;
            toss(0);
        }
    }

    double* score_ = nullptr;
    int32_t* place_ = nullptr;
    double reference_ = 0, shift_ = 0, mean_ = 0, variance_ = 0;
    int64_t goal_ = 0;
    bool tilted_ = false, free_ = false;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
