// Factors of a negotiation side by side: as many of one kind as a vector has lanes, padded to the same size, so that one
// pass projects all of them without a branch. For the kinds that large graphs are made of: exactly one, at most one, at
// least one, and pairs.
#pragma once

#include <algorithm>
#include <vector>

#include "factors.hpp"
#include "kernels.hpp"
#include "lanes.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

inline Lanes<double> smaller(Lanes<double> a, Lanes<double> b) { return a < b ? a : b; }
inline Lanes<double> clipped(Lanes<double> x) { return smaller(larger(x, Lanes<double>{}), spread(1.0)); }
inline Lanes<double> size_of(Lanes<double> x) { return larger(x, -x); }

// `project_any_of_two` in every lane.
inline void project_any_of_two(Lanes<double>* v) {
    using V = Lanes<double>;
    const V a = v[0], b = v[1], c = v[2], high = larger(a, b), low = smaller(a, b);
    V level = high > c ? 0.5 * (high + c) : c;
    level = low > level ? (a + b + c) * (1.0 / 3.0) : level;
    const V first = clipped(smaller(a, level)), second = clipped(smaller(b, level)), last = clipped(level);
    // Where the last is more than the others together, it is their sum: 1 - last makes a simplex of the three.
    const V d = 1 - c, x = larger(high, d), y = larger(low, smaller(high, d)), z = smaller(low, d);
    const V one = x - 1, two = 0.5 * (x + y - 1), three = (x + y + z - 1) * (1.0 / 3.0);
    const V tau = y > one ? (z > two ? three : two) : one;
    const auto fits = first + second >= last;
    v[0] = fits ? first : larger(a - tau, V{});
    v[1] = fits ? second : larger(b - tau, V{});
    v[2] = fits ? last : 1 - larger(d - tau, V{});
}

// `project_factor` in every lane: onto the simplex where `needed` says so for the sums, into the box elsewhere.
template <FactorKind Kind>
inline void project_counts(Lanes<double>* v, int k) {
    using V = Lanes<double>;
    V most = v[0], inside{};
    for (int i = 1; i < k; ++i) most = larger(most, v[i]);
    if (Kind != FACTOR_ONE)
        for (int i = 0; i < k; ++i) inside += Kind == FACTOR_AT_MOST_ONE ? larger(v[i], V{}) : clipped(v[i]);
    const auto needed = Kind == FACTOR_ONE            ? most == most
                        : Kind == FACTOR_AT_MOST_ONE ? inside > 1
                                                     : inside < 1;
    if (Kind != FACTOR_ONE && !any_lane(needed)) {
        for (int i = 0; i < k; ++i) v[i] = clipped(v[i]);
        return;
    }
    V tau = most - 1, above{};  // at the left of the root, where Newton's method stays
    for (int round = 0; round <= k + 1; ++round) {
        V sum{}, count{};
        for (int i = 0; i < k; ++i) {
            const auto on = v[i] > tau;
            sum += on ? v[i] : V{};
            count += on ? spread(1.0) : V{};
        }
        const auto same = count == above;
        tau = (sum - 1) / count;
        above = count;
        if (!any_lane(~same)) break;
    }
    if (Kind == FACTOR_ONE) {
        for (int i = 0; i < k; ++i) v[i] = larger(v[i] - tau, V{});
    } else {
        for (int i = 0; i < k; ++i) v[i] = needed ? larger(v[i] - tau, V{}) : clipped(v[i]);
    }
}

class FactorLanes {
public:
    static constexpr int W = lane_count<double>;

    // Whether such factors are taken.
    static bool takes(uint8_t kind, int64_t size) {
        return kind == FACTOR_ONE || kind == FACTOR_AT_MOST_ONE || kind == FACTOR_AT_LEAST_ONE ||
               (kind == FACTOR_ANY && size == 3);
    }

