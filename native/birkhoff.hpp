// The nearest point of the hull of matchings, by Newton's method on the dual.
#pragma once

#include "factor.hpp"
#include "matchings.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// The projection of v has the form p_ij = max(0, v_ij + a_i + t_j). The longer side is the inner one: given the a of the
// outer side, each inner line has its t in closed form, such that the line sums to one, or t at its upper bound if it
// may sum to less. What is left is a concave function of a, once differentiable and quadratic in pieces; its gradient is
// one less the outer sums, and its Hessian the Laplacian of a graph, in which two outer lines are joined if an inner one
// has mass in both. Newton's method ends after a few steps, exactly up to rounding. Where the graph falls apart the
// Laplacian is singular; that is a direction in which the function is linear, and one walks until it bends.
//
// All starts from the prices of the best assignment: with them taken off, the numbers that matter are within one of
// zero, however large the point is.
class BirkhoffSearch {
public:
    static constexpr int W = lane_count<double>;
    static constexpr double tolerance = 1e-12;
    using V = Lanes<double>;
    const int inner, outer, stride;
    double *reduced, *inner_bound, *outer_bound;  // reduced[inner][outer]: v + a + t at the start; bounds of t and a

    BirkhoffSearch(Scratch& scratch, int inner, int outer)
        : inner(inner),
          outer(outer),
          stride((outer + W - 1) / W * W),
          reduced(scratch.take<double>(static_cast<size_t>(inner) * stride)),
          inner_bound(scratch.take<double>(inner)),
          outer_bound(scratch.take<double>(stride)),
          raise_(scratch.take<double>(stride)),
          trial_(scratch.take<double>(stride)),
          gradient_(scratch.take<double>(stride)),
          trial_gradient_(scratch.take<double>(stride)),
          step_(scratch.take<double>(stride)),
          inside_(scratch.take<double>(stride)),
          level_(scratch.take<double>(inner)),
          mass_(scratch.take<double>(inner)),
          laplacian_(scratch.take<double>(static_cast<size_t>(outer) * stride)),
          free_(scratch.take<int>(outer)),
          pinned_(scratch.take<uint8_t>(outer)) {}

    const double* line(int j) const { return reduced + static_cast<int64_t>(j) * stride; }
    double value(int j, int i) const {
        const double p = line(j)[i] + raise_[i] + level_[j];
        return p > 0 ? p : 0;
    }

    void solve() {
        for (int i = 0; i < stride; ++i) raise_[i] = trial_[i] = outer_bound[i] < 0 ? outer_bound[i] : 0;
        evaluate(raise_, gradient_);
        double left = residual(raise_, gradient_);
        int stuck = 0;
        for (int round = 0; round < 500 && left > tolerance && stuck < 20; ++round) {
            const bool linear = newton();
            for (int i = 0; i < outer; ++i) trial_[i] = clip(raise_[i] + step_[i], i);
            evaluate(trial_, trial_gradient_);
            const double after = residual(trial_, trial_gradient_);
            const double before = left;
            if (after <= 0.5 * left) left = accept(after);
            else if (stuck < 3 && climb(linear)) left = accept(residual(trial_, trial_gradient_));
            else left = sweep();
            stuck = left < 0.9 * before ? 0 : left < 1e-9 ? stuck + 5 : stuck < 19 ? stuck + 1 : 3;
        }
        evaluate(raise_, gradient_);
    }

private:
    double clip(double a, int i) const { return a < outer_bound[i] ? a : outer_bound[i]; }

    double accept(double left) {
        std::swap(raise_, trial_);
        std::swap(gradient_, trial_gradient_);
        return left;
    }

    bool settled(const double* raise, const double* gradient, int i) const {
        return raise[i] >= outer_bound[i] && gradient[i] >= 0;  // may sum to less, and does
    }

    double residual(const double* raise, const double* gradient) const {
        double most = 0;
        for (int i = 0; i < outer; ++i)
            if (!settled(raise, gradient, i) && std::fabs(gradient[i]) > most) most = std::fabs(gradient[i]);
        return most;
    }

