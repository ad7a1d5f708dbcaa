// Projections onto products of simplices and intervals, for one instruction set.
#include "kernels.hpp"
#include "pulls.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr BlockKernels<T> table() {
    BlockKernels<T> k{};
    k.project_rows = project_rows<T>;
    k.project_heads = project_heads<T>;
    k.project_arc_labels = project_arc_labels<T>;
    k.pull_rows = pull_rows<T>;
    k.pull_heads = pull_heads<T>;
    k.pull_arc_labels = pull_arc_labels<T>;
    return k;
}

extern const Tables<BlockKernels> block_kernels;
const Tables<BlockKernels> block_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
