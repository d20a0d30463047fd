"""What every agent promises, as checks that anybody can run on an agent of their own.

:func:`check_agent` runs them all and says which rule is broken; :func:`agent_checks` gives them one by one, for a test
framework.  The rules:

settings      a frozen dataclass with a ``name``; every field explained; ``repr`` shows all of them and can be read back
shapes        states, plans and their parts have the shapes and types of :mod:`livarot.agents.base`
purity        ``plan`` and ``update`` do not change their arguments and give the same answer again
determinism   the same seed gives the same run, bit for bit
grouping      a seed's numbers do not depend on the seeds that run beside it
resume        10 episodes, save, load, 10 more are 20 episodes, bit for bit
truth         no setting holds a model, and nothing is read from what the simulator derived from the problem
environments  plays a small version of every registered environment
smallest      S = A = H = d = 1
homogeneous   one parameter for all stages, and one per stage
cost          neither the state nor the time of an episode grows with the number of episodes

Only :class:`livarot.agents.Oracle` is exempt from *truth*.  An agent that declares a class attribute
``cost_grows = True`` is exempt from *cost*.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot import envs
from livarot.agents.base import Agent, declared, load_state, save_state
from livarot.agents.controls import Oracle
from livarot.agents.leaves import leaves, mapped
from livarot.core.tolerances import ROUNDING
from livarot.envs.drifting import Drifting
from livarot.errors import LivarotError, bad
from livarot.model.episodes import Episodes, Plan, PlanCheck, require_agent
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP, Problem, require_model
from livarot.planning.solution import PlainSolution
from livarot.running.run import run
from livarot.simulation.rollout import play
from livarot.simulation.streams import AgentRandom, Draws

Check = Callable[[], None]
SEEDS = (3, 5, 8)
STORED = ("float64", "int32", "int64", "bool")
EARLY, LATE, BLOCK, ROUNDS = 20, 200, 20, 3  # episodes whose cost is compared, in blocks, the best of some rounds
SLOWER = 5.0  # how much slower late episodes may be: time is noisy, growth with t would be a factor of 10
SMALL: dict[str, dict[str, Any]] = {  # a small version of each registered environment; others are made as they are
    "hard-chain": {"horizon": 4},
    "hard-chain-fixed": {"horizon": 4},
    "river-swim": {"n_states": 4, "horizon": 4},
    "river-swim-park": {"n_states": 4, "horizon": 4},
    "river-swim-vtr": {"n_states": 4, "horizon": 4},
    "river-swim-strehl": {"n_states": 4, "horizon": 3},
    "six-arms": {"horizon": 3},
    "deep-sea": {"size": 4},
    "park-two-state": {"horizon": 3, "dim": 3},
    "random": {"n_states": 3, "n_actions": 2, "n_reachable": 2, "horizon": 3},
    "machine-maintenance": {"horizon": 2},
    "kl-robust": {"n_states": 5, "n_actions": 2, "n_reachable": 3, "dim": 3, "horizon": 3},
}


def check_agent(agent: Agent[Any], *, env: MNLMDP | None = None) -> None:
    """Check an agent against every rule of this module; the first broken one is raised as a `LivarotError`.

    ``env`` takes the place of the package's own environments, for an agent that is made for one problem; an agent for
    one kind of problem may name a registered environment in a class attribute ``made_for`` instead.

    >>> import livarot
    >>> check_agent(livarot.agents.Uniform())
    """
    for _, check in agent_checks(agent, env=env):
        check()


def agent_checks(agent: Agent[Any], *, env: MNLMDP | None = None) -> Iterator[tuple[str, Check]]:
    """The rules by name, each with a function that raises when it is broken.

    >>> import livarot
    >>> [name for name, _ in agent_checks(livarot.agents.Uniform())][:3]
    ['settings', 'shapes', 'purity']
    """
    if isinstance(agent, type | str):  # anything else is refused by the rule that it breaks
        require_agent(agent)
    if env is not None:
        require_model(env)
    elif (made_for := declared(agent).made_for) is not None:
        env = small(made_for)
    usual = [env] if env is not None else [small("hard-chain-fixed"), small("river-swim")]
    every = [env] if env is not None else [small(name) for name in envs.registry.loadable() if name not in envs.LARGE]
    rules: dict[str, Check] = {
        "settings": lambda: _settings(agent),
        "shapes": lambda: _each(usual, lambda mdp: _shapes(agent, mdp)),
        "purity": lambda: _each(usual, lambda mdp: _purity(agent, mdp)),
        "determinism": lambda: _each(usual, lambda mdp: _determinism(agent, mdp)),
        "grouping": lambda: _each(usual, lambda mdp: _grouping(agent, mdp)),
        "resume": lambda: _each(usual, lambda mdp: _resume(agent, mdp)),
        "truth": lambda: _each(usual, lambda mdp: _truth(agent, mdp)),
        "environments": lambda: _each(every, lambda mdp: _plays(agent, mdp)),
        "smallest": lambda: _each([] if env is not None else [smallest()], lambda mdp: _plays(agent, mdp)),
        "homogeneous": lambda: _each([] if env is not None else _both_kinds(), lambda mdp: _plays(agent, mdp)),
        "cost": lambda: _each(usual[:1], lambda mdp: _cost(agent, mdp)),
    }
    for rule, check in rules.items():
        yield rule, _named(agent, rule, check)


@cache
def small(name: str) -> MNLMDP:
    """A registered environment with few states and stages."""
    return envs.make(name, **SMALL.get(name, {}))


def smallest() -> MNLMDP:
    """S = A = H = d = 1."""
    return MNLMDP.from_function(1, 1, 1, features=lambda h, s, a: ([0], [[1.0]]), reward=[[1.0]], theta=[[0.5]])


def _both_kinds() -> list[MNLMDP]:
    make, kinds = envs.river_swim, (False, True)
    return [make(4, 4, shared_parameter=x, features="moves" if y else "one-hot") for x in kinds for y in kinds]


def _each(models: Sequence[MNLMDP], check: Callable[[MNLMDP], None]) -> None:
    for mdp in models:
        check(mdp)


def _named(agent: Agent[Any], rule: str, check: Check) -> Check:
    def run_check() -> None:
        try:
            check()
        except (_BrokenError, LivarotError) as broken:
            problem = f"{getattr(agent, 'name', type(agent).__name__)} breaks the rule '{rule}': {broken}"
            raise bad("agent", problem, cure="see docs/adding_an_agent.md") from broken

    return run_check


class _BrokenError(Exception):
    """What is wrong, without the name of the rule."""


def _require(holds: Any, problem: str) -> None:
    if not holds:
        raise _BrokenError(problem)


# ---------------------------------------------------------------- settings
def _settings(agent: Agent[Any]) -> None:
    kind = type(agent)
    _require(dataclasses.is_dataclass(agent), "it is not a dataclass")
    _require(kind.__dataclass_params__.frozen, "the dataclass is not frozen")  # type: ignore[attr-defined]
    name = getattr(kind, "name", None)
    _require(isinstance(name, str) and re.fullmatch(r"[A-Za-z0-9][\w-]*", name), f"its class has no name, got {name!r}")
    _require(kind.__doc__ and not kind.__doc__.startswith(f"{kind.__name__}("), "the class has no docstring")
    fields = dataclasses.fields(agent)  # type: ignore[arg-type]
    try:
        source = "".join(inspect.getsource(x) for x in kind.__mro__ if dataclasses.is_dataclass(x))
    except (OSError, TypeError):  # made in an interactive session
        source = None
    for part in fields:
        explained = source is None or re.search(rf"^    {part.name}\s*:.*#\s*\S|``{part.name}``", source, re.MULTILINE)
        _require(explained, f"no comment says what the field {part.name!r} is")
    text = repr(agent)
    again = _rebuilt(_expression(text), agent)
    _require(repr(again) == text, f"repr cannot be read back: {text}")
    if kind.__dataclass_params__.eq:  # type: ignore[attr-defined]
        _require(again == agent, f"an agent made from the repr is not equal to it: {text}")


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(text, mode="eval").body
    except SyntaxError:
        raise _BrokenError(f"repr is not an expression: {text}") from None


def _rebuilt(node: ast.expr, like: Any) -> Any:
    """The object that an expression describes; only the classes of ``like`` and of its fields are called."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and dataclasses.is_dataclass(like):
        _require(node.func.id == type(like).__name__, f"repr names {node.func.id} for a {type(like).__name__}")
        found = {word.arg: _rebuilt(word.value, getattr(like, str(word.arg), None)) for word in node.keywords}
        shown = {part.name for part in dataclasses.fields(like) if part.repr}
        _require(set(found) == shown, f"repr shows {sorted(map(str, found))}, the fields are {sorted(shown)}")
        hidden = {part.name: getattr(like, part.name) for part in dataclasses.fields(like) if part.init}
        kind: Any = type(like)
        return kind(**(hidden | {str(k): v for k, v in found.items()}))
    if isinstance(node, ast.Name) and node.id in ("inf", "nan"):
        return float(node.id)
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError):
        raise _BrokenError(f"repr holds {ast.unparse(node)}, which is not a setting") from None


