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

// Receives the support of one projection: its members, their weights, and the places of the parts of each, equally many.
// Called once for each instance, from any thread; null if nobody asks for it, which may be quicker.
using HullEmit = void (*)(void* context, int64_t instance, int members, int parts, const double* weights,
                          const int32_t* places);

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

// Chains (batch, n, 1 + states, states), contiguous: row 0 of a position holds its states, row 1 + i the transitions into
// it from state i of the position before.
template <class T>
struct ChainBatch {
    const T* scores;
    const uint8_t* mask;
    int64_t batch;
    int64_t n;
    int64_t states;
};

template <class T>
struct ChainKernels {
    void (*argmax)(const ChainBatch<T>&, T* z, int threads, FaultBox&);
    void (*k_best)(const ChainBatch<T>&, int64_t count, int64_t* states, int64_t* found, int threads, FaultBox&);
    void (*sums)(const ChainBatch<T>&, T* log_partition, T* marginals, int threads, FaultBox&);
    void (*hessian)(const ChainBatch<T>&, const T* direction, T* to, int threads, FaultBox&);
    void (*sample)(const ChainBatch<T>&, const int64_t* seeds, int64_t samples, T* z, int threads, FaultBox&);
    void (*project_hull)(const ChainBatch<T>& points, const T* start, double tolerance, int64_t max_rounds, T* to,
                         double* gap, HullEmit emit, void* emit_context, int threads, FaultBox&);
    void (*project_blocks)(const ChainBatch<T>& points, T* to, int threads, FaultBox&);
    void (*pull_blocks)(const ChainBatch<T>& z, const T* grad, double eta, T* to, int threads, FaultBox&);
};

// Trees drawn at random, and the labels of their arcs.
template <class T>
struct DrawKernels {
    void (*sample_trees)(const ArcBatch<T>&, TreeKind, const int64_t* seeds, int64_t samples, T* z, int threads,
                         FaultBox&);
    void (*best_labels)(const T* scores, const uint8_t* mask, int64_t batch, int64_t n, int64_t width, T* best,
                        int32_t* which, int threads, FaultBox&);
    void (*label_sums)(const T* scores, const uint8_t* mask, int64_t batch, int64_t n, int64_t width, T* log_sum,
                       T* share, uint8_t* arcs, int threads, FaultBox&);
};

template <class T>
struct MatchingKernels {
    void (*match)(const T* scores, const uint8_t* parts, int64_t batch, int64_t n, int64_t m, bool complete, T* z,
                  uint8_t* found, int threads, FaultBox&);
    void (*project)(const T* point, const uint8_t* mask, int64_t batch, int64_t n, int64_t m, bool complete, T* to,
                    int threads, FaultBox&);
};

// Span scores (batch, n, n, labels), indexed [first, last, label]; parts below the diagonal never exist.
template <class T>
struct SpanBatch {
    const T* scores;
    const uint8_t* mask;
    int64_t batch, n, labels;

    int64_t size() const { return n * n * labels; }
    double steps() const { return static_cast<double>(batch) * n * n * (0.2 * n + labels); }
    int64_t at(int64_t first, int64_t last) const { return (first * n + last) * labels; }
};

// Binary trees over labelled spans.
template <class T>
struct SpanKernels {
    void (*argmax)(const SpanBatch<T>&, T* z, int threads, FaultBox&);
    void (*sums)(const SpanBatch<T>&, T* log_partition, T* marginals, int threads, FaultBox&);
    void (*hessian)(const SpanBatch<T>&, const T* direction, T* to, int threads, FaultBox&);
    void (*sample)(const SpanBatch<T>&, const int64_t* seeds, int64_t samples, T* z, int threads, FaultBox&);
    void (*k_best)(const SpanBatch<T>&, int64_t k, T* z, int64_t* found, int threads, FaultBox&);
};

// Scores of cells (batch, n, m), contiguous.
template <class T>
struct CellBatch {
    const T* scores;
    const uint8_t* mask;
    int64_t batch, n, m;

    double steps() const { return static_cast<double>(batch) * n * m; }
};

