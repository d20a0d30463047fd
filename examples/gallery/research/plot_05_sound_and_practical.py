"""
Sound against practical
=======================

The radius of the proof, and smaller ones. The judge knows θ*, so it can say in which episodes the confidence sets cover
it: coverage and regret for multiples of the radius.
"""

import matplotlib.pyplot as plt

import livarot

mdp = livarot.envs.hard_chain(6, gap=0.08)
scales = [0.02, 0.05, 0.1, 0.3, 1.0]
covered, optimistic, regret = [], [], []
for scale in scales:
    result = livarot.run(mdp, livarot.agents.Livarot(beta_scale=scale), 400, seed=range(16))
    covered.append(result.covered.mean())
    optimistic.append((result.optimism_gap >= 0).mean())
    regret.append(result.cumulative_regret[:, -1])
uniform = livarot.run(mdp, livarot.agents.Uniform(), 400, seed=range(2)).cumulative_regret[0, -1]

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
left.plot(scales, covered, "o-", label="θ* in every set")
left.plot(scales, optimistic, "s-", label="plan at least V*")
left.set(xscale="log", xlabel="multiple of the radius", ylabel="share of the episodes", ylim=(-0.03, 1.03))
left.legend()
right.errorbar(scales, [r.mean() for r in regret], [r.std(ddof=1) / 4 for r in regret], fmt="o-", capsize=3)
right.axhline(uniform, color="grey", linestyle="--", label="uniform policy")
right.set(xscale="log", xlabel="multiple of the radius", ylabel="regret after 400 episodes", ylim=(0, None))
_ = right.legend()

# %%
# A plan can be optimistic though a set misses the truth: that is why the small radii learn.  They have no guarantee.
