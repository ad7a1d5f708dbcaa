// The best projective tree, a sentence in each lane.
//
// Rows are laid out so that every inner loop is max(a[k] + b[k]) over two contiguous rows: each complete span is stored
// by its left end and again by its right end. There are no back pointers; the splits of the n spans of the answer are
// found again afterwards.
#pragma once

#include <cstring>

#include "packing.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class V>
inline V best_split(const V* a, const V* b, int count) {
    V best = a[0] + b[0];
    int k = 1;
    if (count >= 8) {
        V w = a[1] + b[1], x = a[2] + b[2], y = a[3] + b[3];
        for (k = 4; k + 4 <= count; k += 4) {
            best = larger(best, a[k] + b[k]);
            w = larger(w, a[k + 1] + b[k + 1]);
            x = larger(x, a[k + 2] + b[k + 2]);
            y = larger(y, a[k + 3] + b[k + 3]);
        }
        best = larger(larger(best, w), larger(x, y));
    }
    for (; k < count; ++k) best = larger(best, a[k] + b[k]);
    return best;
}

template <class T>
class Eisner {
public:
    using V = Lanes<T>;
    static constexpr int W = lane_count<T>;

    // Room for sentences of up to size - 1 words.
    Eisner(Scratch& scratch, int size)
        : size_(size),
          scores(scratch.take<V>(area())),
          right_(scratch.take<V>(area())),
          right_by_end_(scratch.take<V>(area())),
          left_(scratch.take<V>(area())),
          left_by_end_(scratch.take<V>(area())),
          arc_right_(scratch.take<V>(area())),
          arc_left_by_end_(scratch.take<V>(area())),
          stack_(scratch.take<Span>(4 * size + 8)) {}

    // Fills the chart over tokens first..limit-1; a first of 1 leaves the root out, for a single root.
    void fill(int first, int limit) {
        const int n = size_;
        for (int i = first; i < limit; ++i)
            right_[i * n + i] = right_by_end_[i * n + i] = left_[i * n + i] = left_by_end_[i * n + i] = V{};
        for (int j = first + 1; j < limit; ++j) {
            const V* right_to_j = right_by_end_ + j * n;
            const V* left_to_j = left_by_end_ + j * n;
            const V* arc_left_to_j = arc_left_by_end_ + j * n;
            for (int i = j - 1; i >= first; --i) {
                const int count = j - i;
                const V inside = best_split(right_ + i * n + i, left_to_j + i + 1, count);
                arc_right_[i * n + j] = inside + scores[i * n + j];
                arc_left_by_end_[j * n + i] = inside + scores[j * n + i];
                right_[i * n + j] = right_by_end_[j * n + i] =
                    best_split(arc_right_ + i * n + i + 1, right_to_j + i + 1, count);
                left_[i * n + j] = left_by_end_[j * n + i] = best_split(left_ + i * n + i, arc_left_to_j + i, count);
            }
        }
    }

    // The heads of the best tree of one lane; false if there is no tree.
    bool heads(int lane, int length, bool single_root, int32_t* heads) {
        depth_ = 0;
        if (single_root) {
            T best = minus_infinity<T>;
            int root = 0;
            for (int r = 1; r <= length; ++r) {
                const T value = at(left_, 1, r, lane) + at(right_, r, length, lane) + at(scores, 0, r, lane);
                if (value > best) best = value, root = r;
            }
            if (!root) return false;
            heads[root] = 0;
            push(LEFT, 1, root);
            push(RIGHT, root, length);
        } else {
            if (!(at(right_, 0, length, lane) > minus_infinity<T>)) return false;
            push(RIGHT, 0, length);
        }
        while (depth_) follow(stack_[--depth_], lane, heads);
        return true;
    }

private:
    enum Kind { RIGHT, LEFT, ARC };
    struct Span {
        int32_t kind, i, j;
    };

    int size_;

