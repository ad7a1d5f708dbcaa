// The recurrent half of a bidirectional LSTM in single precision, and its derivative.
//
// What the gates get from the inputs is given, for all positions at once. Both ways go step by step over the sentences
// that are still long enough, longest first: padding costs nothing, and the backward direction walks each sentence from
// its own end, without a reversed copy. Weights are laid out once a call, in panels that fit the nearest cache, and a
// panel of the way there holds the four gates of some units, so that gates are computed from sums that have not left
// the registers. The sum of a number does not depend on the other sentences of the batch, nor on the threads.
#pragma once

#include <algorithm>
#include <numeric>

#include "encoders/activations.hpp"
#include "encoders/rows.hpp"
#include "kernels.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int panel_width = 4;  // vectors: the four gates of some units, or as many vectors of units
#if defined(__AVX512F__)
constexpr int sentences_at_once = 6;  // 24 vectors of sums: what the registers hold
#else
constexpr int sentences_at_once = 3;
#endif

// Has a vector loaded once and not anew by every instruction that reads it.
inline void stay(Lanes<float>& v) {
#if defined(__AVX2__)
    __asm__("" : "+v"(v));
#else
    (void)v;
#endif
}

// sums[r][v] += rows[r] times vector v of a panel of `depth` rows of `Vectors` vectors.
// Never inlined: among other arithmetic, the sums would not get the registers they need.
template <int Rows, int Vectors>
__attribute__((noinline)) void add_product(const float* const* rows, const float* panel, int64_t depth, Lanes<float> (&to)[Rows][Vectors]) {
    Lanes<float> sums[Rows][Vectors];  // apart from `to`, so that they stay in registers
    for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < Vectors; ++v) sums[r][v] = to[r][v];
    const float* row[Rows];
    for (int r = 0; r < Rows; ++r) row[r] = rows[r];
    for (int64_t k = 0; k < depth; ++k, panel += Vectors * float_lanes) {
        Lanes<float> x[Rows];
        for (int r = 0; r < Rows; ++r) x[r] = row[r][k] - Lanes<float>{};  // not a sum, which would take an instruction more
        for (int v = 0; v < Vectors; ++v) {
            Lanes<float> w = load(panel + v * float_lanes);
            stay(w);
            for (int r = 0; r < Rows; ++r) sums[r][v] += w * x[r];
        }
    }
    for (int r = 0; r < Rows; ++r)
        for (int v = 0; v < Vectors; ++v) to[r][v] = sums[r][v];
}

template <int Most, class Body>
inline void with_size(int64_t size, Body&& body) {
    if constexpr (Most > 1)
        if (size < Most) return with_size<Most - 1>(size, body);
    body(std::integral_constant<int, Most>());
}

// Calls body(how many, first) for as few groups as can be, all of about the same size.
template <class Body>
inline void in_even_groups(int64_t count, Body&& body) {
    int64_t groups = (count + sentences_at_once - 1) / sentences_at_once;
    for (int64_t first = 0; groups; --groups) {
        const int64_t size = (count - first + groups - 1) / groups;
        with_size<sentences_at_once>(size, [&](auto n) { body(n, first); });
        first += size;
    }
}

// One direction of some of the sentences.
struct Recurrence {
    const RecurrentBatch& given;
    int direction;
    const int32_t* order;  // of these sentences, the longest first
    int64_t count;

    int64_t units() const { return given.units; }
    int64_t row(int64_t b, int64_t step) const {
        const int64_t s = order[b], place = direction ? given.lengths[s] - 1 - step : step;
        return s * given.n + place;
    }
    // How many of the sentences have this step.
    int64_t active(int64_t step) const {
        int64_t some = count;
        while (some && given.lengths[order[some - 1]] <= step) --some;
        return some;
    }
    const float* gates(int64_t row) const { return given.gates[direction] + row * 4 * units(); }
    float* opened(int64_t row) const { return given.opened[direction] + row * 4 * units(); }
    float* cell(int64_t row) const { return given.cells[direction] + row * units(); }
    float* state(int64_t row) const { return given.states + row * 2 * units() + direction * units(); }

