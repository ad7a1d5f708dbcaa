// The search for the projection of one sentence: trees, their weights and the point they make.
//
// A set of hundreds of trees, as a flat point needs, is costly to settle, so that several trees join it at once: four
// for every 240 that it has. Between the first of them and the last the search looks ahead to the point that the new
// trees and the present point could make, which is cheap, and asks the oracle from there.
#pragma once

#include "factor.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

class HullSearch {
public:
    int64_t sentence = -1;
    int length = 0;
    double gap = 0;
    int trees() const { return count_; }
    const double* weights() { return weights_.data(); }
    const int32_t* heads(int tree) { return heads_.data() + int64_t{tree} * size_; }

    // Takes the point, compacted to (size, size) with -inf where there is no arc.
    void begin(int64_t b, int words, const double* point, double tolerance) {
        sentence = b;
        length = words;
        size_ = words + 1;
        const int64_t area = int64_t{size_} * size_;
        target_.reserve(area);
        mu_.reserve(area);
        ahead_.reserve(area);
        listed_.reserve(area);
        touched_.reserve(area);
        touched_heads_.reserve(area);
        touched_count_ = count_ = fresh_ = 0;
        removals_ = 0;
        gap = 0;
        for (int64_t i = 0; i < area; ++i) mu_[i] = ahead_[i] = 0, listed_[i] = 0;
        tolerance_ = tolerance;
        for (int m = 0; m < size_; ++m) {  // a tree has one head for each word: a shift of a column changes nothing
            double top = minus_infinity<double>;
            for (int h = 0; h < size_; ++h) top = larger(top, point[h * size_ + m]);
            for (int h = 0; h < size_; ++h)
                target_[h * size_ + m] =
                    top > minus_infinity<double> ? point[h * size_ + m] - top : minus_infinity<double>;
        }
        factor_.clear();
    }

    // What the oracle should decode next.
    double residual(int64_t arc) { return target_[arc] - ahead_[arc]; }
    double residual(int h, int m) { return residual(h * size_ + m); }
    double target(int64_t arc) { return target_[arc]; }
    int touched() const { return touched_count_; }
    int touched_arc(int i) { return touched_[i]; }
    int touched_head(int i) { return touched_heads_[i]; }

