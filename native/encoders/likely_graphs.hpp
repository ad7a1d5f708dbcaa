// Semantic graphs by how likely their labelled arcs are, for reading only: all roles that pairs of words may have are
// scored by products of whole numbers, summed out and weighed on the spot, and nothing is written but the role of each arc.
#pragma once

#include "encoders/activations.hpp"
#include "encoders/best_products.hpp"
#include "graphs.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

inline double softplus(double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }

inline double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// Which roles each pair of words of a sentence may have, as bits, and the words that are in any such pair.
struct PossibleRoles {
    int64_t count;              // positions, the root included
    uint64_t* bits;             // (dependents, heads)
    int64_t *heads, *dependents;  // those that may have some role
    int64_t head_count = 0, dependent_count = 0;

    PossibleRoles(const LikelyGraphs& given, int64_t sentence, Scratch& scratch) : count(given.lengths[sentence]) {
        const int64_t* tags = given.tags + sentence * given.n;
        bits = scratch.take<uint64_t>(count * count);
        heads = scratch.take<int64_t>(count);
        dependents = scratch.take<int64_t>(count);
        uint64_t* any = scratch.take<uint64_t>(count);
        std::fill_n(any, count, uint64_t(0));
        for (int64_t j = 0; j < count; ++j) {
            uint64_t some = 0;
            for (int64_t i = 0; i < count; ++i) {
                const int64_t pair = tags[i] * given.tag_count + tags[j];
                const int64_t* reach = given.reach + (j > i ? given.tag_count * given.tag_count : 0);
                const bool near = j > 0 && i != j && std::abs(j - i) <= reach[pair];
                const uint64_t here = near ? static_cast<uint64_t>(given.possible[pair]) : 0;
                bits[j * count + i] = here;
                any[i] |= here;
                some |= here;
            }
            if (some) dependents[dependent_count++] = j;
        }
        for (int64_t i = 0; i < count; ++i)
            if (any[i]) heads[head_count++] = i;
    }
    uint64_t of(int64_t head, int64_t dependent) const { return bits[dependent * count + head]; }
};

// Log scores of the roles of one dependent for several heads, a row for each role; -inf for roles that cannot be.
class RoleScores {
public:
    float *most, *sum;  // for each head the best of them, and the sum of exp(score - best) over all
    int32_t* best;      // which it is; -1 if there is none

    RoleScores(const HeadPanels& heads, int64_t labels, Scratch& scratch)
        : heads_(heads), labels_(labels), padded_(heads.vectors * unit_lanes) {
        scores_ = scratch.take<float>(labels * padded_);
        most = scratch.take<float>(padded_);
        sum = scratch.take<float>(padded_);
        best = scratch.take<int32_t>(padded_);
        words_[0] = scratch.take<int32_t>(padded_);
        words_[1] = scratch.take<int32_t>(padded_);
    }
    // `possible(c)` are the roles of the c-th of `count` heads, as bits.
    template <class Possible>
    void fill(const LabelRows& rows, int64_t count, Possible&& possible) {
        for (int64_t c = 0; c < padded_; ++c) {
            const uint64_t bits = c < count ? possible(c) : 0;
            words_[0][c] = static_cast<int32_t>(bits);
            words_[1][c] = static_cast<int32_t>(bits >> 32);
        }
        for_each_panel(heads_, [&](auto vectors, const int16_t* panel, int64_t at) {
            fill_panel<decltype(vectors)::value>(rows, panel, at);
        });
    }
    float share(int64_t label, int64_t c) const {  // of a role among those of a head that has some
        return std::exp(scores_[label * padded_ + c] - most[c]) / sum[c];
    }

private:
    template <int Vectors>
    void fill_panel(const LabelRows& rows, const int16_t* panel, int64_t at) {
        Lanes<float> top[Vectors], sums[Vectors];
        Sums place[Vectors];
        for (int v = 0; v < Vectors; ++v) top[v] = spread(minus_infinity<float>), sums[v] = Lanes<float>{}, place[v] = Sums{} - 1;
        score_panel<Vectors>(rows, panel, heads_.worth + at, [&](int64_t label, int v, Lanes<float> score) {
            Sums word;
            std::memcpy(&word, words_[label / 32] + at + v * unit_lanes, sizeof word);
            const Sums may = -((word >> int(label % 32)) & 1);
            score = may ? score : spread(minus_infinity<float>);
            store(scores_ + label * padded_ + at + v * unit_lanes, score);
            const Sums better = (Sums)(score > top[v]);
            top[v] = better ? score : top[v];
            place[v] = better ? Sums{} + int32_t(label) : place[v];
        });
        for (int64_t label = 0; label < labels_; ++label)
            for (int v = 0; v < Vectors; ++v) {
                const Lanes<float> score = load(scores_ + label * padded_ + at + v * unit_lanes);
                // Where there is no role at all both are -inf, and what comes of it is not looked at.
                sums[v] += score > minus_infinity<float> ? exp_between(score - top[v]) : Lanes<float>{};
            }
        for (int v = 0; v < Vectors; ++v) {
            store(most + at + v * unit_lanes, top[v]);
            store(sum + at + v * unit_lanes, sums[v]);
            std::memcpy(best + at + v * unit_lanes, &place[v], sizeof place[v]);
        }
    }
    const HeadPanels& heads_;
    const int64_t labels_, padded_;
    float* scores_;
    int32_t* words_[2];
};

