#include "relaxed_trees.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "pool.hpp"

namespace spigot {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

class RelaxedTrees {
public:
    // Room for sentences of up to size - 1 words.
    RelaxedTrees(Scratch& scratch, int size)
        : sorted_(scratch.take<double>(static_cast<size_t>(size) * size)),
          sums_(scratch.take<double>(static_cast<size_t>(size) * size)),
          counts_(scratch.take<int32_t>(size)),
          root_(scratch.take<double>(size)),
          cuts_(scratch.take<double>(size)),
          room_(scratch.take<double>(static_cast<size_t>(size) * size)),
          from_root_(scratch.take<double>(size)),
          supply_(scratch.take<double>(size)),
          levels_(scratch.take<int32_t>(size)),
          places_(scratch.take<int32_t>(size)),
          queue_(scratch.take<int32_t>(size)),
          rest_(scratch.take<int32_t>(size)) {}

    bool project(const double* point, int length, bool single_root, double* mu) {
        length_ = length;
        size_ = length + 1;
        return flat(point) && sort_heads(point) && balance_root(single_root) && spread_heads(point, mu) && flows(mu);
    }

private:
    // Whether it is worth the trouble: a point that leaves each word a few heads is quickly searched. An upper bound.
    bool flat(const double* point) {
        int64_t near = 0;
        for (int m = 1; m < size_; ++m) root_[m] = minus_infinity;
        for (int h = 0; h < size_; ++h)
            for (int m = 1; m < size_; ++m) root_[m] = std::max(root_[m], point[h * size_ + m]);
        for (int h = 0; h < size_; ++h)
            for (int m = 1; m < size_; ++m) near += point[h * size_ + m] > root_[m] - 0.25;
        return near >= int64_t{8} * length_;
    }

    // The heads of each word but the root, best first, less the best of all; what the root scores, on the same scale.
    bool sort_heads(const double* point) {
        for (int m = 1; m < size_; ++m) {
            double* heads = sorted_ + int64_t{m} * size_;
            const double top = root_[m];
            int count = 0;
            for (int h = 1; h < size_; ++h)  // nothing a whole unit below the best gets any mass
                if (point[h * size_ + m] > top - 2) heads[count++] = point[h * size_ + m] - top;
            std::sort(heads, heads + count, [](double a, double b) { return a > b; });
            double* sums = sums_ + int64_t{m} * size_;
            sums[0] = 0;
            for (int i = 0; i < count; ++i) sums[i + 1] = sums[i] + heads[i];
            counts_[m] = count;
            root_[m] = point[m] - top;
            if (!count) return false;
        }
        return true;
    }

    // Heads that get mass beside one of score y, or beside none: each that lies above the cut they make.
    int sharing(int m, double goal, int others) const {
        const double *heads = sorted_ + int64_t{m} * size_, *sums = sums_ + int64_t{m} * size_;
        int low = 0, high = counts_[m];
        while (low < high) {
            const int i = (low + high + 1) / 2;
            if (heads[i - 1] * (i + others) > sums[i] - goal) low = i;
            else high = i - 1;
        }
        return low;
    }

    // What the root gets of word m if it scores y; the cut below which heads get nothing, and the slope.
    double root_share(int m, double y, double& cut, double& slope) const {
        const double* sums = sums_ + int64_t{m} * size_;
        slope = 0;
        if (y > minus_infinity) {
            const int i = sharing(m, 1 - y, 1);
            cut = (sums[i] + y - 1) / (i + 1);
            slope = static_cast<double>(i) / (i + 1);
            if (y > cut) return y - cut;
            slope = 0;
        }
        const int i = sharing(m, 1, 0);
        cut = (sums[i] - 1) / i;
        return 0;
    }

    double root_total(double shift, double& slope) {
        double sum = 0, rise;
        slope = 0;
        for (int m = 1; m < size_; ++m) {
            sum += root_share(m, root_[m] + shift, cuts_[m], rise);
            slope += rise;
        }
        return sum;
    }

    // Raises or lowers the root's scores until it gives 1, or until it gives at least 1; false if it cannot. Newton's
    // steps between two bounds: the sum is piecewise linear and rises with the shift.
    bool balance_root(bool single_root) {
        double slope, low = 0, high = 0, shift = 0;
        double sum = root_total(0, slope);
        if (!single_root && sum >= 1) return true;
        for (int m = 1; m < size_; ++m) {
            if (!(root_[m] > minus_infinity)) continue;
            low = std::min(low, -2 - root_[m]);  // below every cut
            high = std::max(high, 2 - root_[m]);
        }
        for (int step = 0; step < 200; ++step) {
            if (std::fabs(sum - 1) <= 1e-14 * length_) {
                for (int m = 1; m < size_; ++m) root_[m] += shift;
                return true;
            }
            (sum < 1 ? low : high) = shift;
            const double newton = shift + (1 - sum) / slope;
            shift = slope > 0 && newton > low && newton < high ? newton : 0.5 * (low + high);
            sum = root_total(shift, slope);
        }
        return false;
    }

