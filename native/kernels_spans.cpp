// Binary trees over labelled spans, for one instruction set.
#include "kernels.hpp"
#include "span_ranks.hpp"
#include "span_sums.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
constexpr SpanKernels<T> table() {
    SpanKernels<T> k{};
    k.argmax = span_argmax<T>;
    k.sums = span_sums<T>;
    k.hessian = span_hessian<T>;
    k.sample = span_sample<T>;
    k.k_best = span_k_best<T>;
    return k;
}

extern const Tables<SpanKernels> span_kernels;
const Tables<SpanKernels> span_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
