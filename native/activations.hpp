// The activation functions of networks, to within a few units in the last place of a float.
#pragma once

#include "lanes.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// exp for -87 <= x <= 87; what lies outside is taken for the nearest of these.
inline Lanes<float> exp_between(Lanes<float> x) {
    using V = Lanes<float>;
    using I = LaneTraits<float>::Bits;
    const V low = spread(-87.0f), high = spread(87.0f);
    x = x < low ? low : x;
    x = x > high ? high : x;
    const float rounder = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer in the low bits
    const V shifted = x * 1.44269504f + rounder;
    const V k = shifted - rounder;
    const V r = (x - k * 0.693145752f) - k * 1.42860677e-6f;
    V p = spread(1.0f / 5040);  // Taylor to degree 7 on |r| <= 0.347
    const float c[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
    for (float coefficient : c) p = p * r + coefficient;
    I bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 127) << 23;
    V power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

inline Lanes<float> sigmoid(Lanes<float> x) { return 1.0f / (1.0f + exp_between(-x)); }

inline Lanes<float> tanh(Lanes<float> x) { return 1.0f - 2.0f / (1.0f + exp_between(2.0f * x)); }

}  // namespace SPIGOT_ARCH
}  // namespace spigot
