"""Regret of LIVAROT, OFUL-MLogB and OFU-MNL++ on multinomial logit bandits, each tuned with the same budget.

    python benchmarks/bandit.py [--quick] [--json]

Every agent is tuned per bandit on seeds 1000..1004 (12 points, the same grid) and then run once on seeds 0..19 with the
settings found, and once with its defaults.  Exact regret after T = 1000 episodes, mean and standard error over seeds.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np

from livarot import agents, envs
from livarot.running.run import run
from livarot.running.tune import tune

GRID = {"beta_scale": [0.005, 0.02, 0.1], "reg": [1.0, 10.0], "step_size": [1.0, 3.0]}
BANDITS = {
    "K=2": {"n_arms": 20, "n_outcomes": 2, "dim": 4},
    "K=3": {"n_arms": 20, "n_outcomes": 3, "dim": 4},
    "K=5": {"n_arms": 20, "n_outcomes": 5, "dim": 4},
    "K=3 kronecker": {"n_arms": 20, "n_outcomes": 3, "dim": 4, "kronecker": True},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="5 seeds and 200 episodes")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    n_seeds, n_episodes = (5, 200) if options.quick else (20, 1000)
    rows = []
    for label, sizes in BANDITS.items():
        mdp = envs.mnl_bandit(**sizes)
        rows.append(measured(label, "uniform", agents.Uniform(), mdp, n_episodes, n_seeds))
        for kind in (agents.Livarot, agents.OFULMLogB, agents.OFUMNLPP):
            rows.append(measured(label, f"{kind.name} default", kind(), mdp, n_episodes, n_seeds))
            best = tune(mdp, kind, GRID, n_episodes).best
            rows.append(measured(label, f"{kind.name} tuned", best, mdp, n_episodes, n_seeds))
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"| bandit | agent | regret at T = {n_episodes} | se | worst seed | episodes per CPU s |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        numbers = f"{row['regret_mean']:.2f} | {row['regret_se']:.2f} | {row['worst']:.2f}"
        print(f"| {row['env']} | {row['agent']} | {numbers} | {row['episodes_per_cpu_second']:.0f} |")


def measured(label, name, agent, mdp, n_episodes, n_seeds) -> dict[str, object]:
    run(mdp, agent, 2, seed=range(n_seeds))  # compiles what is not compiled yet
    begin = time.process_time()
    regret = run(mdp, agent, n_episodes, seed=range(n_seeds)).regret.sum(axis=1)
    spent = time.process_time() - begin
    return {
        "env": label,
        "agent": name,
        "settings": repr(agent),
        "regret_mean": float(regret.mean()),
        "regret_se": float(regret.std(ddof=1) / np.sqrt(n_seeds)),
        "worst": float(regret.max()),
        "episodes_per_cpu_second": n_seeds * n_episodes / spent,
    }


if __name__ == "__main__":
    main()
