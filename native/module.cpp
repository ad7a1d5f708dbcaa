// The Python face of the kernels. Arrays come in by the buffer interface, the interpreter lock is released while they
// run, and what is wrong with the values comes back as a tuple for Python to put into words.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <string>
#include <vector>

#include "face.hpp"
#include "kernels.hpp"
#include "perceptron.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace spigot {
namespace {

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

using FaultTuple = std::tuple<int, int64_t, int64_t, int64_t, int64_t>;

std::optional<FaultTuple> describe(const FaultBox& faults) {
    if (!faults.any()) return std::nullopt;
    const Fault f = faults.first();
    return FaultTuple{f.kind, f.instance, f.part[0], f.part[1], f.part[2]};
}

template <class T>
const KernelsOf<T>& table() {
    if constexpr (sizeof(T) == sizeof(float)) return kernels().single;
    else return kernels().twice;
}

const uint8_t* bytes(const In<bool>& mask) { return reinterpret_cast<const uint8_t*>(mask.data()); }

template <class T>
ArcBatch<T> arcs_of(const In<T>& scores, const In<bool>& mask) {
    return {scores.data(), bytes(mask), static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1))};
}

struct Kind {
    TreeKind trees;
    bool single_root;
    explicit Kind(const std::string& name)
        : trees(name.rfind("non", 0) == 0 ? TreeKind::NONPROJECTIVE : TreeKind::PROJECTIVE),
          single_root(name.find("-single") != std::string::npos) {}
};

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
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), {kept->size()}, owner);
}

template <class T>
nb::tuple hull(In<T> points, In<bool> mask, std::optional<In<T>> start, const std::string& name, double tolerance,
               int64_t max_rounds, Out<T> to, Out<double> gap, int threads) {
    const Kind kind(name);
    const auto batch = points.shape(0), n = points.shape(1);
    FaultBox faults;
    SupportArrays arrays{std::vector<std::vector<double>>(batch),
                         std::vector<std::vector<int32_t>>(batch, std::vector<int32_t>(n))};
    std::vector<int64_t> offsets{0}, starts{0}, indices;
    std::vector<double> weights, values;
    {
        nb::gil_scoped_release release;
        table<T>().project_tree_hull(arcs_of<T>(points, mask), start ? start->data() : nullptr, kind.trees,
                                     kind.single_root, tolerance, max_rounds, to.data(), gap.data(), keep_support,
                                     &arrays, threads, faults);
        for (size_t b = 0; b < batch; ++b) {
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

template <class T>
void bind(nb::module_& m) {
    m.def("project_rows", [](In<T> point, In<bool> mask, Out<T> to, int threads) {
        FaultBox faults;
        {
            nb::gil_scoped_release release;
            table<T>().project_rows(point.data(), bytes(mask), point.shape(0), point.shape(1), to.data(), threads,
                                    faults);
        }
        return describe(faults);
    });
    m.def("project_heads", [](In<T> point, In<bool> mask, Out<T> to, int threads) {
        FaultBox faults;
        {
            nb::gil_scoped_release release;
            table<T>().project_heads(point.data(), bytes(mask), point.shape(0), point.shape(1), to.data(), threads,
                                     faults);
        }
        return describe(faults);
    });
    m.def("project_arc_labels", [](In<T> point, In<bool> mask, Out<T> to, bool sequential, int threads) {
        FaultBox faults;
        {
            nb::gil_scoped_release release;
            table<T>().project_arc_labels(point.data(), bytes(mask), point.shape(0), point.shape(1), point.shape(3),
                                          sequential, to.data(), threads, faults);
        }
        return describe(faults);
    });
    m.def("pull_arc_labels",
          [](In<T> z, In<T> grad, In<bool> mask, double eta, Out<T> to, bool sequential, int threads) {
              FaultBox faults;
              {
                  nb::gil_scoped_release release;
                  table<T>().pull_arc_labels(z.data(), grad.data(), bytes(mask), z.shape(0), z.shape(1), z.shape(3),
                                             eta, sequential, to.data(), threads, faults);
              }
              return describe(faults);
          });
    m.def("tree_argmax", [](In<T> scores, In<bool> mask, const std::string& name, Out<T> z, int threads) {
        const Kind kind(name);
        FaultBox faults;
        {
            nb::gil_scoped_release release;
            table<T>().tree_argmax(arcs_of<T>(scores, mask), kind.trees, kind.single_root, z.data(), threads, faults);
        }
        return describe(faults);
    });
    m.def(
        "tree_sums",
        [](In<T> scores, In<bool> mask, const std::string& name, Out<T> log_partition, std::optional<Out<T>> marginals,
           int threads) {
            const Kind kind(name);
            FaultBox faults;
            {
                nb::gil_scoped_release release;
                table<T>().tree_sums(arcs_of<T>(scores, mask), kind.trees, kind.single_root, log_partition.data(),
                                     marginals ? marginals->data() : nullptr, threads, faults);
            }
            return describe(faults);
        },
        "scores"_a, "mask"_a, "kind"_a, "log_partition"_a, "marginals"_a.none(), "threads"_a);
    m.def("tree_hessian",
          [](In<T> scores, In<bool> mask, In<T> direction, const std::string& name, Out<T> to, int threads) {
              const Kind kind(name);
              FaultBox faults;
              {
                  nb::gil_scoped_release release;
                  table<T>().tree_hessian(arcs_of<T>(scores, mask), kind.trees, kind.single_root, direction.data(),
                                          to.data(), threads, faults);
              }
              return describe(faults);
          });
    m.def("graph_argmax", [](In<T> scores, In<bool> mask, In<bool> deterministic, Out<T> z, int threads) {
        FaultBox faults;
        {
            nb::gil_scoped_release release;
            table<T>().graph_argmax(scores.data(), bytes(mask), scores.shape(0), scores.shape(1), scores.shape(3),
                                    bytes(deterministic), z.data(), threads, faults);
        }
        return describe(faults);
    });
    m.def("project_tree_hull", hull<T>, "points"_a, "mask"_a, "start"_a.none(), "kind"_a, "tolerance"_a, "max_rounds"_a,
          "to"_a, "gap"_a, "threads"_a);
}

}  // namespace
}  // namespace spigot

NB_MODULE(_native, m) {
    using namespace spigot;
    m.attr("FAULT_NAN") = static_cast<int>(FAULT_NAN);
    m.attr("FAULT_HEADLESS") = static_cast<int>(FAULT_HEADLESS);
    m.attr("FAULT_IMPOSSIBLE") = static_cast<int>(FAULT_IMPOSSIBLE);
    m.attr("FAULT_INFINITE") = static_cast<int>(FAULT_INFINITE);
    m.def("instruction_set", [] { return kernels().name; });
    bind<float>(m);
    bind<double>(m);
    m.def("project_face", [](In<double> grad, In<int64_t> offsets, In<int64_t> starts, In<int64_t> indices,
                             In<double> values, Out<double> to, int threads) {
        nb::gil_scoped_release release;
        project_face(grad.data(), grad.shape(0), grad.shape(1), offsets.data(), starts.data(), indices.data(),
                     values.data(), to.data(), threads);
    });
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
