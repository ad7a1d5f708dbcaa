// Sums over all binary trees: log partition, marginals, their derivative along a direction, and draws.
#pragma once

#include "random.hpp"
#include "spans.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// log sum exp of a sum of two rows. Places beyond the last hold -inf.
inline double sum_splits(const double* left, const double* right, int64_t splits) {
    constexpr int W = lane_count<double>;
    Lanes<double> top = spread(minus_infinity<double>);
    for (int64_t k = 0; k < splits; k += W) top = larger(top, load(left + k) + load(right + k));
    const double best = largest<double>(top);
    if (!(best > minus_infinity<double>)) return minus_infinity<double>;
    Lanes<double> sum{};
    for (int64_t k = 0; k < splits; k += W) sum += exp_nonpositive(load(left + k) + load(right + k) - best);
    return best + std::log(total<double>(sum));
}

// The sums of one sentence: `inside` over the trees of each span with its labels, `own` over its labels alone.
template <class T>
class SpanSums {
public:
    SpanSums(const SpanBatch<T>& spans, int64_t b, int64_t words, Scratch& scratch)
        : spans(spans),
          scores(spans.scores + b * spans.size()),
          mask(spans.mask + b * spans.size()),
          words(words),
          inside(scratch, words, minus_infinity<double>),
          own(scratch, words, minus_infinity<double>),
          row_(scratch.take<double>(spans.labels + lane_count<double>)),
          zeros_(scratch.take<double>(spans.labels + lane_count<double>)) {
        for (int64_t l = 0; l < spans.labels + lane_count<double>; ++l) row_[l] = minus_infinity<double>, zeros_[l] = 0;
    }

    const SpanBatch<T>& spans;
    const T* scores;
    const uint8_t* mask;
    const int64_t words;
    SpanTable inside, own;

    // Room for the shares of splits or labels.
    int64_t room() const { return (words > spans.labels ? words : spans.labels) + lane_count<double>; }

    // Fills the tables and returns the log partition; `count` takes every score for zero.
    double fill(bool count = false) {
        for (int64_t width = 0; width < words; ++width)
            for (int64_t i = 0, j = width; j < words; ++i, ++j) {
                double value = labels(i, j, count);
                own.put(i, j, value);
                if (width) value += sum_splits(inside.lefts(i), inside.rights(i, j), width);
                inside.put(i, j, value);
            }
        return inside.get(0, words - 1);
    }

    // How the weight of a span is shared among its splits. The shares sum to one however large the scores are: totals
    // would have lost the digits that tell them apart. Whole vectors are written.
    void shares(int64_t i, int64_t j, double* to) const { normalise(inside.lefts(i), inside.rights(i, j), j - i, to); }

    // How the weight of a span is shared among its labels.
    void label_shares(int64_t i, int64_t j, double* to) {
        labels(i, j, false);
        normalise(row_, zeros_, spans.labels, to);
    }

private:
    static void normalise(const double* left, const double* right, int64_t count, double* to) {
        constexpr int W = lane_count<double>;
        Lanes<double> top = spread(minus_infinity<double>), sum{};
        for (int64_t k = 0; k < count; k += W) top = larger(top, load(left + k) + load(right + k));
        const double best = largest<double>(top);
        for (int64_t k = 0; k < count; k += W) {
            const Lanes<double> weight = exp_nonpositive(load(left + k) + load(right + k) - best);
            store(to + k, weight);
            sum += weight;
        }
        const double scale = 1 / total<double>(sum);
        for (int64_t k = 0; k < count; k += W) store(to + k, load(to + k) * scale);
    }

    double labels(int64_t i, int64_t j, bool count) {
        const int64_t part = spans.at(i, j);
        for (int64_t l = 0; l < spans.labels; ++l)
            row_[l] = !mask[part + l] ? minus_infinity<double> : count ? 0.0 : static_cast<double>(scores[part + l]);
        return sum_splits(row_, zeros_, spans.labels);
    }

    double *row_, *zeros_;
};

// Calls body(sums, scratch) for every sentence with a tree of weight; log partitions of the others are written here. They
// are faults where there is something to draw.
template <class T, class Body>
void for_each_sum(const SpanBatch<T>& spans, T* log_partition, int threads, FaultBox& faults, Body body,
                  bool draws = false) {
    auto one = [&](int64_t b) {
        const int64_t words = count_words(spans, b, true, faults);
        if (log_partition) log_partition[b] = T(0);
        if (words <= 0) return;
        Scratch scratch;
        SpanSums<T> sums(spans, b, words, scratch);
        const double whole = sums.fill();
        if (log_partition) log_partition[b] = static_cast<T>(whole);
        if (whole > minus_infinity<double>) body(b, sums, scratch);
        else if (!(sums.fill(true) > minus_infinity<double>)) faults.report(FAULT_IMPOSSIBLE, b);
        else if (draws) faults.report(FAULT_INFINITE, b);
    };
    parallel_for(spans.batch, worthwhile_threads(10 * spans.steps(), threads), one);
}

