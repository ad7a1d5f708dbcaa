// Binary trees over labelled spans.
#include "bind.hpp"

namespace spigot {
namespace {

template <class T>
SpanBatch<T> spans_of(const In<T>& scores, const In<bool>& mask) {
    return {scores.data(), bytes(mask), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1)),
            static_cast<int64_t>(scores.shape(3))};
}

template <class T>
void bind(nb::module_& m) {
    const SpanKernels<T>& k = kernels().spans.of<T>();
    m.def("span_argmax", [&k](In<T> scores, In<bool> mask, Out<T> z, int threads) {
        return run([&](FaultBox& faults) { k.argmax(spans_of<T>(scores, mask), z.data(), threads, faults); });
    });
    m.def(
        "span_sums",
        [&k](In<T> scores, In<bool> mask, Out<T> log_partition, std::optional<Out<T>> marginals, int threads) {
            return run([&](FaultBox& faults) {
                k.sums(spans_of<T>(scores, mask), log_partition.data(), marginals ? marginals->data() : nullptr,
                       threads, faults);
            });
        },
        "scores"_a, "mask"_a, "log_partition"_a, "marginals"_a.none(), "threads"_a);
    m.def("span_hessian", [&k](In<T> scores, In<bool> mask, In<T> direction, Out<T> to, int threads) {
        return run([&](FaultBox& faults) {
            k.hessian(spans_of<T>(scores, mask), direction.data(), to.data(), threads, faults);
        });
    });
    m.def("span_sample", [&k](In<T> scores, In<bool> mask, In<int64_t> seeds, Out<T> z, int threads) {
        return run([&](FaultBox& faults) {
            k.sample(spans_of<T>(scores, mask), seeds.data(), seeds.shape(1), z.data(), threads, faults);
        });
    });
    m.def("span_k_best", [&k](In<T> scores, In<bool> mask, Out<T> z, Out<int64_t> found, int threads) {
        return run([&](FaultBox& faults) {
            k.k_best(spans_of<T>(scores, mask), z.shape(1), z.data(), found.data(), threads, faults);
        });
    });
}

}  // namespace

void bind_spans(nb::module_& m) {
    bind<float>(m);
    bind<double>(m);
}

}  // namespace spigot
