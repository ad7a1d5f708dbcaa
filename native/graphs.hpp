// The best semantic graph: local choices, and an assignment of roles where a deterministic one is repeated.
#pragma once

#include "simplex.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// Maximum-weight matching of `rows` to `columns` >= rows, every row matched, by shortest augmenting paths (Jonker,
// Volgenant). gain[row * columns + column], all finite. `taken[column]` gets the row, or -1.
inline void assign(const double* gain, int rows, int columns, int* taken, Scratch& scratch) {
    double* row_price = scratch.take<double>(rows + 1);
    double* column_price = scratch.take<double>(columns + 1);
    double* least = scratch.take<double>(columns + 1);
    int* match = scratch.take<int>(columns + 1);
    int* way = scratch.take<int>(columns + 1);
    uint8_t* used = scratch.take<uint8_t>(columns + 1);
    for (int r = 0; r <= rows; ++r) row_price[r] = 0;
    for (int c = 0; c <= columns; ++c) column_price[c] = 0, match[c] = 0;
    for (int r = 1; r <= rows; ++r) {
        match[0] = r;
        int column = 0;
        for (int c = 0; c <= columns; ++c) least[c] = std::numeric_limits<double>::infinity(), used[c] = 0;
        do {
            used[column] = 1;
            const int row = match[column];
            double delta = std::numeric_limits<double>::infinity();
            int next = 0;
            for (int c = 1; c <= columns; ++c) {
                if (used[c]) continue;
                const double slack = -gain[(row - 1) * columns + c - 1] - row_price[row] - column_price[c];
                if (slack < least[c]) least[c] = slack, way[c] = column;
                if (least[c] < delta) delta = least[c], next = c;
            }
            for (int c = 0; c <= columns; ++c) {
                if (used[c]) row_price[match[c]] += delta, column_price[c] -= delta;
                else least[c] -= delta;
            }
            column = next;
        } while (match[column]);
        do {
            const int previous = way[column];
            match[column] = match[previous];
            column = previous;
        } while (column);
    }
    for (int c = 1; c <= columns; ++c) taken[c - 1] = match[c] - 1;
}

// A sum in which an infinity outweighs every finite number, and one of each kind cancels. Numbers that could overflow
// together are summed apart, scaled down by a power of two, which loses nothing.
struct Worth {
    static constexpr double large = 0x1p900, scale = 0x1p-100;
    int64_t infinities = 0;
    double finite = 0, scaled = 0;
    void add(double x) {
        if (std::fabs(x) <= large) finite += x;
        else if (std::fabs(x) <= std::numeric_limits<double>::max()) scaled += x * scale;
        else infinities += x > 0 ? 1 : -1;
    }
    void add(double arc, double label) {
        if (std::fabs(arc) <= large && std::fabs(label) <= large) return add(arc + label);
        add(arc);
        add(label);
    }
    bool positive() const { return infinities ? infinities > 0 : scaled != 0 ? scaled + finite * scale > 0 : finite > 0; }
};

