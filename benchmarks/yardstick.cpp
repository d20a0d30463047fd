// LIVAROT's learning phase in C++: a generic implementation on flat ragged arrays, one thread, one seed at a
// time, reachable states only. It is the practical limit the library is compared with, and an independent
// check of its results. Layout: Flat in workloads.py. Build: yardstick.py.
//
// Inner problem of a pair with outcomes i, in whitened coordinates (gram = L L', W = L^-1, y_i = W phi_i):
//     maximise f(x) = sum_i softmax(z0 + Y x)_i V_i   over |x| <= beta.
//   one outcome      V(next)
//   two outcomes     closed form: the logit gap moves by beta |y_1 - y_2| towards the larger value
//   more             eight pairs at a time, one per SIMD lane: shifted power steps
//                    x+ = s (g + sigma x), s = min(beta / |g + sigma x|, 1 / sigma), from x = 0 with sigma = 0,
//                    sigma = the Barzilai-Borwein curvature, a step that lowers f is refused and sigma grows;
//                    stop at beta |g| - g.x <= tolerance x range of V; extra starts towards the best outcomes
//                    when the ellipsoid is wide. Option: plain Frank-Wolfe with a fixed number of iterations.
#include "yardstick_learner.hpp"
#include "yardstick_planner.hpp"

namespace {

inline int draw(const double* prob, int n, double u) {
    double sum = 0.0;
    for (int i = 0; i < n - 1; ++i) {
        sum += prob[i];
        if (sum > u) return i;
    }
    return n - 1;
}

// The simulator and the judge: they know theta*.
struct World {
    const Planner& planner;
    const Problem& p;
    i64 n_rows;
    std::vector<double> kernel, value;  // (H, rows), (H+1, S)

    explicit World(const Planner& known) : planner(known), p(known.p), n_rows(p.row_start[p.n_pairs]) {
        kernel.resize(p.horizon * n_rows);
        value.resize((p.horizon + 1) * p.n_states);
    }
    void load(const double* theta_star) {  // (K, d) in block order
        for (i64 h = 0; h < p.horizon; ++h)
            for (i64 i = p.node_start[h]; i < p.node_start[h + 1]; ++i)
                for (i64 a = 0; a < p.n_actions; ++a) {
                    const i64 pair = (p.stage_table[h] * p.n_states + p.node_state[i]) * p.n_actions + a;
                    const i64 row = p.row_start[pair];
                    const int c = p.pair_block[pair];
                    const double* t = theta_star + (p.shared ? 0 : h) * p.dim + (c < 0 ? 0 : p.block_start[c]);
                    softmax_rows(p, row, p.row_start[pair + 1], p.feat + p.feat_start[pair],
                                 c < 0 ? 0 : block_size(p, c), t, kernel.data() + h * n_rows + row);
                }
    }
    double action_value(i64 h, i64 s, i64 a) const {
        const i64 pair = (p.stage_table[h] * p.n_states + s) * p.n_actions + a;
        const double *k = kernel.data() + h * n_rows, *next = value.data() + (h + 1) * p.n_states;
        double sum = p.reward[(h * p.n_states + s) * p.n_actions + a];
        for (i64 i = p.row_start[pair]; i < p.row_start[pair + 1]; ++i) sum += k[i] * next[p.next_state[i]];
        return sum;
    }
    double start_value(const double* v) const {
        double sum = 0.0;
        for (i64 i = p.node_start[0]; i < p.node_start[1]; ++i) sum += p.start[p.node_state[i]] * v[p.node_state[i]];
        return sum;
    }
    double judge(const int32_t* policy) {  // value of a policy, or the optimal value when there is none
        const i64 S = p.n_states;
        for (i64 h = p.horizon - 1; h >= 0; --h)
            for (i64 i = p.node_start[h]; i < p.node_start[h + 1]; ++i) {
                const i64 s = p.node_state[i];
                double v = action_value(h, s, policy ? policy[h * S + s] : 0);
                if (!policy)
                    for (i64 a = 1; a < p.n_actions; ++a) v = std::max(v, action_value(h, s, a));
                value[h * S + s] = v;
            }
        return start_value(value.data());
    }
    // every stage, as the library's judge does: its result keeps one bit for each
    std::vector<uint8_t> stage_covered = std::vector<uint8_t>(planner.K);
    bool covered(const double* theta, const double* star, const double* gram, double beta) {
        bool all = true;
        for (i64 k = 0; k < planner.K; ++k) {
            double square = 0.0;
            for (i64 c = 0; c < p.n_blocks; ++c) {
                const i64 at = k * p.dim + p.block_start[c];
                const int n = block_size(p, c);
                const double* m = gram + k * planner.G + p.gram_start[c];
                for (int i = 0; i < n; ++i) {
                    double s = 0.0;
                    for (int j = 0; j < n; ++j) s += m[i * n + j] * (theta[at + j] - star[at + j]);
                    square += s * (theta[at + i] - star[at + i]);
                }
            }
            stage_covered[k] = square <= beta * beta;
            all = all && stage_covered[k];
        }
        return all;
    }
};

Stats counts(const Planner& planner, const Learner* learner) {
    Stats total{};
    for (int l = 0; l < LANES; ++l) {
        total.solves += planner.lanes->solves[l];
        total.evaluations += planner.lanes->evaluations[l];
        total.wide += planner.lanes->wide_solves[l];
    }
    if (learner) total.updates = learner->updates, total.projections = learner->projections;
    return total;
}

}  // namespace

