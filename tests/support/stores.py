"""Stores for the tests of reports, filled with invented runs: no agent is run."""

import hashlib
from pathlib import Path

import numpy as np

from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.experiment.spec import AgentSpec, EnvironmentSpec, Experiment
from livarot.sweeps.store.store import Store

N_SEEDS, EPISODES, HORIZONS = 8, 150, (4, 8, 16)

HOSTILE = (
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "\"><svg onload=window.pwned=1>",
    "' onmouseover='window.pwned=1",
    "javascript:window.pwned=1",
    "<a href=\"javascript:window.pwned=1\">click</a>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<style>@import 'http://attacker.example/x.css';</style>",
    "<link rel=stylesheet href=http://attacker.example/x.css>",
    "<!-- --><script>window.pwned=1</script><!--",
    "]]><script>window.pwned=1</script>",
    "&lt;script&gt;window.pwned=1&lt;/script&gt;",
    "\\u003cscript\\u003ewindow.pwned=1",
    "${window.pwned=1}{{window.pwned=1}}%{fullData.name}",
    "=HYPERLINK(\"http://attacker.example\",\"x\")",
    "@SUM(1+1)*cmd|' /C calc'!A0",
    "\\input{/etc/passwd}\\write18{ls}$\\frac{$",
    "_x\u202e\u2028\x07 猫 $a_1^",
    "@@DATA@@ __proto__ constructor",
)  # fmt: skip


def columns_of(rng: np.random.Generator, episodes: int, regret: float, *, covered: bool) -> dict[str, np.ndarray]:
    """Invented numbers of one run with about this regret in all."""
    weights = 1.0 / np.sqrt(np.arange(1, episodes + 1))
    exact = regret * weights / weights.sum()
    missing = np.full(episodes, np.nan)
    return {
        "regret": exact,
        "realised_regret": exact + rng.normal(size=episodes) * 0.1,
        "variance": rng.uniform(0.1, 0.2, size=episodes),
        "optimism_gap": np.linspace(1.0, 0.25, episodes) if covered else missing,
        "optimism_loss": np.zeros(episodes) if covered else missing,
        "inner_gap": np.full(episodes, 1e-9) if covered else missing,
        "covered": np.ones(episodes) if covered else missing,
    }


def fill(store: Store, cell: Cell, scale: float, n_seeds: int) -> None:
    covered = cell.agent == "livarot"
    horizon = cell.environment_settings.get("horizon", 1)
    for seed in range(n_seeds):
        rng = np.random.Generator(np.random.Philox(seed + 1000 * horizon))
        columns = columns_of(rng, cell.episodes, scale * horizon**1.5 * rng.lognormal(0.0, 0.2), covered=covered)
        if covered and seed == 0:
            columns["covered"][: cell.episodes // 2] = 0.0
        store.put(cell.run(seed), columns, np.ones((cell.episodes, 1), dtype=np.int32))


def filled_store(path: Path, n_seeds: int = N_SEEDS) -> Path:
    """Two agents on the chain at three horizons; LIVAROT has a fifth of the uniform policy's regret."""
    experiment = Experiment(
        name="two agents",
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": list(HORIZONS), "gap": 0.1})],
        agents=[AgentSpec(name="livarot"), AgentSpec(name="uniform")],
        episodes=EPISODES,
        seeds=n_seeds,
    )
    with Store(path, create=True) as store:
        store.add_spec(experiment)
        for cell in experiment.cells():
            fill(store, cell, 0.2 if cell.agent == "livarot" else 1.0, n_seeds)
    return path


def store_of(path: Path, experiment: Experiment, scale: float | dict[str, float] = 1.0) -> Path:
    """Invented runs of an experiment; ``scale`` multiplies the regret, for all agents or by their names."""
    with Store(path, create=True) as store:
        store.add_spec(experiment)
        for cell in experiment.cells():
            own = scale.get(cell.agent, 1.0) if isinstance(scale, dict) else scale
            fill(store, cell, own, len(experiment.seed_list()))
    return path


def hostile_store(path: Path) -> Path:
    """A store whose names, labels, settings and tracebacks look like code (HTML, LaTeX, ...) and must be escaped."""
    with Store(path, create=True) as store:
        for index, name in enumerate(HOSTILE):
            label = {"label": name[:200]}
            store.add_spec(
                Experiment(
                    name=name,
                    environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": 4}, **label)],
                    agents=[AgentSpec(name="uniform", **label)],
                    episodes=EPISODES,
                    seeds=5,
                )
            )
            cell = Cell(HOSTILE[0], {"horizon": 4, "x": name}, name, {"a": name}, EPISODES)
            fill(store, cell, 1.0 + index, 5)
            same = Cell("hard-chain", {"horizon": 4, "gap": 0.1}, name, {}, EPISODES)
            fill(store, same, 1.0 + index, 5)
            store.fail(cell.run(99), attempts=3, traceback=f"Traceback\n{name}")
    return path


def harm(data, draw, kind):
    data = bytearray(data)
    if kind == 0:
        del data[draw.randrange(len(data)) :]
    elif kind == 1:
        first = draw.randrange(len(data))
        data[first : first + 64] = bytes(len(data[first : first + 64]))
    else:
        data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    return bytes(data)


def experiment(agents=("livarot", "uniform"), seeds=4, horizons=(3, 4), episodes=24):
    return Experiment(
        environments=[EnvironmentSpec(name="hard-chain", settings={"horizon": list(horizons), "gap": 0.1})],
        agents=[AgentSpec(name=name) for name in agents],
        episodes=episodes,
        seeds=seeds,
    )


def files(path):
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted((path / "runs").glob("*.parquet"))}
