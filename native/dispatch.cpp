#include <cstdlib>
#include <cstring>

#include "kernels.hpp"

namespace spigot {

namespace baseline {
extern const Kernels kernels;
}
#if defined(SPIGOT_X86)
namespace avx2 {
extern const Kernels kernels;
}
namespace avx512 {
extern const Kernels kernels;
}
#endif

namespace {

const Kernels& choose() {
#if defined(SPIGOT_X86)
    const char* wish = std::getenv("SPIGOT_ISA");  // baseline or avx2: to compare, or to reproduce another machine
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (wish && !std::strcmp(wish, "baseline")) return baseline::kernels;
    if (has_avx512 && !(wish && !std::strcmp(wish, "avx2"))) return avx512::kernels;
    if (has_avx2) return avx2::kernels;
#endif
    return baseline::kernels;
}

}  // namespace

const Kernels& kernels() {
    static const Kernels& chosen = choose();
    return chosen;
}

}  // namespace spigot
