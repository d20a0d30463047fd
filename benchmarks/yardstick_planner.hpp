// Optimistic planning over the reachable states.
#pragma once
#include <memory>

#include "yardstick_lanes.hpp"

namespace {

struct Group {  // eight pairs with the same number of outcomes and the same block size
    int n_rows, n, same_block;
    i64 feat, rows;  // first vector of the packed features; first row of packed offsets and next states
    int32_t pair[LANES];
    i64 theta_at[LANES], gram_at[LANES];
};
struct GroupUse {
    mask live;
    int32_t group;
};
struct Single {
    int32_t slot, next;
};
struct Double {
    int32_t slot, n, up, down;  // difference = row 0 - row 1
    i64 diff, theta_at, gram_at;
    double offset;
};
struct Fixed {  // several outcomes whose probabilities do not depend on theta
    int32_t slot;
    i64 row, end;
};
struct Stage {
    std::vector<Single> singles;
    std::vector<Double> doubles;
    std::vector<Fixed> fixed;
    std::vector<GroupUse> groups;
};

struct Planner {
    const Problem& p;
    const Options& o;
    i64 K, G;
    std::vector<Stage> stages;
    std::vector<Group> groups;
    std::vector<double> diffs, fixed_p, q, qu;
    std::vector<int32_t> packed_next;
    vec *features = nullptr, *offsets = nullptr;
    std::unique_ptr<Lanes> lanes;

    Planner(const Problem& problem, const Options& options) : p(problem), o(options) {
        K = p.shared ? 1 : p.horizon;
        G = p.gram_start[p.n_blocks];
        q.resize(p.n_states * p.n_actions);
        qu.resize(p.n_states * p.n_actions);
        build();
    }
    ~Planner() { std::free(features), std::free(offsets); }
    Planner(const Planner&) = delete;
    Planner& operator=(const Planner&) = delete;

    void build() {
        const i64 S = p.n_states, A = p.n_actions;
        std::vector<char> live(p.n_pairs, 0);
        for (i64 h = 0; h < p.horizon; ++h)
            for (i64 i = p.node_start[h]; i < p.node_start[h + 1]; ++i)
                for (i64 a = 0; a < A; ++a) live[(p.stage_table[h] * S + p.node_state[i]) * A + a] = 1;

        std::vector<std::tuple<i64, int, int, i64>> many;  // (table, rows, block size, pair)
        for (i64 k = 0; k < p.n_pairs; ++k)
            if (live[k] && rows(p, k) > 2 && p.pair_block[k] >= 0)
                many.emplace_back(k / (S * A), rows(p, k), block_size(p, p.pair_block[k]), k);
        std::sort(many.begin(), many.end());
        std::vector<int32_t> group_of(p.n_pairs, -1), lane_of(p.n_pairs, 0);
        i64 n_feat = 0, n_rows = 0;
        int max_rows = 1, max_n = 1;
        for (size_t i = 0; i < many.size();) {
            const auto [table, U, n, first] = many[i];
            Group group{};
            group.n_rows = U, group.n = n, group.same_block = 1, group.feat = n_feat, group.rows = n_rows;
            int count = 0;
            while (count < LANES && i < many.size() && std::get<0>(many[i]) == table && std::get<1>(many[i]) == U &&
                   std::get<2>(many[i]) == n) {
                const i64 pair = std::get<3>(many[i++]);
                group_of[pair] = int32_t(groups.size());
                lane_of[pair] = count;
                group.pair[count++] = int32_t(pair);
            }
            for (int l = count; l < LANES; ++l) group.pair[l] = group.pair[0];
            for (int l = 0; l < LANES; ++l) {
                const int c = p.pair_block[group.pair[l]];
                group.theta_at[l] = p.block_start[c], group.gram_at[l] = p.gram_start[c];
                if (c != p.pair_block[group.pair[0]]) group.same_block = 0;
            }
            n_feat += i64(U) * n, n_rows += U;
            max_rows = std::max(max_rows, U), max_n = std::max(max_n, n);
            groups.push_back(group);
        }
        features = vectors(n_feat), offsets = vectors(n_rows);
        packed_next.resize(n_rows * LANES);
        for (const Group& group : groups)
            for (int l = 0; l < LANES; ++l) {
                const i64 pair = group.pair[l], row = p.row_start[pair];
                const double* f = p.feat + p.feat_start[pair];
                for (int i = 0; i < group.n_rows; ++i) {
                    offsets[group.rows + i][l] = p.offset[row + i];
                    packed_next[(group.rows + i) * LANES + l] = p.next_state[row + i];
                }
                for (int k = 0; k < group.n_rows * group.n; ++k) features[group.feat + k][l] = f[k];
            }

        stages.resize(p.horizon);
        std::vector<int32_t> use(groups.size());
        for (i64 h = 0; h < p.horizon; ++h) {
            Stage& stage = stages[h];
            std::fill(use.begin(), use.end(), -1);
            for (i64 i = p.node_start[h]; i < p.node_start[h + 1]; ++i)
                for (i64 a = 0; a < A; ++a) {
                    const i64 s = p.node_state[i], pair = (p.stage_table[h] * S + s) * A + a, row = p.row_start[pair];
                    const int32_t slot = int32_t(s * A + a);
                    const int U = rows(p, pair);
                    if (U == 1) {
                        stage.singles.push_back({slot, p.next_state[row]});
                    } else if (p.pair_block[pair] < 0) {
                        stage.fixed.push_back({slot, row, row + U});
                    } else if (U == 2) {
                        const int c = p.pair_block[pair], n = block_size(p, c);
                        const double* f = p.feat + p.feat_start[pair];
                        const i64 at = i64(diffs.size());
                        for (int j = 0; j < n; ++j) diffs.push_back(f[j] - f[n + j]);
                        stage.doubles.push_back({slot, n, p.next_state[row], p.next_state[row + 1], at,
                                                 p.block_start[c], p.gram_start[c], p.offset[row] - p.offset[row + 1]});
                    } else {
                        const int gi = group_of[pair];
                        if (use[gi] < 0) {
                            use[gi] = int32_t(stage.groups.size());
                            stage.groups.push_back({mask{}, gi});
                        }
                        stage.groups[use[gi]].live[lane_of[pair]] = -1;
                    }
                }
            if (!stage.fixed.empty() && fixed_p.empty()) fixed_p.resize(p.row_start[p.n_pairs]);
            for (const Fixed& f : stage.fixed) softmax_rows(p, f.row, f.end, nullptr, 0, 0, fixed_p.data() + f.row);
        }
        lanes.reset(new Lanes(o, max_rows, max_n));
    }