    // Writes the point; false if few arcs have mass after all.
    bool spread_heads(const double* point, double* mu) {
        int64_t chosen = 0;
        for (int m = 1; m < size_; ++m) {
            double top = minus_infinity, sum = 0;
            for (int h = 0; h < size_; ++h) top = std::max(top, point[h * size_ + m]);
            for (int h = 0; h < size_; ++h) {
                const double y = h ? point[h * size_ + m] - top : root_[m];
                const double share = y > cuts_[m] ? y - cuts_[m] : 0;
                mu[h * size_ + m] = share;
                sum += share;
                chosen += share > 0;
            }
            if (std::fabs(sum - 1) > 1e-12) return false;
        }
        for (int h = 0; h < size_; ++h) mu[h * size_] = 0;
        return chosen >= int64_t{4} * length_;
    }

    // Whether 1 can flow from the root to every word, with the arcs' mass for capacities. A word found to have its 1 is
    // as good as the root: a cut that parts the root from another word and lets less than 1 through leaves it on the
    // root's side.
    bool flows(const double* mu) {
        int left = length_;
        for (int m = 1; m < size_; ++m) rest_[m - 1] = m, from_root_[m] = mu[m];
        while (left) {
            int next = 0;
            for (int i = 1; i < left; ++i)
                if (from_root_[rest_[i]] > from_root_[rest_[next]]) next = i;
            const int word = rest_[next];
            std::swap(rest_[next], rest_[--left]);
            if (!fills(mu, word, left)) return false;
            for (int i = 0; i < left; ++i) from_root_[rest_[i]] += mu[word * size_ + rest_[i]];
        }
        return true;
    }

    // Whether 1 can flow into one word from the root, by way of the first `left` of the rest: Dinic's method. Nodes are
    // numbered by their place among the rest, the word itself last; room[i * nodes + j] is what the arc still takes.
    bool fills(const double* mu, int word, int left) {
        constexpr double tiny = 1e-13;
        const int nodes = left + 1, sink = left;
        double missing = 1 - from_root_[word];
        for (int i = 0; i < left && missing > 1e-12; ++i) {  // two arcs, one after the other
            const double through = std::min(from_root_[rest_[i]], mu[rest_[i] * size_ + word]);
            missing -= through;
        }
        if (missing <= 1e-12) return true;
        missing = 1 - from_root_[word];
        for (int i = 0; i < left; ++i) {
            const double* out = mu + rest_[i] * size_;
            for (int j = 0; j < left; ++j) room_[i * nodes + j] = out[rest_[j]];
            const double through = std::min(from_root_[rest_[i]], out[word]);
            room_[i * nodes + sink] = out[word] - through;
            supply_[i] = from_root_[rest_[i]] - through;
            missing -= through;
        }
        while (missing > 1e-12) {
            int tail = 0;
            for (int i = 0; i <= left; ++i) levels_[i] = -1, places_[i] = 0;
            for (int i = 0; i < left; ++i)
                if (supply_[i] > tiny) levels_[i] = 0, queue_[tail++] = i;
            for (int head = 0; head < tail && levels_[sink] < 0; ++head) {
                const int i = queue_[head];
                for (int j = 0; j < nodes; ++j)
                    if (levels_[j] < 0 && room_[i * nodes + j] > tiny) levels_[j] = levels_[i] + 1, queue_[tail++] = j;
            }
            if (levels_[sink] < 0) return false;
            for (int i = 0; i < left; ++i) {
                if (levels_[i] || !(supply_[i] > tiny)) continue;
                const double sent = push(i, nodes, supply_[i]);
                supply_[i] -= sent;
                missing -= sent;
            }
        }
        return true;
    }

    // Sends up to `most` from a node towards the sink, level by level.
    double push(int i, int nodes, double most) {
        const int sink = nodes - 1;
        if (i == sink) return most;
        double sent = 0;
        for (int& j = places_[i]; j < nodes; ++j) {
            double& room = room_[i * nodes + j];
            if (levels_[j] != levels_[i] + 1 || !(room > 1e-13)) continue;
            const double through = push(j, nodes, std::min(most - sent, room));
            room -= through;
            if (j != sink) room_[j * nodes + i] += through;
            sent += through;
            if (most - sent <= 1e-13) return sent;
        }
        return sent;
    }

    int length_ = 0, size_ = 0;
    double *sorted_, *sums_;
    int32_t* counts_;
    double *root_, *cuts_, *room_, *from_root_, *supply_;
    int32_t *levels_, *places_, *queue_, *rest_;
};

}  // namespace

bool project_relaxed_trees(const double* point, int length, bool single_root, double* mu) {
    Scratch scratch;
    return RelaxedTrees(scratch, length + 1).project(point, length, single_root, mu);
}

}  // namespace spigot
