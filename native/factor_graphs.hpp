// Alternating directions on factor graphs (AD3): every factor keeps a copy of its variables, projects it onto its own
// polytope, and prices make the copies agree.
//
// Maximises s . p - w/2 ||p||^2 over the local polytope: w = 0 is the linear program, w = 1 the projection of s.
#pragma once

#include <cstring>
#include <vector>

#include "factor_lanes.hpp"
#include "factor_rounding.hpp"
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
        consensus_ = state.p + at;
        z_ = state.z + at;
        q_ = state.q + mine;
        price_ = state.price + mine;
        faces_ = state.faces ? state.faces + mine : nullptr;
        report_ = state.reports + b;
    }

    void run() {
        Scratch scratch;
        degree_ = scratch.take<int32_t>(parts_);
        place_ = scratch.take<int32_t>(parts_);
        total_ = scratch.take<double>(parts_);
        int64_t longest = 1;
        for (int64_t f = first_; f < last_; ++f) longest = std::max(longest, t_.start[f + 1] - t_.start[f]);
        local_ = scratch.take<double>(longest);
        point_ = scratch.take<double>(longest);
        std::memset(degree_, 0, sizeof(int32_t) * parts_);
        for (int64_t k = 0; k < slots_; ++k) ++degree_[t_.variable[slot_ + k]];
        if (report_->iterations == 0) begin();
        take_places(scratch);
        if (settings_.judge == JUDGE_ONLY) judge();
        add_up();
        int64_t left = settings_.max_iterations;
        while (report_->status == FACTORS_GOING && left-- > 0) step();
        settle_prices();
        if (report_->status == FACTORS_GOING && report_->iterations > 0 && is_settled()) {
            finish();
            if (report_->status == FACTORS_GOING) report_->status = FACTORS_SETTLED;  // there are no more steps to take
        }
        if (settings_.judge == JUDGE_STEPS && settings_.quadratic == 0 && !faces_) {
            if (report_->status == FACTORS_GOING) judge();
            if (report_->status == FACTORS_GOING || report_->status == FACTORS_SETTLED) try_more(), conclude();
        }
        lanes_.scatter(q_, price_);
    }

