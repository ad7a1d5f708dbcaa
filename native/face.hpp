// The Jacobian of a hull projection, applied to a gradient: projection onto the differences of the support.
#pragma once

#include <cstdint>

namespace spigot {

// grad and to are (batch, parts). Instance b owns structures offsets[b]..offsets[b+1]; structure t is `values` at
// `indices`, both from starts[t] to starts[t+1].
void project_face(const double* grad, int64_t batch, int64_t parts, const int64_t* offsets, const int64_t* starts,
                  const int64_t* indices, const double* values, double* to, int threads);

}  // namespace spigot
