// Projection onto the hull of dependency trees. The file active_set.py has the mathematics: this is the same search
// with the trees kept as heads, the Gram matrix (trees share a number of arcs) kept as a Cholesky factor, and, for
// projective trees, the oracle called for several sentences at once.
#pragma once

#include <atomic>

#include "arborescence.hpp"
#include "eisner.hpp"
#include "hull_search.hpp"
#include "kernels.hpp"
#include "relaxed_trees.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

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

    void finish(HullSearch& search) {
        const int64_t b = search.sentence, n = points.n;
        const int32_t* at = words.of(b);
        search.write(at, n, to + b * n * n);
        gap[b] = search.gap;
    }

    // The same for a point (size, size) that was found without trees.
    void finish(int64_t b, const double* mu, double left) {
        const int64_t n = points.n;
        const int size = words.lengths[b] + 1;
        const int32_t* at = words.of(b);
        std::memset(to + b * n * n, 0, sizeof(T) * n * n);
        for (int h = 0; h < size; ++h)
            for (int m = 1; m < size; ++m) to[b * n * n + at[h] * n + at[m]] = static_cast<T>(mu[h * size + m]);
        gap[b] = left;
    }

    void hand_over(HullSearch& search, Growable<int32_t>& padded) {
        const int64_t b = search.sentence, n = points.n;
        const int32_t* at = words.of(b);
        padded.reserve(search.trees() * n);
        for (int64_t i = 0; i < search.trees() * n; ++i) padded[i] = -1;
        for (int t = 0; t < search.trees(); ++t)
            for (int m = 1; m <= search.length; ++m) padded[t * n + at[m]] = at[search.heads(t)[m]];
        emit(emit_context, b, search.trees(), search.weights(), padded.data());
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
                    const int arc = search.touched_arc(i), head = search.touched_head(i);
                    put(lane, head, arc - head * own, search.residual(arc));
                }
            } else {
                job.finish(search);
                if (job.emit) job.hand_over(search, padded);
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
    double* relaxed = scratch.take<double>(static_cast<size_t>(size) * size);
    int32_t* heads = scratch.take<int32_t>(size);
    HullSearch search;
    Growable<int32_t> padded;
    auto best = [&](auto residual) {
        for (int m = 1; m <= search.length; ++m)
            for (int h = 0; h <= search.length; ++h)
                arborescence.row(m)[h] = residual(h * (search.length + 1) + m);
        return arborescence.heads(search.length, job.single_root, heads);
    };
    // How much better a tree could be than the relaxed projection; less than nothing if there is no tree.
    auto left = [&](double& scale) {
        auto residual = [&](int64_t arc) { return search.target(arc) - relaxed[arc]; };
        if (!best(residual)) return -1.0;
        const int own = search.length + 1;
        double gain = 0;
        scale = 1e-3;
        for (int m = 1; m < own; ++m) gain += residual(heads[m] * own + m);
        for (int64_t arc = 0; arc < int64_t{own} * own; ++arc) {
            if (!(relaxed[arc] > 0)) continue;
            gain -= relaxed[arc] * residual(arc);
            scale = larger(scale, -search.target(arc));
        }
        return gain > 0 ? gain : 0;
    };
    while (job.take(search, point, heads)) {
        bool proven = false, found = true;
        double gap = 0, scale = 0;
        if (project_relaxed_trees(point, search.length, job.single_root, relaxed)) {
            gap = left(scale);
            proven = gap >= 0 && gap <= job.tolerance * scale;
        }
        for (int64_t round = 0; (!proven || job.emit) && round < job.max_rounds; ++round) {
            found = best([&](int64_t arc) { return search.residual(arc); });
            if (!found) job.faults.report(FAULT_IMPOSSIBLE, search.sentence);
            if (!found || !search.step(heads)) break;
        }
        if (!found) continue;
        if (!proven) job.finish(search);
        else job.finish(search.sentence, relaxed, gap);
        if (job.emit) job.hand_over(search, padded);
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