// Monotone paths through a grid, by the cells that they go through.
template <class T>
struct AlignmentKernels {
    void (*argmax)(const CellBatch<T>&, T* z, int threads, FaultBox&);
    void (*sums)(const CellBatch<T>&, T* log_partition, T* marginals, int threads, FaultBox&);
    void (*hessian)(const CellBatch<T>&, const T* direction, T* to, int threads, FaultBox&);
    void (*sample)(const CellBatch<T>&, const int64_t* seeds, int64_t samples, T* z, int threads, FaultBox&);
    void (*k_best)(const CellBatch<T>&, int64_t k, T* z, int64_t* found, int threads, FaultBox&);
};

// Rows of entries of which some number is taken, `minimum` to `maximum`; a `maximum` below zero is any number.
template <class T>
struct SubsetKernels {
    void (*argmax)(const T* scores, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                   T* z, int threads, FaultBox&);
    void (*project)(const T* point, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                    T* to, int threads, FaultBox&);
    void (*sums)(const T* scores, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                 T* log_partition, T* marginals, int threads, FaultBox&);
    void (*hessian)(const T* scores, const uint8_t* mask, const T* direction, int64_t rows, int64_t width,
                    int64_t minimum, int64_t maximum, T* to, int threads, FaultBox&);
    void (*sample)(const T* scores, const uint8_t* mask, const int64_t* seeds, int64_t draws, int64_t rows,
                   int64_t width, int64_t minimum, int64_t maximum, T* z, int threads, FaultBox&);
};

// One direction of a layer of an LSTM. A panel holds the four gates (in, forget, cell, out) of as many units as a vector
// has lanes: for every pair of inputs, of each gate of each unit two weights. All are whole numbers, and the scales say
// what one is worth.
struct LstmWeights {
    const int16_t* input;
    const float* input_scale;
    const float* bias;
    const int16_t* state;
    const float* state_scale;
};

// Sentences of (batch, n) positions, of which the first `lengths` exist; `place` says which row of (rows, stride) inputs
// stands at each. Forward reads `width` numbers from the beginning of a row, backward from `apart` on. States are (batch,
// n, 2 * units), forward beside backward; those behind a sentence are not touched.
struct LstmBatch {
    const float* inputs;
    int64_t rows, stride, width, apart;
    const int64_t* place;
    const int64_t* lengths;
    int64_t batch, n, units;
    LstmWeights weights[2];
    float* states;
};

// (rows, width) numbers times a matrix of whole ones that lies in panels, plus a bias: (rows, outputs).
struct WholeProduct {
    const float* inputs;
    int64_t rows, width, outputs;
    const int16_t* weight;
    const float* scale;
    const float* bias;
    float* results;
};

// The recurrent half of a layer of two LSTMs, forward first, over sentences of (batch, n) positions, of which the first
// `lengths` exist. Given are (batch, n, 4, units) numbers for the gates (in, forget, cell, out) from the inputs, and
// weights (4, units, units) of the states. Made, where positions exist, are (batch, n, 2, units) states, and of each
// direction the gates as they opened and the cells, (batch, n, units). The way back has all that, and what is `wanted` of
// the states; it makes what is wanted of the gates.
struct RecurrentBatch {
    const int64_t* lengths;
    int64_t batch, n, units;
    const float* gates[2];
    const float* weights[2];
    float* states;
    float* opened[2];
    float* cells[2];
    const float* wanted;
    float* wanted_gates[2];
};

// What words are as heads and as dependents, (batch, n, width) each, and a matrix of whole numbers, in panels, that makes
// of a dependent (labels, width + 1) numbers: what a head is multiplied with, and what is added. For each head and
// dependent, (batch, n, n), the best label's score and the label; -inf and -1 beyond the lengths, which count the root,
// and for the root as a dependent.
struct BestProducts {
    const float* heads;
    const float* dependents;
    const int64_t* lengths;
    int64_t batch, n, width, labels;
    int64_t root;  // the label of all arcs from the first head, and of no other; -1 if there is none
    const int16_t* weight;
    const float* scale;
    const float* bias;
    float* best;
    int32_t* which;
};

// The same sides of words and the same matrix for roles, at most 64 of them; scores of predicates (batch, n) and of arcs
// (batch, n, n); and which roles words may have by their tags (batch, n): bits of (tags, tags), and how far apart such words
// may be, (2, tags, tags), dependents to the left first. Made are the roles of the best graphs where a labelled arc is worth how
// likely it is, less the threshold: (batch, n, n), -1 where there is no arc.
struct LikelyGraphs {
    const float* heads;
    const float* dependents;
    const int64_t* lengths;
    int64_t batch, n, width, labels;
    const int16_t* weight;
    const float* scale;
    const float* bias;
    const float* predicates;
    const float* arcs;
    const int64_t* tags;
    const int64_t* possible;
    const int64_t* reach;
    int64_t tag_count;
    const uint8_t* deterministic;
    float threshold;
    int32_t* roles;
};

