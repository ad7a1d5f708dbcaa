// Matchings: which rows and columns an instance has, its best matching.
#pragma once

#include <cmath>

#include "assignment.hpp"
#include "batch.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// What may become of a part. A mask says absent or open; the search for the k best also fixes some.
enum Part : uint8_t { ABSENT = 0, OPEN = 1, CHOSEN = 2, BARRED = 3 };

// An instance (n, m) without the rows and columns that do not exist or are spoken for, the shorter side first.
template <class T>
class MatchingInstance {
public:
    int rows = 0, columns = 0;  // of the shorter side, of the longer one

    MatchingInstance(Scratch& scratch, const T* scores, const uint8_t* parts, int64_t n, int64_t m)
        : scores_(scores),
          parts_(parts),
          n_(n),
          m_(m),
          row_at_(scratch.take<int32_t>(n)),
          column_at_(scratch.take<int32_t>(m)),
          row_(scratch.take<T>(m + lane_count<T>)) {
        uint8_t other = 0, fixed = 0;
        for (int64_t at = 0; at < n * m; ++at) other |= parts[at] ^ OPEN, fixed |= parts[at] & 2;
        fixed_ = fixed;
        if (!other) {  // nothing is missing, as in most instances
            for (int64_t i = 0; i < n; ++i) row_at_[i] = static_cast<int32_t>(i);
            for (int64_t j = 0; j < m; ++j) column_at_[j] = static_cast<int32_t>(j);
            place_sides(static_cast<int>(n), static_cast<int>(m));
            return;
        }
        uint8_t *seen = scratch.take<uint8_t>(m), *taken = scratch.take<uint8_t>(m);
        std::memset(seen, 0, m);
        std::memset(taken, 0, m);
        int down = 0, across = 0;
        for (int64_t i = 0; i < n; ++i) {
            const uint8_t* part = parts + i * m;
            uint8_t any = 0, chosen = 0;
            for (int64_t j = 0; j < m; ++j) {
                any |= part[j];
                chosen |= part[j] == CHOSEN;
                seen[j] |= part[j];
                taken[j] |= part[j] == CHOSEN;
            }
            if (any && !chosen) row_at_[down++] = static_cast<int32_t>(i);
        }
        for (int64_t j = 0; j < m; ++j)
            if (seen[j] && !taken[j]) column_at_[across++] = static_cast<int32_t>(j);
        place_sides(down, across);
    }

    bool fixed() const { return fixed_; }  // some part is chosen or barred

    int64_t place(int row, int column) const {
        return turned_ ? row_at_[column] * m_ + column_at_[row] : row_at_[row] * m_ + column_at_[column];
    }
    bool open(int64_t at) const { return parts_[at] == OPEN; }
    double score(int64_t at) const { return static_cast<double>(scores_[at]); }

    // The cost of each pair: less its score, infinite for -inf and where there is none to be had; or nothing, at most,
    // if it need not be taken. True if a score is NaN, +inf or too large to be summed.
    bool fill(Assignment& problem, bool complete) {
        if (turned_ || fixed_ || columns != m_) return fill(problem, complete, 1.0, infinity, 0.0);
        constexpr int W = lane_count<T>;
        const T bound = static_cast<T>(sizeof(T) == 4 ? largest_single : 1e290);
        typename LaneTraits<T>::Bits wild{};
        for (int i = 0; i < rows; ++i) {
            const int64_t first = row_at_[i] * m_;
            for (int64_t j = 0; j < m_; j += W) {
                const Lanes<T> v = j + W <= m_
                                       ? load_existing(scores_ + first + j, parts_ + first + j)
                                       : load_existing(scores_ + first + j, parts_ + first + j, m_ - j);
                wild |= (v > bound) | (v != v) | ((v < -bound) & (v != minus_infinity<T>));
                store(row_ + j, v);
            }
            double* to = problem.line(i);
            const double most = complete ? infinity : 0;
            for (int64_t j = 0; j < m_; ++j) {
                const double c = -static_cast<double>(row_[j]);
                to[j] = c < most ? c : most;
            }
        }
        return any_lane(wild);
    }

