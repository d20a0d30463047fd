"""
How far can a value be trusted?
===============================

The value of a policy in a fitted model is an estimate. Intervals by the delta method and by the bootstrap, for logs of
different lengths; the simulator's own value is the truth.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import livarot
from livarot.data import MNLTransition, value_interval

truth = livarot.envs.machine_maintenance(12)
problem = truth.problem
names = [f"f{k}" for k in range(problem.dim)]
table = [
    (s, a, int(after), *row)
    for s in range(problem.n_states)
    for a in range(problem.n_actions)
    for after, row in zip(problem.next_states(0, s, a), problem.features(0, s, a), strict=True)
]
reachable = pd.DataFrame(table, columns=["state", "action", "next_state", *names])
uniform = np.full((problem.horizon, problem.n_states, problem.n_actions), 1 / problem.n_actions)
best = livarot.solve(truth).policy
value = problem.start @ livarot.evaluate(truth, best)[0]
pays = {(s, a): float(problem.reward[0, s, a]) for s in range(problem.n_states) for a in range(problem.n_actions)}

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for place, machines in enumerate((30, 100, 300)):
    episodes = livarot.simulate(truth, uniform, machines, seed=1)
    steps = np.stack([episodes.states[:, :-1], episodes.actions, episodes.states[:, 1:]], axis=-1).reshape(-1, 3)
    log = pd.DataFrame(steps, columns=["state", "action", "next_state"])
    fit = MNLTransition(features=names, reachable=reachable, reg=0.1).fit(log)
    mdp = fit.to_mdp(pays, horizon=12, start=0)
    for shift, kind, style in ((-0.1, "delta", "C0o"), (0.1, "bootstrap", "C1s")):
        found = value_interval(fit, mdp, best, kind=kind)
        wings = [[found.value - found.lower], [found.upper - found.value]]
        label = f"{kind}, 95 %" if place == 0 else None
        axes.errorbar([place + shift], [found.value], wings, fmt=style, capsize=4, label=label)
axes.axhline(value, color="grey", linestyle="--", label="truth")
axes.set(xticks=range(3), xticklabels=["30 machines", "100", "300"], ylabel="value of the policy, weeks of full pay")
_ = axes.legend()
