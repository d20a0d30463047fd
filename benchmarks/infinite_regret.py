"""Regret of UCMNLK on problems without an end (Park's two states, RiverSwim), and of the optimal and uniform policies.

    python benchmarks/infinite_regret.py [--quick] [--json]

T = 5000 steps, seeds 0..19.  Regret is exact, the sum of g* - gain of the policy in play; realised is g* T - sum r_t.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from livarot.envs import park_two_state, river_swim
from livarot.infinite import UCMNLK, FixedPolicy, InfiniteMDP, diameter, policy_gain, run_infinite, solve_average


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 seeds and 1000 steps")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    n_seeds, n_steps = (5, 1000) if options.quick else (20, 5000)
    models = {
        "Park, gap .01": park_two_state(),
        "Park, gap .1": park_two_state(gap=0.1),
        "RiverSwim, one-hot": river_swim(variant="park", shared_parameter=True),
        "RiverSwim, moves": river_swim(variant="park", shared_parameter=True, features="moves"),
    }
    rows = []
    for label, model in models.items():
        mdp = InfiniteMDP.from_mdp(model)
        best, wide, problem = solve_average(mdp), diameter(mdp), mdp.problem
        uniform = policy_gain(mdp, np.full((problem.n_states, problem.n_actions), 1.0 / problem.n_actions)).gain
        agents = {
            "optimal": FixedPolicy(best.policy),
            "ucmnlk": UCMNLK.average(n_steps, wide),
            "ucmnlk, no optimism": UCMNLK.average(n_steps, wide, beta_scale=0.0),
            "ucmnlk, their code's constants": UCMNLK.paper(n_steps, wide, problem.dim),
        }
        rows.append({"env": label, "agent": "uniform (exact)", "regret_mean": n_steps * float(best.gain - uniform[0])})
        for name, agent in agents.items():
            run_infinite(mdp, agent, 2, seed=range(n_seeds))  # compiles what is not compiled yet
            begin = time.process_time()
            result = run_infinite(mdp, agent, n_steps, seed=range(n_seeds))
            spent = time.process_time() - begin
            regret, realised = result.cumulative_regret[:, -1], np.asarray(result.cumulative_realised_regret)[:, -1]
            rows.append(
                {
                    "env": label,
                    "agent": name,
                    "gain": best.gain,
                    "diameter": wide,
                    "regret_mean": float(regret.mean()),
                    "regret_se": float(regret.std(ddof=1) / np.sqrt(n_seeds)),
                    "worst": float(regret.max()),
                    "realised_mean": float(realised.mean()),
                    "realised_se": float(realised.std(ddof=1) / np.sqrt(n_seeds)),
                    "epochs": float(result.n_epochs.mean()),
                    "steps_per_cpu_second": n_seeds * n_steps / spent,
                }
            )
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"| model | agent | regret at T = {n_steps} | se | worst seed | realised | se | epochs | steps per CPU s |")
    print("|---|---|---|---|---|---|---|---|---|")
    for row in rows:
        rest = ("regret_se", "worst", "realised_mean", "realised_se", "epochs")
        cells = [f"{row[key]:.1f}" if key in row else "" for key in rest]
        speed = f"{row['steps_per_cpu_second']:.0f}" if "steps_per_cpu_second" in row else ""
        print(f"| {row['env']} | {row['agent']} | {row['regret_mean']:.1f} | {' | '.join(cells)} | {speed} |")


if __name__ == "__main__":
    main()
