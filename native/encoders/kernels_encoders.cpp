// Encoders, for one instruction set.
#include "encoders/best_products.hpp"
#include "encoders/likely_graphs.hpp"
#include "encoders/lstm.hpp"
#include "encoders/pairs.hpp"
#include "encoders/recurrence.hpp"
#include "kernels.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

extern const EncoderKernels encoder_kernels;
const EncoderKernels encoder_kernels = {
    unit_lanes, best_products, likely_graphs, whole_product,  lstm_layer,
    tanh_all,   recur,         recur_back,    pair_tanh,      pair_tanh_back,
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
