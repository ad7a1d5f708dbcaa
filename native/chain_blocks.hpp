// Projection onto the relaxation of chains: a simplex for the states of each position, and one for the transitions into
// it.
#pragma once

#include "kernels.hpp"
#include "simplex.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

template <class T>
class StepProjection {
public:
    explicit StepProjection(int64_t states)
        : k_(states),
          states_(scratch_, states),
          steps_(scratch_, states * states),
          exists_(scratch_.take<uint8_t>((1 + states) * states)) {}

    // The parts of position t that can take part, given the mask of the chain: a transition needs its two states.
    const uint8_t* parts(const uint8_t* mask, int64_t t) {
        const uint8_t* here = mask + t * (1 + k_) * k_;
        const uint8_t* before = here - (1 + k_) * k_;
        std::memcpy(exists_, here, k_);
        for (int64_t i = 0; i < k_; ++i) {
            const uint8_t* row = here + (1 + i) * k_;
            uint8_t* to = exists_ + (1 + i) * k_;
            const uint8_t open = t > 0 && before[i];
            for (int64_t j = 0; j < k_; ++j) to[j] = row[j] & here[j] & open;
        }
        return exists_;
    }

    // Projects position t of chain b, of which `parts` has just been asked.
    void operator()(const T* from, int64_t b, int64_t t, T* to, FaultBox& faults) {
        block(states_, k_, from, exists_, b, t, 0, to, faults);
        block(steps_, k_ * k_, from + k_, exists_ + k_, b, t, 1, to + k_, faults);
    }

private:
    void block(Rows<T>& rows, int64_t width, const T* from, const uint8_t* exists, int64_t b, int64_t t, int64_t first,
               T* to, FaultBox& faults) {
        T top;
        const T goal = 1;
        if (!rows.load(0, from, exists, top)) {
            int64_t i = 0;
            while (!exists[i] || from[i] == from[i]) ++i;
            faults.report(FAULT_NAN, b, t, first + i / k_, i % k_);
        } else if (finite(top)) {
            rows.project(1, &top, &goal);
            std::memcpy(to, rows.row(0), sizeof(T) * width);
            return;
        } else {  // nothing there, or nothing but infinities
            bool any = false;
            for (int64_t i = 0; i < width; ++i) any |= exists[i] != 0;
            if (any) faults.report(FAULT_INFINITE, b);
        }
        std::memset(to, 0, sizeof(T) * width);
    }

    int64_t k_;
    Scratch scratch_;
    Rows<T> states_, steps_;
    uint8_t* exists_;
};

template <class T>
void project_chain_blocks(const ChainBatch<T>& points, T* to, int threads, FaultBox& faults) {
    const int64_t area = (1 + points.states) * points.states, whole = points.n * area;
    auto body = [&](int64_t b) {
        StepProjection<T> project(points.states);
        for (int64_t t = 0; t < points.n; ++t) {
            const int64_t place = b * whole + t * area;
            project.parts(points.mask + b * whole, t);
            project(points.scores + place, b, t, to + place, faults);
        }
    };
    parallel_for(points.batch, worthwhile_threads(2.0 * points.batch * whole, threads), body);
}

// z - proj(z - eta * grad) in one pass, in double precision: on their own, step, projection and difference would be six
// tensors.
template <class T>
void pull_chain_blocks(const ChainBatch<T>& z, const T* grad, double eta, T* to, int threads, FaultBox& faults) {
    const int64_t area = (1 + z.states) * z.states, whole = z.n * area;
    auto body = [&](int64_t b) {
        StepProjection<double> project(z.states);
        Scratch scratch;
        double *stepped = scratch.take<double>(area), *projected = scratch.take<double>(area);
        for (int64_t t = 0; t < z.n; ++t) {
            const int64_t place = b * whole + t * area;
            const T *at = z.scores + place, *along = grad + place;
            const uint8_t* exists = project.parts(z.mask + b * whole, t);
            for (int64_t i = 0; i < area; ++i) stepped[i] = double(at[i]) - eta * double(along[i]);
            project(stepped, b, t, projected, faults);
            for (int64_t i = 0; i < area; ++i) to[place + i] = exists[i] ? T(double(at[i]) - projected[i]) : T(0);
        }
    };
    parallel_for(z.batch, worthwhile_threads(3.0 * z.batch * whole, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
