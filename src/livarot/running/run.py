"""``livarot.run``: an agent against a model, many seeds at once, judged exactly.

The seeds of a run are replicas: one plan, one rollout and one update serve all of them, so that the cost of Python is
paid once per episode and not once per seed.  Given the plans, seeds are independent, and the same operations are done
for each, whatever the other seeds are: results do not depend on how seeds are grouped or on the number of workers
(threads; the compiled loops release the interpreter lock).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from livarot.agents.base import Agent, declared
from livarot.envs.drifting import Drifting
from livarot.errors import Interrupted, bad, require_positive_int
from livarot.model.episodes import require_agent
from livarot.model.problem import MNLMDP, Problem, not_a_model
from livarot.running.loop import STAGES, Replicas, Truth
from livarot.running.result import COLUMNS, RunResult
from livarot.simulation.streams import seed_list
from livarot.system.progress import Asked, counted
from livarot.system.sizes import require_memory
from livarot.system.threads import Look, in_threads
from livarot.theory.audits.facts import facts_of

THREAD_TERMS = 30_000  # feature entries per episode below which a second thread costs more than it saves


def run(
    mdp: Truth | Sequence[Truth],
    agent: Agent[Any],
    n_episodes: int,
    seed: int | Sequence[int] = 0,
    *,
    workers: int = 1,
    progress: Asked = None,
) -> RunResult:
    """Let an agent learn for ``n_episodes`` and report its regret, per seed and episode.

    ``seed`` is an int or a sequence; ``mdp`` is one model, or one per seed with the same :class:`Problem`.
    A model may be :class:`livarot.envs.Drifting`: each episode is then played in, and judged by, the model of its
    time, so ``regret`` is the dynamic regret, V*_t(s1) - V_t^{pi_t}(s1) against the moving optimum.
    ``workers`` is the largest number of threads over seeds; small problems, whose episodes are mostly Python, use one.
    ``progress``: None is a bar if the run takes long in a terminal or a notebook, True or False always or never one; a
    function is called with the number of replica-episodes just done, and what it raises ends the run.
    Ctrl-C raises :class:`livarot.Interrupted`, whose ``result`` has the episodes that all seeds have played.

    >>> import livarot
    >>> mdp = livarot.envs.hard_chain(5, gap=0.1)
    >>> result = livarot.run(mdp, livarot.agents.Uniform(), 100, seed=range(3))
    >>> result.regret.shape
    (3, 100)
    """
    require_positive_int("n_episodes", n_episodes)
    require_positive_int("workers", workers)
    require_agent(agent)
    seeds = seed_list(seed)
    models = _check_models(mdp, len(seeds))
    require_memory("n_episodes", "the results of all episodes", 2 * len(seeds) * n_episodes * (len(COLUMNS) + 1))
    workers = min(workers, len(seeds), 1 + len(seeds) * _terms(models[0].problem) // THREAD_TERMS)
    cuts = [len(seeds) * w // workers for w in range(workers + 1)]
    parts = [slice(first, last) for first, last in pairwise(cuts)]

    begun: dict[int, Replicas] = {}

    def work(part: slice, look: Look) -> Replicas:
        def after(done: int) -> None:
            look()
            if count is not None:
                count(done)

        own = models if len(models) == 1 else models[part]
        chosen = declared(agent).select(part)
        replicas = begun[part.start] = Replicas(own, chosen, n_episodes, seeds[part])
        replicas.advance(n_episodes, after if workers > 1 else count)
        return replicas

    models[0].problem.nodes  # noqa: B018 (made once, before the threads share it)
    with counted(progress, len(seeds) * n_episodes, "episodes") as count:
        try:
            found = in_threads(work, parts, workers)
        except KeyboardInterrupt as stop:
            played = min((begun[part.start].episode if part.start in begun else 0) for part in parts)
            if played == 0:
                raise
            kept = _result([begun[part.start] for part in parts], models, agent, seeds, played)
            raise Interrupted(f"stopped after {played} of {n_episodes} episodes, which are in .result", kept) from stop
    return _result(found, models, agent, seeds, n_episodes)


def _result(
    parts: Sequence[Replicas], models: Sequence[Truth], agent: Agent[Any], seeds: Sequence[int], n_episodes: int
) -> RunResult:
    """The first ``n_episodes`` of all replicas."""
    found = [part.found(n_episodes) for part in parts]
    columns = {name: np.concatenate([part[name] for part in found]) for name in COLUMNS}
    bits = np.concatenate([part[STAGES] for part in found])
    problem = models[0].problem
    return RunResult(
        agent=agent.name,
        settings=repr(agent),
        seeds=np.asarray(seeds),
        horizon=problem.horizon,
        columns={name: np.ma.MaskedArray(column, mask=np.isnan(column)) for name, column in columns.items()},
        facts_source=partial(_facts, models, agent, n_episodes),
        stage_bits=None if np.isnan(columns["covered"]).all() else bits,
        units=problem.units,
    )


def _facts(truths: Sequence[Truth], agent: Agent[Any], n_episodes: int) -> dict[str, Any]:
    """The facts of all models that were played; what is promised of sets is promised of one theta*, not of several."""
    played = [
        [piece for _, piece in truth.pieces(n_episodes)] if isinstance(truth, Drifting) else [truth] for truth in truths
    ]
    facts = facts_of([model for models in played for model in models], declared(agent))
    if any(len(models) > 1 for models in played):
        facts["agent"] = {key: x for key, x in facts["agent"].items() if key != "sound"} | {"promised_coverage": None}
    return facts


def _terms(problem: Problem) -> int:
    """Feature entries that the plan of one episode reads."""
    rows = problem.rows
    per_pair = (rows.outcomes * np.maximum(rows.col_count, 1)).reshape(rows.n_tables, problem.n_states, -1).sum(axis=2)
    return int(sum(per_pair[problem.stage_table[h]] @ problem.reachable[h] for h in range(problem.horizon)))


def _check_models(mdp: Truth | Sequence[Truth], n_seeds: int) -> list[Truth]:
    models: list[Any] = list(mdp) if isinstance(mdp, Iterable) and not isinstance(mdp, str) else [mdp]
    if len(models) not in (1, n_seeds):
        raise bad("mdp", f"{len(models)} models for {n_seeds} seeds", cure="give one model, or one per seed")
    for index, model in enumerate(models):
        if not isinstance(model, MNLMDP | Drifting):
            raise not_a_model(model, None if models[0] is mdp else index)
        if not model.problem.same_as(models[0].problem):
            raise bad("mdp", "has another Problem than the first model", index=index, cure="only theta may differ")
    return models
