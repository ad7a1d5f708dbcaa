// Monotone paths through a grid of cells: the best one, sums over all, draws and the k best.
//
// A path goes from the first cell to the last by steps down, right and both at once. The cells of an anti-diagonal do
// not depend on each other, so that the grid is kept anti-diagonal by anti-diagonal, each as a row over i: the cell
// [i, j] is entry i of row i + j. What leads to it is entry i - 1 of the row two before it (a diagonal step), entry
// i - 1 of the row before (down), and entry i there (right).
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels.hpp"
#include "lanes.hpp"
#include "pool.hpp"
#include "random.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// Numbers for the cells of one instance, by anti-diagonals. There is room around each row for the cells before its first
// and for whole vectors behind its last, and there are two rows before the first.
struct Diagonals {
    int64_t stride;
    double* cells;

    Diagonals(Scratch& scratch, int64_t n, int64_t m, double empty)
        : stride((n + 2 * lane_count<double>) / lane_count<double> * lane_count<double>),
          cells(scratch.take<double>((n + m + 1) * stride + lane_count<double>) + 2 * stride + 1) {
        std::fill(cells - 2 * stride - 1, cells + (n + m - 1) * stride, empty);
    }
    double* row(int64_t d) const { return cells + d * stride; }
    double& at(int64_t i, int64_t j) const { return cells[(i + j) * stride + i]; }
};

// The rows and columns of an instance go up to the last that have a cell. Reports what is wrong with its scores.
struct Extent {
    int64_t n = 0, m = 0;
};

template <class T>
bool measure(const CellBatch<T>& grid, int64_t b, bool sums, Extent& extent, FaultBox& faults) {
    const T* scores = grid.scores + b * grid.n * grid.m;
    const uint8_t* mask = grid.mask + b * grid.n * grid.m;
    for (int64_t i = 0; i < grid.n; ++i)
        for (int64_t j = 0; j < grid.m; ++j)
            if (mask[i * grid.m + j]) {
                const T v = scores[i * grid.m + j];
                if (v != v) return faults.report(FAULT_NAN, b, i, j), false;
                if (sums && v > std::numeric_limits<T>::max()) return faults.report(FAULT_INFINITE, b), false;
                extent.n = i + 1;
                if (j >= extent.m) extent.m = j + 1;
            }
    return extent.n > 0;
}

// The scores by anti-diagonals, -inf where there is no cell. For the best paths infinities become numbers that no sum of
// the others outweighs; to count paths every score is taken for zero.
enum class Reading { plain, tame, zero };

template <class T>
Diagonals read(const CellBatch<T>& grid, int64_t b, Extent extent, Reading reading, Scratch& scratch) {
    const T* scores = grid.scores + b * grid.n * grid.m;
    const uint8_t* mask = grid.mask + b * grid.n * grid.m;
    Diagonals to(scratch, extent.n, extent.m, minus_infinity<double>);
    double top = 0;
    bool odd = false;
    for (int64_t i = 0; i < extent.n; ++i)
        for (int64_t j = 0; j < extent.m; ++j)
            if (mask[i * grid.m + j]) {
                const double v = reading == Reading::zero ? 0.0 : static_cast<double>(scores[i * grid.m + j]);
                to.at(i, j) = v;
                odd |= !(std::fabs(v) <= 1e290);
                if (std::isfinite(v)) top = std::max(top, std::fabs(v));
            }
    if (reading != Reading::tame || !odd) return to;
    const double shrink = top > 1e290 ? 0x1p-64 : 1, limit = 1 + 2.0 * (extent.n + extent.m) * top * shrink;
    for (int64_t i = 0; i < extent.n; ++i)
        for (int64_t j = 0; j < extent.m; ++j)
            if (mask[i * grid.m + j]) {
                double& v = to.at(i, j);
                v = std::isinf(v) ? std::copysign(limit, v) : v * shrink;
            }
    return to;
}

// The first and one past the last row index of an anti-diagonal.
struct Range {
    int64_t from, to;
    Range(int64_t d, Extent e) : from(std::max<int64_t>(0, d - e.m + 1)), to(std::min(e.n, d + 1)) {}
};

