// One layer of a bidirectional LSTM over sentences of any lengths, for reading only: no gradients.
//
// What the gates get from the inputs is one product of matrices for all positions. The recurrent part goes step by step
// over the sentences that are still long enough, longest first: padding costs nothing, and the backward direction walks
// each sentence from its own end, without a reversed copy. A panel of weights holds the four gates of some units, so
// that the gates are computed from sums that have not left the registers.
#pragma once

#include <numeric>
#include <vector>

#include "encoders/activations.hpp"
#include "encoders/products16.hpp"
#include "encoders/rows.hpp"
#include "kernels.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

struct LstmWork {
    const LstmBatch& given;
    int64_t units, panels, padded, pairs, state_pairs;
    float* gates[2];       // what the inputs give each gate: (rows, panels, panel_columns)
    const int32_t* order;  // sentences, the longest first

    // Quantises some rows and multiplies them with the input weights of both directions.
    void project(int64_t block) const {
        Scratch scratch;
        const int64_t first = block * row_block, count = std::min(row_block, given.rows - first);
        int16_t* x = scratch.take<int16_t>(count * 2 * pairs);
        float* worth = scratch.take<float>(count);
        for (int direction = 0; direction < 2; ++direction) {
            const float* inputs = given.inputs + first * given.stride + direction * given.apart;
            for (int64_t r = 0; r < count && (!direction || given.apart); ++r)
                worth[r] = quantise(inputs + r * given.stride, given.width, 2 * pairs, x + r * 2 * pairs);
            const LstmWeights& w = given.weights[direction];
            float* to = gates[direction] + first * panels * panel_columns;
            times_panels({w.input, w.input_scale, w.bias, panels, pairs}, x, worth, count,
                         [&](int64_t row, int64_t column, Lanes<float> sum) {
                             store(to + row * panels * panel_columns + column, sum);
                         });
        }
    }

    // One direction of all sentences.
    void walk(int direction) const {
        Scratch scratch;
        const LstmWeights& w = given.weights[direction];
        const int64_t batch = given.batch, wide = padded;  // of a state: the units that fill up have no weights
        int16_t* state = scratch.take<int16_t>(batch * wide);  // of each sentence, as whole numbers
        float* now = scratch.take<float>(batch * padded);
        float* cells = scratch.take<float>(batch * padded);
        const float** from = scratch.take<const float*>(batch);
        std::fill_n(state, batch * wide, int16_t(0));
        std::fill_n(cells, batch * padded, 0.0f);
        for (int64_t s = 0; s < batch; ++s)  // nothing behind the end of a sentence
            for (int64_t place = given.lengths[s]; place < given.n; ++place)
                std::fill_n(given.states + (s * given.n + place) * 2 * units + direction * units, units, 0.0f);
        int64_t active = batch;
        for (int64_t step = 0;; ++step) {
            while (active && given.lengths[order[active - 1]] <= step) --active;
            if (!active) break;
            for (int64_t b = 0; b < active; ++b) {
                const int64_t s = order[b], place = direction ? given.lengths[s] - 1 - step : step;
                from[b] = gates[direction] + given.place[s * given.n + place] * panels * panel_columns;
            }
            for (int64_t p = 0; p < panels; ++p) {
                const int16_t* panel = w.state + p * state_pairs * 2 * panel_columns;
                const float* scale = w.state_scale + p * panel_columns;
                in_groups(active, [&](auto n, int64_t b) {
                    constexpr int Rows = decltype(n)::value;
                    const int16_t* rows[Rows];
                    for (int i = 0; i < Rows; ++i) {
                        rows[i] = state + (b + i) * wide;
                        const char* needed = reinterpret_cast<const char*>(from[b + i] + p * panel_columns);
                        for (int line = 0; line < panel_columns * 4; line += 64) __builtin_prefetch(needed + line);
                    }
                    Sums sums[Rows][panel_vectors];
                    multiply<Rows, panel_vectors>(rows, panel, step ? state_pairs : 0, sums);
                    for (int i = 0; i < Rows; ++i) {
                        const float* given_gates = from[b + i] + p * panel_columns;
                        Lanes<float> gate[panel_vectors];
                        for (int v = 0; v < panel_vectors; ++v)
                            gate[v] = load(given_gates + v * unit_lanes) +
                                      floats(sums[i][v]) * load(scale + v * unit_lanes);
                        float* cell = cells + (b + i) * padded + p * unit_lanes;
                        Lanes<float> c = load(cell), h;
                        open_gates(gate, c, h);
                        store(cell, c);
                        store(now + (b + i) * padded + p * unit_lanes, h);
                    }
                });
            }
            for (int64_t b = 0; b < active; ++b) {
                const int64_t s = order[b], place = direction ? given.lengths[s] - 1 - step : step;
                const float* h = now + b * padded;
                std::memcpy(given.states + (s * given.n + place) * 2 * units + direction * units, h, units * sizeof(float));
                round_to(h, float(largest_activation), padded, state + b * wide);
            }
        }
    }
};

inline void lstm_layer(const LstmBatch& given, int threads) {
    Scratch scratch;
    LstmWork work{given};
    work.units = given.units;
    work.panels = (given.units + unit_lanes - 1) / unit_lanes;
    work.padded = work.panels * unit_lanes;
    work.pairs = (given.width + 1) / 2;
    work.state_pairs = (given.units + 1) / 2;
    const int64_t room = given.rows * work.panels * panel_columns;
    for (auto& gates : work.gates) gates = scratch.take<float>(room);
    int32_t* order = scratch.take<int32_t>(given.batch);
    std::iota(order, order + given.batch, 0);
    std::stable_sort(order, order + given.batch,
                     [&](int32_t a, int32_t b) { return given.lengths[a] > given.lengths[b]; });
    work.order = order;
    auto project = [&](int64_t block) { work.project(block); };
    parallel_for((given.rows + row_block - 1) / row_block, threads, project);
    auto walk = [&](int64_t direction) { work.walk(static_cast<int>(direction)); };
    parallel_for(2, threads, walk);
}

// tanh of every number; `to` may be where they stand.
inline void tanh_all(const float* values, float* to, int64_t count, int threads) {
    constexpr int64_t block = 1 << 14;
    auto body = [&](int64_t task) {
        const int64_t first = task * block, here = std::min(block, count - first);
        each_vector(here, [&](auto whole, int64_t i) {
            constexpr bool Whole = decltype(whole)::value;
            store_some<Whole>(to + first + i, tanh(load_some<Whole>(values + first + i, here - i)), here - i);
        });
    };
    parallel_for((count + block - 1) / block, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
