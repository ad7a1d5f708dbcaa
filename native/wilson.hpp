// Non-projective trees drawn at random: Wilson's algorithm, which walks from each word from head to head until it meets
// the tree built so far, and keeps the walk without its loops.
//
// It draws trees with any number of roots. For a single root, the word under the root is drawn first, from its exact
// marginal; the rest is then a tree over the words alone that ends in that word, which is the same problem.
//
// A draw costs as many steps as words, and more for each loop that is walked. Two words that insist on each other are
// walked around without end. But the loops of Wilson's algorithm are independent of the tree that is left (Propp and
// Wilson 1998), and so is the number of steps: a draw may give up when it has taken too many, and what is then drawn
// in another way is distributed no differently. The other way is the determinant: the word that was visited most takes
// its head from the exact conditional marginal, found by an elimination without subtractions, and the walk tries again
// with that word's head given. At most one elimination a word is needed. What was eliminated is kept for further draws,
// as a tree of decisions whose nodes depend on the scores alone, so that a draw is a function of its seed.
#pragma once

#include "matrix_tree.hpp"
#include "tree_weights.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

class Wilson {
public:
    // Room for one sentence.
    Wilson(Scratch& scratch, int length)
        : scratch_(scratch),
          length_(length),
          stride_((length + lane_count<double>) / lane_count<double> * lane_count<double>),
          logs_(scratch.take<double>(static_cast<size_t>(stride_) * (length + 1))),
          upto_(scratch.take<double>(static_cast<size_t>(stride_) * (length + 1))),
          root_(scratch.take<double>(length + 1)),
          root_upto_(scratch.take<double>(length + 1)),
          given_(scratch.take<int32_t>(length + 1)),
          met_(scratch.take<int32_t>(length + 1)) {}

    // The log weights of the heads of one word, to be filled by the caller: entries 0..length, -inf where there is no
    // arc.
    double* row(int word) { return logs_ + static_cast<int64_t>(word) * stride_; }

    // After the rows. False if no tree has a weight above zero, as far as this can tell.
    bool prepare(bool single_root) {
        single_root_ = single_root;
        absorbing_ = 0;
        branches_ = 0;
        for (int m = 0; first_ && m <= length_; ++m) first_[m] = -1;
        for (int m = 1; m <= length_; ++m) {
            double *logs = row(m), *upto = upto_ + static_cast<int64_t>(m) * stride_;
            logs[m] = minus_infinity<double>;
            for (int h = length_ + 1; h < stride_; ++h) logs[h] = minus_infinity<double>;
            root_[m] = logs[0];
            if (single_root) logs[0] = minus_infinity<double>;
            Lanes<double> tops = load(logs);
            for (int h = lane_count<double>; h < stride_; h += lane_count<double>) tops = larger(tops, load(logs + h));
            double top = largest<double>(tops);
            if (!(top > minus_infinity<double>)) top = 0;
            double total = 0;
            for (int h = 0; h < stride_; h += lane_count<double>) {
                const Lanes<double> log = load(logs + h) - top;
                store(logs + h, log);
                store(upto + h, exp_nonpositive(log));
            }
            for (int h = 0; h < stride_; ++h) upto[h] = total += upto[h];
            root_[m] -= top;
        }
        return !single_root || eliminate_roots<double>() || eliminate_roots<Wide>();
    }

    // One tree; false if there is none.
    bool draw(Random& random, int32_t* heads) {
        if (single_root_) {
            absorbing_ = pick(root_upto_ + 1, length_, random) + 1;
            heads[absorbing_] = 0;
        }
        for (int m = 0; m <= length_; ++m) given_[m] = -1;
        int32_t* next = nullptr;
        while (!walk(random, heads, nullptr)) {
            if (!branch_) open_branches();
            if (!next) next = first_ + absorbing_;
            const int at = *next >= 0 ? *next : expand(next);
            if (at < 0) return false;
            const Branch& branch = branch_[at];
            const int head = pick(branch.upto, length_ + 1, random);
            given_[branch.word] = head;
            next = branch.next + head;
        }
        return true;
    }

private:
    // A word whose head has been drawn, the running total of the weights of its heads, and for each of them the branch
    // that follows, or -1.
    struct Branch {
        int32_t word;
        double* upto;
        int32_t* next;
    };
    static constexpr int max_branches = 64;

    Scratch& scratch_;
    int length_, stride_;
    double *logs_, *upto_, *root_, *root_upto_;
    int32_t *given_, *met_;
    bool single_root_ = false;
    int absorbing_ = 0, branches_ = 0;
    Branch* branch_ = nullptr;
    int32_t* first_ = nullptr;

    // The first entry of a running total that lies above a random share of the whole.
    static int pick(const double* upto, int count, Random& random) {
        const double share = random.uniform() * upto[count - 1];
        const double* at = upto;
        while (count > 1) {
            const int half = count / 2;
            at += at[half - 1] <= share ? half : 0;
            count -= half;
        }
        return static_cast<int>(at - upto);
    }