// The best sum of a path to each cell, in place of its score.
inline void best_sums(const Diagonals& grid, Extent extent) {
    constexpr int W = lane_count<double>;
    for (int64_t d = 1; d < extent.n + extent.m - 1; ++d) {
        const Range range(d, extent);
        double* row = grid.row(d);
        const double *before = grid.row(d - 1), *skipped = grid.row(d - 2);
        for (int64_t i = range.from; i < range.to; i += W) {
            const auto best = larger(larger(load(skipped + i - 1), load(before + i - 1)), load(before + i));
            store(row + i, load(row + i) + best);  // entries behind the range stay -inf
        }
    }
}

template <class T>
void align_argmax(const CellBatch<T>& grid, T* z, int threads, FaultBox& faults) {
    auto body = [&](int64_t b) {
        T* to = z + b * grid.n * grid.m;
        std::memset(to, 0, sizeof(T) * grid.n * grid.m);
        Extent extent;
        if (!measure(grid, b, false, extent, faults)) return;
        Scratch scratch;
        const Diagonals best = read(grid, b, extent, Reading::tame, scratch);
        best_sums(best, extent);
        int64_t i = extent.n - 1, j = extent.m - 1;
        if (!(best.at(i, j) > minus_infinity<double>)) return faults.report(FAULT_IMPOSSIBLE, b);
        while (true) {
            to[i * grid.m + j] = T(1);
            if (!i && !j) break;
            const double* before = best.row(i + j - 1);
            const double diagonal = best.row(i + j - 2)[i - 1], down = before[i - 1], right = before[i];
            if (diagonal >= down && diagonal >= right) --i, --j;
            else if (down >= right) --i;
            else --j;
        }
    };
    parallel_for(grid.batch, worthwhile_threads(grid.steps(), threads), body);
}

// The sums of one instance: of the paths to each cell, and how these are shared among the three ways into it.
struct PathSums {
    Extent extent;
    Diagonals logs, diagonal, down, right;

    PathSums(const Diagonals& scores, Extent extent, Scratch& scratch)
        : extent(extent),
          logs(scores),
          diagonal(scratch, extent.n, extent.m, 0),
          down(scratch, extent.n, extent.m, 0),
          right(scratch, extent.n, extent.m, 0) {}

    // Fills the tables and returns the log partition.
    double fill() {
        constexpr int W = lane_count<double>;
        const Lanes<double> none = spread(minus_infinity<double>);
        for (int64_t d = 1; d < extent.n + extent.m - 1; ++d) {
            const Range range(d, extent);
            const double *before = logs.row(d - 1), *skipped = logs.row(d - 2);
            for (int64_t i = range.from; i < range.to; i += W) {
                const Lanes<double> a = load(skipped + i - 1), b = load(before + i - 1), c = load(before + i);
                Lanes<double> top = larger(larger(a, b), c);
                const auto hopeless = !(top > none);
                top = hopeless ? Lanes<double>{} : top;
                const Lanes<double> x = exp_nonpositive(a - top), y = exp_nonpositive(b - top),
                                    w = exp_nonpositive(c - top);
                const Lanes<double> all = x + y + w, scale = 1.0 / (hopeless ? spread(1.0) : all);
                Lanes<double> log = load(logs.row(d) + i);
                for (int l = 0; l < W && i + l < range.to; ++l)
                    log[l] += all[l] > 0 ? top[l] + std::log(all[l]) : minus_infinity<double>;
                store(logs.row(d) + i, log);
                store(diagonal.row(d) + i, x * scale);
                store(down.row(d) + i, y * scale);
                store(right.row(d) + i, w * scale);
            }
        }
        return logs.at(extent.n - 1, extent.m - 1);
    }
};

