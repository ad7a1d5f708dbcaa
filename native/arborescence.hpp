// Maximum spanning arborescences, exact with one root or many, in O(n^2).
//
// Each component keeps one row: the best arc into it from every word outside, less what its own words would lose. A
// path is grown from any word along best incoming arcs; when it bites its tail, the cycle becomes one component by a
// row-wise maximum. With many roots, the root is a head like any other and a path ends there. With a single root it is
// left out until a component has no other arc coming in: by then its word with the best root arc, reduced like the
// others, is the root, and a second such component means that no tree has a single root. No constant is added to any
// score, so no digit is lost.
#pragma once

#include <cstring>

#include "packing.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

class Arborescence {
public:
    // Room for sentences of up to size - 1 words.
    Arborescence(Scratch& scratch, int size)
        : stride_((size + 15) / 16 * 16),
          weights(scratch.take<double>(static_cast<size_t>(stride_) * 2 * size)),
          root_(scratch.take<double>(2 * size)),
          entry_(scratch.take<double>(static_cast<size_t>(stride_) * 2 * size)),
          root_entry_(scratch.take<int32_t>(2 * size)),
          owner_(scratch.take<int32_t>(2 * size)),
          parent_(scratch.take<int32_t>(2 * size)),
          first_word_(scratch.take<int32_t>(2 * size)),
          last_word_(scratch.take<int32_t>(2 * size)),
          next_word_(scratch.take<int32_t>(size)),
          state_(scratch.take<int32_t>(2 * size)),
          tail_(scratch.take<int32_t>(2 * size)),
          into_(scratch.take<int32_t>(2 * size)),
          path_(scratch.take<int32_t>(2 * size)) {}

    // A row of weights for each word: best arcs from every head, -inf where there is none. To be filled by the caller
    // for words 1..length, entries 0..length.
    double* row(int component) { return weights + static_cast<int64_t>(component) * stride_; }

    // The heads of the best tree; false if there is none.
    bool heads(int length, bool single_root, int32_t* heads) {
        length_ = length;
        width_ = (length + 16) / 16 * 16;
        components_ = length + 1;
        for (int m = 1; m <= length; ++m) {
            double* w = row(m);
            for (int h = length + 1; h < width_; ++h) w[h] = minus_infinity<double>;
            w[m] = minus_infinity<double>;
            double* e = entry(m);
            for (int h = 0; h < width_; ++h) e[h] = m;
            root_[m] = w[0];
            root_entry_[m] = m;
            if (single_root) w[0] = minus_infinity<double>;
            owner_[m] = first_word_[m] = last_word_[m] = m;
            parent_[m] = state_[m] = next_word_[m] = 0;
        }
        bool rooted = false;
        for (int start = 1; start <= length; ++start) {
            int depth = 0;
            int component = owner_[start];
            if (state_[component]) continue;
            while (true) {
                state_[component] = 1;
                path_[depth++] = component;
                const double* w = row(component);
                int h = best_head(w);
                if (h < 0) {  // nothing but the root comes in
                    if (!single_root || rooted || !(root_[component] > minus_infinity<double>)) return false;
                    rooted = true;
                    tail_[component] = 0;
                    into_[component] = root_entry_[component];
                    break;
                }
                tail_[component] = h;
                into_[component] = static_cast<int32_t>(entry(component)[h]);
                if (h == 0) break;
                const int from = owner_[h];
                if (state_[from] == 2) break;
                if (state_[from] == 1) {
                    component = contract(from, depth);
                    continue;
                }
                component = from;
            }
            while (depth) state_[path_[--depth]] = 2;
        }
        expand(heads);
        return true;
    }

private:
    int stride_, width_ = 0, length_ = 0, components_ = 0;

    // The word that each arc of a row enters; kept as doubles so that one comparison selects both.
    double* entry(int component) { return entry_ + static_cast<int64_t>(component) * stride_; }

    int best_head(const double* w) const {
        constexpr int W = lane_count<double>;
        Lanes<double> best = load(w);
        for (int h = W; h < width_; h += W) best = larger(best, load(w + h));
        const double top = largest<double>(best);
        if (!(top > minus_infinity<double>)) return -1;
        int h = 0;
        while (w[h] != top) ++h;
        return h;
    }

