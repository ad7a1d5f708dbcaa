// Projection onto the hull of dependency trees. The file active_set.py has the mathematics: this is the same search
// with the trees kept as heads, the Gram matrix (trees share a number of arcs) kept as a Cholesky factor, and, for
// projective trees, the oracle called for several sentences at once.
#pragma once

#include <atomic>
#include <cmath>

#include "arborescence.hpp"
#include "eisner.hpp"
#include "factor.hpp"
#include "kernels.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// The search for one sentence.
class HullSearch {
public:
    int64_t sentence = -1;
    int length = 0;
    double gap = 0;
    int trees() const { return count_; }
    const double* weights() { return weights_.data(); }
    const int32_t* heads(int tree) { return heads_.data() + int64_t{tree} * size_; }

    // Takes the point, compacted to (size, size) with -inf where there is no arc.
    void begin(int64_t b, int words, const double* point, double tolerance) {
        sentence = b;
        length = words;
        size_ = words + 1;
        const int64_t area = int64_t{size_} * size_;
        target_.reserve(area);
        mu_.reserve(area);
        listed_.reserve(area);
        touched_.reserve(area);
        touched_count_ = count_ = 0;
        removals_ = 0;
        gap = 0;
        for (int64_t i = 0; i < area; ++i) mu_[i] = 0, listed_[i] = 0;
        tolerance_ = tolerance;
        for (int m = 0; m < size_; ++m) {  // a tree has one head for each word: a shift of a column changes nothing
            double top = minus_infinity<double>;
            for (int h = 0; h < size_; ++h) top = larger(top, point[h * size_ + m]);
            for (int h = 0; h < size_; ++h)
                target_[h * size_ + m] =
                    top > minus_infinity<double> ? point[h * size_ + m] - top : minus_infinity<double>;
        }
        factor_.clear();
    }

    // What the oracle should decode next.
    double residual(int64_t arc) { return target_[arc] - mu_[arc]; }
    double residual(int h, int m) { return residual(h * size_ + m); }
    int touched() const { return touched_count_; }
    int touched_arc(int i) { return touched_[i]; }

    // Takes the oracle's tree; false when the search is over.
    bool step(const int32_t* rival) {
        if (count_) {
            double gain = 0;
            for (int m = 1; m <= length; ++m) gain += residual(rival[m], m);
            double scale = 1e-3;  // of the arcs that carry mass: what the others are does not touch the answer
            for (int i = 0; i < touched_count_; ++i) {
                const int arc = touched_[i];
                gain -= mu_[arc] * residual(arc);
                if (mu_[arc] > 0 && -target_[arc] > scale) scale = -target_[arc];
            }
            gap = gain > 0 ? gain : 0;
            if (gain <= tolerance_ * scale) return false;
        }
        return add(rival);
    }

    template <class T>
    void write(const int32_t* at, int64_t n, T* to) {
        std::memset(to, 0, sizeof(T) * n * n);
        for (int i = 0; i < touched_count_; ++i) {
            const int arc = touched_[i];
            to[at[arc / size_] * n + at[arc % size_]] = static_cast<T>(mu_[arc]);
        }
    }

private:
    int shared(const int32_t* a, const int32_t* b) const {
        int same = 0;
        for (int m = 1; m <= length; ++m) same += a[m] == b[m];
        return same;
    }

    bool add(const int32_t* rival) {
        common_.reserve(count_ + 1);
        for (int t = 0; t < count_; ++t) {
            const int same = shared(heads(t), rival);
            if (same == length) return false;  // there already: rounding is all that is left
            common_[t] = same + 1.0;
        }
        if (!factor_.append(common_.data(), length + 1.0)) return false;
        heads_.reserve(int64_t{count_ + 1} * size_);
        weights_.reserve(count_ + 1);
        for (int m = 1; m <= length; ++m) {
            const int arc = rival[m] * size_ + m;
            if (!listed_[arc]) listed_[arc] = 1, touched_[touched_count_++] = arc;
        }
        std::memcpy(heads_.data() + int64_t{count_} * size_, rival, sizeof(int32_t) * size_);
        weights_[count_] = count_ ? 0 : 1;
        if (!count_++) mix();
        settle();
        return true;
    }

