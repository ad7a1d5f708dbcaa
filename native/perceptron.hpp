// A greedy tagger over integer features: scores, argmax and averaged perceptron updates, all in integers, so that any
// other implementation can agree exactly.
#pragma once

#include <cstdint>

namespace spigot {

// The tokens of many sentences in one row. Rows of the weight table stand for features; a negative row is absent.
struct TaggedText {
    const int32_t* plain;    // (tokens, plain_count): rows that do not depend on earlier tags
    const int32_t* paired;   // (tokens, paired_count): rows to which the previous tag is added
    const int32_t* fixed;    // (tokens): the tag of a word that needs no scoring, or -1
    const int64_t* starts;   // (sentences + 1): sentence s is tokens starts[s]..starts[s+1]
    int64_t plain_count, paired_count;
    int64_t history;         // first of the (tags + 1)^2 rows of the two previous tags
    int64_t tags, stride;    // a row of weights holds `stride` entries, of which the first `tags` count
};

// Tags the first `sentences` sentences. Tag `tags` is the one before the first word; ties go to the smaller tag.
void perceptron_tag(const TaggedText& text, int64_t sentences, const int32_t* weights, int32_t* to);

// One pass of training over the sentences order[0..count); earlier tags are the predicted ones. An update at step t
// also adds t * delta to `totals`: if the next step is T, the weights after each step so far sum to
// T * weights - totals. A step is a scored token; the first has the number `step`. Returns the number of the next.
int64_t perceptron_train(const TaggedText& text, const int64_t* order, int64_t count, const int32_t* gold,
                         int32_t* weights, int64_t* totals, int64_t step);

}  // namespace spigot
