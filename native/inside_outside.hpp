// Sums over projective trees: Eisner's recursion with sums of products, and its derivative by going through it
// backwards.
//
// Rows are laid out as in eisner.hpp, so that the way forward is dot products over contiguous rows and the way back is
// sums of scaled rows.
#pragma once

#include "numbers.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class V>
inline V dot(const V* a, const V* b, int count) {
    V sum = a[0] * b[0];
    int k = 1;
    if (count >= 8) {
        V w = a[1] * b[1], x = a[2] * b[2], y = a[3] * b[3];
        for (k = 4; k + 4 <= count; k += 4) {
            sum += a[k] * b[k];
            w += a[k + 1] * b[k + 1];
            x += a[k + 2] * b[k + 2];
            y += a[k + 3] * b[k + 3];
        }
        sum = (sum + w) + (x + y);
    }
    for (; k < count; ++k) sum += a[k] * b[k];
    return sum;
}

// da += grad * b and db += grad * a: the two ways back from a dot product.
template <class V>
inline void undot(V grad, const V* a, const V* b, V* da, V* db, int count) {
    for (int k = 0; k < count; ++k) {
        da[k] += grad * b[k];
        db[k] += grad * a[k];
    }
}

template <class V>
class InsideOutside {
public:
    InsideOutside(Scratch& scratch, int size, bool outside) : size_(size) {
        const size_t area = static_cast<size_t>(size) * size;
        weights = scratch.take<V>(area);
        for (V** chart : {&right_, &right_by_end_, &left_, &left_by_end_, &arc_right_, &arc_left_by_end_})
            *chart = scratch.take<V>(area);
        if (!outside) return;
        for (V** chart : {&d_right_, &d_right_by_end_, &d_left_, &d_left_by_end_, &d_arc_right_, &d_arc_left_by_end_})
            *chart = scratch.take<V>(area);
    }

    void inside(int first) {
        const int n = size_;
        const V one = Constant<V>::of(1);
        for (int i = first; i < n; ++i)
            right_[i * n + i] = right_by_end_[i * n + i] = left_[i * n + i] = left_by_end_[i * n + i] = one;
        for (int j = first + 1; j < n; ++j)
            for (int i = j - 1; i >= first; --i) {
                const int ij = i * n + j, ji = j * n + i, ii = i * n + i, count = j - i;
                const V inside = dot(right_ + ii, left_by_end_ + ji + 1, count);
                arc_right_[ij] = inside * weights[ij];
                arc_left_by_end_[ji] = inside * weights[ji];
                right_[ij] = right_by_end_[ji] = dot(arc_right_ + ii + 1, right_by_end_ + ji + 1, count);
                left_[ij] = left_by_end_[ji] = dot(left_ + ii, arc_left_by_end_ + ji, count);
            }
    }

    void clear_outside() {
        const size_t area = static_cast<size_t>(size_) * size_;
        const V zero = Constant<V>::of(0);
        for (V* chart : {d_right_, d_right_by_end_, d_left_, d_left_by_end_, d_arc_right_, d_arc_left_by_end_})
            for (size_t i = 0; i < area; ++i) chart[i] = zero;
    }

    // Before: clear_outside, and the derivatives of the result by the spans that it is made of put into d_right,
    // d_left.
    void outside(int first) {
        const int n = size_;
        for (int j = n - 1; j > first; --j)
            for (int i = first; i < j; ++i) {
                const int ij = i * n + j, ji = j * n + i, ii = i * n + i, count = j - i;
                undot(d_right_[ij] + d_right_by_end_[ji], arc_right_ + ii + 1, right_by_end_ + ji + 1,
                      d_arc_right_ + ii + 1, d_right_by_end_ + ji + 1, count);
                undot(d_left_[ij] + d_left_by_end_[ji], left_ + ii, arc_left_by_end_ + ji, d_left_ + ii,
                      d_arc_left_by_end_ + ji, count);
                const V grad = d_arc_right_[ij] * weights[ij] + d_arc_left_by_end_[ji] * weights[ji];
                undot(grad, right_ + ii, left_by_end_ + ji + 1, d_right_ + ii, d_left_by_end_ + ji + 1, count);
            }
    }

    const V& right(int i, int j) const { return right_[i * size_ + j]; }
    const V& left(int i, int j) const { return left_[i * size_ + j]; }
    const V& right_to(int i, int j) const { return right_by_end_[j * size_ + i]; }  // the same, next to each other in i
    const V& left_to(int i, int j) const { return left_by_end_[j * size_ + i]; }
    const V& arc_right(int i, int j) const { return arc_right_[i * size_ + j]; }
    const V& arc_left(int i, int j) const { return arc_left_by_end_[j * size_ + i]; }
    V& d_right(int i, int j) { return d_right_[i * size_ + j]; }
    V& d_left(int i, int j) { return d_left_[i * size_ + j]; }

    // Weight times derivative of the arc between two words, or from the root if it is part of the chart.
    V expected(int head, int modifier) const {
        const int hm = head * size_ + modifier;
        return head < modifier ? d_arc_right_[hm] * arc_right_[hm] : d_arc_left_by_end_[hm] * arc_left_by_end_[hm];
    }

    // Lanes in which some value of the charts, inside or outside, is beyond the limit or NaN.
    template <class Value>
    auto beyond(double limit, int first, Value value) const {
        auto bad = !(value(right_[first * size_ + first]) <= limit);
        for (int i = first; i < size_; ++i)
            for (int j = i; j < size_; ++j)
                for (const V* chart : {right_, left_, d_right_, d_left_, d_right_by_end_, d_left_by_end_}) {
                    const bool by_end = chart == d_right_by_end_ || chart == d_left_by_end_;
                    bad |= !(value(chart[by_end ? j * size_ + i : i * size_ + j]) <= limit);
                }
        return bad;
    }

    V* weights;  // [head * size + modifier], to be filled by the caller

private:
    int size_;
    V *right_, *right_by_end_, *left_, *left_by_end_, *arc_right_, *arc_left_by_end_;
    V *d_right_, *d_right_by_end_, *d_left_, *d_left_by_end_, *d_arc_right_, *d_arc_left_by_end_;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