// Pairs of a row of one table and a row of another, both of `width` columns, and a row of `values` for each pair. On the
// way back, what is `wanted` of these is added up for the rows.
struct PairRows {
    const float* first;
    const float* second;
    const int64_t* first_row;
    const int64_t* second_row;
    int64_t pairs, width;
    float* values;
    const float* wanted;
    float* first_wanted;
    float* second_wanted;
};

// Networks that only read, and what LSTMs and perceptrons over pairs need to learn.
struct EncoderKernels {
    int lanes;
    void (*best_products)(const BestProducts&, int threads);
    void (*likely_graphs)(const LikelyGraphs&, int threads);
    void (*whole_product)(const WholeProduct&, int threads);
    void (*lstm_layer)(const LstmBatch&, int threads);
    void (*tanh_all)(const float* values, float* to, int64_t count, int threads);
    void (*recur)(const RecurrentBatch&, int threads);
    void (*recur_back)(const RecurrentBatch&, int threads);
    void (*pair_tanh)(const PairRows&, int threads);
    void (*pair_tanh_back)(const PairRows&, int threads);
};

// Factor graphs, several of them one behind the other: graph g owns the factors factors_from[g] to factors_from[g + 1],
// factor f the entries start[f] to start[f + 1] of `variable`, `negated` and `weight`. Instance b is of graph[b].
struct FactorTables {
    const uint8_t* kind;
    const int64_t* start;
    const int32_t* variable;
    const uint8_t* negated;
    const double* weight;
    const double* least;
    const double* most;
    const uint8_t* defines;  // whether the last variable follows from the others
    const int64_t* factors_from;
    const int64_t* graph;
};

enum FactorStatus { FACTORS_GOING = 0, FACTORS_SETTLED = 1, FACTORS_OPTIMAL = 2, FACTORS_INFEASIBLE = 3, FACTORS_CUT = 4 };

// How an instance stands; a row of doubles for Python.
struct FactorReport {
    double status;      // a FactorStatus
    double iterations;  // so far; 0 begins anew
    double rho;         // strength of the quadratic penalty
    double apart;       // how far the copies are from the consensus, root mean square
    double change;      // how far the consensus moved in the last step
    double bound;       // no member is better than this
    double value;       // of the best member found
    double cutoff;      // a bound below this is of no interest
    double outside;     // what factors from outside add to the bound
    double spare;
};

// A batch of (batch, parts) problems and how they stand; slots_from says where an instance's copies and prices begin.
// `fixed` is 0 or 1 where a variable may not move, -1 elsewhere. With `faces`, the points that were projected, every
// projection is replaced by its derivative there.
struct FactorState {
    int64_t batch, parts;
    const int64_t* slots_from;
    const double* scores;
    const int8_t* fixed;
    double* p;
    double* z;
    double* q;
    double* price;
    const double* faces;
    FactorReport* reports;
};

// When to look at what the prices prove: never, every few steps, or now and take no steps.
enum FactorJudge { JUDGE_NEVER = 0, JUDGE_STEPS = 1, JUDGE_ONLY = 2 };

struct FactorSettings {
    double quadratic, tolerance, gap;
    int judge;
    int64_t max_iterations, look_every, adapt_every;
    double imbalance;
};

struct FactorKernels {
    void (*negotiate)(const FactorTables&, const FactorState&, const FactorSettings&, int threads);
    void (*excess)(const FactorTables&, const double* point, int64_t batch, int64_t parts, double* to, int64_t* which,
                   int threads);
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
    const Tables<AlignmentKernels>& alignments;
    const Tables<BlockKernels>& blocks;
    const Tables<TreeKernels>& trees;
    const Tables<GraphKernels>& graphs;
    const Tables<ChainKernels>& chains;
    const Tables<DrawKernels>& draws;
    const EncoderKernels& encoders;
    const FactorKernels& factors;
    const Tables<MatchingKernels>& matchings;
    const Tables<SpanKernels>& spans;
    const Tables<SubsetKernels>& subsets;
};

// The best tables for this machine.
const Kernels& kernels();

}  // namespace spigot
