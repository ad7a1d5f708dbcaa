// Products of matrices of 16-bit whole numbers. Sums are exact, so that an answer depends neither on the order of
// addition, nor on the batch a row is in, nor on the machine.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "lanes.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int unit_lanes = lane_count<float>;  // columns in a vector of 32-bit sums
constexpr int panel_vectors = 4;               // vectors of columns in a panel: for an LSTM its four gates
constexpr int panel_columns = panel_vectors * unit_lanes;
constexpr int32_t largest_activation = 4095;  // twelve bits; weights are scaled so that no sum of a row can overflow

#if defined(__AVX512F__)
constexpr int rows_at_once = 6;
#else
constexpr int rows_at_once = 2;
#endif

typedef int16_t Pairs __attribute__((vector_size(SPIGOT_VECTOR_BYTES)));
typedef int32_t Sums __attribute__((vector_size(SPIGOT_VECTOR_BYTES)));

// To each 32-bit lane, adds the two products of its halves.
inline void add_pair_products(Sums& to, Pairs a, Pairs b) {
#if defined(__AVX512VNNI__)
    to = (Sums)_mm512_dpwssd_epi32((__m512i)to, (__m512i)a, (__m512i)b);
#elif defined(__AVX512BW__)
    to += (Sums)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
    to += (Sums)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
    to += (Sums)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
    for (int i = 0; i < unit_lanes; ++i) to[i] += int32_t(a[2 * i]) * b[2 * i] + int32_t(a[2 * i + 1]) * b[2 * i + 1];
#endif
}

inline Pairs spread_pair(const int16_t* from) {
    int32_t both;
    std::memcpy(&both, from, sizeof both);
    const Sums all = Sums{} + both;
    return (Pairs)all;
}

// Sums of `Rows` rows with one panel of `Vectors` vectors of columns: for every pair of inputs, a pair of weights for
// each column. Loops over sums are unrolled explicitly: a compiler that leaves one keeps all sums in memory, which for a
// single row takes four times as long.
template <int Rows, int Vectors>
inline void multiply(const int16_t* const* rows, const int16_t* panel, int64_t pairs, Sums (&to)[Rows][Vectors]) {
    Sums sums[Rows][Vectors] = {};
    const int16_t* row[Rows];
    for (int r = 0; r < Rows; ++r) row[r] = rows[r];
    for (int64_t k = 0; k < pairs; ++k, panel += 2 * Vectors * unit_lanes) {
        Pairs x[Rows];
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r) x[r] = spread_pair(row[r] + 2 * k);
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) {
            Pairs w;
            std::memcpy(&w, panel + v * 2 * unit_lanes, sizeof w);
#pragma GCC unroll 8
            for (int r = 0; r < Rows; ++r) add_pair_products(sums[r][v], w, x[r]);
        }
    }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
        for (int v = 0; v < Vectors; ++v) to[r][v] = sums[r][v];
}

// Calls body.template operator()<Rows>(first) for groups of rows.
template <class Body>
inline void in_groups(int64_t count, Body&& body) {
    int64_t first = 0;
    for (; first + rows_at_once <= count; first += rows_at_once) body(std::integral_constant<int, rows_at_once>(), first);
    for (; first + 2 <= count; first += 2) body(std::integral_constant<int, 2>(), first);
    if (first < count) body(std::integral_constant<int, 1>(), first);
}

// Numbers times a factor, rounded to whole ones; there is room for a whole vector at the end of both.
inline void round_to(const float* from, float times, int64_t count, int16_t* to) {
    typedef typename Vector<int16_t, SPIGOT_VECTOR_BYTES / 2>::Type Halves;
    const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
    for (int64_t i = 0; i < count; i += unit_lanes) {
        const Lanes<float> shifted = load(from + i) * times + rounder;
        const Sums whole = (Sums)shifted - 0x4B400000;
        const Halves narrow = __builtin_convertvector(whole, Halves);
        std::memcpy(to + i, &narrow, sizeof narrow);
    }
}

// A row as whole numbers of at most `largest_activation`; returns what one of them is worth. Zeros fill up to `padded`.
inline float quantise(const float* row, int64_t width, int64_t padded, int16_t* to) {
    Lanes<float> all{};
    const int64_t whole = width / unit_lanes * unit_lanes;
    float rest[2 * unit_lanes] = {};
    std::memcpy(rest, row + whole, (width - whole) * sizeof(float));
    for (int64_t i = 0; i < whole; i += unit_lanes) all = larger(all, larger(load(row + i), -load(row + i)));
    all = larger(all, larger(load(rest), -load(rest)));
    const float most = largest<float>(all);
    const float times = most > 0 ? float(largest_activation) / most : 0.0f;
    round_to(row, times, whole, to);
    int16_t last[2 * unit_lanes] = {};
    round_to(rest, times, width - whole, last);
    std::memcpy(to + whole, last, (padded - whole) * sizeof(int16_t));
    return most / float(largest_activation);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
