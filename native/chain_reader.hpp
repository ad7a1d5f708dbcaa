// Chains of states, read a vector of states at a time: what the algorithms on them share.
//
// Parts are (batch, n, 1 + k, k): row 0 of a position holds its states, row 1 + i the transitions into it from state i
// of the position before. Within a chain, vectors run over the states of one position, so that every sentence may have
// its own length and nothing is transposed. All arithmetic is in doubles.
#pragma once

#include <cmath>

#include "kernels.hpp"
#include "numbers.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

#if defined(__AVX512BW__) && defined(__AVX512VL__)

using LaneFlags = __mmask8;
inline LaneFlags first_lanes(int64_t count) { return static_cast<LaneFlags>(count < 8 ? (1u << count) - 1 : 0xff); }
inline LaneFlags existing_lanes(const uint8_t* exists) { return existing(exists, 0.0); }
inline Lanes<double> choose(LaneFlags here, Lanes<double> a, Lanes<double> b) {
    return _mm512_mask_blend_pd(here, b, a);
}
inline LaneFlags beyond(Lanes<double> v, double limit) {  // or NaN
    return _mm512_cmp_pd_mask(v, spread(limit), _CMP_NLE_UQ);
}
inline bool any_flag(LaneFlags flags) { return flags != 0; }

#else

using LaneFlags = LaneTraits<double>::Bits;
inline LaneFlags first_lanes(int64_t count) {
    LaneFlags flags{};
    for (int lane = 0; lane < lane_count<double>; ++lane) flags[lane] = lane < count ? -1 : 0;
    return flags;
}
inline LaneFlags existing_lanes(const uint8_t* exists) {
    typename Vector<uint8_t, lane_count<double>>::Type bytes;
    std::memcpy(&bytes, exists, sizeof bytes);
    return __builtin_convertvector(bytes, LaneFlags) != 0;
}
inline Lanes<double> choose(LaneFlags here, Lanes<double> a, Lanes<double> b) { return here ? a : b; }
inline LaneFlags beyond(Lanes<double> v, double limit) { return ~(v <= spread(limit)); }
inline bool any_flag(LaneFlags flags) { return any_lane(flags); }

#endif

// As many values as a vector of doubles holds.
template <class T>
inline Lanes<double> load_wide(const T* from) {
    typename Vector<T, sizeof(T) * lane_count<double>>::Type narrow;
    std::memcpy(&narrow, from, sizeof narrow);
    return __builtin_convertvector(narrow, Lanes<double>);
}

// The same way back; no more than `count` values are written.
template <class T>
inline void store_narrow(T* to, Lanes<double> v, int64_t count) {
    using Narrow = typename Vector<T, sizeof(T) * lane_count<double>>::Type;
    const Narrow narrow = __builtin_convertvector(v, Narrow);
    if (count >= lane_count<double>) std::memcpy(to, &narrow, sizeof narrow);
    else
        for (int64_t i = 0; i < count; ++i) to[i] = narrow[i];
}

// log x for 1 <= x < 2^1000, to within a few units in the last place.
inline Lanes<double> log_from_one(Lanes<double> x) {
    using V = Lanes<double>;
    using I = LaneTraits<double>::Bits;
    I bits;
    std::memcpy(&bits, &x, sizeof bits);
    I exponent = (bits >> 52) - 1023;
    bits = (bits & 0xfffffffffffffLL) | 0x3ff0000000000000LL;
    V m;
    std::memcpy(&m, &bits, sizeof m);
    const I high = m > spread(1.4142135623730951);
    m = high ? m * 0.5 : m;
    exponent -= high;  // true is -1
    const V s = (m - 1) / (m + 1), square = s * s;
    V p = spread(1.0 / 23);  // log m = 2 artanh s, |s| <= 0.1716
    for (int degree = 21; degree >= 1; degree -= 2) p = p * square + 1.0 / degree;
    return __builtin_convertvector(exponent, V) * 0.6931471805599453 + 2 * s * p;
}

// One chain of the batch. `readable` counts the values from its first on that may be read, up to the end of the batch.
template <class T>
struct ChainView {
    const T* scores;
    const uint8_t* mask;
    int64_t length, states, readable;

    int64_t area() const { return (1 + states) * states; }
    bool has_state(int64_t t, int64_t j) const { return mask[t * area() + j]; }
    // A transition needs its two states.
    bool has_part(int64_t t, int64_t row, int64_t j) const {
        return mask[t * area() + row * states + j] &&
               (row == 0 || (t > 0 && has_state(t, j) && has_state(t - 1, row - 1)));
    }
    T score(int64_t t, int64_t row, int64_t j) const { return scores[t * area() + row * states + j]; }
};

// The chain of one instance, as long as its last position with a state. Length -1 if a position before that has none,
// which is reported.
template <class T>
ChainView<T> find_chain(const ChainBatch<T>& chains, int64_t b, FaultBox& faults) {
    const int64_t k = chains.states, area = (1 + k) * k, whole = chains.n * area;
    const uint8_t* mask = chains.mask + b * whole;
    auto some = [&](int64_t t) {
        uint8_t any = 0;
        for (int64_t j = 0; j < k; ++j) any |= mask[t * area + j];
        return any != 0;
    };
    int64_t length = chains.n;
    while (length && !some(length - 1)) --length;
    ChainView<T> view{chains.scores + b * whole, mask, length, k, (chains.batch - b) * whole};
    for (int64_t t = 0; t < length; ++t) {
        if (some(t)) continue;
        faults.report(FAULT_HEADLESS, b, t);
        view.length = -1;
        break;
    }
    return view;
}

