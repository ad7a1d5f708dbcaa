// Chains of states.
#include "bind_hull.hpp"

namespace spigot {
namespace {

template <class T>
ChainBatch<T> chains_of(const In<T>& scores, const In<bool>& mask) {
    return {scores.data(), bytes(mask), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1)),
            static_cast<int64_t>(scores.shape(3))};
}

template <class T>
nb::tuple hull(In<T> points, In<bool> mask, std::optional<In<T>> start, double tolerance, int64_t max_rounds,
               bool support, Out<T> to, Out<double> gap, int threads) {
    return with_support(points.shape(0), support, [&](HullEmit emit, void* context, FaultBox& faults) {
        kernels().chains.of<T>().project_hull(chains_of<T>(points, mask), start ? start->data() : nullptr, tolerance,
                                              max_rounds, to.data(), gap.data(), emit, context, threads, faults);
    });
}

template <class T>
void bind(nb::module_& m) {
    const ChainKernels<T>& k = kernels().chains.of<T>();
    m.def("chain_argmax", [&k](In<T> scores, In<bool> mask, Out<T> z, int threads) {
        return run([&](FaultBox& faults) { k.argmax(chains_of<T>(scores, mask), z.data(), threads, faults); });
    });
    m.def("chain_k_best", [&k](In<T> scores, In<bool> mask, Out<int64_t> states, Out<int64_t> found, int threads) {
        return run([&](FaultBox& faults) {
            k.k_best(chains_of<T>(scores, mask), static_cast<int64_t>(states.shape(1)), states.data(), found.data(),
                     threads, faults);
        });
    });
    m.def(
        "chain_sums",
        [&k](In<T> scores, In<bool> mask, Out<T> log_partition, std::optional<Out<T>> marginals, int threads) {
            return run([&](FaultBox& faults) {
                k.sums(chains_of<T>(scores, mask), log_partition.data(), marginals ? marginals->data() : nullptr,
                       threads, faults);
            });
        },
        "scores"_a, "mask"_a, "log_partition"_a, "marginals"_a.none(), "threads"_a);
    m.def("chain_hessian", [&k](In<T> scores, In<bool> mask, In<T> direction, Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.hessian(chains_of<T>(scores, mask), direction.data(), to.data(), threads, faults);
        });
    });
    m.def("chain_sample", [&k](In<T> scores, In<bool> mask, In<int64_t> seeds, Out<T> z, int threads) {
        return run([&](FaultBox& faults) {
            k.sample(chains_of<T>(scores, mask), seeds.data(), static_cast<int64_t>(seeds.shape(1)), z.data(), threads,
                     faults);
        });
    });
    m.def("project_chain_hull", hull<T>, "points"_a, "mask"_a, "start"_a.none(), "tolerance"_a, "max_rounds"_a,
          "support"_a, "to"_a, "gap"_a, "threads"_a);
    m.def("project_chain_blocks", [&k](In<T> points, In<bool> mask, Out<T> to, int threads) {
        return run([&](FaultBox& faults) { k.project_blocks(chains_of<T>(points, mask), to.data(), threads, faults); });
    });
    m.def("pull_chain_blocks", [&k](In<T> z, In<bool> mask, In<T> grad, double eta, Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.pull_blocks(chains_of<T>(z, mask), grad.data(), eta, to.data(), threads, faults);
        });
    });
}

}  // namespace

void bind_chains(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
