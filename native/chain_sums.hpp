// Sums over all chains: log-partition, marginals, their derivative along a direction, and draws.
//
// The forward recursion keeps, for every transition, its weight relative to the best one into the same state. Divided
// by their sum these are the probabilities of the previous state given the next, and all that the way back needs: it
// multiplies and adds probabilities, so that nothing overflows, and nothing cancels, at any scale of scores and any
// length.
#pragma once

#include "chain_argmax.hpp"
#include "random.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// What the forward recursion leaves behind. Rows are whole vectors, with -inf or zero beyond the last state.
struct Forward {
    double* log;      // (n, stride): log of the sum over the chains that end in a state
    double* sums;     // (n, stride): sum of the weights of the transitions into a state
    double* weights;  // (n, k, stride): of the transition from state i, relative to the best into the same state
    int64_t stride;

    Forward(Scratch& scratch, int64_t length, int64_t states, bool keep) {
        stride = vectors_of(states) * lane_count<double>;
        log = scratch.take<double>(length * stride);
        sums = scratch.take<double>(length * stride);
        weights = scratch.take<double>((keep ? length : 1) * states * stride);
        step_ = keep ? states * stride : 0;
    }
    double* at(int64_t t) const { return weights + t * step_; }

private:
    int64_t step_;
};

// False if a score is NaN or +inf, or so large that sums might overflow.
template <class T>
bool fill_forward(const ChainView<T>& view, const ChainReader<T>& reader, const Forward& forward) {
    constexpr int W = lane_count<double>;
    using V = Lanes<double>;
    const int64_t k = view.states, stride = forward.stride;
    const double limit = 1e290;
    LaneFlags odd{};
    for (int64_t t = 0; t < view.length; ++t) {
        const T* scores = reader.scores(t);
        const uint8_t* mask = reader.mask(t);
        const double* before = forward.log + (t - 1) * stride;
        double* weights = forward.at(t);
        each_group(k, [&](int64_t group, auto size) {
            constexpr int N = decltype(size)::value;
            const int64_t first = group * W;
            const LaneFlags last = first_lanes(k - first - (N - 1) * W), all = first_lanes(W);
            auto part = [&](int64_t row, int v) {
                const int64_t place = row * k + first + v * W;
                const V score = load_wide(scores + place);
                const LaneFlags here = existing_lanes(mask + place) & (v == N - 1 ? last : all);
                odd |= here & beyond(score, limit);
                return choose(here, score, spread(minus_infinity<double>));
            };
            V top[N], sum[N];
            for (int v = 0; v < N; ++v) {
                top[v] = spread(t ? minus_infinity<double> : 0.0);
                sum[v] = spread(t ? 0.0 : 1.0);
            }
            for (int64_t i = 0; t && i < k; ++i)
                for (int v = 0; v < N; ++v) {
                    const V term = part(1 + i, v) + before[i];
                    top[v] = larger(top[v], term);
                    store(weights + i * stride + first + v * W, term);
                }
            for (int v = 0; v < N; ++v) top[v] = top[v] > minus_infinity<double> ? top[v] : V{};
            for (int64_t i = 0; t && i < k; ++i)
                for (int v = 0; v < N; ++v) {
                    double* place = weights + i * stride + first + v * W;
                    const V weight = exp_nonpositive(load(place) - top[v]);
                    sum[v] += weight;
                    store(place, weight);
                }
            for (int v = 0; v < N; ++v) {
                const V some = larger(sum[v], spread(1.0));  // the best into a state has weight one
                const V log = sum[v] > 0 ? top[v] + log_from_one(some) : spread(minus_infinity<double>);
                store(forward.sums + t * stride + first + v * W, sum[v]);
                store(forward.log + t * stride + first + v * W, log + part(0, v));
            }
        });
    }
    return !any_flag(odd);
}

// The log of the whole sum, and the probabilities of the last states; a row of whole vectors. -inf and zeros if there
// is no chain, or none with a score above -inf.
inline double last_states(const Forward& forward, int64_t length, int64_t states, double* mu) {
    const double* log = forward.log + (length - 1) * forward.stride;
    double top = minus_infinity<double>, sum = 0;
    for (int64_t j = 0; j < states; ++j) top = larger(top, log[j]);
    for (int64_t j = 0; j < forward.stride; ++j) mu[j] = 0;
    if (!(top > minus_infinity<double>)) return top;
    for (int64_t j = 0; j < states; ++j) sum += mu[j] = std::exp(log[j] - top);
    for (int64_t j = 0; j < states; ++j) mu[j] /= sum;
    return top + std::log(sum);
}

inline Lanes<double> quotient(Lanes<double> a, Lanes<double> b) { return b > 0 ? a / b : Lanes<double>{}; }

