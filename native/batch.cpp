#include "batch.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>

#include "pool.hpp"

namespace spigot {

struct FaultBox::State {
    std::mutex mutex;
    std::atomic<bool> any{false};
    Fault fault;
};

FaultBox::FaultBox() : state_(new State) {}
FaultBox::~FaultBox() { delete state_; }

void FaultBox::report(int kind, int64_t instance, int64_t a, int64_t b, int64_t c) {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->any && state_->fault.instance <= instance) return;
    state_->fault = Fault{kind, instance, {a, b, c}};
    state_->any = true;
}

bool FaultBox::any() const { return state_->any; }
Fault FaultBox::first() const { return state_->fault; }

// Here, and not in a header, so that no copy of them is compiled for an instruction set that this machine may not have.
Words::Words() = default;
Words::Words(Words&&) = default;
Words::~Words() = default;

Words find_words(const uint8_t* mask, int64_t batch, int64_t n, int threads, FaultBox& faults) {
    Words words;
    words.n = n;
    words.lengths.resize(batch);
    words.positions.resize(batch * n);
    constexpr int64_t block = 8;
    auto body = [&](int64_t task) {
        Scratch scratch;
        uint8_t *row = scratch.take<uint8_t>(n), *out = scratch.take<uint8_t>(n), *in = scratch.take<uint8_t>(n);
        for (int64_t b = task * block; b < batch && b < (task + 1) * block; ++b) {
            std::memset(in, 0, n);
            for (int64_t h = 0; h < n; ++h) {
                std::memcpy(row, mask + (b * n + h) * n, n);
                row[0] = row[h] = 0;  // no arcs into the root, no loops
                uint8_t any = 0;
                for (int64_t m = 0; m < n; ++m) {
                    in[m] |= row[m];
                    any |= row[m];
                }
                out[h] = any;
            }
            int32_t* positions = words.positions.data() + b * n;
            int32_t length = 0;
            positions[0] = 0;
            for (int64_t m = 1; m < n; ++m) {
                if (in[m]) positions[++length] = static_cast<int32_t>(m);
                else if (out[m]) faults.report(FAULT_HEADLESS, b, m);
            }
            words.lengths[b] = length;
        }
    };
    parallel_for((batch + block - 1) / block, worthwhile_threads(0.25 * batch * n * n, threads), body);
    for (int64_t b = 0; b < batch; ++b)
        if (words.lengths[b]) words.order.push_back(static_cast<int32_t>(b));
    std::stable_sort(words.order.begin(), words.order.end(),
                     [&](int32_t a, int32_t b) { return words.lengths[a] > words.lengths[b]; });
    return words;
}

#if defined(SPIGOT_SANITIZE)  // however little there is to do: who looks for races wants threads
int worthwhile_threads(double, int threads) { return threads; }
#else
int worthwhile_threads(double steps, int threads) { return steps < 40000.0 ? 1 : threads; }
#endif

}  // namespace spigot
