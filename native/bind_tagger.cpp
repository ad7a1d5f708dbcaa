// The averaged perceptron of the tagger.
#include "bind.hpp"
#include "perceptron.hpp"

namespace spigot {
namespace {

TaggedText text_of(const In<int32_t>& plain, const In<int32_t>& paired, const In<int32_t>& fixed,
                   const In<int64_t>& starts, int64_t history, int64_t tags, size_t stride) {
    return {plain.data(),
            paired.data(),
            fixed.data(),
            starts.data(),
            static_cast<int64_t>(plain.shape(1)),
            static_cast<int64_t>(paired.shape(1)),
            history,
            tags,
            static_cast<int64_t>(stride)};
}

}  // namespace

void bind_tagger(nb::module_& m) {
    m.def("perceptron_tag", [](In<int32_t> plain, In<int32_t> paired, In<int32_t> fixed, In<int64_t> starts,
                               int64_t history, int64_t tags, In<int32_t> weights, Out<int32_t> to) {
        nb::gil_scoped_release release;
        const auto text = text_of(plain, paired, fixed, starts, history, tags, weights.shape(1));
        perceptron_tag(text, static_cast<int64_t>(starts.shape(0)) - 1, weights.data(), to.data());
    });
    m.def("perceptron_train",
          [](In<int32_t> plain, In<int32_t> paired, In<int32_t> fixed, In<int64_t> starts, int64_t history, int64_t tags,
             In<int64_t> order, In<int32_t> gold, Out<int32_t> weights, Out<int64_t> totals, int64_t step) {
              nb::gil_scoped_release release;
              const auto text = text_of(plain, paired, fixed, starts, history, tags, weights.shape(1));
              return perceptron_train(text, order.data(), static_cast<int64_t>(order.shape(0)), gold.data(),
                                      weights.data(), totals.data(), step);
          });
}

}  // namespace spigot
