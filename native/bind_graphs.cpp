// Semantic graphs.
#include "bind.hpp"

namespace spigot {
namespace {

template <class T>
void bind(nb::module_& m) {
    const GraphKernels<T>& k = kernels().graphs.of<T>();
    m.def("graph_argmax", [&k](In<T> scores, In<bool> mask, In<bool> deterministic, Out<T> z, int threads) {
        return run([&](FaultBox& faults) {
            k.argmax(scores.data(), bytes(mask), scores.shape(0), scores.shape(1), scores.shape(3),
                     bytes(deterministic), z.data(), threads, faults);
        });
    });
}

}  // namespace

void bind_graphs(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
