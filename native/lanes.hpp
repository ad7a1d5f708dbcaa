// Vectors with one sentence (or one column) in each lane. GCC and Clang vector extensions: the same source becomes SSE2,
// AVX2, AVX-512 or NEON, according to how the file that includes it is compiled.
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#if !defined(SPIGOT_ARCH)
#error "compile with -DSPIGOT_ARCH=<namespace>"
#endif

#if defined(__AVX512F__)
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

template <class T>
inline T largest(Lanes<T> v) {
    T best = v[0];
    for (int i = 1; i < lane_count<T>; ++i) best = v[i] > best ? v[i] : best;
    return best;
}

template <class T>
inline T total(Lanes<T> v) {
    T sum = v[0];
    for (int i = 1; i < lane_count<T>; ++i) sum += v[i];
    return sum;
}

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
    const double c[] = {1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040,
                        1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      0.5,         1.0,
                        1.0};
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
