"""A page for every registered environment: what it is, its exact numbers, and a picture of its best policy.

Written into ``docs/environment`` from the registry itself, before Sphinx reads its sources.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sphinx.application import Sphinx

import livarot
from livarot.cli.listing import described, numbers
from livarot.report.drawing import STYLE, render
from sitekit.api import write_pages
from sitekit.docstrings import escaped, to_rst

MEANING = {
    "S": "states",
    "A": "actions",
    "U": "next states that can follow, at most",
    "d": "features",
    "H": "steps of an episode",
    "B": "bound of the parameter",
    "V*": "value of the best policy at the start",
    "kappa*": "1 / min p(s') p(s'') at the true parameter",
    "sigma_bar": "standard deviation of V* along the best policy, per step and over H",
}


UNREACHED, NEVER = "#EEEEEE", "#CFE2F3"


def occupancy(mdp: Any, policy: Any) -> Any:
    """The chance of each state at each stage under a policy, (H, S)."""
    problem = mdp.problem
    chance = np.zeros((problem.horizon + 1, problem.n_states))
    chance[0] = problem.start
    for h in range(problem.horizon):
        for s in np.flatnonzero(chance[h]):
            a = int(policy[h, s])
            after = problem.next_states(h, int(s), a)
            np.add.at(chance[h + 1], after, chance[h, s] * mdp.probabilities(h, int(s), a))
    return chance[:-1]


def picture(mdp: Any) -> bytes:
    """Value of the best policy, its actions, and where it goes, over stages and states.

    Grey is what no policy reaches from the start, light blue what the best one never does.
    """
    import matplotlib as mpl
    from matplotlib.colors import BoundaryNorm, ListedColormap, LogNorm
    from matplotlib.figure import Figure

    solution = livarot.solve(mdp)
    problem = mdp.problem
    there = problem.reachable[: problem.horizon].T  # (S, H): what the start can reach
    chance = occupancy(mdp, solution.policy).T
    value = np.ma.MaskedArray(solution.value[:-1].T, mask=~there)
    action = np.ma.MaskedArray(solution.policy.T, mask=~there)
    with mpl.rc_context(STYLE | {"axes.grid": False}):
        figure = Figure(figsize=(9.0, 2.9))
        left, middle, right = figure.subplots(1, 3, sharey=True)
        box = {"aspect": "auto", "origin": "lower", "interpolation": "nearest"}
        box["extent"] = (0.5, problem.horizon + 0.5, -0.5, problem.n_states - 0.5)
        shown = left.imshow(value, cmap="viridis", **box)
        figure.colorbar(shown, ax=left)
        edges = np.arange(problem.n_actions + 1) - 0.5
        shown = middle.imshow(action, cmap="cividis", norm=BoundaryNorm(edges, 256), **box)
        step = -(-problem.n_actions // 8)
        figure.colorbar(shown, ax=middle, ticks=range(0, problem.n_actions, step))
        lowest = max(float(chance[chance > 0].min()), 1e-6)
        right.imshow(np.ma.MaskedArray(chance, mask=~there | (chance > 0)), cmap=ListedColormap([NEVER]), **box)
        shown = right.imshow(np.ma.masked_less_equal(chance, 0), cmap="magma_r", norm=LogNorm(lowest, 1.0), **box)
        figure.colorbar(shown, ax=right)
        for axes, title in ((left, "value V*"), (middle, "best action"), (right, "chance of being there")):
            axes.set(title=title, xlabel="stage h", facecolor=UNREACHED)
            axes.locator_params(axis="both", integer=True)
        left.set_ylabel("state s")
        return render(figure, "png")


def page(name: str, numbers_of: dict[str, Any]) -> str:
    """The page of one environment."""
    about = described("envs", name)
    factory = livarot.envs.registry.factory(name)
    plain = getattr(factory, "func", factory)
    doc = to_rst((plain.__doc__ or "").expandtabs().splitlines()[:1])
    lines = [name, "=" * len(name), "", escaped(about["summary"][0].upper() + about["summary"][1:]) + ".", "", *doc]
    lines += [f".. image:: {name}.png", f"   :alt: value, policy and occupancy of {name}", "   :width: 100%", ""]
    lines += [
        "With its default settings.  Grey: what no policy reaches from the start.  Light blue, on the right: what some "
        "policy reaches and the best one never does.",
        "",
        ".. list-table::",
        "",
    ]
    for key, value in numbers_of.items():
        told = f"{value}" if isinstance(value, int) else f"{value:.10g}"
        lines += [f"   * - {escaped(key)}", f"     - {told}", f"     - {escaped(MEANING[key])}"]
    lines += ["", ".. code-block:: python", "", f'   mdp = livarot.envs.make("{name}")', ""]
    settings = [each for each in about["settings"] if each["default"] is not None]
    if settings:
        lines += [".. list-table:: Settings and their defaults", ""]
        for each in settings:
            lines += [f"   * - ``{each['name']}``", f"     - ``{each['default']}``"]
        lines += [""]
    lines += [f"Made by :py:obj:`livarot.envs.{plain.__name__}`; all environments: :doc:`/environments`.", ""]
    return "\n".join(lines)


def pages(folder: Path) -> dict[str, str]:
    """Every page by the name of its file; pictures are written beside them."""
    folder.mkdir(parents=True, exist_ok=True)
    out, there = {}, []
    for name in livarot.envs.registry:
        try:
            mdp = livarot.envs.make(name)
        except livarot.LivarotError:
            if name not in livarot.envs.LARGE:
                raise
            continue  # its data are not installed here
        out[f"{name}.rst"] = page(name, numbers(mdp))
        there.append(name)
        image, path = picture(mdp), folder / f"{name}.png"
        if not path.is_file() or path.read_bytes() != image:
            path.write_bytes(image)
    title = "Environments"
    lines = [
        title,
        "=" * len(title),
        "",
        "Each with its exact numbers and a picture of its best policy.",
        "",
        ".. toctree::",
        "   :maxdepth: 1",
        "",
        *(f"   {name}" for name in there),
        "",
    ]
    return out | {"index.rst": "\n".join(lines)}


def on_start(app: Sphinx) -> None:
    folder = Path(app.srcdir) / "environment"
    write_pages(folder, pages(folder))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", on_start, priority=110)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
