// Random numbers from a seed: a stream of its own for each seed.
#pragma once

#include <cstdint>

namespace spigot {
namespace SPIGOT_ARCH {

// SplitMix64 (Steele, Lea, Flood 2014): a counter and a hash of it. The file draws.py has the same in torch.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed) {}

    // Uniform in [0, 1), a multiple of 2^-53.
    double uniform() {
        uint64_t x = state_ += 0x9e3779b97f4a7c15u;
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
        x = (x ^ x >> 27) * 0x94d049bb133111ebu;
        x ^= x >> 31;
        return static_cast<double>(x >> 11) * (1.0 / 9007199254740992.0);
    }

private:
    uint64_t state_;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
