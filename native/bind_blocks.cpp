// Projections onto products of simplices and intervals, and onto faces of hulls.
#include "bind.hpp"
#include "face.hpp"

namespace spigot {
namespace {

template <class T>
using Scores = std::optional<In<T>>;

template <class T>
PullInput<T> pull_input(const In<T>& z, const In<T>& grad, const In<bool>& mask, double eta, const Scores<T>& scores,
                        const Scores<double>& scale, bool two_sided) {
    return {z.data(), grad.data(), bytes(mask), eta, scores ? scores->data() : nullptr,
            scale ? scale->data() : nullptr, two_sided};
}

template <class T>
void bind(nb::module_& m) {
    const BlockKernels<T>& k = kernels().blocks.of<T>();
    m.def("project_rows", [&k](In<T> point, In<bool> mask, Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.project_rows(point.data(), bytes(mask), point.shape(0), point.shape(1), to.data(), threads, faults);
        });
    });
    m.def("project_heads", [&k](In<T> point, In<bool> mask, Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.project_heads(point.data(), bytes(mask), point.shape(0), point.shape(1), to.data(), threads, faults);
        });
    });
    m.def("project_arc_labels", [&k](In<T> point, In<bool> mask, Out<T> to, bool sequential, int threads) {
        return run([&](FaultBox& faults) {
            k.project_arc_labels(point.data(), bytes(mask), point.shape(0), point.shape(1), point.shape(3), sequential,
                                 to.data(), threads, faults);
        });
    });
    m.def(
        "pull_rows",
        [&k](In<T> z, In<T> grad, In<bool> mask, double eta, Scores<T> scores, Scores<double> scale, bool two_sided,
             Out<T> to, int threads) {
            const PullInput<T> in = pull_input<T>(z, grad, mask, eta, scores, scale, two_sided);
            return run(
                [&](FaultBox& faults) { k.pull_rows(in, z.shape(0), z.shape(1), to.data(), threads, faults); });
        },
        "z"_a, "grad"_a, "mask"_a, "eta"_a, "scores"_a.none(), "scale"_a.none(), "two_sided"_a, "to"_a, "threads"_a);
    m.def(
        "pull_heads",
        [&k](In<T> z, In<T> grad, In<bool> mask, double eta, Scores<T> scores, Scores<double> scale, bool two_sided,
             Out<T> to, int threads) {
            const PullInput<T> in = pull_input<T>(z, grad, mask, eta, scores, scale, two_sided);
            return run(
                [&](FaultBox& faults) { k.pull_heads(in, z.shape(0), z.shape(1), to.data(), threads, faults); });
        },
        "z"_a, "grad"_a, "mask"_a, "eta"_a, "scores"_a.none(), "scale"_a.none(), "two_sided"_a, "to"_a, "threads"_a);
    m.def(
        "pull_arc_labels",
        [&k](In<T> z, In<T> grad, In<bool> mask, double eta, Scores<T> scores, Scores<double> scale, bool two_sided,
             bool sequential, Out<T> to, int threads) {
            const PullInput<T> in = pull_input<T>(z, grad, mask, eta, scores, scale, two_sided);
            return run([&](FaultBox& faults) {
                k.pull_arc_labels(in, z.shape(0), z.shape(1), z.shape(3), sequential, to.data(), threads, faults);
            });
        },
        "z"_a, "grad"_a, "mask"_a, "eta"_a, "scores"_a.none(), "scale"_a.none(), "two_sided"_a, "sequential"_a, "to"_a,
        "threads"_a);
}

}  // namespace

void bind_blocks(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
    m.def("project_face", [](In<double> grad, In<int64_t> offsets, In<int64_t> starts, In<int64_t> indices,
                             In<double> values, Out<double> to, int threads) {
        nb::gil_scoped_release release;
        project_face(grad.data(), grad.shape(0), grad.shape(1), offsets.data(), starts.data(), indices.data(),
                     values.data(), to.data(), threads);
    });
}

}  // namespace spigot
