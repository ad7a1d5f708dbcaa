// What the bindings share. Arrays come in by the buffer interface, the interpreter lock is released while kernels run,
// and what is wrong with the values comes back as a tuple for Python to put into words.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>

#include <optional>
#include <utility>
#include <vector>

#include "kernels.hpp"

namespace spigot {

namespace nb = nanobind;
using namespace nb::literals;

template <class T>
using In = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

using FaultTuple = std::tuple<int, int64_t, int64_t, int64_t, int64_t>;

inline std::optional<FaultTuple> describe(const FaultBox& faults) {
    if (!faults.any()) return std::nullopt;
    const Fault f = faults.first();
    return FaultTuple{f.kind, f.instance, f.part[0], f.part[1], f.part[2]};
}

// Runs a kernel without the interpreter lock and says what it found wrong.
template <class Body>
std::optional<FaultTuple> run(Body body) {
    FaultBox faults;
    {
        nb::gil_scoped_release release;
        body(faults);
    }
    return describe(faults);
}

inline const uint8_t* bytes(const In<bool>& mask) { return reinterpret_cast<const uint8_t*>(mask.data()); }

template <class T>
nb::ndarray<nb::numpy, T> to_numpy(std::vector<T>&& values) {
    auto* kept = new std::vector<T>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return nb::ndarray<nb::numpy, T>(kept->data(), {kept->size()}, owner);
}

void bind_alignments(nb::module_& m);
void bind_blocks(nb::module_& m);
void bind_chains(nb::module_& m);
void bind_draws(nb::module_& m);
void bind_encoders(nb::module_& m);
void bind_factors(nb::module_& m);
void bind_graphs(nb::module_& m);
void bind_matchings(nb::module_& m);
void bind_spans(nb::module_& m);
void bind_subsets(nb::module_& m);
void bind_tagger(nb::module_& m);
void bind_trees(nb::module_& m);

}  // namespace spigot
