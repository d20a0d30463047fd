"""
Is the log enough?  A pessimistic plan
======================================

The best policy of a fitted model is chosen with the same data that it is judged by: its value is too good to be true,
the more so the shorter the log. A pessimistic plan maximises a lower confidence bound instead, and says what it is.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import livarot
from livarot.data import MNLTransition, plan_pessimistic

here = next(p for p in [Path.cwd(), *Path.cwd().parents] if (p / "examples" / "machines").is_dir())
machines = here / "examples" / "machines"
log, reachable = pd.read_csv(machines / "log.csv"), pd.read_csv(machines / "reachable.csv")
pays = pd.read_csv(machines / "rewards.csv").set_index(["state", "action"])["reward"]

sizes = [5, 10, 20, 40, 80]
promised, nominal, lower = [], [], []
for size in sizes:
    rows = log[log.machine < size]
    fit = MNLTransition(features=list(reachable.columns[3:]), reachable=reachable, reg=0.1).fit(rows)
    mdp = fit.to_mdp(pays, horizon=26, start="new")
    promised.append(mdp.problem.start @ livarot.solve(mdp).value[0])
    careful = plan_pessimistic(fit, mdp, 0.95)
    nominal.append(careful.nominal)
    lower.append(careful.lower)

# %%
# What the optimal policy of the fit promises, and what the pessimistic one promises and guarantees (95 %):

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.plot(sizes, promised, "s--", label="optimal in the fit: promised")
axes.plot(sizes, nominal, "o-", label="pessimistic: value in the fit")
axes.plot(sizes, lower, "^-.", label="pessimistic: lower bound, 95 %")
axes.set(
    xscale="log", xticks=sizes, xticklabels=sizes, xlabel="machines in the log", ylabel="weeks of full pay out of 26"
)
axes.minorticks_off()
_ = axes.legend()
