// Alternating directions on factor graphs (AD3): every factor keeps a copy of its variables, projects it onto its own
// polytope, and prices make the copies agree.
//
// Maximises s . p - w/2 ||p||^2 over the local polytope: w = 0 is the linear program, w = 1 the projection of s.
#pragma once

#include <cstring>
#include <vector>

#include "factors.hpp"
#include "kernels.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

class Negotiation {
public:
    Negotiation(const FactorTables& tables, const FactorState& state, const FactorSettings& settings, int64_t b)
        : t_(tables), settings_(settings), parts_(state.parts) {
        const int64_t g = tables.graph[b];
        first_ = tables.factors_from[g];
        last_ = tables.factors_from[g + 1];
        slot_ = tables.start[first_];
        slots_ = tables.start[last_] - slot_;
        const int64_t mine = state.slots_from[b], at = b * parts_;
        scores_ = state.scores + at;
        fixed_ = state.fixed + at;
        p_ = state.p + at;
        z_ = state.z + at;
        q_ = state.q + mine;
        price_ = state.price + mine;
        faces_ = state.faces ? state.faces + mine : nullptr;
        report_ = state.reports + b;
    }

    void run() {
        Scratch scratch;
        degree_ = scratch.take<int32_t>(parts_);
        sum_ = scratch.take<double>(parts_);
        spent_ = scratch.take<double>(parts_);
        total_ = scratch.take<double>(parts_);
        moved_ = scratch.take<uint8_t>(parts_);
        int64_t longest = 1;
        for (int64_t f = first_; f < last_; ++f) longest = std::max(longest, t_.start[f + 1] - t_.start[f]);
        local_ = scratch.take<double>(longest);
        point_ = scratch.take<double>(longest);
        std::memset(degree_, 0, sizeof(int32_t) * parts_);
        std::memset(moved_, 1, parts_);
        for (int64_t k = 0; k < slots_; ++k) ++degree_[t_.variable[slot_ + k]];
        if (report_->iterations == 0) begin();
        if (settings_.judge == JUDGE_ONLY) judge();
        add_up();
        int64_t left = settings_.max_iterations;
        while (report_->status == FACTORS_GOING && left-- > 0) step();
        settle_prices();
        if (report_->status == FACTORS_GOING && report_->iterations > 0 && is_settled()) {
            finish();
            if (report_->status == FACTORS_GOING) report_->status = FACTORS_SETTLED;  // there are no more steps to take
        }
    }

private:
    Factor factor(int64_t f) const {
        const int64_t from = t_.start[f];
        return {static_cast<FactorKind>(t_.kind[f]), static_cast<int>(t_.start[f + 1] - from), t_.weight + from,
                t_.least[f], t_.most[f]};
    }

    void begin() {
        for (int64_t i = 0; i < parts_; ++i) p_[i] = alone(i, faces_ ? 0 : 0.5);
        for (int64_t k = 0; k < slots_; ++k) {
            const int32_t i = t_.variable[slot_ + k];
            // Each factor gets its share of the score; of the pull of the quadratic term nothing is known yet.
            price_[k] = settings_.quadratic > 0 ? 0 : scores_[i] / degree_[i];
        }
    }

    // The value of a variable that no factor has a say in, or that is fixed; otherwise what is given.
    double alone(int64_t i, double otherwise) const {
        if (fixed_[i] >= 0) return faces_ ? 0 : fixed_[i];
        if (degree_[i]) return otherwise;
        if (faces_) return scores_[i];
        if (settings_.quadratic > 0) return clipped(scores_[i] / settings_.quadratic);
        return scores_[i] > 0 ? 1 : 0;
    }

    // Sums of copies and of prices; later steps keep them up to date.
    void add_up() {
        for (int64_t i = 0; i < parts_; ++i) sum_[i] = spent_[i] = 0;
        for (int64_t k = 0; k < slots_; ++k) {
            const int32_t i = t_.variable[slot_ + k];
            sum_[i] += q_[k];
            spent_[i] += price_[k];
        }
    }