    size_t area() const { return static_cast<size_t>(size_) * size_; }
    T at(const V* chart, int i, int j, int lane) const {
        return reinterpret_cast<const T*>(chart + i * size_ + j)[lane];
    }
    void push(int kind, int i, int j) {
        if (i != j) stack_[depth_++] = Span{kind, i, j};
    }

    // The first split that gives the value in the chart: the same additions, so equality is exact.
    void follow(Span span, int lane, int32_t* heads) {
        const int i = span.i, j = span.j;
        int k;
        if (span.kind == RIGHT) {
            const T value = at(right_, i, j, lane);
            for (k = i + 1; k < j && at(arc_right_, i, k, lane) + at(right_by_end_, j, k, lane) != value; ++k) {
            }
            heads[k] = i;
            push(RIGHT, k, j);
            push(ARC, i, k);
        } else if (span.kind == LEFT) {
            const T value = at(left_, i, j, lane);
            for (k = i; k < j - 1 && at(left_, i, k, lane) + at(arc_left_by_end_, j, k, lane) != value; ++k) {
            }
            heads[k] = j;
            push(LEFT, i, k);
            push(ARC, k, j);
        } else {
            T value = minus_infinity<T>;
            int best = i;
            for (k = i; k < j; ++k) {
                const T split = at(right_, i, k, lane) + at(left_by_end_, j, k + 1, lane);
                if (split > value) value = split, best = k;
            }
            push(RIGHT, i, best);
            push(LEFT, best + 1, j);
        }
    }

public:
    V* scores;  // [head * size + modifier], to be filled by the caller

private:
    V *right_, *right_by_end_, *left_, *left_by_end_, *arc_right_, *arc_left_by_end_;
    Span* stack_;
    int depth_ = 0;
};

template <class T>
void projective_argmax(const ArcBatch<T>& arcs, bool single_root, T* z, int threads, FaultBox& faults) {
    const Words words = find_words(arcs.mask, arcs.batch, arcs.n, threads, faults);
    if (faults.any()) return;
    constexpr int W = lane_count<T>;
    const int64_t n = arcs.n, sentences = static_cast<int64_t>(words.order.size()), groups = (sentences + W - 1) / W;
    const int first = single_root ? 1 : 0;
    clear_empty(words, arcs.batch, z);

    auto decode = [&](int64_t g) {
        const int32_t* group = words.order.data() + g * W;
        const int count = static_cast<int>(sentences - g * W < W ? sentences - g * W : W);
        Scratch scratch;
        const int size = words.lengths[group[0]] + 1;
        int32_t* heads = scratch.take<int32_t>(size);
        Eisner<T> eisner(scratch, size);
        const uint32_t odd = pack_scores(arcs, words, group, count, size, minus_infinity<T>, eisner.scores);
        eisner.fill(first, size);
        for (int lane = 0; lane < count; ++lane) {
            const int64_t b = group[lane];
            const int length = words.lengths[b];
            const bool wild = odd >> lane & 1;
            if (wild && report_nan(arcs, b, faults)) continue;
            if (wild || !eisner.heads(lane, length, single_root, heads)) {
                Scratch more;
                Eisner<double> exact(more, length + 1);
                double* safe = more.take<double>((length + 1) * (length + 1));
                finite_scores(arcs.sentence(b), arcs.exists(b), n, words.of(b), length + 1, minus_infinity<double>,
                              safe);
                for (int i = 0; i < (length + 1) * (length + 1); ++i) exact.scores[i] = spread(safe[i]);
                exact.fill(first, length + 1);
                if (!exact.heads(0, length, single_root, heads)) {
                    faults.report(FAULT_IMPOSSIBLE, b);
                    continue;
                }
            }
            write_tree(heads, length, words.of(b), n, z + b * n * n);
        }
    };
    const double longest = sentences ? words.lengths[words.order[0]] : 0;
    parallel_for(groups, worthwhile_threads(groups * longest * longest * longest, threads), decode);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
