// Log-partition, marginals and Hessian products of trees.
//
// Most sentences go through plain doubles, several side by side. Their weights are normalised for each word, so that
// sums never overflow and what underflows cannot matter as long as the total is not itself tiny. Sentences for which
// it is tiny (large scores, long sentences, words that insist on each other) are done again, one by one, with numbers
// whose range does not end. In between, long sentences whose total is tiny only because it has so many factors are
// tried again with all weights multiplied by what the total lacks, word by word.
#pragma once

#include "inside_outside.hpp"
#include "matrix_tree.hpp"
#include "tree_weights.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// The log of what each weight would have to be multiplied by for the total to be about one, judged by the longest span
// from the first token on that has not vanished. No more than 50: weights that vanished before would otherwise be
// missed.
template <class V>
double missing_factor(const InsideOutside<V>& chart, int first, int length, int lane) {
    for (int k = length; k > first + 1; --k) {
        const double value = Lane<V>::value(Lane<V>::get(chart.right(first, k), lane));
        if (!(value > 1e-150)) continue;
        const double factor = -std::log(value) / (k - first);
        return factor < 50 ? factor : 0;
    }
    return 0;
}

// A bit for each lane whose total can be trusted; all of them for wide numbers. Plain doubles take the log of a factor
// for the weights of each lane in `boost`, and leave there what to try next where they failed, or zero.
template <class T, class V>
uint32_t projective_sums(const TreeSumJob<T>& job, const int32_t* group, int count, int size,
                         const Lanes<double>* scores, const Lanes<double>* direction, double* boost, V* expected,
                         double* log_total) {
    using L = Lane<V>;
    Scratch scratch;
    bool boosted = false;
    for (int lane = 0; boost && lane < count; ++lane) boosted |= boost[lane] != 0;
    const bool outside = expected != nullptr || boosted;  // whether to trust a boosted sum shows in the whole chart
    InsideOutside<V> chart(scratch, size, outside);
    V* scale = scratch.take<V>(1);
    double shift[L::count];
    load_weights(job, group, count, size, scores, direction, chart.weights, shift);
    if constexpr (!L::wide_range) {
        if (boosted) {
            V factor = Constant<V>::of(1);
            for (int lane = 0; lane < count; ++lane) {
                L::add(factor, lane, L::get(Constant<V>::of(std::exp(boost[lane]) - 1), lane));
                shift[lane] -= boost[lane] * job.words.lengths[group[lane]];
            }
            for (int i = 0; i < size * size; ++i) chart.weights[i] = chart.weights[i] * factor;
        }
    }
    const int first = job.single_root ? 1 : 0;
    chart.inside(first);
    if (outside) chart.clear_outside();
    uint32_t fine = 0;
    V total = Constant<V>::of(0);
    const V* root = chart.weights;
    for (int lane = 0; lane < count; ++lane) {
        const int length = job.words.lengths[group[lane]];
        if (job.single_root) {
            for (int r = 1; r <= length; ++r) {
                const auto left = L::get(chart.left(1, r), lane), right = L::get(chart.right(r, length), lane);
                const auto weight = L::get(root[r], lane);
                L::add(total, lane, left * right * weight);
                if (!outside) continue;
                L::add(chart.d_left(1, r), lane, right * weight);
                L::add(chart.d_right(r, length), lane, left * weight);
            }
        } else {
            L::add(total, lane, L::get(chart.right(0, length), lane));
            if (outside) L::add(chart.d_right(0, length), lane, L::get(Constant<V>::of(1), lane));
        }
        const auto z = L::value(L::get(total, lane));
        if constexpr (L::wide_range) {
            if (z.mantissa > 0) fine |= 1u << lane;
            log_total[lane] = shift[lane] + wide_log(z);
        } else {
            // Not boosted, sums are at most one: what underflowed cannot matter beside this.
            const bool good = boost[lane] ? z > 1e-60 && z < 1e60 : z > 1e-200;
            if (good) {
                fine |= 1u << lane;
            } else if (!boost[lane]) {
                boost[lane] = missing_factor(chart, first, length, lane);
            } else {
                const double better = boost[lane] - std::log(z) / length;
                boost[lane] = z > 0 && z < 1e300 && better < 50 ? better : 0;
            }
            log_total[lane] = shift[lane] + std::log(z);
        }
    }
    auto draw = [&] {
        if constexpr (!L::has_slope)
            if (job.draws)
                draw_projective<T, V, typename L::Scalar>(*job.draws, job.words, chart, group, fine, job.single_root,
                                                          total);
    };
    if (!outside) {
        draw();
        return fine;
    }
    chart.outside(first);
    if constexpr (!L::wide_range) {
        if (boosted) {  // what underflowed, below 1e-285, times anything in the chart, is nothing beside a total of
                        // 1e-60
            const auto bad = chart.beyond(1e180, first, [](const V& v) { return Lane<V>::values(v); });
            for (int lane = 0; lane < count; ++lane)
                if (bad[lane] && boost[lane]) fine &= ~(1u << lane);
        }
    }
    draw();
    if (!expected) return fine;
    *scale = Constant<V>::of(1) / total;
    for (int h = 0; h < size; ++h)
        for (int m = 1; m < size; ++m) {
            if (h == m) continue;
            if (h > 0 || !job.single_root) {
                expected[h * size + m] = chart.expected(h, m) * *scale;
                continue;
            }
            V sum = Constant<V>::of(0);
            for (int lane = 0; lane < count; ++lane) {
                const int length = job.words.lengths[group[lane]];
                if (m > length) continue;
                L::add(sum, lane, L::get(chart.left(1, m), lane) * L::get(chart.right(m, length), lane));
            }
            expected[m] = sum * root[m] * *scale;
        }
    return fine;
}

