// Factor graphs.
#include "bind.hpp"

namespace spigot {
namespace {

FactorTables tables_of(const nb::tuple& arrays) {
    FactorTables t;
    t.kind = nb::cast<In<uint8_t>>(arrays[0]).data();
    t.start = nb::cast<In<int64_t>>(arrays[1]).data();
    t.variable = nb::cast<In<int32_t>>(arrays[2]).data();
    t.negated = nb::cast<In<uint8_t>>(arrays[3]).data();
    t.weight = nb::cast<In<double>>(arrays[4]).data();
    t.least = nb::cast<In<double>>(arrays[5]).data();
    t.most = nb::cast<In<double>>(arrays[6]).data();
    t.defines = nb::cast<In<uint8_t>>(arrays[7]).data();
    t.factors_from = nb::cast<In<int64_t>>(arrays[8]).data();
    t.graph = nb::cast<In<int64_t>>(arrays[9]).data();
    return t;
}

}  // namespace

// Reports are rows of doubles, so that Python reads and writes them as one array: see `FactorReport`.
static_assert(sizeof(FactorReport) == 10 * sizeof(double));

void bind_factors(nb::module_& m) {
    const FactorKernels& k = kernels().factors;
    m.def("negotiate",
          [&k](nb::tuple arrays, In<int64_t> slots_from, In<double> scores, In<int8_t> fixed, Out<double> p,
               Out<double> z, Out<double> q, Out<double> price, std::optional<In<double>> faces, Out<double> reports,
               double quadratic, double tolerance, double gap, int judge, int64_t max_iterations, int64_t look_every,
               int64_t adapt_every, double imbalance, int threads) {
              const FactorTables tables = tables_of(arrays);
              const FactorState state{static_cast<int64_t>(scores.shape(0)),
                                      static_cast<int64_t>(scores.shape(1)),
                                      slots_from.data(),
                                      scores.data(),
                                      fixed.data(),
                                      p.data(),
                                      z.data(),
                                      q.data(),
                                      price.data(),
                                      faces ? faces->data() : nullptr,
                                      reinterpret_cast<FactorReport*>(reports.data())};
              const FactorSettings settings{quadratic,  tolerance,   gap,      judge, max_iterations,
                                            look_every, adapt_every, imbalance};
              nb::gil_scoped_release release;
              k.negotiate(tables, state, settings, threads);
          });
    m.def("factor_excess", [&k](nb::tuple arrays, In<double> point, Out<double> to, Out<int64_t> which, int threads) {
        const FactorTables tables = tables_of(arrays);
        nb::gil_scoped_release release;
        k.excess(tables, point.data(), point.shape(0), point.shape(1), to.data(), which.data(), threads);
    });
}

}  // namespace spigot
