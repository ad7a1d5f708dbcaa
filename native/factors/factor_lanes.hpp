// Factors of a negotiation side by side: as many of one kind as a vector has lanes, padded to the same size, so that one
// pass projects all of them without a branch. For the kinds that large graphs are made of: exactly one, at most one, at
// least one, and pairs.
#pragma once

#include <algorithm>
#include <vector>

#include "factors/factors.hpp"
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

// `project_factor` in every lane: onto the simplex where `needed` says so for the sums, into the box elsewhere. `tau` is
// the threshold, from a guess: that of the step before is nearly right.
template <FactorKind Kind>
inline void project_counts(Lanes<double>* v, int k, double* guess) {
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
    // Newton's method: from wherever some entry lies above, its first step leads to the left of the root, where it stays.
    V tau = smaller(larger(load(guess), most - 1), most - 1.0 / k), above{};
    for (int round = 0; round <= k + 2; ++round) {
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
    store(guess, tau);
    if (Kind == FACTOR_ONE) {
        for (int i = 0; i < k; ++i) v[i] = larger(v[i] - tau, V{});
    } else {
        for (int i = 0; i < k; ++i) v[i] = needed ? larger(v[i] - tau, V{}) : clipped(v[i]);
    }
}

// Which place variables have among those that a step moves. Places go by the order in which vectors meet them, so that
// most vectors find theirs side by side.
enum Place : int32_t {
    PLACE_NONE = -1,    // none yet
    PLACE_LONELY = -2,  // none yet, of a variable that is free and has one factor
    PLACE_OWN = -3,     // none: a factor has it for itself, so that its copy is the consensus and its price the score
};

// The most entries that a factor has; 1 if there is none.
inline int64_t longest_factor(const FactorTables& t, int64_t first, int64_t last) {
    int64_t longest = 1;
    for (int64_t f = first; f < last; ++f) longest = std::max(longest, t.start[f + 1] - t.start[f]);
    return longest;
}

class FactorLanes {
public:
    static constexpr int W = lane_count<double>;

    // Whether such factors are taken.
    static bool takes(uint8_t kind, int64_t size) {
        return kind == FACTOR_ONE || kind == FACTOR_AT_MOST_ONE || kind == FACTOR_AT_LEAST_ONE ||
               (kind == FACTOR_ANY && size == 3);
    }

    // Takes the factors first..last that it can, and leaves the others to the caller.
    void gather(const FactorTables& t, int64_t first, int64_t last, std::vector<int64_t>& left) {
        const int64_t longest = longest_factor(t, first, last);
        const std::vector<int64_t> mine = sorted(t, first, last, longest, left);
        const int64_t base = t.start[first];
        for (size_t at = 0; at < mine.size();) {
            const uint8_t kind = t.kind[mine[at]];
            size_t end = at;
            while (end < mine.size() && end < at + W && t.kind[mine[end]] == kind) ++end;
            const int size = static_cast<int>(t.start[mine[end - 1] + 1] - t.start[mine[end - 1]]);
            const int64_t from = static_cast<int64_t>(slot_.size());
            chunks_.push_back({static_cast<FactorKind>(kind), false, size, from});
            slot_.resize(from + size * W, kZero);
            for (size_t lane = end - at; lane < W; ++lane) {
                slot_[from + lane] = kOne;
                if (kind == FACTOR_ANY) slot_[from + W + lane] = kFree, slot_[from + 2 * W + lane] = kOne;
            }
            for (size_t lane = at; lane < end; ++lane) {
                const int64_t begin = t.start[mine[lane]], stop = t.start[mine[lane] + 1];
                int32_t* to = &slot_[from + (lane - at)];
                int64_t k = begin;
                if (kind != FACTOR_ANY && t.negated[stop - 1]) {  // outputs in front, where they stand side by side
                    *to = static_cast<int32_t>(stop - 1 - base);
                    for (; k < stop - 1; ++k) *(to += W) = static_cast<int32_t>(k - base);
                } else {
                    for (; k < stop; ++k, to += W) *to = static_cast<int32_t>(k - base);
                }
            }
            at = end;
        }
        longest_ = longest;
    }

    // Gives places to the variables of its factors, from 0 on; returns how many it gave.
    int32_t number(const FactorTables& t, int64_t base, int32_t* place) {
        variable_.resize(slot_.size());
        rows_.resize(slot_.size() / W);
        // The kinds with the most entries first: their vectors are the most to gain.
        int64_t entries[FACTOR_ANY + 1] = {};
        for (const Chunk& chunk : chunks_) entries[chunk.kind] += chunk.size;
        uint8_t kinds[] = {FACTOR_ONE, FACTOR_AT_MOST_ONE, FACTOR_AT_LEAST_ONE, FACTOR_ANY};
        std::stable_sort(kinds, kinds + 4, [&](uint8_t a, uint8_t b) { return entries[a] > entries[b]; });
        int32_t count = 0;
        for (const uint8_t kind : kinds)
            for (const Chunk& chunk : chunks_) {
                if (chunk.kind != kind) continue;
                for (int64_t at = chunk.from; at < chunk.from + chunk.size * W; at += W) {
                    bool own = true;
                    for (int lane = 0; lane < W; ++lane) {
                        const int32_t slot = slot_[at + lane];
                        variable_[at + lane] = slot < 0 ? slot : t.variable[base + slot];
                        own &= slot < 0 || place[variable_[at + lane]] == PLACE_LONELY;
                    }
                    for (int lane = 0; lane < W; ++lane) {
                        if (slot_[at + lane] < 0) continue;
                        int32_t& to = place[variable_[at + lane]];
                        if (own) to = PLACE_OWN;
                        else if (to < 0) to = count++;
                    }
                    rows_[at / W] = own ? kOwn : kScattered;
                }
            }
        return count;
    }

    // Copies and prices into lanes. There are `places` in all; beyond the last stand two variables that are none: the first
    // is 0, for entries that are left over, and the second 1, so that lanes without a factor have one that agrees.
    void load_all(const FactorTables& t, int64_t base, int32_t places, const int32_t* place, const double* consensus,
                  const double* scores, const double* q, const double* price, Scratch& scratch) {
        const size_t count = slot_.size();
        for (double** values : {&sign_, &q_, &price_}) *values = scratch.take<double>(count);
        turned_.resize(rows_.size());
        for (size_t k = 0; k < count; ++k) {
            if (slot_[k] < 0) {
                sign_[k] = 1;
                q_[k] = slot_[k] == kOne;
                price_[k] = slot_[k] == kZero ? kNever : 0;
                if (rows_[k / W] != kOwn) variable_[k] = slot_[k] == kOne ? places + 1 : places;
                continue;
            }
            const bool negated = t.negated[base + slot_[k]], own = rows_[k / W] == kOwn;
            const double copy = own ? consensus[variable_[k]] : q[slot_[k]];
            sign_[k] = negated ? -1 : 1;
            turned_[k / W] |= negated;
            q_[k] = negated ? 1 - copy : copy;
            price_[k] = sign_[k] * (own ? scores[variable_[k]] : price[slot_[k]]);
            if (!own) variable_[k] = place[variable_[k]];
        }
        for (size_t row = 0; row < rows_.size(); ++row) {
            if (rows_[row] == kOwn) continue;
            const int32_t* variable = &variable_[row * W];
            bool beside = true;
            for (int lane = 1; lane < W; ++lane) beside &= variable[lane] == variable[0] + lane;
            if (beside) rows_[row] = variable[0];
        }
        guess_.resize(chunks_.size() * W, minus_infinity<double>);
        v_ = scratch.take<Lanes<double>>(longest_);
        p_ = scratch.take<Lanes<double>>(longest_);
    }

    // One pass, as `Negotiation::step`; what the copies change by is added to `sum`. Returns how far the copies were from
    // the consensus, summed squares; `change` is that of variables that a factor has for itself.
    double step(const double* p, double* sum, double rho, bool pending, bool again, double& change) {
        using V = Lanes<double>;
        V apart{}, moved{};
        // Names of their own, since the compiler must suppose that what is stored below could be a member of this object.
        V *const v = v_, *const before = p_;
        double *const copies = q_, *const prices = price_, *guess = guess_.data();
        const double *const signs = sign_, inverse = 1 / rho;
        const int32_t* const variables = variable_.data();
        const uint8_t* const turned = turned_.data();
        for (Chunk& chunk : chunks_) {
            const int64_t from = chunk.from;
            const int32_t* const row = &rows_[from / W];
            const int size = chunk.size;
            V news{};
            for (int k = 0; k < size; ++k) {
                const int64_t at = from + k * W;
                const V q = load(copies + at);
                before[k] = row[k] == kOwn ? q : literal(p, variables + at, signs + at, row[k], turned[at / W]);
                news = larger(news, size_of(q - before[k]));
            }
            // A factor whose copy agrees with a consensus that stands still has nothing new to say.
            if (!again && chunk.still && !any_lane(news > kStill)) {
                guess += W;
                continue;
            }
            for (int k = 0; k < size; ++k) {
                const int64_t at = from + k * W;
                V price = load(prices + at);
                if (pending && row[k] != kOwn) {
                    const V off = load(copies + at) - before[k];
                    apart += off * off;
                    price -= rho * off;
                    store(prices + at, price);
                }
                v[k] = before[k] + price * inverse;
            }
            switch (chunk.kind) {
                case FACTOR_ONE: project_counts<FACTOR_ONE>(v, size, guess); break;
                case FACTOR_AT_MOST_ONE: project_counts<FACTOR_AT_MOST_ONE>(v, size, guess); break;
                case FACTOR_AT_LEAST_ONE: project_counts<FACTOR_AT_LEAST_ONE>(v, size, guess); break;
                default: project_any_of_two(v);
            }
            guess += W;
            V far{};
            for (int k = 0; k < size; ++k) {
                const int64_t at = from + k * W;
                far = larger(far, size_of(v[k] - before[k]));
                V by = v[k] - load(copies + at);
                store(copies + at, v[k]);
                if (row[k] == kOwn) {
                    moved += by * by;
                    continue;
                }
                if (turned[at / W]) by *= load(signs + at);
                if (row[k] >= 0) {
                    store(sum + row[k], load(sum + row[k]) + by);
                } else {
                    for (int lane = 0; lane < W; ++lane) sum[variables[at + lane]] += by[lane];
                }
            }
            chunk.still = !any_lane(far > kStill);
        }
        change = total<double>(moved);
        return total<double>(apart);
    }

    // Brings the prices up to the last step; returns the sum of squares as above.
    double settle(const double* p, double rho) {
        using V = Lanes<double>;
        V apart{};
        for (const Chunk& chunk : chunks_)
            for (int64_t at = chunk.from; at < chunk.from + chunk.size * W; at += W) {
                const int32_t row = rows_[at / W];
                if (row == kOwn) continue;
                const V off = load(&q_[at]) - literal(p, &variable_[at], sign_ + at, row, turned_[at / W]);
                apart += off * off;
                store(&price_[at], load(&price_[at]) - rho * off);
            }
        return total<double>(apart);
    }

    // The consensus on variables that a factor has for itself.
    void show_own(double* consensus) const {
        for (size_t row = 0; row < rows_.size(); ++row)
            for (size_t k = row * W; rows_[row] == kOwn && k < (row + 1) * W; ++k)
                if (slot_[k] >= 0) consensus[variable_[k]] = sign_[k] < 0 ? 1 - q_[k] : q_[k];
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
        bool still;  // whether the last projection left the consensus as it was
        int size;
        int64_t from;
    };
    static constexpr double kNever = -1e30;  // the price of an entry that is none: it is never chosen
    static constexpr double kStill = 1e-14;
    // Slots of entries that are none: left over, 1, or free to be whatever the others say.
    static constexpr int32_t kZero = -1, kOne = -2, kFree = -3;
    // Where the variables of a vector are, if not side by side from some place on.
    static constexpr int32_t kScattered = -1, kOwn = -2;

    // The factors that are taken, by kind and then by size.
    static std::vector<int64_t> sorted(const FactorTables& t, int64_t first, int64_t last, int64_t longest,
                                       std::vector<int64_t>& left) {
        std::vector<int64_t> from((FACTOR_ANY + 1) * (longest + 1) + 1);
        const auto group = [&](int64_t f) { return t.kind[f] * (longest + 1) + t.start[f + 1] - t.start[f]; };
        const auto taken = [&](int64_t f) { return takes(t.kind[f], t.start[f + 1] - t.start[f]); };
        for (int64_t f = first; f < last; ++f) {
            if (taken(f)) ++from[group(f) + 1];
            else left.push_back(f);
        }
        for (size_t i = 1; i < from.size(); ++i) from[i] += from[i - 1];
        std::vector<int64_t> mine(from.back());
        for (int64_t f = first; f < last; ++f)
            if (taken(f)) mine[from[group(f)]++] = f;
        return mine;
    }

    static Lanes<double> literal(const double* p, const int32_t* variable, const double* signs, int32_t row,
                                 bool turned) {
        Lanes<double> v;
        if (row >= 0) {
            v = load(p + row);
        } else {
            for (int lane = 0; lane < W; ++lane) v[lane] = p[variable[lane]];
        }
        if (!turned) return v;
        const Lanes<double> sign = load(signs);
        return sign * v + 0.5 * (1 - sign);
    }

    std::vector<Chunk> chunks_;
    std::vector<int32_t> rows_;             // of each vector: its first place, or one of the above
    std::vector<int32_t> slot_, variable_;  // of each entry
    std::vector<uint8_t> turned_;           // of each vector: whether any literal is negated
    std::vector<double> guess_;             // thresholds
    double *sign_ = nullptr, *q_ = nullptr, *price_ = nullptr;  // as literals
    Lanes<double>*v_ = nullptr, *p_ = nullptr;  // of the factors at hand
    int64_t longest_ = 1;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
