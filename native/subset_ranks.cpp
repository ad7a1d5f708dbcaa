// Best-first search. The best subset of j entries is the j largest; every other one of that size is reached from it in
// one way by moving its smallest entry down the sorted row step by step, then the next smallest up to where that one
// went, and so on. No move gains, so a heap of what can come next gives the subsets in order, two new ones for each.
#include "subset_ranks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <queue>
#include <vector>

#include "pool.hpp"

namespace spigot {
namespace {

// A subset of `size` entries of the sorted row: the first `slot` of them in their places, number `slot` at `at`, those
// after it where the states behind `above` put them; number slot + 1 is at `limit`.
struct State {
    double value;
    int64_t size, slot, at, limit, above;
};

struct Place {
    double value;
    int64_t state;
    bool operator<(const Place& other) const {  // of equal ones the first that was found comes first
        return value < other.value || (value == other.value && state > other.state);
    }
};

}  // namespace

template <class T>
void rank_subsets(const T* scores, const uint8_t* mask, int64_t rows, int64_t width, int64_t minimum, int64_t maximum,
                  int64_t ranks, T* z, int64_t* found, int threads, FaultBox& faults) {
    auto body = [&](int64_t r) {
        const T* row = scores + r * width;
        std::vector<int64_t> order;
        int64_t existing = 0;
        found[r] = 0;
        for (int64_t d = 0; d < ranks; ++d) std::memset(z + (d * rows + r) * width, 0, sizeof(T) * width);
        for (int64_t i = 0; i < width; ++i) {
            if (!mask[r * width + i]) continue;
            ++existing;
            if (row[i] != row[i]) return faults.report(FAULT_NAN, r, i);
            if (row[i] == std::numeric_limits<T>::infinity()) return faults.report(FAULT_INFINITE, r);
            if (row[i] != -std::numeric_limits<T>::infinity()) order.push_back(i);
        }
        if (existing > 0 && existing < minimum) return faults.report(FAULT_IMPOSSIBLE, r, existing);
        const int64_t all = static_cast<int64_t>(order.size());
        int64_t least = existing ? minimum : 0, most = maximum < 0 || maximum > all ? all : maximum;
        if (least > most) return;  // every subset has an entry of -inf
        // One size is best, and each size further from it is worse: with `ranks` sizes to a side there are enough. Nor
        // can an entry be in that `ranks` better ones could replace.
        int64_t best = 0;
        for (int64_t i : order) best += row[i] > 0;
        best = std::min(std::max(best, least), most);
        least = std::max(least, best - ranks), most = std::min(most, best + ranks);
        const int64_t n = std::min(all, most + ranks);
        std::partial_sort(order.begin(), order.begin() + n, order.end(), [&](int64_t a, int64_t b) {
            return row[a] > row[b] || (row[a] == row[b] && a < b);
        });
        std::vector<State> states;
        std::vector<Place> start;
        double value = 0;
        for (int64_t size = 0; size <= most; ++size) {
            if (size) value += double(row[order[size - 1]]);
            if (size < least) continue;
            start.push_back({value, static_cast<int64_t>(states.size())});
            states.push_back({value, size, size - 1, size - 1, n, -1});
        }
        std::priority_queue<Place> heap(std::less<Place>(), std::move(start));
        while (!heap.empty() && found[r] < ranks) {
            const int64_t here = heap.top().state;
            heap.pop();
            const State s = states[here];
            T* to = z + (found[r]++ * rows + r) * width;
            for (int64_t t = 0; t < s.slot; ++t) to[order[t]] = 1;
            for (int64_t link = here; link >= 0 && s.size > 0; link = states[link].above)
                to[order[states[link].at]] = 1;
            auto push = [&](State next) {
                heap.push({next.value, static_cast<int64_t>(states.size())});
                states.push_back(next);
            };
            auto score = [&](int64_t place) { return double(row[order[place]]); };
            if (s.size > 0 && s.at + 1 < s.limit)
                push({s.value - (score(s.at) - score(s.at + 1)), s.size, s.slot, s.at + 1, s.limit, s.above});
            if (s.slot > 0 && s.at > s.slot)
                push({s.value - (score(s.slot - 1) - score(s.slot)), s.size, s.slot - 1, s.slot, s.at, here});
        }
    };
    parallel_for(rows, worthwhile_threads(20.0 * rows * width, threads), body);
}

template void rank_subsets(const float*, const uint8_t*, int64_t, int64_t, int64_t, int64_t, int64_t, float*, int64_t*,
                           int, FaultBox&);
template void rank_subsets(const double*, const uint8_t*, int64_t, int64_t, int64_t, int64_t, int64_t, double*,
                           int64_t*, int, FaultBox&);

}  // namespace spigot
