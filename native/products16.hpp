// Rows of numbers times a matrix of whole ones, as layers of a network need it that only reads.
#pragma once

#include "kernels.hpp"
#include "numbers16.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int64_t row_block = 96;

inline Lanes<float> floats(Sums s) { return __builtin_convertvector(s, Lanes<float>); }

// A matrix in panels of `panel_columns` columns: for every pair of inputs, a pair of weights for each of them.
struct Panels {
    const int16_t* weight;
    const float* scale;
    const float* bias;
    int64_t count, pairs;
};

// Calls put(row, column, values) for each vector of the product of some rows, as whole numbers, with all panels.
template <class Put>
inline void times_panels(const Panels& given, const int16_t* x, const float* worth, int64_t count, Put&& put) {
    for (int64_t p = 0; p < given.count; ++p) {
        const int16_t* panel = given.weight + p * given.pairs * 2 * panel_columns;
        const float* scale = given.scale + p * panel_columns;
        const float* bias = given.bias + p * panel_columns;
        in_groups(count, [&](auto n, int64_t r) {
            constexpr int Rows = decltype(n)::value;
            const int16_t* rows[Rows];
            for (int i = 0; i < Rows; ++i) rows[i] = x + (r + i) * 2 * given.pairs;
            Sums sums[Rows][panel_vectors];
            multiply<Rows, panel_vectors>(rows, panel, given.pairs, sums);
            for (int i = 0; i < Rows; ++i)
                for (int v = 0; v < panel_vectors; ++v) {
                    const int64_t at = v * unit_lanes;
                    put(r + i, p * panel_columns + at,
                        floats(sums[i][v]) * (load(scale + at) * worth[r + i]) + load(bias + at));
                }
        });
    }
}

// (rows, width) numbers times a matrix of whole ones: (rows, outputs).
inline void whole_product(const WholeProduct& given, int threads) {
    const int64_t outputs = given.outputs, pairs = (given.width + 1) / 2;
    const Panels panels{given.weight, given.scale, given.bias, (outputs + panel_columns - 1) / panel_columns, pairs};
    auto body = [&](int64_t block) {
        Scratch scratch;
        const int64_t first = block * row_block, count = std::min(row_block, given.rows - first);
        int16_t* x = scratch.take<int16_t>(count * 2 * pairs);
        float* worth = scratch.take<float>(count);
        for (int64_t r = 0; r < count; ++r)
            worth[r] = quantise(given.inputs + (first + r) * given.width, given.width, 2 * pairs, x + r * 2 * pairs);
        float* to = given.results + first * outputs;
        times_panels(panels, x, worth, count, [&](int64_t row, int64_t column, Lanes<float> sum) {
            if (column + unit_lanes <= outputs)
                store(to + row * outputs + column, sum);
            else if (column < outputs)
                std::memcpy(to + row * outputs + column, &sum, (outputs - column) * sizeof(float));
        });
    };
    parallel_for((given.rows + row_block - 1) / row_block, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