    // Takes the factors first..last that it can, and leaves the others to the caller. Beyond the last of `parts` stand two
    // variables that are none: the first is 0, for entries that are left over, and the second 1, so that lanes without a
    // factor have one that agrees.
    void gather(const FactorTables& t, int64_t first, int64_t last, int64_t parts, const double* q, const double* price,
                std::vector<int64_t>& left, Scratch& scratch) {
        std::vector<int64_t> mine;
        for (int64_t f = first; f < last; ++f)
            (takes(t.kind[f], t.start[f + 1] - t.start[f]) ? mine : left).push_back(f);
        std::stable_sort(mine.begin(), mine.end(), [&](int64_t a, int64_t b) {
            const int64_t of_a = t.start[a + 1] - t.start[a], of_b = t.start[b + 1] - t.start[b];
            return t.kind[a] != t.kind[b] ? t.kind[a] < t.kind[b] : of_a < of_b;
        });
        const int64_t base = t.start[first];
        int longest = 1;
        for (size_t at = 0; at < mine.size();) {
            const uint8_t kind = t.kind[mine[at]];
            size_t end = at;
            while (end < mine.size() && end < at + W && t.kind[mine[end]] == kind) ++end;
            const int size = static_cast<int>(t.start[mine[end - 1] + 1] - t.start[mine[end - 1]]);
            const int64_t from = static_cast<int64_t>(slot_.size());
            chunks_.push_back({static_cast<FactorKind>(kind), size, from});
            slot_.resize(from + size * W, -1);
            price_.resize(slot_.size(), kNever);
            variable_.resize(slot_.size(), static_cast<int32_t>(parts));
            for (size_t lane = end - at; lane < W; ++lane) {
                variable_[from + lane] = static_cast<int32_t>(parts + 1);
                price_[from + lane] = 0;
                if (kind != FACTOR_ANY) continue;
                variable_[from + 2 * W + lane] = static_cast<int32_t>(parts + 1);
                price_[from + W + lane] = price_[from + 2 * W + lane] = 0;
            }
            for (size_t lane = at; lane < end; ++lane)
                for (int64_t k = t.start[mine[lane]]; k < t.start[mine[lane] + 1]; ++k)
                    slot_[from + (k - t.start[mine[lane]]) * W + (lane - at)] = static_cast<int32_t>(k - base);
            longest = std::max(longest, size);
            at = end;
        }
        const size_t count = slot_.size();
        sign_.resize(count, 1);
        q_.resize(count);
        seen_.resize(count, std::numeric_limits<double>::quiet_NaN());
        for (size_t k = 0; k < count; ++k) {
            if (slot_[k] < 0) {
                q_[k] = variable_[k] > parts;
                continue;
            }
            const bool negated = t.negated[base + slot_[k]];
            variable_[k] = t.variable[base + slot_[k]];
            sign_[k] = negated ? -1 : 1;
            q_[k] = negated ? 1 - q[slot_[k]] : q[slot_[k]];
            price_[k] = sign_[k] * price[slot_[k]];
        }
        v_ = scratch.take<Lanes<double>>(longest);
    }

