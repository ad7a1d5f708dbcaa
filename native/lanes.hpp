// Vectors with one sentence (or one column) in each lane. GCC and Clang vector extensions: the same source becomes
// SSE2, AVX2, AVX-512 or NEON, according to how the file that includes it is compiled.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#if !defined(SPIGOT_ARCH)
#error "compile with -DSPIGOT_ARCH=<namespace>"
#endif

#if defined(__AVX512F__)
#include <immintrin.h>
#define SPIGOT_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define SPIGOT_VECTOR_BYTES 32
#else
#define SPIGOT_VECTOR_BYTES 16
#endif

namespace spigot {
// Everything compiled for an instruction set lives in a namespace of its own, so that the linker cannot pick, say, an
// AVX-512 copy of a function for a machine without it.
namespace SPIGOT_ARCH {

template <class T, int Bytes>
struct Vector {
    typedef T Type __attribute__((vector_size(Bytes)));
};

template <class T>
struct LaneTraits;

template <>
struct LaneTraits<float> {
    typedef float Vector __attribute__((vector_size(SPIGOT_VECTOR_BYTES)));
    typedef int32_t Bits __attribute__((vector_size(SPIGOT_VECTOR_BYTES)));
};

template <>
struct LaneTraits<double> {
    typedef double Vector __attribute__((vector_size(SPIGOT_VECTOR_BYTES)));
    typedef int64_t Bits __attribute__((vector_size(SPIGOT_VECTOR_BYTES)));
};

template <class T>
using Lanes = typename LaneTraits<T>::Vector;

template <class T>
constexpr int lane_count = SPIGOT_VECTOR_BYTES / static_cast<int>(sizeof(T));

template <class T>
constexpr T minus_infinity = -std::numeric_limits<T>::infinity();

template <class V>
inline V larger(V a, V b) {
    return a > b ? a : b;
}

template <class T>
inline Lanes<T> spread(T value) {
    return Lanes<T>{} + value;
}

template <class T>
inline Lanes<T> load(const T* from) {
    Lanes<T> v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

template <class T>
inline void store(T* to, Lanes<T> v) {
    std::memcpy(to, &v, sizeof v);
}

// The half of a vector that starts at lane `First`. A shuffle and not a copy through memory, which would tie the vector
// to the stack for as long as it lives.
template <class T, int Bytes, int First, int... I>
inline typename Vector<T, Bytes / 2>::Type half(typename Vector<T, Bytes>::Type v, std::integer_sequence<int, I...>) {
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector)
    return __builtin_shufflevector(v, v, (First + I)...);
#define SPIGOT_SHUFFLED
#endif
#endif
#if !defined(SPIGOT_SHUFFLED)
    return typename Vector<T, Bytes / 2>::Type{v[First + I]...};
#endif
}

// Combines all lanes, half with half.
template <class T, int Bytes, class Combine>
inline T fold(typename Vector<T, Bytes>::Type v, Combine combine) {
    constexpr int count = Bytes / static_cast<int>(sizeof(T));
    if constexpr (count == 2) {
        return combine(v[0], v[1]);
    } else {
        using Lanes = std::make_integer_sequence<int, count / 2>;
        return fold<T, Bytes / 2>(combine(half<T, Bytes, 0>(v, Lanes()), half<T, Bytes, count / 2>(v, Lanes())),
                                  combine);
    }
}

template <class T>
inline T largest(Lanes<T> v) {
    return fold<T, SPIGOT_VECTOR_BYTES>(v, [](auto a, auto b) { return a > b ? a : b; });
}

template <class T>
inline T total(Lanes<T> v) {
    return fold<T, SPIGOT_VECTOR_BYTES>(v, [](auto a, auto b) { return a + b; });
}

template <class B>
struct Element {
    using Type = std::decay_t<decltype(B{}[0])>;
};

// Whether any lane of a comparison holds.
template <class B>
inline bool any_lane(B bits) {
    return fold<typename Element<B>::Type, sizeof(B)>(bits, [](auto a, auto b) { return a | b; }) != 0;
}

#if defined(__AVX512BW__) && defined(__AVX512VL__)

// Lanes whose mask byte is set, or that lie above a cut, as the bits that AVX-512 works with.
inline __mmask16 existing(const uint8_t* exists, float) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(exists));
    return _mm_test_epi8_mask(bytes, bytes);
}
inline __mmask8 existing(const uint8_t* exists, double) {
    const __m128i bytes = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(exists));
    return static_cast<__mmask8>(_mm_test_epi8_mask(bytes, bytes));
}
inline __mmask16 above(Lanes<float> v, Lanes<float> cut) { return _mm512_cmp_ps_mask(v, cut, _CMP_GT_OQ); }
inline __mmask8 above(Lanes<double> v, Lanes<double> cut) { return _mm512_cmp_pd_mask(v, cut, _CMP_GT_OQ); }
inline Lanes<float> pressed(__mmask16 bits, Lanes<float> v) { return _mm512_maskz_compress_ps(bits, v); }
inline Lanes<double> pressed(__mmask8 bits, Lanes<double> v) { return _mm512_maskz_compress_pd(bits, v); }
inline Lanes<float> plus(Lanes<float> a, __mmask16 bits, Lanes<float> b) { return _mm512_mask_add_ps(a, bits, a, b); }
inline Lanes<double> plus(Lanes<double> a, __mmask8 bits, Lanes<double> b) { return _mm512_mask_add_pd(a, bits, a, b); }

