// Projection onto the hull of chains, by the search of hull_search.hpp with Viterbi's recursion for its oracle.
#pragma once

#include <atomic>

#include "chain_argmax.hpp"
#include "hull_search.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// Everything that the searches of one call share.
template <class T>
struct ChainHullJob {
    const ChainBatch<T>& points;
    const T* start;
    double tolerance;
    int64_t max_rounds;
    T* to;
    double* gap;
    HullEmit emit;
    void* emit_context;
    FaultBox& faults;
    std::atomic<int64_t> next{0};
};

// One thread's share of them: memory is taken once for all its instances.
template <class T>
class ChainHull {
public:
    explicit ChainHull(ChainHullJob<T>& job) : job_(job) {}

    void run() {
        const int64_t whole = job_.points.n * (1 + job_.points.states) * job_.points.states;
        for (int64_t b; (b = job_.next.fetch_add(1)) < job_.points.batch;) {
            std::memset(job_.to + b * whole, 0, sizeof(T) * whole);
            job_.gap[b] = 0;
            const ChainView<T> points = find_chain(job_.points, b, job_.faults);
            if (points.length > 0) project(points, b, job_.to + b * whole);
        }
    }

private:
    void project(const ChainView<T>& points, int64_t b, T* to) {
        const int64_t k = points.states, stride = vectors_of(k) * lane_count<double>;
        const ChainView<double> residual = take(points, b);
        Scratch scratch;  // the reader needs none: there is room behind the last position
        const ChainReader<double> reader(residual, scratch);
        best_.reserve(points.length * stride);
        states_.reserve(points.length);
        if (job_.start && read_start(residual, job_.start + (to - job_.to))) search_.step(parts(residual));
        for (int64_t round = 0; round < job_.max_rounds; ++round) {
            for (int i = 0; i < search_.touched(); ++i) {
                const int part = search_.touched(i);
                scores_[part] = search_.residual(part);
            }
            fill_best(residual, reader, best_.data());
            if (!best_states(residual, best_.data(), states_.data())) {
                report_broken(points, b, job_.faults);
                return;
            }
            if (!search_.step(parts(residual))) break;
        }
        for (int i = 0; i < search_.touched(); ++i)
            to[search_.touched(i)] = static_cast<T>(search_.value(search_.touched(i)));
        job_.gap[b] = search_.gap;
        if (job_.emit)
            job_.emit(job_.emit_context, b, search_.members(), search_.kinds(), search_.weights(), search_.member(0));
    }

    // Begins the search, and returns the scores that its oracle reads. The states of a position are parts of one kind,
    // and so are the transitions into it.
    ChainView<double> take(const ChainView<T>& points, int64_t b) {
        const int64_t k = points.states, area = points.area(), whole = points.length * area;
        const int64_t room = whole + lane_count<double>;
        scores_.reserve(room);
        mask_.reserve(room);
        double* target = search_.begin(b, static_cast<int>(2 * points.length - 1), whole, job_.tolerance);
        for (int64_t t = 0; t < points.length; ++t) {
            double top[2] = {minus_infinity<double>, minus_infinity<double>};
            for (int64_t row = 0, place = t * area; row <= k; ++row)
                for (int64_t j = 0; j < k; ++j, ++place) {
                    mask_[place] = points.has_part(t, row, j);
                    target[place] = mask_[place] ? static_cast<double>(points.scores[place]) : minus_infinity<double>;
                    top[row > 0] = larger(top[row > 0], target[place]);
                }
            // Far below the best there is nothing but what must be, and sums have to stay numbers.
            for (int64_t i = 0; i < area; ++i)
                if (mask_[t * area + i]) target[t * area + i] = larger(target[t * area + i] - top[i >= k], -1e280);
        }
        for (int64_t i = 0; i < whole; ++i) scores_[i] = mask_[i] ? target[i] : 0;
        for (int64_t i = whole; i < room; ++i) scores_[i] = 0, mask_[i] = 0;
        return {scores_.data(), mask_.data(), points.length, k, room};
    }

    // The states of a chain to begin with; false if it is none.
    bool read_start(const ChainView<double>& residual, const T* start) {
        const int64_t k = residual.states;
        for (int64_t t = 0; t < residual.length; ++t) {
            int32_t state = -1;
            for (int64_t j = 0; j < k; ++j)
                if (residual.has_state(t, j) && start[t * residual.area() + j] > T(0.5))
                    state = static_cast<int32_t>(j);
            if (state < 0 || (t && !residual.has_part(t, 1 + states_[t - 1], state))) return false;
            states_[t] = state;
        }
        return true;
    }

    // The parts of the chain through the present states: a state for each position, then a transition for each step.
    const int32_t* parts(const ChainView<double>& residual) {
        const int64_t k = residual.states, area = residual.area(), n = residual.length;
        parts_.reserve(2 * n - 1);
        for (int64_t t = 0; t < n; ++t) {
            parts_[t] = static_cast<int32_t>(t * area + states_[t]);
            if (t) parts_[n + t - 1] = static_cast<int32_t>(t * area + (1 + states_[t - 1]) * k + states_[t]);
        }
        return parts_.data();
    }

    ChainHullJob<T>& job_;
    HullSearch search_;
    Growable<double> scores_, best_;
    Growable<uint8_t> mask_;
    Growable<int32_t> states_, parts_;
};

template <class T>
void project_chain_hull(const ChainBatch<T>& points, const T* start, double tolerance, int64_t max_rounds, T* to,
                        double* gap, HullEmit emit, void* emit_context, int threads, FaultBox& faults) {
    ChainHullJob<T> job{points, start, tolerance, max_rounds, to, gap, emit, emit_context, faults, {0}};
    const double work = 20.0 * points.batch * points.n * (1 + points.states) * points.states;
    const int64_t tasks = worthwhile_threads(work, threads);
    auto body = [&](int64_t) { ChainHull<T>(job).run(); };
    parallel_for(tasks < points.batch ? tasks : points.batch, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
