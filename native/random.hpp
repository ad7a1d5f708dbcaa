// Random numbers from a seed: a stream of its own for each seed.
#pragma once

#include <cstdint>

namespace spigot {
namespace SPIGOT_ARCH {

// The number of a seed at a step, in [0, 1), a multiple of 2^-53: SplitMix64 (Steele, Lea, Flood 2014), a counter and a
// hash of it. The file draws.py has the same in torch.
inline double uniform(uint64_t seed, uint64_t step) {
    uint64_t x = seed + (step + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return static_cast<double>((x ^ x >> 31) >> 11) * 0x1p-53;
}

// One number after another.
class Random {
public:
    explicit Random(uint64_t seed) : seed_(seed) {}
    double uniform() { return SPIGOT_ARCH::uniform(seed_, step_++); }

private:
    uint64_t seed_, step_ = 0;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
