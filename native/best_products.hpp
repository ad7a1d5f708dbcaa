// The best label of each pair of words by a biaffine score, for reading only: all labels of all pairs are scored, and
// nothing is ever written but the best.
//
// What a dependent makes of a head, for each label, is a product of whole numbers; a block of dependents at a time, so
// that it is still near when it is multiplied with the heads. There the heads of a sentence are the columns: a vector
// holds the sums of several heads for one label, and the best of them so far need not be looked for across lanes.
#pragma once

#include "products16.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int64_t dependent_block = 16;

// The heads of a sentence as whole numbers, in panels of at most `panel_vectors` vectors of columns.
struct HeadPanels {
    int64_t pairs, vectors;  // vectors of heads
    int16_t* weight;         // panel after panel: (pairs, columns, 2)
    float* worth;            // of each head, zeros behind the last

    HeadPanels(const float* heads, int64_t count, int64_t width, Scratch& scratch)
        : pairs((width + 1) / 2), vectors((count + unit_lanes - 1) / unit_lanes) {
        const int64_t padded = vectors * unit_lanes;
        weight = scratch.take<int16_t>(padded * 2 * pairs);
        worth = scratch.take<float>(padded);
        std::fill_n(weight, padded * 2 * pairs, int16_t(0));
        std::fill_n(worth, padded, 0.0f);
        int16_t* row = scratch.take<int16_t>(2 * pairs + 2 * unit_lanes);
        for (int64_t i = 0; i < count; ++i) {
            worth[i] = quantise(heads + i * width, width, 2 * pairs, row);
            const int64_t panel = i / panel_columns, column = i % panel_columns;
            int16_t* to = weight + panel * panel_columns * 2 * pairs;
            const int64_t columns = columns_of(panel);
            for (int64_t k = 0; k < pairs; ++k) std::memcpy(to + (k * columns + column) * 2, row + 2 * k, 2 * sizeof(int16_t));
        }
    }
    int64_t panels() const { return (vectors + panel_vectors - 1) / panel_vectors; }
    int64_t vectors_of(int64_t panel) const { return std::min<int64_t>(panel_vectors, vectors - panel * panel_vectors); }
    int64_t columns_of(int64_t panel) const { return vectors_of(panel) * unit_lanes; }
    const int16_t* panel(int64_t p) const { return weight + p * panel_columns * 2 * pairs; }
};

// What one dependent makes of heads: a row of whole numbers for each label, and what is added for any head.
struct LabelRows {
    const int16_t* rows;
    const float* worth;
    const float* alone;
    int64_t labels, pairs;
};

// The best label of one dependent for the heads of a panel of `Vectors` vectors; of equals the first.
template <int Vectors>
inline void best_of_panel(const LabelRows& given, const int16_t* panel, const float* worth, float* best, int32_t* which) {
    constexpr int rows_here = Vectors == 1 ? 8 : Vectors == 2 ? 4 : 2;  // enough sums at a time to hide how long one takes
    Lanes<float> most[Vectors];
    Sums place[Vectors];
    for (int v = 0; v < Vectors; ++v) most[v] = spread(minus_infinity<float>), place[v] = Sums{} - 1;
    auto some = [&](auto n, int64_t label) {
        constexpr int Rows = decltype(n)::value;
        const int16_t* rows[Rows];
        for (int r = 0; r < Rows; ++r) rows[r] = given.rows + (label + r) * 2 * given.pairs;
        Sums sums[Rows][Vectors];
        multiply<Rows, Vectors>(rows, panel, given.pairs, sums);
        for (int r = 0; r < Rows; ++r)
            for (int v = 0; v < Vectors; ++v) {
                const Lanes<float> score =
                    floats(sums[r][v]) * (load(worth + v * unit_lanes) * given.worth[label + r]) + given.alone[label + r];
                const Sums better = (Sums)(score > most[v]);
                most[v] = better ? score : most[v];
                place[v] = better ? Sums{} + int32_t(label + r) : place[v];
            }
    };
    int64_t label = 0;
    for (; label + rows_here <= given.labels; label += rows_here) some(std::integral_constant<int, rows_here>(), label);
    for (; label < given.labels; ++label) some(std::integral_constant<int, 1>(), label);
    for (int v = 0; v < Vectors; ++v) {
        store(best + v * unit_lanes, most[v]);
        std::memcpy(which + v * unit_lanes, &place[v], sizeof place[v]);
    }
}

inline void best_of_sentence(const BestProducts& given, int64_t sentence) {
    Scratch scratch;
    const int64_t n = given.n, width = given.width, labels = given.labels, wide = width + 1;
    const int64_t count = given.lengths[sentence], pairs = (width + 1) / 2;
    float* best = given.best + sentence * n * n;
    int32_t* which = given.which + sentence * n * n;
    std::fill_n(best, n * n, minus_infinity<float>);
    std::fill_n(which, n * n, int32_t(-1));
    const HeadPanels heads(given.heads + sentence * n * width, count, width, scratch);
    const int64_t columns = (labels * wide + panel_columns - 1) / panel_columns * panel_columns;
    const Panels turning{given.weight, given.scale, given.bias, columns / panel_columns, pairs};
    int16_t* x = scratch.take<int16_t>(dependent_block * 2 * pairs + 2 * unit_lanes);
    float* worth = scratch.take<float>(dependent_block);
    float* turned = scratch.take<float>(dependent_block * columns);
    int16_t* rows = scratch.take<int16_t>(labels * 2 * pairs + 2 * unit_lanes);
    float* row_worth = scratch.take<float>(labels);
    float* alone = scratch.take<float>(labels);
    float* most = scratch.take<float>(heads.vectors * unit_lanes);
    int32_t* place = scratch.take<int32_t>(heads.vectors * unit_lanes);
    for (int64_t first = 1; first < count; first += dependent_block) {  // the root depends on nothing
        const int64_t here = std::min(dependent_block, count - first);
        for (int64_t r = 0; r < here; ++r)
            worth[r] = quantise(given.dependents + (sentence * n + first + r) * width, width, 2 * pairs, x + r * 2 * pairs);
        times_panels(turning, x, worth, here,
                     [&](int64_t row, int64_t column, Lanes<float> sum) { store(turned + row * columns + column, sum); });
        for (int64_t r = 0; r < here; ++r) {
            for (int64_t l = 0; l < labels; ++l) {
                const float* from = turned + r * columns + l * wide;
                row_worth[l] = quantise(from, width, 2 * pairs, rows + l * 2 * pairs);
                alone[l] = from[width];
            }
            const LabelRows made{rows, row_worth, alone, labels, pairs};
            for (int64_t p = 0; p < heads.panels(); ++p) {
                const int64_t at = p * panel_columns;
                switch (heads.vectors_of(p)) {
                    case 1: best_of_panel<1>(made, heads.panel(p), heads.worth + at, most + at, place + at); break;
                    case 2: best_of_panel<2>(made, heads.panel(p), heads.worth + at, most + at, place + at); break;
                    case 3: best_of_panel<3>(made, heads.panel(p), heads.worth + at, most + at, place + at); break;
                    default: best_of_panel<4>(made, heads.panel(p), heads.worth + at, most + at, place + at); break;
                }
            }
            for (int64_t i = 0; i < count; ++i) {
                best[i * n + first + r] = most[i];
                which[i * n + first + r] = place[i];
            }
        }
    }
}

inline void best_products(const BestProducts& given, int threads) {
    auto body = [&](int64_t sentence) { best_of_sentence(given, sentence); };
    parallel_for(given.batch, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