    // Moves the weights to the nearest point of the affine hull, dropping trees on the way while any would turn
    // negative. The step is solved for, not the weights themselves: it is small where the point is far away, and keeps
    // its digits.
    void settle() {
        while (true) {
            step_.reserve(count_);
            ones_.reserve(count_);
            double top = minus_infinity<double>;
            for (int t = 0; t < count_; ++t) {
                const int32_t* tree = heads(t);
                double worth = 0;
                for (int m = 1; m <= length; ++m) worth += residual(tree[m], m);
                step_[t] = worth;
                top = worth > top ? worth : top;
            }
            for (int t = 0; t < count_; ++t) step_[t] -= top, ones_[t] = 1;
            factor_.solve(step_.data());
            factor_.solve(ones_.data());
            double step_sum = 0, ones_sum = 0;
            for (int t = 0; t < count_; ++t) step_sum += step_[t], ones_sum += ones_[t];
            double room = 1;
            int leaves = -1;
            for (int t = 0; t < count_; ++t) {
                step_[t] -= ones_[t] * (step_sum / ones_sum);
                if (weights_[t] + step_[t] > 1e-14) continue;
                const double here = weights_[t] > 0 && step_[t] < 0 ? weights_[t] / -step_[t] : 0;
                if (leaves < 0 || here < room) room = here, leaves = t;
            }
            if (room > 1) room = 1;
            double sum = 0;
            for (int t = 0; t < count_; ++t) {
                weights_[t] += room * step_[t];
                if (weights_[t] < 0 || t == leaves) weights_[t] = 0;
                sum += weights_[t];
            }
            for (int t = 0; t < count_; ++t) weights_[t] /= sum;
            mix();
            if (leaves < 0 || count_ == 1) break;
            drop(leaves);
        }
    }

    // The point that the weights make of the trees.
    void mix() {
        for (int i = 0; i < touched_count_; ++i) mu_[touched_[i]] = 0;
        for (int t = 0; t < count_; ++t) {
            const int32_t* tree = heads(t);
            for (int m = 1; m <= length; ++m) mu_[tree[m] * size_ + m] += weights_[t];
        }
    }

    void drop(int gone) {
        forget(gone);
        factor_.remove(gone);
        if (++removals_ % 64 == 0) refactor();  // rotations let rounding errors grow
    }

    void forget(int gone) {
        for (int t = gone; t + 1 < count_; ++t) {
            weights_[t] = weights_[t + 1];
            std::memcpy(heads_.data() + int64_t{t} * size_, heads_.data() + int64_t{t + 1} * size_,
                        sizeof(int32_t) * size_);
        }
        --count_;
    }

    void refactor() {
        factor_.clear();
        common_.reserve(count_);
        for (int t = 0; t < count_; ++t) {
            for (int u = 0; u < t; ++u) common_[u] = shared(heads(t), heads(u)) + 1.0;
            if (factor_.append(common_.data(), length + 1.0)) continue;
            forget(t--);  // it has come to depend on the others
        }
    }

    int size_ = 0, count_ = 0, touched_count_ = 0, removals_ = 0;
    double tolerance_ = 0;
    Growable<double> target_, mu_, weights_, step_, ones_, common_;
    Growable<int32_t> heads_, touched_;
    Growable<uint8_t> listed_;
    Factor factor_;
};

// Everything that the searches of one call share.
template <class T>
struct HullJob {
    const ArcBatch<T>& points;
    const Words& words;
    const T* start;
    bool projective, single_root;
    double tolerance;
    int64_t max_rounds;
    T* to;
    double* gap;
    HullEmit emit;
    void* emit_context;
    FaultBox& faults;
    std::atomic<int64_t> next{0};

    // Takes the next sentence that has words; false if there is none.
    bool take(HullSearch& search, double* point, int32_t* heads) {
        while (true) {
            const int64_t i = next.fetch_add(1);
            if (i >= static_cast<int64_t>(words.order.size())) return false;
            const int64_t b = words.order[i], n = points.n;
            const int length = words.lengths[b], size = length + 1;
            const int32_t* at = words.of(b);
            bool finite = true, started = start != nullptr;
            for (int h = 0; h < size; ++h)
                for (int m = 0; m < size; ++m) {
                    const int64_t place = at[h] * n + at[m];
                    const bool here = m > 0 && h != m && points.exists(b)[place];
                    const double v = here ? static_cast<double>(points.sentence(b)[place]) : minus_infinity<double>;
                    finite &= !here || v <= 1e300;
                    point[h * size + m] = v;
                }
            if (!finite) {
                faults.report(FAULT_INFINITE, b);
                continue;
            }
            for (int m = 1; started && m < size; ++m) {
                heads[m] = -1;
                for (int h = 0; h < size; ++h)
                    if (point[h * size + m] > minus_infinity<double> && start[b * n * n + at[h] * n + at[m]] > T(0.5))
                        heads[m] = h;
                started = heads[m] >= 0;
            }
            search.begin(b, length, point, tolerance);
            if (started && is_tree(heads, length)) search.step(heads);
            return true;
        }
    }

    // Whether a start is a member: anything else would pull the answer out of the hull.
    bool is_tree(const int32_t* heads, int length) const {
        int roots = 0;
        for (int m = 1; m <= length; ++m) {
            roots += heads[m] == 0;
            int at = m, steps = 0;
            while (at && steps++ <= length) at = heads[at];
            if (at) return false;
            if (!projective) continue;
            const int low = m < heads[m] ? m : heads[m], high = m < heads[m] ? heads[m] : m;
            for (int k = 1; k <= length; ++k) {
                const int from = k < heads[k] ? k : heads[k], to = k < heads[k] ? heads[k] : k;
                if (low < from && from < high && high < to) return false;
            }
        }
        return roots == 1 || !single_root;
    }