    void solve_group(const GroupUse& use, const double* theta, const double* W, double beta, const double* Vn,
                     const double* Un, double tolerance, double slack, const double* r, double& gap_max) {
        const Group& group = groups[use.group];
        const int U = group.n_rows, n = group.n;
        const int32_t* next = packed_next.data() + group.rows * LANES;
        Lanes& lane = *lanes;
        for (int i = 0; i < U; ++i)
            for (int l = 0; l < LANES; ++l) lane.V[i][l] = Vn[next[i * LANES + l]];
        if (o.certificate)
            for (int i = 0; i < U; ++i)
                for (int l = 0; l < LANES; ++l) lane.Vu[i][l] = Un[next[i * LANES + l]];
        if (!group.same_block)
            for (int l = 0; l < LANES; ++l) {
                for (int j = 0; j < n; ++j) lane.tl[j][l] = theta[group.theta_at[l] + j];
                for (int j = 0; j < n * n; ++j) lane.wl[j][l] = W[group.gram_at[l] + j];
            }
        const double* w = group.same_block ? W + group.gram_at[0] : nullptr;
        const Lanes::Answer answer = lane.solve(U, n, features + group.feat, offsets + group.rows, w,
                                                theta + group.theta_at[0], beta, use.live, tolerance, slack);
        for (int l = 0; l < LANES; ++l)
            if (use.live[l]) {
                const i64 slot = group.pair[l] % (p.n_states * p.n_actions);
                q[slot] = r[slot] + answer.value[l];
                if (o.certificate) qu[slot] = r[slot] + answer.upper[l];
                gap_max = std::max(gap_max, answer.gap[l]);
            }
    }

    static inline double closed_form(const Double& two, double width, double centre, const double* v) {
        const double a = v[two.up], b = v[two.down], z = a >= b ? centre + width : centre - width;
        return b + (a - b) / (1.0 + std::exp(-z));
    }

    template <int N>
    inline void two_outcomes(const Double& two, const double* theta, const double* W, double beta, const double* r,
                             const double* Vn, const double* Un) {
        const int n = N ? N : two.n;
        const double *d = diffs.data() + two.diff, *t = theta + two.theta_at, *w = W + two.gram_at;
        double z = two.offset, square = 0.0;
        for (int j = 0; j < n; ++j) {
            double s = 0.0;
            for (int k = 0; k <= j; ++k) s += w[j * n + k] * d[k];
            square += s * s, z += d[j] * t[j];
        }
        const double width = beta * std::sqrt(square);
        q[two.slot] = r[two.slot] + closed_form(two, width, z, Vn);
        if (o.certificate) qu[two.slot] = r[two.slot] + closed_form(two, width, z, Un);
    }

