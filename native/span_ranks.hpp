// The k best binary trees: CKY with a sorted list for each span instead of one value.
#pragma once

#include <algorithm>
#include <vector>

#include "spans.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// A tree over a span: its label, where it splits, and the ranks of its halves.
struct RankedSpan {
    double value;
    int32_t split, left, right, label;
};

// The k best sums of one entry of `a` and one of `b`, both sorted, over several such pairs: best first, ties by the order
// in which they are met. Each is reached once: from (x, y) to (x, y + 1), and to (x + 1, y) only where y = 0.
class RankedSums {
public:
    struct Sum {
        double value;
        int32_t pair, x, y;
        bool operator<(const Sum& other) const {  // of a heap whose top is the best
            if (value != other.value) return value < other.value;
            if (pair != other.pair) return pair > other.pair;
            return x != other.x ? x > other.x : y > other.y;
        }
    };

    void clear() { heap_.clear(); }
    void push(double value, int32_t pair, int32_t x, int32_t y) {
        heap_.push_back({value, pair, x, y});
        std::push_heap(heap_.begin(), heap_.end());
    }
    bool empty() const { return heap_.empty(); }
    Sum pop() {
        std::pop_heap(heap_.begin(), heap_.end());
        const Sum top = heap_.back();
        heap_.pop_back();
        return top;
    }

private:
    std::vector<Sum> heap_;
};

// z (batch, k, n, n, labels), and how many trees each sentence has, up to k.
template <class T>
void span_k_best(const SpanBatch<T>& spans, int64_t k, T* z, int64_t* found, int threads, FaultBox& faults) {
    std::memset(z, 0, sizeof(T) * k * spans.batch * spans.size());
    auto body = [&](int64_t b) {
        found[b] = k ? 1 : 0;  // no words: the empty structure
        const int64_t words = count_words(spans, b, false, faults);
        if (words <= 0) return;
        const T* scores = spans.scores + b * spans.size();
        const uint8_t* mask = spans.mask + b * spans.size();
        const Tame<T> tame(scores, mask, spans, words);
        std::vector<std::vector<RankedSpan>> ranked(words * words);
        std::vector<RankedSpan> splits, labels;
        RankedSums sums;
        for (int64_t width = 0; width < words; ++width)
            for (int64_t i = 0, j = width; j < words; ++i, ++j) {
                labels.clear();
                for (int64_t l = 0; l < spans.labels; ++l)
                    if (mask[spans.at(i, j) + l])
                        labels.push_back({tame(scores[spans.at(i, j) + l]), 0, 0, 0, static_cast<int32_t>(l)});
                std::stable_sort(labels.begin(), labels.end(),
                                 [](const RankedSpan& a, const RankedSpan& c) { return a.value > c.value; });
                splits.clear();
                if (!width) splits.push_back({0, 0, 0, 0, 0});
                sums.clear();
                for (int64_t s = i; s < j; ++s) {
                    const auto &left = ranked[i * words + s], &right = ranked[(s + 1) * words + j];
                    if (!left.empty() && !right.empty())
                        sums.push(left[0].value + right[0].value, static_cast<int32_t>(s), 0, 0);
                }
                while (!sums.empty() && static_cast<int64_t>(splits.size()) < k) {
                    const auto top = sums.pop();
                    const auto &left = ranked[i * words + top.pair], &right = ranked[(top.pair + 1) * words + j];
                    splits.push_back({top.value, top.pair, top.x, top.y, 0});
                    if (top.y + 1 < static_cast<int32_t>(right.size()))
                        sums.push(left[top.x].value + right[top.y + 1].value, top.pair, top.x, top.y + 1);
                    if (top.y == 0 && top.x + 1 < static_cast<int32_t>(left.size()))
                        sums.push(left[top.x + 1].value + right[0].value, top.pair, top.x + 1, 0);
                }
                auto& here = ranked[i * words + j];
                sums.clear();
                if (!labels.empty() && !splits.empty()) sums.push(labels[0].value + splits[0].value, 0, 0, 0);
                while (!sums.empty() && static_cast<int64_t>(here.size()) < k) {
                    const auto top = sums.pop();
                    const RankedSpan& at = splits[top.x];
                    here.push_back({top.value, at.split, at.left, at.right, labels[top.y].label});
                    if (top.y + 1 < static_cast<int32_t>(labels.size()))
                        sums.push(labels[top.y + 1].value + at.value, 0, top.x, top.y + 1);
                    if (top.y == 0 && top.x + 1 < static_cast<int32_t>(splits.size()))
                        sums.push(labels[0].value + splits[top.x + 1].value, 0, top.x + 1, 0);
                }
            }
        const int64_t count = static_cast<int64_t>(ranked[words - 1].size());
        if (k && !count) faults.report(FAULT_IMPOSSIBLE, b);
        found[b] = count;
        struct Open {
            int64_t first, last, rank;
        };
        std::vector<Open> open;
        for (int64_t t = 0; t < count; ++t) {
            T* to = z + (b * k + t) * spans.size();
            open.assign(1, {0, words - 1, t});
            while (!open.empty()) {
                const Open span = open.back();
                open.pop_back();
                const RankedSpan& at = ranked[span.first * words + span.last][span.rank];
                to[spans.at(span.first, span.last) + at.label] = T(1);
                if (span.first == span.last) continue;
                open.push_back({span.first, at.split, at.left});
                open.push_back({at.split + 1, span.last, at.right});
            }
        }
    };
    parallel_for(spans.batch, worthwhile_threads(10 * spans.steps() * k, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
