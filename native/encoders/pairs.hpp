// The first hidden layer of a perceptron over pairs of words: tanh of what the two words of a pair give to it.
//
// There are many pairs to a word, and nothing is computed of a pair but one function: time goes by memory. So both ways
// read and write each pair once, where a sum, its tanh, the derivative and two sums over it would pass over them eight
// times.
#pragma once

#include "encoders/activations.hpp"
#include "encoders/rows.hpp"
#include "kernels.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr int64_t pairs_at_once = 64;

inline void pair_tanh(const PairRows& given, int threads) {
    auto body = [&](int64_t block) {
        const int64_t end = std::min(given.pairs, (block + 1) * pairs_at_once);
        for (int64_t p = block * pairs_at_once; p < end; ++p) {
            const float* first = given.first + given.first_row[p] * given.width;
            const float* second = given.second + given.second_row[p] * given.width;
            float* to = given.values + p * given.width;
            each_vector(given.width, [&](auto whole, int64_t u) {
                constexpr bool Whole = decltype(whole)::value;
                const int64_t here = given.width - u;
                store_some<Whole>(to + u, tanh(load_some<Whole>(first + u, here) + load_some<Whole>(second + u, here)), here);
            });
        }
    };
    parallel_for((given.pairs + pairs_at_once - 1) / pairs_at_once, threads, body);
}

// What is wanted of the rows. Threads share out columns, so that sums are the same for any number of them.
inline void pair_tanh_back(const PairRows& given, int threads) {
    const int64_t vectors = (given.width + float_lanes - 1) / float_lanes;
    const int64_t parts = std::max<int64_t>(1, std::min<int64_t>(threads, vectors));
    auto body = [&](int64_t part) {
        const int64_t from = part * vectors / parts * float_lanes;
        const int64_t end = std::min(given.width, (part + 1) * vectors / parts * float_lanes);
        for (int64_t p = 0; p < given.pairs; ++p) {
            const float* wanted = given.wanted + p * given.width + from;
            const float* value = given.values + p * given.width + from;
            float* first = given.first_wanted + given.first_row[p] * given.width + from;
            float* second = given.second_wanted + given.second_row[p] * given.width + from;
            each_vector(end - from, [&](auto whole, int64_t u) {
                constexpr bool Whole = decltype(whole)::value;
                const int64_t here = end - from - u;
                const Lanes<float> z = load_some<Whole>(value + u, here);
                const Lanes<float> more = load_some<Whole>(wanted + u, here) * (1.0f - z * z);
                store_some<Whole>(first + u, load_some<Whole>(first + u, here) + more, here);
                store_some<Whole>(second + u, load_some<Whole>(second + u, here) + more, here);
            });
        }
    };
    parallel_for(parts, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