# ---------------------------------------------------------------- shapes
def _shapes(agent: Agent[Any], mdp: MNLMDP) -> None:
    for replicas in (1, len(SEEDS)):
        history = _play(mdp, agent, agent.init(mdp.problem, replicas), SEEDS[:replicas], 0, 4)
        for state in history.states:
            _state(state, replicas)
        for plan in history.plans:
            _plan(mdp.problem, plan, replicas)


def _state(state: Any, replicas: int) -> None:
    _require(isinstance(state, tuple) and hasattr(state, "_fields"), f"a state is a {type(state).__name__}")
    for name, leaf in leaves(state).items():
        if isinstance(leaf, np.ndarray):
            _require(leaf.dtype.name in STORED, f"{name} of the state has dtype {leaf.dtype}")
            leads = leaf.ndim > 0 and len(leaf) in (replicas, 1, 0)
            _require(leads, f"{name} of the state has shape {leaf.shape}, no leading axis of {replicas} replicas")
        else:
            _require(isinstance(leaf, int | float | np.number), f"{name} of the state is a {type(leaf).__name__}")


def _plan(problem: Problem, plan: Plan, replicas: int) -> None:
    _require(isinstance(plan, Plan), f"plan gave a {type(plan).__name__}")
    horizon, states, parameters = problem.horizon, problem.n_states, problem.n_parameters
    policy = plan.policy
    _require(policy.dtype in (np.int32, np.float64), f"the policy has dtype {policy.dtype}, not int32 or float64")
    shapes = {
        "value": (replicas, horizon + 1, states),
        "start_value": (replicas,),
        "upper": (replicas,),
        "inner_gap": (replicas,),
        "center": (replicas, parameters, problem.dim),
        "gram": (replicas, parameters, problem.rows.gram_size),
        "radius": (replicas,),
    }
    for name, shape in shapes.items():
        part = getattr(plan, name)
        if part is not None:
            _require(part.shape == shape and part.dtype == np.float64, f"{name} has shape {part.shape}, {part.dtype}")
            _require(np.isfinite(part).all(), f"{name} is not finite")


