"""
Sweep and report
================

Many runs: agents, environments and seeds in one object or TOML file, a store that can be resumed, and a report with
intervals. ``livarot run`` and ``livarot report`` do the same on the command line.
"""

import tempfile
from pathlib import Path

import matplotlib.image as image
import matplotlib.pyplot as plt

from livarot.experiments import AgentSpec, EnvironmentSpec, Experiment, Store, report, sweep

experiment = Experiment(
    name="two agents and a control",
    environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": [4, 8, 16], "gap": 0.05})],
    agents=[AgentSpec(name="livarot"), AgentSpec(name="ucrl-mnl-ol"), AgentSpec(name="uniform")],
    episodes=200,
    seeds=8,
)
folder = Path(tempfile.mkdtemp())
done = sweep(experiment, folder / "store", backend="sequential")
print(f"{done.done} runs, complete: {done.complete}")

# %%
# The same call again computes what is missing: nothing.

print(sweep(experiment, folder / "store", backend="sequential").done, "runs")

# %%
# Results are tables:

with Store(folder / "store") as store:
    for cell, result in store.results():
        print(f"{cell.agent:12} H = {result.horizon:2}  regret {result.cumulative_regret[:, -1].mean():6.1f}")

# %%
# and a report: an interactive page, figures and a LaTeX table.

files = report(folder / "store", folder / "report")
print(*(path.name for path in files))
curves = next(path for path in files if path.suffix == ".png")
figure, axes = plt.subplots(figsize=(9, 4), layout="constrained")
axes.imshow(image.imread(curves))
_ = axes.set_axis_off()
