// Chains of states, for one instruction set.
#include "chain_argmax.hpp"
#include "chain_blocks.hpp"
#include "chain_hull.hpp"
#include "chain_sums.hpp"
#include "kernels.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr ChainKernels<T> table() {
    ChainKernels<T> k{};
    k.argmax = chain_argmax<T>;
    k.k_best = chain_k_best<T>;
    k.sums = chain_sums<T>;
    k.hessian = chain_hessian<T>;
    k.sample = chain_sample<T>;
    k.project_hull = project_chain_hull<T>;
    k.project_blocks = project_chain_blocks<T>;
    k.pull_blocks = pull_chain_blocks<T>;
    return k;
}

extern const Tables<ChainKernels> chain_kernels;
const Tables<ChainKernels> chain_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
