// The search for the projection of one instance onto a hull: members, their weights and the point they make. The file
// active_set.py has the mathematics.
//
// All members have equally many parts, one of each kind: trees a head for each word, chains a state for each position
// and a transition for each step. So a member is a list of parts, one for each kind, and two of them share a number.
//
// A set of hundreds of members, as a flat point needs, is costly to settle, so that several join it at once: four for
// every 240 that it has. Between the first of them and the last the search looks ahead to the point that the new
// members and the present point could make, which is cheap, and asks the oracle from there.
#pragma once

#include "factor.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

class HullSearch {
public:
    int64_t instance = -1;
    int members() const { return count_; }
    int kinds() const { return kinds_; }
    double gap = 0;
    const double* weights() { return weights_.data(); }
    const int32_t* member(int which) { return members_.data() + int64_t{which} * kinds_; }

    // Begins with an instance whose members have `kinds` of `parts` parts. Returns where to write the point: -inf where
    // there is no part, and otherwise less the largest of its kind, which changes nothing as members have one of each.
    double* begin(int64_t b, int kinds, int64_t parts, double tolerance) {
        instance = b;
        kinds_ = kinds;
        target_.reserve(parts);
        mu_.reserve(parts);
        ahead_.reserve(parts);
        listed_.reserve(parts);
        touched_.reserve(parts);
        touched_count_ = count_ = fresh_ = 0;
        removals_ = 0;
        gap = 0;
        for (int64_t i = 0; i < parts; ++i) mu_[i] = ahead_[i] = 0, listed_[i] = 0;
        tolerance_ = tolerance;
        factor_.clear();
        return target_.data();
    }

    // What the oracle should decode next; only the parts that members touch change from one time to the next.
    double residual(int64_t part) { return target_[part] - ahead_[part]; }
    const double* target() { return target_.data(); }
    int touched() const { return touched_count_; }
    int touched(int i) { return touched_[i]; }
    double value(int64_t part) { return mu_[part]; }

    // Takes the oracle's member; false when the search is over.
    bool step(const int32_t* rival) {
        if (!count_) return begin_with(rival);
        double gain = 0;
        for (int k = 0; k < kinds_; ++k) gain += residual(rival[k]);
        double now[4] = {}, scale = 1e-3;  // of the parts with mass: what the others are does not touch the answer
        for (int i = 0; i < touched_count_; ++i) {
            const int part = touched_[i];
            now[i & 3] += ahead_[part] * residual(part);
            if (mu_[part] > 0) scale = larger(scale, -target_[part]);
        }
        gain -= now[0] + now[1] + (now[2] + now[3]);
        if (!fresh_) gap = gain > 0 ? gain : 0;
        const bool done = gain <= tolerance_ * scale;
        if (!done && !known(rival)) {
            admit(rival);
            if (fresh_ < (count_ < 80 ? 1 : 4 * (count_ / 240 + 1))) look_ahead();
            else settle();
            return true;
        }
        if (!fresh_) return false;  // done, or it was there already: rounding is all that is left
        settle();
        return true;
    }

private:
    int shared(const int32_t* a, const int32_t* b) const {
        int same = 0;
        for (int k = 0; k < kinds_; ++k) same += a[k] == b[k];
        return same;
    }

    // Whether a member is there already. Its products with the others, plus one, are left for the factor.
    bool known(const int32_t* rival) {
        common_.reserve(count_ + fresh_ + 1);
        for (int t = 0; t < count_ + fresh_; ++t) {
            const int same = shared(member(t), rival);
            if (same == kinds_) return true;
            common_[t] = same + 1.0;
        }
        return false;
    }

