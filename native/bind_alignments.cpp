// Monotone paths through a grid.
#include "bind.hpp"

namespace spigot {
namespace {

template <class T>
CellBatch<T> cells_of(const In<T>& scores, const In<bool>& mask) {
    return {scores.data(), bytes(mask), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1)),
            static_cast<int64_t>(scores.shape(2))};
}

template <class T>
void bind(nb::module_& m) {
    const AlignmentKernels<T>& k = kernels().alignments.of<T>();
    m.def("align_argmax", [&k](In<T> scores, In<bool> mask, Out<T> z, int threads) {
        return run([&](FaultBox& faults) { k.argmax(cells_of<T>(scores, mask), z.data(), threads, faults); });
    });
    m.def(
        "align_sums",
        [&k](In<T> scores, In<bool> mask, Out<T> log_partition, std::optional<Out<T>> marginals, int threads) {
            return run([&](FaultBox& faults) {
                k.sums(cells_of<T>(scores, mask), log_partition.data(), marginals ? marginals->data() : nullptr,
                       threads, faults);
            });
        },
        "scores"_a, "mask"_a, "log_partition"_a, "marginals"_a.none(), "threads"_a);
    m.def("align_hessian", [&k](In<T> scores, In<bool> mask, In<T> direction, Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.hessian(cells_of<T>(scores, mask), direction.data(), to.data(), threads, faults);
        });
    });
    m.def("align_sample", [&k](In<T> scores, In<bool> mask, In<int64_t> seeds, Out<T> z, int threads) {
        return run([&](FaultBox& faults) {
            k.sample(cells_of<T>(scores, mask), seeds.data(), seeds.shape(1), z.data(), threads, faults);
        });
    });
    m.def("align_k_best", [&k](In<T> scores, In<bool> mask, Out<T> z, Out<int64_t> found, int threads) {
        return run([&](FaultBox& faults) {
            k.k_best(cells_of<T>(scores, mask), z.shape(1), z.data(), found.data(), threads, faults);
        });
    });
}

}  // namespace

void bind_alignments(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