// Reports the first position that no path of allowed transitions reaches; false if all are reached.
template <class T>
bool report_broken(const ChainView<T>& view, int64_t b, FaultBox& faults) {
    const int64_t k = view.states;
    Scratch scratch;
    uint8_t *before = scratch.take<uint8_t>(k), *after = scratch.take<uint8_t>(k);
    for (int64_t j = 0; j < k; ++j) before[j] = view.length && view.has_state(0, j);
    for (int64_t t = 1; t < view.length; ++t) {
        uint8_t any = 0;
        for (int64_t j = 0; j < k; ++j) {
            after[j] = 0;
            for (int64_t i = 0; i < k; ++i) after[j] |= before[i] && view.has_part(t, 1 + i, j);
            any |= after[j];
        }
        if (!any) {
            faults.report(FAULT_IMPOSSIBLE, b, t);
            return true;
        }
        std::swap(before, after);
    }
    return false;
}

template <class T>
bool report_nan(const ChainView<T>& view, int64_t b, FaultBox& faults) {
    for (int64_t t = 0; t < view.length; ++t)
        for (int64_t row = 0; row <= view.states; ++row)
            for (int64_t j = 0; j < view.states; ++j) {
                const T s = view.score(t, row, j);
                if (s == s || !view.has_part(t, row, j)) continue;
                faults.report(FAULT_NAN, b, t, row, j);
                return true;
            }
    return false;
}

// A copy of a chain that holds what can take part and nothing else, each score changed by `change`.
template <class T, class Change>
ChainView<double> copy_chain(const ChainView<T>& view, Scratch& scratch, Change change) {
    const int64_t k = view.states, area = view.area(), whole = view.length * area, room = whole + lane_count<double>;
    double* scores = scratch.take<double>(room);
    uint8_t* mask = scratch.take<uint8_t>(room);
    for (int64_t i = whole; i < room; ++i) scores[i] = 0, mask[i] = 0;
    for (int64_t t = 0; t < view.length; ++t)
        for (int64_t row = 0; row <= k; ++row)
            for (int64_t j = 0; j < k; ++j) {
                const int64_t place = t * area + row * k + j;
                mask[place] = view.has_part(t, row, j);
                scores[place] = mask[place] ? change(static_cast<double>(view.score(t, row, j))) : 0;
            }
    return {scores, mask, view.length, k, room};
}

// Infinite scores replaced by numbers that no sum of the others outweighs, and scores near the end of the range made
// small enough to be added.
template <class T>
ChainView<double> finite_chain(const ChainView<T>& view, Scratch& scratch) {
    const double most = std::numeric_limits<double>::max();
    auto finite = [&](double s) { return std::fabs(s) <= most; };
    double top = 0, sum = 0;
    for (int pass = 0; pass < 2; ++pass) {
        const double shrink = top > 1e290 ? 0x1p-64 : 1;
        for (int64_t t = 0; t < view.length; ++t) {
            double here[2] = {0, 0};
            for (int64_t row = 0; row <= view.states; ++row)
                for (int64_t j = 0; j < view.states; ++j) {
                    if (!view.has_part(t, row, j)) continue;
                    const double s = static_cast<double>(view.score(t, row, j));
                    if (finite(s)) here[row > 0] = larger(here[row > 0], std::fabs(s));
                }
            if (pass) sum += (here[0] + here[1]) * shrink;
            else top = larger(top, larger(here[0], here[1]));
        }
    }
    const double shrink = top > 1e290 ? 0x1p-64 : 1, limit = 1 + 2 * sum;
    return copy_chain(view, scratch, [&](double s) { return finite(s) ? s * shrink : s > 0 ? limit : -limit; });
}

// Positions of a chain, each followed by enough memory for the last vector of its last row.
template <class T>
class ChainReader {
public:
    ChainReader(const ChainView<T>& view, Scratch& scratch) : view_(view), tail_(view.length) {
        const int64_t area = view.area(), room = lane_count<double>;
        while (tail_ > 0 && tail_ * area + room > view.readable) --tail_;
        const int64_t left = (view.length - tail_) * area;
        if (!left) return;
        scores_ = scratch.take<T>(left + room);
        mask_ = scratch.take<uint8_t>(left + room);
        for (int64_t i = 0; i < left + room; ++i) {
            scores_[i] = i < left ? view.scores[tail_ * area + i] : T(0);
            mask_[i] = i < left ? view.mask[tail_ * area + i] : 0;
        }
    }
    const T* scores(int64_t t) const {
        return t < tail_ ? view_.scores + t * view_.area() : scores_ + (t - tail_) * view_.area();
    }
    const uint8_t* mask(int64_t t) const {
        return t < tail_ ? view_.mask + t * view_.area() : mask_ + (t - tail_) * view_.area();
    }

private:
    const ChainView<T>& view_;
    int64_t tail_;
    T* scores_ = nullptr;
    uint8_t* mask_ = nullptr;
};

inline int64_t vectors_of(int64_t states) { return (states + lane_count<double> - 1) / lane_count<double>; }

// Calls body(first vector, integral_constant of how many) for groups of up to four vectors that cover the states.
template <class Body>
inline void each_group(int64_t states, Body body) {
    const int64_t vectors = vectors_of(states);
    int64_t v = 0;
    for (; v + 4 <= vectors; v += 4) body(v, std::integral_constant<int, 4>{});
    if (vectors - v == 3) body(v, std::integral_constant<int, 3>{});
    if (vectors - v == 2) body(v, std::integral_constant<int, 2>{});
    if (vectors - v == 1) body(v, std::integral_constant<int, 1>{});
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
