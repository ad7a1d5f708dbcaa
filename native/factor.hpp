// A Cholesky factor that rows join and leave.
#pragma once

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "lanes.hpp"

namespace spigot {
namespace SPIGOT_ARCH {

// A growing array of plain values.
template <class T>
class Growable {
public:
    Growable() = default;
    ~Growable() { std::free(data_); }
    Growable(const Growable&) = delete;
    Growable& operator=(const Growable&) = delete;
    T* data() { return data_; }
    T& operator[](int64_t i) { return data_[i]; }
    void reserve(int64_t size) {  // aligned for the widest vectors
        if (size <= capacity_) return;
        const int64_t wanted = size > 2 * capacity_ ? size : 2 * capacity_;
        const size_t bytes = (sizeof(T) * static_cast<size_t>(wanted) + 63) / 64 * 64;
        T* grown = static_cast<T*>(std::aligned_alloc(64, bytes));
        if (!grown) throw std::bad_alloc();
        if (capacity_) std::memcpy(grown, data_, sizeof(T) * capacity_);
        std::free(data_);
        data_ = grown;
        capacity_ = wanted;
    }

private:
    T* data_ = nullptr;
    int64_t capacity_ = 0;
};

// The inner products of some rows with others, each read once for all of them.
template <int Left, int Right>
inline void inner(double* const* a, double* const* b, int count, double (&to)[Left][Right]) {
    constexpr int W = lane_count<double>;
    Lanes<double> sums[Left][Right]{};
    int i = 0;
    for (; i + W <= count; i += W)
        for (int l = 0; l < Left; ++l) {
            const Lanes<double> left = load(a[l] + i);
            for (int r = 0; r < Right; ++r) sums[l][r] += left * load(b[r] + i);
        }
    for (int l = 0; l < Left; ++l)
        for (int r = 0; r < Right; ++r) to[l][r] = total<double>(sums[l][r]);
    for (; i < count; ++i)
        for (int l = 0; l < Left; ++l)
            for (int r = 0; r < Right; ++r) to[l][r] += a[l][i] * b[r][i];
}

inline double inner(const double* a, const double* b, int count) {
    double *left = const_cast<double*>(a), *right = const_cast<double*>(b), product[1][1];
    inner<1, 1>(&left, &right, count, product);
    return product[0][0];
}

// The Cholesky factor L of a matrix A that gains and loses rows: lower triangular, rows contiguous. Beside it go two
// solutions that outlast such changes, of L x = 1 and of L x = b, so that A x = b costs one pass over the factor.
class Factor {
public:
    int order() const { return order_; }
    double* row(int i) { return rows_.data() + int64_t{i} * stride_; }
    double* ones() { return ones_.data(); }
    double* goal() { return goal_.data(); }

    // Room for rows to join: the products of row order() + i with all before it, to be filled in by the caller.
    double* joining(int i) { return row(order_ + i); }
    void make_room(int count) {
        while (order_ + count > stride_) widen(order_ + count - 1);
        rows_.reserve(int64_t{order_ + count} * stride_);
        ones_.reserve(order_ + count);
        goal_.reserve(order_ + count);
    }

    // Lets `count` rows join that have been filled in, each with `itself` for its product with itself; `joined` tells
    // which do, and the others depend on the rest. The products of rows that join together lie beyond order().
    void join(int count, double itself, bool* joined) {
        const int before = order_;
        constexpr int tile = 32;  // rows of the factor that stay in the cache while all that join pass over them
        for (int from = 0; from < before; from += tile) {
            const int to = from + tile < before ? from + tile : before;
            int first = 0;
            for (; first + 4 <= count; first += 4) eliminate<4>(first, from, to);
            for (; first < count; ++first) eliminate<1>(first, from, to);
        }
        for (int c = 0; c < count; ++c) {
            double* x = row(before + c);
            double* to = row(order_);
            int place = before;
            for (int d = 0; d < c; ++d) {  // products with those that did not join are left out
                if (!joined[d]) continue;
                const double product = x[before + d];
                x[place] = (product - inner(row(place), x, place)) / row(place)[place];
                ++place;
            }
            const double rest = itself - inner(x, x, order_);
            joined[c] = rest > 1e-8;
            if (!joined[c]) continue;
            if (to != x) std::memcpy(to, x, sizeof(double) * order_);
            to[order_] = std::sqrt(rest);
            ones_[order_] = (1 - inner(to, ones_.data(), order_)) / to[order_];
            goal_[order_] = 0;
            ++order_;
        }
    }