    // Makes one component of the path from `from` to its end and takes them off the path. Every word of the cycle gives
    // up its own head if the cycle is entered there, so the rows are reduced by it.
    int contract(int from, int& depth) {
        const int made = components_++;
        constexpr int W = lane_count<double>;
        double *w = row(made), *e = entry(made);
        for (int h = 0; h < width_; ++h) w[h] = minus_infinity<double>, e[h] = 0;
        root_[made] = minus_infinity<double>;
        root_entry_[made] = 0;
        first_word_[made] = last_word_[made] = 0;
        int member;
        do {
            member = path_[--depth];
            const double *v = row(member), *f = entry(member);
            const double lost = v[tail_[member]];
            for (int h = 0; h < width_; h += W) {
                const Lanes<double> gain = load(v + h) - lost, best = load(w + h);
                const auto better = gain > best;
                store(w + h, better ? gain : best);
                store(e + h, better ? load(f + h) : load(e + h));
            }
            if (root_[member] - lost > root_[made]) {
                root_[made] = root_[member] - lost;
                root_entry_[made] = root_entry_[member];
            }
            parent_[member] = made;
            next_word_[last_word_[member]] = first_word_[made];
            if (!first_word_[made]) last_word_[made] = last_word_[member];
            first_word_[made] = first_word_[member];
        } while (member != from);
        parent_[made] = 0;
        state_[made] = 0;
        for (int h = first_word_[made]; h; h = next_word_[h]) {
            owner_[h] = made;
            w[h] = minus_infinity<double>;
        }
        return made;
    }

    // From the last component to the words: the arc that enters a component enters one of its members, at every level;
    // the other members keep the arcs they had in the cycle.
    void expand(int32_t* heads) {
        for (int made = components_ - 1; made > length_; --made) {
            int member = into_[made];
            while (parent_[member] != made) member = parent_[member];
            tail_[member] = tail_[made];
            into_[member] = into_[made];
        }
        for (int m = 1; m <= length_; ++m) heads[m] = tail_[m];
    }

public:
    double* weights;

private:
    double *root_, *entry_;
    int32_t *root_entry_, *owner_, *parent_, *first_word_, *last_word_, *next_word_;
    int32_t *state_, *tail_, *into_, *path_;
};

// The rows of one sentence, transposed from its scores; false if there is a NaN, +inf or a giant among them.
template <class T>
bool load_rows(const T* scores, const uint8_t* mask, int64_t n, const int32_t* at, int length, Arborescence& to) {
    Scratch scratch;
    T* row = scratch.take<T>(n + lane_count<T>);
    bool wild = false;
    for (int h = 0; h <= length; ++h) {
        const bool suspect = copy_existing(scores + at[h] * n, mask + at[h] * n, at[length] + 1, n, row);
        row[at[h]] = minus_infinity<T>;  // a loop, whatever the mask says
        for (int m = 1; m <= length; ++m) to.row(m)[h] = static_cast<double>(row[at[m]]);
        for (int m = 1; suspect && m <= length; ++m) wild |= is_wild(row[at[m]]);
    }
    return !wild;
}

template <class T>
void nonprojective_argmax(const ArcBatch<T>& arcs, bool single_root, T* z, int threads, FaultBox& faults) {
    const Words words = find_words(arcs.mask, arcs.batch, arcs.n, threads, faults);
    if (faults.any()) return;
    const int64_t n = arcs.n, sentences = static_cast<int64_t>(words.order.size());
    constexpr int64_t block = 4;
    clear_empty(words, arcs.batch, z);

    auto decode = [&](int64_t task) {
        Scratch scratch;
        const int size = words.lengths[words.order[task * block]] + 1;
        Arborescence arborescence(scratch, size);
        int32_t* heads = scratch.take<int32_t>(size);
        for (int64_t i = task * block; i < sentences && i < (task + 1) * block; ++i) {
            const int64_t b = words.order[i];
            const int length = words.lengths[b];
            const bool tame = load_rows(arcs.sentence(b), arcs.exists(b), n, words.of(b), length, arborescence);
            if (!tame && report_nan(arcs, b, faults)) continue;
            bool found = tame && arborescence.heads(length, single_root, heads);
            if (!found) {
                Scratch more;
                double* safe = more.take<double>((length + 1) * (length + 1));
                finite_scores(arcs.sentence(b), arcs.exists(b), n, words.of(b), length + 1, minus_infinity<double>,
                              safe);
                for (int m = 1; m <= length; ++m)
                    for (int h = 0; h <= length; ++h) arborescence.row(m)[h] = safe[h * (length + 1) + m];
                found = arborescence.heads(length, single_root, heads);
            }
            if (found) write_tree(heads, length, words.of(b), n, z + b * n * n);
            else faults.report(FAULT_IMPOSSIBLE, b);
        }
    };
    const double longest = sentences ? words.lengths[words.order[0]] : 0;
    parallel_for((sentences + block - 1) / block, worthwhile_threads(sentences * longest * longest * 4, threads),
                 decode);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
