"""
Problems without an end
=======================

Average reward on the two-state problem of Park, Kwon and Lee: exact gain with a certificate, and UCMNLK learning on one
trajectory.
"""

import matplotlib.pyplot as plt

import livarot
from livarot.infinite import UCMNLK, FixedPolicy, InfiniteMDP, diameter, run_infinite, solve_average

mdp = InfiniteMDP.from_mdp(livarot.envs.park_two_state(gap=0.1))
best = solve_average(mdp)
print(f"optimal gain {best.gain:.6f}, proved to {best.upper - best.lower:.0e}")

# %%
# Regret against the optimal gain, for the learner and for a policy that always takes the first action.

n_steps = 3000
agents = {
    "UCMNLK": UCMNLK.average(n_steps=n_steps, diameter=diameter(mdp)),
    "always the first action": FixedPolicy([0, 0]),
    "the best policy": FixedPolicy(best.policy),
}
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for style, (label, agent) in zip(["-", "--", ":"], agents.items(), strict=True):
    regret = run_infinite(mdp, agent, n_steps, seed=range(8)).cumulative_regret
    axes.plot(range(1, n_steps + 1), regret.mean(axis=0), style, label=label)
axes.set(xlabel="step", ylabel="regret, mean of 8 seeds")
_ = axes.legend()
