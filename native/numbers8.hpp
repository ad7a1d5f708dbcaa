// Products of matrices of 8-bit weights with 7-bit inputs: twice as many in an instruction as of 16-bit numbers. Sums are
// exact here too. Inputs are numbers of a row less the least of them, so that none is negative: what that adds to a sum
// follows from the total of a column's weights.
//
// Products are first summed in 16 bits, four at a time: inputs 0, 1, 4, 5 and 2, 3, 6, 7 of any eight. Weights are scaled
// such that neither the positive nor the negative ones of four exceed `largest_four` together, and no such sum overflows.
#pragma once

#include "numbers16.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int32_t input_steps = 126;  // between the least and the largest number of a row, which rounding makes 127 at most
constexpr int32_t largest_state = 63;
constexpr int32_t largest_four = 258;  // times 127 it is just below 2^15

typedef int8_t Quads __attribute__((vector_size(SPIGOT_VECTOR_BYTES)));

inline Quads spread_quad(const uint8_t* from) {
    int32_t four;
    std::memcpy(&four, from, sizeof four);
    const Sums all = Sums{} + four;
    return (Quads)all;
}

// To each 32-bit lane, adds the eight products of its bytes; the inputs are not negative.
inline void add_eight_products(Sums& to, Quads x, Quads w, Quads y, Quads v) {
#if defined(__AVX512VNNI__)
    to = (Sums)_mm512_dpbusd_epi32((__m512i)to, (__m512i)x, (__m512i)w);
    to = (Sums)_mm512_dpbusd_epi32((__m512i)to, (__m512i)y, (__m512i)v);
#elif defined(__AVX512BW__)
    const __m512i four = _mm512_add_epi16(_mm512_maddubs_epi16((__m512i)x, (__m512i)w), _mm512_maddubs_epi16((__m512i)y, (__m512i)v));
    to += (Sums)_mm512_madd_epi16(four, _mm512_set1_epi16(1));
#elif defined(__AVX2__)
    const __m256i four = _mm256_add_epi16(_mm256_maddubs_epi16((__m256i)x, (__m256i)w), _mm256_maddubs_epi16((__m256i)y, (__m256i)v));
    to += (Sums)_mm256_madd_epi16(four, _mm256_set1_epi16(1));
#else
    for (int i = 0; i < unit_lanes; ++i)
        for (int k = 4 * i; k < 4 * i + 4; ++k) to[i] += int32_t(x[k]) * w[k] + int32_t(y[k]) * v[k];
#endif
}

// How rows are multiplied with panels, in sixteen bits and in eight.
struct Sixteen {
    using Input = int16_t;
    using Weight = int16_t;
    static constexpr int at_once = rows_at_once;

    template <int Rows, int Vectors>
    static void multiply(const Input* const* rows, const Weight* panel, int64_t width, Sums (&to)[Rows][Vectors]) {
        spigot::SPIGOT_ARCH::multiply<Rows, Vectors>(rows, panel, width / 2, to);
    }
    static Sums missing(const int32_t*, int32_t) { return Sums{}; }  // what the least number of a row took from a sum
    static float quantise(const float* row, int64_t width, int64_t padded, Input* to, int32_t& least) {
        least = 0;
        return spigot::SPIGOT_ARCH::quantise(row, width, padded, to);
    }
    static constexpr float state_times = float(largest_activation);
    static void round_states(const float* from, int64_t count, Input* to) { round_to(from, state_times, count, to); }
    static constexpr Input no_state = 0;
    static constexpr int32_t least_state = 0;
};

struct Eight {
    using Input = uint8_t;
    using Weight = int8_t;
    static constexpr int at_once = SPIGOT_VECTOR_BYTES == 64 ? 4 : 2;

    template <int Rows, int Vectors>
    static void multiply(const Input* const* rows, const Weight* panel, int64_t width, Sums (&to)[Rows][Vectors]) {
        constexpr int64_t quad = 4 * Vectors * unit_lanes;
        Sums sums[Rows][Vectors] = {};
        const Input* row[Rows];
        for (int r = 0; r < Rows; ++r) row[r] = rows[r];
        for (int64_t k = 0; k < width; k += 8, panel += 2 * quad) {
            Quads x[Rows], y[Rows];
#pragma GCC unroll 8
            for (int r = 0; r < Rows; ++r) x[r] = spread_quad(row[r] + k), y[r] = spread_quad(row[r] + k + 4);
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v) {
                Quads first, second;
                std::memcpy(&first, panel + v * 4 * unit_lanes, sizeof first);
                std::memcpy(&second, panel + quad + v * 4 * unit_lanes, sizeof second);
#pragma GCC unroll 8
                for (int r = 0; r < Rows; ++r) add_eight_products(sums[r][v], x[r], first, y[r], second);
            }
        }
#pragma GCC unroll 8
        for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 8
            for (int v = 0; v < Vectors; ++v) to[r][v] = sums[r][v];
    }
    static Sums missing(const int32_t* totals, int32_t least) {
        Sums all;
        std::memcpy(&all, totals, sizeof all);
        return all * least;
    }
    // Numbers times a factor, rounded to whole ones, less the least; there is room for a whole vector at the end.
    static void round_above(const float* from, float times, int32_t least, int64_t count, Input* to) {
        typedef typename Vector<uint8_t, SPIGOT_VECTOR_BYTES / 4>::Type Bytes;
        const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
        for (int64_t i = 0; i < count; i += unit_lanes) {
            const Lanes<float> shifted = load(from + i) * times + rounder;
            const Sums whole = (Sums)shifted - (0x4B400000 + least);
            const Bytes narrow = __builtin_convertvector(whole, Bytes);
            std::memcpy(to + i, &narrow, sizeof narrow);
        }
    }
    // A row as whole numbers; returns what one of them is worth. Fills up to `padded` with what no weight is multiplied with.
    static float quantise(const float* row, int64_t width, int64_t padded, Input* to, int32_t& least) {
        Lanes<float> low{}, high{};  // zero is among the numbers
        const int64_t whole = width / unit_lanes * unit_lanes;
        float rest[2 * unit_lanes] = {};
        std::memcpy(rest, row + whole, (width - whole) * sizeof(float));
        for (int64_t i = 0; i < whole; i += unit_lanes) {
            low = larger(low, -load(row + i));
            high = larger(high, load(row + i));
        }
        const float lowest = largest<float>(larger(low, -load(rest))), most = largest<float>(larger(high, load(rest)));
        const float range = lowest + most, times = range > 0 ? float(input_steps) / range : 0.0f;
        least = -static_cast<int32_t>(std::nearbyint(std::min(127.0f, lowest * times)));
        round_above(row, times, least, whole, to);
        Input last[2 * unit_lanes] = {};
        round_above(rest, times, least, width - whole, last);
        std::memcpy(to + whole, last, (padded - whole) * sizeof(Input));
        return range / float(input_steps);
    }
    static constexpr float state_times = float(largest_state);
    static void round_states(const float* from, int64_t count, Input* to) {
        round_above(from, state_times, least_state, count, to);
    }
    static constexpr Input no_state = 64;
    static constexpr int32_t least_state = -64;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
