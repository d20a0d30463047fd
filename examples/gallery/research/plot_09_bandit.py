"""
The bandit
==========

One decision, three outcomes of known value: the logistic bandit is an MDP with two stages here, so every agent and
every tool applies to it.
"""

import matplotlib.pyplot as plt

import livarot

mdp = livarot.envs.mnl_bandit(n_arms=10, n_outcomes=3, dim=4, seed=0, values=[0.0, 0.3, 1.0])
agents = [livarot.agents.OFULMLogB(), livarot.agents.OFUMNLPP(), livarot.agents.Livarot(), livarot.agents.Uniform()]
figure, axes = plt.subplots(figsize=(6.5, 4), layout="constrained")
for agent in agents:
    result = livarot.run(mdp, agent, 1000, seed=range(10))
    result.plot(axes)
axes.set(xlabel="decision", yscale="symlog", ylim=(0, None))
_ = axes.legend()