// log Z of each sentence and, unless null, the marginals.
template <class T>
void span_sums(const SpanBatch<T>& spans, T* log_partition, T* marginals, int threads, FaultBox& faults) {
    if (marginals) std::memset(marginals, 0, sizeof(T) * spans.batch * spans.size());
    for_each_sum<T>(spans, log_partition, threads, faults, [&](int64_t b, SpanSums<T>& sums, Scratch& scratch) {
        if (!marginals) return;
        T* to = marginals + b * spans.size();
        // What a span gets as a left half of others, and as a right half.
        SpanTable chance(scratch, sums.words, 0);
        double* shares = scratch.take<double>(sums.room());
        chance.left[sums.words - 1] = 1;
        for (int64_t width = sums.words - 1; width >= 0; --width)
            for (int64_t i = 0, j = width; j < sums.words; ++i, ++j) {
                const double p = chance.left[i * chance.stride + j] + chance.right[j * chance.stride + i];
                if (!(p > 0)) continue;
                sums.label_shares(i, j, shares);
                for (int64_t l = 0; l < spans.labels; ++l) {
                    const double mu = p * shares[l];
                    to[spans.at(i, j) + l] = static_cast<T>(mu < 1 ? mu : 1);
                }
                if (!width) continue;
                sums.shares(i, j, shares);
                double *left = chance.lefts(i), *right = chance.rights(i, j);
                for (int64_t k = 0; k < width; ++k) left[k] += p * shares[k], right[k] += p * shares[k];
            }
    });
}

// The derivative of the marginals along a direction: inside and outside once more, differentiated.
template <class T>
void span_hessian(const SpanBatch<T>& spans, const T* direction, T* to, int threads, FaultBox& faults) {
    std::memset(to, 0, sizeof(T) * spans.batch * spans.size());
    for_each_sum<T>(spans, nullptr, threads, faults, [&](int64_t b, SpanSums<T>& sums, Scratch& scratch) {
        const T* along = direction + b * spans.size();
        T* slopes = to + b * spans.size();
        const int64_t words = sums.words;
        SpanTable rise(scratch, words, 0), own_rise(scratch, words, 0), chance(scratch, words, 0), slope(scratch, words, 0);
        double* shares = scratch.take<double>(sums.room());
        for (int64_t width = 0; width < words; ++width)
            for (int64_t i = 0, j = width; j < words; ++i, ++j) {
                if (!(sums.inside.get(i, j) > minus_infinity<double>)) continue;
                double mean = 0;
                sums.label_shares(i, j, shares);
                for (int64_t l = 0; l < spans.labels; ++l)
                    if (shares[l] > 0) mean += shares[l] * along[spans.at(i, j) + l];
                own_rise.put(i, j, mean);
                if (width) {
                    sums.shares(i, j, shares);
                    const double *left = rise.lefts(i), *right = rise.rights(i, j);
                    for (int64_t k = 0; k < width; ++k) mean += shares[k] * (left[k] + right[k]);
                }
                rise.put(i, j, mean);
            }
        chance.left[words - 1] = 1;
        for (int64_t width = words - 1; width >= 0; --width)
            for (int64_t i = 0, j = width; j < words; ++i, ++j) {
                const double p = chance.left[i * chance.stride + j] + chance.right[j * chance.stride + i];
                const double dp = slope.left[i * slope.stride + j] + slope.right[j * slope.stride + i];
                if (!(p > 0)) continue;
                sums.label_shares(i, j, shares);
                for (int64_t l = 0; l < spans.labels; ++l)
                    if (shares[l] > 0) {
                        const int64_t part = spans.at(i, j) + l;
                        slopes[part] = static_cast<T>(shares[l] * (dp + p * (along[part] - own_rise.get(i, j))));
                    }
                if (!width) continue;
                sums.shares(i, j, shares);
                const double mean = rise.get(i, j) - own_rise.get(i, j);
                const double *left = rise.lefts(i), *right = rise.rights(i, j);
                double *to_left = chance.lefts(i), *to_right = chance.rights(i, j);
                double *slope_left = slope.lefts(i), *slope_right = slope.rights(i, j);
                for (int64_t k = 0; k < width; ++k) {
                    const double q = shares[k], dq = q * (dp + p * (left[k] + right[k] - mean));
                    to_left[k] += p * q, to_right[k] += p * q;
                    slope_left[k] += dq, slope_right[k] += dq;
                }
            }
    });
}

// Trees drawn top down, seeds (batch, samples), z (batch, samples, n, n, labels).
template <class T>
void span_sample(const SpanBatch<T>& spans, const int64_t* seeds, int64_t samples, T* z, int threads, FaultBox& faults) {
    std::memset(z, 0, sizeof(T) * samples * spans.batch * spans.size());
    for_each_sum<T>(spans, nullptr, threads, faults, [&](int64_t b, SpanSums<T>& sums, Scratch& scratch) {
        double* shares = scratch.take<double>(sums.room());
        int32_t* waiting = scratch.take<int32_t>(2 * sums.words);
        for (int64_t draw = 0; draw < samples; ++draw) {
            Random random(static_cast<uint64_t>(seeds[b * samples + draw]));
            auto pick = [&](int64_t count) {
                double all = 0, running = 0;
                for (int64_t k = 0; k < count; ++k) all += shares[k];
                const double part = random.uniform() * all;
                int64_t last = 0;
                for (int64_t k = 0; k < count; ++k)
                    if (shares[k] > 0) {
                        last = k;
                        running += shares[k];
                        if (running > part) break;
                    }
                return last;
            };
            T* to = z + (b * samples + draw) * spans.size();
            int64_t count = 0;
            waiting[count++] = static_cast<int32_t>(sums.words - 1);
            for (int64_t i = 0; count;) {  // spans from the left; what waits are their ends
                const int64_t j = waiting[count - 1];
                sums.label_shares(i, j, shares);
                to[spans.at(i, j) + pick(spans.labels)] = T(1);
                if (i == j) {
                    ++i, --count;
                } else {
                    sums.shares(i, j, shares);
                    waiting[count++] = static_cast<int32_t>(i + pick(j - i));
                }
            }
        }
    }, true);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