# ---------------------------------------------------------------- purity, determinism, grouping, resume
def _purity(agent: Agent[Any], mdp: MNLMDP) -> None:
    problem = mdp.problem
    history = _play(mdp, agent, agent.init(problem, 2), SEEDS[:2], 0, 6)
    _require(_same(agent.init(problem, 2), history.states[0]), "init gives another state the second time")
    for t, (state, episodes) in enumerate(zip(history.states, history.episodes, strict=False)):
        arguments = (state, episodes, tuple(problem._tensors().values()))
        before = _copied(arguments)
        again = agent.plan(problem, state, AgentRandom(SEEDS[:2], t))
        _require(_same(again, history.plans[t]), f"plan answers differently the second time, in episode {t}")
        _require(_same(arguments, before), f"plan changes its arguments in episode {t}")
        new = agent.update(problem, state, episodes)
        _require(_same(arguments, before), f"update changes its arguments in episode {t}")
        _require(_same(new, history.states[t + 1]), f"update answers differently the second time, in episode {t}")


def _determinism(agent: Agent[Any], mdp: MNLMDP) -> None:
    first, second = (run(mdp, agent, 15, seed=SEEDS[:2]) for _ in range(2))
    for name, column in first.columns.items():
        _require(_same(column.filled(0.0), second.columns[name].filled(0.0)), f"{name} of two equal runs differ")


def _grouping(agent: Agent[Any], mdp: MNLMDP) -> None:
    together = run(mdp, agent, 15, seed=SEEDS)
    for index, seed in enumerate(SEEDS):
        one = declared(agent).select(slice(index, index + 1))
        alone = run(mdp, one, 15, seed=seed)
        for name, column in together.columns.items():
            equal = _same(column[index].filled(0.0), alone.columns[name][0].filled(0.0))
            _require(equal, f"{name} of seed {seed} changes when the seed runs alone")


def _resume(agent: Agent[Any], mdp: MNLMDP) -> None:
    seeds, problem = SEEDS[:2], mdp.problem
    whole = _play(mdp, agent, agent.init(problem, 2), seeds, 0, 20)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "state"
        save_state(path, agent, _play(mdp, agent, agent.init(problem, 2), seeds, 0, 10).states[-1], problem)
        loaded = load_state(path, agent, problem)
    _require(_same(loaded, whole.states[10]), "a loaded state differs from the one that was saved")
    rest = _play(mdp, agent, loaded, seeds, 10, 10)
    for t in range(10):
        _require(_same(rest.plans[t], whole.plans[10 + t]), f"after loading, plan {10 + t} is different")
    _require(_same(rest.states[-1], whole.states[-1]), "10 + 10 episodes through a file are not 20 episodes")


