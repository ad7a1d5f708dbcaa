// Sums over non-projective trees by elimination without subtractions (Grassmann, Taksar, Heyman), and the derivative by
// going through it backwards. The file spanning_trees.py has the mathematics.
#pragma once

#include "numbers.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class V>
class MatrixTree {
public:
    MatrixTree(Scratch& scratch, int size, bool backward) : size_(size) {
        const size_t area = static_cast<size_t>(size) * size;
        weights = scratch.take<V>(area);
        pivots = scratch.take<V>(size);
        share_ = scratch.take<V>(size);
        d_share_ = scratch.take<V>(size);
        derivative = backward ? scratch.take<V>(area) : nullptr;
    }

    // Eliminates the words from the last to the first. `rare_root` leaves the root out of the pivots of all words but
    // the first: the limit of small root weights, in which only trees with a single root count.
    void eliminate(bool rare_root) {
        const int n = size_;
        for (int k = n - 1; k >= 1; --k) {
            const int low = lowest(k, rare_root);
            V pivot = weights[low * n + k];
            for (int h = low + 1; h < k; ++h) pivot += weights[h * n + k];
            pivots[k] = pivot;
            const V scale = Constant<V>::of(1) / pivot;
            const V* row = weights + k * n;
            for (int h = 0; h < k; ++h) {
                const V share = weights[h * n + k] * scale;
                V* to = weights + h * n;
                for (int m = 1; m < k; ++m) to[m] += share * row[m];
            }
        }
    }

    // After eliminate: the derivative of the sum of the log pivots by each of the weights it started from.
    void differentiate(bool rare_root) {
        const int n = size_;
        const V zero = Constant<V>::of(0), one = Constant<V>::of(1);
        V* d = derivative;
        for (int i = 0; i < n * n; ++i) d[i] = zero;
        for (int k = 1; k < n; ++k) {
            const int low = lowest(k, rare_root);
            const V scale = one / pivots[k];
            const V* row = weights + k * n;
            V* d_row = d + k * n;
            V both = zero;
            for (int h = 0; h < k; ++h) {
                const V share = weights[h * n + k] * scale;
                const V* d_to = d + h * n;
                V d_share = zero;
                for (int m = 1; m < k; ++m) {
                    d_share += d_to[m] * row[m];
                    d_row[m] += d_to[m] * share;
                }
                share_[h] = share;
                d_share_[h] = d_share;
                both += share * d_share;
            }
            for (int h = 0; h < k; ++h) {
                const V grad = h >= low ? (one - both) + d_share_[h] : d_share_[h];
                d[h * n + k] = grad * scale;
            }
        }
    }

    V* weights;     // [head * size + modifier]: filled by the caller, used up by eliminate
    V* pivots;      // of words 1..size-1
    V* derivative;  // [head * size + modifier]

private:
    static int lowest(int k, bool rare_root) { return rare_root && k > 1 ? 1 : 0; }

    int size_;
    V *share_, *d_share_;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
