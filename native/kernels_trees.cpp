// Dependency trees, for one instruction set.
#include "arborescence.hpp"
#include "eisner.hpp"
#include "kernels.hpp"
#include "tree_hull.hpp"
#include "tree_sums.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr TreeKernels<T> table() {
    TreeKernels<T> k{};
    k.argmax = [](const ArcBatch<T>& arcs, TreeKind kind, T* z, int threads, FaultBox& faults) {
        if (kind.projective) projective_argmax(arcs, kind.single_root, z, threads, faults);
        else nonprojective_argmax(arcs, kind.single_root, z, threads, faults);
    };
    k.sums = tree_sums<T>;
    k.hessian = tree_hessian<T>;
    k.project_hull = project_tree_hull<T>;
    return k;
}

extern const Tables<TreeKernels> tree_kernels;
const Tables<TreeKernels> tree_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
