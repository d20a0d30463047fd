// Eight inner problems at a time, one per SIMD lane, all with U outcomes in n whitened coordinates:
//     maximise f(x) = sum_i softmax(z0 + Y x)_i V_i   over |x| <= beta.
#pragma once
#include "yardstick_base.hpp"

namespace {

struct Lanes {
    const Options& o;
    mask solves{}, evaluations{}, wide_solves{};  // counters, per lane
    vec *Y, *z0, *V, *Vu, *e, *p0, *norm2, *ep, *em, *x, *g, *xn, *gn, *wl, *tl;

    Lanes(const Options& options, int max_rows, int max_n) : o(options) {
        Y = vectors(i64(max_rows) * max_n), wl = vectors(i64(max_n) * max_n), tl = vectors(max_n);
        for (vec** v : {&z0, &V, &Vu, &e, &p0, &norm2, &ep, &em}) *v = vectors(max_rows);
        for (vec** v : {&x, &g, &xn, &gn}) *v = vectors(max_n);
    }
    ~Lanes() {
        for (vec* v : {Y, z0, V, Vu, e, p0, norm2, ep, em, x, g, xn, gn, wl, tl}) std::free(v);
    }
    Lanes(const Lanes&) = delete;
    Lanes& operator=(const Lanes&) = delete;

    template <int B>
    static inline void dot_rows(int n, const vec* y, const vec* at, vec* u) {
        vec s[B];
        for (int b = 0; b < B; ++b) s[b] = u[b];
        for (int j = 0; j < n; ++j)
            for (int b = 0; b < B; ++b) s[b] += y[b * n + j] * at[j];
        for (int b = 0; b < B; ++b) u[b] = s[b];
    }
    template <int B>
    static inline void sum_rows(int U, int n, const vec* y, const vec* c, vec* out) {
        vec s[B] = {};
        for (int i = 0; i < U; ++i)
            for (int b = 0; b < B; ++b) s[b] += c[i] * y[i * n + b];
        for (int b = 0; b < B; ++b) out[b] = s[b];
    }
    static inline void add_products(int U, int n, const vec* y, const vec* at, vec* u) {  // u += Y at
        int i = 0;
        for (; i + 4 <= U; i += 4) dot_rows<4>(n, y + i * n, at, u + i);
        for (; i < U; ++i) dot_rows<1>(n, y + i * n, at, u + i);
    }
    static inline void combine(int U, int n, const vec* y, const vec* c, vec* out) {  // out = Y' c
        int j = 0;
        for (; j + 5 <= n; j += 5) sum_rows<5>(U, n, y + j, c, out + j);
        for (; j + 2 <= n; j += 2) sum_rows<2>(U, n, y + j, c, out + j);
        for (; j < n; ++j) sum_rows<1>(U, n, y + j, c, out + j);
    }

    // f and its gradient at a point
    inline vec evaluate(int U, int n, const vec* at, vec* gradient) {
        for (int i = 0; i < U; ++i) e[i] = z0[i];
        add_products(U, n, Y, at, e);
        vec top = e[0];
        for (int i = 1; i < U; ++i) top = vmax(top, e[i]);
        vec sum = {}, f = {};
        for (int i = 0; i < U; ++i) {
            e[i] = vexp(e[i] - top);
            sum += e[i], f += e[i] * V[i];
        }
        const vec inverse = 1.0 / sum;
        f *= inverse;
        for (int i = 0; i < U; ++i) e[i] *= inverse * (V[i] - f);
        combine(U, n, Y, e, gradient);
        return f;
    }

    // y_i = W phi_i, blocks of four rows by four coordinates; W is lower triangular
    template <int R, int C, bool SAME>
    static inline void whiten_tile(int n, const vec* f, const double* w, const vec* wl, int j, vec* out) {
        vec s[R][C] = {};
        const int last = j + C;
        for (int m = 0; m < last; ++m)
            for (int c = 0; c < C; ++c) {
                const vec wv = SAME ? splat(w[(j + c) * n + m]) : wl[(j + c) * n + m];
                for (int r = 0; r < R; ++r) s[r][c] += f[r * n + m] * wv;
            }
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < C; ++c) out[r * n + j + c] = s[r][c];
    }
    template <int R, bool SAME>
    static inline void whiten_rows(int n, const vec* f, const double* w, const vec* wl, vec* out) {
        int j = 0;
        for (; j + 4 <= n; j += 4) whiten_tile<R, 4, SAME>(n, f, w, wl, j, out);
        for (; j + 2 <= n; j += 2) whiten_tile<R, 2, SAME>(n, f, w, wl, j, out);
        for (; j < n; ++j) whiten_tile<R, 1, SAME>(n, f, w, wl, j, out);
    }
    template <bool SAME>
    static inline void whiten(int U, int n, const vec* f, const double* w, const vec* wl, vec* out) {
        int i = 0;
        for (; i + 4 <= U; i += 4) whiten_rows<4, SAME>(n, f + i * n, w, wl, out + i * n);
        for (; i < U; ++i) whiten_rows<1, SAME>(n, f + i * n, w, wl, out + i * n);
    }