// The roles of the arcs of one sentence. With a_ij an arc with its roles summed out, a role is as likely as
// sigma(s_i + sum_k softplus(a_ik)) sigma(a_ij) times its share, and worth that less the threshold.
class LikelyGraph {
public:
    LikelyGraph(const LikelyGraphs& given, int64_t sentence, Scratch& scratch)
        : given_(given), sentence_(sentence), scratch_(scratch), possible_(given, sentence, scratch),
          turned_(turning_panels(given.weight, given.scale, given.bias, given.width, given.labels), given.width,
                  given.labels, scratch) {
        const int64_t pairs = possible_.head_count * possible_.dependent_count;
        value_ = scratch.take<float>(pairs);
        share_ = scratch.take<float>(pairs);
        best_ = scratch.take<int32_t>(pairs);
    }
    void find(int32_t* roles) {
        if (!possible_.dependent_count) return;
        sum_out();
        for (int64_t c = 0; c < possible_.head_count; ++c) choose(c, roles + possible_.heads[c] * given_.n);
    }

private:
    const float* head(int64_t i) const { return given_.heads + (sentence_ * given_.n + i) * given_.width; }
    const float* dependent(int64_t j) const { return given_.dependents + (sentence_ * given_.n + j) * given_.width; }

    // What each arc is worth whatever its role, its best role, and the share of that.
    void sum_out() {
        const int64_t dependents = possible_.dependent_count, count = possible_.head_count;
        const HeadPanels heads([&](int64_t c) { return head(possible_.heads[c]); }, count, given_.width, scratch_);
        RoleScores scores(heads, given_.labels, scratch_);
        turned_.each(dependents, [&](int64_t r) { return dependent(possible_.dependents[r]); },
                     [&](int64_t r, const LabelRows& rows) {
            const int64_t j = possible_.dependents[r];
            scores.fill(rows, count, [&](int64_t c) { return possible_.of(possible_.heads[c], j); });
            for (int64_t c = 0; c < count; ++c) {
                const int64_t at = c * dependents + r;
                best_[at] = scores.best[c];
                if (best_[at] < 0) continue;
                const float arc = given_.arcs[(sentence_ * given_.n + possible_.heads[c]) * given_.n + j];
                value_[at] = arc + scores.most[c] + std::log(scores.sum[c]);
                share_[at] = 1 / scores.sum[c];
            }
        });
    }

