// Alternating directions on factor graphs (AD3): every factor keeps a copy of its variables, projects it onto its own
// polytope, and prices make the copies agree.
//
// Maximises s . p - w/2 ||p||^2 over the local polytope: w = 0 is the linear program, w = 1 the projection of s.
#pragma once

#include <cstring>
#include <vector>

#include "factors/factor_lanes.hpp"
#include "factors/factors.hpp"
#include "factors/rounding.hpp"
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
        const int64_t longest = longest_factor(t_, first_, last_);
        local_ = scratch.take<double>(longest);
        point_ = scratch.take<double>(longest);
        std::memset(degree_, 0, sizeof(int32_t) * parts_);
        for (int64_t k = 0; k < slots_; ++k) ++degree_[t_.variable[slot_ + k]];
        if (report_->iterations == 0) begin();
        take_places(scratch);
        if (settings_.judge != JUDGE_NEVER) prepare_to_judge(scratch);
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
    void begin() {
        for (int64_t i = 0; i < parts_; ++i) {
            consensus_[i] = alone(i, faces_ ? 0 : 0.5);
            // Each factor gets its share of the score; of the pull of the quadratic term nothing is known yet.
            total_[i] = settings_.quadratic > 0 ? 0 : scores_[i] / std::max(degree_[i], 1);
        }
        for (int64_t k = 0; k < slots_; ++k) price_[k] = total_[t_.variable[slot_ + k]];
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
        still_.resize(others_.size());
        places_ = places;
        width_ = (places + 2 + W - 1) / W * W;  // with the two variables beyond the last that lanes need
        for (double** values : {&p_, &sum_, &rest_, &free_, &base_, &weight_, &share_}) {
            *values = scratch.take<double>(width_);
            std::fill(*values + places_, *values + width_, 0.0);
        }
    }

    // Sums of copies, which later steps keep up to date, and what prices leave of the scores; where variables are free.
    void add_up() {
        std::fill(sum_, sum_ + width_, 0.0);
        std::fill(weight_ + places_, weight_ + width_, 1.0);
        base_[places_ + 1] = p_[places_ + 1] = 1;
        for (int64_t i = 0; i < parts_; ++i) {
            const int32_t at = place_[i];
            if (at < 0) continue;
            p_[at] = consensus_[i];
            free_[at] = degree_[i] && fixed_[i] < 0;
            base_[at] = free_[at] ? 0 : degree_[i] ? alone(i, 0) : p_[at];
            weight_[at] = std::max(degree_[i], 1);
            rest_[at] = scores_[i];
        }
        for (int64_t k = 0; k < slots_; ++k) {
            const int32_t at = place_[t_.variable[slot_ + k]];
            if (at < 0) continue;
            sum_[at] += q_[k];
            rest_[at] -= price_[k];
        }
        share_out();
    }

    // How much of what copies and prices add up to is a variable's value; nothing where it is not free.
    void share_out() {
        for (int64_t i = 0; i < width_; ++i) share_[i] = free_[i] / (settings_.quadratic + report_->rho * weight_[i]);
    }

    // One pass over the factors: the prices of the step before, then new copies. A factor whose copy agrees with a
    // consensus that stands still has nothing new to say.
    void step() {
        const double rho = report_->rho, inverse = 1 / rho;
        double own = 0, apart = lanes_.step(p_, sum_, rho, pending_, again_, own);
        for (size_t o = 0; o < others_.size(); ++o) {
            const int64_t f = others_[o];
            if (t_.kind[f] == FACTOR_OUTSIDE) continue;
            const int64_t from = t_.start[f] - slot_;
            const int size = static_cast<int>(t_.start[f + 1] - t_.start[f]);
            const int32_t* variable = seat_ + from;
            const uint8_t* negated = t_.negated + t_.start[f];
            double *q = q_ + from, *price = price_ + from;
            bool news = again_ || !still_[o];
            for (int k = 0; k < size; ++k) news |= std::fabs(q[k] - p_[variable[k]]) > kStill;
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
                project_onto_face(factor_of(t_, f), point_, local_, scratch);
            } else {
                project_factor(factor_of(t_, f), local_);
            }
            double far = 0;
            for (int k = 0; k < size; ++k) {
                const double found = !negated[k] ? local_[k] : faces_ ? -local_[k] : 1 - local_[k];
                sum_[variable[k]] += found - q[k];
                q[k] = found;
                far = std::max(far, std::fabs(found - p_[variable[k]]));
            }
            still_[o] = far <= kStill;
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
        const double *base = base_, *share = share_, *sum = sum_, *weight = weight_;
        double *p = p_, *rest = rest_;
        const bool pulls = w > 0 || !moved_;  // otherwise prices leave nothing of the scores
        V change{};
        moved_ = true;
        for (int64_t i = 0, width = width_; i < width; i += W) {
            V all = rho * load(sum + i);
            if (pulls) all += load(rest + i);
            const V next = load(base + i) + load(share + i) * all, by = next - load(p + i);
            change += load(weight + i) * by * by;
            store(p + i, next);
            if (w > 0) store(rest + i, w * next);
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
        share_out();
        again_ = true;  // what a factor makes of its prices depends on rho
    }

    // What prices prove, and what rounding finds.
    void judge() {
        Scratch scratch;
        double bound = lanes_.bound();
        for (const int64_t f : others_) {
            if (t_.kind[f] == FACTOR_OUTSIDE) continue;
            const int64_t from = t_.start[f] - slot_, size = t_.start[f + 1] - t_.start[f];
            for (int64_t k = 0; k < size; ++k) {
                const double price = price_[from + k];
                const bool negated = t_.negated[slot_ + from + k];
                local_[k] = negated ? -price : price;
                if (negated) bound += price;
            }
            bound += best_value(factor_of(t_, f), local_, scratch);
        }
        const double w = settings_.quadratic;
        if (w > 0 || holds_any()) {  // what no price covers is worth something
            lanes_.scatter(q_, price_);
            std::copy(scores_, scores_ + parts_, total_);
            for (int64_t k = 0; k < slots_; ++k) total_[t_.variable[slot_ + k]] -= price_[k];
        }
        for (int64_t i = 0; i < parts_ && !covered_; ++i) {
            if (fixed_[i] < 0 && degree_[i] && w == 0) continue;
            if (fixed_[i] > 0) bound += total_[i] - 0.5 * w;
            else if (fixed_[i] == 0) continue;
            else if (!degree_[i]) bound += (scores_[i] - 0.5 * w * consensus_[i]) * consensus_[i];
            else bound += total_[i] * total_[i] / (2 * w);
        }
        report_->bound = std::min(report_->bound, bound + report_->outside);
        const double slack = 1e-9 * (1 + std::fabs(floor_));
        if (report_->bound < floor_ - slack) {
            report_->status = FACTORS_INFEASIBLE;
            return;
        }
        if (w > 0) return;
        round();
        conclude();
    }

    // What judgements have in common.
    void prepare_to_judge(Scratch& scratch) {
        const double w = settings_.quadratic;
        covered_ = w == 0;
        for (int64_t i = 0; i < parts_; ++i) {
            floor_ += std::min(0.0, scores_[i] - 0.5 * w);
            covered_ &= degree_[i] && fixed_[i] < 0;
        }
        rounded_ = scratch.take<uint8_t>(parts_);
        depth_ = Rounding{t_, first_, last_, fixed_, local_}.depth(parts_);
    }

    // Keeps what is nearest to the consensus if it is a better member.
    void round() {
        Rounding rounding{t_, first_, last_, fixed_, local_};
        if (rounding.has_outside()) return;  // structures are asked by whoever brings them
        for (int64_t i = 0; i < parts_; ++i) rounded_[i] = consensus_[i] > 0.5;
        rounding.derive(rounded_, depth_);
        for (int64_t i = 0; i < parts_; ++i) total_[i] = rounded_[i];
        const double value = sum_of_products(total_, scores_, parts_);
        if (value > report_->value && rounding.holds(rounded_, parts_)) {
            report_->value = value;
            std::copy(total_, total_ + parts_, z_);
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
        const Rounding rounding{t_, first_, last_, fixed_, local_};
        if (report_->value == minus_infinity<double> || rounding.has_outside()) return;
        for (int64_t i = 0; i < parts_; ++i) rounded_[i] = z_[i] != 0;
        report_->value += rounding.switch_on_more(consensus_, scores_, parts_, rounded_);
        std::copy(rounded_, rounded_ + parts_, z_);
    }

    bool holds_any() const { return std::any_of(fixed_, fixed_ + parts_, [](int8_t value) { return value > 0; }); }

    static constexpr double kStill = 1e-14;
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
    std::vector<uint8_t> still_;   // of each of them, whether its last copy was the consensus
    int32_t *degree_, *place_;
    const int32_t* seat_;  // the places of the entries of other factors
    double *p_, *sum_, *rest_, *free_, *base_, *weight_, *share_, *total_, *local_, *point_;
    uint8_t* rounded_ = nullptr;  // a member, or nearly
    int depth_ = 1;               // how far outputs follow from each other
    double floor_ = 0;            // no member is worse
    bool covered_ = false;        // whether prices cover all that is worth something
    bool patient_ = false;
    bool moved_ = false;    // whether a step was taken
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

}  // namespace SPIGOT_ARCH
}  // namespace spigot
