// Sums over all subsets of a row whose size lies between two bounds, and draws from them.
//
// Entry i weighs exp(s_i). Dividing all weights by the same exp(theta) changes the total of each size by a factor that
// is known, and makes every entry a coin with p_i = sigmoid(s_i - theta): the total of size j is a constant times
// exp(theta j) times the chance that j coins show heads. With theta chosen so that the expected number of heads lies
// within the bounds, all numbers are probabilities of things that do happen: nothing overflows, and what underflows
// does not matter, whatever the scores are. Sizes that are too unlikely after i coins are left out (by Bernstein's
// inequality, with chance below 1e-24), so that a row of n costs n times the square root of n and not n squared.
//
// The chances after i coins are kept for every sqrt(n)-th i and worked out again in between.
#pragma once

#include "coins.hpp"
#include "random.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// The chances of each number of heads after i coins, for a band of numbers that moves with i. With `Slope`, also their
// derivatives while the log-odds move along a direction.
template <bool Slope>
class Chances {
public:
    static constexpr int W = lane_count<double>;
    static constexpr int layers = Slope ? 2 : 1;
    using V = Lanes<double>;

    Chances(Scratch& scratch, const Coins& coins, const double* speed) : coins_(coins), speed_(speed), n_(coins.n) {
        low_ = scratch.take<int32_t>(n_ + 1);
        high_ = scratch.take<int32_t>(n_ + 1);
        low_[0] = high_[0] = 0;
        double all = 0, spread_all = 0;
        for (int64_t i = 0; i < n_; ++i) all += coins.p[i], spread_all += coins.p[i] * coins.q[i];
        double mean = 0, variance = 0;
        int64_t widest = 1;
        for (int64_t i = 1; i <= n_; ++i) {
            mean += coins.p[i - 1];
            variance += coins.p[i - 1] * coins.q[i - 1];
            // Numbers that these coins come to, and from which the others come to within the bounds.
            const double so_far = Coins::reach(variance);
            const double rest = Coins::reach(spread_all > variance ? spread_all - variance : 0.0);
            const double least = std::max(mean - so_far, double(coins.minimum) - (all - mean) - rest);
            const double most = std::min(mean + so_far, double(coins.maximum) - (all - mean) + rest);
            const int64_t bottom = std::max<int64_t>(coins.minimum - (n_ - i), int64_t(std::floor(least)));
            const int64_t top = std::min<int64_t>(coins.maximum, int64_t(std::ceil(most)));
            low_[i] = static_cast<int32_t>(std::min<int64_t>(low_[i - 1] + 1, std::max<int64_t>(low_[i - 1], bottom)));
            high_[i] = static_cast<int32_t>(std::min<int64_t>(high_[i - 1] + 1, top));
            widest = std::max<int64_t>(widest, high_[i] - low_[i] + 1);
        }
        stride_ = widest + 3 * W;
        block_ = std::max<int64_t>(1, int64_t(std::sqrt(double(n_))));
        kept_ = scratch.take<double>((n_ / block_ + 1) * layers * stride_);
        rows_ = scratch.take<double>((block_ + 1) * layers * stride_);
        forward();
    }

    int64_t low(int64_t i) const { return low_[i]; }
    int64_t high(int64_t i) const { return high_[i]; }
    int64_t blocks() const { return n_ / block_ + 1; }
    int64_t first(int64_t block) const { return block * block_; }
    int64_t last(int64_t block) const { return std::min(n_, (block + 1) * block_); }

    // Works out the rows of a block again: those after `first` to `last` coins.
    void enter(int64_t block) {
        std::memcpy(rows_, kept_ + block * layers * stride_, sizeof(double) * layers * stride_);
        for (int64_t i = first(block); i < last(block); ++i)
            step(i, rows_ + (i - first(block)) * layers * stride_, rows_ + (i - first(block) + 1) * layers * stride_);
        first_ = first(block);
    }

    // The row after i coins, of the block entered last, such that chances(i)[j] belongs to j heads; one vector of zeros
    // on both sides.
    const double* chances(int64_t i, int layer = 0) const {
        return rows_ + ((i - first_) * layers + layer) * stride_ + W - low_[i];
    }

    // How the log-odds of coin i move, as a derivative of its chance of heads.
    double moves(int64_t i) const { return Slope ? coins_.p[i] * coins_.q[i] * speed_[i] : 0.0; }

private:
    void forward() {
        double* row = rows_;
        double* other = rows_ + layers * stride_;
        for (int64_t k = 0; k < layers * stride_; ++k) row[k] = 0;
        row[W] = 1;
        for (int64_t i = 0; i <= n_; ++i) {
            if (i % block_ == 0)
                std::memcpy(kept_ + i / block_ * layers * stride_, row, sizeof(double) * layers * stride_);
            if (i == n_) break;
            step(i, row, other);
            std::swap(row, other);
        }
    }