private:
    Factor factor(int64_t f) const {
        const int64_t from = t_.start[f];
        return {static_cast<FactorKind>(t_.kind[f]), static_cast<int>(t_.start[f + 1] - from), t_.weight + from,
                t_.least[f], t_.most[f]};
    }

    void begin() {
        for (int64_t i = 0; i < parts_; ++i) consensus_[i] = alone(i, faces_ ? 0 : 0.5);
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

    // Decides which factors go side by side, and which place each variable has among those that steps move.
    void take_places(Scratch& scratch) {
        const bool beside = settings_.max_iterations >= kWorthwhile && !faces_;
        int32_t places = static_cast<int32_t>(parts_);
        if (!beside) {
            for (int64_t f = first_; f < last_; ++f) others_.push_back(f);
            for (int32_t i = 0; i < places; ++i) place_[i] = i;
            seat_ = t_.variable + slot_;
        } else {
            for (int64_t i = 0; i < parts_; ++i)
                place_[i] = degree_[i] == 1 && fixed_[i] < 0 && settings_.quadratic == 0 ? PLACE_LONELY : PLACE_NONE;
            lanes_.gather(t_, first_, last_, others_);
            places = lanes_.number(t_, slot_, place_);
            for (int64_t i = 0; i < parts_; ++i)
                if (place_[i] > PLACE_OWN && place_[i] < 0 && degree_[i]) place_[i] = places++;
            int32_t* seat = scratch.take<int32_t>(slots_);
            for (const int64_t f : others_)
                for (int64_t k = t_.start[f]; k < t_.start[f + 1]; ++k) seat[k - slot_] = place_[t_.variable[k]];
            seat_ = seat;
            lanes_.load_all(t_, slot_, places, place_, consensus_, scores_, q_, price_, scratch);
        }
        places_ = places;
        width_ = (places + 2 + W - 1) / W * W;  // with the two variables beyond the last that lanes need
        for (double** values : {&p_, &sum_, &rest_, &by_, &free_, &base_, &weight_}) {
            *values = scratch.take<double>(width_);
            std::fill(*values, *values + width_, 0.0);
        }
    }

    // Sums of copies, which later steps keep up to date, and what prices leave of the scores; where variables are free.
    void add_up() {
        for (int64_t i = 0; i < width_; ++i) weight_[i] = 1;
        base_[places_ + 1] = p_[places_ + 1] = 1;
        for (int64_t i = 0; i < parts_; ++i) {
            const int32_t at = place_[i];
            if (at < 0) continue;
            p_[at] = consensus_[i];
            free_[at] = degree_[i] && fixed_[i] < 0;
            base_[at] = free_[at] ? 0 : degree_[i] ? alone(i, 0) : p_[at];
            if (degree_[i]) weight_[at] = degree_[i];
            rest_[at] = scores_[i];
        }
        for (int64_t k = 0; k < slots_; ++k) {
            const int32_t at = place_[t_.variable[slot_ + k]];
            if (at < 0) continue;
            sum_[at] += q_[k];
            rest_[at] -= price_[k];
        }
    }

    // One pass over the factors: the prices of the step before, then new copies. A factor whose copy agrees with a
    // consensus that stands still has nothing new to say.
    void step() {
        const double rho = report_->rho, inverse = 1 / rho;
        double own = 0, apart = lanes_.step(p_, sum_, rho, pending_, again_, own);
        for (const int64_t f : others_) {
            if (t_.kind[f] == FACTOR_OUTSIDE) continue;
            const int64_t from = t_.start[f] - slot_;
            const int size = static_cast<int>(t_.start[f + 1] - t_.start[f]);
            const int32_t* variable = seat_ + from;
            const uint8_t* negated = t_.negated + t_.start[f];
            double *q = q_ + from, *price = price_ + from;
            bool news = again_;
            for (int k = 0; k < size; ++k)
                news |= std::fabs(by_[variable[k]]) > kStill || std::fabs(q[k] - p_[variable[k]]) > kStill;
            if (!news) continue;
            for (int k = 0; k < size; ++k) {
                const int32_t i = variable[k];
                if (pending_) {
                    const double off = q[k] - p_[i];
                    apart += off * off;
                    price[k] -= rho * off;
                }
                const double v = p_[i] + price[k] * inverse;
                local_[k] = !negated[k] ? v : faces_ ? -v : 1 - v;
            }
            if (faces_) {
                for (int k = 0; k < size; ++k) point_[k] = negated[k] ? 1 - faces_[from + k] : faces_[from + k];
                Scratch scratch;
                project_onto_face(factor(f), point_, local_, scratch);
            } else {
                project_factor(factor(f), local_);
            }
            for (int k = 0; k < size; ++k) {
                const double found = !negated[k] ? local_[k] : faces_ ? -local_[k] : 1 - local_[k];
                sum_[variable[k]] += found - q[k];
                q[k] = found;
            }
        }
        again_ = false;
        if (pending_) report_->apart = std::sqrt(apart / slots_);
        const bool settled = pending_ && is_settled();
        move(own);
        pending_ = true;
        const int64_t done = static_cast<int64_t>(++report_->iterations);
        if (settled) finish();
        else if (settings_.judge == JUDGE_STEPS && done % settings_.look_every == 0) settle_prices(), judge();
        if (report_->status == FACTORS_GOING && done % settings_.adapt_every == 0) adapt();
    }

    // The consensus. What prices leave of a score is then what the quadratic term takes. `own` is how far variables moved
    // that are not among these.
    void move(double own) {
        using V = Lanes<double>;
        const double rho = report_->rho, w = settings_.quadratic;
        V change{};
        for (int64_t i = 0; i < width_; i += W) {
            const V weight = load(weight_ + i), free = load(free_ + i);
            const V next = load(base_ + i) + free * (load(rest_ + i) + rho * load(sum_ + i)) / (w + rho * weight);
            const V by = next - load(p_ + i);
            change += weight * by * by;
            store(by_ + i, by);
            store(p_ + i, next);
            store(rest_ + i, w * next);
        }
        report_->change = slots_ ? std::sqrt((total<double>(change) + own) / slots_) : 0;
    }

    // Brings all prices up to the last step, and shows the consensus.
    void settle_prices() {
        if (!pending_) return;
        const double rho = report_->rho;
        double apart = lanes_.settle(p_, rho);
        for (const int64_t f : others_) {
            for (int64_t k = t_.start[f] - slot_; k < t_.start[f + 1] - slot_; ++k) {
                const double off = q_[k] - p_[seat_[k]];
                apart += off * off;
                price_[k] -= rho * off;
            }
        }
        report_->apart = slots_ ? std::sqrt(apart / slots_) : 0;
        pending_ = false;
        for (int64_t i = 0; i < parts_; ++i)
            if (place_[i] >= 0) consensus_[i] = p_[place_[i]];
        lanes_.show_own(consensus_);
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
            for (int64_t i = 0; i < parts_; ++i) off = std::max(off, std::fabs(consensus_[i] - z_[i]));
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
        again_ = true;  // what a factor makes of its prices depends on rho
    }

    // What prices prove, and what rounding finds.
    void judge() {
        Scratch scratch;
        double bound = lanes_.bound(), floor = 0;
        for (const int64_t f : others_) {
            if (t_.kind[f] == FACTOR_OUTSIDE) continue;
            const int64_t from = t_.start[f] - slot_, size = t_.start[f + 1] - t_.start[f];
            for (int64_t k = 0; k < size; ++k) {
                const double price = price_[from + k];
                const bool negated = t_.negated[slot_ + from + k];
                local_[k] = negated ? -price : price;
                if (negated) bound += price;
            }
            bound += best_value(factor(f), local_, scratch);
        }
        const double w = settings_.quadratic;
        if (w > 0 || holds_any()) {  // what no price covers is worth something
            lanes_.scatter(q_, price_);
            std::copy(scores_, scores_ + parts_, total_);
            for (int64_t k = 0; k < slots_; ++k) total_[t_.variable[slot_ + k]] -= price_[k];
        }
        for (int64_t i = 0; i < parts_; ++i) {
            floor += std::min(0.0, scores_[i] - 0.5 * w);
            if (fixed_[i] > 0) bound += total_[i] - 0.5 * w;
            else if (fixed_[i] == 0) continue;
            else if (!degree_[i]) bound += (scores_[i] - 0.5 * w * consensus_[i]) * consensus_[i];
            else if (w > 0) bound += total_[i] * total_[i] / (2 * w);
        }
        report_->bound = std::min(report_->bound, bound + report_->outside);
        const double slack = 1e-9 * (1 + std::fabs(floor));
        if (report_->bound < floor - slack) {
            report_->status = FACTORS_INFEASIBLE;
            return;
        }
        if (w > 0) return;
        for (int64_t i = 0; i < parts_; ++i) total_[i] = consensus_[i] > 0.5;
        keep_if_better(total_);
        conclude();
    }

    void keep_if_better(double* z) {
        Rounding rounding{t_, first_, last_, fixed_, local_};
        if (rounding.has_outside()) return;  // structures are asked by whoever brings them
        rounding.derive(z);
        double value = 0;
        for (int64_t i = 0; i < parts_; ++i) value += z[i] * scores_[i];
        if (value > report_->value && rounding.holds(z, parts_)) {
            report_->value = value;
            std::copy(z, z + parts_, z_);
        }
    }

    void conclude() {
        if (report_->bound - report_->value <= settings_.gap) {
            report_->status = FACTORS_OPTIMAL;
            std::copy(z_, z_ + parts_, consensus_);
        } else if (report_->bound <= report_->cutoff) {
            report_->status = FACTORS_CUT;
        }
    }

    // What nobody is sure about is switched on, the best first, where that is a member.
    void try_more() {
        Rounding rounding{t_, first_, last_, fixed_, local_};
        if (report_->value == minus_infinity<double> || rounding.has_outside()) return;
        std::vector<int32_t> tried;
        for (int64_t i = 0; i < parts_; ++i)
            if (consensus_[i] > kSure && consensus_[i] < 1 - kSure && fixed_[i] < 0 && scores_[i] > 0 && degree_[i] > 0)
                tried.push_back(static_cast<int32_t>(i));
        std::stable_sort(tried.begin(), tried.end(), [&](int32_t a, int32_t b) { return scores_[a] > scores_[b]; });
        if (tried.size() > kTries) tried.resize(kTries);
        if (tried.empty()) return;
        const Neighbours neighbours(t_, first_, last_, parts_);
        for (const int32_t i : tried)
            if (z_[i] == 0) report_->value += rounding.switch_on(i, z_, scores_, neighbours);
    }

    bool holds_any() const { return std::any_of(fixed_, fixed_ + parts_, [](int8_t value) { return value > 0; }); }

    static constexpr double kStill = 1e-14;
    static constexpr double kSure = 1e-2;      // how far from 0 and 1 a variable counts as undecided
    static constexpr size_t kTries = 64;       // how many of them are tried
    static constexpr int64_t kWorthwhile = 4;  // so few steps do not pay for putting factors side by side
    static constexpr int W = lane_count<double>;

    const FactorTables& t_;
    const FactorSettings& settings_;
    int64_t parts_, first_, last_, slot_, slots_, places_ = 0, width_ = 0;
    const double* scores_;
    const int8_t* fixed_;
    double *consensus_, *z_, *q_, *price_;
    const double* faces_;
    FactorReport* report_;
    FactorLanes lanes_;
    std::vector<int64_t> others_;  // factors that lanes do not take
    int32_t *degree_, *place_;
    const int32_t* seat_;  // the places of the entries of other factors
    double *p_, *sum_, *rest_, *by_, *free_, *base_, *weight_, *total_, *local_, *point_;
    bool patient_ = false;
    bool pending_ = false;  // whether prices lag behind the last step
    bool again_ = true;     // whether all factors are asked anew
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
