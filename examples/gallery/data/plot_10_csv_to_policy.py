"""
From a CSV file to a robust policy
==================================

A log of machines, a fitted logit model, and two policies: the best one if the fit is right, and the best one against
every model that the data do not rule out.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import livarot
from livarot.data import MNLTransition, plan_robust, robust_radius

here = next(p for p in [Path.cwd(), *Path.cwd().parents] if (p / "examples" / "machines").is_dir())
machines = here / "examples" / "machines"
log, reachable = pd.read_csv(machines / "log.csv"), pd.read_csv(machines / "reachable.csv")
fit = MNLTransition(features=list(reachable.columns[3:]), reachable=reachable).fit(log)
print(fit.summary())

# %%
# Planning: nominal, and robust for a growing radius; ``robust_radius`` is the one that 95 % of the refits stay within.

pays = pd.read_csv(machines / "rewards.csv").set_index(["state", "action"])["reward"]
mdp = fit.to_mdp(pays, horizon=26, start="new")
start = mdp.problem.start
chosen = robust_radius(fit, mdp, 0.95)
nominal = livarot.solve(mdp).policy
shares = [0.01, 0.03, 0.1, 0.3, 1.0, 3.0]
worst, worst_nominal, if_right = [], [], []
for share in shares:
    plan = plan_robust(fit, mdp, share * chosen)
    worst.append(start @ plan.value[0])
    worst_nominal.append(start @ livarot.evaluate_robust(mdp, nominal, radius=share * chosen)[0])
    if_right.append(start @ livarot.evaluate(mdp, plan.policy)[0])

figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
axes.plot(shares, if_right, "o-", label="robust policy, if the fit is right")
axes.plot(shares, worst, "^-.", label="robust policy, at worst")
axes.plot(shares, worst_nominal, "s--", label="nominal policy, at worst")
axes.axvline(1.0, color="grey", linestyle=":", label="radius that the data demand")
axes.set(xscale="log", xlabel="radius, in multiples of the one the data demand", ylabel="weeks of full pay out of 26")
_ = axes.legend()
