// Matchings.
#include "bind.hpp"

namespace spigot {
namespace {

template <class T>
void bind(nb::module_& m) {
    const MatchingKernels<T>& k = kernels().matchings.of<T>();
    m.def("match", [&k](In<T> scores, In<uint8_t> parts, bool complete, Out<T> z, Out<bool> found, int threads) {
        return run([&](FaultBox& faults) {
            k.match(scores.data(), parts.data(), scores.shape(0), scores.shape(1), scores.shape(2), complete, z.data(),
                    reinterpret_cast<uint8_t*>(found.data()), threads, faults);
        });
    });
    m.def("project_matchings", [&k](In<T> point, In<bool> mask, bool complete, Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.project(point.data(), bytes(mask), point.shape(0), point.shape(1), point.shape(2), complete, to.data(),
                      threads, faults);
        });
    });
}

}  // namespace

void bind_matchings(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