    // The level t at which a line sums to one, at most `bound`, and how many entries it lifts above zero. From above, by
    // Michelot's iteration.
    double find_level(const double* w, const double* raise, double bound, double& count) const {
        V high = spread(minus_infinity<double>);
        for (int i = 0; i < stride; i += W) high = larger(high, load(w + i) + load(raise + i));
        const double top = largest<double>(high);
        double level = 1 - top, kept = infinity;
        count = 0;
        if (!(top > minus_infinity<double>)) return bound < infinity ? bound : 0;
        bool bounded = bound < level;
        if (bounded) level = bound;
        while (true) {
            V sum{}, some{};
            for (int i = 0; i < stride; i += W) {
                const V x = load(w + i) + load(raise + i);
                const auto above = x + level > 0.0;
                sum += above ? x : V{};
                some += above ? spread(1.0) : V{};
            }
            const double k = total<double>(some);
            if (bounded) {
                if (k * level + total<double>(sum) <= 1) {
                    count = -k;  // negative: at its bound
                    return level;
                }
                bounded = false;
            }
            if (!(k < kept && k > 0)) return level;
            count = kept = k;
            level = (1 - total<double>(sum)) / k;
        }
    }

    // Levels and outer gradient at `raise`.
    void evaluate(const double* raise, double* gradient) {
        for (int i = 0; i < stride; i += W) store(gradient + i, spread(1.0));
        for (int j = 0; j < inner; ++j) {
            const double* w = line(j);
            level_[j] = find_level(w, raise, inner_bound[j], mass_[j]);
            for (int i = 0; i < stride; i += W) {
                const V p = load(w + i) + load(raise + i) + level_[j];
                store(gradient + i, load(gradient + i) - (p > 0.0 ? p : V{}));
            }
        }
    }

    // The Newton step of the outer lines that are not settled. True if the function is linear along a part of it.
    bool newton() {
        int size = 0;
        for (int i = 0; i < outer; ++i) {
            step_[i] = 0;
            if (!settled(raise_, gradient_, i)) free_[size++] = i;
        }
        for (int64_t at = 0; at < int64_t{size} * stride; at += W) store(laplacian_ + at, V{});
        for (int j = 0; j < inner; ++j) {
            const double* w = line(j);
            int64_t inside = 0;
            for (int k = 0; k < size; ++k) {
                const bool here = w[free_[k]] + raise_[free_[k]] + level_[j] > 0;
                inside_[k] = here;
                inside += here;
            }
            if (!inside) continue;
            for (int k = size; k < stride; ++k) inside_[k] = 0;
            const double share = mass_[j] > 0 ? 1 / mass_[j] : 0;
            if (share == 1) continue;  // one entry holds all of the line, and keeps it
            for (int k = 0; k < size; ++k) {
                if (inside_[k] == 0) continue;
                double* row = laplacian_ + static_cast<int64_t>(k) * stride;
                row[k] += 1;
                if (share > 0)
                    for (int l = 0; l <= k; l += W) store(row + l, load(row + l) - load(inside_ + l) * share);
            }
        }
        bool linear = false;
        for (int k = 0; k < size; ++k) {
            double* row = laplacian_ + static_cast<int64_t>(k) * stride;
            const double whole = row[k];
            for (int l = 0; l < k; ++l) {
                const double* other = laplacian_ + static_cast<int64_t>(l) * stride;
                row[l] = pinned_[l] ? 0 : (row[l] - SPIGOT_ARCH::inner(row, other, l)) / other[l];
            }
            const double pivot = whole - SPIGOT_ARCH::inner(row, row, k);
            const double rest = gradient_[free_[k]] - SPIGOT_ARCH::inner(row, step_, k);
            pinned_[k] = !(pivot > 1e-10);
            row[k] = pinned_[k] ? 1 : std::sqrt(pivot);
            step_[k] = pinned_[k] && std::fabs(rest) < 1e-9 ? 0 : rest / row[k];
            linear |= pinned_[k] && step_[k] != 0;
        }
        for (int k = size - 1; k >= 0; --k) {
            const double* row = laplacian_ + static_cast<int64_t>(k) * stride;
            step_[k] /= row[k];
            for (int l = 0; l < k; ++l) step_[l] -= row[l] * step_[k];
        }
        for (int k = size - 1; k >= 0; --k) {  // places only grow
            const double x = step_[k];
            step_[k] = 0;
            step_[free_[k]] = x;
        }
        return linear;
    }

    // A point between here and the trial point, or beyond it where the function is linear, at which it still rises, but
    // less: `trial_` becomes it. False if there is none.
    bool climb(bool linear) {
        double start = 0;
        for (int i = 0; i < outer; ++i) step_[i] = trial_[i] - raise_[i], start += step_[i] * gradient_[i];
        if (!(start > 0)) return false;
        double low = 0, high = infinity, at_low = start, at_high = 0, t = 1;
        for (int attempt = 0; attempt < 60; ++attempt) {
            for (int i = 0; i < outer; ++i) trial_[i] = clip(raise_[i] + t * step_[i], i);
            evaluate(trial_, trial_gradient_);
            double slope = 0;
            for (int i = 0; i < outer; ++i)
                if (trial_[i] < outer_bound[i] || t <= 1) slope += step_[i] * trial_gradient_[i];
            if (slope >= 0 && (slope <= 0.5 * start || (t >= 1 && !linear))) return true;
            if (slope >= 0) low = t, at_low = slope;
            else high = t, at_high = slope;
            if (high == infinity) t *= 4;
            else if (attempt % 3 == 2) t = 0.5 * (low + high);
            else t = low + (high - low) * at_low / (at_low - at_high);
        }
        return false;
    }

