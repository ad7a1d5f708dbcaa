// Trees drawn at random, and the labels of their arcs, for one instruction set.
#include "kernels.hpp"
#include "labels.hpp"
#include "tree_sums.hpp"
#include "wilson.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
void sample_trees(const ArcBatch<T>& arcs, TreeKind kind, const int64_t* seeds, int64_t samples, T* z, int threads,
                  FaultBox& faults) {
    const Words words = find_words(arcs.mask, arcs.batch, arcs.n, threads, faults);
    if (faults.any()) return;
    const DrawJob<T> draws{seeds, samples, z};
    for (int64_t b = 0; b < arcs.batch; ++b)
        if (!words.lengths[b]) draws.clear(b, arcs.n);
    if (!kind.projective) return draw_nonprojective(arcs, kind.single_root, draws, words, threads, faults);
    const TreeSumJob<T> job{arcs, words, false, kind.single_root, nullptr, nullptr, nullptr, faults, &draws};
    sum_trees<T, Lanes<double>, Wide>(job, threads);
}

template <class T>
constexpr DrawKernels<T> table() {
    DrawKernels<T> k{};
    k.sample_trees = sample_trees<T>;
    k.best_labels = best_labels<T>;
    k.label_sums = label_sums<T>;
    return k;
}

extern const Tables<DrawKernels> draw_kernels;
const Tables<DrawKernels> draw_kernels = {table<float>(), table<double>()};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
