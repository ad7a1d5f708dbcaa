// Monotone paths through a grid, for one instruction set.
#include "alignments.hpp"
#include "kernels.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr AlignmentKernels<T> table() {
    AlignmentKernels<T> k{};
    k.argmax = align_argmax<T>;
    k.sums = align_sums<T>;
    k.hessian = align_hessian<T>;
    k.sample = align_sample<T>;
    k.k_best = align_k_best<T>;
    return k;
}

extern const Tables<AlignmentKernels> alignment_kernels;
const Tables<AlignmentKernels> alignment_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
