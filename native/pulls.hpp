// What SPIGOT and LPGD send back over products of simplices, in one pass: the step, the projections and the difference
// of a block stay in registers and scratch, in double precision, where on their own they would be six tensors.
//
// SPIGOT: z - proj(z - eta g). LPGD, which knows the scores: with v = z + s / rho, proj(v) - proj(v - eta g), or half
// of proj(v + eta g) - proj(v - eta g) if it is two-sided. An arc that is far from another decision stays where it is in
// both projections, and is found to without either.
#pragma once

#include "simplex.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// From where to where one block of parts is projected.
template <class T>
class Steps {
public:
    Steps(Scratch& scratch, const PullInput<T>& in, int64_t width)
        : in_(in),
          low(scratch.take<double>(width)),
          high(scratch.take<double>(width)),
          exists(scratch.take<uint8_t>(width)) {}

    bool scored() const { return in_.scores != nullptr; }

    // The two points of `width` parts that begin at `place`, of one instance; `exists` says where they are points.
    void take(int64_t place, int64_t width, int64_t instance) {
        const T *z = in_.z + place, *grad = in_.grad + place;
        const double eta = in_.eta, up = in_.two_sided ? eta : 0.0;
        std::memcpy(exists, in_.mask + place, width);
        if (!scored()) {
            for (int64_t c = 0; c < width; ++c) low[c] = double(z[c]) - eta * double(grad[c]);
            return;
        }
        const T* scores = in_.scores + place;
        const double scale = in_.scale[instance];
        double odd = 0;  // becomes NaN if a score is infinite or NaN
        for (int64_t c = 0; c < width; ++c) {
            const double s = scale * double(scores[c]), v = double(z[c]) + s;
            odd += double(scores[c]) * 0.0;
            low[c] = v - eta * double(grad[c]);
            high[c] = v + up * double(grad[c]);
        }
        if (odd != odd) bound(z, scores, grad, scale, width);
    }

    // The value to send back for part c at `place`, from the two projections.
    T difference(int64_t place, double from, double to) const {
        if (!in_.mask[place]) return T(0);
        if (!scored()) return T(double(in_.z[place]) - to);
        return T(in_.two_sided ? 0.5 * (from - to) : from - to);
    }

private:
    // Infinite scores: a part of -inf that was not chosen does not exist, one of +inf outdoes all that is finite.
    void bound(const T* z, const T* scores, const T* grad, double scale, int64_t width) {
        const double eta = in_.eta, up = in_.two_sided ? eta : 0.0;
        double reach = 1;
        for (int64_t c = 0; c < width; ++c) {
            if (!exists[c]) continue;
            const double s = scale * std::fabs(double(scores[c])), g = eta * std::fabs(double(grad[c]));
            const double here = (finite(double(scores[c])) ? s : 0.0) + g;
            reach = here > reach ? here : reach;
        }
        for (int64_t c = 0; c < width; ++c) {
            const double s = double(scores[c]);
            if (!exists[c] || finite(s) || s != s) continue;
            if (s < 0 && z[c] == T(0)) exists[c] = 0;
            const double v = double(z[c]) + (s < 0 ? 0.0 : 4 * reach);
            low[c] = v - eta * double(grad[c]);
            high[c] = v + up * double(grad[c]);
        }
    }

    const PullInput<T>& in_;

public:
    double *low, *high;
    uint8_t* exists;
};

template <class T>
void pull_rows(const PullInput<T>& in, int64_t rows, int64_t width, T* to, int threads, FaultBox& faults) {
    constexpr int64_t block = 64;
    constexpr int together = Rows<double>::together;
    auto body = [&](int64_t task) {
        Scratch scratch;
        Steps<T> steps(scratch, in, width);
        Rows<double> below(scratch, width), above(scratch, width);
        double tops[together], high_tops[together], goals[together];
        int64_t place[together];
        int count = 0;
        auto flush = [&] {
            below.project(count, tops, goals);
            if (steps.scored()) above.project(count, high_tops, goals);
            for (int k = 0; k < count; ++k)
                for (int64_t c = 0; c < width; ++c)
                    to[place[k] + c] = steps.difference(place[k] + c, above.row(k)[c], below.row(k)[c]);
            count = 0;
        };
        const int64_t end = rows < (task + 1) * block ? rows : (task + 1) * block;
        for (int64_t r = task * block; r < end; ++r) {
            steps.take(r * width, width, r);
            bool clean = below.load(count, steps.low, steps.exists, tops[count]);
            if (steps.scored()) clean &= above.load(count, steps.high, steps.exists, high_tops[count]);
            if (!clean) {
                auto sound = [&](int64_t i) {  // either of the two points may be the one that is no number
                    const bool high = !steps.scored() || steps.high[i] == steps.high[i];
                    return !steps.exists[i] || (high && steps.low[i] == steps.low[i]);
                };
                int64_t i = 0;
                while (i + 1 < width && sound(i)) ++i;
                faults.report(FAULT_NAN, r, i);
                continue;
            }
            if (finite(tops[count])) {
                goals[count] = 1;
                place[count++] = r * width;
            } else {
                bool any = false;
                for (int64_t i = 0; i < width; ++i) any |= steps.exists[i] != 0;
                if (any) faults.report(FAULT_INFINITE, r);
                std::memset(to + r * width, 0, sizeof(T) * width);
            }
            if (count == together) flush();
        }
        flush();
    };
    parallel_for((rows + block - 1) / block, worthwhile_threads(3.0 * rows * width, threads), body);
}