    // The cost of each pair: less its score, `high` for -inf, `low` for +inf, `missing` where there is none to be had.
    // True if a score is NaN, infinite or too large to be summed.
    bool fill(Assignment& problem, bool complete, double shrink, double high, double low) const {
        const double missing = complete ? infinity : 0, most = complete ? infinity : 0;
        unsigned wild = 0;
        auto cost = [&](int64_t at) {
            const double s = static_cast<double>(scores_[at]);
            const bool here = parts_[at] == OPEN;
            wild |= here & !(std::fabs(s) <= 1e290);
            double c = s > largest ? low : s < -largest ? high : -s * shrink;
            c = c < most ? c : most;
            return here ? c : missing;
        };
        for (int i = 0; i < rows; ++i) {
            double* to = problem.line(i);
            if (turned_) {
                for (int j = 0; j < columns; ++j) to[j] = cost(row_at_[j] * m_ + column_at_[i]);
            } else if (columns == m_) {
                const int64_t first = row_at_[i] * m_;
                for (int j = 0; j < columns; ++j) to[j] = cost(first + j);
            } else {
                for (int j = 0; j < columns; ++j) to[j] = cost(row_at_[i] * m_ + column_at_[j]);
            }
        }
        return wild;
    }

    // The first NaN, or -1.
    int64_t first_nan() const {
        for (int64_t at = 0; at < n_ * m_; ++at)
            if (parts_[at] && scores_[at] != scores_[at]) return at;
        return -1;
    }

    // More than any sum of the finite scores, which are to be multiplied by `shrink` so that they can be summed.
    double beyond(double& shrink) const {
        double top = 0;
        auto size = [&](int64_t at) {
            const double s = std::fabs(static_cast<double>(scores_[at]));
            return parts_[at] == OPEN && s <= largest ? s : 0;
        };
        for (int64_t at = 0; at < n_ * m_; ++at) top = size(at) > top ? size(at) : top;
        shrink = top > 1e290 ? 0x1p-64 : 1.0;
        double limit = 1;
        for (int i = 0; i < rows; ++i) {
            double most = 0;
            for (int j = 0; j < columns; ++j) most = size(place(i, j)) > most ? size(place(i, j)) : most;
            limit += 2 * most * shrink;
        }
        return limit;
    }

private:
    void place_sides(int down, int across) {
        turned_ = down > across;
        rows = turned_ ? across : down;
        columns = turned_ ? down : across;
    }

    static constexpr float largest_single = std::numeric_limits<float>::max();
    static constexpr double largest = std::numeric_limits<double>::max();
    const T* scores_;
    const uint8_t* parts_;
    int64_t n_, m_;
    int32_t *row_at_, *column_at_;
    T* row_;
    bool turned_ = false, fixed_ = false;
};

// `found[b]` says whether there is a complete matching; without `complete` there always is one.
template <class T>
void match(const T* scores, const uint8_t* parts, int64_t batch, int64_t n, int64_t m, bool complete, T* z,
           uint8_t* found, int threads, FaultBox& faults) {
    auto body = [&](int64_t b) {
        Scratch scratch;
        MatchingInstance<T> instance(scratch, scores + b * n * m, parts + b * n * m, n, m);
        T* to = z + b * n * m;
        Assignment problem(scratch, instance.rows, instance.columns);
        std::memset(to, 0, sizeof(T) * n * m);
        double shrink = 1;
        found[b] = !instance.fill(problem, complete) && problem.solve();
        if (!found[b]) {
            const int64_t at = instance.first_nan();
            if (at >= 0) {
                faults.report(FAULT_NAN, b, at / m, at % m);
                return;
            }
            const double limit = instance.beyond(shrink);
            instance.fill(problem, complete, shrink, infinity, -limit);
            found[b] = problem.solve();
            if (!found[b]) {  // -inf is taken where there is no other way
                instance.fill(problem, complete, shrink, limit, -limit);
                found[b] = problem.solve();
            }
        }
        if (!found[b]) return;
        for (int i = 0; i < instance.rows; ++i) {
            const int64_t at = instance.place(i, problem.column_of[i]);
            if (complete || (instance.open(at) && instance.score(at) > 0)) to[at] = T(1);
        }
        for (int64_t at = 0; instance.fixed() && at < n * m; ++at)
            if (parts[b * n * m + at] == CHOSEN) to[at] = T(1);
    };
    parallel_for(batch, worthwhile_threads(8.0 * batch * n * m, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
