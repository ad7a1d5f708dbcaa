// Projections onto products of simplices and intervals, and onto faces of hulls.
#include "bind.hpp"
#include "face.hpp"

namespace spigot {
namespace {

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
    m.def("pull_arc_labels",
          [&k](In<T> z, In<T> grad, In<bool> mask, double eta, Out<T> to, bool sequential, int threads) {
              return run([&](FaultBox& faults) {
                  k.pull_arc_labels(z.data(), grad.data(), bytes(mask), z.shape(0), z.shape(1), z.shape(3), eta,
                                    sequential, to.data(), threads, faults);
              });
          });
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
