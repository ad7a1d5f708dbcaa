// The Python face of the kernels, family by family.
#include "bind.hpp"

NB_MODULE(_native, m) {
    using namespace spigot;
    m.attr("FAULT_NAN") = static_cast<int>(FAULT_NAN);
    m.attr("FAULT_HEADLESS") = static_cast<int>(FAULT_HEADLESS);
    m.attr("FAULT_IMPOSSIBLE") = static_cast<int>(FAULT_IMPOSSIBLE);
    m.attr("FAULT_INFINITE") = static_cast<int>(FAULT_INFINITE);
    m.def("instruction_set", [] { return kernels().name; });
    bind_alignments(m);
    bind_blocks(m);
    bind_chains(m);
    bind_draws(m);
    bind_encoders(m);
    bind_factors(m);
    bind_graphs(m);
    bind_matchings(m);
    bind_spans(m);
    bind_subsets(m);
    bind_tagger(m);
    bind_trees(m);
}
