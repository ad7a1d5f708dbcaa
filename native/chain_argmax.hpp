// The best chain, and the k best: Viterbi's recursion.
#pragma once

#include "chain_reader.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// Best values of the chains that end in each state of each position, a row of whole vectors for each. False if a score
// is NaN, infinite or too large to be added up: the values are then not to be used.
template <class T>
bool fill_best(const ChainView<T>& view, const ChainReader<T>& reader, double* best) {
    constexpr int W = lane_count<double>;
    using V = Lanes<double>;
    const int64_t k = view.states, stride = vectors_of(k) * W;
    const double limit = 1e290;
    LaneFlags odd{};
    for (int64_t t = 0; t < view.length; ++t) {
        const T* scores = reader.scores(t);
        const uint8_t* mask = reader.mask(t);
        const double* before = best + (t - 1) * stride;
        double* after = best + t * stride;
        each_group(k, [&](int64_t group, auto size) {
            constexpr int N = decltype(size)::value;
            const int64_t first = group * W;
            const LaneFlags last = first_lanes(k - first - (N - 1) * W), all = first_lanes(W);
            auto part = [&](int64_t row, int v) {
                const int64_t place = row * k + first + v * W;
                const V score = load_wide(scores + place);
                const LaneFlags here = existing_lanes(mask + place) & (v == N - 1 ? last : all);
                odd |= here & beyond(larger(score, -score), limit);
                return choose(here, score, spread(minus_infinity<double>));
            };
            V top[N];
            for (int v = 0; v < N; ++v) top[v] = spread(t ? minus_infinity<double> : 0.0);
            for (int64_t i = 0; t && i < k; ++i)
                for (int v = 0; v < N; ++v) top[v] = larger(top[v], part(1 + i, v) + before[i]);
            for (int v = 0; v < N; ++v) store(after + first + v * W, top[v] + part(0, v));
        });
    }
    return !any_flag(odd);
}

// The states of the best chain, ties to the first; false if there is none.
template <class T>
bool best_states(const ChainView<T>& view, const double* best, int32_t* states) {
    const int64_t k = view.states, stride = vectors_of(k) * lane_count<double>;
    double top = minus_infinity<double>;
    int64_t state = -1;
    for (int64_t t = view.length - 1; t >= 0; --t) {
        const double* here = best + t * stride;
        const int64_t next = state;
        top = minus_infinity<double>, state = -1;
        const int64_t area = view.area();
        for (int64_t i = 0; i < k; ++i) {
            double value = here[i];
            if (t + 1 < view.length) {
                const int64_t place = (t + 1) * area + (1 + i) * k + next;
                if (!view.mask[place]) continue;
                value += static_cast<double>(view.scores[place]);
            }
            if (value > top) top = value, state = i;
        }
        if (state < 0) return false;
        states[t] = static_cast<int32_t>(state);
    }
    return true;
}

// Writes the states of a chain as parts; `to` has n positions and is zero.
template <class T>
void write_chain(const int32_t* states, int64_t length, int64_t k, T* to) {
    for (int64_t t = 0; t < length; ++t) {
        T* here = to + t * (1 + k) * k;
        here[states[t]] = T(1);
        if (t) here[(1 + states[t - 1]) * k + states[t]] = T(1);
    }
}

template <class T>
void chain_argmax(const ChainBatch<T>& chains, T* z, int threads, FaultBox& faults) {
    const int64_t k = chains.states, whole = chains.n * (1 + k) * k;
    auto body = [&](int64_t b) {
        T* to = z + b * whole;
        std::memset(to, 0, sizeof(T) * whole);
        const ChainView<T> view = find_chain(chains, b, faults);
        if (view.length <= 0) return;
        Scratch scratch;
        double* best = scratch.take<double>(view.length * vectors_of(k) * lane_count<double>);
        int32_t* states = scratch.take<int32_t>(view.length);
        bool found;
        if (fill_best(view, ChainReader<T>(view, scratch), best)) {
            found = best_states(view, best, states);
        } else {
            if (report_nan(view, b, faults)) return;
            const ChainView<double> finite = finite_chain(view, scratch);
            fill_best(finite, ChainReader<double>(finite, scratch), best);
            found = best_states(finite, best, states);
        }
        if (found) write_chain(states, view.length, k, to);
        else report_broken(view, b, faults);
    };
    parallel_for(chains.batch, worthwhile_threads(0.5 * chains.batch * whole, threads), body);
}

// For each state of each position the `count` best chains that end in it: values, best first, and where each comes
// from, previous state * count + rank. Each state has as many as there are, `found`.
struct Ranked {
    double* values;
    int32_t* from;
    int32_t* found;
};

