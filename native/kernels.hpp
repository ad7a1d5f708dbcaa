// The kernels as a table of functions: one table for each instruction set.
#pragma once

#include "batch.hpp"

namespace spigot {

// Receives the support of one projection: its trees, their weights, and n heads for each tree, -1 where there is no
// word. Called once for each sentence, from any thread.
using HullEmit = void (*)(void* context, int64_t sentence, int trees, const double* weights, const int32_t* heads);

enum class TreeKind { PROJECTIVE, NONPROJECTIVE };

template <class T>
struct KernelsOf {
    void (*project_rows)(const T* point, const uint8_t* mask, int64_t rows, int64_t width, T* to, int threads,
                         FaultBox&);
    void (*project_heads)(const T* point, const uint8_t* mask, int64_t batch, int64_t n, T* to, int threads, FaultBox&);
    void (*pull_arc_labels)(const T* z, const T* grad, const uint8_t* mask, int64_t batch, int64_t n, int64_t width,
                            double eta, bool sequential, T* to, int threads, FaultBox& faults);
    void (*project_arc_labels)(const T* point, const uint8_t* mask, int64_t batch, int64_t n, int64_t width,
                               bool sequential, T* to, int threads, FaultBox&);
    void (*tree_argmax)(const ArcBatch<T>&, TreeKind, bool single_root, T* z, int threads, FaultBox&);
    void (*tree_sums)(const ArcBatch<T>&, TreeKind, bool single_root, T* log_partition, T* marginals, int threads,
                      FaultBox&);
    void (*tree_hessian)(const ArcBatch<T>&, TreeKind, bool single_root, const T* direction, T* to, int threads,
                         FaultBox&);
    void (*graph_argmax)(const T* scores, const uint8_t* mask, int64_t batch, int64_t n, int64_t width,
                         const uint8_t* deterministic, T* z, int threads, FaultBox&);
    void (*project_tree_hull)(const ArcBatch<T>&, const T* start, TreeKind, bool single_root, double tolerance,
                              int64_t max_rounds, T* to, double* gap, HullEmit emit, void* emit_context, int threads,
                              FaultBox&);
};

struct Kernels {
    const char* name;
    KernelsOf<float> single;
    KernelsOf<double> twice;
};

// The best table for this machine.
const Kernels& kernels();

}  // namespace spigot
