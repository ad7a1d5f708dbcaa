// The cheapest complete assignment of rows to columns, with the prices that prove it (Jonker, Volgenant 1987).
#pragma once

#include "lanes.hpp"
#include "pool.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

constexpr double infinity = std::numeric_limits<double>::infinity();

// Every row gets a column of its own; rows <= columns. An infinite cost marks a pair that cannot be.
//
// Prices v obey cost[i][j] - v[j] >= cost[i][x] - v[x] for the column x of row i, and with more columns than rows
// v <= 0, v = 0 on columns that nobody takes: together they say that nothing is cheaper. Ties are broken by position and
// not by lanes, so that all instruction sets give the same answer.
class Assignment {
public:
    static constexpr int W = lane_count<double>;
    using V = Lanes<double>;
    using I = LaneTraits<double>::Bits;
    const int rows, columns, stride;
    double *cost, *price;         // cost[row * stride + column], to be filled by the caller up to `columns`
    int *column_of, *row_of;

    Assignment(Scratch& scratch, int rows, int columns)
        : rows(rows),
          columns(columns),
          stride((columns + W - 1) / W * W),
          cost(scratch.take<double>(static_cast<size_t>(rows) * stride)),
          price(scratch.take<double>(stride)),
          column_of(scratch.take<int>(rows)),
          row_of(scratch.take<int>(stride)),
          distance_(scratch.take<double>(stride)),
          closed_(scratch.take<double>(stride)),
          taken_(scratch.take<double>(stride)),
          from_(scratch.take<int64_t>(stride)),
          waiting_(scratch.take<int>(2 * static_cast<size_t>(rows))),
          visited_(scratch.take<int>(stride)) {
        for (int i = 0; i < rows; ++i)
            for (int j = columns; j < stride; ++j) cost[i * int64_t{stride} + j] = infinity;
    }

    double* line(int row) { return cost + static_cast<int64_t>(row) * stride; }

    // False if there is no complete assignment of finite cost.
    bool solve() {
        for (int i = 0; i < rows; ++i) column_of[i] = -1;
        for (int j = 0; j < stride; ++j) row_of[j] = -1, price[j] = 0;
        if (rows == columns && !reduce_columns()) return false;
        int free = 0;
        for (int i = 0; i < rows; ++i)
            if (column_of[i] < 0) waiting_[free++] = i;
        for (int round = 0; round < 2 && free; ++round) {
            free = bid(free);
            if (free < 0) return false;
        }
        for (int j = 0; j < stride; ++j) taken_[j] = row_of[j] < 0 ? 0 : infinity;
        for (int k = 0; k < free; ++k)
            if (!augment(waiting_[k])) return false;
        return true;
    }

private:
    struct Least {
        double first, second;
        int at;
    };

    static double smallest(V v) {
        return fold<double, SPIGOT_VECTOR_BYTES>(v, [](auto a, auto b) { return a < b ? a : b; });
    }

    // The two smallest of cost less price in a row, and where the first of them stands.
    Least two_least(const double* c) const {
        V first = spread(infinity), second = first, place{}, here{};
        for (int l = 0; l < W; ++l) here[l] = l;
        for (int j = 0; j < stride; j += W, here += static_cast<double>(W)) {
            const V h = load(c + j) - load(price + j);
            const auto lower = h < first;
            const V loser = lower ? first : h;
            second = loser < second ? loser : second;
            place = lower ? here : place;
            first = lower ? h : first;
        }
        Least least;
        least.first = smallest(first);
        const V first_place = first == spread(least.first) ? place : spread(infinity);
        const double at = smallest(first_place);
        least.second = smallest(first_place == spread(at) ? second : first);
        least.at = static_cast<int>(at);
        return least;
    }