// Calls body(b, sums, scratch) for every instance with a path of weight; log partitions of the others are written here.
// They are faults where there is something to draw.
template <class T, class Body>
void for_each_path_sum(const CellBatch<T>& grid, T* log_partition, int threads, FaultBox& faults, Body body,
                       bool draws = false) {
    auto one = [&](int64_t b) {
        if (log_partition) log_partition[b] = T(0);
        Extent extent;
        if (!measure(grid, b, true, extent, faults)) return;
        Scratch scratch;
        PathSums sums(read(grid, b, extent, Reading::plain, scratch), extent, scratch);
        const double whole = sums.fill();
        if (log_partition) log_partition[b] = static_cast<T>(whole);
        if (whole > minus_infinity<double>) return body(b, sums, scratch);
        const Diagonals count = read(grid, b, extent, Reading::zero, scratch);
        best_sums(count, extent);
        if (!(count.at(extent.n - 1, extent.m - 1) > minus_infinity<double>)) faults.report(FAULT_IMPOSSIBLE, b);
        else if (draws) faults.report(FAULT_INFINITE, b);
    };
    parallel_for(grid.batch, worthwhile_threads(10 * grid.steps(), threads), one);
}

// log Z of each instance and, unless null, the marginals: what a cell has goes back along the shares.
template <class T>
void align_sums(const CellBatch<T>& grid, T* log_partition, T* marginals, int threads, FaultBox& faults) {
    if (marginals) std::memset(marginals, 0, sizeof(T) * grid.batch * grid.n * grid.m);
    for_each_path_sum<T>(grid, log_partition, threads, faults, [&](int64_t b, PathSums& sums, Scratch& scratch) {
        if (!marginals) return;
        T* to = marginals + b * grid.n * grid.m;
        const Extent e = sums.extent;
        const Diagonals chance(scratch, e.n, e.m, 0);
        chance.at(e.n - 1, e.m - 1) = 1;
        for (int64_t d = e.n + e.m - 2; d >= 0; --d)
            for (Range range(d, e); range.from < range.to; ++range.from) {
                const int64_t i = range.from;
                const double p = chance.row(d)[i];
                if (!(p > 0)) continue;
                to[i * grid.m + d - i] = static_cast<T>(p < 1 ? p : 1);
                if (!d) continue;
                chance.row(d - 2)[i - 1] += p * sums.diagonal.row(d)[i];
                chance.row(d - 1)[i - 1] += p * sums.down.row(d)[i];
                chance.row(d - 1)[i] += p * sums.right.row(d)[i];
            }
    });
}

// The derivative of the marginals along a direction: there and back once more, differentiated.
template <class T>
void align_hessian(const CellBatch<T>& grid, const T* direction, T* to, int threads, FaultBox& faults) {
    std::memset(to, 0, sizeof(T) * grid.batch * grid.n * grid.m);
    for_each_path_sum<T>(grid, nullptr, threads, faults, [&](int64_t b, PathSums& sums, Scratch& scratch) {
        const T* along = direction + b * grid.n * grid.m;
        T* slopes = to + b * grid.n * grid.m;
        const Extent e = sums.extent;
        const Diagonals rise(scratch, e.n, e.m, 0), chance(scratch, e.n, e.m, 0), slope(scratch, e.n, e.m, 0);
        const auto mean = [&](int64_t d, int64_t i) {
            return sums.diagonal.row(d)[i] * rise.row(d - 2)[i - 1] + sums.down.row(d)[i] * rise.row(d - 1)[i - 1] +
                   sums.right.row(d)[i] * rise.row(d - 1)[i];
        };
        for (int64_t d = 0; d < e.n + e.m - 1; ++d)
            for (Range range(d, e); range.from < range.to; ++range.from) {
                const int64_t i = range.from;
                if (sums.logs.row(d)[i] > minus_infinity<double>)
                    rise.row(d)[i] = along[i * grid.m + d - i] + (d ? mean(d, i) : 0);
            }
        chance.at(e.n - 1, e.m - 1) = 1;
        for (int64_t d = e.n + e.m - 2; d >= 0; --d)
            for (Range range(d, e); range.from < range.to; ++range.from) {
                const int64_t i = range.from;
                const double p = chance.row(d)[i], dp = slope.row(d)[i];
                if (!(p > 0)) continue;
                slopes[i * grid.m + d - i] = static_cast<T>(dp);
                if (!d) continue;
                const double middle = mean(d, i);
                const auto back = [&](const Diagonals& shares, int64_t row, int64_t at) {
                    const double q = shares.row(d)[i];
                    chance.row(row)[at] += p * q;
                    slope.row(row)[at] += q * (dp + p * (rise.row(row)[at] - middle));
                };
                back(sums.diagonal, d - 2, i - 1);
                back(sums.down, d - 1, i - 1);
                back(sums.right, d - 1, i);
            }
    });
}