    // Puts a member that is not known among the fresh ones, which follow the settled ones.
    void admit(const int32_t* rival) {
        const int place = count_ + fresh_++;
        members_.reserve(int64_t{place + 1} * kinds_);
        weights_.reserve(place + 1);
        for (int k = 0; k < kinds_; ++k) {
            if (listed_[rival[k]]) continue;
            listed_[rival[k]] = 1;
            touched_[touched_count_++] = rival[k];
        }
        std::memcpy(members_.data() + int64_t{place} * kinds_, rival, sizeof(int32_t) * kinds_);
        weights_[place] = 0;
        factor_.make_room(fresh_);
        if (place) std::memcpy(factor_.joining(fresh_ - 1), common_.data(), sizeof(double) * place);
    }

    bool begin_with(const int32_t* rival) {
        admit(rival);
        bool joined;
        factor_.join(1, kinds_ + 1.0, &joined);
        weights_[0] = 1;
        count_ = 1, fresh_ = 0;
        mix();
        return true;
    }

    double worth(int which, const double* dense) {
        const int32_t* parts = member(which);
        double sum = 0;
        for (int k = 0; k < kinds_; ++k) sum += dense[parts[k]];
        return sum;
    }

    // Moves `ahead` to the point nearest to the target on the plane through the present point and the fresh members.
    void look_ahead() {
        const int last = fresh_ - 1;
        if (!last) {
            norm_ = along_ = 0;
            for (int i = 0; i < touched_count_; ++i) {
                const int part = touched_[i];
                norm_ += mu_[part] * mu_[part];
                along_ += mu_[part] * (target_[part] - mu_[part]);
            }
            plane_.clear();
        }
        fresh_mass_.reserve(fresh_);
        fresh_gain_.reserve(fresh_);
        ahead_weights_.reserve(fresh_);
        const double mass = worth(count_ + last, mu_.data());
        fresh_mass_[last] = mass;
        fresh_gain_[last] = worth(count_ + last, target_.data()) - mass - along_;
        plane_.make_room(1);
        double* row = plane_.joining(0);
        for (int i = 0; i < last; ++i) row[i] = common_[count_ + i] - 1 - fresh_mass_[i] - mass + norm_;
        bool joined;
        plane_.join(1, kinds_ - 2 * mass + norm_, &joined);
        if (!joined) return settle();
        for (int i = 0; i < fresh_; ++i) ahead_weights_[i] = fresh_gain_[i];
        plane_.aim(ahead_weights_.data());
        std::memcpy(ahead_weights_.data(), plane_.goal(), sizeof(double) * fresh_);
        plane_.solve_transposed(ahead_weights_.data());
        double sum = 0;
        for (int i = 0; i < fresh_; ++i) sum += ahead_weights_[i];
        for (int i = 0; i < touched_count_; ++i) ahead_[touched_[i]] = (1 - sum) * mu_[touched_[i]];
        for (int i = 0; i < fresh_; ++i) {
            const int32_t* parts = member(count_ + i);
            for (int k = 0; k < kinds_; ++k) ahead_[parts[k]] += ahead_weights_[i];
        }
    }

    // Lets the fresh members in.
    void settle() {
        joined_.reserve(fresh_);
        factor_.join(fresh_, kinds_ + 1.0, joined_.data());
        const int before = count_;
        for (int i = 0, place = before; i < fresh_; ++i) {
            if (!joined_[i]) continue;
            if (place != before + i)
                std::memcpy(members_.data() + int64_t{place} * kinds_, member(before + i), sizeof(int32_t) * kinds_);
            ++place;
        }
        count_ = factor_.order();
        fresh_ = 0;
        step_.reserve(count_);
        aim(before);
        move();
    }

    // What each member is worth to the residual, for the factor to solve with. Those that were there before are worth
    // the same, but for rounding, and only the differences count.
    void aim(int before) {
        double mean = 0, uneven = 0, most = 0;
        for (int t = 0; t < count_; ++t) {
            const int32_t* parts = member(t);
            double sum = 0;
            for (int k = 0; k < kinds_; ++k) sum += target_[parts[k]] - mu_[parts[k]];
            step_[t] = sum;
            if (t < before) mean += sum / before;
        }
        for (int t = 0; t < count_; ++t) {
            step_[t] -= mean;
            double& largest = t < before ? uneven : most;
            largest = larger(largest, std::fabs(step_[t]));
        }
        if (uneven <= 1e-6 * most) factor_.aim(step_.data(), before);
        else factor_.aim(step_.data());
    }