    // The arcs of one head.
    void choose(int64_t c, int32_t* roles) {
        const int64_t dependents = possible_.dependent_count;
        const float* value = value_ + c * dependents;
        const int32_t* best = best_ + c * dependents;
        double inside = given_.predicates[sentence_ * given_.n + possible_.heads[c]];
        for (int64_t r = 0; r < dependents; ++r)
            if (best[r] >= 0 && !(value[r] < -40)) inside += softplus(value[r]);
        const double on = logistic(inside), threshold = given_.threshold;
        if (!(on > threshold)) return;
        Scratch scratch;
        int64_t* likely = scratch.take<int64_t>(dependents);  // arcs of which some role is worth something
        int64_t count = 0;
        uint64_t used = 0;
        bool clash = false;
        for (int64_t r = 0; r < dependents; ++r) {
            if (best[r] < 0) continue;
            if (!(on * logistic(value[r]) * share_[c * dependents + r] > threshold)) continue;
            likely[count++] = r;
            roles[possible_.dependents[r]] = best[r];
            const uint64_t bit = given_.deterministic[best[r]] ? uint64_t(1) << best[r] : 0;
            clash |= (used & bit) != 0;
            used |= bit;
        }
        if (clash) assign_roles(c, on, likely, count, roles, scratch);
    }

    // The same where a role that a head has once at most would come twice: by an assignment, from the scores of all roles
    // of the likely arcs, which are looked at again.
    void assign_roles(int64_t c, double on, const int64_t* likely, int64_t count, int32_t* roles, Scratch& scratch) {
        const int64_t i = possible_.heads[c], labels = given_.labels, width = labels + 1;
        float* worth = scratch.take<float>((count + 1) * width);  // as `resolve` reads it: place 0 is nobody's
        uint8_t* exists = scratch.take<uint8_t>((count + 1) * width);
        int* label = scratch.take<int>(count + 1);
        std::fill_n(worth, (count + 1) * width, 0.0f);
        std::fill_n(exists, (count + 1) * width, uint8_t(0));
        const HeadPanels alone([&](int64_t) { return head(i); }, 1, given_.width, scratch);
        RoleScores scores(alone, labels, scratch);
        turned_.each(count, [&](int64_t k) { return dependent(possible_.dependents[likely[k]]); },
                     [&](int64_t k, const LabelRows& rows) {
            const uint64_t bits = possible_.of(i, possible_.dependents[likely[k]]);
            scores.fill(rows, 1, [&](int64_t) { return bits; });
            const double arc = on * logistic(value_[c * possible_.dependent_count + likely[k]]);
            const int64_t place = (k + 1) * width;
            exists[place] = 1;
            for (int64_t l = 0; l < labels; ++l) {
                exists[place + 1 + l] = (bits >> l) & 1;
                if (exists[place + 1 + l]) worth[place + 1 + l] = static_cast<float>(arc * scores.share(l, 0) - given_.threshold);
            }
        });
        int deterministic = 0;
        for (int64_t l = 0; l < labels; ++l) deterministic += given_.deterministic[l] != 0;
        resolve(worth, exists, count + 1, width, 0, given_.deterministic, deterministic, label, scratch);
        for (int64_t k = 0; k < count; ++k) roles[possible_.dependents[likely[k]]] = label[k + 1];
    }

    const LikelyGraphs& given_;
    const int64_t sentence_;
    Scratch& scratch_;
    const PossibleRoles possible_;
    Turned turned_;
    float *value_, *share_;
    int32_t* best_;
};

inline void likely_graphs(const LikelyGraphs& given, int threads) {
    auto body = [&](int64_t sentence) {
        int32_t* roles = given.roles + sentence * given.n * given.n;
        std::fill_n(roles, given.n * given.n, int32_t(-1));
        if (given.lengths[sentence] < 2) return;
        Scratch scratch;
        LikelyGraph(given, sentence, scratch).find(roles);
    };
    parallel_for(given.batch, threads, body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