    // One more coin: from the row after i coins to the row after i + 1.
    void step(int64_t i, const double* from, double* to) const {
        const V p = spread(coins_.p[i]), q = spread(coins_.q[i]), dp = spread(moves(i));
        const int64_t width = high_[i + 1] - low_[i + 1] + 1;
        // Both rows begin with their own lowest number, which grows by at most one.
        const double* same = from + W + (low_[i + 1] - low_[i]);
        double* out = to + W;
        store(to, V{});
        for (int64_t j = 0; j < width; j += W) {
            const V a = load(same + j), b = load(same + j - 1);
            store(out + j, q * a + p * b);
            if constexpr (Slope) {
                const V da = load(same + stride_ + j), db = load(same + stride_ + j - 1);
                store(out + stride_ + j, q * da + p * db + dp * (b - a));
            }
        }
        store(out + width, V{});
        if constexpr (Slope) store(to + stride_, V{}), store(out + stride_ + width, V{});
    }

    const Coins& coins_;
    const double* speed_;
    int64_t n_, stride_ = 0, block_ = 1, first_ = 0;
    int32_t *low_, *high_;
    double *kept_, *rows_;
};

// Z and, if wanted, the chance of each entry to be in; with a direction, the derivative of those chances along it.
template <bool Slope>
double subset_sums(const Coins& coins, const double* speed, double* inside) {
    constexpr int W = lane_count<double>;
    using V = Lanes<double>;
    FlushDenormals flush;
    Scratch scratch;
    Chances<Slope> chances(scratch, coins, speed);
    const int64_t n = coins.n;
    chances.enter(chances.blocks() - 1);
    // What is to come is worth, by the number of heads so far; zeros around.
    const int64_t room = coins.maximum + 3 * W + 2;
    double* ahead = scratch.take<double>(2 * room);
    std::memset(ahead, 0, sizeof(double) * 2 * room);
    ahead += W;
    double all = 0, slope = 0;
    for (int64_t j = chances.low(n); j <= chances.high(n); ++j) {
        ahead[j] = coins.worth(j);
        all += chances.chances(n)[j] * ahead[j];
        if constexpr (Slope) slope += chances.chances(n, 1)[j] * ahead[j];
    }
    if (!inside) return all;
    double* ahead_slope = ahead + room;
    for (int64_t block = chances.blocks() - 1; block >= 0; --block) {
        if (block < chances.blocks() - 1) chances.enter(block);
        for (int64_t i = chances.last(block) - 1; i >= chances.first(block); --i) {
            const V p = spread(coins.p[i]), q = spread(coins.q[i]), dp = spread(chances.moves(i));
            const int64_t low = chances.low(i), high = chances.high(i);
            const double* before = chances.chances(i);
            V heads{}, change{};
            for (int64_t j = low; j <= high; j += W) {
                const V a = load(before + j), stay = load(ahead + j), rise = load(ahead + j + 1);
                heads += a * rise;
                if constexpr (Slope) {
                    const V da = load(chances.chances(i, 1) + j);
                    const V dstay = load(ahead_slope + j), drise = load(ahead_slope + j + 1);
                    change += da * rise + a * drise;
                    store(ahead_slope + j, q * dstay + p * drise + dp * (rise - stay));
                }
                store(ahead + j, q * stay + p * rise);
            }
            store(ahead + high + 1, V{});
            if constexpr (Slope) store(ahead_slope + high + 1, V{});
            const double with = total<double>(heads) / all;
            if constexpr (Slope)
                inside[i] = chances.moves(i) * with + coins.p[i] * (total<double>(change) / all - with * (slope / all));
            else
                inside[i] = coins.p[i] * with;
        }
    }
    return all;
}

