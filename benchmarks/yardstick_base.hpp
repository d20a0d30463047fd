// Data shared by the two sides, eight-lane vectors, and small dense algebra.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <vector>

typedef int64_t i64;

extern "C" {

struct Problem {
    i64 horizon, n_states, n_actions, dim, n_pairs, n_blocks, shared;
    double param_bound;
    const double *reward, *start;
    const int32_t* stage_table;
    const i64* row_start;
    const int32_t* next_state;
    const double* offset;
    const int32_t* pair_block;
    const i64* feat_start;
    const double* feat;
    const i64* block_start;
    const int32_t* block_coords;
    const i64* gram_start;
    const i64* node_start;
    const int32_t* node_state;
};

struct Options {
    double step_size, reg, tolerance;
    i64 frank_wolfe, max_iterations, extra_starts, certificate, judge;
};

struct Stats {
    i64 solves, evaluations, wide, projections, updates;
};

}  // extern "C"

namespace {

constexpr int LANES = 8;
typedef double vec __attribute__((vector_size(64)));
typedef int64_t mask __attribute__((vector_size(64)));  // a lane is 0 or -1

inline vec splat(double x) { return vec{x, x, x, x, x, x, x, x}; }
inline vec vmax(vec a, vec b) { return a > b ? a : b; }
inline vec vmin(vec a, vec b) { return a < b ? a : b; }
inline vec vsqrt(vec a) {
    vec r;
    for (int l = 0; l < LANES; ++l) r[l] = __builtin_sqrt(a[l]);
    return r;
}
inline vec* vectors(i64 n) { return static_cast<vec*>(std::aligned_alloc(64, sizeof(vec) * std::max<i64>(n, 1))); }
inline bool any(mask m) {
    int64_t r = 0;
    for (int l = 0; l < LANES; ++l) r |= m[l];
    return r != 0;
}

// e^x to about 2 ulp on [-700, 700], clamped outside: 2^k times a Taylor polynomial on |r| <= log(2)/2.
inline vec vexp(vec x) {
    const double magic = 6755399441055744.0;
    x = vmin(vmax(x, splat(-700.0)), splat(700.0));
    const vec t = x * 1.4426950408889634 + magic;
    const vec n = t - magic;
    vec r = x - n * 0.693147180369123816490;
    r = r - n * 1.90821492927058770002e-10;
    const vec r2 = r * r, r4 = r2 * r2;
    const vec a = 1.0 + r, b = 1.0 / 2 + r * (1.0 / 6);
    const vec c = 1.0 / 24 + r * (1.0 / 120), d = 1.0 / 720 + r * (1.0 / 5040);
    const vec e = 1.0 / 40320 + r * (1.0 / 362880), f = 1.0 / 3628800 + r * (1.0 / 39916800);
    const vec tail = e + r2 * (f + r2 * (1.0 / 479001600));
    const vec p = (a + b * r2) + r4 * ((c + d * r2) + r4 * tail);
    const mask scale = ((mask)t << 52) + 0x3ff0000000000000LL;
    return p * (vec)scale;
}

// ------------------------------------------------------------------------------------ small dense algebra
// N > 0 fixes the size at compile time, N = 0 reads it from n. Matrices are row-major n x n.

template <int N>
inline void cholesky(int n_, const double* a, double shift, double* l) {
    const int n = N ? N : n_;
    for (int i = 0; i < n; ++i) {
        for (int j = 0; j <= i; ++j) {
            double s = a[i * n + j] + (i == j ? shift : 0.0);
            for (int k = 0; k < j; ++k) s -= l[i * n + k] * l[j * n + k];
            l[i * n + j] = i == j ? std::sqrt(s) : s / l[j * n + j];
        }
    }
}

template <int N>
inline void forward(int n_, const double* l, double* b) {
    const int n = N ? N : n_;
    for (int i = 0; i < n; ++i) {
        double s = b[i];
        for (int k = 0; k < i; ++k) s -= l[i * n + k] * b[k];
        b[i] = s / l[i * n + i];
    }
}

template <int N>
inline void backward(int n_, const double* l, double* b) {
    const int n = N ? N : n_;
    for (int i = n - 1; i >= 0; --i) {
        double s = b[i];
        for (int k = i + 1; k < n; ++k) s -= l[k * n + i] * b[k];
        b[i] = s / l[i * n + i];
    }
}

// w = l^-1, zeros above the diagonal
template <int N>
inline void invert_lower(int n_, const double* l, double* w) {
    const int n = N ? N : n_;
    for (int i = 0; i < n; ++i) {
        const double d = 1.0 / l[i * n + i];
        for (int j = 0; j < i; ++j) w[i * n + j] = 0.0;
        for (int k = 0; k < i; ++k) {
            const double c = l[i * n + k];
            for (int j = 0; j <= k; ++j) w[i * n + j] -= c * w[k * n + j];
        }
        for (int j = 0; j < i; ++j) w[i * n + j] *= d;
        w[i * n + i] = d;
        for (int j = i + 1; j < n; ++j) w[i * n + j] = 0.0;
    }
}

// ------------------------------------------------------------------------------------------ ragged rows

inline int rows(const Problem& p, i64 pair) { return int(p.row_start[pair + 1] - p.row_start[pair]); }
inline int block_size(const Problem& p, i64 c) { return int(p.block_start[c + 1] - p.block_start[c]); }

// probabilities of rows [row, end): softmax(offset + features . theta)
inline void softmax_rows(const Problem& p, i64 row, i64 end, const double* f, int n, const double* theta, double* out) {
    double top = -INFINITY, sum = 0.0;
    for (i64 i = row; i < end; ++i) {
        double z = p.offset[i];
        for (int j = 0; j < n; ++j) z += f[(i - row) * n + j] * theta[j];
        out[i - row] = z, top = std::max(top, z);
    }
    for (i64 i = 0; i < end - row; ++i) out[i] = std::exp(out[i] - top), sum += out[i];
    for (i64 i = 0; i < end - row; ++i) out[i] /= sum;
}

}  // namespace