# ---------------------------------------------------------------- truth, environments, cost
def _truth(agent: Agent[Any], mdp: MNLMDP) -> None:
    if isinstance(agent, Oracle):
        return
    _no_model(agent, "it")
    history = _play(mdp, agent, agent.init(mdp.problem, 1), SEEDS[:1], 0, 5)
    bare = dataclasses.replace(mdp.problem)  # nothing is derived from it yet
    state = agent.init(bare, 1)
    for t, episodes in enumerate(history.episodes):
        plan = agent.plan(bare, state, AgentRandom(SEEDS[:1], t))
        _require(_same(plan, history.plans[t]), f"plan {t} is different for a Problem that was never simulated")
        state = agent.update(bare, state, episodes)


def _no_model(thing: Any, where: str) -> None:
    _require(not isinstance(thing, MNLMDP | Drifting | PlainSolution), f"{where} holds a {type(thing).__name__}")
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        for part in dataclasses.fields(thing):
            _no_model(getattr(thing, part.name), f"{where}.{part.name}")
    elif isinstance(thing, dict | list | tuple | set):
        for item in thing.values() if isinstance(thing, dict) else thing:
            _no_model(item, where)


def _plays(agent: Agent[Any], mdp: MNLMDP) -> None:
    regret = run(mdp, agent, 3, seed=SEEDS[:2]).regret
    problem = mdp.problem
    sizes = f"S={problem.n_states}, A={problem.n_actions}, H={problem.horizon}, d={problem.dim}"
    _require(np.isfinite(regret).all() and (regret > -ROUNDING).all(), f"regret {regret.min()} in a model with {sizes}")


def _cost(agent: Agent[Any], mdp: MNLMDP) -> None:
    if declared(agent).cost_grows:
        return
    seeds, state = SEEDS[:2], agent.init(mdp.problem, 2)
    done, seconds, sizes = 0, [], []
    for first in (EARLY, LATE):
        state = _play(mdp, agent, state, seeds, done, first - done).states[-1]
        sizes.append(sum(np.asarray(leaf).nbytes for leaf in leaves(state).values()))
        times = []
        for block in range(ROUNDS):
            begin = time.thread_time()
            state = _play(mdp, agent, state, seeds, first + block * BLOCK, BLOCK).states[-1]
            times.append(time.thread_time() - begin)
        done = first + ROUNDS * BLOCK
        seconds.append(min(times))
    cure = "if its paper says so, declare it with cost_grows = True"
    _require(sizes[1] <= sizes[0], f"its state grows from {sizes[0]} to {sizes[1]} bytes; {cure}")
    slower = seconds[1] / max(seconds[0], 1e-6)
    _require(slower < SLOWER, f"episodes after {LATE} take {slower:.1f} times those after {EARLY}; {cure}")


# ---------------------------------------------------------------- tools
@dataclasses.dataclass
class _History:
    states: list[Any]
    plans: list[Plan]
    episodes: list[Episodes]


def _play(mdp: MNLMDP, agent: Agent[Any], state: Any, seeds: Sequence[int], first: int, count: int) -> _History:
    """``count`` episodes of all seeds, from episode ``first`` on, as a run plays them."""
    problem, kernel = mdp.problem, transition_kernel(mdp)
    env = Draws.of_environment(seeds, problem.horizon).block(first, first + count)
    act = Draws.of_actions(seeds, problem.horizon).block(first, first + count)
    history, look = _History([state], [], []), PlanCheck(problem, len(seeds), agent.name)
    for t in range(count):
        plan = agent.plan(problem, history.states[-1], AgentRandom(seeds, first + t))
        policy = look(plan, first + t).policy
        episodes = play(problem, kernel.prob[None], kernel.base, policy, env[t], act[t])
        history.plans.append(plan)
        history.episodes.append(episodes)
        history.states.append(agent.update(problem, history.states[-1], episodes))
    return history


def _copied(part: Any) -> Any:
    return mapped(lambda name, leaf: leaf.copy() if isinstance(leaf, np.ndarray) else leaf, part)


def _same(one: Any, other: Any) -> bool:
    """Equal, bit for bit, as nested tuples of arrays and numbers?"""
    if isinstance(one, tuple):
        return isinstance(other, tuple) and len(one) == len(other) and all(map(_same, one, other))
    if one is None or other is None:
        return one is other
    x: NDArray[Any] = np.asarray(one)
    y: NDArray[Any] = np.asarray(other)
    return x.shape == y.shape and x.dtype == y.dtype and x.tobytes() == y.tobytes()
