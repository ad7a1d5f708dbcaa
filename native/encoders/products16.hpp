// Rows of numbers times a matrix of whole ones, as layers of a network need it that only reads.
#pragma once

#include "encoders/numbers16.hpp"
#include "kernels.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int64_t row_block = 96;
constexpr int64_t narrow = unit_lanes / 2;  // outputs so few that a panel would be mostly empty

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

// The product with a matrix of few outputs: each of them is the sum of the products of two rows.
inline void narrow_product(const WholeProduct& given, int threads) {
    Scratch scratch;
    const int64_t outputs = given.outputs, step = 2 * unit_lanes, wide = (given.width + step - 1) / step * step;
    int16_t* weights = scratch.take<int16_t>(outputs * wide);
    std::fill_n(weights, outputs * wide, int16_t(0));
    for (int64_t o = 0; o < outputs; ++o)
        for (int64_t i = 0; i < given.width; ++i)
            weights[o * wide + i] = given.weight[(i / 2 * panel_columns + o) * 2 + i % 2];
    auto body = [&](int64_t block) {
        Scratch scratch;
        int16_t* x = scratch.take<int16_t>(wide);
        const int64_t first = block * row_block, end = std::min(first + row_block, given.rows);
        for (int64_t r = first; r < end; ++r) {
            const float worth = quantise(given.inputs + r * given.width, given.width, wide, x);
            for (int64_t o = 0; o < outputs; ++o) {
                Sums sums{};
                for (int64_t i = 0; i < wide; i += step) {
                    Pairs a, b;
                    std::memcpy(&a, weights + o * wide + i, sizeof a);
                    std::memcpy(&b, x + i, sizeof b);
                    add_pair_products(sums, a, b);
                }
                int32_t sum = 0;
                for (int lane = 0; lane < unit_lanes; ++lane) sum += sums[lane];
                given.results[r * outputs + o] = float(sum) * (given.scale[o] * worth) + given.bias[o];
            }
        }
    };
    parallel_for((given.rows + row_block - 1) / row_block, threads, body);
}

// (rows, width) numbers times a matrix of whole ones: (rows, outputs).
inline void whole_product(const WholeProduct& given, int threads) {
    if (given.outputs <= narrow) return narrow_product(given, threads);
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
