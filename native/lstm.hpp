// One layer of a bidirectional LSTM over sentences of any lengths, for reading only: no gradients.
//
// What the gates get from the inputs is there already. The recurrent part goes step by step over the sentences that are
// still long enough, longest first: padding costs nothing, and the backward direction walks each sentence from its own end,
// without a reversed copy. A panel of weights holds the four gates of some units, so that the gates are computed from sums
// that have not left the registers.
#pragma once

#include <numeric>

#include "activations.hpp"
#include "kernels.hpp"
#include "products16.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

struct LstmWork {
    const LstmBatch& given;
    const int32_t* order;  // sentences, the longest first

    // One direction of all sentences.
    template <class Numbers>
    void walk(int direction) const {
        using Input = typename Numbers::Input;
        using Weight = typename Numbers::Weight;
        Scratch scratch;
        const WholeMatrix& w = given.weights[direction];
        const int64_t units = given.units, batch = given.batch;
        const Panels matrix(w, units, (units + unit_lanes - 1) / unit_lanes * panel_columns);
        const int64_t panels = matrix.count, padded = panels * unit_lanes;
        const int64_t wide = std::max(padded, matrix.padded);  // of a state: the units that fill up have no weights
        Input* state = scratch.take<Input>(batch * wide);      // of each sentence, as whole numbers
        float* now = scratch.take<float>(batch * padded);
        float* cells = scratch.take<float>(batch * padded);
        const float** from = scratch.take<const float*>(batch);
        std::fill_n(state, batch * wide, Numbers::no_state);
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
                from[b] = given.gates[direction] + given.place[s * given.n + place] * panels * panel_columns;
            }
            for (int64_t p = 0; p < panels; ++p) {
                const Weight* panel = static_cast<const Weight*>(w.weight) + p * matrix.padded * panel_columns;
                const float* scale = w.scale + p * panel_columns;
                const int32_t* totals = w.totals + (matrix.eight() ? p * panel_columns : 0);
                in_groups<Numbers::at_once>(active, [&](auto n, int64_t b) {
                    constexpr int Rows = decltype(n)::value;
                    const Input* rows[Rows];
                    for (int i = 0; i < Rows; ++i) {
                        rows[i] = state + (b + i) * wide;
                        const char* needed = reinterpret_cast<const char*>(from[b + i] + p * panel_columns);
                        for (int line = 0; line < panel_columns * 4; line += 64) __builtin_prefetch(needed + line);
                    }
                    Sums sums[Rows][panel_vectors];
                    Numbers::template multiply<Rows, panel_vectors>(rows, panel, step ? matrix.padded : 0, sums);
                    for (int i = 0; i < Rows; ++i) {
                        const float* given_gates = from[b + i] + p * panel_columns;
                        Lanes<float> gate[panel_vectors];
                        for (int v = 0; v < panel_vectors; ++v) {
                            const int64_t at = v * unit_lanes;
                            const Sums missing = Numbers::missing(totals + at, step ? Numbers::least_state : 0);
                            gate[v] = load(given_gates + at) + floats(sums[i][v] + missing) * load(scale + at);
                        }
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
                Numbers::round_states(h, padded, state + b * wide);
            }
        }
    }
};

inline void lstm_states(const LstmBatch& given, int threads) {
    Scratch scratch;
    int32_t* order = scratch.take<int32_t>(given.batch);
    std::iota(order, order + given.batch, 0);
    std::stable_sort(order, order + given.batch,
                     [&](int32_t a, int32_t b) { return given.lengths[a] > given.lengths[b]; });
    const LstmWork work{given, order};
    auto walk = [&](int64_t direction) {
        const int way = static_cast<int>(direction);
        given.weights[way].totals ? work.walk<Eight>(way) : work.walk<Sixteen>(way);
    };
    parallel_for(2, threads, walk);
}

// tanh of every number, in place.
inline void tanh_all(float* values, int64_t count, int threads) {
    constexpr int64_t block = 1 << 14;
    auto body = [&](int64_t task) {
        float* at = values + task * block;
        const int64_t here = std::min(block, count - task * block);
        int64_t i = 0;
        for (; i + unit_lanes <= here; i += unit_lanes) store(at + i, tanh(load(at + i)));
        if (i < here) {
            Lanes<float> rest{};
            std::memcpy(&rest, at + i, (here - i) * sizeof(float));
            rest = tanh(rest);
            std::memcpy(at + i, &rest, (here - i) * sizeof(float));
        }
    };
    parallel_for((count + block - 1) / block, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