    void finish(HullSearch& search, int32_t* padded) {
        const int64_t b = search.sentence, n = points.n;
        const int32_t* at = words.of(b);
        search.write(at, n, to + b * n * n);
        gap[b] = search.gap;
        for (int64_t i = 0; i < search.trees() * n; ++i) padded[i] = -1;
        for (int t = 0; t < search.trees(); ++t)
            for (int m = 1; m <= search.length; ++m) padded[t * n + at[m]] = at[search.heads(t)[m]];
        emit(emit_context, b, search.trees(), search.weights(), padded);
    }
};

template <class T>
void project_projective(HullJob<T>& job) {
    constexpr int W = lane_count<double>;
    Scratch scratch;
    const int size = job.words.lengths[job.words.order[0]] + 1;
    Eisner<double> eisner(scratch, size);
    double* point = scratch.take<double>(static_cast<size_t>(size) * size);
    int32_t* heads = scratch.take<int32_t>(size);
    HullSearch searches[W];
    Growable<int32_t> padded;
    int64_t rounds[W];
    bool active[W];

    auto put = [&](int lane, int h, int m, double v) {
        reinterpret_cast<double*>(eisner.scores + h * size + m)[lane] = v;
    };
    auto refill = [&](int lane) {
        HullSearch& search = searches[lane];
        active[lane] = job.take(search, point, heads);
        rounds[lane] = 0;
        if (!active[lane]) return;
        for (int h = 0; h <= search.length; ++h)
            for (int m = 0; m <= search.length; ++m) put(lane, h, m, search.residual(h, m));
    };
    for (int i = 0; i < size * size; ++i) eisner.scores[i] = spread(minus_infinity<double>);
    for (int lane = 0; lane < W; ++lane) refill(lane);
    while (true) {
        int limit = 0;
        for (int lane = 0; lane < W; ++lane)
            if (active[lane] && searches[lane].length + 1 > limit) limit = searches[lane].length + 1;
        if (!limit) break;
        eisner.fill(job.single_root ? 1 : 0, limit);
        for (int lane = 0; lane < W; ++lane) {
            if (!active[lane]) continue;
            HullSearch& search = searches[lane];
            if (!eisner.heads(lane, search.length, job.single_root, heads)) {
                job.faults.report(FAULT_IMPOSSIBLE, search.sentence);
                refill(lane);
            } else if (search.step(heads) && ++rounds[lane] < job.max_rounds) {
                const int own = search.length + 1;
                for (int i = 0; i < search.touched(); ++i) {
                    const int arc = search.touched_arc(i);
                    put(lane, arc / own, arc % own, search.residual(arc));
                }
            } else {
                padded.reserve(search.trees() * job.points.n);
                job.finish(search, padded.data());
                refill(lane);
            }
        }
    }
}

template <class T>
void project_nonprojective(HullJob<T>& job) {
    Scratch scratch;
    const int size = job.words.lengths[job.words.order[0]] + 1;
    Arborescence arborescence(scratch, size);
    double* point = scratch.take<double>(static_cast<size_t>(size) * size);
    int32_t* heads = scratch.take<int32_t>(size);
    HullSearch search;
    Growable<int32_t> padded;
    while (job.take(search, point, heads)) {
        bool found = true;
        for (int64_t round = 0; found && round < job.max_rounds; ++round) {
            for (int m = 1; m <= search.length; ++m)
                for (int h = 0; h <= search.length; ++h) arborescence.row(m)[h] = search.residual(h, m);
            found = arborescence.heads(search.length, job.single_root, heads);
            if (!found) job.faults.report(FAULT_IMPOSSIBLE, search.sentence);
            else if (!search.step(heads)) break;
        }
        if (!found) continue;
        padded.reserve(search.trees() * job.points.n);
        job.finish(search, padded.data());
    }
}

template <class T>
void project_tree_hull(const ArcBatch<T>& points, const T* start, TreeKind kind, double tolerance,
                       int64_t max_rounds, T* to, double* gap, HullEmit emit, void* emit_context, int threads,
                       FaultBox& faults) {
    const Words words = find_words(points.mask, points.batch, points.n, threads, faults);
    clear_empty(words, points.batch, to);
    for (int64_t b = 0; b < points.batch; ++b) gap[b] = 0;
    const int64_t sentences = static_cast<int64_t>(words.order.size());
    if (faults.any() || !sentences) return;
    const bool projective = kind.projective;
    HullJob<T> job{points, words, start, projective,   kind.single_root, tolerance, max_rounds,
                   to,     gap,   emit,  emit_context, faults,           {0}};
    const int64_t at_once = projective ? lane_count<double> : 1;
    const int64_t tasks = (sentences + at_once - 1) / at_once;
    auto body = [&](int64_t) { projective ? project_projective(job) : project_nonprojective(job); };
    parallel_for(tasks < threads ? tasks : threads, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
