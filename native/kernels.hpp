// The kernels as tables of functions: for each instruction set one table of each family.
//
// A family is a struct here, a file kernels_<family>.cpp that fills it for every instruction set, and a file
// bind_<family>.cpp that shows it to Python.
#pragma once

#include "batch.hpp"

namespace spigot {

// Which trees: the two questions on which all algorithms for them differ.
struct TreeKind {
    bool projective;
    bool single_root;
};

// Receives the support of one projection: its trees, their weights, and n heads for each tree, -1 where there is no
// word. Called once for each sentence, from any thread.
using HullEmit = void (*)(void* context, int64_t sentence, int trees, const double* weights, const int32_t* heads);

// What is pulled back through a projection: a point z of the polytope and the gradient there. SPIGOT has no scores;
// LPGD has, and for each instance their scale, 1 / rho.
template <class T>
struct PullInput {
    const T* z;
    const T* grad;
    const uint8_t* mask;
    double eta;
    const T* scores;
    const double* scale;
    bool two_sided;
};

// Products of simplices and intervals.
template <class T>
struct BlockKernels {
    void (*project_rows)(const T* point, const uint8_t* mask, int64_t rows, int64_t width, T* to, int threads,
                         FaultBox&);
    void (*project_heads)(const T* point, const uint8_t* mask, int64_t batch, int64_t n, T* to, int threads, FaultBox&);
    void (*project_arc_labels)(const T* point, const uint8_t* mask, int64_t batch, int64_t n, int64_t width,
                               bool sequential, T* to, int threads, FaultBox&);
    void (*pull_rows)(const PullInput<T>&, int64_t rows, int64_t width, T* to, int threads, FaultBox&);
    void (*pull_heads)(const PullInput<T>&, int64_t batch, int64_t n, T* to, int threads, FaultBox&);
    void (*pull_arc_labels)(const PullInput<T>&, int64_t batch, int64_t n, int64_t width, bool sequential, T* to,
                            int threads, FaultBox&);
};

template <class T>
struct TreeKernels {
    void (*argmax)(const ArcBatch<T>&, TreeKind, T* z, int threads, FaultBox&);
    void (*sums)(const ArcBatch<T>&, TreeKind, T* log_partition, T* marginals, int threads, FaultBox&);
    void (*hessian)(const ArcBatch<T>&, TreeKind, const T* direction, T* to, int threads, FaultBox&);
    void (*project_hull)(const ArcBatch<T>&, const T* start, TreeKind, double tolerance, int64_t max_rounds, T* to,
                         double* gap, HullEmit emit, void* emit_context, int threads, FaultBox&);
};

template <class T>
struct GraphKernels {
    void (*argmax)(const T* scores, const uint8_t* mask, int64_t batch, int64_t n, int64_t width,
                   const uint8_t* deterministic, T* z, int threads, FaultBox&);
};

// One family in both precisions.
template <template <class> class Family>
struct Tables {
    Family<float> single;
    Family<double> twice;

    template <class T>
    const Family<T>& of() const {
        if constexpr (sizeof(T) == sizeof(float)) return single;
        else return twice;
    }
};

struct Kernels {
    const char* name;
    const Tables<BlockKernels>& blocks;
    const Tables<TreeKernels>& trees;
    const Tables<GraphKernels>& graphs;
};

// The best tables for this machine.
const Kernels& kernels();

}  // namespace spigot
