"""What :func:`livarot.solve` and its like give back: arrays that know their problem, its names and its units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from livarot.core.arrays import FloatArray, Int32Array
from livarot.errors import bad
from livarot.extras import extras_explained
from livarot.model.labels import ModelLabels, model_labels
from livarot.model.problem import Problem
from livarot.model.shown import html_of, text_of
from livarot.model.terms.existing import number_named

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure


class PlainSolution(NamedTuple):
    """Optimal values of every state and stage, reachable or not, for rewards in [0, 1]."""

    value: FloatArray  # (H + 1, S)
    q: FloatArray  # (H, S, A), -inf for actions that do not exist
    policy: Int32Array  # (H, S)
    variance: FloatArray  # (H, S) of what follows, r' + discount V*_{h+1}(s'), under the policy's action


class Decisions(Mapping[Any, tuple[Any, ...]]):
    """What a policy does in each state: the names of its actions, stage by stage; None where the episode is over."""

    def __init__(self, problem: Problem, policy: Int32Array) -> None:
        self._problem, self._policy, self._labels = problem, policy, model_labels(problem)

    def __getitem__(self, state: Any) -> tuple[Any, ...]:
        problem = self._problem
        s = number_named("state", state, problem.states, problem.n_states)
        if problem.terminal is not None and problem.terminal[s]:
            return (None,) * problem.horizon
        return tuple(self._labels.actions[int(a)] for a in self._policy[:, s])

    def __iter__(self) -> Iterator[Any]:
        return iter(self._labels.states)

    def __len__(self) -> int:
        return self._problem.n_states

    def __repr__(self) -> str:
        return text_of("Decisions", {str(state): ", ".join(map(str, self[state])) for state in list(self)[:11]})


class Readable:
    """Tables, plots and displays of a solution, for classes with ``value``, ``policy`` and ``problem``."""

    value: FloatArray
    policy: Int32Array
    problem: Problem | None

    def _known(self) -> Problem:
        if self.problem is None:
            raise bad("solution", "does not know its problem", cure="take what livarot.solve(mdp) returned")
        return self.problem

    @property
    def cost(self) -> FloatArray:
        """The values as costs, (H + 1, S): their negatives."""
        return 0.0 - self.value

    @property
    def start_value(self) -> float:
        """The value at the start, the mean over first states."""
        return float(self._known().start @ self.value[0])

    @property
    def decisions(self) -> Decisions:
        """What to do, by the names of states: ``solution.decisions["worn"]`` are the actions of all stages."""
        return Decisions(self._known(), self.policy)

    def action(self, stage: int, state: Any) -> Any:
        """The action at a stage (from 0) in a state, by their names; None where the episode is over."""
        stages = self.decisions[state]
        if not 0 <= stage < len(stages):
            raise bad("stage", f"{stage} is out of range", cure=f"they are numbered 0..{len(stages) - 1}")
        return stages[stage]

    def to_frame(self) -> pd.DataFrame:
        """A long table: stage, state, action, and the value (the cost, if costs were given)."""
        with extras_explained():
            import pandas as pd

        problem = self._known()
        labels, (horizon, n_states) = model_labels(problem), self.policy.shape
        actions = labels.actions.decode(self.policy.reshape(-1))
        if problem.terminal is not None:
            actions[np.tile(problem.terminal, horizon)] = None
        stages = np.arange(horizon) if labels.stages is None else labels.stages.decode(np.arange(horizon))
        name, numbers = ("cost", self.cost) if problem.units.cost else ("value", self.value)
        return pd.DataFrame(
            {
                "stage": np.repeat(stages, n_states),
                "state": np.tile(labels.states.array(), horizon),
                "action": pd.Series(actions, dtype=object),
                name: numbers[:-1].reshape(-1),
            }
        )

    def plot(self) -> Figure:
        """Maps of the policy and of the values over stages, for states in their order; the figure is returned."""
        with extras_explained():
            import matplotlib.pyplot as plt
            from matplotlib.ticker import MaxNLocator

        problem = self._known()
        figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
        draw_policy(left, problem, self.policy)
        name, numbers = ("cost", self.cost) if problem.units.cost else ("value", self.value)
        image = right.imshow(numbers[:-1].T, aspect="auto", origin="lower", cmap="cividis", interpolation="nearest")
        figure.colorbar(image, ax=right, label=name)
        right.set(xlabel="stage", title=name)
        for axes in (left, right):
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        return figure

    def __repr__(self) -> str:
        return text_of(type(self).__name__, self._lines())

    def _repr_html_(self) -> str:
        return html_of(type(self).__name__, self._lines())

    def _lines(self) -> dict[str, str]:
        """What is shown: sizes, the value at the start and the first decisions."""
        horizon, n_states = self.policy.shape
        if self.problem is None:
            return {"value": f"{self.value.shape}", "policy": f"{self.policy.shape}"}
        name, sign = ("cost", -1.0) if self.problem.units.cost else ("value", 1.0)
        lines = {
            "sizes": f"{horizon} stages, {n_states} states, {self.problem.n_actions} actions",
            name: f"{sign * self.start_value:.6g} at the start",
        }
        for state in list(self.decisions)[:6]:
            lines[str(state)] = runs_of(self.decisions[state])
        if n_states > 6:
            lines["..."] = f"{n_states - 6} more states; .to_frame(), .plot()"
        return lines


def runs_of(actions: tuple[Any, ...]) -> str:
    """Equal actions of neighbouring stages together.

    >>> runs_of(("keep", "keep", "keep", "sell"))
    'keep x 3, sell'
    """
    parts: list[list[Any]] = []
    for action in actions:
        if parts and parts[-1][0] == action:
            parts[-1][1] += 1
        else:
            parts.append([action, 1])
    return ", ".join(f"{action}" if count == 1 else f"{action} x {count}" for action, count in parts)


def draw_policy(axes: Any, problem: Problem, policy: Int32Array) -> None:
    """The actions of a policy, one colour each, over stages (across) and states (upwards)."""
    import matplotlib as mpl
    from matplotlib.patches import Patch

    labels: ModelLabels = model_labels(problem)
    shown = np.ma.MaskedArray(policy.T, mask=False)
    if problem.terminal is not None:
        shown[problem.terminal] = np.ma.masked
    colours = mpl.colormaps["tab20" if problem.n_actions > 10 else "tab10"]
    listed = mpl.colors.ListedColormap([colours(a % colours.N) for a in range(problem.n_actions)])
    limits = {"vmin": -0.5, "vmax": problem.n_actions - 0.5}
    axes.imshow(shown, aspect="auto", origin="lower", cmap=listed, interpolation="nearest", **limits)
    used = sorted({int(a) for a in shown.compressed()})[:12]
    axes.legend(
        handles=[Patch(color=listed(a), label=str(labels.actions[a])) for a in used],
        fontsize="small",
        loc="upper right",
    )
    step = -(-problem.n_states // 20)
    axes.set_yticks(range(0, problem.n_states, step), [str(name) for name in labels.states[::step]])
    axes.set(xlabel="stage", ylabel="state", title="policy")


class Solution(Readable, PlainSolution):
    """Optimal values of every state and stage, reachable or not, in the units of the rewards or costs that were given.

    It unpacks as ``value, q, policy, variance``.  Values are rewards: of a model with costs they are negative costs
    (``cost`` has them as costs).  ``solution["worn"]`` is what to do in the state of that name, stage by stage.

    >>> import livarot
    >>> def features(h, s, a):
    ...     return None if s == 1 and a == 0 else ([0, 1], [[0.0], [1.0 - a]])
    >>> solution = livarot.solve(livarot.MNLMDP.from_function(
    ...     3, 2, 2, features=features, theta=[0.5], states=["new", "worn"], actions=["keep", "replace"],
    ...     cost={("new", "keep"): 10, ("new", "replace"): 60, ("worn", "replace"): 90}))
    >>> solution
    Solution
      sizes  3 stages, 2 states, 2 actions
      cost   123.495 at the start
      new    keep x 3
      worn   replace x 3
    >>> solution.action(2, "worn"), solution["new"]
    ('replace', ('keep', 'keep', 'keep'))
    """

    problem: Problem | None = None  # what was solved
    plain: PlainSolution | None = None  # the same in normalised units

    @classmethod
    def of(cls, problem: Problem, plain: PlainSolution) -> Self:
        """The solution of a problem from normalised values."""
        units, horizon = problem.units, problem.horizon
        value, q = units.values(plain.value, horizon), units.values(plain.q, horizon)
        made = cls(value, q, plain.policy, np.asarray(units.variance(plain.variance)))
        made.problem, made.plain = problem, plain
        return made

    @property
    def normalised(self) -> PlainSolution:
        """The same with rewards in [0, 1], as theory and audits take it."""
        return self if self.plain is None else self.plain

    def __getitem__(self, key: Any) -> Any:
        return tuple.__getitem__(self, key) if isinstance(key, int | slice | np.integer) else self.decisions[key]

    def _replace(self, **changed: Any) -> Self:
        """A copy with other arrays; it no longer knows its normalised values."""
        made = type(self)(**(self._asdict() | changed))
        made.problem = self.problem
        return made
