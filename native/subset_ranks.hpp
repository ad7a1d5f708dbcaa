// The best subsets of each row, best first.
#pragma once

#include "batch.hpp"

namespace spigot {

// Writes the `ranks` best subsets of minimum to maximum entries to z, (ranks, rows, width), and how many there are with
// a score above -inf to found, (rows). `maximum` < 0 stands for any number.
template <class T>
void rank_subsets(const T* scores, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                  int64_t ranks, T* z, int64_t* found, int threads, FaultBox& faults);

}  // namespace spigot
