"""Off-policy evaluation: what would a policy have earned in the place of the one that made the log?

The estimators are those of :mod:`livarot.data.evaluation.estimators`, beside

    behaviour   the mean reward of the logged episodes: what the log's own policy earned
    model       mean over the logged first states s of V_0(s) in the fitted model; its variance is that of the delta
                method, g' Cov g with g = dV/d theta and the fit's own covariance, plus that of the mean over first
                states.  ``kind="bootstrap"`` takes quantiles over refits and resampled first states instead.

All of them are about episodes that begin as the logged ones do.  Model and doubly robust take the model's rewards for
granted.  Where no logged episode follows the policy to its end, weights cannot tell what comes after: then importance
sampling (which would count it as 0) and doubly robust (whose standard error would not count the model's) are left out.

Without an end the policy is stationary, and the estimates are those of the first steps, as many as the longest episode
has, with what the later ones can add in their intervals (:mod:`livarot.data.evaluation.truncation`).

Without ``cross_fit`` the same episodes determine the model and are evaluated with it.  That is harmless in
large samples, since the model has finitely many parameters; with ``cross_fit=k`` the Q of an episode comes from a
refit without its fold (k folds of episodes, drawn by ``seed``).
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from livarot.core.arguments import checked, natural, several
from livarot.core.arrays import FloatArray, IntArray
from livarot.data.evaluation.behaviour import KINDS, Behaviour, behaviour_of
from livarot.data.evaluation.estimators import (
    Interval,
    doubly_robust,
    effective_sizes,
    interval,
    per_decision,
    ratios,
    trajectory_wise,
    values_in,
    weighted_per_decision,
)
from livarot.data.evaluation.logged import LoggedEpisodes, read_episodes
from livarot.data.evaluation.result import PolicyEvaluation
from livarot.data.evaluation.truncation import completed, cut_model, later_rewards, stationary_policy
from livarot.data.fitting.bootstrap import bootstrap, check_own, kernels
from livarot.data.fitting.newton import maximise
from livarot.data.reading.table import DataWarning
from livarot.data.use.intervals import start_value, value_and_gradient
from livarot.data.use.policy_table import policy_array
from livarot.data.use.to_mdp import labels_of
from livarot.errors import bad
from livarot.infinite.problem import InfiniteMDP
from livarot.model.probabilities import transition_kernel
from livarot.model.problem import MNLMDP
from livarot.planning.exact import evaluate_kernel
from livarot.simulation.streams import stream

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

WEIGHTED = {
    "importance sampling": trajectory_wise,
    "per-decision": per_decision,
    "weighted per-decision": weighted_per_decision,
}
LEAST_EFFECTIVE = 30.0  # below, normal intervals of weighted means are not to be trusted


@checked(cross_fit=natural, n_resamples=several)
def evaluate_policy(
    log: Any,
    policy: Any,
    fit: MNLTransition | None = None,
    mdp: MNLMDP | InfiniteMDP | None = None,
    *,
    behaviour: str = KINDS[0],
    level: float = 0.95,
    kind: str = "delta",
    cross_fit: int = 0,
    n_resamples: int = 200,
    seed: int = 0,
) -> PolicyEvaluation:
    """Estimates of a policy's value from logged episodes, with intervals; warns where the log cannot tell.

    Parameters
    ----------
    log : :func:`livarot.data.read_episodes` of a table, or a table with the columns that it takes by default.
    policy : (H, S) actions or (H, S, A) probabilities in the order of the model's labels, or a table as
        :func:`livarot.data.policy_table` makes (the path of one, too); (S,) or (S, A) if the model has no end.
    fit, mdp : a fit and its ``fit.to_mdp(...)``, for the estimators "model" and "doubly robust".  An ``mdp`` alone
        gives the labels (and the rewards, if the log has none).  Without an end it needs a discount below 1.
    behaviour : how the probabilities of the logged actions are estimated, if the log does not have them: "counts" per
        state, "stage counts" per state and step, "logit" in state and step.
    kind, n_resamples : interval of "model", "delta" or "bootstrap" of so many refits.
    cross_fit : folds of "doubly robust"; 0 is none.
    seed : of the folds and the refits.

    >>> import livarot
    >>> rng = np.random.default_rng(0)
    >>> n = 400
    >>> act = rng.integers(2, size=n)
    >>> log = {"episode": np.arange(n), "step": np.zeros(n, int), "state": ["ill"] * n, "action": act,
    ...        "reward": 1.0 * (rng.random(n) < 0.3 + 0.4 * act)}
    >>> found = livarot.data.evaluate_policy(log, np.array([[1]]))
    >>> print(found.to_frame().round(3))
                           value  standard_error  lower  upper
    estimator
    behaviour              0.505           0.025  0.456  0.554
    importance sampling    0.679           0.032  0.617  0.741
    per-decision           0.679           0.032  0.617  0.741
    weighted per-decision  0.679           0.032  0.617  0.741
    """
    if kind not in ("delta", "bootstrap"):
        raise bad("kind", f"{kind!r} is not known", cure="use 'delta' or 'bootstrap'")
    if fit is not None:
        if mdp is None:
            raise bad("mdp", "is not given", cure="pass fit.to_mdp(...) too")
        check_own(fit, mdp.stage if isinstance(mdp, InfiniteMDP) else mdp)
    episodes = log if isinstance(log, LoggedEpisodes) else read_episodes(log, mdp)
    made, later = behaviour_of(episodes, behaviour), (0.0, 0.0)
    if isinstance(mdp, InfiniteMDP):
        _check_labels(episodes, mdp)
        endless, mdp = mdp, cut_model(episodes, mdp)
        table, later = stationary_policy(policy, episodes, endless), later_rewards(episodes, endless)
    else:
        table = policy_array(policy, episodes.labels, mdp, made.visits > 0)
    episodes = _discounted(episodes, mdp)
    _check_log(episodes, table, mdp)
    weight = ratios(episodes, table, made.probability)
    found = {"behaviour": interval(episodes.total, level)}
    sizes = effective_sizes(weight)
    if fit is not None and mdp is not None:
        found["model"] = _by_model(episodes, table, fit, mdp, level, (kind, n_resamples, seed))
    elif cross_fit:
        raise bad("cross_fit", "needs a fit", cure="pass fit and mdp")
    if sizes.min() > 0.0:
        for name, function in WEIGHTED.items():
            found[name] = interval(function(episodes, weight), level, made.scores)
        if fit is not None and mdp is not None:
            influence = _robust_influence(episodes, weight, table, fit, mdp, cross_fit, seed)
            found["doubly robust"] = interval(influence, level, made.scores)
    lost = _no_overlap(episodes, table, weight, made)
    truncation = 0.5 * (later[1] - later[0])
    result = PolicyEvaluation(completed(found, later), level, len(episodes), sizes, lost, made.kind, truncation)
    _warn(result)
    return result


def _discounted(log: LoggedEpisodes, mdp: MNLMDP | None) -> LoggedEpisodes:
    """The episodes with the rewards discounted as the model does."""
    if mdp is None or mdp.problem.discount == 1.0:
        return log
    return replace(log, reward=log.reward * np.power(mdp.problem.discount, np.arange(log.n_steps)))


def _check_log(log: LoggedEpisodes, table: FloatArray, mdp: MNLMDP | None) -> None:
    if len(log) < 2:
        raise bad("log", f"has {len(log)} episode", cure="an interval needs two at least, better hundreds")
    if log.n_steps > len(table):
        problem = f"an episode has {log.n_steps} steps, the policy {len(table)}"
        raise bad("log", problem, cure="give a policy for all steps, or cut the episodes")
    if mdp is not None:
        _check_labels(log, mdp)
        step = np.broadcast_to(np.arange(log.n_steps), log.state.shape)
        off = log.live & ~mdp.problem.reachable[step, log.state]
        if off.any():
            _tell(
                f"{int(off.sum())} logged steps are in states that the model's start cannot reach at that step: "
                "a plan has no advice there"
            )


def _check_labels(log: LoggedEpisodes, mdp: MNLMDP | InfiniteMDP) -> None:
    own = labels_of(mdp)
    if (log.labels.states, log.labels.actions) != (own.states, own.actions):
        raise bad("log", "was read with other labels", cure="read it by read_episodes(table, mdp, ...)")


def _by_model(
    log: LoggedEpisodes,
    table: FloatArray,
    fit: MNLTransition,
    mdp: MNLMDP,
    level: float,
    how: tuple[str, int, int],
) -> Interval:
    """The value in the model from the logged first states."""
    kind, n_resamples, seed = how
    n, first = len(log), np.bincount(log.state[:, 0], minlength=mdp.problem.n_states) / len(log)
    problem = replace(mdp.problem, start=first)
    kernel = transition_kernel(mdp)
    value = problem.units.value(evaluate_kernel(problem, kernel, table)[0], problem.horizon)
    centre = float(first @ value)
    if kind == "bootstrap":
        draws, _ = bootstrap(fit, n_resamples, seed)
        rng = stream(seed, "first states")
        starts = [rng.multinomial(n, first) / n for _ in draws]
        pairs = zip(starts, kernels(problem, draws), strict=True)
        values = np.array([start_value(replace(problem, start=begin), own, table) for begin, own in pairs])
        lower, upper = np.quantile(values, (0.5 - level / 2.0, 0.5 + level / 2.0))
        return Interval(centre, float(values.std(ddof=1)), float(lower), float(upper))
    slope = value_and_gradient(problem, kernel, table)[1] * problem.feature_scale
    variance = sum(float(g @ cov @ g) for g, cov in zip(slope, fit._covariances(), strict=True))
    variance += float(first @ (value - centre) ** 2) / (n - 1)
    error = math.sqrt(max(variance, 0.0))
    reach = float(norm.ppf(0.5 + level / 2.0)) * error
    return Interval(centre, error, centre - reach, centre + reach)


def _robust_influence(
    log: LoggedEpisodes,
    weight: FloatArray,
    table: FloatArray,
    fit: MNLTransition,
    mdp: MNLMDP,
    cross_fit: int,
    seed: int,
) -> FloatArray:
    """Doubly robust values of the episodes, each with the Q of the fit or of a refit without its fold."""
    if cross_fit == 0:
        found = values_in(mdp.problem, transition_kernel(mdp), table)
        return doubly_robust(log, weight, *found, mdp.problem.discount)
    if not 2 <= cross_fit <= len(log):
        raise bad(
            "cross_fit", f"{cross_fit} folds of {len(log)} episodes", cure="use 0, or 2 to the number of episodes"
        )
    _check_same_log(log, fit)
    fold = stream(seed, "folds").permutation(len(log)) % cross_fit
    influence = np.empty(len(log))
    for k in range(cross_fit):
        own = next(iter(kernels(mdp.problem, _refit(log, fit, fold != k)[None])))
        here = fold == k
        found = values_in(mdp.problem, own, table)
        influence[here] = doubly_robust(log, weight, *found, mdp.problem.discount)[here]
    return influence


def _check_same_log(log: LoggedEpisodes, fit: MNLTransition) -> None:
    """Cross-fitting leaves rows of the log out of the fit: they must be the same rows."""
    choices, live = fit.choices_, log.live
    used = len(choices.log_row) == int(live.sum())
    if used:
        own: Any = choices.set_of_row[choices.log_row[log.row[live]]]
        states: Any = choices.state
        actions: Any = choices.action
        used = bool((states[own] == log.state[live]).all() and (actions[own] == log.action[live]).all())
        used = used and bool((choices.count == np.bincount(choices.log_row, minlength=choices.n_rows)).all())
    if not used:
        raise bad("cross_fit", "the fit was made from other rows than this log has", cure="fit to the same table")


def _refit(log: LoggedEpisodes, fit: MNLTransition, kept: Any) -> FloatArray:
    """The fit to some of the episodes, (K, d)."""
    choices = fit.choices_
    rows: IntArray = choices.log_row[log.row[log.live & np.asarray(kept)[:, None]]]
    part = choices.with_counts(np.bincount(rows, minlength=choices.n_rows).astype(np.float64))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)  # the fit has already warned about the data
        found = [
            maximise(own, reg=float(fit.reg), tol=float(fit.tol), max_iter=int(fit.max_iter), free=~held).theta
            for (_, own), held in zip(fit._groups(part), fit.held_, strict=True)
        ]
    return np.stack(found)


def _no_overlap(log: LoggedEpisodes, table: FloatArray, weight: FloatArray, made: Behaviour) -> pd.DataFrame:
    """(state, action) that the policy takes, at a logged step that it may reach, where the log never did."""
    before = np.concatenate((np.ones((len(log), 1)), weight[:, :-1]), axis=1)
    on = log.live & (before > 0.0)
    steps: dict[tuple[int, int], list[int]] = {}
    for t in range(log.n_steps):
        visits = np.bincount(log.state[on[:, t], t], minlength=made.logged.shape[1])
        lost = (visits[:, None] > 0) & (table[t] > 0.0) & (made.logged[t] == 0)
        for s, a in np.argwhere(lost):
            one = steps.setdefault((int(s), int(a)), [0, t])
            one[0] += int(visits[s])
    frame = pd.DataFrame(
        {
            "state": log.labels.states.decode([s for s, _ in steps]),
            "action": log.labels.actions.decode([a for _, a in steps]),
            "steps": [n for n, _ in steps.values()],
            "first_step": [t for _, t in steps.values()],
        }
    )
    return frame.sort_values("steps", ascending=False, kind="stable").set_index(["state", "action"])


def _tell(message: str) -> None:
    """A warning at the line that called :func:`evaluate_policy` (through ``checked``, two functions up)."""
    warnings.warn(message, DataWarning, stacklevel=5)


def _warn(result: PolicyEvaluation) -> None:
    lost, size = result.no_overlap, float(result.effective.min())
    if len(lost):
        state, action = lost.index[0]
        first = lost.iloc[0]
        _tell(
            f"no overlap: the policy takes {action!r} in {state!r} ({int(first.steps)} logged steps, the first one is "
            f"step {int(first.first_step)}), which was never logged there; {len(lost)} (state, action) in all: what "
            "follows them rests on the model alone, and importance sampling counts it as 0"
        )
    if size == 0.0:
        step = int(np.argmax(result.effective == 0.0))
        _tell(
            f"from step {step} on no logged episode follows the policy: importance sampling and the doubly robust "
            "estimate are left out; judge the policy by the model, or collect more"
        )
    elif size < LEAST_EFFECTIVE:
        step = int(np.argmax(result.effective < LEAST_EFFECTIVE))
        _tell(
            f"the effective sample size falls to {size:.1f} of {result.n_episodes} episodes (below "
            f"{LEAST_EFFECTIVE:.0f} from step {step} on): do not trust intervals that weigh episodes"
        )