    // Heads by loop-erased walks; false if that takes too many steps. `visits` counts them for each word, or is null.
    bool walk(Random& random, int32_t* heads, int32_t* visits) {
        int64_t left = 32 * int64_t{length_} + 256;
        for (int m = 0; m <= length_; ++m) met_[m] = 0;
        met_[absorbing_] = 1;
        for (int start = 1; start <= length_; ++start) {
            int m = start;
            while (!met_[m]) {
                const double* upto = upto_ + static_cast<int64_t>(m) * stride_;
                const bool known = given_[m] >= 0;
                if (--left < 0 || !(known || upto[length_] > 0)) return false;
                heads[m] = known ? given_[m] : pick(upto, length_ + 1, random);
                if (visits) ++visits[m];
                m = heads[m];
            }
            for (m = start; !met_[m]; m = heads[m]) met_[m] = 1;
        }
        return true;
    }

    void open_branches() {
        const size_t size = length_ + 1;
        branch_ = scratch_.take<Branch>(max_branches);
        first_ = scratch_.take<int32_t>(size);
        for (size_t m = 0; m < size; ++m) first_[m] = -1;
        for (int i = 0; i < max_branches; ++i)
            branch_[i] = Branch{0, scratch_.take<double>(size), scratch_.take<int32_t>(size)};
    }

    // The branch behind `next`, made from the exact marginal of the word that walks visit most; -1 if there is no mass.
    // When there is no more room, the last branch is made again each time.
    int expand(int32_t* next) {
        const bool room = branches_ < max_branches - 1;
        const int made = room ? branches_ : max_branches - 1;
        Branch& branch = branch_[made];
        {
            Scratch scratch;
            int32_t *visits = scratch.take<int32_t>(length_ + 1), *heads = scratch.take<int32_t>(length_ + 1);
            for (int m = 0; m <= length_; ++m) visits[m] = 0;
            Random random(0);  // not the random numbers of the draw: whoever comes here finds the same word
            walk(random, heads, visits);
            int word = 0;
            for (int m = 1; m <= length_; ++m)
                if (m != absorbing_ && given_[m] < 0 && (!word || visits[m] > visits[word])) word = m;
            branch.word = word;
        }
        if (!head_weights<double>(branch) && !head_weights<Wide>(branch)) return -1;
        for (int h = 0; h <= length_; ++h) branch.next[h] = -1;
        if (room) {
            *next = made;
            ++branches_;
        }
        return made;
    }

    template <class V>
    static V weight(double log) {
        if constexpr (std::is_same_v<V, Wide>) return wide_exp(log);
        else return log < -700 ? 0 : std::exp(log);
    }

    // Whether a product of pivots, and a total, are large enough that what underflowed does not matter: it was below
    // 1e-300 and has been divided by no more than the pivots.
    template <class V>
    static bool trusted(const V* pivots, int first, int size, V total) {
        if constexpr (std::is_same_v<V, Wide>) {
            return total.mantissa > 0;
        } else {
            double product = 1;
            for (int k = first; k < size; ++k) product *= pivots[k] >= 1 ? 1 : pivots[k];  // NaN stays
            return product > 1e-120 && total > 1e-120;
        }
    }

    // Weights of each word as the only one under the root: its root arc times the sum over the trees of the words that
    // end in it, which is to all others as the stationary distribution of the walk over words.
    template <class V>
    bool eliminate_roots() {
        constexpr bool wide_range = std::is_same_v<V, Wide>;
        const int size = length_ + 1;
        Scratch scratch;
        MatrixTree<V> tree(scratch, size, false);
        V *roots = scratch.take<V>(size), *stationary = scratch.take<V>(size);
        double top = minus_infinity<double>;
        for (int m = 1; m <= length_; ++m) top = root_[m] > top ? root_[m] : top;
        if (!(top > minus_infinity<double>)) return false;
        for (int m = 0; m < size; ++m) tree.weights[m * size] = Constant<V>::of(0);
        for (int m = 1; m <= length_; ++m) {
            for (int h = 1; h <= length_; ++h) tree.weights[h * size + m] = weight<V>(row(m)[h]);
            V root = roots[m] = weight<V>(root_[m] - top);
            if constexpr (wide_range)
                if (root.mantissa > 0) root.exponent -= rare_root_exponent;
            tree.weights[m] = root;
        }
        tree.eliminate(!wide_range);
        stationary[1] = Constant<V>::of(1);
        for (int k = 2; k < size; ++k) {
            V into = stationary[1] * tree.weights[k * size + 1];
            for (int j = 2; j < k; ++j) into += stationary[j] * tree.weights[k * size + j];
            stationary[k] = into / tree.pivots[k];
        }
        V total = Constant<V>::of(0);
        for (int m = 1; m < size; ++m) total += roots[m] * stationary[m];
        if constexpr (wide_range) {  // one root, or more?
            V product = Constant<V>::of(1);
            for (int k = 1; k < size; ++k) product = product * tree.pivots[k];
            if (!(product.mantissa > 0 && product.exponent + rare_root_exponent > -rare_root_exponent / 2)) return false;
        }
        if (!trusted<V>(tree.pivots, 2, size, total)) return false;
        double sum = 0;
        for (int m = 1; m < size; ++m) root_upto_[m] = sum += ratio(roots[m] * stationary[m], total);
        return sum > 0;
    }

