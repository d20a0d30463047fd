"""
Sound against practical
=======================

``SoundLivarot`` has confidence sets with a proof: θ* is in all of them, in all episodes, with probability 95 %. The
default ``Livarot`` and ``AdaptiveLivarot`` use smaller sets, which have none. The judge knows θ*, so it can say what
the promise is worth, and what it costs.
"""

import matplotlib.pyplot as plt

import livarot

mdp, n_episodes = livarot.envs.hard_chain(6, gap=0.08), 500
agents = {
    "SoundLivarot": livarot.agents.SoundLivarot(),
    "Livarot, constants of the proof": livarot.agents.Livarot.theory(n_episodes),
    "Livarot": livarot.agents.Livarot(),
    "AdaptiveLivarot": livarot.agents.AdaptiveLivarot(),
}
results = {name: livarot.run(mdp, agent, n_episodes, seed=range(10)) for name, agent in agents.items()}
for name, result in results.items():
    print(f"{name}\n    {result.coverage()}")

# %%
# Left, what the proof costs. Right, how much the plans promise above V*, the best there is: large sets promise much for
# long. The small ones miss θ* and are optimistic all the same in most episodes, which is why their agents learn.

figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 4), layout="constrained")
episodes = range(1, n_episodes + 1)
uniform = livarot.run(mdp, livarot.agents.Uniform(), n_episodes)
for name, result in results.items():
    result.plot(left, label=name)
    right.plot(episodes, result.optimism_gap.mean(axis=0), linestyle=left.lines[-1].get_linestyle())
    print(f"{name}: optimistic in {(result.optimism_gap >= 0).mean():.0%} of the episodes")
left.plot(episodes, uniform.cumulative_regret[0], color="grey", linewidth=0.8, label="uniform policy")
left.set_ylim(0, None)
left.legend(fontsize=8)
right.axhline(0.0, color="grey", linewidth=0.8)
_ = right.set(xlabel="episode", ylabel="promised value minus V*, mean of 10 seeds")
