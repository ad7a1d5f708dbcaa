// Factor graphs, for one instruction set.
#include "factors/ad3.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

extern const FactorKernels factor_kernels;
const FactorKernels factor_kernels = {negotiate, factor_excess};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