    // Takes row p out and rotates what is left back into a triangle, a few rows at a time since each is a chain of
    // operations that wait for one another.
    void remove(int p) {
        constexpr int Rows = 4;
        cosines_.reserve(order_);
        sines_.reserve(order_);
        --order_;
        double *cosines = cosines_.data(), *sines = sines_.data();
        for (int i = p; i < order_; i += Rows) {
            const int count = order_ - i < Rows ? order_ - i : Rows;
            double carry[Rows];
            if (count == Rows) {
                double *a = row(i), *b = row(i + 1), *c = row(i + 2), *d = row(i + 3), *e = row(i + 4);
                std::memcpy(a, b, sizeof(double) * p);
                std::memcpy(b, c, sizeof(double) * p);
                std::memcpy(c, d, sizeof(double) * p);
                std::memcpy(d, e, sizeof(double) * p);
                double w = b[p], x = c[p], y = d[p], z = e[p];
                for (int j = p; j < i; ++j) {
                    const double cosine = cosines[j], sine = sines[j];
                    const double s = b[j + 1], t = c[j + 1], u = d[j + 1], v = e[j + 1];
                    a[j] = cosine * w + sine * s, w = cosine * s - sine * w;
                    b[j] = cosine * x + sine * t, x = cosine * t - sine * x;
                    c[j] = cosine * y + sine * u, y = cosine * u - sine * y;
                    d[j] = cosine * z + sine * v, z = cosine * v - sine * z;
                }
                carry[0] = w, carry[1] = x, carry[2] = y, carry[3] = z;
            } else {
                for (int r = 0; r < count; ++r) {
                    double *to = row(i + r), *from = row(i + r + 1);
                    std::memcpy(to, from, sizeof(double) * p);
                    carry[r] = rotate(from, to, p, i, from[p]);
                }
            }
            for (int r = 0; r < count; ++r) {
                double *to = row(i + r), *from = row(i + r + 1);
                const double left = rotate(from, to, i, i + r, carry[r]), right = from[i + r + 1];
                const double norm = std::hypot(left, right);
                cosines[i + r] = left / norm;
                sines[i + r] = right / norm;
                to[i + r] = norm;
            }
        }
        for (double* x : {ones_.data(), goal_.data()}) rotate(x, x, p, order_, x[p]);
    }

    // Solves L x = b, and keeps x as goal().
    void aim(const double* b) {
        for (int i = 0; i < order_; ++i) goal_[i] = (b[i] - inner(row(i), goal_.data(), i)) / row(i)[i];
    }
    // The same where b is zero before row `first`.
    void aim(const double* b, int first) {
        for (int i = 0; i < first; ++i) goal_[i] = 0;
        for (int i = first; i < order_; ++i)
            goal_[i] = (b[i] - inner(row(i) + first, goal_.data() + first, i - first)) / row(i)[i];
    }

    // The solution of A x = b for the b that was aimed at, plus the multiple of 1 that makes x sum to zero.
    void solve_balanced(double* x) {
        const double much = inner(ones_.data(), goal_.data(), order_) / inner(ones_.data(), ones_.data(), order_);
        for (int i = 0; i < order_; ++i) x[i] = goal_[i] - much * ones_[i];
        solve_transposed(x);
    }

    // Solves L' x = b in place, four rows at a time.
    void solve_transposed(double* x) {
        constexpr int W = lane_count<double>;
        int i = order_ - 1;
        for (; i >= 3; i -= 4) {
            const double *a = row(i), *b = row(i - 1), *c = row(i - 2), *d = row(i - 3);
            x[i] /= a[i];
            x[i - 1] = (x[i - 1] - a[i - 1] * x[i]) / b[i - 1];
            x[i - 2] = (x[i - 2] - a[i - 2] * x[i] - b[i - 2] * x[i - 1]) / c[i - 2];
            x[i - 3] = (x[i - 3] - a[i - 3] * x[i] - b[i - 3] * x[i - 1] - c[i - 3] * x[i - 2]) / d[i - 3];
            const double s = x[i], t = x[i - 1], u = x[i - 2], v = x[i - 3];
            int j = 0;
            for (; j + W <= i - 3; j += W)
                store(x + j, load(x + j) - load(a + j) * s - load(b + j) * t - load(c + j) * u - load(d + j) * v);
            for (; j < i - 3; ++j) x[j] -= a[j] * s + b[j] * t + c[j] * u + d[j] * v;
        }
        for (; i >= 0; --i) {
            const double* l = row(i);
            x[i] /= l[i];
            for (int j = 0; j < i; ++j) x[j] -= l[j] * x[i];
        }
    }

    void clear() { order_ = 0; }

private:
    // Solves for some of the rows that join, as far as rows from..to of the factor go.
    template <int Rows>
    void eliminate(int first, int from, int to) {
        constexpr int Left = SPIGOT_VECTOR_BYTES == 64 ? 4 : 2;  // as many as there are registers for
        double* x[Rows];
        for (int r = 0; r < Rows; ++r) x[r] = row(order_ + first + r);
        int i = from;
        for (; i + Left <= to; i += Left) eliminate<Left, Rows>(i, x);
        for (; i < to; ++i) eliminate<1, Rows>(i, x);
    }
    template <int Left, int Rows>
    void eliminate(int i, double* const* x) {
        double* l[Left];
        for (int k = 0; k < Left; ++k) l[k] = row(i + k);
        double products[Left][Rows];
        inner<Left, Rows>(l, x, i, products);
        for (int k = 0; k < Left; ++k)
            for (int r = 0; r < Rows; ++r) {
                double sum = x[r][i + k] - products[k][r];
                for (int j = 0; j < k; ++j) sum -= l[k][i + j] * x[r][i + j];
                x[r][i + k] = sum / l[k][i + k];
            }
    }

    // Applies the rotations from..to to a row that moves one place to the left; returns what is carried on.
    double rotate(const double* x, double* moved, int from, int to, double carry) {
        for (int j = from; j < to; ++j) {
            const double right = x[j + 1], cosine = cosines_[j], sine = sines_[j];
            moved[j] = cosine * carry + sine * right;
            carry = cosine * right - sine * carry;
        }
        return carry;
    }

    void widen(int rows) {
        const int wider = stride_ ? 2 * stride_ - 8 : 40;  // aligned, and no power of two, which caches dislike
        rows_.reserve(int64_t{rows + 1} * wider);
        for (int i = rows - 1; i > 0; --i)
            std::memmove(rows_.data() + int64_t{i} * wider, row(i), sizeof(double) * stride_);
        stride_ = wider;
    }

    Growable<double> rows_, ones_, goal_, cosines_, sines_;
    int order_ = 0, stride_ = 0;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