template <class T, class V>
uint32_t nonprojective_sums(const TreeSumJob<T>& job, const int32_t* group, int count, int size,
                            const Lanes<double>* scores, const Lanes<double>* direction, V* expected,
                            double* log_total) {
    using L = Lane<V>;
    Scratch scratch;
    const bool rare_root = job.template rare_root<V>();
    MatrixTree<V> tree(scratch, size, expected != nullptr);
    double shift[L::count];
    load_weights(job, group, count, size, scores, direction, tree.weights, shift);
    if (expected)
        for (int i = 0; i < size * size; ++i) expected[i] = tree.weights[i];
    tree.eliminate(rare_root);
    uint32_t fine = 0;
    for (int lane = 0; lane < count; ++lane) {
        const int length = job.words.lengths[group[lane]];
        bool good = true;
        double log = shift[lane];
        if constexpr (L::wide_range) {
            Wide z = wide(1.0);
            for (int k = 1; k <= length; ++k) z = z * L::value(L::get(tree.pivots[k], lane));
            if (job.single_root) {
                z.exponent += rare_root_exponent;
                good = z.exponent > -rare_root_exponent / 2;
            }
            good = good && z.mantissa > 0;
            log += wide_log(z);
        } else {
            // Weights are at most one. What underflowed is below 1e-307 and has been divided by no more than the pivots
            // multiplied together, so it does not matter if neither that product nor the total is tiny.
            double others = 0;
            for (int k = length; k >= 1; --k) {
                others = log - shift[lane];
                log += std::log(L::value(L::get(tree.pivots[k], lane)));
            }
            good = others > -276 && log - shift[lane] > -276;
        }
        if (good) fine |= 1u << lane;
        log_total[lane] = log;
    }
    if (!expected) return fine;
    tree.differentiate(rare_root);
    for (int h = 0; h < size; ++h)
        for (int m = 1; m < size; ++m) expected[h * size + m] = expected[h * size + m] * tree.derivative[h * size + m];
    return fine;
}

// Does a group of sentences with one kind of number; a bit for each sentence that it could not do.
template <class T, class V>
uint32_t sum_group(const TreeSumJob<T>& job, const int32_t* group, int count, int size, const Lanes<double>* scores,
                   const Lanes<double>* direction, double* boost = nullptr) {
    using L = Lane<V>;
    Scratch scratch;
    V* expected = job.result ? scratch.take<V>(static_cast<size_t>(size) * size) : nullptr;
    double log_total[L::count];
    const uint32_t fine =
        job.nonprojective
            ? nonprojective_sums<T, V>(job, group, count, size, scores, direction, expected, log_total)
            : projective_sums<T, V>(job, group, count, size, scores, direction, boost, expected, log_total);
    const int64_t n = job.arcs.n;
    for (int lane = 0; lane < count; ++lane) {
        if (!(fine >> lane & 1)) continue;
        const int64_t b = group[lane];
        if (job.log_partition) job.log_partition[b] = static_cast<T>(log_total[lane]);
        if (!job.result) continue;
        const int length = job.words.lengths[b];
        const int32_t* at = job.words.of(b);
        const uint8_t* here = job.arcs.exists(b);
        T* to = job.result + b * n * n;
        for (int h = 0; h <= length; ++h)
            for (int m = 1; m <= length; ++m) {
                const int64_t place = at[h] * n + at[m];
                if (h == m || !here[place]) continue;
                double x = L::result(expected[h * size + m], lane);
                if constexpr (!L::has_slope) x = x < 0 ? 0 : x > 1 ? 1 : x;  // rounding may leave [0, 1]
                to[place] = static_cast<T>(x);
            }
    }
    return ~fine & ((1u << count) - 1u);
}