    // One pass over the factors: the prices of the step before, then new copies. A factor whose copy agrees with a
    // consensus that stands still has nothing new to say.
    void step() {
        const double rho = report_->rho, inverse = 1 / rho;
        double apart = 0;
        for (int64_t f = first_; f < last_; ++f) {
            if (t_.kind[f] == FACTOR_OUTSIDE) continue;
            const int64_t from = t_.start[f] - slot_;
            const int size = static_cast<int>(t_.start[f + 1] - t_.start[f]);
            const int32_t* variable = t_.variable + t_.start[f];
            const uint8_t* negated = t_.negated + t_.start[f];
            double *q = q_ + from, *price = price_ + from;
            bool news = false;
            for (int k = 0; k < size; ++k) news |= moved_[variable[k]] || std::fabs(q[k] - p_[variable[k]]) > kStill;
            if (!news) continue;
            for (int k = 0; k < size; ++k) {
                const int32_t i = variable[k];
                if (pending_) {
                    const double off = q[k] - p_[i];
                    apart += off * off;
                    price[k] -= rho * off;
                    spent_[i] -= rho * off;
                }
                const double v = p_[i] + price[k] * inverse;
                local_[k] = !negated[k] ? v : faces_ ? -v : 1 - v;
            }
            if (faces_) {
                for (int k = 0; k < size; ++k) point_[k] = negated[k] ? 1 - faces_[from + k] : faces_[from + k];
                Scratch scratch;
                project_onto_face(factor(f), point_, local_, scratch);
            } else if (t_.kind[f] == FACTOR_ANY && size == 3) {
                project_any_of_two(local_);
            } else {
                project_factor(factor(f), local_);
            }
            for (int k = 0; k < size; ++k) {
                const double found = !negated[k] ? local_[k] : faces_ ? -local_[k] : 1 - local_[k];
                sum_[variable[k]] += found - q[k];
                q[k] = found;
            }
        }
        if (pending_) report_->apart = std::sqrt(apart / slots_);
        const bool settled = pending_ && is_settled();
        move();
        pending_ = true;
        const int64_t done = static_cast<int64_t>(++report_->iterations);
        if (settled) finish();
        else if (settings_.judge == JUDGE_STEPS && done % settings_.look_every == 0) settle_prices(), judge();
        if (report_->status == FACTORS_GOING && done % settings_.adapt_every == 0) adapt();
    }

    // The consensus.
    void move() {
        const double rho = report_->rho;
        double change = 0;
        for (int64_t i = 0; i < parts_; ++i) {
            if (!degree_[i]) continue;
            const double pull = scores_[i] - spent_[i] + rho * sum_[i];
            const double next = alone(i, pull / (settings_.quadratic + rho * degree_[i]));
            const double by = next - p_[i];
            moved_[i] = std::fabs(by) > kStill;
            change += degree_[i] * by * by;
            p_[i] = next;
        }
        report_->change = slots_ ? std::sqrt(change / slots_) : 0;
    }

    // Bring all prices up to the last step.
    void settle_prices() {
        if (!pending_) return;
        const double rho = report_->rho;
        double apart = 0;
        for (int64_t k = 0; k < slots_; ++k) {
            const int32_t i = t_.variable[slot_ + k];
            const double off = q_[k] - p_[i];
            apart += off * off;
            price_[k] -= rho * off;
            spent_[i] -= rho * off;
        }
        report_->apart = slots_ ? std::sqrt(apart / slots_) : 0;
        pending_ = false;
    }

    bool is_settled() const {
        const double enough = patient_ ? 1e-3 * settings_.tolerance : settings_.tolerance;
        return report_->apart < enough && report_->change < enough;
    }

    // Where all agree on what is nearly a member, the proof that it is the best is worth some more steps.
    void finish() {
        settle_prices();
        if (settings_.judge == JUDGE_STEPS) {
            judge();
            if (report_->status != FACTORS_GOING) return;
            double off = 0;
            for (int64_t i = 0; i < parts_; ++i) off = std::max(off, std::fabs(p_[i] - z_[i]));
            if (!patient_ && settings_.quadratic == 0 && off < 0.1) {
                patient_ = true;
                return;
            }
        }
        report_->status = FACTORS_SETTLED;
    }

    // Copies that disagree want a stronger pull; a consensus that runs about, a weaker one.
    void adapt() {
        double by = 1;
        if (report_->apart > settings_.imbalance * report_->change) by = 2;
        else if (report_->change > settings_.imbalance * report_->apart) by = 0.5;
        const double next = std::min(std::max(report_->rho * by, 1e-6), 1e6);
        if (next == report_->rho) return;
        settle_prices();
        report_->rho = next;
        std::memset(moved_, 1, parts_);  // what a factor makes of its prices depends on rho
    }

