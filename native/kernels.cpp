// All families for one instruction set; compiled once for each, see CMakeLists.txt.
#include "kernels.hpp"

#define SPIGOT_STRING_(x) #x
#define SPIGOT_STRING(x) SPIGOT_STRING_(x)

namespace spigot {
namespace SPIGOT_ARCH {

extern const Tables<AlignmentKernels> alignment_kernels;
extern const Tables<BlockKernels> block_kernels;
extern const Tables<TreeKernels> tree_kernels;
extern const Tables<GraphKernels> graph_kernels;
extern const Tables<ChainKernels> chain_kernels;
extern const Tables<DrawKernels> draw_kernels;
extern const EncoderKernels encoder_kernels;
extern const FactorKernels factor_kernels;
extern const Tables<MatchingKernels> matching_kernels;
extern const Tables<SpanKernels> span_kernels;
extern const Tables<SubsetKernels> subset_kernels;

// Constants, so that loading the library runs no instruction of this set.
extern const Kernels kernels;
const Kernels kernels = {
    SPIGOT_STRING(SPIGOT_ARCH), alignment_kernels, block_kernels,  tree_kernels,     graph_kernels, chain_kernels,
    draw_kernels,               encoder_kernels,   factor_kernels, matching_kernels, span_kernels,  subset_kernels,
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
