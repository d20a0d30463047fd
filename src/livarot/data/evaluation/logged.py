"""Logged episodes as rectangular arrays: one row per episode, one column per step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from livarot.core.arguments import checked
from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.data.reading.table import Table, named, read_table
from livarot.data.use.to_mdp import labels_of
from livarot.errors import bad
from livarot.infinite.problem import InfiniteMDP
from livarot.model.labels import Labels, ModelLabels, refuse
from livarot.model.problem import MNLMDP
from livarot.system.sizes import require_memory


@dataclass(frozen=True, eq=False)
class LoggedEpisodes:
    """n logged episodes of at most T steps, made by :func:`read_episodes`.

    Entries after the end of an episode are 0; an episode that has ended earns nothing more.
    """

    state: IntArray  # (n, T)
    action: IntArray  # (n, T)
    reward: FloatArray  # (n, T)
    length: IntArray  # (n,)
    row: IntArray  # (n, T) the row of the table
    labels: ModelLabels
    probability: FloatArray | None = None  # (n, T) of the logged actions under the policy that made the log

    def __len__(self) -> int:
        return len(self.length)

    @property
    def n_steps(self) -> int:
        """T, the length of the longest episode."""
        return int(self.state.shape[1])

    @property
    def live(self) -> BoolArray:
        """(n, T): had the episode not ended?"""
        return np.asarray(np.arange(self.n_steps) < self.length[:, None])

    @property
    def total(self) -> FloatArray:
        """(n,) the reward of each episode."""
        return np.asarray(self.reward.sum(axis=1))

    def __repr__(self) -> str:
        known = "known" if self.probability is not None else "not known"
        mean = f"mean reward {self.total.mean():.4g}"
        return f"{len(self)} episodes of at most {self.n_steps} steps, {mean}, behaviour {known}"


@checked
def read_episodes(
    table: Any,
    model: MNLMDP | InfiniteMDP | None = None,
    *,
    episode: str = "episode",
    step: str = "step",
    state: str = "state",
    action: str = "action",
    next_state: str = "next_state",
    reward: str | None = "reward",
    probability: str | None = None,
) -> LoggedEpisodes:
    """Episodes from a table with one row per step (whatever :class:`livarot.data.MNLTransition` can read).

    Parameters
    ----------
    model : whose labels of states and actions are used; None numbers the labels of the log in their order.
    episode, step, state, action : names of columns.  Steps are put in order within each episode; whole numbers must
        follow each other without a gap, and begin alike in all episodes.
    next_state : if there is such a column, it must agree with the state of the step that follows.
    reward : column of rewards (negative costs), not discounted; if it is None, or "reward" and not there, rewards are
        those of the model.  A terminal reward belongs to the last step, times the discount: it is paid a step later.
    probability : column with the probability of the logged action under the policy that made the log, if it is known.

    >>> log = {"episode": [0, 0, 1, 1], "step": [0, 1, 0, 1], "state": list("abaa"), "action": [0, 1, 1, 0],
    ...        "reward": [0.0, 1.0, 0.0, 0.5]}
    >>> read_episodes(log)
    2 episodes of at most 2 steps, mean reward 0.75, behaviour not known
    """
    data = read_table(table)
    if data.n_rows == 0:
        raise bad("table", "has no rows")
    order, length = _in_order(data, episode, step)
    shape = (len(length), int(length.max()))
    require_memory("table", "its episodes", 6 * shape[0] * shape[1])
    row = np.full(shape, -1, dtype=np.int64)
    row[np.arange(shape[1]) < length[:, None]] = order
    labels = labels_of(model) if model is not None else _own_labels(data, state, action)
    codes = [
        _placed(own.encode(data.raw(name), named(name), "use the labels of the model"), row)
        for own, name in ((labels.states, state), (labels.actions, action))
    ]
    if next_state in data:
        _check_next(data, labels.states, next_state, codes[0], row)
    gains = _rewards(data, reward, model, row, *codes)
    known = None if probability is None else _placed(_probabilities(data, probability), row, 1.0)
    return LoggedEpisodes(codes[0], codes[1], gains, length, row, labels, known)


def _own_labels(data: Table, state: str, action: str) -> ModelLabels:
    return ModelLabels(Labels(data.labels(state, "state")[1]), Labels(data.labels(action, "action")[1]))


def _placed(values: NDArray[Any], row: IntArray, elsewhere: float = 0.0) -> Any:
    """A column of the table by episode and step."""
    return np.where(row >= 0, np.asarray(values)[np.maximum(row, 0)], np.asarray(elsewhere, dtype=values.dtype))


def _in_order(data: Table, episode: str, step: str) -> tuple[IntArray, IntArray]:
    """The rows of the table, episode after episode and step after step, and the lengths of the episodes."""
    which, _ = data.labels(episode, "episode")
    codes, found = data.labels(step, "step")
    try:
        rank = np.argsort(np.argsort(np.array(found), kind="stable"), kind="stable")
    except TypeError as error:
        raise bad(named(step), "steps cannot be put in order", cure="use numbers or dates") from error
    place = rank[codes]
    order = np.lexsort((place, which))
    same = which[order][1:] == which[order][:-1]
    twice = np.zeros(len(order), dtype=bool)
    twice[order[1:][same & (place[order][1:] == place[order][:-1])]] = True
    refuse(named(step), "a step occurs twice in an episode", twice, "number the steps of each episode")
    length = np.bincount(which)
    if all(isinstance(x, int) for x in found):
        first = np.repeat(np.concatenate(([0], np.cumsum(length)[:-1])), length)
        numbers = np.array(found)[codes][order]
        off = numbers - numbers.min() != np.arange(len(order)) - first
        lost = np.zeros(len(order), dtype=bool)
        lost[order[off]] = True
        refuse(named(step), "a step before this one is missing", lost, "log every step, from the same first one on")
    return order, length


def _check_next(data: Table, states: Labels, name: str, state: IntArray, row: IntArray) -> None:
    """The next state of a step is the state of the step that follows."""
    after = _placed(states.encode(data.raw(name), named(name), "use the labels of the model"), row)
    follows = row[:, 1:] >= 0
    wrong = np.zeros(data.n_rows, dtype=bool)
    wrong[row[:, :-1][follows & (after[:, :-1] != state[:, 1:])]] = True
    refuse(named(name), "is not the state of the next step", wrong, "check how steps and episodes are numbered")


def _probabilities(data: Table, name: str) -> FloatArray:
    values = np.asarray(data.numbers(name, "probability"), dtype=np.float64)
    refuse(named(name), "is not in (0, 1]", ~((values > 0.0) & (values <= 1.0)), "give that of the action taken")
    return values


def _rewards(
    data: Table,
    reward: str | None,
    model: MNLMDP | InfiniteMDP | None,
    row: IntArray,
    state: IntArray,
    action: IntArray,
) -> FloatArray:
    """Logged rewards, or those of the model."""
    if reward is not None and (reward in data or reward != "reward" or model is None):
        return np.asarray(_placed(np.asarray(data.numbers(reward, "reward"), dtype=np.float64), row))
    if model is None:
        raise bad("reward", "is not given, and there is no model", cure="name the column of rewards")
    episodic = model.with_horizon(row.shape[1]) if isinstance(model, InfiniteMDP) else model
    if episodic.problem.next_reward is not None or episodic.problem.terminal_reward is not None:
        told = "is not given, and the model's rewards depend on the next state"
        raise bad("reward", told, cure="name the column of rewards (with the terminal reward at the last step)")
    problem, n_steps = episodic.problem, row.shape[1]
    if n_steps > problem.horizon:
        raise bad("table", f"an episode has {n_steps} steps, the model {problem.horizon}", cure="give a longer horizon")
    found = problem.units.reward(problem.reward[np.arange(n_steps), state, action])
    return np.where(row >= 0, found, 0.0)
