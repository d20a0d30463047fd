// Online mirror descent on |theta| <= B, one step per visited pair.
#pragma once
#include "yardstick_base.hpp"

namespace {

struct Learner {
    const Problem& p;
    const Options& o;
    i64 updates = 0, projections = 0;
    std::vector<double> M, Lf, rhs, step, prob, fac, trial, mean, gradient;
    std::vector<int32_t> moved;

    Learner(const Problem& problem, const Options& options) : p(problem), o(options) {
        i64 n = 1, U = 1;
        for (i64 c = 0; c < p.n_blocks; ++c) n = std::max<i64>(n, block_size(p, c));
        for (i64 k = 0; k < p.n_pairs; ++k) U = std::max<i64>(U, rows(p, k));
        for (auto* v : {&M, &Lf, &fac}) v->resize(n * n);
        for (auto* v : {&rhs, &step, &trial}) v->resize(p.dim);
        for (auto* v : {&mean, &gradient}) v->resize(n);
        prob.resize(U), moved.resize(p.n_blocks);
    }

    // out += weight x Hessian, out symmetric
    template <int N>
    inline void add_hessian(int U, int n_, const double* f, double weight, double* out) {
        const int n = N ? N : n_;
        if (U == 2) {
            const double c = weight * prob[0] * prob[1];
            for (int a = 0; a < n; ++a)
                for (int b = 0; b < n; ++b) out[a * n + b] += c * ((f[a] - f[n + a]) * (f[b] - f[n + b]));
            return;
        }
        for (int a = 0; a < n; ++a) mean[a] = 0.0;
        for (int i = 0; i < U; ++i)
            for (int a = 0; a < n; ++a) mean[a] += prob[i] * f[i * n + a];
        for (int i = 0; i < U; ++i) {
            const double c = weight * prob[i];
            for (int a = 0; a < n; ++a) {
                const double ca = c * (f[i * n + a] - mean[a]);
                for (int b = 0; b <= a; ++b) out[a * n + b] += ca * (f[i * n + b] - mean[b]);
            }
        }
        for (int a = 0; a < n; ++a)
            for (int b = a + 1; b < n; ++b) out[a * n + b] = out[b * n + a];
    }

    // one online mirror descent step of a parameter; theta (d,), gram (G,), W (G,) in block order
    template <int N>
    void update(i64 pair, int outcome, double* theta, double* gram, double* W) {
        const int c = p.pair_block[pair], U = rows(p, pair), n = N ? N : block_size(p, c);
        const i64 row = p.row_start[pair], at = p.block_start[c];
        const double* f = p.feat + p.feat_start[pair];
        double *t = theta + at, *h = gram + p.gram_start[c];
        ++updates;
        softmax_rows(p, row, row + U, f, n, t, prob.data());
        for (int a = 0; a < n; ++a) {
            double s = -f[outcome * n + a];
            for (int i = 0; i < U; ++i) s += prob[i] * f[i * n + a];
            gradient[a] = s;
        }
        for (int a = 0; a < n * n; ++a) M[a] = h[a];
        add_hessian<N>(U, n, f, o.step_size, M.data());
        cholesky<N>(n, M.data(), 0.0, Lf.data());
        forward<N>(n, Lf.data(), gradient.data());
        backward<N>(n, Lf.data(), gradient.data());
        for (int a = 0; a < n; ++a) t[a] -= o.step_size * gradient[a];
        double square = 0.0;
        for (i64 a = 0; a < p.dim; ++a) square += theta[a] * theta[a];
        if (square > p.param_bound * p.param_bound) project(c, theta, gram, std::sqrt(square));
        softmax_rows(p, row, row + U, f, n, t, prob.data());
        add_hessian<N>(U, n, f, 1.0, h);
        cholesky<N>(n, h, 0.0, Lf.data());
        invert_lower<N>(n, Lf.data(), W + p.gram_start[c]);
    }

    // theta(mu) = (M + mu)^-1 M theta with |theta(mu)| = B, Newton's method on 1/|theta(mu)|; the matrix M is
    // this->M on block c and gram elsewhere. Blocks where theta is zero stay zero.
    void project(int c, double* theta, const double* gram, double norm) {
        ++projections;
        int n_moved = 0;
        for (int b = 0; b < p.n_blocks; ++b) {
            const i64 at = p.block_start[b];
            const int n = block_size(p, b);
            const double* m = b == c ? M.data() : gram + p.gram_start[b];
            bool zero = true;
            for (int i = 0; i < n; ++i) zero = zero && theta[at + i] == 0.0;
            if (zero) continue;
            moved[n_moved++] = b;
            for (int i = 0; i < n; ++i) {
                double s = 0.0;
                for (int j = 0; j < n; ++j) s += m[i * n + j] * theta[at + j];
                rhs[at + i] = s;
            }
        }
        double mu = 0.0, slope = 0.0;
        const double bound = p.param_bound;
        for (int it = 0; it < 60; ++it) {
            double square = 0.0;
            slope = 0.0;
            for (int k = 0; k < n_moved; ++k) {
                const int b = moved[k];
                const i64 at = p.block_start[b];
                const int n = block_size(p, b);
                cholesky<0>(n, b == c ? M.data() : gram + p.gram_start[b], mu, fac.data());
                for (int i = 0; i < n; ++i) theta[at + i] = rhs[at + i];
                forward<0>(n, fac.data(), theta + at);
                backward<0>(n, fac.data(), theta + at);
                for (int i = 0; i < n; ++i) square += theta[at + i] * theta[at + i], trial[i] = theta[at + i];
                forward<0>(n, fac.data(), trial.data());
                for (int i = 0; i < n; ++i) slope += trial[i] * trial[i];
            }
            norm = std::sqrt(square);
            const double next = mu + square / slope * ((norm - bound) / bound);
            if (norm - bound <= 2e-16 * bound || !(next > mu)) break;
            mu = next;
        }
    }

    void learn(i64 pair, int outcome, double* theta, double* gram, double* W) {
        if (p.pair_block[pair] < 0) return;
        switch (block_size(p, p.pair_block[pair])) {
            case 1: update<1>(pair, outcome, theta, gram, W); break;
            case 2: update<2>(pair, outcome, theta, gram, W); break;
            case 3: update<3>(pair, outcome, theta, gram, W); break;
            default: update<0>(pair, outcome, theta, gram, W);
        }
    }
};

}  // namespace
