// A batch of arc scores, which words exist in each sentence, and what is wrong with it if anything is.
#pragma once

#include <cstdint>
#include <vector>

namespace spigot {

enum FaultKind { NO_FAULT = 0, FAULT_NAN = 1, FAULT_HEADLESS = 2, FAULT_IMPOSSIBLE = 3, FAULT_INFINITE = 4 };

struct Fault {
    int kind = NO_FAULT;
    int64_t instance = 0;
    int64_t part[3] = {0, 0, 0};
};

// Keeps the fault of the first instance that has one, whatever the order in which threads report.
class FaultBox {
public:
    FaultBox();
    ~FaultBox();
    FaultBox(const FaultBox&) = delete;
    FaultBox& operator=(const FaultBox&) = delete;
    void report(int kind, int64_t instance, int64_t a = 0, int64_t b = 0, int64_t c = 0);
    bool any() const;
    Fault first() const;

private:
    struct State;
    State* state_;
};

// Arc scores (batch, n, n) indexed [head, modifier], contiguous, the root at 0; mask is 0/1 bytes.
template <class T>
struct ArcBatch {
    const T* scores;
    const uint8_t* mask;
    int64_t batch;
    int64_t n;
    const T* sentence(int64_t b) const { return scores + b * n * n; }
    const uint8_t* exists(int64_t b) const { return mask + b * n * n; }
};

// The words that exist, sentence by sentence, and an order of the sentences by length.
struct Words {
    Words();
    Words(Words&&);
    ~Words();
    int64_t n = 0;
    std::vector<int32_t> lengths;    // words of each sentence, the root excluded
    std::vector<int32_t> positions;  // (batch, n): root first, then the words that exist
    std::vector<int32_t> order;      // sentences that have words, longest first
    const int32_t* of(int64_t b) const { return positions.data() + b * n; }
};

// A word exists if an arc goes into or out of it. Reports words that exist without a possible head.
Words find_words(const uint8_t* mask, int64_t batch, int64_t n, int threads, FaultBox& faults);

// How many threads are worth waking for this many elementary steps.
int worthwhile_threads(double steps, int threads);

}  // namespace spigot