    // Shifted power ascent from x, where f and g are known. Returns the first-order gap.
    inline vec ascend(int U, int n, double beta, vec tolerance, vec slack, mask active, vec& f) {
        vec gg = {}, gx = {};
        for (int j = 0; j < n; ++j) gg += g[j] * g[j], gx += g[j] * x[j];
        vec norm = vsqrt(gg), gap = beta * norm - gx, sigma = {};
        active &= gap > tolerance;
        for (i64 it = 0; it < o.max_iterations && any(active); ++it) {
            vec ww = splat(1e-300);
            for (int j = 0; j < n; ++j) {
                xn[j] = g[j] + sigma * x[j];
                ww += xn[j] * xn[j];
            }
            const vec s = vmin(beta / vsqrt(ww), 1.0 / vmax(sigma, splat(1e-300)));
            for (int j = 0; j < n; ++j) xn[j] *= s;
            const vec fn = evaluate(U, n, xn, gn);
            evaluations -= active;
            const mask accept = active & (fn >= f - slack), refuse = active & ~accept;
            vec xx = splat(1e-300), xg = {};
            gg = vec{}, gx = vec{};
            for (int j = 0; j < n; ++j) {
                const vec dx = xn[j] - x[j], dg = gn[j] - g[j];
                xx += dx * dx, xg += dx * dg;
                x[j] = accept ? xn[j] : x[j];
                g[j] = accept ? gn[j] : g[j];
                gg += g[j] * g[j], gx += g[j] * x[j];
            }
            norm = vsqrt(gg);
            sigma = accept ? vmax(-xg / xx, 0.03 * sigma) : sigma;
            sigma = refuse ? vmax(4.0 * sigma, norm * (2.0 / beta)) : sigma;
            f = accept ? fn : f;
            gap = active ? beta * norm - gx : gap;
            active &= gap > tolerance;
        }
        return gap;
    }

    // Maximum of (sum_i p_i e^{d_i} V_i) / (sum_i p_i e^{d_i}) over |d_i| <= b_i: d_i = b_i exactly where V_i exceeds
    // the maximum, found by Dinkelbach's iteration. ep, em hold p_i e^{+-b_i}.
    inline vec box_maximum(int U, vec level) {
        for (int it = 0; it <= U; ++it) {
            vec a = {}, b = {};
            for (int i = 0; i < U; ++i) {
                const vec w = Vu[i] > level ? ep[i] : em[i];
                a += w * Vu[i], b += w;
            }
            const vec next = a / b;
            const mask rising = next > level;
            level = vmax(level, next);
            if (!any(rising)) break;
        }
        return level;
    }

    struct Answer {
        vec value, upper, gap;
    };

    // V (and Vu, the upper values, with the certificate) are loaded; features (U, n), offsets (U,); the whitening
    // matrix and the centre are w, theta when the lanes share their block, else wl, tl (loaded).
    Answer solve(int U, int n, const vec* features, const vec* offsets, const double* w, const double* theta,
                 double beta, mask live, double tolerance, double slack) {
        const bool certify = o.certificate != 0;
        vec hi = V[0], lo = V[0], hiu = {}, lou = {};
        for (int i = 1; i < U; ++i) hi = vmax(hi, V[i]), lo = vmin(lo, V[i]);
        if (certify) {
            hiu = Vu[0], lou = Vu[0];
            for (int i = 1; i < U; ++i) hiu = vmax(hiu, Vu[i]), lou = vmin(lou, Vu[i]);
        }
        solves -= live;
        const mask varies = live & (hi > lo);
        if (!any(varies) && !(certify && any(live & (hiu > lou)))) return {hi, hiu, vec{}};

        // the centre: y_i, probabilities, mean of y, distances to it, gradient
        if (w) {
            for (int j = 0; j < n; ++j) tl[j] = splat(theta[j]);
            whiten<true>(U, n, features, w, nullptr, Y);
        } else {
            whiten<false>(U, n, features, nullptr, wl, Y);
        }
        vec raw = {};
        if (certify)
            for (int i = 0; i < U; ++i) {
                vec s = {};
                for (int j = 0; j < n; ++j) s += Y[i * n + j] * Y[i * n + j];
                raw = vmax(raw, s);
            }
        for (int i = 0; i < U; ++i) z0[i] = offsets[i];
        add_products(U, n, features, tl, z0);
        vec top = z0[0], sum = {}, f = {}, wide = {};
        for (int i = 1; i < U; ++i) top = vmax(top, z0[i]);
        for (int i = 0; i < U; ++i) p0[i] = vexp(z0[i] - top), sum += p0[i];
        const vec inverse = 1.0 / sum;
        for (int i = 0; i < U; ++i) p0[i] *= inverse, f += p0[i] * V[i];
        combine(U, n, Y, p0, gn);
        for (int i = 0; i < U; ++i) {
            vec s = {};
            for (int j = 0; j < n; ++j) Y[i * n + j] -= gn[j], s += Y[i * n + j] * Y[i * n + j];
            norm2[i] = s, wide = vmax(wide, s);
        }
        for (int i = 0; i < U; ++i) e[i] = p0[i] * (V[i] - f);
        combine(U, n, Y, e, g);
        for (int j = 0; j < n; ++j) x[j] = vec{};

        vec gap;
        if (o.frank_wolfe > 0) {
            gap = frank_wolfe(U, n, beta, f);
            evaluations -= live * o.frank_wolfe;
        } else {
            const vec tol = splat(tolerance), sl = splat(slack);
            gap = ascend(U, n, beta, tol, sl, varies, f);
            const mask broad = varies & (wide * (beta * beta) > splat(1.0));
            if (any(broad)) extra_starts(U, n, beta, tol, sl, broad, hi, f, gap);
        }
        const vec upper = certify ? upper_bound(U, n, beta, hiu, lou, raw, wide) : vec{};
        return {varies ? f : hi, upper, varies ? gap : vec{}};
    }

