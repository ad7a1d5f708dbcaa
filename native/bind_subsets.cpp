// Subsets of rows.
#include "bind.hpp"
#include "subset_ranks.hpp"

namespace spigot {
namespace {

template <class T>
void bind(nb::module_& m) {
    const SubsetKernels<T>& k = kernels().subsets.of<T>();
    m.def("best_subsets", [&k](In<T> scores, In<bool> mask, int64_t minimum, int64_t maximum, Out<T> z, int threads) {
        return run([&](FaultBox& faults) {
            k.argmax(scores.data(), bytes(mask), scores.shape(0), scores.shape(1), minimum, maximum, z.data(), threads,
                     faults);
        });
    });
    m.def("project_capped",
          [&k](In<T> point, In<bool> mask, int64_t minimum, int64_t maximum, Out<T> to, int threads) {
              return run([&](FaultBox& faults) {
                  k.project(point.data(), bytes(mask), point.shape(0), point.shape(1), minimum, maximum, to.data(),
                            threads, faults);
              });
          });
    m.def("subset_sums",
          [&k](In<T> scores, In<bool> mask, int64_t minimum, int64_t maximum, Out<T> log_partition,
               std::optional<Out<T>> marginals, int threads) {
              return run([&](FaultBox& faults) {
                  k.sums(scores.data(), bytes(mask), scores.shape(0), scores.shape(1), minimum, maximum,
                         log_partition.data(), marginals ? marginals->data() : nullptr, threads, faults);
              });
          },
          "scores"_a, "mask"_a, "minimum"_a, "maximum"_a, "log_partition"_a, "marginals"_a.none(), "threads"_a);
    m.def("subset_hessian", [&k](In<T> scores, In<bool> mask, In<T> direction, int64_t minimum, int64_t maximum,
                                 Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.hessian(scores.data(), bytes(mask), direction.data(), scores.shape(0), scores.shape(1), minimum, maximum,
                      to.data(), threads, faults);
        });
    });
    m.def("sample_subsets", [&k](In<T> scores, In<bool> mask, In<int64_t> seeds, int64_t minimum, int64_t maximum,
                                 Out<T> z, int threads) {
        return run([&](FaultBox& faults) {
            k.sample(scores.data(), bytes(mask), seeds.data(), seeds.shape(0), scores.shape(0), scores.shape(1),
                     minimum, maximum, z.data(), threads, faults);
        });
    });
    m.def("rank_subsets", [](In<T> scores, In<bool> mask, int64_t minimum, int64_t maximum, Out<T> z,
                             Out<int64_t> found, int threads) {
        return run([&](FaultBox& faults) {
            rank_subsets(scores.data(), bytes(mask), scores.shape(0), scores.shape(1), minimum, maximum, z.shape(0),
                         z.data(), found.data(), threads, faults);
        });
    });
}

}  // namespace

void bind_subsets(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
