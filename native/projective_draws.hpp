// Projective trees drawn at random: from the sums over spans, downwards, each span is split in proportion to what its
// splits are worth.
#pragma once

#include "inside_outside.hpp"
#include "packing.hpp"
#include "random.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// Where draws go: `samples` trees of each sentence, each from a seed of its own, (batch, samples, n, n).
template <class T>
struct DrawJob {
    const int64_t* seeds;  // (batch, samples)
    int64_t samples;
    T* z;

    T* tree(int64_t b, int64_t sample, int64_t n) const { return z + (b * samples + sample) * n * n; }
    Random random(int64_t b, int64_t sample) const { return Random(static_cast<uint64_t>(seeds[b * samples + sample])); }
    void clear(int64_t b, int64_t n) const { std::memset(tree(b, 0, n), 0, sizeof(T) * samples * n * n); }
};

inline double ratio(double part, double whole) { return part / whole; }
inline double ratio(Wide part, Wide whole) { return narrow(part / whole); }
inline bool positive(double x) { return x > 0; }
inline bool positive(Wide x) { return x.mantissa > 0; }

// One lane of a chart, to draw from.
template <class V>
class ProjectiveDraws {
public:
    using L = Lane<V>;
    using Scalar = typename L::Scalar;

    ProjectiveDraws(Scratch& scratch, const InsideOutside<V>& chart, int lane, int length)
        : chart_(chart), lane_(lane), length_(length), stack_(scratch.take<Span>(4 * length + 8)) {}

    void draw(bool single_root, Scalar total, Random& random, int32_t* heads) {
        depth_ = 0;
        if (single_root) {
            const int root = choose(1, length_ + 1, total, random, [&](int r) {
                return get(chart_.left(1, r)) * get(chart_.right(r, length_)) * get(chart_.weights[r]);
            });
            heads[root] = 0;
            push(LEFT, 1, root);
            push(RIGHT, root, length_);
        } else {
            push(RIGHT, 0, length_);
        }
        while (depth_) follow(stack_[--depth_], random, heads);
    }

private:
    enum Kind { RIGHT, LEFT, ARC };
    struct Span {
        int32_t kind, i, j;
    };

    const InsideOutside<V>& chart_;
    int lane_, length_, depth_ = 0;
    Span* stack_;

    Scalar get(const V& v) const { return L::get(v, lane_); }
    void push(int kind, int i, int j) {
        if (i != j) stack_[depth_++] = Span{kind, i, j};
    }

    // One of first..last-1, in proportion to its term. Rounding may leave a rest, which goes to the last that has any.
    template <class Term>
    int choose(int first, int last, Scalar total, Random& random, Term term) {
        double left = random.uniform();
        int chosen = first;
        for (int k = first; k < last; ++k) {
            const Scalar value = term(k);
            if (!positive(value)) continue;
            chosen = k;
            left -= ratio(value, total);
            if (left < 0) break;
        }
        return chosen;
    }

    void follow(Span span, Random& random, int32_t* heads) {
        const int i = span.i, j = span.j;
        if (span.kind == RIGHT) {
            const int k = choose(i + 1, j + 1, get(chart_.right(i, j)), random,
                                 [&](int k) { return get(chart_.arc_right(i, k)) * get(chart_.right_to(k, j)); });
            heads[k] = i;
            push(RIGHT, k, j);
            push(ARC, i, k);
        } else if (span.kind == LEFT) {
            const int k = choose(i, j, get(chart_.left(i, j)), random,
                                 [&](int k) { return get(chart_.left(i, k)) * get(chart_.arc_left(k, j)); });
            heads[k] = j;
            push(LEFT, i, k);
            push(ARC, k, j);
        } else {
            auto split = [&](int k) { return get(chart_.right(i, k)) * get(chart_.left_to(k + 1, j)); };
            Scalar total = split(i);
            for (int k = i + 1; k < j; ++k) total += split(k);
            const int k = choose(i, j, total, random, split);
            push(RIGHT, i, k);
            push(LEFT, k + 1, j);
        }
    }
};

// All draws of the sentences whose lanes can be trusted.
template <class T, class V, class Scalar>
void draw_projective(const DrawJob<T>& job, const Words& words, const InsideOutside<V>& chart, const int32_t* group,
                     uint32_t fine, bool single_root, const V& total) {
    for (int lane = 0; fine; ++lane, fine >>= 1) {
        if (!(fine & 1)) continue;
        Scratch scratch;
        const int64_t b = group[lane];
        const int length = words.lengths[b];
        ProjectiveDraws<V> draws(scratch, chart, lane, length);
        int32_t* heads = scratch.take<int32_t>(length + 1);
        const Scalar sum = Lane<V>::get(total, lane);
        for (int64_t sample = 0; sample < job.samples; ++sample) {
            Random random = job.random(b, sample);
            draws.draw(single_root, sum, random, heads);
            write_tree(heads, length, words.of(b), words.n, job.tree(b, sample, words.n));
        }
    }
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
