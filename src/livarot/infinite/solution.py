"""What solvers of stationary models give back, in the user's names and units."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arrays import FloatArray
from livarot.errors import bad
from livarot.extras import extras_explained
from livarot.infinite.problem import InfiniteMDP, InfiniteProblem
from livarot.infinite.terms import Names
from livarot.model.shown import html_of, text_of

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

SHOWN = 5  # states in a repr


class Policy(np.ndarray[Any, np.dtype[np.int32]]):
    """Actions (S,), an array of numbers that also answers to the names of states; -1 where there is no action.

    >>> from livarot.infinite import InfiniteMDP, solve
    >>> mdp = InfiniteMDP.from_transitions([[[1.0, 0.0], [0.0, 1.0]]] * 2, reward={"a": 0.0, "b": 1.0}, discount=0.5,
    ...                                    states=["a", "b"], actions=["left", "right"])
    >>> policy = solve(mdp).policy
    >>> policy["a"], policy[0], policy.action("b")
    ('right', np.int32(1), 'right')
    """

    names: Names | None

    @classmethod
    def of(cls, problem: InfiniteProblem, actions: NDArray[np.int32]) -> Policy:
        own = np.where(problem.terms.terminal, -1, actions).astype(np.int32).view(cls)
        own.names = problem.names
        return own

    def __array_finalize__(self, source: Any) -> None:
        self.names = getattr(source, "names", None) if np.shape(self) == np.shape(source) else None

    def __getitem__(self, key: Any) -> Any:
        if self.names is not None and self.names.states is not None and not isinstance(key, int | np.integer):
            try:
                known = key in self.names.states
            except TypeError:  # an array, a slice
                known = False
            if known or isinstance(key, str):
                return self.action(key)
        return super().__getitem__(key)

    def action(self, state: Any) -> Any:
        """What is done in a state given by its name (or its number, if states have no names); None where it ends."""
        if self.names is None:
            raise bad("state", "a part of a policy has no names of states", cure="ask the whole policy")
        a = int(np.asarray(self)[self.names.state(state, "state")])
        if a < 0:
            return None
        if self.names.actions is None:
            return a
        if a >= len(self.names.actions):  # the array was edited
            raise bad("policy", f"there is no action {a}", cure=f"they are numbered 0..{len(self.names.actions) - 1}")
        return self.names.actions[a]


class Stationary:
    """The methods that all solutions share; a solution has ``policy`` and ``mdp``."""

    mdp: InfiniteMDP
    policy: Policy

    def __getitem__(self, state: Any) -> Any:
        """What to do in the state of that name; None where it ends."""
        return self.policy.action(state)

    @property
    def cost(self) -> FloatArray:
        """The values as costs, (S,): their negatives."""
        return np.asarray(0.0 - self._measures()["value"])

    @property
    def start_value(self) -> float:
        """The value at the start, the mean over first states."""
        return worth_at_start(self.mdp.problem, self._measures()["value"])

    def _title(self) -> str:
        discount = getattr(self, "discount", None)
        name = type(self).__name__ + ("" if discount is None else f" at discount {discount:.9g}")
        return f"{name}: {self.mdp.problem.n_states} states, {getattr(self, 'n_iter', 0)} rounds"

    def _measures(self) -> dict[str, FloatArray]:
        """Columns of numbers, (S,), by name."""
        return {name: getattr(self, name) for name in ("value", "lower", "upper") if hasattr(self, name)}

    def _proof(self) -> str:
        width = float((self.upper - self.lower).max())  # type: ignore[attr-defined]
        return f"values proved to within {width:.3g}; {self.method}"  # type: ignore[attr-defined]

    def _lines(self) -> dict[str, str]:
        names, measures = self.mdp.problem.names, self._measures()
        main, sign = next(iter(measures)), 1.0
        numbers = measures[main]
        if main == "value" and self.mdp.problem.terms.costs:
            main, sign = "cost", -1.0
        lines = {"proof": self._proof()}
        for s in range(min(SHOWN, names.n_states)):
            label = s if names.states is None else names.states[s]
            action = self.policy.action(label)
            lines[f"{label!s:.24}"] = f"{main} {sign * numbers[s]:.8g}, {'the end' if action is None else action}"
        if names.n_states > SHOWN:
            lines["..."] = f"{names.n_states - SHOWN} more: to_frame(), plot()"
        return lines

    def __repr__(self) -> str:
        return text_of(self._title(), self._lines())

    def _repr_html_(self) -> str:
        return html_of(self._title(), self._lines())

    def to_frame(self) -> pd.DataFrame:
        """One row per state: its name, the action, the value and its bounds; costs too, where costs were given."""
        with extras_explained():
            import pandas as pd

        names, problem = self.mdp.problem.names, self.mdp.problem
        states = list(range(problem.n_states)) if names.states is None else list(names.states)
        actions: list[Any] = [None if a < 0 else a for a in np.asarray(self.policy).tolist()]
        if names.actions is not None:
            actions = [None if a is None else names.actions[a] for a in actions]
        columns: dict[str, Any] = {"state": states, "action": pd.Series(actions, dtype=object)} | self._measures()
        if problem.terms.costs and "value" in columns:
            columns["cost"] = -columns["value"]
        return pd.DataFrame(columns)

    def plot(self) -> Figure:
        """The value and its bounds against the states in their order; the background colour is the policy."""
        with extras_explained():
            import matplotlib.pyplot as plt

        figure, axes = plt.subplots(layout="constrained")
        problem, measures = self.mdp.problem, self._measures()
        places = np.arange(problem.n_states)
        main, actions = next(iter(measures)), np.asarray(self.policy)
        sign, title = (-1.0, f"cost ({main})") if problem.terms.costs else (1.0, main)
        axes.plot(places, sign * measures[main], color="black", linewidth=1.2)
        if "lower" in measures:
            ends = sign * measures["lower"], sign * measures["upper"]
            axes.fill_between(places, np.minimum(*ends), np.maximum(*ends), color="black", alpha=0.2, linewidth=0.0)
        for a in np.unique(actions[actions >= 0]).tolist():
            label = str(a if problem.names.actions is None else problem.names.actions[a])
            axes.fill_between(
                places, 0.0, 1.0, where=actions == a, step="mid", alpha=0.25, color=f"C{a % 10}", linewidth=0.0,
                transform=axes.get_xaxis_transform(), label=label,
            )  # fmt: skip
        axes.set(xlabel="state", ylabel=title, xlim=(-0.5, max(problem.n_states - 0.5, 0.5)))
        if problem.names.states is not None and problem.n_states <= 2 * SHOWN:
            axes.set_xticks(places, [str(label) for label in problem.names.states], rotation=30)
        axes.legend(title="action", loc="best")
        return figure


def worth_at_start(problem: InfiniteProblem, values: FloatArray) -> float:
    """start . V."""
    first = problem.start > 0.0  # values elsewhere may be infinite
    return math.fsum((problem.start[first] * values[first]).tolist())