    // Moves the weights to the nearest point of the affine hull, dropping members on the way while any would turn
    // negative. The step is solved for, not the weights themselves: it is small where the point is far away, and keeps
    // its digits. After a part of a step the rest of it is left to go, so that the aim only shrinks.
    void move() {
        while (true) {
            factor_.solve_balanced(step_.data());
            double room = 1;
            int leaves = -1, idle = 0;
            for (int t = 0; t < count_; ++t) {
                if (weights_[t] + step_[t] > 1e-14) continue;
                if (weights_[t] == 0) {  // a fresh one that the others make needless
                    ++idle;
                    continue;
                }
                const double here = step_[t] < 0 ? weights_[t] / -step_[t] : 0;
                if (leaves < 0 || here < room) room = here, leaves = t;
            }
            if (idle && idle < count_) {
                for (int t = count_ - 1; t >= 0; --t)
                    if (weights_[t] == 0 && !(step_[t] > 1e-14)) drop(t);
                continue;
            }
            if (room > 1) room = 1;
            double sum = 0;
            for (int t = 0; t < count_; ++t) {
                weights_[t] += room * step_[t];
                if (weights_[t] < 0 || t == leaves) weights_[t] = 0;
                sum += weights_[t];
            }
            for (int t = 0; t < count_; ++t) weights_[t] /= sum;
            if (leaves < 0 || count_ == 1) break;
            for (int t = 0; t < count_; ++t) factor_.goal()[t] *= 1 - room;
            drop(leaves);
            if (removals_ >= 64 && removals_ >= count_) {  // rotations let rounding errors grow
                mix();
                refactor();
                aim(count_);
            }
        }
        mix();
    }

    // The point that the weights make of the members.
    void mix() {
        for (int i = 0; i < touched_count_; ++i) mu_[touched_[i]] = 0;
        for (int t = 0; t < count_; ++t) {
            const int32_t* parts = member(t);
            for (int k = 0; k < kinds_; ++k) mu_[parts[k]] += weights_[t];
        }
        for (int i = 0; i < touched_count_; ++i) ahead_[touched_[i]] = mu_[touched_[i]];
    }

    void drop(int gone) {
        forget(gone);
        factor_.remove(gone);
        ++removals_;
    }

    void forget(int gone) {
        --count_;
        std::memmove(&weights_[gone], &weights_[gone + 1], sizeof(double) * (count_ - gone));
        std::memmove(&step_[gone], &step_[gone + 1], sizeof(double) * (count_ - gone));
        std::memmove(members_.data() + int64_t{gone} * kinds_, members_.data() + int64_t{gone + 1} * kinds_,
                     sizeof(int32_t) * kinds_ * (count_ - gone));
    }

    void refactor() {
        factor_.clear();
        removals_ = 0;
        for (int t = 0; t < count_; ++t) {
            factor_.make_room(1);
            for (int u = 0; u < t; ++u) factor_.joining(0)[u] = shared(member(t), member(u)) + 1.0;
            bool joined;
            factor_.join(1, kinds_ + 1.0, &joined);
            if (!joined) forget(t--);  // it has come to depend on the others
        }
    }

    int kinds_ = 0, count_ = 0, fresh_ = 0, touched_count_ = 0, removals_ = 0;
    double tolerance_ = 0, norm_ = 0, along_ = 0;
    Growable<double> target_, mu_, ahead_, weights_, step_, common_, fresh_mass_, fresh_gain_, ahead_weights_;
    Growable<int32_t> members_, touched_;
    Growable<uint8_t> listed_;
    Growable<bool> joined_;
    Factor factor_, plane_;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
