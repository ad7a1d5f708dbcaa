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
    void reserve(int64_t size) {
        if (size <= capacity_) return;
        capacity_ = size > 2 * capacity_ ? size : 2 * capacity_;
        T* grown = static_cast<T*>(std::realloc(data_, sizeof(T) * capacity_));
        if (!grown) throw std::bad_alloc();
        data_ = grown;
    }

private:
    T* data_ = nullptr;
    int64_t capacity_ = 0;
};

inline double inner(const double* a, const double* b, int count) {
    constexpr int W = lane_count<double>;
    Lanes<double> sum{};
    int i = 0;
    for (; i + W <= count; i += W) sum += load(a + i) * load(b + i);
    double rest = total<double>(sum);
    for (; i < count; ++i) rest += a[i] * b[i];
    return rest;
}

// The Cholesky factor of a matrix that gains and loses rows: lower triangular, rows contiguous.
class Factor {
public:
    int order() const { return order_; }
    double* row(int i) { return rows_.data() + int64_t{i} * stride_; }

    // Adds a row: its products with the others, and with itself. False if it depends on them.
    bool append(const double* with_others, double with_itself) {
        if (order_ + 1 > stride_) widen();
        rows_.reserve(int64_t{order_ + 1} * stride_);
        double* x = row(order_);
        for (int i = 0; i < order_; ++i) x[i] = (with_others[i] - inner(row(i), x, i)) / row(i)[i];
        const double rest = with_itself - inner(x, x, order_);
        if (!(rest > 1e-10)) return false;
        x[order_++] = std::sqrt(rest);
        return true;
    }

    // Takes row p out and rotates what is left back into a triangle.
    void remove(int p) {
        for (int i = p; i + 1 < order_; ++i) {
            double* to = row(i);
            const double* from = row(i + 1);
            for (int j = 0; j <= i + 1; ++j) to[j] = from[j];
        }
        --order_;
        for (int j = p; j < order_; ++j) {
            const double a = row(j)[j], b = row(j)[j + 1], r = std::hypot(a, b), c = a / r, s = b / r;
            for (int i = j; i < order_; ++i) {
                double* x = row(i);
                const double left = x[j], right = x[j + 1];
                x[j] = c * left + s * right;
                x[j + 1] = c * right - s * left;
            }
        }
    }

    // Solves for one right-hand side, in place.
    void solve(double* x) {
        for (int i = 0; i < order_; ++i) x[i] = (x[i] - inner(row(i), x, i)) / row(i)[i];
        for (int i = order_ - 1; i >= 0; --i) {
            const double* l = row(i);
            x[i] /= l[i];
            for (int j = 0; j < i; ++j) x[j] -= l[j] * x[i];
        }
    }

    void clear() { order_ = 0; }

private:
    void widen() {
        const int wider = stride_ ? 2 * stride_ : 32;
        rows_.reserve(int64_t{order_ + 1} * wider);
        for (int i = order_ - 1; i >= 0; --i)
            std::memmove(rows_.data() + int64_t{i} * wider, row(i), sizeof(double) * (i + 1));
        stride_ = wider;
    }

    Growable<double> rows_;
    int order_ = 0, stride_ = 0;
};

}  // namespace SPIGOT_ARCH
}  // namespace spigot