    // The exact marginals of the heads of one word, given the heads that are given: the weight of each arc times the
    // probability that a walk from the head ends before it comes to the word.
    template <class V>
    bool head_weights(Branch& branch) {
        const int size = single_root_ ? length_ : length_ + 1;
        Scratch scratch;
        MatrixTree<V> tree(scratch, size, false);
        V *ends = scratch.take<V>(size), *terms = scratch.take<V>(size);
        int32_t* words = scratch.take<int32_t>(size);
        words[0] = absorbing_;
        words[1] = branch.word;
        int count = 2;
        for (int m = 1; m <= length_; ++m)
            if (m != absorbing_ && m != branch.word) words[count++] = m;
        for (int k = 0; k < size; ++k) {
            const int m = words[k];
            const double* logs = row(m);
            for (int j = 0; j < size; ++j) {
                const int h = words[j];
                const bool known = given_[m] >= 0;
                V w = Constant<V>::of(known && given_[m] == h ? 1 : 0);
                if (k && j != k && !known) w = weight<V>(logs[h]);
                tree.weights[j * size + k] = w;
            }
        }
        for (int j = 0; j < size; ++j) terms[j] = tree.weights[j * size + 1];
        tree.eliminate(false);
        ends[0] = Constant<V>::of(1);
        ends[1] = Constant<V>::of(0);
        for (int k = 2; k < size; ++k) {
            V sum = tree.weights[k];
            for (int h = 2; h < k; ++h) sum += ends[h] * tree.weights[h * size + k];
            ends[k] = sum / tree.pivots[k];
        }
        V total = Constant<V>::of(0);
        for (int j = 0; j < size; ++j) total += terms[j] = terms[j] * ends[j];
        if (!trusted<V>(tree.pivots, 2, size, total)) return false;
        for (int h = 0; h <= length_; ++h) branch.upto[h] = 0;
        for (int j = 0; j < size; ++j) branch.upto[words[j]] = ratio(terms[j], total);
        double sum = 0;
        for (int h = 0; h <= length_; ++h) branch.upto[h] = sum += branch.upto[h];
        return sum > 0;
    }
};

// False if there is a NaN, +inf or a giant among the scores. `least` puts a number for -inf.
template <class T>
bool load_logs(const ArcBatch<T>& arcs, int64_t b, const int32_t* at, int length, bool least, Wilson& to) {
    const int64_t n = arcs.n;
    Scratch scratch;
    T* row = scratch.take<T>(n + lane_count<T>);
    bool wild = false;
    for (int h = 0; h <= length; ++h) {
        const T* from = arcs.sentence(b) + at[h] * n;
        const uint8_t* here = arcs.exists(b) + at[h] * n;
        const bool suspect = copy_existing(from, here, at[length] + 1, n, row);
        for (int m = 1; suspect && m <= length; ++m) wild |= at[m] != at[h] && is_wild(row[at[m]]);
        for (int m = 1; m <= length; ++m) {
            const double score = static_cast<double>(row[at[m]]);
            to.row(m)[h] = least && here[at[m]] && m != h ? finite_or_least(score) : score;
        }
    }
    return !wild;
}

template <class T>
void draw_nonprojective(const ArcBatch<T>& arcs, bool single_root, const DrawJob<T>& job, const Words& words,
                        int threads, FaultBox& faults) {
    const int64_t n = arcs.n, sentences = static_cast<int64_t>(words.order.size());
    auto body = [&](int64_t task) {
        FlushDenormals flush;
        Scratch scratch;
        const int64_t b = words.order[task];
        const int length = words.lengths[b];
        Wilson wilson(scratch, length);
        int32_t* heads = scratch.take<int32_t>(length + 1);
        if (!load_logs(arcs, b, words.of(b), length, false, wilson)) {
            if (report_nan(arcs, b, faults)) return;
            for (int64_t i = 0; i < n * n; ++i)
                if (arcs.exists(b)[i] && i % n && i / n != i % n && arcs.sentence(b)[i] > std::numeric_limits<T>::max())
                    return faults.report(FAULT_INFINITE, b);
        }
        bool least = false, fine = wilson.prepare(single_root);
        for (int64_t sample = 0; sample < job.samples;) {
            Random random = job.random(b, sample);
            if (fine && wilson.draw(random, heads)) {
                write_tree(heads, length, words.of(b), n, job.tree(b, sample, n));
                ++sample;
            } else if (least) {
                return faults.report(FAULT_IMPOSSIBLE, b);
            } else {  // no mass: as few of -inf as can be
                least = true;
                load_logs(arcs, b, words.of(b), length, true, wilson);
                fine = wilson.prepare(single_root);
            }
        }
    };
    const double longest = sentences ? words.lengths[words.order[0]] : 0;
    const double each = longest * longest * (single_root ? longest : 4) + 20 * longest * static_cast<double>(job.samples);
    parallel_for(sentences, worthwhile_threads(static_cast<double>(sentences) * each, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