    // Prices at the cheapest of each column, which goes to its row if that has none yet.
    bool reduce_columns() {
        for (int j = 0; j < stride; j += W) {
            V low = spread(infinity);
            I owner{};
            for (int i = 0; i < rows; ++i) {
                const V c = load(line(i) + j);
                const auto lower = c < low;
                low = lower ? c : low;
                owner = lower ? I{} + i : owner;
            }
            store(price + j, low);
            std::memcpy(from_ + j, &owner, sizeof owner);
        }
        for (int j = columns; j < stride; ++j) price[j] = 0;
        int* claims = visited_;
        for (int i = 0; i < rows; ++i) claims[i] = 0;
        for (int j = columns - 1; j >= 0; --j) {
            if (!(price[j] < infinity)) return false;
            const int i = static_cast<int>(from_[j]);
            if (!claims[i]++) column_of[i] = j, row_of[j] = i;
        }
        for (int i = 0; i < rows; ++i) {  // what a row could gain elsewhere, its only column gives up
            if (claims[i] != 1) continue;
            const int j = column_of[i];
            const double kept = price[j];
            price[j] = -infinity;
            const double rest = two_least(line(i)).first;
            price[j] = rest < infinity ? kept - rest : kept;
        }
        return true;
    }

    // Rows without a column take their best one, and raise what it costs to the point where the second is as good; who
    // held it waits. Returns how many wait in the end, -1 if a row has no column at all.
    int bid(int free) {
        int waiting = 0, patience = rows / 2;  // beyond that the paths below are quicker
        int* next = waiting_ + rows;
        for (int k = 0; k < free;) {
            const int i = waiting_[k++];
            const double* c = line(i);
            const Least least = two_least(c);
            if (!(least.first < infinity)) return -1;
            int j = least.at;
            const double lowered = price[j] - (least.second - least.first);
            const bool lowers = least.second < infinity && lowered < price[j];
            int loser = row_of[j];
            if (loser >= 0 && !lowers) {
                if (!(least.second < infinity)) {  // its only column is somebody's
                    next[waiting++] = i;
                    continue;
                }
                for (int other = 0; other < columns; ++other)  // a tie: perhaps the other one is free
                    if (other != j && c[other] - price[other] == least.second) {
                        j = other;
                        break;
                    }
                loser = row_of[j];
            }
            if (lowers) price[j] = lowered;
            column_of[i] = j;
            row_of[j] = i;
            if (loser < 0) continue;
            column_of[loser] = -1;
            if (lowers && patience-- > 0) waiting_[--k] = loser;
            else next[waiting++] = loser;
        }
        for (int k = 0; k < waiting; ++k) waiting_[k] = next[k];
        return waiting;
    }

    // The cheapest alternating path from a free row to a free column.
    bool augment(int start) {
        for (int j = 0; j < stride; j += W) store(distance_ + j, spread(infinity)), store(closed_ + j, V{});
        int row = start, visited = 0, column;
        double shift = 0, reach;
        while (true) {
            const double* c = line(row);
            V best = spread(infinity), place = best, best_free = best, free_place = best, here{};
            for (int l = 0; l < W; ++l) here[l] = l;
            for (int j = 0; j < stride; j += W, here += static_cast<double>(W)) {
                const V closed = load(closed_ + j);
                const V h = (load(c + j) - load(price + j)) + shift + closed;
                V d = load(distance_ + j);
                I from;
                std::memcpy(&from, from_ + j, sizeof from);
                const auto shorter = h < d;
                d = shorter ? h : d;
                from = shorter ? I{} + row : from;
                store(distance_ + j, d);
                std::memcpy(from_ + j, &from, sizeof from);
                const V key = d + closed, key_free = d + load(taken_ + j);
                const auto lower = key < best, lower_free = key_free < best_free;
                best = lower ? key : best;
                place = lower ? here : place;
                best_free = lower_free ? key_free : best_free;
                free_place = lower_free ? here : free_place;
            }
            reach = smallest(best);
            if (!(reach < infinity)) return false;
            const bool ends = smallest(best_free) == reach;
            const double at = ends ? smallest(best_free == spread(reach) ? free_place : spread(infinity))
                                   : smallest(best == spread(reach) ? place : spread(infinity));
            column = static_cast<int>(at);
            if (ends) break;
            closed_[column] = infinity;
            visited_[visited++] = column;
            row = row_of[column];
            shift = reach - (line(row)[column] - price[column]);
        }
        taken_[column] = infinity;
        for (int k = 0; k < visited; ++k) price[visited_[k]] += distance_[visited_[k]] - reach;
        for (int i = -1; i != start;) {
            i = static_cast<int>(from_[column]);
            row_of[column] = i;
            std::swap(column, column_of[i]);
        }
        return true;
    }

    double *distance_, *closed_, *taken_;
    int64_t* from_;
    int *waiting_, *visited_;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
