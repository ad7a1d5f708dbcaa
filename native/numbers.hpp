// Numbers that the sums over trees are computed with: plain lanes of doubles, doubles whose range never ends, and both
// with a derivative along one direction.
#pragma once

#include <cmath>

#include "lanes.hpp"

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

namespace spigot {
namespace SPIGOT_ARCH {

// A double with a 64-bit exponent: value = mantissa * 2^exponent, 0.5 <= |mantissa| < 1 or zero.
struct Wide {
    double mantissa;
    int64_t exponent;
};

constexpr int64_t wide_zero_exponent = INT64_MIN / 4;

inline Wide wide(double mantissa, int64_t exponent = 0) {
    if (mantissa == 0) return {0, wide_zero_exponent};
    uint64_t bits;
    std::memcpy(&bits, &mantissa, sizeof bits);
    const int64_t shift = static_cast<int64_t>(bits >> 52 & 0x7ff) - 1022;
    if (shift == 0x7ff - 1022) return {mantissa, 0};  // NaN and infinity stay what they are
    bits = (bits & ~(uint64_t{0x7ff} << 52)) | uint64_t{1022} << 52;
    std::memcpy(&mantissa, &bits, sizeof bits);
    return {mantissa, exponent + shift};
}

inline double power_of_two(int64_t exponent) {  // exponents -1022..1023
    const uint64_t bits = static_cast<uint64_t>(exponent + 1023) << 52;
    double value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

inline Wide operator*(Wide a, Wide b) { return wide(a.mantissa * b.mantissa, a.exponent + b.exponent); }
inline Wide operator/(Wide a, Wide b) {
    return b.mantissa == 0 ? Wide{0, wide_zero_exponent} : wide(a.mantissa / b.mantissa, a.exponent - b.exponent);
}
inline Wide operator-(Wide a) { return {-a.mantissa, a.exponent}; }
inline Wide operator+(Wide a, Wide b) {
    if (a.exponent < b.exponent) {
        Wide swap = a;
        a = b;
        b = swap;
    }
    const int64_t apart = a.exponent - b.exponent;
    if (apart > 100) return a;
    return wide(a.mantissa + b.mantissa * power_of_two(-apart), a.exponent);
}
inline Wide operator-(Wide a, Wide b) { return a + -b; }
inline Wide& operator+=(Wide& a, Wide b) { return a = a + b; }

// e^x for x <= 0. Below -5e11 all numbers are the same, so that the exponents of many can be added up.
inline Wide wide_exp(double x) {
    if (x == minus_infinity<double>) return {0, wide_zero_exponent};
    if (x < -5e11) x = -5e11;
    const double k = std::nearbyint(x * 1.4426950408889634);
    const double r = (x - k * 0.693147180369123816490) - k * 1.90821492927058770002e-10;
    return wide(std::exp(r), static_cast<int64_t>(k));
}
inline double wide_log(Wide a) {
    return a.mantissa > 0 ? std::log(a.mantissa) + static_cast<double>(a.exponent) * 0.6931471805599453
                          : minus_infinity<double>;
}
inline double narrow(Wide a) {
    if (a.exponent < -1000 || a.mantissa == 0) return 0;
    return a.exponent > 1000 ? std::copysign(std::numeric_limits<double>::infinity(), a.mantissa)
                             : a.mantissa * power_of_two(a.exponent);
}

// A value and its derivative along one direction.
template <class V>
struct Dual {
    V value, slope;
};

template <class V>
inline Dual<V> operator+(Dual<V> a, Dual<V> b) {
    return {a.value + b.value, a.slope + b.slope};
}
template <class V>
inline Dual<V> operator-(Dual<V> a, Dual<V> b) {
    return {a.value - b.value, a.slope - b.slope};
}
template <class V>
inline Dual<V> operator*(Dual<V> a, Dual<V> b) {
    return {a.value * b.value, a.value * b.slope + a.slope * b.value};
}
template <class V>
inline Dual<V> operator/(Dual<V> a, Dual<V> b) {
    const V quotient = a.value / b.value;
    return {quotient, (a.slope - quotient * b.slope) / b.value};
}
template <class V>
inline Dual<V>& operator+=(Dual<V>& a, Dual<V> b) {
    return a = a + b;
}

template <class V>
struct Constant {
    static V of(double value) { return V{} + value; }
};
template <>
struct Constant<Wide> {
    static Wide of(double value) { return wide(value); }
};
template <class V>
struct Constant<Dual<V>> {
    static Dual<V> of(double value) { return {Constant<V>::of(value), Constant<V>::of(0)}; }
};

// How to get at one lane of a number.
template <class V>
struct Lane {  // Lanes<double>
    using Scalar = double;
    static constexpr int count = lane_count<double>;
    static constexpr bool wide_range = false, has_slope = false;
    static double get(const V& v, int lane) { return v[lane]; }
    static void add(V& v, int lane, double x) { v[lane] += x; }
    static double value(double x) { return x; }
    static const V& values(const V& v) { return v; }
    static double result(const V& v, int lane) { return v[lane]; }
};
template <>
struct Lane<Dual<Lanes<double>>> {
    using V = Dual<Lanes<double>>;
    using Scalar = Dual<double>;
    static constexpr int count = lane_count<double>;
    static constexpr bool wide_range = false, has_slope = true;
    static Scalar get(const V& v, int lane) { return {v.value[lane], v.slope[lane]}; }
    static void add(V& v, int lane, Scalar x) { v.value[lane] += x.value, v.slope[lane] += x.slope; }
    static double value(Scalar x) { return x.value; }
    static const Lanes<double>& values(const V& v) { return v.value; }
    static double result(const V& v, int lane) { return v.slope[lane]; }
};
template <>
struct Lane<Wide> {
    using Scalar = Wide;
    static constexpr int count = 1;
    static constexpr bool wide_range = true, has_slope = false;
    static Wide get(const Wide& v, int) { return v; }
    static void add(Wide& v, int, Wide x) { v += x; }
    static Wide value(Wide x) { return x; }
    static double result(const Wide& v, int) { return narrow(v); }
};
template <>
struct Lane<Dual<Wide>> {
    using V = Dual<Wide>;
    using Scalar = V;
    static constexpr int count = 1;
    static constexpr bool wide_range = true, has_slope = true;
    static V get(const V& v, int) { return v; }
    static void add(V& v, int, V x) { v += x; }
    static Wide value(V x) { return x.value; }
    static double result(const V& v, int) { return narrow(v.slope); }
};

// Treats denormal numbers as zero while it lives: they are slow and never matter here.
class FlushDenormals {
public:
#if defined(__SSE2__)
    FlushDenormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }
    ~FlushDenormals() { _mm_setcsr(saved_); }

private:
    unsigned saved_;
#endif
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