    // from x = 0 with steps 2/(k+2)
    vec frank_wolfe(int U, int n, double beta, vec& f) {
        vec gg = {}, gx = {};
        for (i64 k = 0; k < o.frank_wolfe; ++k) {
            gg = splat(1e-300);
            for (int j = 0; j < n; ++j) gg += g[j] * g[j];
            const double gamma = 2.0 / (double(k) + 2.0);
            const vec s = beta / vsqrt(gg);
            for (int j = 0; j < n; ++j) x[j] += gamma * (s * g[j] - x[j]);
            f = evaluate(U, n, x, g);
        }
        gg = vec{};
        for (int j = 0; j < n; ++j) gg += g[j] * g[j], gx += g[j] * x[j];
        return beta * vsqrt(gg) - gx;
    }

    // climbs from beta (y_j - ybar) / |y_j - ybar| for the best-valued outcomes j, and keeps the best
    void extra_starts(int U, int n, double beta, vec tol, vec sl, mask broad, vec hi, vec& value, vec& gap) {
        mask taken[LANES];  // outcome chosen by each earlier start, per lane
        wide_solves -= broad;
        const int count = int(std::min<i64>({o.extra_starts, U, LANES}));
        for (int k = 0; k < count; ++k) {
            mask active = broad & (hi - value > tol);
            if (!any(active)) return;
            vec top = splat(-INFINITY), size = {};
            mask which = {};
            for (int i = 0; i < U; ++i) {
                mask fresh = V[i] > top;
                for (int c = 0; c < k; ++c) fresh &= taken[c] != i;
                top = fresh ? V[i] : top;
                which = fresh ? mask{} + i : which;
                size = fresh ? norm2[i] : size;
            }
            taken[k] = which;
            active &= size > splat(1e-300);
            const vec scale = beta / vsqrt(vmax(size, splat(1e-300)));
            for (int j = 0; j < n; ++j) x[j] = vec{};
            for (int i = 0; i < U; ++i) {
                const mask here = which == i;
                if (!any(here)) continue;
                for (int j = 0; j < n; ++j) x[j] = here ? scale * Y[i * n + j] : x[j];
            }
            vec f = evaluate(U, n, x, g);
            evaluations -= active;
            const vec found = ascend(U, n, beta, tol, sl, active, f);
            const mask better = active & (f > value);
            value = better ? f : value;
            gap = better ? found : gap;
        }
    }

    // min of the box relaxation, the variance-aware bound and the largest value, for the values Vu
    vec upper_bound(int U, int n, double beta, vec hi, vec lo, vec raw, vec wide) {
        vec f = {}, gg = {};
        for (int i = 0; i < U; ++i) f += p0[i] * Vu[i];
        for (int i = 0; i < U; ++i) e[i] = p0[i] * (Vu[i] - f);
        combine(U, n, Y, e, gn);
        for (int j = 0; j < n; ++j) gg += gn[j] * gn[j];
        const vec taylor = f + beta * vsqrt(gg) + (hi - lo) * (0.5 * beta * beta) * vmin(raw, wide);
        for (int i = 0; i < U; ++i) {
            const vec b = vexp(vmin(beta * vsqrt(norm2[i]), splat(300.0)));
            ep[i] = p0[i] * b, em[i] = p0[i] / b;
        }
        return vmin(vmin(box_maximum(U, f), taylor), hi);
    }
};

}  // namespace
