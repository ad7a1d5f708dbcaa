// Moving the lanes that a comparison picks to the front of memory: how arrays shrink while they are searched.
#pragma once

#include "lanes.hpp"

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace spigot {
namespace SPIGOT_ARCH {

#if defined(__AVX512F__)

inline int press(Lanes<float> v, LaneTraits<float>::Bits keep, float* to) {
    const __mmask16 bits = _mm512_cmplt_epi32_mask((__m512i)keep, _mm512_setzero_si512());
    _mm512_storeu_ps(to, _mm512_maskz_compress_ps(bits, v));
    return __builtin_popcount(bits);
}
inline int press(Lanes<double> v, LaneTraits<double>::Bits keep, double* to) {
    const __mmask8 bits = _mm512_cmplt_epi64_mask((__m512i)keep, _mm512_setzero_si512());
    _mm512_storeu_pd(to, _mm512_maskz_compress_pd(bits, v));
    return __builtin_popcount(bits);
}

#elif defined(__AVX2__)

// The last `count` of at least a vector of entries, -inf for those that do not exist; fewer than a vector.
inline Lanes<float> load_last(const float* from, const uint8_t* exists, int64_t count) {
    uint64_t bytes;
    std::memcpy(&bytes, exists + count - 8, 8);  // those before are there to be read, and shifted out
    bytes >>= 8 * (8 - count);
    const __m256i here = _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(bytes)));
    const __m256i bits = _mm256_cmpgt_epi32(here, _mm256_setzero_si256());
    return _mm256_blendv_ps(spread(minus_infinity<float>), _mm256_maskload_ps(from, bits), (__m256)bits);
}
inline Lanes<double> load_last(const double* from, const uint8_t* exists, int64_t count) {
    uint32_t bytes;
    std::memcpy(&bytes, exists + count - 4, 4);
    bytes >>= 8 * (4 - count);
    const __m256i here = _mm256_cvtepu8_epi64(_mm_cvtsi32_si128(static_cast<int>(bytes)));
    const __m256i bits = _mm256_cmpgt_epi64(here, _mm256_setzero_si256());
    return _mm256_blendv_pd(spread(minus_infinity<double>), _mm256_maskload_pd(from, bits), (__m256d)bits);
}
#define SPIGOT_LOAD_LAST

// For each set of lanes their numbers in order, one in a byte: what a shuffle wants.
struct PressTable {
    uint64_t order[256];
    constexpr PressTable() : order() {
        for (int set = 0; set < 256; ++set) {
            int place = 0;
            for (int lane = 0; lane < 8; ++lane)
                if (set >> lane & 1) order[set] |= static_cast<uint64_t>(lane) << (8 * place++);
        }
    }
};
inline constexpr PressTable press_table;

inline __m256i pressing(int set) {
    return _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(press_table.order[set])));
}
inline int press(Lanes<float> v, LaneTraits<float>::Bits keep, float* to) {
    const int set = _mm256_movemask_ps((__m256)keep);
    _mm256_storeu_ps(to, _mm256_permutevar8x32_ps(v, pressing(set)));
    return __builtin_popcount(set);
}
inline int press(Lanes<double> v, LaneTraits<double>::Bits keep, double* to) {
    const int set = _mm256_movemask_pd((__m256d)keep);
    // A double is two lanes of the shuffle: spread each bit over two.
    const int twice = (set & 1 ? 3 : 0) | (set & 2 ? 12 : 0) | (set & 4 ? 48 : 0) | (set & 8 ? 192 : 0);
    _mm256_storeu_ps(reinterpret_cast<float*>(to), _mm256_permutevar8x32_ps((__m256)v, pressing(twice)));
    return __builtin_popcount(set);
}

#else

template <class V, class B, class T>
inline int press(V v, B keep, T* to) {
    int count = 0;
    for (int lane = 0; lane < lane_count<T>; ++lane) {
        to[count] = v[lane];
        count += keep[lane] != 0;
    }
    return count;
}

#endif

#if !defined(SPIGOT_LOAD_LAST)
template <class T>
inline Lanes<T> load_last(const T* from, const uint8_t* exists, int64_t count) {
    return load_existing(from, exists, count);
}
#endif

}  // namespace SPIGOT_ARCH
}  // namespace spigot
