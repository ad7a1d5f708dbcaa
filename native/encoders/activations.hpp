// The activation functions of networks, to within a few units in the last place of a float.
#pragma once

#include "lanes.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// exp for numbers within `bound` of zero; what lies outside is taken for the nearest of these.
inline Lanes<float> exp_between(Lanes<float> x, float bound = 87.0f) {
    using V = Lanes<float>;
    using I = LaneTraits<float>::Bits;
    const V low = spread(-bound), high = spread(bound);
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

// The cell and the state of an LSTM by its gates (input, forget, new, output), with two divisions in place of five, which
// take longer than all the rest. Gates are as good as open or closed at 28, and three such numbers can be multiplied.
inline void open_gates(const Lanes<float> (&gate)[4], Lanes<float>& cell, Lanes<float>& state) {
    const auto power = [](Lanes<float> x) { return exp_between(x, 28.0f); };
    const Lanes<float> i = 1.0f + power(-gate[0]), f = 1.0f + power(-gate[1]), g = power(2.0f * gate[2]);
    const Lanes<float> both = i * (g + 1.0f);
    cell = (cell * both + (g - 1.0f) * f) / (f * both);
    const Lanes<float> o = 1.0f + power(-gate[3]), c = power(2.0f * cell);
    state = (c - 1.0f) / (o * (c + 1.0f));
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
