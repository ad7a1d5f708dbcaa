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
namespace avx512vnni {
extern const EncoderKernels encoder_kernels;
}
#endif

namespace {

#if defined(SPIGOT_X86)
// The tables of AVX-512, and for encoders those that multiply and add in one instruction.
Kernels with_vnni() {
    const Kernels& k = avx512::kernels;
    return {"avx512vnni", k.alignments, k.blocks,  k.trees,     k.graphs, k.chains,
            k.draws,      avx512vnni::encoder_kernels, k.factors, k.matchings, k.spans, k.subsets};
}
#endif

Kernels choose() {
#if defined(SPIGOT_X86)
    const char* wish = std::getenv("SPIGOT_ISA");  // the most that is wanted: to compare, or to reproduce another machine
    const auto wished = [&](const char* name) { return wish && !std::strcmp(wish, name); };
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw");
    if (wished("baseline")) return baseline::kernels;
    if (has_avx512 && !wished("avx2"))
        return __builtin_cpu_supports("avx512vnni") && !wished("avx512") ? with_vnni() : avx512::kernels;
    if (has_avx2) return avx2::kernels;
#endif
    return baseline::kernels;
}

}  // namespace

const Kernels& kernels() {
    static const Kernels chosen = choose();
    return chosen;
}

}  // namespace spigot
