// Binary trees over words, as labelled spans: the tables of CKY, and the best tree.
//
// A tree over n words has 2n - 1 spans, each with one label: every word alone, the whole sentence, and each other span
// as the left or right half of a larger one. So the labels of a span can be settled first, and the tables are over
// spans alone. `left` and `right` hold one table twice, by its first and by its last word, so that both halves of all
// splits of a span lie side by side.
#pragma once

#include <cmath>

#include "kernels.hpp"
#include "lanes.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// A number for each span of one sentence, by its first word and by its last; -inf where there is none, also for some
// places beyond, so that whole vectors can be read.
struct SpanTable {
    int64_t stride;
    double *left, *right;

    SpanTable(Scratch& scratch, int64_t words, double empty)
        : stride((words + 2 * lane_count<double>) / lane_count<double> * lane_count<double>),
          left(scratch.take<double>(words * stride + lane_count<double>)),
          right(scratch.take<double>(words * stride + lane_count<double>)) {
        for (int64_t i = 0; i < words * stride + lane_count<double>; ++i) left[i] = right[i] = empty;
    }
    void put(int64_t first, int64_t last, double value) {
        left[first * stride + last] = right[last * stride + first] = value;
    }
    double get(int64_t first, int64_t last) const { return left[first * stride + last]; }
    // Where the left halves [first, split] begin, and the right halves [split + 1, last].
    double* lefts(int64_t first) const { return left + first * stride + first; }
    double* rights(int64_t first, int64_t last) const { return right + last * stride + first + 1; }
};

// How many words a sentence has: up to the last that may have a label. Reports what is wrong with its scores.
template <class T>
int64_t count_words(const SpanBatch<T>& spans, int64_t b, bool sums, FaultBox& faults) {
    const T* scores = spans.scores + b * spans.size();
    const uint8_t* mask = spans.mask + b * spans.size();
    int64_t words = 0;
    for (int64_t i = 0; i < spans.n; ++i)
        for (int64_t l = 0; l < spans.labels; ++l)
            if (mask[spans.at(i, i) + l]) words = i + 1;
    for (int64_t i = 0; i < words; ++i)
        for (int64_t j = i; j < words; ++j)
            for (int64_t l = 0; l < spans.labels; ++l) {
                const int64_t part = spans.at(i, j) + l;
                if (!mask[part]) continue;
                if (scores[part] != scores[part]) {
                    faults.report(FAULT_NAN, b, i, j, l);
                    return -1;
                }
                if (sums && scores[part] > std::numeric_limits<T>::max()) {
                    faults.report(FAULT_INFINITE, b);
                    return -1;
                }
            }
    return words;
}

// Scores whose sums neither overflow nor end: infinities become numbers that no sum of the others outweighs.
template <class T>
struct Tame {
    double shrink = 1, limit = 0;

    Tame(const T* scores, const uint8_t* mask, const SpanBatch<T>& spans, int64_t words) {
        double top = 0;
        bool odd = false;
        each(scores, mask, spans, words, [&](double v) {
            odd |= !(std::fabs(v) <= 1e290);
            if (std::isfinite(v) && std::fabs(v) > top) top = std::fabs(v);
        });
        if (!odd) return;
        if (top > 1e290) shrink = 0x1p-64;
        limit = 1 + 2 * (2 * words - 1) * top * shrink;
    }
    double operator()(double v) const { return std::isinf(v) ? std::copysign(limit, v) : v * shrink; }

private:
    template <class Body>
    static void each(const T* scores, const uint8_t* mask, const SpanBatch<T>& spans, int64_t words, Body body) {
        for (int64_t i = 0; i < words; ++i)
            for (int64_t j = i; j < words; ++j)
                for (int64_t l = 0; l < spans.labels; ++l)
                    if (mask[spans.at(i, j) + l]) body(static_cast<double>(scores[spans.at(i, j) + l]));
    }
};

// The best of a sum of two rows, the first if there are several.
inline double best_split(const double* left, const double* right, int64_t splits, int64_t& at) {
    constexpr int W = lane_count<double>;
    Lanes<double> top = spread(minus_infinity<double>);
    for (int64_t k = 0; k < splits; k += W) top = larger(top, load(left + k) + load(right + k));
    const double best = largest<double>(top);
    for (at = 0; at < splits - 1 && left[at] + right[at] != best;) ++at;
    return best;
}

// The best tree of each sentence.
template <class T>
void span_argmax(const SpanBatch<T>& spans, T* z, int threads, FaultBox& faults) {
    auto body = [&](int64_t b) {
        T* to = z + b * spans.size();
        std::memset(to, 0, sizeof(T) * spans.size());
        const int64_t words = count_words(spans, b, false, faults);
        if (words <= 0) return;
        const T* scores = spans.scores + b * spans.size();
        const uint8_t* mask = spans.mask + b * spans.size();
        const Tame<T> tame(scores, mask, spans, words);
        Scratch scratch;
        SpanTable best(scratch, words, minus_infinity<double>);
        int32_t* label = scratch.take<int32_t>(words * words);
        int32_t* split = scratch.take<int32_t>(words * words);
        for (int64_t width = 0; width < words; ++width)
            for (int64_t i = 0, j = width; j < words; ++i, ++j) {
                double top = minus_infinity<double>;
                const int64_t part = spans.at(i, j);
                for (int64_t l = 0; l < spans.labels; ++l)
                    if (mask[part + l]) {
                        const double v = tame(scores[part + l]);
                        if (v > top) top = v, label[i * words + j] = static_cast<int32_t>(l);
                    }
                int64_t at = 0;
                if (width) top += best_split(best.lefts(i), best.rights(i, j), width, at);
                split[i * words + j] = static_cast<int32_t>(i + at);
                best.put(i, j, top);
            }
        if (!(best.get(0, words - 1) > minus_infinity<double>)) {
            faults.report(FAULT_IMPOSSIBLE, b);
            return;
        }
        int32_t* waiting = scratch.take<int32_t>(2 * words);
        int64_t count = 0;
        waiting[count++] = static_cast<int32_t>(words - 1);
        for (int64_t i = 0; count;) {  // spans from the left; what waits are their ends
            const int64_t j = waiting[count - 1];
            to[spans.at(i, j) + label[i * words + j]] = T(1);
            if (i == j) ++i, --count;
            else waiting[count++] = split[i * words + j];
        }
    };
    parallel_for(spans.batch, worthwhile_threads(spans.steps(), threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
