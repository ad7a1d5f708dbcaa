// Subsets of rows, for one instruction set.
#include "capped.hpp"
#include "kernels.hpp"
#include "subsets.hpp"
#include "top.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr SubsetKernels<T> table() {
    SubsetKernels<T> k{};
    k.argmax = best_subsets<T>;
    k.project = project_capped<T>;
    k.sums = sum_subsets<T>;
    k.hessian = subset_hessian<T>;
    k.sample = sample_subsets<T>;
    return k;
}

extern const Tables<SubsetKernels> subset_kernels;
const Tables<SubsetKernels> subset_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
