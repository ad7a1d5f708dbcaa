// Dependency trees.
#include "bind.hpp"

namespace spigot {
namespace {

template <class T>
ArcBatch<T> arcs_of(const In<T>& scores, const In<bool>& mask) {
    return {scores.data(), bytes(mask), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1))};
}

struct SupportArrays {
    std::vector<std::vector<double>> weights;
    std::vector<std::vector<int32_t>> heads;
};

void keep_support(void* context, int64_t sentence, int trees, const double* weights, const int32_t* heads) {
    auto* arrays = static_cast<SupportArrays*>(context);
    const size_t n = arrays->heads[sentence].size();  // set up as one row
    arrays->weights[sentence].assign(weights, weights + trees);
    arrays->heads[sentence].assign(heads, heads + trees * n);
}

template <class T>
nb::tuple hull(In<T> points, In<bool> mask, std::optional<In<T>> start, bool projective, bool single_root,
               double tolerance, int64_t max_rounds, bool support, Out<T> to, Out<double> gap, int threads) {
    const auto batch = points.shape(0), n = points.shape(1);
    FaultBox faults;
    SupportArrays arrays{std::vector<std::vector<double>>(batch),
                         std::vector<std::vector<int32_t>>(batch, std::vector<int32_t>(n))};
    std::vector<int64_t> offsets{0}, starts{0}, indices;
    std::vector<double> weights, values;
    {
        nb::gil_scoped_release release;
        kernels().trees.of<T>().project_hull(arcs_of<T>(points, mask), start ? start->data() : nullptr,
                                             {projective, single_root}, tolerance, max_rounds, to.data(), gap.data(),
                                             support ? keep_support : nullptr, &arrays, threads, faults);
        if (!support) offsets.assign(batch + 1, 0);
        for (size_t b = 0; support && b < batch; ++b) {
            if (arrays.weights[b].empty()) {  // no words: the empty structure, whole
                weights.push_back(1);
                starts.push_back(static_cast<int64_t>(indices.size()));
            }
            for (size_t t = 0; t < arrays.weights[b].size(); ++t) {
                weights.push_back(arrays.weights[b][t]);
                for (size_t m = 0; m < n; ++m) {
                    const int32_t head = arrays.heads[b][t * n + m];
                    if (head >= 0) indices.push_back(static_cast<int64_t>(head) * n + m);
                }
                starts.push_back(static_cast<int64_t>(indices.size()));
            }
            offsets.push_back(static_cast<int64_t>(weights.size()));
        }
        values.assign(indices.size(), 1.0);
    }
    return nb::make_tuple(describe(faults), to_numpy(std::move(offsets)), to_numpy(std::move(weights)),
                          to_numpy(std::move(starts)), to_numpy(std::move(indices)), to_numpy(std::move(values)));
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
