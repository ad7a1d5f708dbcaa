// Rows of numbers times a matrix of whole ones, as layers of a network need it that only reads.
#pragma once

#include "kernels.hpp"
#include "numbers8.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int64_t row_block = 96;

inline Lanes<float> floats(Sums s) { return __builtin_convertvector(s, Lanes<float>); }

// A matrix in panels of `panel_columns` columns: for every two inputs, or four in eight bits, their weights for each column.
struct Panels {
    WholeMatrix matrix;
    int64_t count, width, padded;  // panels, inputs, and inputs with those that fill up

    Panels(const WholeMatrix& given, int64_t inputs, int64_t outputs)
        : matrix(given), count((outputs + panel_columns - 1) / panel_columns), width(inputs),
          padded(given.totals ? (inputs + 7) / 8 * 8 : (inputs + 1) / 2 * 2) {}
    bool eight() const { return matrix.totals != nullptr; }
};

// Some rows as the whole numbers that a matrix is multiplied with.
class WholeRows {
public:
    WholeRows(const Panels& panels, int64_t count, Scratch& scratch) : panels_(panels) {
        numbers_ = scratch.take<int16_t>(count * panels.padded + 2 * unit_lanes);  // in eight bits, half of it
        worth_ = scratch.take<float>(count);
        least_ = scratch.take<int32_t>(count);
    }
    void put(int64_t r, const float* row) {
        worth_[r] = panels_.eight() ? Eight::quantise(row, panels_.width, panels_.padded, at<Eight>(r), least_[r])
                                    : Sixteen::quantise(row, panels_.width, panels_.padded, at<Sixteen>(r), least_[r]);
    }
    template <class Numbers>
    typename Numbers::Input* at(int64_t r) const {
        return reinterpret_cast<typename Numbers::Input*>(numbers_) + r * panels_.padded;
    }
    float worth(int64_t r) const { return worth_[r]; }
    int32_t least(int64_t r) const { return least_[r]; }

private:
    const Panels& panels_;
    int16_t* numbers_;
    float* worth_;
    int32_t* least_;
};

template <class Numbers, class Put>
inline void times_panels_in(const Panels& given, const WholeRows& x, int64_t count, Put&& put) {
    using Weight = typename Numbers::Weight;
    const Weight* weight = static_cast<const Weight*>(given.matrix.weight);
    for (int64_t p = 0; p < given.count; ++p) {
        const Weight* panel = weight + p * given.padded * panel_columns;
        const float* scale = given.matrix.scale + p * panel_columns;
        const float* bias = given.matrix.bias + p * panel_columns;
        const int32_t* totals = given.matrix.totals + (given.eight() ? p * panel_columns : 0);
        in_groups<Numbers::at_once>(count, [&](auto n, int64_t r) {
            constexpr int Rows = decltype(n)::value;
            const typename Numbers::Input* rows[Rows];
            for (int i = 0; i < Rows; ++i) rows[i] = x.at<Numbers>(r + i);
            Sums sums[Rows][panel_vectors];
            Numbers::template multiply<Rows, panel_vectors>(rows, panel, given.padded, sums);
            for (int i = 0; i < Rows; ++i)
                for (int v = 0; v < panel_vectors; ++v) {
                    const int64_t at = v * unit_lanes;
                    const Sums sum = sums[i][v] + Numbers::missing(totals + at, x.least(r + i));
                    put(r + i, p * panel_columns + at, floats(sum) * (load(scale + at) * x.worth(r + i)) + load(bias + at));
                }
        });
    }
}

// Calls put(row, column, values) for each vector of the product of some rows with all panels.
template <class Put>
inline void times_panels(const Panels& given, const WholeRows& x, int64_t count, Put&& put) {
    given.eight() ? times_panels_in<Eight>(given, x, count, put) : times_panels_in<Sixteen>(given, x, count, put);
}

// (rows, width) numbers times a matrix of whole ones: (rows, outputs).
inline void whole_product(const WholeProduct& given, int threads) {
    const int64_t outputs = given.outputs;
    const Panels panels(given.matrix, given.width, outputs);
    auto body = [&](int64_t block) {
        Scratch scratch;
        const int64_t first = block * row_block, count = std::min(row_block, given.rows - first);
        WholeRows x(panels, count, scratch);
        for (int64_t r = 0; r < count; ++r) x.put(r, given.inputs + (first + r) * given.width);
        float* to = given.results + first * outputs;
        times_panels(panels, x, count, [&](int64_t row, int64_t column, Lanes<float> sum) {
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
