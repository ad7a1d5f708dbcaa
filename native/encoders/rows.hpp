// Rows of numbers of any length, vector by vector.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "lanes.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int float_lanes = lane_count<float>;

// A vector, or what is left of one at the end of a row. Which of them is known when it is compiled: a copy of any size
// among the arithmetic would cost more than it.
template <bool Whole>
inline Lanes<float> load_some(const float* from, int64_t count) {
    if constexpr (Whole) return load(from);
    Lanes<float> v{};
    std::memcpy(&v, from, count * sizeof(float));
    return v;
}

template <bool Whole>
inline void store_some(float* to, Lanes<float> v, int64_t count) {
    if constexpr (Whole) return store(to, v);
    std::memcpy(to, &v, count * sizeof(float));
}

// Calls body(whether it is whole, where) for each vector of a row.
template <class Body>
inline void each_vector(int64_t size, Body&& body) {
    int64_t u = 0;
    for (; u + float_lanes <= size; u += float_lanes) body(std::true_type(), u);
    if (u < size) body(std::false_type(), u);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