    // Takes the oracle's tree; false when the search is over.
    bool step(const int32_t* rival) {
        if (!count_) return begin_with(rival);
        double gain = 0;
        for (int m = 1; m <= length; ++m) gain += residual(rival[m], m);
        double now[4] = {}, scale = 1e-3;  // of the arcs with mass: what the others are does not touch the answer
        for (int i = 0; i < touched_count_; ++i) {
            const int arc = touched_[i];
            now[i & 3] += ahead_[arc] * residual(arc);
            if (mu_[arc] > 0) scale = larger(scale, -target_[arc]);
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
        if (!fresh_) return false;  // done, or the tree was there already: rounding is all that is left
        settle();
        return true;
    }

    template <class T>
    void write(const int32_t* at, int64_t n, T* to) {
        std::memset(to, 0, sizeof(T) * n * n);
        for (int i = 0; i < touched_count_; ++i) {
            const int arc = touched_[i], head = touched_heads_[i];
            to[at[head] * n + at[arc - head * size_]] = static_cast<T>(mu_[arc]);
        }
    }

private:
    int shared(const int32_t* a, const int32_t* b) const {
        int same = 0;
        for (int m = 1; m <= length; ++m) same += a[m] == b[m];
        return same;
    }

    // Whether a tree is there already. Its products with the others, plus one, are left for the factor.
    bool known(const int32_t* rival) {
        common_.reserve(count_ + fresh_ + 1);
        for (int t = 0; t < count_ + fresh_; ++t) {
            const int same = shared(heads(t), rival);
            if (same == length) return true;
            common_[t] = same + 1.0;
        }
        return false;
    }

    // Puts a tree that is not known among the fresh ones, which follow the settled ones.
    void admit(const int32_t* rival) {
        const int place = count_ + fresh_++;
        heads_.reserve(int64_t{place + 1} * size_);
        weights_.reserve(place + 1);
        for (int m = 1; m <= length; ++m) {
            const int arc = rival[m] * size_ + m;
            if (listed_[arc]) continue;
            listed_[arc] = 1;
            touched_[touched_count_] = arc;
            touched_heads_[touched_count_++] = rival[m];
        }
        std::memcpy(heads_.data() + int64_t{place} * size_, rival, sizeof(int32_t) * size_);
        weights_[place] = 0;
        factor_.make_room(fresh_);
        if (place) std::memcpy(factor_.joining(fresh_ - 1), common_.data(), sizeof(double) * place);
    }

    bool begin_with(const int32_t* rival) {
        admit(rival);
        bool joined;
        factor_.join(1, length + 1.0, &joined);
        weights_[0] = 1;
        count_ = 1, fresh_ = 0;
        mix();
        return true;
    }

    double worth(int tree, const double* dense) {
        const int32_t* of = heads(tree);
        double sum = 0;
        for (int m = 1; m <= length; ++m) sum += dense[of[m] * size_ + m];
        return sum;
    }

    // Moves `ahead` to the point nearest to the target on the plane through the present point and the fresh trees.
    void look_ahead() {
        const int last = fresh_ - 1;
        if (!last) {
            norm_ = along_ = 0;
            for (int i = 0; i < touched_count_; ++i) {
                const int arc = touched_[i];
                norm_ += mu_[arc] * mu_[arc];
                along_ += mu_[arc] * (target_[arc] - mu_[arc]);
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
        plane_.join(1, length - 2 * mass + norm_, &joined);
        if (!joined) return settle();
        for (int i = 0; i < fresh_; ++i) ahead_weights_[i] = fresh_gain_[i];
        plane_.aim(ahead_weights_.data());
        std::memcpy(ahead_weights_.data(), plane_.goal(), sizeof(double) * fresh_);
        plane_.solve_transposed(ahead_weights_.data());
        double sum = 0;
        for (int i = 0; i < fresh_; ++i) sum += ahead_weights_[i];
        for (int i = 0; i < touched_count_; ++i) ahead_[touched_[i]] = (1 - sum) * mu_[touched_[i]];
        for (int i = 0; i < fresh_; ++i) {
            const int32_t* tree = heads(count_ + i);
            for (int m = 1; m <= length; ++m) ahead_[tree[m] * size_ + m] += ahead_weights_[i];
        }
    }

    // Lets the fresh trees in.
    void settle() {
        joined_.reserve(fresh_);
        factor_.join(fresh_, length + 1.0, joined_.data());
        const int before = count_;
        for (int i = 0, place = before; i < fresh_; ++i) {
            if (!joined_[i]) continue;
            if (place != before + i)
                std::memcpy(heads_.data() + int64_t{place} * size_, heads(before + i), sizeof(int32_t) * size_);
            ++place;
        }
        count_ = factor_.order();
        fresh_ = 0;
        step_.reserve(count_);
        aim(before);
        move();
    }

    // What each tree is worth to the residual, for the factor to solve with. The trees that were there before are worth
    // the same, but for rounding, and only the differences count.
    void aim(int before) {
        double mean = 0, uneven = 0, most = 0;
        for (int t = 0; t < count_; ++t) {
            const int32_t* tree = heads(t);
            double sum = 0;
            for (int m = 1; m <= length; ++m) sum += target_[tree[m] * size_ + m] - mu_[tree[m] * size_ + m];
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

    // Moves the weights to the nearest point of the affine hull, dropping trees on the way while any would turn
    // negative. The step is solved for, not the weights themselves: it is small where the point is far away, and keeps
    // its digits. After a part of a step the rest of it is left to go, so that the aim only shrinks.
    void move() {
        while (true) {
            factor_.solve_balanced(step_.data());
            double room = 1;
            int leaves = -1, idle = 0;
            for (int t = 0; t < count_; ++t) {
                if (weights_[t] + step_[t] > 1e-14) continue;
                if (weights_[t] == 0) {  // a fresh tree that the others make needless
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

    // The point that the weights make of the trees.
    void mix() {
        for (int i = 0; i < touched_count_; ++i) mu_[touched_[i]] = 0;
        for (int t = 0; t < count_; ++t) {
            const int32_t* tree = heads(t);
            for (int m = 1; m <= length; ++m) mu_[tree[m] * size_ + m] += weights_[t];
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
        std::memmove(heads_.data() + int64_t{gone} * size_, heads_.data() + int64_t{gone + 1} * size_,
                     sizeof(int32_t) * size_ * (count_ - gone));
    }

    void refactor() {
        factor_.clear();
        removals_ = 0;
        for (int t = 0; t < count_; ++t) {
            factor_.make_room(1);
            for (int u = 0; u < t; ++u) factor_.joining(0)[u] = shared(heads(t), heads(u)) + 1.0;
            bool joined;
            factor_.join(1, length + 1.0, &joined);
            if (!joined) forget(t--);  // it has come to depend on the others
        }
    }

    int size_ = 0, count_ = 0, fresh_ = 0, touched_count_ = 0, removals_ = 0;
    double tolerance_ = 0, norm_ = 0, along_ = 0;
    Growable<double> target_, mu_, ahead_, weights_, step_, common_, fresh_mass_, fresh_gain_, ahead_weights_;
    Growable<int32_t> heads_, touched_, touched_heads_;
    Growable<uint8_t> listed_;
    Growable<bool> joined_;
    Factor factor_, plane_;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
