"""From Gymnasium: environments that expose their transition probabilities become MNL MDPs.

Toy-text environments (FrozenLake, Taxi, CliffWalking) expose ``P[s][a] = [(probability, next state, reward,
terminated), ..]``, others arrays ``P[s, a, s']`` and ``R``.  A Gymnasium episode may end early; an episode here has
exactly H steps.  So a transition that ends an episode leads to an absorbing state that pays nothing:

* a state that can be entered only by ending the episode becomes absorbing itself, whatever ``P`` says about leaving it;
* if a state can also be the start, or be entered without ending the episode, the transitions that end in it lead to one
  additional state, number S, so that both cases stay apart.

Repeated next states are added up, and rewards are averaged: r(s, a) = sum_i p_i r_i, which a learner is told.  Values
are exactly those of the environment stopped after H steps, for all states that the start can reach.  For environments
that do not expose ``P`` there is :func:`livarot.learn`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import scipy

from livarot.core.arrays import BoolArray, FloatArray, IntArray
from livarot.envs.tabular import TabularMDP, from_tabular
from livarot.errors import bad, require_positive_int
from livarot.model.building.validation import check_start
from livarot.model.labels import check_labels
from livarot.model.terms.existing import check_available, check_terminal
from livarot.model.terms.rewards import read_terminal

ENDED = "(ended)"  # label of the additional state
START = ("initial_state_distrib", "isd", "start")  # where environments keep the distribution of the first state


def from_gymnasium(
    env: gymnasium.Env[Any, Any] | str,
    horizon: int | None = None,
    *,
    features: Any = "one-hot",
    shared_parameter: bool = True,
    rescale: bool = False,
    start: Any = None,
    **options: Any,
) -> TabularMDP:
    """The MNL MDP of an environment that exposes ``P``; ``env`` is the environment itself or its id.

    ``horizon`` None is the environment's time limit.  ``start`` (a state or a distribution) None is what the
    environment says, and the state of ``reset()`` if it says nothing.  ``features``, ``shared_parameter``, ``rescale``
    and further options (``discount``, ``available``, ``terminal_reward``, ..) are those of
    :func:`livarot.envs.from_tabular`, for the states of the environment; an additional state is called "(ended)".

    >>> import livarot
    >>> mdp = from_gymnasium("FrozenLake-v1")
    >>> round(float(livarot.solve(mdp).value[0, 0]), 4)
    0.7442
    """
    if isinstance(env, str):
        env = _made(env)
    base = getattr(env, "unwrapped", env)
    table = getattr(base, "P", None)
    if table is None:
        own = "take env.unwrapped.mdp, which is the model" if hasattr(base, "mdp") else "let livarot.learn step it"
        raise bad("env", f"{type(base).__name__} does not expose P", cure=own)
    if horizon is None:
        horizon = getattr(getattr(env, "spec", None), "max_episode_steps", None)
        if horizon is None:
            raise bad("horizon", "is missing, and the environment has no time limit", cure="pass horizon=")
    require_positive_int("horizon", horizon)
    keywords: dict[str, Any] = {"features": features, "shared_parameter": shared_parameter, "rescale": rescale}
    keywords |= options
    first = _start(env, base, len(table)) if start is None else start
    if not isinstance(table, Mapping) and not (isinstance(table, Sequence) and isinstance(table[0], Mapping)):
        rewards = getattr(base, "R", None)
        if rewards is None:
            raise bad("env", f"{type(base).__name__} has an array P but no R", cure="call livarot.envs.from_tabular")
        return from_tabular(table, rewards, horizon, first, **keywords)
    listed, n_states, n_actions = _listed(table)
    probability, reward, extended = _absorb(listed, n_states, n_actions, check_start(first, n_states))
    if len(extended) > n_states:
        _add_the_end(keywords, (horizon, n_states, n_actions))
    paid = _of_existing(reward, keywords, (horizon, len(extended), n_actions))
    return from_tabular(probability, paid, horizon, extended, **keywords)


def _of_existing(reward: FloatArray, keywords: dict[str, Any], shape: tuple[int, int, int]) -> FloatArray:
    """The environment's rewards (S, A), without those of actions that the user's terms take away."""
    names = check_labels("states", keywords.get("states"), shape[1])
    actions = check_labels("actions", keywords.get("actions"), shape[2])
    mask = check_available(keywords.get("available"), shape, names, actions)
    ends = check_terminal(keywords.get("terminal"), names, shape[1])
    exists = np.ones(shape[1:], dtype=np.bool_) if mask is None else mask.reshape(-1, *shape[1:]).any(axis=0)
    if ends is not None:
        exists &= ~ends[:, None]
    return np.where(exists, reward, 0.0)


def _add_the_end(keywords: dict[str, Any], shape: tuple[int, int, int]) -> None:
    """What was said about the states of the environment, for one state more: it has all actions, and is worth 0."""
    n_states = shape[1]
    names = check_labels("states", keywords.get("states"), n_states)
    actions = check_labels("actions", keywords.get("actions"), shape[2])
    mask = check_available(keywords.get("available"), shape, names, actions)
    if names is not None:
        keywords |= {"states": [*names, ENDED], "actions": actions}
    if mask is not None:
        keywords["available"] = np.insert(mask, n_states, True, axis=-2)
    ends = check_terminal(keywords.get("terminal"), names, n_states)
    if ends is not None:
        keywords["terminal"] = np.append(ends, False)
    for name in ("terminal_reward", "terminal_cost"):
        if keywords.get(name) is not None:
            final = read_terminal(keywords[name], None, n_states, names)
            keywords[name] = np.zeros(n_states + 1) if final is None else np.append(final, 0.0)


def _made(name: str) -> gymnasium.Env[Any, Any]:
    try:
        return gymnasium.make(name)
    except (gymnasium.error.Error, ImportError, ValueError) as error:
        message = f"Gymnasium cannot make {name[:60]!r}: {str(error)[:200]}"
        raise bad("env", message, cure="give an id that gymnasium.make knows, or the environment itself") from error


def _start(env: Any, base: Any, n_states: int) -> Any:
    for name in START:
        known = getattr(base, name, None)
        if known is not None:
            return known
    observation, _ = env.reset(seed=0)
    if not isinstance(observation, int | np.integer) or not 0 <= observation < n_states:
        raise bad("env", f"starts in {observation!r}, not in a state", cure="pass start=, a state or a distribution")
    return int(observation)


class _Listed:
    """Every outcome of every pair, in long form."""

    def __init__(self, pair: Any, probability: Any, next_state: Any, reward: Any, ends: Any) -> None:
        self.pair: IntArray = np.asarray(pair, dtype=np.int64)
        self.probability: FloatArray = np.asarray(probability, dtype=np.float64)
        self.next_state: IntArray = np.asarray(next_state, dtype=np.int64)
        self.reward: FloatArray = np.asarray(reward, dtype=np.float64)
        self.ends: BoolArray = np.asarray(ends, dtype=np.bool_)


def _listed(table: Any) -> tuple[_Listed, int, int]:
    """The outcomes, the number of states and the number of actions."""
    n_states = len(table)
    missing = [s for s in range(n_states) if isinstance(table, Mapping) and s not in table]
    if missing or n_states == 0:
        cure = f"number the {n_states} states from 0 on"
        raise bad("P", "has no such state", index=(missing or [0])[0], count=len(missing), cure=cure)
    columns: tuple[list[Any], ...] = ([], [], [], [], [])
    n_actions = len(table[0])
    for s in range(n_states):
        if sorted(table[s]) != list(range(n_actions)):
            raise bad("P", f"has actions {sorted(table[s])}", index=s, cure=f"give 0..{n_actions - 1} in every state")
        for a in range(n_actions):
            for outcome in table[s][a]:
                if len(outcome) != 4:
                    cure = "list (probability, next state, reward, terminated)"
                    raise bad("P", f"has an outcome {outcome!r}", index=(s, a), cure=cure)
                p, following, paid, ends = outcome
                if not 0 <= int(following) < n_states or int(following) != following:
                    cure = f"states are numbered 0..{n_states - 1}"
                    raise bad("P", f"next state {following!r} is out of range", index=(s, a), cure=cure)
                if not p >= 0.0:
                    raise bad("P", f"{p!r} is not a probability", index=(s, a))
                for column, entry in zip(columns, (s * n_actions + a, p, following, paid, ends), strict=True):
                    column.append(entry)
    listed = _Listed(*columns)
    wrong = np.flatnonzero(~np.isfinite(listed.reward))
    if len(wrong):
        place = divmod(int(listed.pair[wrong[0]]), n_actions)
        raise bad("P", "a reward is NaN or infinite", index=place, count=len(wrong), cure="give finite rewards")
    return listed, n_states, n_actions


def _absorb(listed: _Listed, n_states: int, n_actions: int, start: FloatArray) -> tuple[Any, FloatArray, FloatArray]:
    """(P sparse (S*A, S), R (S, A), start) with absorbing ends; S grows by one if a state ends some episodes only."""
    possible = listed.probability > 0.0
    source = listed.pair // n_actions
    alive = start > 0.0  # states in which an episode can be
    goes_on = possible & ~listed.ends
    while True:
        entered = listed.next_state[goes_on & alive[source]]
        if alive[entered].all():
            break
        alive[entered] = True
    closed = np.zeros(n_states, dtype=np.bool_)
    closed[listed.next_state[possible & listed.ends]] = True
    closed &= ~alive
    target = np.where(listed.ends & ~closed[listed.next_state], n_states, listed.next_state)
    happens = possible & ~closed[source]
    size = n_states + int((target[happens] == n_states).any())
    pair, target, weight = listed.pair[happens], target[happens], listed.probability[happens]
    absorbing = [*np.flatnonzero(closed), *range(n_states, size)]
    loops = np.array([s * n_actions + a for s in absorbing for a in range(n_actions)], dtype=np.int64)
    rows, columns = np.concatenate((pair, loops)), np.concatenate((target, loops // n_actions))
    entries = np.concatenate((weight, np.ones(len(loops))))
    probability = scipy.sparse.csr_array((entries, (rows, columns)), shape=(size * n_actions, size))
    probability.sum_duplicates()
    reward = listed.reward[happens]
    total = np.bincount(pair, weights=weight, minlength=size * n_actions)
    summed = np.bincount(pair, weights=weight * reward, minlength=size * n_actions)
    paid: FloatArray = summed / np.where(total > 0.0, total, 1.0)
    low, high = np.zeros((2, size * n_actions))
    low[pair], high[pair] = np.inf, -np.inf
    np.minimum.at(low, pair, reward)
    np.maximum.at(high, pair, reward)
    extended = np.zeros(size)
    extended[:n_states] = start
    # rounding must not carry an average out of the range of what it averages
    return probability, np.asarray(np.clip(paid, low, high)).reshape(size, n_actions), extended
