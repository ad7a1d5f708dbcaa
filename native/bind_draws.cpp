// Trees drawn at random, and the labels of their arcs.
#include "bind.hpp"

namespace spigot {
namespace {

template <class T>
void bind(nb::module_& m) {
    const DrawKernels<T>& k = kernels().draws.of<T>();
    m.def("sample_trees", [&k](In<T> scores, In<bool> mask, In<int64_t> seeds, bool projective, bool single_root,
                               Out<T> z, int threads) {
        return run([&](FaultBox& faults) {
            const ArcBatch<T> arcs{scores.data(), bytes(mask), static_cast<int64_t>(scores.shape(0)),
                                   static_cast<int64_t>(scores.shape(1))};
            k.sample_trees(arcs, {projective, single_root}, seeds.data(), seeds.shape(1), z.data(), threads, faults);
        });
    });
    m.def("best_labels", [&k](In<T> scores, In<bool> mask, Out<T> best, Out<int32_t> which, int threads) {
        return run([&](FaultBox& faults) {
            k.best_labels(scores.data(), bytes(mask), scores.shape(0), scores.shape(1), scores.shape(3), best.data(),
                          which.data(), threads, faults);
        });
    });
    m.def(
        "label_sums",
        [&k](In<T> scores, In<bool> mask, Out<T> log_sum, std::optional<Out<T>> share, Out<bool> arcs, int threads) {
            return run([&](FaultBox& faults) {
                k.label_sums(scores.data(), bytes(mask), scores.shape(0), scores.shape(1), scores.shape(3),
                             log_sum.data(), share ? share->data() : nullptr, reinterpret_cast<uint8_t*>(arcs.data()),
                             threads, faults);
            });
        },
        "scores"_a, "mask"_a, "log_sum"_a, "share"_a.none(), "arcs"_a, "threads"_a);
}

}  // namespace

void bind_draws(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