    // One pass, as `Negotiation::step`; what the copies change by is added to `sum`. Returns how far the copies were from
    // the consensus, summed squares.
    double step(const double* p, double* sum, double rho, bool pending, bool again) {
        using V = Lanes<double>;
        V apart{};
        V* v = v_;
        const double inverse = 1 / rho;
        for (const Chunk& chunk : chunks_) {
            const int64_t from = chunk.from;
            V news{};
            for (int k = 0; k < chunk.size; ++k) {
                const int64_t at = from + k * W;
                const V sign = load(&sign_[at]);
                v[k] = sign * picked(p, at) + 0.5 * (1 - sign);
                // Not equal, rather than far: what was never seen is no number.
                news = larger(news, size_of(load(&q_[at]) - v[k]));
                const V moved = size_of(v[k] - load(&seen_[at]));
                news = moved <= kStill ? news : spread(1.0);
            }
            if (!again && !any_lane(news > kStill)) continue;
            for (int k = 0; k < chunk.size; ++k) {
                const int64_t at = from + k * W;
                V price = load(&price_[at]);
                store(&seen_[at], v[k]);
                if (pending) {
                    const V off = load(&q_[at]) - v[k];
                    apart += off * off;
                    price -= rho * off;
                    store(&price_[at], price);
                }
                v[k] += price * inverse;
            }
            switch (chunk.kind) {
                case FACTOR_ONE: project_counts<FACTOR_ONE>(v, chunk.size); break;
                case FACTOR_AT_MOST_ONE: project_counts<FACTOR_AT_MOST_ONE>(v, chunk.size); break;
                case FACTOR_AT_LEAST_ONE: project_counts<FACTOR_AT_LEAST_ONE>(v, chunk.size); break;
                default: project_any_of_two(v);
            }
            for (int k = 0; k < chunk.size; ++k) {
                const int64_t at = from + k * W;
                const V by = load(&sign_[at]) * (v[k] - load(&q_[at]));
                store(&q_[at], v[k]);
                for (int lane = 0; lane < W; ++lane) sum[variable_[at + lane]] += by[lane];
            }
        }
        return total<double>(apart);
    }

    // Brings the prices up to the last step; returns the sum of squares as above.
    double settle(const double* p, double rho) {
        using V = Lanes<double>;
        V apart{};
        for (int64_t at = 0; at < static_cast<int64_t>(slot_.size()); at += W) {
            const V sign = load(&sign_[at]), off = load(&q_[at]) - (sign * picked(p, at) + 0.5 * (1 - sign));
            apart += off * off;
            store(&price_[at], load(&price_[at]) - rho * off);
        }
        return total<double>(apart);
    }

    // What the factors would get if each could choose alone, at these prices.
    double bound() const {
        using V = Lanes<double>;
        V sum{};
        for (const Chunk& chunk : chunks_) {
            V gains{}, most = spread(minus_infinity<double>), turned{};
            const int inputs = chunk.kind == FACTOR_ANY ? 2 : chunk.size;
            for (int k = 0; k < chunk.size; ++k) {
                const V price = load(&price_[chunk.from + k * W]);
                turned += load(&sign_[chunk.from + k * W]) < 0 ? -price : V{};
                if (k < inputs) gains += larger(price, V{}), most = larger(most, price);
            }
            const V either = most > 0 ? gains : most;
            V value = most;
            if (chunk.kind == FACTOR_AT_MOST_ONE) value = larger(most, V{});
            if (chunk.kind == FACTOR_AT_LEAST_ONE) value = either;
            if (chunk.kind == FACTOR_ANY) value = larger(load(&price_[chunk.from + 2 * W]) + either, V{});
            sum += value + turned;
        }
        return total<double>(sum);
    }

    // Copies and prices back to where they came from.
    void scatter(double* q, double* price) const {
        for (size_t k = 0; k < slot_.size(); ++k) {
            if (slot_[k] < 0) continue;
            q[slot_[k]] = sign_[k] < 0 ? 1 - q_[k] : q_[k];
            price[slot_[k]] = sign_[k] * price_[k];
        }
    }

private:
    struct Chunk {
        FactorKind kind;
        int size;
        int64_t from;
    };
    static constexpr double kNever = -1e30;  // the price of an entry that is none: it is never chosen
    static constexpr double kStill = 1e-14;

    Lanes<double> picked(const double* from, int64_t at) const {
        Lanes<double> v;
        for (int lane = 0; lane < W; ++lane) v[lane] = from[variable_[at + lane]];
        return v;
    }

    std::vector<Chunk> chunks_;
    std::vector<int32_t> slot_, variable_;
    std::vector<double> sign_, q_, price_, seen_;  // as literals
    Lanes<double>* v_ = nullptr;            // of the factors at hand
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