template <class T>
void pull_heads(const PullInput<T>& in, int64_t batch, int64_t n, T* to, int threads, FaultBox& faults) {
    auto body = [&](int64_t b) {
        Scratch scratch;
        Steps<T> steps(scratch, in, n * n);
        HeadColumns<double> below(scratch, n), above(scratch, n);
        steps.take(b * n * n, n * n, b);
        if (!below.project(steps.low, steps.exists, b, faults)) return;
        if (steps.scored() && !above.project(steps.high, steps.exists, b, faults)) return;
        for (int64_t h = 0; h < n; ++h) {
            const int64_t place = (b * n + h) * n;
            const double *low = below.row(h), *high = above.row(h);
            for (int64_t m = 0; m < n; ++m) to[place + m] = steps.difference(place + m, high[m], low[m]);
        }
    };
    parallel_for(batch, worthwhile_threads(6.0 * batch * n * n, threads), body);
}

// What can be said of an arc without projecting: whether it keeps its vertex in both projections, since its best entry,
// a label or "no arc", leads the others by more than the step can take; and whether the upper one is a vertex, which
// `high` then is. As a rule it is, as z is the best structure.
struct Foresight {
    bool stays = false;
    bool vertex = false;
};

template <class T>
Foresight foresee(const Steps<T>& steps, int64_t width, double* high) {
    constexpr int W = lane_count<double>;
    using V = Lanes<double>;
    if (!steps.exists[0]) return {};
    V best = spread(minus_infinity<double>), furthest{};
    auto each = [&](auto use) {  // the labels; the arc itself comes apart
        int64_t c = 1;
        for (; c + W <= width; c += W)
            use(load_existing(steps.high + c, steps.exists + c), load_existing(steps.low + c, steps.exists + c));
        if (c < width)
            use(load_existing(steps.high + c, steps.exists + c, width - c),
                load_existing(steps.low + c, steps.exists + c, width - c));
    };
    each([&](V up, V down) {
        const V step = up > down ? up - down : down - up;  // NaN where there is no label
        best = up > best ? up : best;
        furthest = step > furthest ? step : furthest;
    });
    const double slack = 1.0 - steps.high[0], arc = std::fabs(steps.high[0] - steps.low[0]);
    const double far = largest<double>(furthest), step = arc > far ? arc : far;
    const double label = largest<double>(best), top = label > slack ? label : slack;
    const double cut = top - 1.0, wide = cut - 2.0 * step;
    if (!finite(wide)) return {};  // or NaN: the projections say what is wrong
    V near{}, within{};
    each([&](V up, V) {
        near += up > cut ? spread(1.0) : V{};
        within += up > wide ? spread(1.0) : V{};
    });
    Foresight seen;
    seen.stays = total<double>(within) + (slack > wide) == 1.0;
    seen.vertex = total<double>(near) + (slack > cut) == 1.0;
    if (seen.vertex && !seen.stays) {
        for (int64_t c = 1; c < width; ++c) high[c] = steps.exists[c] && steps.high[c] > cut ? 1.0 : 0.0;
        high[0] = slack > cut ? 0.0 : 1.0;
    }
    return seen;
}

template <class T>
void pull_arc_labels(const PullInput<T>& in, int64_t batch, int64_t n, int64_t width, bool sequential, T* to,
                     int threads, FaultBox& faults) {
    auto body = [&](int64_t task) {  // one task for each predicate
        ArcProjection<double> project(width, sequential);
        Scratch scratch;
        Steps<T> steps(scratch, in, width);
        double* low = scratch.take<double>(width);
        double* high = scratch.take<double>(width);
        const int64_t b = task / n, i = task % n;
        for (int64_t j = 0; j < n; ++j) {
            const int64_t place = (task * n + j) * width;
            const bool there = in.mask[place] && (j != 0 || i == 0);  // a label without its arc does not exist
            Foresight seen;
            if (there) {
                steps.take(place, width, b);
                if (steps.scored() && !sequential && i != j) seen = foresee(steps, width, high);
            }
            if (!there || seen.stays) {
                std::memset(to + place, 0, sizeof(T) * width);
                continue;
            }
            project(steps.low, steps.exists, b, i, j, low, faults);
            if (steps.scored() && !seen.vertex) project(steps.high, steps.exists, b, i, j, high, faults);
            for (int64_t c = 0; c < width; ++c) to[place + c] = steps.difference(place + c, high[c], low[c]);
        }
    };
    parallel_for(batch * n, worthwhile_threads(3.0 * batch * n * n * width, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
