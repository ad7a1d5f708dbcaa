// The best label of each pair of words by a biaffine score, for reading only: all labels of all pairs are scored, and
// nothing is ever written but the best.
//
// What a dependent makes of a head, for each label, is a product of whole numbers; a block of dependents at a time, so
// that it is still near when it is multiplied with the heads. There the heads of a sentence are the columns: a vector
// holds the sums of several heads for one label, and the best of them so far need not be looked for across lanes.
#pragma once

#include "encoders/products16.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int64_t dependent_block = 16;

// Heads as whole numbers, in panels of at most `panel_vectors` vectors of columns.
struct HeadPanels {
    int64_t pairs, vectors;  // vectors of heads
    int16_t* weight;         // panel after panel: (pairs, columns, 2)
    float* worth;            // of each head, zeros behind the last

    // `head(i)` is where the numbers of the i-th of them begin.
    template <class Head>
    HeadPanels(Head&& head, int64_t count, int64_t width, Scratch& scratch)
        : pairs((width + 1) / 2), vectors((count + unit_lanes - 1) / unit_lanes) {
        const int64_t padded = vectors * unit_lanes;
        weight = scratch.take<int16_t>(padded * 2 * pairs);
        worth = scratch.take<float>(padded);
        std::fill_n(weight, padded * 2 * pairs, int16_t(0));
        std::fill_n(worth, padded, 0.0f);
        int16_t* row = scratch.take<int16_t>(2 * pairs + 2 * unit_lanes);
        for (int64_t i = 0; i < count; ++i) {
            worth[i] = quantise(head(i), width, 2 * pairs, row);
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

// Calls put(label, v, scores) for every label of one dependent and every vector v of the heads of a panel.
template <int Vectors, class Put>
inline void score_panel(const LabelRows& given, const int16_t* panel, const float* worth, Put&& put) {
    constexpr int rows_here = Vectors == 1 ? 8 : Vectors == 2 ? 4 : 2;  // enough sums at a time to hide how long one takes
    auto some = [&](auto n, int64_t label) {
        constexpr int Rows = decltype(n)::value;
        const int16_t* rows[Rows];
        for (int r = 0; r < Rows; ++r) rows[r] = given.rows + (label + r) * 2 * given.pairs;
        Sums sums[Rows][Vectors];
        multiply<Rows, Vectors>(rows, panel, given.pairs, sums);
        for (int r = 0; r < Rows; ++r)
            for (int v = 0; v < Vectors; ++v)
                put(label + r, v,
                    floats(sums[r][v]) * (load(worth + v * unit_lanes) * given.worth[label + r]) + given.alone[label + r]);
    };
    int64_t label = 0;
    for (; label + rows_here <= given.labels; label += rows_here) some(std::integral_constant<int, rows_here>(), label);
    for (; label < given.labels; ++label) some(std::integral_constant<int, 1>(), label);
}

// Calls body(vectors, panel, first) for each panel of heads: how many vectors it has, as a constant, and its first column.
template <class Body>
inline void for_each_panel(const HeadPanels& heads, Body&& body) {
    for (int64_t p = 0; p < heads.panels(); ++p) {
        const int64_t first = p * panel_columns;
        switch (heads.vectors_of(p)) {
            case 1: body(std::integral_constant<int, 1>(), heads.panel(p), first); break;
            case 2: body(std::integral_constant<int, 2>(), heads.panel(p), first); break;
            case 3: body(std::integral_constant<int, 3>(), heads.panel(p), first); break;
            default: body(std::integral_constant<int, 4>(), heads.panel(p), first); break;
        }
    }
}

// What dependents make of heads, some dependents at a time.
class Turned {
public:
    Turned(const Panels& turning, int64_t width, int64_t labels, Scratch& scratch)
        : turning_(turning), width_(width), labels_(labels), columns_(turning.count * panel_columns) {
        x_ = scratch.take<int16_t>(dependent_block * 2 * turning.pairs + 2 * unit_lanes);
        worth_ = scratch.take<float>(dependent_block);
        turned_ = scratch.take<float>(dependent_block * columns_);
        rows_ = scratch.take<int16_t>(labels * 2 * turning.pairs + 2 * unit_lanes);
        row_worth_ = scratch.take<float>(labels);
        alone_ = scratch.take<float>(labels);
    }
    // Calls body(r, rows) for each of `count` dependents; `dependent(r)` is where the numbers of the r-th begin.
    template <class Dependent, class Body>
    void each(int64_t count, Dependent&& dependent, Body&& body) {
        const int64_t padded = 2 * turning_.pairs;
        for (int64_t first = 0; first < count; first += dependent_block) {
            const int64_t here = std::min(dependent_block, count - first);
            for (int64_t r = 0; r < here; ++r) worth_[r] = quantise(dependent(first + r), width_, padded, x_ + r * padded);
            times_panels(turning_, x_, worth_, here, [&](int64_t row, int64_t column, Lanes<float> sum) {
                store(turned_ + row * columns_ + column, sum);
            });
            for (int64_t r = 0; r < here; ++r) {
                for (int64_t l = 0; l < labels_; ++l) {
                    const float* from = turned_ + r * columns_ + l * (width_ + 1);
                    row_worth_[l] = quantise(from, width_, padded, rows_ + l * padded);
                    alone_[l] = from[width_];
                }
                body(first + r, LabelRows{rows_, row_worth_, alone_, labels_, turning_.pairs});
            }
        }
    }

private:
    const Panels turning_;
    const int64_t width_, labels_, columns_;
    int16_t *x_, *rows_;
    float *worth_, *turned_, *row_worth_, *alone_;
};

// The matrix that makes of a dependent, for each label, what a head is multiplied with, and what is added.
inline Panels turning_panels(const int16_t* weight, const float* scale, const float* bias, int64_t width, int64_t labels) {
    return {weight, scale, bias, (labels * (width + 1) + panel_columns - 1) / panel_columns, (width + 1) / 2};
}

// The best label of one dependent for the heads of a panel of `Vectors` vectors; of equals the first. The label `root`,
// if there is one, is for the first head alone; what it scores there goes to `of_root`.
template <int Vectors>
inline void best_of_panel(const LabelRows& given, const int16_t* panel, const float* worth, int64_t root, float* best,
                          int32_t* which, float* of_root) {
    Lanes<float> most[Vectors];
    Sums place[Vectors];
    for (int v = 0; v < Vectors; ++v) most[v] = spread(minus_infinity<float>), place[v] = Sums{} - 1;
    score_panel<Vectors>(given, panel, worth, [&](int64_t label, int v, Lanes<float> score) {
        if (label == root) {
            if (v == 0) *of_root = score[0];
            return;
        }
        const Sums better = (Sums)(score > most[v]);
        most[v] = better ? score : most[v];
        place[v] = better ? Sums{} + int32_t(label) : place[v];
    });
    for (int v = 0; v < Vectors; ++v) {
        store(best + v * unit_lanes, most[v]);
        std::memcpy(which + v * unit_lanes, &place[v], sizeof place[v]);
    }
}

inline void best_of_sentence(const BestProducts& given, int64_t sentence) {
    Scratch scratch;
    const int64_t n = given.n, width = given.width, count = given.lengths[sentence];
    float* best = given.best + sentence * n * n;
    int32_t* which = given.which + sentence * n * n;
    std::fill_n(best, n * n, minus_infinity<float>);
    std::fill_n(which, n * n, int32_t(-1));
    const HeadPanels heads([&](int64_t i) { return given.heads + (sentence * n + i) * width; }, count, width, scratch);
    Turned turned(turning_panels(given.weight, given.scale, given.bias, width, given.labels), width, given.labels, scratch);
    float* most = scratch.take<float>(heads.vectors * unit_lanes);
    int32_t* place = scratch.take<int32_t>(heads.vectors * unit_lanes);
    // The root depends on nothing.
    turned.each(count - 1, [&](int64_t r) { return given.dependents + (sentence * n + 1 + r) * width; },
                [&](int64_t r, const LabelRows& rows) {
        for_each_panel(heads, [&](auto vectors, const int16_t* panel, int64_t at) {
            float of_root = 0;
            best_of_panel<decltype(vectors)::value>(rows, panel, heads.worth + at, given.root, most + at, place + at, &of_root);
            if (at == 0 && given.root >= 0) most[0] = of_root, place[0] = static_cast<int32_t>(given.root);
        });
        for (int64_t i = 0; i < count; ++i) {
            best[i * n + 1 + r] = most[i];
            which[i * n + 1 + r] = place[i];
        }
    });
}

inline void best_products(const BestProducts& given, int threads) {
    auto body = [&](int64_t sentence) { best_of_sentence(given, sentence); };
    parallel_for(given.batch, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