// The first of the largest entries of whole vectors; -1 if all are -inf.
inline int64_t first_best(const double* values, int64_t stride) {
    Lanes<double> best = load(values);
    for (int64_t i = lane_count<double>; i < stride; i += lane_count<double>) best = larger(best, load(values + i));
    const double top = largest<double>(best);
    if (!(top > minus_infinity<double>)) return -1;
    int64_t i = 0;
    while (values[i] != top) ++i;
    return i;
}

template <class T>
void fill_ranked(const ChainView<T>& view, int64_t count, const Ranked& ranked, Scratch& scratch) {
    const int64_t k = view.states, stride = vectors_of(k) * lane_count<double>;
    int32_t* next = scratch.take<int32_t>(k);      // the first chain of each previous state that is not taken yet
    double* front = scratch.take<double>(stride);  // what it is worth, continued to the state in question
    double* step = scratch.take<double>(k);
    for (int64_t i = 0; i < stride; ++i) front[i] = minus_infinity<double>;
    for (int64_t t = 0; t < view.length; ++t)
        for (int64_t j = 0; j < k; ++j) {
            const int64_t here = t * k + j;
            ranked.found[here] = 0;
            if (!view.has_state(t, j)) continue;
            const auto own = static_cast<double>(view.score(t, 0, j));
            if (t == 0) {
                ranked.found[here] = 1;
                ranked.values[here * count] = own;
                ranked.from[here * count] = -1;
                continue;
            }
            const int64_t before = here - j - k;
            for (int64_t i = 0; i < k; ++i) {
                const int64_t place = t * view.area() + (1 + i) * k + j;
                const bool open = view.mask[place] && ranked.found[before + i];
                next[i] = 0;
                step[i] = static_cast<double>(view.scores[place]);
                front[i] = open ? ranked.values[(before + i) * count] + step[i] : minus_infinity<double>;
            }
            for (int64_t r = 0; r < count; ++r) {
                const int64_t i = first_best(front, stride);
                if (i < 0) break;
                ranked.values[here * count + r] = front[i] + own;
                ranked.from[here * count + r] = static_cast<int32_t>(i * count + next[i]);
                ++ranked.found[here];
                const bool more = ++next[i] < ranked.found[before + i];
                front[i] = more ? ranked.values[(before + i) * count + next[i]] + step[i] : minus_infinity<double>;
            }
        }
}

// The states of the best chains, (batch, count, n), -1 where there is none; `found` says how many chains each instance
// has, up to `count`.
template <class T>
void chain_k_best(const ChainBatch<T>& chains, int64_t count, int64_t* states, int64_t* found, int threads,
                  FaultBox& faults) {
    const int64_t k = chains.states, whole = chains.n * (1 + k) * k;
    auto body = [&](int64_t b) {
        int64_t* to = states + b * count * chains.n;
        for (int64_t i = 0; i < count * chains.n; ++i) to[i] = -1;
        found[b] = count > 0;  // the empty chain, if there are no positions
        const ChainView<T> view = find_chain(chains, b, faults);
        if (view.length <= 0) return;
        Scratch scratch;
        const int64_t cells = view.length * k;
        const Ranked ranked{scratch.take<double>(cells * count), scratch.take<int32_t>(cells * count),
                            scratch.take<int32_t>(cells)};
        double* best = scratch.take<double>(view.length * vectors_of(k) * lane_count<double>);
        if (fill_best(view, ChainReader<T>(view, scratch), best)) {
            fill_ranked(view, count, ranked, scratch);
        } else {
            if (report_nan(view, b, faults)) return;
            fill_ranked(finite_chain(view, scratch), count, ranked, scratch);
        }
        int32_t* next = scratch.take<int32_t>(k);
        for (int64_t j = 0; j < k; ++j) next[j] = 0;
        const int64_t end = (view.length - 1) * k;
        int64_t r = 0;
        for (; r < count; ++r) {
            double top = minus_infinity<double>;
            int64_t state = -1;
            for (int64_t j = 0; j < k; ++j) {
                if (next[j] >= ranked.found[end + j]) continue;
                const double value = ranked.values[(end + j) * count + next[j]];
                if (value > top) top = value, state = j;
            }
            if (state < 0) break;
            int64_t rank = next[state]++;
            for (int64_t t = view.length - 1; t >= 0; --t) {
                to[r * chains.n + t] = state;
                const int64_t from = ranked.from[(t * k + state) * count + rank];
                state = from / count, rank = from % count;
            }
        }
        found[b] = r;
        if (!r) report_broken(view, b, faults);
    };
    parallel_for(chains.batch, worthwhile_threads(1.0 * chains.batch * whole * (1 + count), threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