// Marginals from the last position to the first, given those of the last states in `mu`, which is used up.
template <class T>
void write_marginals(const ChainView<T>& view, const Forward& forward, double* mu, double* other, T* to) {
    constexpr int W = lane_count<double>;
    using V = Lanes<double>;
    const int64_t k = view.states, stride = forward.stride, vectors = vectors_of(k), area = view.area();
    for (int64_t t = view.length - 1; t >= 0; --t) {
        T *here = to + t * area, *end = here + area;
        for (int64_t j = 0; j < stride; j += W) {
            const V p = load(mu + j);
            store_narrow(here + j, p < 1 ? p : spread(1.0), end - here - j);
        }
        if (t == 0) {
            std::memset(here + k, 0, sizeof(T) * k * k);
            break;
        }
        for (int64_t j = 0; j < stride; j += W)
            store(mu + j, quotient(load(mu + j), load(forward.sums + t * stride + j)));
        for (int64_t j = 0; j < stride; ++j) other[j] = 0;
        for (int64_t i = 0; i < k; ++i) {
            const double* weights = forward.at(t) + i * stride;
            T* row = here + (1 + i) * k;
            V sum{};
            for (int64_t v = 0; v < vectors; ++v) {
                const V p = load(weights + v * W) * load(mu + v * W);
                sum += p;
                store_narrow(row + v * W, p < 1 ? p : spread(1.0), end - row - v * W);  // the next row overwrites
            }
            other[i] = total<double>(sum);
        }
        std::swap(mu, other);
    }
}

// Runs `work` on the forward sums of a chain, after dealing with what is wrong with its scores. Returns false if there
// is nothing to work on.
template <class T, class Work>
bool with_forward(const ChainView<T>& view, int64_t b, bool keep, FaultBox& faults, Work work) {
    Scratch scratch;
    const Forward forward(scratch, view.length, view.states, keep);
    if (!fill_forward(view, ChainReader<T>(view, scratch), forward)) {
        if (report_nan(view, b, faults)) return false;
        bool infinite = false;
        const double most = std::numeric_limits<double>::max();
        const ChainView<double> tame = copy_chain(view, scratch, [&](double s) {
            infinite |= s > most;
            return s > 1e290 ? 1e290 : s;
        });
        if (infinite) {
            faults.report(FAULT_INFINITE, b);
            return false;
        }
        fill_forward(tame, ChainReader<double>(tame, scratch), forward);
    }
    double *mu = scratch.take<double>(forward.stride), *other = scratch.take<double>(forward.stride);
    const double log_partition = last_states(forward, view.length, view.states, mu);
    if (!(log_partition > minus_infinity<double>) && report_broken(view, b, faults)) return false;
    work(forward, log_partition, mu, other);
    return true;
}

// `marginals` may be null.
template <class T>
void chain_sums(const ChainBatch<T>& chains, T* log_partition, T* marginals, int threads, FaultBox& faults) {
    const int64_t k = chains.states, area = (1 + k) * k, whole = chains.n * area;
    auto body = [&](int64_t b) {
        FlushDenormals flush;
        log_partition[b] = T(0);
        const ChainView<T> view = find_chain(chains, b, faults);
        T* to = marginals ? marginals + b * whole : nullptr;
        const int64_t length = larger<int64_t>(view.length, 0);
        if (to) std::memset(to + length * area, 0, sizeof(T) * (whole - length * area));
        if (!length) return;
        with_forward(view, b, to != nullptr, faults,
                     [&](const Forward& forward, double log, double* mu, double* other) {
                         log_partition[b] = static_cast<T>(log);
                         if (to) write_marginals(view, forward, mu, other, to);
                     });
    };
    parallel_for(chains.batch, worthwhile_threads(5.0 * chains.batch * whole, threads), body);
}