// Gives each deterministic role to at most one argument. An argument without such a role falls back to its best other
// label, or to no arc; a role is worth what it gains over that.
template <class T>
void resolve(const T* from, const uint8_t* exists, int64_t n, int64_t width, int64_t i, const uint8_t* deterministic,
             int roles, int* label, Scratch& scratch) {
    const int labels = static_cast<int>(width) - 1;
    const int columns = static_cast<int>(n) + roles;  // arguments, and a way out for each role
    double top = 0;
    for (int64_t k = 0; k < n * width; ++k) {
        const double size = std::fabs(static_cast<double>(from[k]));
        if (exists[k] && size > top && size <= std::numeric_limits<double>::max()) top = size;
    }
    const double shrink = top > 0x1p400 ? 0x1p-600 : 1;             // a power of two, so that sums stay below the largest
    const double giant = top > 0 ? 8 * (n + 1) * (top * shrink) : 1;  // an infinite score: beyond any sum of others
    auto tame = [&](double arc, double other) {
        const double x = arc * shrink + other * shrink;
        return x > giant ? giant : x < -giant ? -giant : x;
    };
    double* gain = scratch.take<double>(static_cast<size_t>(roles) * columns);
    int* role = scratch.take<int>(roles);
    int* taken = scratch.take<int>(columns);
    for (int64_t k = 0; k < int64_t{roles} * columns; ++k) gain[k] = 0;
    int r = 0;
    for (int l = 0; l < labels; ++l)
        if (deterministic[l]) role[r++] = l;
    for (int64_t j = 1; j < n; ++j) {
        const int64_t place = j * width;
        label[j] = -1;
        if (j == i || !exists[place]) continue;
        const double arc = static_cast<double>(from[place]);
        double otherwise = 0;
        for (int l = 0; l < labels; ++l) {
            if (deterministic[l] || !exists[place + 1 + l]) continue;
            const double worth = tame(arc, static_cast<double>(from[place + 1 + l]));
            if (worth > otherwise) otherwise = worth, label[j] = l;
        }
        for (r = 0; r < roles; ++r) {
            const double worth = tame(arc, static_cast<double>(from[place + 1 + role[r]]));
            const double more = exists[place + 1 + role[r]] ? worth - otherwise : 0;
            gain[r * columns + j] = more > 0 ? more : 0;
        }
    }
    assign(gain, roles, columns, taken, scratch);
    for (int64_t j = 1; j < n; ++j) {
        r = taken[j];
        if (r < 0 || !(gain[r * columns + j] > 0)) continue;
        label[j] = role[r];
    }
}

template <class T>
void graph_argmax(const T* scores, const uint8_t* mask, int64_t batch, int64_t n, int64_t width,
                  const uint8_t* deterministic, T* z, int threads, FaultBox& faults) {
    const int labels = static_cast<int>(width) - 1;
    int roles = 0;
    for (int l = 0; l < labels; ++l) roles += deterministic[l] != 0;

    auto body = [&](int64_t task) {  // one task for each predicate
        const int64_t b = task / n, i = task % n;
        const T* from = scores + task * n * width;
        const uint8_t* exists = mask + task * n * width;
        T* to = z + task * n * width;
        std::memset(to, 0, sizeof(T) * n * width);
        if (!exists[i * width]) return;  // no predicate, no arcs
        if (from[i * width] != from[i * width]) {
            faults.report(FAULT_NAN, b, i, i);
            return;
        }
        Scratch scratch;
        Rows<T> pack(scratch, width);
        T* row = pack.row(0);
        int* label = scratch.take<int>(n);  // the label of each argument, -1 for none
        int* uses = scratch.take<int>(labels + 1);
        uint8_t* labelled = scratch.take<uint8_t>(width);
        for (int l = 0; l < labels; ++l) uses[l] = 0;
        bool clash = false;
        for (int64_t j = 0; j < n; ++j) {
            const int64_t place = j * width;
            label[j] = -1;
            if (j == i || j == 0 || !exists[place]) continue;
            T best;
            std::memcpy(labelled, exists + place, width);
            labelled[0] = 0;
            const bool clean = pack.load(0, from + place, labelled, best);
            if (!clean || from[place] != from[place]) {
                for (int64_t c = 0; c < width; ++c)
                    if (exists[place + c] && from[place + c] != from[place + c]) {
                        faults.report(FAULT_NAN, b, i, j, c);
                        return;
                    }
            }
            if (!labels) continue;
            const double worth = static_cast<double>(best) + static_cast<double>(from[place]);
            if (!(worth > 0)) continue;
            int l = 0;
            while (row[l + 1] != best) ++l;
            label[j] = l;
            if (deterministic[l] && ++uses[l] > 1) clash = true;
        }
        if (clash) resolve(from, exists, n, width, i, deterministic, roles, label, scratch);
        Worth whole;
        whole.add(static_cast<double>(from[i * width]));
        for (int64_t j = 0; j < n; ++j)
            if (label[j] >= 0)
                whole.add(static_cast<double>(from[j * width]), static_cast<double>(from[j * width + 1 + label[j]]));
        if (!whole.positive()) return;
        to[i * width] = T(1);
        for (int64_t j = 0; j < n; ++j)
            if (label[j] >= 0) to[j * width] = to[j * width + 1 + label[j]] = T(1);
    };
    parallel_for(batch * n, worthwhile_threads(1.0 * batch * n * n * width, threads), body);
}

}  // namespace SPIGOT_ARCH
}  // namespace spigot