    // For each vector of units, its panel: for every state a vector of weights for each gate.
    void lay_out_gates(float* to) const {
        const int64_t size = units();
        for (int64_t u = 0; u < size; u += float_lanes) {
            for (int gate = 0; gate < 4; ++gate)
                for (int64_t lane = 0; lane < float_lanes; ++lane) {
                    float* at = to + gate * float_lanes + lane;
                    const float* from = given.weights[direction] + (gate * size + u + lane) * size;
                    if (u + lane < size)
                        for (int64_t k = 0; k < size; ++k) at[k * 4 * float_lanes] = from[k];
                    else
                        for (int64_t k = 0; k < size; ++k) at[k * 4 * float_lanes] = 0;
                }
            to += size * 4 * float_lanes;
        }
    }

    void walk() const {
        Scratch scratch;
        const int64_t size = units(), panels = (size + float_lanes - 1) / float_lanes;
        float* weights = scratch.take<float>(panels * size * 4 * float_lanes);
        lay_out_gates(weights);
        const float** before = scratch.take<const float*>(count);  // the state and the cell of each sentence
        const float** kept = scratch.take<const float*>(count);
        for (int64_t step = 0, now = active(0); now; now = active(++step)) {
            for (int64_t b = 0; step && b < now; ++b) {
                before[b] = state(row(b, step - 1));
                kept[b] = cell(row(b, step - 1));
            }
            each_vector(size, [&](auto whole, int64_t u) {
                in_even_groups(now, [&](auto n, int64_t b) {
                    open<decltype(n)::value, decltype(whole)::value>(step, b, u, weights + u * size * 4, before, kept);
                });
            });
        }
    }

    // Opens the gates of some units in some sentences, while their sums are in registers.
    template <int Rows, bool Whole>
    void open(int64_t step, int64_t b, int64_t u, const float* panel, const float* const* before,
              const float* const* kept) const {
        const int64_t size = units(), here = size - u;
        Lanes<float> sums[Rows][4];
        for (int r = 0; r < Rows; ++r)
            for (int gate = 0; gate < 4; ++gate)
                sums[r][gate] = load_some<Whole>(gates(row(b + r, step)) + gate * size + u, here);
        if (step) add_product<Rows, 4>(before + b, panel, size, sums);
        for (int r = 0; r < Rows; ++r) {
            const int64_t at = row(b + r, step);
            const Lanes<float> i = sigmoid(sums[r][0]), f = sigmoid(sums[r][1]), g = tanh(sums[r][2]);
            const Lanes<float> o = sigmoid(sums[r][3]);
            const Lanes<float> c = step ? f * load_some<Whole>(kept[b + r] + u, here) + i * g : i * g;
            float* to = opened(at) + u;
            store_some<Whole>(to, i, here);
            store_some<Whole>(to + size, f, here);
            store_some<Whole>(to + 2 * size, g, here);
            store_some<Whole>(to + 3 * size, o, here);
            store_some<Whole>(cell(at) + u, c, here);
            store_some<Whole>(state(at) + u, o * tanh(c), here);
        }
    }

    // Panels of up to `panel_width` vectors of units: for every gate of every unit its weights on these states.
    void lay_out_states(float* to) const {
        const int64_t size = units(), wide = panel_width * float_lanes;
        for (int64_t u = 0; u < size; u += wide) {
            for (int64_t k = 0; k < 4 * size; ++k)
                each_vector(std::min(wide, size - u), [&](auto whole, int64_t at) {
                    store(to, load_some<decltype(whole)::value>(given.weights[direction] + k * size + u + at, size - u - at));
                    to += float_lanes;
                });
        }
    }

    void walk_back() const {
        Scratch scratch;
        const int64_t size = units(), padded = (size + float_lanes - 1) / float_lanes * float_lanes;
        float* weights = scratch.take<float>(4 * size * padded);
        lay_out_states(weights);
        float* later = scratch.take<float>(count * padded);  // what the next step wants of the state, and of the cell
        float* cells = scratch.take<float>(count * padded);
        const float** from = scratch.take<const float*>(count);
        std::fill_n(later, count * padded, 0.0f);
        std::fill_n(cells, count * padded, 0.0f);
        for (int64_t step = count ? given.lengths[order[0]] - 1 : -1; step >= 0; --step) {
            const int64_t now = active(step);
            for (int64_t b = 0; b < now; ++b) {
                close(b, step, later + b * padded, cells + b * padded);
                from[b] = given.wanted_gates[direction] + row(b, step) * 4 * size;
            }
            if (!step) break;
            std::fill_n(later, now * padded, 0.0f);
            for (int64_t u = 0; u < size; u += panel_width * float_lanes) {
                const int64_t vectors = std::min<int64_t>(panel_width, (size - u + float_lanes - 1) / float_lanes);
                for (int64_t gate = 0; gate < 4; ++gate) {  // a quarter of a panel stays in the cache
                    const float* panel = weights + 4 * size * u + gate * size * vectors * float_lanes;
                    in_even_groups(now, [&](auto n, int64_t b) {
                        with_size<panel_width>(vectors, [&](auto v) {
                            spread_back<decltype(n)::value, decltype(v)::value>(from + b, gate * size, panel,
                                                                                later + b * padded + u, padded);
                        });
                    });
                }
            }
        }
    }