// The same for fewer than a whole vector: nothing beyond `count` is read.
inline Lanes<float> load_existing(const float* from, const uint8_t* exists, int64_t count) {
    const __m128i bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << count) - 1), exists);
    return _mm512_mask_loadu_ps(spread(minus_infinity<float>), _mm_test_epi8_mask(bytes, bytes), from);
}
inline Lanes<double> load_existing(const double* from, const uint8_t* exists, int64_t count) {
    const __m128i bytes = _mm_maskz_loadu_epi8(static_cast<__mmask16>((1u << count) - 1), exists);
    const auto bits = static_cast<__mmask8>(_mm_test_epi8_mask(bytes, bytes));
    return _mm512_mask_loadu_pd(spread(minus_infinity<double>), bits, from);
}

// As many values as fit a vector, with -inf where the mask byte is zero.
inline Lanes<float> load_existing(const float* from, const uint8_t* exists) {
    return _mm512_mask_loadu_ps(spread(minus_infinity<float>), existing(exists, 0.0f), from);
}
inline Lanes<double> load_existing(const double* from, const uint8_t* exists) {
    return _mm512_mask_loadu_pd(spread(minus_infinity<double>), existing(exists, 0.0), from);
}

// Copies what lies above the cut, less `shift`, to the front of `to`, and fills the last vector with -inf. Returns the
// number of vectors. `to` has room for one vector more than the input.
template <class T>
inline int64_t keep_above(const T* from, int64_t vectors, T shift, T cut, T* to) {
    constexpr int W = lane_count<T>;
    int64_t count = 0;
    for (int64_t i = 0; i < vectors; ++i) {
        const Lanes<T> v = load(from + i * W) - shift;
        const auto bits = above(v, spread(cut));
        store(to + count, pressed(bits, v));
        count += __builtin_popcount(bits);
    }
    store(to + count, spread(minus_infinity<T>));
    return (count + W - 1) / W;
}

// The sum and the number of the entries above the cut.
template <class T>
inline void tally(const T* from, int64_t vectors, T cut, T& sum, T& count) {
    Lanes<T> all{};
    int some = 0;
    for (int64_t i = 0; i < vectors; ++i) {
        const Lanes<T> v = load(from + i * lane_count<T>);
        const auto bits = above(v, spread(cut));
        all = plus(all, bits, v);
        some += __builtin_popcount(bits);
    }
    sum = total<T>(all);
    count = static_cast<T>(some);
}

#else

template <class T>
inline Lanes<T> load_existing(const T* from, const uint8_t* exists) {
    constexpr int W = lane_count<T>;
    typename Vector<uint8_t, W>::Type bytes;
    std::memcpy(&bytes, exists, W);
    const auto here = __builtin_convertvector(bytes, typename LaneTraits<T>::Bits) != 0;
    return here ? load(from) : spread(minus_infinity<T>);
}

template <class T>
inline Lanes<T> load_existing(const T* from, const uint8_t* exists, int64_t count) {
    Lanes<T> v = spread(minus_infinity<T>);
    for (int64_t i = 0; i < count; ++i)
        if (exists[i]) v[i] = from[i];
    return v;
}

template <class T>
inline void tally(const T* from, int64_t vectors, T cut, T& sum, T& count) {
    Lanes<T> all{}, some{};
    for (int64_t i = 0; i < vectors; ++i) {
        const Lanes<T> v = load(from + i * lane_count<T>);
        all += v > cut ? v : Lanes<T>{};
        some += v > cut ? spread(T(1)) : Lanes<T>{};
    }
    sum = total<T>(all);
    count = total<T>(some);
}

#endif

// exp for arguments <= 0, to within two units in the last place; 0 below -708.
inline Lanes<double> exp_nonpositive(Lanes<double> x) {
    using V = Lanes<double>;
    using I = LaneTraits<double>::Bits;
    const V lowest = spread(-708.0);
    const I vanishes = x < lowest;
    x = vanishes ? lowest : x;
    const double rounder = 6755399441055744.0;  // 1.5 * 2^52: adding it rounds to an integer in the low bits
    V shifted = x * 1.4426950408889634 + rounder;
    V k = shifted - rounder;
    V r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    V p = spread(1.0 / 6227020800.0);  // Taylor to degree 13 on |r| <= 0.347
    const double c[] = {
        1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
    for (double coefficient : c) p = p * r + coefficient;
    I bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023) << 52;
    V power;
    std::memcpy(&power, &bits, sizeof power);
    return vanishes ? V{} : p * power;
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