template <class T>
void sum_subsets(const T* scores, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                 T* log_partition, T* marginals, int threads, FaultBox& faults) {
    auto body = [&](int64_t r) {
        Scratch scratch;
        Coins coins;
        T* mu = marginals ? marginals + r * width : nullptr;
        if (mu) std::memset(mu, 0, sizeof(T) * width);
        const auto look =
            coins.load(scratch, scores + r * width, mask + r * width, r, width, minimum, maximum, faults);
        log_partition[r] = look == Coins::HOPELESS ? minus_infinity<T> : T(0);
        if (look != Coins::FINE) return;
        double all = 1;
        if (!coins.free()) {
            double* inside = mu ? scratch.take<double>(coins.n) : nullptr;
            all = subset_sums<false>(coins, nullptr, inside);
            for (int64_t i = 0; mu && i < coins.n; ++i) mu[coins.place(i)] = T(inside[i] < 1 ? inside[i] : 1.0);
        } else {
            for (int64_t i = 0; mu && i < coins.n; ++i) mu[coins.place(i)] = T(coins.p[i]);
        }
        log_partition[r] = static_cast<T>(coins.log_factor() + std::log(all));
    };
    parallel_for(rows, worthwhile_threads(20.0 * rows * width, threads), body);
}

template <class T>
void subset_hessian(const T* scores, const uint8_t* mask, const T* direction, int64_t rows, int64_t width,
                    int64_t minimum, int64_t maximum, T* to, int threads, FaultBox& faults) {
    auto body = [&](int64_t r) {
        Scratch scratch;
        Coins coins;
        T* out = to + r * width;
        std::memset(out, 0, sizeof(T) * width);
        const auto look =
            coins.load(scratch, scores + r * width, mask + r * width, r, width, minimum, maximum, faults);
        if (look != Coins::FINE) return;
        double* speed = scratch.take<double>(coins.n);
        double* change = scratch.take<double>(coins.n);
        for (int64_t i = 0; i < coins.n; ++i) speed[i] = double(direction[r * width + coins.place(i)]);
        if (coins.free()) {
            for (int64_t i = 0; i < coins.n; ++i) change[i] = coins.p[i] * coins.q[i] * speed[i];
        } else {
            subset_sums<true>(coins, speed, change);
        }
        for (int64_t i = 0; i < coins.n; ++i) out[coins.place(i)] = static_cast<T>(change[i]);
    };
    parallel_for(rows, worthwhile_threads(40.0 * rows * width, threads), body);
}

// Draws `draws` subsets of each row; seeds and z are (draws, rows, ...). The size is drawn first, then entry by entry
// from the last to the first whether it is in, given how many are left to place.
template <class T>
void sample_subsets(const T* scores, const uint8_t* mask, const int64_t* seeds, int64_t draws, int64_t rows,
                    int64_t width, int64_t minimum, int64_t maximum, T* z, int threads, FaultBox& faults) {
    auto body = [&](int64_t r) {
        FlushDenormals flush;
        Scratch scratch;
        Coins coins;
        for (int64_t d = 0; d < draws; ++d) std::memset(z + (d * rows + r) * width, 0, sizeof(T) * width);
        const auto look =
            coins.load(scratch, scores + r * width, mask + r * width, r, width, minimum, maximum, faults);
        if (look == Coins::HOPELESS) faults.report(FAULT_INFINITE, r);
        if (look != Coins::FINE) return;
        const int64_t n = coins.n;
        if (coins.free()) {
            for (int64_t d = 0; d < draws; ++d)
                for (int64_t i = 0; i < n; ++i)
                    if (uniform(seeds[d * rows + r], coins.place(i)) < coins.p[i])
                        z[(d * rows + r) * width + coins.place(i)] = 1;
            return;
        }
        Chances<false> chances(scratch, coins, nullptr);
        int64_t* left = scratch.take<int64_t>(draws);
        double* sum = scratch.take<double>(chances.high(n) + 1);
        for (int64_t block = chances.blocks() - 1; block >= 0; --block) {
            chances.enter(block);
            if (block == chances.blocks() - 1) {
                double all = 0;
                for (int64_t j = chances.low(n); j <= chances.high(n); ++j)
                    sum[j] = all += chances.chances(n)[j] * coins.worth(j);
                for (int64_t d = 0; d < draws; ++d) {
                    const double cut = uniform(seeds[d * rows + r], 0) * all;  // entries come after it
                    int64_t j = chances.low(n);
                    while (j < chances.high(n) && !(sum[j] > cut)) ++j;
                    left[d] = j;
                }
            }
            for (int64_t i = chances.last(block) - 1; i >= chances.first(block); --i) {
                const double* before = chances.chances(i);
                for (int64_t d = 0; d < draws; ++d) {
                    const double in = coins.p[i] * before[left[d] - 1], out = coins.q[i] * before[left[d]];
                    if (uniform(seeds[d * rows + r], 1 + coins.place(i)) * (in + out) < in) {
                        z[(d * rows + r) * width + coins.place(i)] = 1;
                        --left[d];
                    }
                }
            }
        }
    };
    parallel_for(rows, worthwhile_threads(20.0 * rows * width * (1 + draws), threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