    // What the gates of a sentence get back at a step, from what is wanted of its state; the cell keeps the rest.
    void close(int64_t b, int64_t step, const float* later, float* cells) const {
        const int64_t size = units(), at = row(b, step);
        const float* wanted = given.wanted + at * 2 * size + direction * size;
        const float* h = state(at);
        const float* gate = opened(at);
        const float* kept = step ? cell(row(b, step - 1)) : nullptr;
        float* to = given.wanted_gates[direction] + at * 4 * size;
        each_vector(size, [&](auto whole, int64_t u) {
            constexpr bool Whole = decltype(whole)::value;
            const int64_t here = size - u;
            const auto some = [&](const float* from) { return load_some<Whole>(from + u, here); };
            const Lanes<float> i = some(gate), f = some(gate + size), g = some(gate + 2 * size), state = some(h);
            Lanes<float> o = some(gate + 3 * size);
            if (!Whole) o = o > 0 ? o : spread(1.0f);  // lanes that do not exist
            const Lanes<float> dh = some(wanted) + load(later + u);
            // o tanh'(c) = o - h^2 / o, since h = o tanh(c); no gate is ever quite closed.
            const Lanes<float> dc = load(cells + u) + dh * (o - state * state / o);
            store_some<Whole>(to + u, dc * g * i * (1.0f - i), here);
            store_some<Whole>(to + size + u, kept ? dc * some(kept) * f * (1.0f - f) : Lanes<float>{}, here);
            store_some<Whole>(to + 2 * size + u, dc * i * (1.0f - g * g), here);
            store_some<Whole>(to + 3 * size + u, dh * state * (1.0f - o), here);
            store(cells + u, dc * f);
        });
    }

    template <int Rows, int Vectors>
    void spread_back(const float* const* from, int64_t first, const float* panel, float* to, int64_t stride) const {
        const float* rows[Rows];
        Lanes<float> sums[Rows][Vectors];
        for (int r = 0; r < Rows; ++r) {
            rows[r] = from[r] + first;
            for (int v = 0; v < Vectors; ++v) sums[r][v] = load(to + r * stride + v * float_lanes);
        }
        add_product<Rows, Vectors>(rows, panel, units(), sums);
        for (int r = 0; r < Rows; ++r)
            for (int v = 0; v < Vectors; ++v) store(to + r * stride + v * float_lanes, sums[r][v]);
    }
};

// Both directions; with many threads, parts of the batch, of which each lays out the weights for itself.
template <class Body>
inline void each_direction(const RecurrentBatch& given, int threads, Body&& body) {
    Scratch scratch;
    int32_t* order = scratch.take<int32_t>(given.batch);
    std::iota(order, order + given.batch, 0);
    std::stable_sort(order, order + given.batch,
                     [&](int32_t a, int32_t b) { return given.lengths[a] > given.lengths[b]; });
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(threads / 2, given.batch / (2 * sentences_at_once)));
    auto task = [&](int64_t k) {
        const int64_t part = k / 2, first = part * given.batch / parts, end = (part + 1) * given.batch / parts;
        body(Recurrence{given, static_cast<int>(k % 2), order + first, end - first});
    };
    parallel_for(2 * parts, threads, task);
}

inline void recur(const RecurrentBatch& given, int threads) {
    each_direction(given, threads, [](const Recurrence& part) { part.walk(); });
}

inline void recur_back(const RecurrentBatch& given, int threads) {
    each_direction(given, threads, [](const Recurrence& part) { part.walk_back(); });
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
