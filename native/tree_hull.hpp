// Projection onto the hull of dependency trees, by the search of hull_search.hpp; for projective trees the oracle is
// called for several sentences at once.
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

    // Takes the next sentence that has words; false if there is none. Arcs are parts h * stride + m; without a stride,
    // it is as small as the sentence.
    bool take(HullSearch& search, int& length, int stride, int32_t* heads, int32_t* tree) {
        while (true) {
            const int64_t i = next.fetch_add(1);
            if (i >= static_cast<int64_t>(words.order.size())) return false;
            const int64_t b = words.order[i], n = points.n;
            length = words.lengths[b];
            const int size = length + 1, row = stride ? stride : size;
            const int32_t* at = words.of(b);
            bool finite = true, started = start != nullptr;
            double* target = search.begin(b, length, int64_t{size} * row, tolerance);
            for (int m = 0; m < size; ++m) {
                double top = minus_infinity<double>;
                for (int h = 0; h < size; ++h) {
                    const int64_t place = at[h] * n + at[m];
                    const bool here = m > 0 && h != m && points.exists(b)[place];
                    const double v = here ? static_cast<double>(points.sentence(b)[place]) : minus_infinity<double>;
                    finite &= !here || v <= 1e300;
                    top = larger(top, target[h * row + m] = v);
                }
                for (int h = 0; h < size && top > minus_infinity<double>; ++h) target[h * row + m] -= top;
            }
            if (!finite) {
                faults.report(FAULT_INFINITE, b);
                continue;
            }
            for (int m = 1; started && m < size; ++m) {
                heads[m] = -1;
                for (int h = 0; h < size; ++h)
                    if (target[h * row + m] > minus_infinity<double> && start[b * n * n + at[h] * n + at[m]] > T(0.5))
                        heads[m] = h;
                started = heads[m] >= 0;
            }
            if (started && is_tree(heads, length)) search.step(arcs(heads, length, row, tree));
            return true;
        }
    }

    // The arcs of a tree as parts.
    static const int32_t* arcs(const int32_t* heads, int length, int stride, int32_t* tree) {
        for (int m = 1; m <= length; ++m) tree[m - 1] = heads[m] * stride + m;
        return tree;
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

    // Where a part stands in the tensor of its sentence.
    int64_t place(int64_t b, int part, int stride) const {
        const int32_t* at = words.of(b);
        return at[part / stride] * points.n + at[part % stride];
    }

    void finish(HullSearch& search, int stride) {
        const int64_t b = search.instance, n = points.n;
        std::memset(to + b * n * n, 0, sizeof(T) * n * n);
        for (int i = 0; i < search.touched(); ++i) {
            const int arc = search.touched(i);
            to[b * n * n + place(b, arc, stride)] = static_cast<T>(search.value(arc));
        }
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

    void hand_over(HullSearch& search, int stride, Growable<int32_t>& places) {
        const int64_t parts = int64_t{search.members()} * search.kinds();
        places.reserve(parts);
        for (int64_t i = 0; i < parts; ++i)
            places[i] = static_cast<int32_t>(place(search.instance, search.member(0)[i], stride));
        emit(emit_context, search.instance, search.members(), search.kinds(), search.weights(), places.data());
    }
};

template <class T>
void project_projective(HullJob<T>& job) {
    constexpr int W = lane_count<double>;
    Scratch scratch;
    const int size = job.words.lengths[job.words.order[0]] + 1;
    Eisner<double> eisner(scratch, size);
    int32_t* heads = scratch.take<int32_t>(size);
    int32_t* tree = scratch.take<int32_t>(size);
    HullSearch searches[W];
    Growable<int32_t> places;
    int64_t rounds[W];
    int lengths[W];
    bool active[W];

    auto put = [&](int lane, int arc, double v) { reinterpret_cast<double*>(eisner.scores + arc)[lane] = v; };
    auto refill = [&](int lane) {
        active[lane] = job.take(searches[lane], lengths[lane], size, heads, tree);
        rounds[lane] = 0;
        for (int h = 0; active[lane] && h <= lengths[lane]; ++h)
            for (int m = 0; m <= lengths[lane]; ++m) put(lane, h * size + m, searches[lane].residual(h * size + m));
    };
    for (int i = 0; i < size * size; ++i) eisner.scores[i] = spread(minus_infinity<double>);
    for (int lane = 0; lane < W; ++lane) refill(lane);
    while (true) {
        int limit = 0;
        for (int lane = 0; lane < W; ++lane)
            if (active[lane] && lengths[lane] + 1 > limit) limit = lengths[lane] + 1;
        if (!limit) break;
        eisner.fill(job.single_root ? 1 : 0, limit);
        for (int lane = 0; lane < W; ++lane) {
            if (!active[lane]) continue;
            HullSearch& search = searches[lane];
            if (!eisner.heads(lane, lengths[lane], job.single_root, heads)) {
                job.faults.report(FAULT_IMPOSSIBLE, search.instance);
                refill(lane);
            } else if (search.step(job.arcs(heads, lengths[lane], size, tree)) && ++rounds[lane] < job.max_rounds) {
                for (int i = 0; i < search.touched(); ++i)
                    put(lane, search.touched(i), search.residual(search.touched(i)));
            } else {
                job.finish(search, size);
                if (job.emit) job.hand_over(search, size, places);
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
    double* relaxed = scratch.take<double>(static_cast<size_t>(size) * size);
    int32_t* heads = scratch.take<int32_t>(size);
    int32_t* tree = scratch.take<int32_t>(size);
    HullSearch search;
    Growable<int32_t> places;
    int length = 0;
    auto best = [&](auto residual) {
        for (int m = 1; m <= length; ++m)
            for (int h = 0; h <= length; ++h) arborescence.row(m)[h] = residual(h * (length + 1) + m);
        return arborescence.heads(length, job.single_root, heads);
    };
    // How much better a tree could be than the relaxed projection; less than nothing if there is no tree.
    auto left = [&](double& scale) {
        auto residual = [&](int64_t arc) { return search.target()[arc] - relaxed[arc]; };
        if (!best(residual)) return -1.0;
        const int own = length + 1;
        double gain = 0;
        scale = 1e-3;
        for (int m = 1; m < own; ++m) gain += residual(heads[m] * own + m);
        for (int64_t arc = 0; arc < int64_t{own} * own; ++arc) {
            if (!(relaxed[arc] > 0)) continue;
            gain -= relaxed[arc] * residual(arc);
            scale = larger(scale, -search.target()[arc]);
        }
        return gain > 0 ? gain : 0;
    };
    while (job.take(search, length, 0, heads, tree)) {
        const int own = length + 1;
        bool proven = false, found = true;
        double gap = 0, scale = 0;
        if (project_relaxed_trees(search.target(), length, job.single_root, relaxed)) {
            gap = left(scale);
            proven = gap >= 0 && gap <= job.tolerance * scale;
        }
        for (int64_t round = 0; (!proven || job.emit) && round < job.max_rounds; ++round) {
            found = best([&](int64_t arc) { return search.residual(arc); });
            if (!found) job.faults.report(FAULT_IMPOSSIBLE, search.instance);
            if (!found || !search.step(job.arcs(heads, length, own, tree))) break;
        }
        if (!found) continue;
        if (!proven) job.finish(search, own);
        else job.finish(search.instance, relaxed, gap);
        if (job.emit) job.hand_over(search, own, places);
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