extern "C" {

// All seeds of a run. Per-episode outputs are (R, T); policies (R, T, H, S) may be null; theta (R, K, d); gram
// (R, K, G).
void run_seeds(const Problem* problem, const Options* options, i64 n_seeds, i64 n_episodes, const double* theta_star,
               const double* uniforms, const double* radii, double* realised, double* regret, double* believed,
               double* upper_start, double* inner_gap, uint8_t* covered, int32_t* policies, double* theta_out,
               double* gram_out, Stats* stats) {
    Planner planner(*problem, *options);
    Learner learner(*problem, *options);
    World world(planner);
    const Problem& p = *problem;
    const i64 H = p.horizon, S = p.n_states, A = p.n_actions, K = planner.K, G = planner.G, d = p.dim;
    std::vector<double> theta(K * d), gram(K * G), W(K * G), star(K * d), value((H + 1) * S), upper((H + 1) * S);
    std::vector<int32_t> policy(H * S, 0);
    for (i64 r = 0; r < n_seeds; ++r) {
        planner.to_blocks(theta_star + r * K * d, star.data());
        world.load(star.data());
        const double optimum = options->judge ? world.judge(nullptr) : 0.0;
        std::fill(theta.begin(), theta.end(), 0.0);
        std::fill(gram.begin(), gram.end(), 0.0);
        for (i64 k = 0; k < K; ++k)
            for (i64 c = 0; c < p.n_blocks; ++c) {
                const i64 n = block_size(p, c);
                for (i64 i = 0; i < n; ++i) gram[k * G + p.gram_start[c] + i * n + i] = options->reg;
            }
        planner.factor(gram.data(), W.data());
        for (i64 t = 0; t < n_episodes; ++t) {
            const i64 at = r * n_episodes + t;
            const double beta = radii[t];
            inner_gap[at] = planner.plan(theta.data(), W.data(), beta, value.data(), upper.data(), policy.data());
            believed[at] = world.start_value(value.data());
            if (options->certificate) upper_start[at] = world.start_value(upper.data());
            if (options->judge) {
                regret[at] = optimum - world.judge(policy.data());
                covered[at] = world.covered(theta.data(), star.data(), gram.data(), beta);
            }
            if (policies) std::memcpy(policies + at * H * S, policy.data(), sizeof(int32_t) * H * S);
            const double* u = uniforms + at * (H + 1);
            i64 s = draw(p.start, int(S), u[0]);
            double total = 0.0;
            for (i64 h = 0; h < H; ++h) {
                const i64 a = policy[h * S + s], pair = (p.stage_table[h] * S + s) * A + a, row = p.row_start[pair];
                const int i = draw(world.kernel.data() + h * world.n_rows + row, rows(p, pair), u[1 + h]);
                const i64 k = p.shared ? 0 : h;
                total += p.reward[(h * S + s) * A + a];
                learner.learn(pair, i, theta.data() + k * d, gram.data() + k * G, W.data() + k * G);
                s = p.next_state[row + i];
            }
            realised[at] = total;
        }
        planner.from_blocks(theta.data(), theta_out + r * K * d);
        std::memcpy(gram_out + r * K * G, gram.data(), sizeof(double) * K * G);
    }
    *stats = counts(planner, &learner);
}

// One planning pass. theta (K, d), gram (K, G); value, upper (H+1, S); policy (H, S). Returns the relative inner gap.
double plan_once(const Problem* problem, const Options* options, const double* theta, const double* gram, double beta,
                 double* value, double* upper, int32_t* policy, Stats* stats) {
    Planner planner(*problem, *options);
    std::vector<double> t(planner.K * problem->dim), W(planner.K * planner.G);
    planner.to_blocks(theta, t.data());
    planner.factor(gram, W.data());
    const double gap = planner.plan(t.data(), W.data(), beta, value, upper, policy);
    *stats = counts(planner, nullptr);
    return gap;
}

}  // extern "C"
