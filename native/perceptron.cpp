#include "perceptron.hpp"

#include <algorithm>
#include <vector>

namespace spigot {
namespace {

class Walk {
public:
    explicit Walk(const TaggedText& text)
        : text_(text), rows_(text.plain_count + text.paired_count + 1), scores_(text.stride) {}

    // Collects the rows of one token and returns its best tag.
    int32_t predict(int64_t token, int32_t previous, int32_t before, const int32_t* weights) {
        const int32_t* plain = text_.plain + token * text_.plain_count;
        const int32_t* paired = text_.paired + token * text_.paired_count;
        used_ = 0;
        rows_[used_++] = text_.history + previous * (text_.tags + 1) + before;
        for (int64_t k = 0; k < text_.plain_count; ++k)
            if (plain[k] >= 0) rows_[used_++] = plain[k];
        for (int64_t k = 0; k < text_.paired_count; ++k)
            if (paired[k] >= 0) rows_[used_++] = paired[k] + previous;

        std::fill(scores_.begin(), scores_.end(), 0);
        int32_t* scores = scores_.data();
        for (size_t r = 0; r < used_; ++r) {
            const int32_t* row = weights + rows_[r] * text_.stride;
            for (int64_t t = 0; t < text_.stride; ++t) scores[t] += row[t];
        }
        return static_cast<int32_t>(std::max_element(scores, scores + text_.tags) - scores);
    }

    // Moves the rows of the token last predicted towards one tag or away from it.
    void update(int32_t tag, int32_t delta, int64_t step, int32_t* weights, int64_t* totals) const {
        for (size_t r = 0; r < used_; ++r) {
            const int64_t at = rows_[r] * text_.stride + tag;
            weights[at] += delta;
            totals[at] += delta * step;
        }
    }

private:
    const TaggedText& text_;
    std::vector<int64_t> rows_;
    std::vector<int32_t> scores_;
    size_t used_ = 0;
};

}  // namespace

void perceptron_tag(const TaggedText& text, int64_t sentences, const int32_t* weights, int32_t* to) {
    Walk walk(text);
    for (int64_t s = 0; s < sentences; ++s) {
        int32_t previous = static_cast<int32_t>(text.tags), before = previous;
        for (int64_t i = text.starts[s]; i < text.starts[s + 1]; ++i) {
            to[i] = text.fixed[i] >= 0 ? text.fixed[i] : walk.predict(i, previous, before, weights);
            before = previous;
            previous = to[i];
        }
    }
}

int64_t perceptron_train(const TaggedText& text, const int64_t* order, int64_t count, const int32_t* gold,
                         int32_t* weights, int64_t* totals, int64_t step) {
    Walk walk(text);
    for (int64_t s = 0; s < count; ++s) {
        int32_t previous = static_cast<int32_t>(text.tags), before = previous;
        for (int64_t i = text.starts[order[s]]; i < text.starts[order[s] + 1]; ++i) {
            int32_t tag = text.fixed[i];
            if (tag < 0) {
                tag = walk.predict(i, previous, before, weights);
                if (tag != gold[i]) {
                    walk.update(gold[i], 1, step, weights, totals);
                    walk.update(tag, -1, step, weights, totals);
                }
                ++step;
            }
            before = previous;
            previous = tag;
        }
    }
    return step;
}

}  // namespace spigot
