// What the sums over trees start from: which sentences, and the weights of their arcs, scaled word by word.
#pragma once

#include "kernels.hpp"
#include "numbers.hpp"
#include "packing.hpp"
#include "projective_draws.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// A root weight of 2^-this leaves only trees with one root: beyond what wide_exp makes of 500 words together.
constexpr int64_t rare_root_exponent = int64_t{1} << 50;

// A score to draw with where nothing but -inf is left: below every other, and above an arc that does not exist.
inline double finite_or_least(double score) { return score > minus_infinity<double> ? score : -1e300; }

// What one call wants of each sentence.
template <class T>
struct TreeSumJob {
    const ArcBatch<T>& arcs;
    const Words& words;
    bool nonprojective, single_root;
    const T* direction;  // for Hessian products, else null
    T* log_partition;    // or null
    T* result;           // marginals or Hessian products, or null
    FaultBox& faults;
    const DrawJob<T>* draws = nullptr;  // trees to draw, or null

    // With a single root and plain doubles the root is left out of the pivots; elsewhere it gets a tiny weight.
    template <class V>
    bool rare_root() const {
        return nonprojective && single_root && !Lane<V>::wide_range;
    }
};

// Where the log of a root weight waits until its scale is known.
template <class V>
inline auto& weights_root(V* weights, int m) {
    if constexpr (Lane<V>::has_slope) return weights[m].value;
    else return weights[m];
}

// Weights exp(score) of a group of sentences, scaled for each word; `shift` takes the log of the scale.
template <class T, class V>
void load_weights(const TreeSumJob<T>& job, const int32_t* group, int count, int size, const Lanes<double>* scores,
                  const Lanes<double>* direction, V* weights, double* shift) {
    const int first = job.template rare_root<V>() ? 1 : 0;  // rows that are scaled word by word
    if constexpr (Lane<V>::wide_range) {
        shift[0] = 0;
        for (int m = 0; m < size; ++m) {
            double top = minus_infinity<double>;
            for (int h = 0; h < size; ++h) top = scores[h * size + m][0] > top ? scores[h * size + m][0] : top;
            if (!(top > minus_infinity<double>)) top = 0;
            shift[0] += top;
            for (int h = 0; h < size; ++h) {
                Wide w = wide_exp(scores[h * size + m][0] - top);
                if (h == 0 && job.nonprojective && job.single_root) w.exponent -= rare_root_exponent;
                if (w.mantissa == 0) w.exponent = wide_zero_exponent;
                if constexpr (Lane<V>::has_slope) {
                    weights[h * size + m] = V{w, w * wide(direction[h * size + m][0])};
                } else {
                    weights[h * size + m] = w;
                }
            }
        }
    } else {
        using D = Lanes<double>;
        D logs{}, product = spread(1.0);
        auto put = [&](int h, int m, D w) {
            if constexpr (Lane<V>::has_slope) {
                weights[h * size + m] = V{w, w * direction[h * size + m]};
            } else {
                weights[h * size + m] = w;
            }
        };
        auto get = [&](int h, int m) -> D {
            if constexpr (Lane<V>::has_slope) return weights[h * size + m].value;
            else return weights[h * size + m];
        };
        const D floor = spread(-1e300);
        D root_top = floor;
        for (int m = 1; m < size; ++m) {
            D top = floor;
            for (int h = first; h < size; ++h) top = larger(top, scores[h * size + m]);
            top = top > floor ? top : D{};  // a word that can only hang on the root
            D sum{};
            for (int h = first; h < size; ++h) {
                const D w = exp_nonpositive(scores[h * size + m] - top);
                put(h, m, w);
                sum += w;
            }
            sum = sum > 0.0 ? sum : spread(1.0);
            const D scale = 1.0 / sum;
            for (int h = first; h < size; ++h) put(h, m, get(h, m) * scale);
            logs += top;
            product *= sum;
            if (m % 16 == 0 || m == size - 1) {
                for (int lane = 0; lane < Lane<V>::count; ++lane) logs[lane] += std::log(product[lane]);
                product = spread(1.0);
            }
            if (first) {  // root arcs of all words are scaled together, relative to what each word has been scaled by
                D relative = scores[m] - top;
                for (int lane = 0; lane < Lane<V>::count; ++lane) relative[lane] -= std::log(sum[lane]);
                weights_root(weights, m) = relative;
                root_top = larger(root_top, relative);
            }
        }
        if (first) {
            for (int m = 1; m < size; ++m) put(0, m, exp_nonpositive(weights_root(weights, m) - root_top));
            logs += root_top > floor ? root_top : D{};
        }
        for (int h = 0; h < size; ++h) put(h, 0, D{});
        for (int lane = 0; lane < Lane<V>::count; ++lane) shift[lane] = logs[lane];
        if (job.nonprojective) {  // padded words hang on word 1 with weight one
            for (int lane = 0; lane < Lane<V>::count; ++lane) {
                const int length = lane < count ? job.words.lengths[group[lane]] : 1;
                for (int m = length + 1; m < size; ++m) {
                    D w = get(1, m);
                    w[lane] = 1;
                    put(1, m, w);
                    if constexpr (Lane<V>::has_slope) weights[size + m].slope[lane] = 0;
                }
                if (lane >= count) {
                    D w = get(0, 1);
                    w[lane] = 1;
                    put(0, 1, w);
                }
            }
        }
    }
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