    // What prices prove, and what rounding finds.
    void judge() {
        Scratch scratch;
        double bound = 0, floor = 0;
        for (int64_t i = 0; i < parts_; ++i) total_[i] = scores_[i];
        for (int64_t f = first_; f < last_; ++f) {
            if (t_.kind[f] == FACTOR_OUTSIDE) {
                for (int64_t k = t_.start[f] - slot_; k < t_.start[f + 1] - slot_; ++k)
                    total_[t_.variable[slot_ + k]] -= price_[k];
                continue;
            }
            const int64_t from = t_.start[f] - slot_, size = t_.start[f + 1] - t_.start[f];
            for (int64_t k = 0; k < size; ++k) {
                const double price = price_[from + k];
                const bool negated = t_.negated[slot_ + from + k];
                local_[k] = negated ? -price : price;
                if (negated) bound += price;
                total_[t_.variable[slot_ + from + k]] -= price;
            }
            bound += best_value(factor(f), local_, scratch);
        }
        const double w = settings_.quadratic;
        for (int64_t i = 0; i < parts_; ++i) {
            floor += std::min(0.0, scores_[i] - 0.5 * w);
            const double rest = total_[i];  // what no price covers
            if (fixed_[i] >= 0) bound += fixed_[i] * rest - 0.5 * w * fixed_[i];
            else if (!degree_[i]) bound += p_[i] * rest - 0.5 * w * p_[i] * p_[i];
            else if (w > 0) bound += rest * rest / (2 * w);
        }
        report_->bound = std::min(report_->bound, bound + report_->outside);
        const double slack = 1e-9 * (1 + std::fabs(floor));
        if (report_->bound < floor - slack) {
            report_->status = FACTORS_INFEASIBLE;
            return;
        }
        if (w > 0) return;
        double value = 0;
        for (int64_t i = 0; i < parts_; ++i) {
            total_[i] = p_[i] > 0.5;
            value += total_[i] * scores_[i];
        }
        if (value > report_->value && holds(total_)) {
            report_->value = value;
            std::copy(total_, total_ + parts_, z_);
        }
        if (report_->bound - report_->value <= settings_.gap) {
            report_->status = FACTORS_OPTIMAL;
            std::copy(z_, z_ + parts_, p_);
        } else if (report_->bound <= report_->cutoff) {
            report_->status = FACTORS_CUT;
        }
    }

    // Whether all factors agree to a 0/1 vector. Structures from outside are asked by whoever brings them, so that here
    // nothing is known for a graph that has any.
    bool holds(const double* z) {
        for (int64_t f = first_; f < last_; ++f) {
            if (t_.kind[f] == FACTOR_OUTSIDE) return false;
            const int64_t from = t_.start[f], size = t_.start[f + 1] - from;
            for (int64_t k = 0; k < size; ++k) {
                const double x = z[t_.variable[from + k]];
                local_[k] = t_.negated[from + k] ? 1 - x : x;
            }
            if (excess(factor(f), local_) > 1e-9) return false;
        }
        return true;
    }

    static constexpr double kStill = 1e-14;

    const FactorTables& t_;
    const FactorSettings& settings_;
    int64_t parts_, first_, last_, slot_, slots_;
    const double* scores_;
    const int8_t* fixed_;
    double *p_, *z_, *q_, *price_;
    const double* faces_;
    FactorReport* report_;
    int32_t* degree_;
    double *sum_, *spent_, *total_, *local_, *point_;
    uint8_t* moved_;
    bool patient_ = false;
    bool pending_ = false;  // whether prices lag behind the last step
};

inline void negotiate(const FactorTables& tables, const FactorState& state, const FactorSettings& settings,
                      int threads) {
    auto body = [&](int64_t b) {
        const double status = state.reports[b].status;
        if (status == FACTORS_GOING || (status == FACTORS_SETTLED && settings.judge == JUDGE_ONLY))
            Negotiation(tables, state, settings, b).run();
    };
    double steps = 0;
    for (int64_t b = 0; b < state.batch; ++b) steps += 4.0 * (state.slots_from[b + 1] - state.slots_from[b]);
    parallel_for(state.batch, worthwhile_threads(steps * settings.max_iterations, threads), body);
}

// By how much each instance breaks its worst factor, those from outside aside.
inline void factor_excess(const FactorTables& t, const double* point, int64_t batch, int64_t parts, double* to,
                          int64_t* which, int threads) {
    auto body = [&](int64_t b) {
        const int64_t g = t.graph[b];
        const double* p = point + b * parts;
        double worst = 0;
        int64_t where = -1;
        for (int64_t f = t.factors_from[g]; f < t.factors_from[g + 1]; ++f) {
            if (t.kind[f] == FACTOR_OUTSIDE) continue;
            const int64_t from = t.start[f], size = t.start[f + 1] - from;
            Scratch scratch;
            double* local = scratch.take<double>(size);
            for (int64_t k = 0; k < size; ++k)
                local[k] = t.negated[from + k] ? 1 - p[t.variable[from + k]] : p[t.variable[from + k]];
            const double off = excess({static_cast<FactorKind>(t.kind[f]), static_cast<int>(size), t.weight + from,
                                       t.least[f], t.most[f]},
                                      local);
            if (off > worst) worst = off, where = f - t.factors_from[g];
        }
        to[b] = worst;
        which[b] = where;
    };
    parallel_for(batch, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
