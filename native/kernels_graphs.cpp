// Semantic graphs, for one instruction set.
#include "graphs.hpp"
#include "kernels.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr GraphKernels<T> table() {
    GraphKernels<T> k{};
    k.argmax = graph_argmax<T>;
    return k;
}

extern const Tables<GraphKernels> graph_kernels;
const Tables<GraphKernels> graph_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