// Paths drawn from the last cell back, seeds (batch, samples), z (batch, samples, n, m).
template <class T>
void align_sample(const CellBatch<T>& grid, const int64_t* seeds, int64_t samples, T* z, int threads, FaultBox& faults) {
    const int64_t size = grid.n * grid.m;
    std::memset(z, 0, sizeof(T) * samples * grid.batch * size);
    for_each_path_sum<T>(grid, nullptr, threads, faults, [&](int64_t b, PathSums& sums, Scratch&) {
        for (int64_t draw = 0; draw < samples; ++draw) {
            T* to = z + (b * samples + draw) * size;
            Random random(static_cast<uint64_t>(seeds[b * samples + draw]));
            for (int64_t i = sums.extent.n - 1, j = sums.extent.m - 1;;) {
                to[i * grid.m + j] = T(1);
                if (!i && !j) break;
                const int64_t d = i + j;
                const double x = sums.diagonal.row(d)[i], y = sums.down.row(d)[i], w = sums.right.row(d)[i];
                const double cut = random.uniform() * (x + y + w);
                if (x > cut) --i, --j;  // never a step without a share
                else if (y > 0 && (x + y > cut || !(w > 0))) --i;
                else if (w > 0) --j;
                else --i, --j;
            }
        }
    }, true);
}

// z (batch, k, n, m), and how many paths each instance has, up to k. Every cell has a sorted list of the best paths to
// it, merged from those of the three cells before it.
template <class T>
void align_k_best(const CellBatch<T>& grid, int64_t k, T* z, int64_t* found, int threads, FaultBox& faults) {
    struct Path {
        double value;
        int32_t way, rank;
    };
    const int64_t size = grid.n * grid.m;
    std::memset(z, 0, sizeof(T) * k * grid.batch * size);
    auto body = [&](int64_t b) {
        found[b] = k ? 1 : 0;  // no cells: the empty structure
        Extent extent;
        if (!measure(grid, b, false, extent, faults)) return;
        Scratch scratch;
        const Diagonals scores = read(grid, b, extent, Reading::tame, scratch);
        std::vector<std::vector<Path>> paths(extent.n * extent.m);
        const int64_t back_i[] = {1, 1, 0}, back_j[] = {1, 0, 1};
        for (int64_t i = 0; i < extent.n; ++i)
            for (int64_t j = 0; j < extent.m; ++j) {
                const double own = scores.at(i, j);
                auto& here = paths[i * extent.m + j];
                if (!(own > minus_infinity<double>)) continue;
                if (!i && !j) here.push_back({own, -1, 0});
                size_t next[3] = {0, 0, 0};
                while (static_cast<int64_t>(here.size()) < k) {
                    int best = -1;
                    double value = minus_infinity<double>;
                    for (int way = 0; way < 3; ++way) {
                        if (i < back_i[way] || j < back_j[way]) continue;
                        const auto& from = paths[(i - back_i[way]) * extent.m + j - back_j[way]];
                        if (next[way] < from.size() && from[next[way]].value > value)
                            best = way, value = from[next[way]].value;
                    }
                    if (best < 0) break;
                    here.push_back({value + own, best, static_cast<int32_t>(next[best]++)});
                }
            }
        const auto& last = paths.back();
        if (k && last.empty()) return faults.report(FAULT_IMPOSSIBLE, b);
        found[b] = static_cast<int64_t>(last.size());
        for (int64_t t = 0; t < found[b]; ++t) {
            T* to = z + (b * k + t) * size;
            int64_t i = extent.n - 1, j = extent.m - 1, rank = t;
            while (true) {
                to[i * grid.m + j] = T(1);
                const Path path = paths[i * extent.m + j][rank];
                if (path.way < 0) break;
                i -= back_i[path.way], j -= back_j[path.way], rank = path.rank;
            }
        }
    };
    parallel_for(grid.batch, worthwhile_threads(10 * grid.steps() * k, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