    // All outer lines to their best, given the levels: slow, but never wrong.
    double sweep() {
        evaluate(raise_, gradient_);
        for (int i = 0; i < outer; ++i) {
            double top = minus_infinity<double>;
            for (int j = 0; j < inner; ++j) top = larger(top, line(j)[i] + level_[j]);
            if (!(top > minus_infinity<double>)) continue;
            double kept = infinity, raise = clip(1 - top, i);
            bool bounded = raise < 1 - top;
            while (true) {
                double sum = 0, k = 0;
                for (int j = 0; j < inner; ++j) {
                    const double x = line(j)[i] + level_[j];
                    if (x + raise > 0) sum += x, ++k;
                }
                if (bounded && k * raise + sum <= 1) break;
                bounded = false;
                if (!(k < kept && k > 0)) break;
                kept = k;
                raise = (1 - sum) / k;
            }
            raise_[i] = raise;
        }
        evaluate(raise_, gradient_);
        return residual(raise_, gradient_);
    }

    double *raise_, *trial_, *gradient_, *trial_gradient_, *step_, *inside_, *level_, *mass_, *laplacian_;
    int* free_;
    uint8_t* pinned_;
};

template <class T>
void project_matchings(const T* point, const uint8_t* mask, int64_t batch, int64_t n, int64_t m, bool complete, T* to,
                       int threads, FaultBox& faults) {
    auto body = [&](int64_t b) {
        Scratch scratch;
        const MatchingInstance<T> instance(scratch, point + b * n * m, mask + b * n * m, n, m);
        T* result = to + b * n * m;
        std::memset(result, 0, sizeof(T) * n * m);
        const int rows = instance.rows, columns = instance.columns;
        if (!rows) return;
        // A column that costs nothing: then no price is above zero, as the bounds have it where sums may fall short.
        Assignment problem(scratch, rows, columns + !complete);
        if (!complete)
            for (int i = 0; i < rows; ++i) problem.line(i)[columns] = 0;
        bool cut = false;
        if (instance.fill(problem, complete, 1.0, infinity, 0.0)) {
            const int64_t nan = instance.first_nan();
            if (nan >= 0) return faults.report(FAULT_NAN, b, nan / m, nan % m);
            for (int i = 0; i < rows; ++i)
                for (int j = 0; j < columns; ++j)
                    if (instance.open(instance.place(i, j))) {
                        const double v = instance.score(instance.place(i, j));
                        if (std::fabs(v) <= 1e290) continue;
                        if (v > 0 || v > -infinity) return faults.report(FAULT_INFINITE, b);
                        cut = true;  // gets nothing
                    }
        }
        if (!problem.solve()) return faults.report(cut ? FAULT_INFINITE : FAULT_IMPOSSIBLE, b);
        BirkhoffSearch search(scratch, columns, rows);
        for (int i = 0; i < search.stride; ++i) search.outer_bound[i] = infinity;
        for (int i = 0; i < rows; ++i) {
            const int mine = problem.column_of[i];
            const double worth = problem.line(i)[mine] - problem.price[mine];
            if (!complete) search.outer_bound[i] = -worth;
            for (int j = 0; j < columns; ++j) {
                const int64_t at = instance.place(i, j);
                const double v = instance.open(at) ? instance.score(at) : -infinity;
                const double w = v + problem.price[j] + worth;
                search.reduced[static_cast<int64_t>(j) * search.stride + i] = complete && w > 0 ? 0 : w;
            }
        }
        for (int j = 0; j < columns; ++j) {
            search.inner_bound[j] = complete && rows == columns ? infinity : -problem.price[j];
            for (int i = rows; i < search.stride; ++i)
                search.reduced[static_cast<int64_t>(j) * search.stride + i] = -infinity;
        }
        search.solve();
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < columns; ++j) {
                const int64_t at = instance.place(i, j);
                if (instance.open(at)) result[at] = static_cast<T>(search.value(j, i));
            }
    };
    parallel_for(batch, worthwhile_threads(40.0 * batch * n * m, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
