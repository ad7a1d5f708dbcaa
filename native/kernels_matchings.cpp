// Matchings, for one instruction set.
#include "birkhoff.hpp"
#include "kernels.hpp"
#include "matchings.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr MatchingKernels<T> table() {
    MatchingKernels<T> k{};
    k.match = match<T>;
    k.project = project_matchings<T>;
    return k;
}

extern const Tables<MatchingKernels> matching_kernels;
const Tables<MatchingKernels> matching_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