// The derivative of the marginals along a direction. `slope` holds, for each state, the mean of the direction over the
// chains that end in it, without the state's own part.
template <class T>
void write_slopes(const ChainView<T>& view, const ChainReader<T>& direction, const Forward& forward, double* mu,
                  double* mu_before, T* to, Scratch& scratch) {
    constexpr int W = lane_count<double>;
    using V = Lanes<double>;
    const int64_t k = view.states, stride = forward.stride, vectors = vectors_of(k), area = view.area();
    double *mean = scratch.take<double>(view.length * stride), *whole = scratch.take<double>(view.length * stride);
    double *d_mu = scratch.take<double>(stride), *d_before = scratch.take<double>(stride);
    const T* scores;
    const uint8_t* mask;
    const LaneFlags last = first_lanes(k - (vectors - 1) * W), all = first_lanes(W);
    auto turn_to = [&](int64_t t) { scores = direction.scores(t), mask = direction.mask(t); };
    auto part = [&](int64_t row, int64_t v) {
        const int64_t place = row * k + v * W;
        const LaneFlags here = existing_lanes(mask + place) & (v + 1 == vectors ? last : all);
        return choose(here, load_wide(scores + place), V{});
    };
    for (int64_t t = 0; t < view.length; ++t) {
        turn_to(t);
        for (int64_t v = 0; v < vectors; ++v) {
            const int64_t place = t * stride + v * W;
            V sum{};
            for (int64_t i = 0; t && i < k; ++i)
                sum += load(forward.at(t) + i * stride + v * W) * (part(1 + i, v) + whole[(t - 1) * stride + i]);
            sum = quotient(sum, load(forward.sums + place));
            store(mean + place, sum);
            store(whole + place, sum + part(0, v));
        }
    }
    const double* ends = whole + (view.length - 1) * stride;
    double expected = 0;
    for (int64_t j = 0; j < k; ++j) expected += mu[j] > 0 ? mu[j] * ends[j] : 0;
    for (int64_t j = 0; j < stride; ++j) d_mu[j] = j < k && mu[j] > 0 ? mu[j] * (ends[j] - expected) : 0;
    for (int64_t t = view.length - 1; t >= 0; --t) {
        turn_to(t);
        T *here = to + t * area, *end = here + area;
        for (int64_t j = 0; j < stride; j += W) store_narrow(here + j, load(d_mu + j), end - here - j);
        if (t == 0) {
            std::memset(here + k, 0, sizeof(T) * k * k);
            break;
        }
        for (int64_t j = 0; j < stride; j += W) {
            const V sums = load(forward.sums + t * stride + j);
            store(mu + j, quotient(load(mu + j), sums));
            store(d_mu + j, quotient(load(d_mu + j), sums));
        }
        for (int64_t j = 0; j < stride; ++j) mu_before[j] = d_before[j] = 0;
        for (int64_t i = 0; i < k; ++i) {
            T* row = here + (1 + i) * k;
            V sum{}, d_sum{};
            for (int64_t v = 0; v < vectors; ++v) {
                const int64_t j = v * W;
                const V weight = load(forward.at(t) + i * stride + j), p = load(mu + j);
                const V more = part(1 + i, v) + whole[(t - 1) * stride + i] - load(mean + t * stride + j);
                const V change = weight * (load(d_mu + j) + p * more);
                sum += weight * p;
                d_sum += change;
                store_narrow(row + j, change, end - row - j);
            }
            mu_before[i] = total<double>(sum);
            d_before[i] = total<double>(d_sum);
        }
        std::swap(mu, mu_before);
        std::swap(d_mu, d_before);
    }
}

template <class T>
void chain_hessian(const ChainBatch<T>& chains, const T* direction, T* to, int threads, FaultBox& faults) {
    const int64_t k = chains.states, area = (1 + k) * k, whole = chains.n * area;
    auto body = [&](int64_t b) {
        FlushDenormals flush;
        const ChainView<T> view = find_chain(chains, b, faults);
        const int64_t length = larger<int64_t>(view.length, 0);
        std::memset(to + b * whole + length * area, 0, sizeof(T) * (whole - length * area));
        if (!length) return;
        ChainView<T> along = view;
        along.scores = direction + b * whole;
        with_forward(view, b, true, faults, [&](const Forward& forward, double, double* mu, double* other) {
            Scratch scratch;
            const ChainReader<T> reader(along, scratch);
            write_slopes(view, reader, forward, mu, other, to + b * whole, scratch);
        });
    };
    parallel_for(chains.batch, worthwhile_threads(10.0 * chains.batch * whole, threads), body);
}

// The first entry at which the running sum passes a part of the whole; the last with any weight if rounding gets there.
inline int64_t pick(const double* weights, int64_t step, int64_t count, double part) {
    double sum = 0, running = 0;
    for (int64_t i = 0; i < count; ++i) sum += weights[i * step];
    int64_t last = 0;
    for (int64_t i = 0; i < count; ++i) {
        if (!(weights[i * step] > 0)) continue;
        last = i;
        running += weights[i * step];
        if (running > part * sum) break;
    }
    return last;
}

// seeds (batch, samples), z (batch, samples, n, 1 + k, k).
template <class T>
void chain_sample(const ChainBatch<T>& chains, const int64_t* seeds, int64_t samples, T* z, int threads,
                  FaultBox& faults) {
    const int64_t k = chains.states, whole = chains.n * (1 + k) * k;
    auto body = [&](int64_t b) {
        T* to = z + b * samples * whole;
        std::memset(to, 0, sizeof(T) * samples * whole);
        const ChainView<T> view = find_chain(chains, b, faults);
        if (view.length <= 0) return;
        FlushDenormals flush;
        with_forward(view, b, true, faults, [&](const Forward& forward, double log, double* mu, double*) {
            if (!(log > minus_infinity<double>)) {
                faults.report(FAULT_INFINITE, b);
                return;
            }
            Scratch scratch;
            int32_t* states = scratch.take<int32_t>(view.length);
            for (int64_t s = 0; s < samples; ++s) {
                const auto seed = static_cast<uint64_t>(seeds[b * samples + s]);
                int64_t state = 0;
                for (int64_t t = view.length - 1; t >= 0; --t) {
                    const bool last = t + 1 == view.length;
                    const double* weights = last ? mu : forward.at(t + 1) + state;
                    state = pick(weights, last ? 1 : forward.stride, k, uniform(seed, t));
                    states[t] = static_cast<int32_t>(state);
                }
                write_chain(states, view.length, k, to + s * whole);
            }
        });
    };
    parallel_for(chains.batch, worthwhile_threads(5.0 * chains.batch * whole, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
