#include "face.hpp"

#include <cmath>
#include <cstring>
#include <vector>

#include "pool.hpp"

namespace spigot {
namespace {

// Solves the symmetric positive definite system in place for two right-hand sides, by Cholesky without pivoting. Rows
// that depend on earlier ones get no weight.
void solve(std::vector<double>& a, size_t k, std::vector<double>& x, std::vector<double>& y) {
    for (size_t i = 0; i < k; ++i) {
        for (size_t j = 0; j <= i; ++j) {
            double sum = a[i * k + j];
            for (size_t l = 0; l < j; ++l) sum -= a[i * k + l] * a[j * k + l];
            if (i != j) a[i * k + j] = a[j * k + j] > 0 ? sum / a[j * k + j] : 0;
            else a[i * k + i] = sum > 1e-10 ? std::sqrt(sum) : 0;
        }
    }
    for (std::vector<double>* v : {&x, &y}) {
        for (size_t i = 0; i < k; ++i) {
            double sum = (*v)[i];
            for (size_t l = 0; l < i; ++l) sum -= a[i * k + l] * (*v)[l];
            (*v)[i] = a[i * k + i] > 0 ? sum / a[i * k + i] : 0;
        }
        for (size_t i = k; i-- > 0;) {
            double sum = (*v)[i];
            for (size_t l = i + 1; l < k; ++l) sum -= a[l * k + i] * (*v)[l];
            (*v)[i] = a[i * k + i] > 0 ? sum / a[i * k + i] : 0;
        }
    }
}

}  // namespace

void project_face(const double* grad, int64_t batch, int64_t parts, const int64_t* offsets, const int64_t* starts,
                  const int64_t* indices, const double* values, double* to, int threads) {
    auto body = [&](int64_t b) {
        const int64_t first = offsets[b];
        const size_t k = static_cast<size_t>(offsets[b + 1] - first);
        std::vector<double> gram(k * k), free(k), ones(k, 1.0), dense(parts, 0.0);
        for (size_t i = 0; i < k; ++i) {
            for (int64_t e = starts[first + i]; e < starts[first + i + 1]; ++e) {
                dense[indices[e]] = values[e];
                free[i] += values[e] * grad[b * parts + indices[e]];
            }
            for (size_t j = 0; j <= i; ++j) {
                double sum = 1;
                for (int64_t e = starts[first + j]; e < starts[first + j + 1]; ++e)
                    sum += values[e] * dense[indices[e]];
                gram[i * k + j] = gram[j * k + i] = sum;
            }
            for (int64_t e = starts[first + i]; e < starts[first + i + 1]; ++e) dense[indices[e]] = 0;
        }
        solve(gram, k, free, ones);
        double free_sum = 0, ones_sum = 0;
        for (size_t i = 0; i < k; ++i) free_sum += free[i], ones_sum += ones[i];
        std::memset(to + b * parts, 0, sizeof(double) * parts);
        for (size_t i = 0; i < k; ++i) {
            const double weight = free[i] - ones[i] * free_sum / ones_sum;
            for (int64_t e = starts[first + i]; e < starts[first + i + 1]; ++e)
                to[b * parts + indices[e]] += weight * values[e];
        }
    };
    parallel_for(batch, threads, body);
}

}  // namespace spigot
