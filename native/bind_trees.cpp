// Dependency trees.
#include "bind_hull.hpp"

namespace spigot {
namespace {

template <class T>
ArcBatch<T> arcs_of(const In<T>& scores, const In<bool>& mask) {
    return {scores.data(), bytes(mask), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1))};
}

template <class T>
nb::tuple hull(In<T> points, In<bool> mask, std::optional<In<T>> start, bool projective, bool single_root,
               double tolerance, int64_t max_rounds, bool support, Out<T> to, Out<double> gap, int threads) {
    return with_support(points.shape(0), support, [&](HullEmit emit, void* context, FaultBox& faults) {
        kernels().trees.of<T>().project_hull(arcs_of<T>(points, mask), start ? start->data() : nullptr,
                                             {projective, single_root}, tolerance, max_rounds, to.data(), gap.data(),
                                             emit, context, threads, faults);
    });
}

template <class T>
void bind(nb::module_& m) {
    const TreeKernels<T>& k = kernels().trees.of<T>();
    m.def("tree_argmax",
          [&k](In<T> scores, In<bool> mask, bool projective, bool single_root, Out<T> z, int threads) {
              return run([&](FaultBox& faults) {
                  k.argmax(arcs_of<T>(scores, mask), {projective, single_root}, z.data(), threads, faults);
              });
          });
    m.def(
        "tree_sums",
        [&k](In<T> scores, In<bool> mask, bool projective, bool single_root, Out<T> log_partition,
             std::optional<Out<T>> marginals, int threads) {
            return run([&](FaultBox& faults) {
                k.sums(arcs_of<T>(scores, mask), {projective, single_root}, log_partition.data(),
                       marginals ? marginals->data() : nullptr, threads, faults);
            });
        },
        "scores"_a, "mask"_a, "projective"_a, "single_root"_a, "log_partition"_a, "marginals"_a.none(), "threads"_a);
    m.def("tree_hessian", [&k](In<T> scores, In<bool> mask, In<T> direction, bool projective, bool single_root,
                               Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.hessian(arcs_of<T>(scores, mask), {projective, single_root}, direction.data(), to.data(), threads,
                      faults);
        });
    });
    m.def("project_tree_hull", hull<T>, "points"_a, "mask"_a, "start"_a.none(), "projective"_a, "single_root"_a,
          "tolerance"_a, "max_rounds"_a, "support"_a, "to"_a, "gap"_a, "threads"_a);
}

}  // namespace

void bind_trees(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