template <class T, class Plain, class Far>
void sum_trees(const TreeSumJob<T>& job, int threads) {
    constexpr int W = lane_count<double>;
    const Words& words = job.words;
    const int64_t n = job.arcs.n, sentences = static_cast<int64_t>(words.order.size());
    if (job.result) clear_empty(words, job.arcs.batch, job.result);
    for (int64_t b = 0; job.log_partition && b < job.arcs.batch; ++b) job.log_partition[b] = 0;

    auto body = [&](int64_t g) {
        FlushDenormals flush;
        Scratch scratch;
        const int32_t* group = words.order.data() + g * W;
        const int count = static_cast<int>(sentences - g * W < W ? sentences - g * W : W);
        const int size = words.lengths[group[0]] + 1;
        const size_t area = static_cast<size_t>(size) * size;
        auto* scores = scratch.take<Lanes<double>>(area);
        Lanes<double>* direction = nullptr;
        const uint32_t odd = pack_scores(job.arcs, words, group, count, size, minus_infinity<double>, scores);
        ArcBatch<T> along{job.direction, job.arcs.mask, job.arcs.batch, n};
        if (job.direction) {
            direction = scratch.take<Lanes<double>>(area);
            pack_scores(along, words, group, count, size, 0.0, direction);
        }
        for (int lane = 0; job.result && lane < count; ++lane)
            std::memset(job.result + group[lane] * n * n, 0, sizeof(T) * n * n);
        double boost[W] = {};
        uint32_t left = sum_group<T, Plain>(job, group, count, size, scores, direction, boost) | odd;
        for (int attempt = 0; attempt < 2; ++attempt) {
            bool hope = false;
            for (int lane = 0; lane < count; ++lane) {
                if (!(left >> lane & 1) || odd >> lane & 1) boost[lane] = 0;
                hope |= boost[lane] != 0;
            }
            if (hope) left &= sum_group<T, Plain>(job, group, count, size, scores, direction, boost) | odd;
        }
        for (int lane = 0; left; ++lane, left >>= 1) {
            if (!(left & 1)) continue;
            const int64_t b = group[lane];
            if (odd >> lane & 1) {
                if (report_nan(job.arcs, b, job.faults)) continue;
                bool infinite = false;
                for (int64_t h = 0; h < n; ++h)
                    for (int64_t m = 1; m < n; ++m)
                        infinite |= h != m && job.arcs.exists(b)[h * n + m] &&
                                    job.arcs.sentence(b)[h * n + m] > std::numeric_limits<T>::max();
                if (infinite) {
                    job.faults.report(FAULT_INFINITE, b);
                    continue;
                }
            }
            // Alone: the sentence moves to lane 0 of buffers of its own size.
            Scratch more;
            const int own = words.lengths[b] + 1;
            auto* alone = more.take<Lanes<double>>(static_cast<size_t>(own) * own);
            auto* alone_along = direction ? more.take<Lanes<double>>(static_cast<size_t>(own) * own) : nullptr;
            pack_scores(job.arcs, words, group + lane, 1, own, minus_infinity<double>, alone);
            if (direction) pack_scores(along, words, group + lane, 1, own, 0.0, alone_along);
            if (!sum_group<T, Far>(job, group + lane, 1, own, alone, alone_along)) continue;
            // No tree, or none with a score above -inf: the sum is then zero, and so is what is expected. A draw takes
            // as few of -inf as it can.
            for (int h = 0; h < own; ++h)
                for (int m = 0; m < own; ++m) {
                    const bool here = m > 0 && h != m && job.arcs.exists(b)[words.of(b)[h] * n + words.of(b)[m]];
                    const double score = alone[h * own + m][0];
                    const double least = job.draws ? finite_or_least(score) : 0.0;
                    alone[h * own + m] = spread(here ? least : minus_infinity<double>);
                }
            TreeSumJob<T> possible = job;
            possible.log_partition = possible.result = nullptr;
            if (sum_group<T, Far>(possible, group + lane, 1, own, alone, alone_along))
                job.faults.report(FAULT_IMPOSSIBLE, b);
            else if (job.log_partition) job.log_partition[b] = minus_infinity<T>;
        }
    };
    const double longest = sentences ? words.lengths[words.order[0]] : 0;
    const int64_t groups = (sentences + W - 1) / W;
    parallel_for(groups, worthwhile_threads(groups * longest * longest * longest * 4, threads), body);
}

template <class T>
void tree_sums(const ArcBatch<T>& arcs, TreeKind kind, T* log_partition, T* marginals, int threads, FaultBox& faults) {
    const Words words = find_words(arcs.mask, arcs.batch, arcs.n, threads, faults);
    if (faults.any()) return;
    const TreeSumJob<T> job{arcs, words, !kind.projective, kind.single_root, nullptr, log_partition, marginals, faults};
    sum_trees<T, Lanes<double>, Wide>(job, threads);
}

template <class T>
void tree_hessian(const ArcBatch<T>& arcs, TreeKind kind, const T* direction, T* to, int threads, FaultBox& faults) {
    const Words words = find_words(arcs.mask, arcs.batch, arcs.n, threads, faults);
    if (faults.any()) return;
    const TreeSumJob<T> job{arcs, words, !kind.projective, kind.single_root, direction, nullptr, to, faults};
    sum_trees<T, Dual<Lanes<double>>, Dual<Wide>>(job, threads);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
