// All kernels for one instruction set; compiled once for each, see CMakeLists.txt.
#include "kernels.hpp"

#include "active_set.hpp"
#include "arborescence.hpp"
#include "eisner.hpp"
#include "graphs.hpp"
#include "simplex.hpp"
#include "tree_sums.hpp"

#define SPIGOT_STRING_(x) #x
#define SPIGOT_STRING(x) SPIGOT_STRING_(x)

namespace spigot {
namespace SPIGOT_ARCH {

// A constant, so that loading the library runs no instruction of this set.
template <class T>
constexpr KernelsOf<T> table() {
    KernelsOf<T> k{};
    k.project_rows = project_rows<T>;
    k.project_heads = project_heads<T>;
    k.project_arc_labels = project_arc_labels<T>;
    k.pull_arc_labels = pull_arc_labels<T>;
    k.tree_argmax = [](const ArcBatch<T>& arcs, TreeKind kind, bool single_root, T* z, int threads, FaultBox& faults) {
        if (kind == TreeKind::PROJECTIVE) projective_argmax(arcs, single_root, z, threads, faults);
        else nonprojective_argmax(arcs, single_root, z, threads, faults);
    };
    k.tree_sums = [](const ArcBatch<T>& arcs, TreeKind kind, bool single_root, T* log_partition, T* marginals,
                     int threads, FaultBox& faults) {
        tree_sums(arcs, kind == TreeKind::NONPROJECTIVE, single_root, log_partition, marginals, threads, faults);
    };
    k.tree_hessian = [](const ArcBatch<T>& arcs, TreeKind kind, bool single_root, const T* direction, T* to,
                        int threads, FaultBox& faults) {
        tree_hessian(arcs, kind == TreeKind::NONPROJECTIVE, single_root, direction, to, threads, faults);
    };
    k.graph_argmax = graph_argmax<T>;
    k.project_tree_hull = project_tree_hull<T>;
    return k;
}

constexpr Kernels constant = {SPIGOT_STRING(SPIGOT_ARCH), table<float>(), table<double>()};
extern const Kernels kernels;
const Kernels kernels = constant;

}  // namespace SPIGOT_ARCH
}  // namespace spigot
