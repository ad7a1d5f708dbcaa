// Numbers that the sums over trees are computed with: plain lanes of doubles, doubles whose range never ends, and both
// with a derivative along one direction.
#pragma once

#include <cmath>

#include "lanes.hpp"

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

// e^x for any x.
inline Wide wide_exp(double x) {
    if (x == minus_infinity<double>) return {0, wide_zero_exponent};
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

}  // namespace SPIGOT_ARCH
}  // namespace spigot