    // theta (K, d) and W (K, G) in block order; value, upper (H+1, S); policy (H, S). Returns the largest inner gap
    // relative to the range of the next stage's values.
    double plan(const double* theta, const double* W, double beta, double* value, double* upper, int32_t* policy) {
        const i64 H = p.horizon, S = p.n_states, A = p.n_actions;
        double worst = 0.0;
        std::memset(value + H * S, 0, sizeof(double) * S);
        if (o.certificate) std::memset(upper + H * S, 0, sizeof(double) * S);
        double low = 0.0, high = 0.0;  // range of value at stage h+1
        for (i64 h = H - 1; h >= 0; --h) {
            const Stage& stage = stages[h];
            const i64 k = p.shared ? 0 : h;
            const double *t = theta + k * p.dim, *w = W + k * G, *r = p.reward + h * S * A;
            const double *Vn = value + (h + 1) * S, *Un = o.certificate ? upper + (h + 1) * S : nullptr;
            for (const Single& one : stage.singles) {
                q[one.slot] = r[one.slot] + Vn[one.next];
                if (o.certificate) qu[one.slot] = r[one.slot] + Un[one.next];
            }
            for (const Fixed& f : stage.fixed) {
                double a = 0.0, b = 0.0;
                for (i64 i = f.row; i < f.end; ++i) {
                    a += fixed_p[i] * Vn[p.next_state[i]];
                    if (o.certificate) b += fixed_p[i] * Un[p.next_state[i]];
                }
                q[f.slot] = r[f.slot] + a, qu[f.slot] = r[f.slot] + b;
            }
            for (const Double& two : stage.doubles) switch (two.n) {
                    case 1: two_outcomes<1>(two, t, w, beta, r, Vn, Un); break;
                    case 2: two_outcomes<2>(two, t, w, beta, r, Vn, Un); break;
                    case 3: two_outcomes<3>(two, t, w, beta, r, Vn, Un); break;
                    default: two_outcomes<0>(two, t, w, beta, r, Vn, Un);
                }
            if (!stage.groups.empty()) {
                const double range = high - low, scale = std::max(std::abs(high), std::abs(low));
                const double slack = 4e-15 * scale, tolerance = o.tolerance * range + slack;
                double gap = 0.0;
                for (const GroupUse& use : stage.groups)
                    solve_group(use, t, w, beta, Vn, Un, tolerance, slack, r, gap);
                if (range > 0.0) worst = std::max(worst, gap / range);
            }
            low = INFINITY, high = -INFINITY;
            for (i64 i = p.node_start[h]; i < p.node_start[h + 1]; ++i) {
                const i64 s = p.node_state[i];
                const double* qs = q.data() + s * A;
                double best_q = qs[0], top = qs[0];
                int32_t chosen = 0;
                for (i64 a = 1; a < A; ++a) {
                    top = std::max(top, qs[a]);
                    if (qs[a] > best_q + 1e-9 * (1.0 + std::abs(best_q))) best_q = qs[a], chosen = int32_t(a);
                }
                value[h * S + s] = top, policy[h * S + s] = chosen;
                low = std::min(low, top), high = std::max(high, top);
                if (o.certificate) upper[h * S + s] = *std::max_element(qu.data() + s * A, qu.data() + (s + 1) * A);
            }
        }
        return worst;
    }

    void factor(const double* gram, double* W) const {  // (K, G) -> inverse Cholesky factors
        std::vector<double> l;
        for (i64 k = 0; k < K; ++k)
            for (i64 c = 0; c < p.n_blocks; ++c) {
                const int n = block_size(p, c);
                l.assign(size_t(n) * n, 0.0);
                cholesky<0>(n, gram + k * G + p.gram_start[c], 0.0, l.data());
                invert_lower<0>(n, l.data(), W + k * G + p.gram_start[c]);
            }
    }

    void to_blocks(const double* theta, double* out) const {
        for (i64 k = 0; k < K; ++k)
            for (i64 j = 0; j < p.dim; ++j) out[k * p.dim + j] = theta[k * p.dim + p.block_coords[j]];
    }
    void from_blocks(const double* theta, double* out) const {
        for (i64 k = 0; k < K; ++k)
            for (i64 j = 0; j < p.dim; ++j) out[k * p.dim + p.block_coords[j]] = theta[k * p.dim + j];
    }
};

}  // namespace
