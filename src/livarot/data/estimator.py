"""The estimator: from a table of observed choices to a transition model with standard errors."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator  # type: ignore[import-untyped]
from sklearn.utils.validation import check_is_fitted  # type: ignore[import-untyped]

from livarot.core.arguments import check_settings, checked
from livarot.core.arrays import FloatArray
from livarot.core.ellipsoid import Ellipsoid
from livarot.data.fitting.inference import confidence_sets, covariance, warn_of_bias
from livarot.data.fitting.interruption import Steps, newton_steps
from livarot.data.fitting.likelihood import log_likelihood, log_probabilities
from livarot.data.fitting.newton import Maximum, maximise
from livarot.data.fitting.pruning import held_back, never_told, pruned, without_never_seen
from livarot.data.fitting.sandwich import covariance_kind
from livarot.data.fitting.separation import NotIdentified
from livarot.data.fitting.summary import Summary, summarise
from livarot.data.reading.choices import Choices
from livarot.data.reading.columns import Columns
from livarot.data.reading.read import read_choices, with_target
from livarot.data.reading.table import read_table, warn
from livarot.data.use.predict import probabilities
from livarot.data.use.to_mdp import Asked, at_profile, build_mdp
from livarot.errors import bad, require_non_negative
from livarot.infinite.terms import stored_discount
from livarot.model.labels import Labels
from livarot.model.problem import Problem
from livarot.system.progress import Count


class MNLTransition(BaseEstimator):  # type: ignore[misc]
    """Multinomial-logistic transition model, fitted to logged data by maximum likelihood.

        P(s' | s, a) = exp(offset(s') + phi(s'|s, a) . theta) / sum_{s''} exp(offset(s'') + phi(s''|s, a) . theta)

    Parameters
    ----------
    features : list of columns and terms (:mod:`livarot.data.formulas.formula`): ``["severity", "action:severity"]``.
    formula : instead of features, a formula as in R (:mod:`livarot.data.formulas.wilkinson`):
        ``"~ severity + log(age):next_state"``.
    reference : reference levels of categories, ``{"zone": "north"}``; otherwise the first one.
    covariates : columns of a log of transitions that belong to the transition (age of the patient), not to the next
        state; None: those that are not a function of the next state.
    reg : ridge, ``reg/2 |theta|^2`` is added to minus the log-likelihood; 0 is plain maximum likelihood.
    homogeneous : one theta for all stages, or (False) one per stage, with ``stage`` the column of stages.
    state, action, next_state, stage, choice, chosen : names of columns.  A table with a ``chosen`` column has one row
        per alternative, grouped by ``choice``; any other has one row per observed transition.
        ``action=None``: there are no actions, a Markov chain.
    count : column of how often a row occurred, for tables that are already aggregated.
    weights : column of sampling weights: how many of the population a row stands for.
    cluster : column that says who was observed (person, plant): observations of one cluster may be correlated.
    offset, nominal : columns of a known part of the logits, and of nominal probabilities (their log is added).
        With one row per transition they are columns of ``reachable``.
    reachable : which next states can occur, for tables of transitions: a table with columns state, (action,) next
        state and any attributes; a mapping ``{(state, action): [next states]}`` or ``{state: [...]}``; ``"all"``;
        or None: what was seen, with a warning.
    states, actions : tables of attributes, one row per state or action.  Without them an attribute is a column of the
        log that is a function of the next state (or of the state, the action).
    covariance : "hessian" (inverse Hessian), "sandwich", "cluster" (:mod:`livarot.data.fitting.sandwich`); "auto" is
        the last one where there are clusters, the second one where there are sampling weights, else the first.
    collinear : "refuse" columns that are combinations of others, or "drop" the later ones with a warning.
    tol, max_iter : Newton decrement at which to stop (the error of theta in standard errors); most Newton steps.

    Attributes
    ----------
    theta_ (d,), or (stages, d); covariance_ (d, d), or (stages, d, d); columns_ (names of the d coefficients),
    log_likelihood_, null_log_likelihood_, aic_, bic_, n_iter_, converged_, n_choices_, states_, actions_, stages_
    (labels), covariance_kind_, dropped_ (columns without information), held_ (1, d) or (stages, d) (coefficients held
    at 0 at a stage that has no information about them), n_parameters_ (without those), and choices_ (the data; columns
    of a numeric table are shared with it, not copied).

    Without a ridge a fit exists only if columns are not collinear within choice sets and the data are not separable:
    otherwise :class:`livarot.data.NotIdentified` names the columns.

    >>> log = {"state": ["ok", "ok", "ok", "ok"], "action": ["run"] * 4, "next_state": ["ok", "worn", "ok", "ok"],
    ...        "wear": [0.0, 1.0, 0.0, 0.0]}
    >>> fit = MNLTransition(features=["wear"], reachable="all").fit(log)
    >>> fit.theta_.round(4), fit.predict_proba({"state": ["ok"], "action": ["run"]})
    (array([-1.0986]), array([[0.75, 0.25]]))
    """

    theta_: FloatArray
    covariance_: FloatArray
    choices_: Choices

    def __init__(
        self,
        features: Any = None,
        *,
        formula: str | None = None,
        reference: Any = None,
        covariates: Any = None,
        reg: float = 0.0,
        homogeneous: bool = True,
        state: str = "state",
        action: str | None = "action",
        next_state: str = "next_state",
        stage: str | None = None,
        choice: str = "choice",
        chosen: str = "chosen",
        count: str | None = None,
        weights: str | None = None,
        cluster: str | None = None,
        offset: str | None = None,
        nominal: str | None = None,
        reachable: Any = None,
        states: Any = None,
        actions: Any = None,
        covariance: str = "auto",
        collinear: str = "refuse",
        tol: float = 1e-8,
        max_iter: int = 100,
    ) -> None:
        self.features = features
        self.formula = formula
        self.reference = reference
        self.covariates = covariates
        self.reg = reg
        self.homogeneous = homogeneous
        self.state = state
        self.action = action
        self.next_state = next_state
        self.stage = stage
        self.choice = choice
        self.chosen = chosen
        self.count = count
        self.weights = weights
        self.cluster = cluster
        self.offset = offset
        self.nominal = nominal
        self.reachable = reachable
        self.states = states
        self.actions = actions
        self.covariance = covariance
        self.collinear = collinear
        self.tol = tol
        self.max_iter = max_iter

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False  # tables with labels, not matrices of numbers
        tags.input_tags.string = True
        tags.input_tags.categorical = True
        tags.target_tags.required = False
        return tags

    # --- fitting

    def fit(self, X: Any, y: Any = None, *, progress: bool | Count | None = None) -> MNLTransition:
        """Fit to a table, the path of a table, or :class:`~livarot.data.Choices`.

        ``y`` may give the next states (tables of transitions) or the flags (tables of alternatives) instead of a
        column.  ``progress`` counts Newton steps as :func:`livarot.run` counts episodes: None is a bar if the fit
        takes long in a terminal or a notebook.  Ctrl-C raises :class:`livarot.Interrupted` with the last theta as its
        ``result``, a :class:`livarot.data.UnfinishedFit` (None before the first step), and the estimator is as it was.
        """
        check_settings(MNLTransition.__init__, self.get_params(deep=False), reg=require_non_negative)
        with newton_steps(progress) as steps:
            choices = self._read(X, y)
            never: list[str] = []
            while True:
                try:
                    how = "drop" if never else self.collinear  # what that makes collinear goes
                    told = self._estimate(choices, how, steps)
                    break
                except NotIdentified as error:
                    everything = isinstance(self.reachable, str) and not isinstance(X, Choices)
                    left = without_never_seen(choices, error, self.next_state) if everything else None
                    if left is None:
                        raise
                    never += left.attrs["left_out"]
                    choices = self._read(X, y, reachable=left)
        if never:
            told = ["; ".join((never_told(never), *told))]
        for text in told:
            warn(text)
        return self

    def _estimate(self, choices: Choices, collinear: str, steps: Steps) -> list[str]:
        """Fit to choices; gives the texts of warnings."""
        reg, shared = float(self.reg), bool(self.homogeneous)
        kind = covariance_kind(self.covariance, choices)
        choices, at_zero, dropped, told = pruned(choices, collinear, formula=self.formula is not None, ridge=reg > 0.0)
        free: Any = itertools.repeat(None)
        if not shared and reg == 0.0:
            choices, free, more = held_back(choices, self._groups(choices), collinear)
            told += more
        steps.begin(choices.columns)
        found, covariances = list[Maximum](), list[FloatArray]()
        settings: dict[str, Any] = {"tol": float(self.tol), "max_iter": int(self.max_iter), "follow": steps.follow}
        for (where, part), own in zip(self._groups(choices), free, strict=False):
            result = maximise(part, reg=reg, where=where, at_zero=at_zero if shared else None, free=own, **settings)
            found.append(steps.finish(result))
            covariances.append(covariance(part, result, reg, kind))
        self._fitted(choices, found, covariances, kind, dropped)
        return told

    def _fitted(
        self,
        choices: Choices,
        maxima: list[Maximum],
        covariances: Sequence[FloatArray],
        kind: str,
        dropped: tuple[str, ...],
    ) -> MNLTransition:
        """Set the attributes of a fit that was made or loaded."""
        shared = bool(self.homogeneous)
        self.theta_ = maxima[0].theta if shared else np.stack([one.theta for one in maxima])
        self.covariance_ = covariances[0] if shared else np.stack(covariances)
        self.maxima_ = maxima
        self.columns_ = choices.columns
        self.log_likelihood_ = float(sum(one.log_likelihood for one in maxima))
        self.null_log_likelihood_ = float(sum(one.null_log_likelihood for one in maxima))
        self.covariance_kind_ = kind
        self.dropped_ = dropped
        self.held_ = np.stack([(np.diag(one.hessian) == 0.0) & (float(self.reg) == 0.0) for one in maxima])
        self.n_parameters_ = int((~self.held_).sum())
        self.aic_ = 2.0 * self.n_parameters_ - 2.0 * self.log_likelihood_
        self.bic_ = math.log(max(choices.n_observations, 1.0)) * self.n_parameters_ - 2.0 * self.log_likelihood_
        self.n_iter_ = max(one.n_iter for one in maxima)
        self.converged_ = all(one.converged for one in maxima)
        self.n_choices_ = choices.n_choices
        self.choices_ = choices
        labels = choices.labels
        self.states_ = labels.states if labels else Labels([])
        self.actions_ = labels.actions if labels else Labels([])
        self.stages_ = labels.stages if labels else None
        self.classes_ = self.states_.array()
        return self

    def _columns(self) -> Columns:
        return Columns.of(self)

    def _read(self, X: Any, y: Any = None, like: Choices | None = None, reachable: Any = None) -> Choices:
        if isinstance(X, Choices):
            return X
        columns, table = self._columns(), read_table(X)
        if y is not None:
            table = with_target(table, y, self.chosen if self.choice in table else self.next_state)
        if reachable is not None:
            names = {name: getattr(columns, name) for name in ("stage", "state", "action", "next_state")}
            columns = replace(columns, reachable=reachable.rename(columns=names))
        found = read_choices(table, columns, by_stage=not self.homogeneous, like=like)
        if like is not None and found.columns != like.columns:  # some were dropped
            found = found.keep_columns([found.columns.index(name) for name in like.columns])
        return found

    def _groups(self, choices: Choices) -> list[tuple[str, Choices]]:
        """The data of each parameter."""
        if self.homogeneous:
            return [("", choices)]
        labels = choices.labels
        if choices.stage is None or labels is None or labels.stages is None:
            raise bad("stage", "is not given", cure="name the column of stages, or fit with homogeneous=True")
        return [(f" at stage {stage!r}", choices.select(choices.stage == k)) for k, stage in enumerate(labels.stages)]

    def _log_probabilities(self, choices: Choices) -> FloatArray:
        """log p of every row, each stage with its own parameter."""
        if self.homogeneous:
            return log_probabilities(choices, self.theta_)
        out = np.empty(choices.n_rows)
        assert choices.stage is not None  # noqa: S101 (fit has checked)
        for k, theta in enumerate(self.theta_):
            own = choices.stage == k
            if own.any():
                out[np.repeat(own, choices.sizes)] = log_probabilities(choices.select(own), theta)
        return out

    # --- prediction

    def predict_proba(self, X: Any) -> FloatArray:
        """Probabilities of the alternatives.

        Alternatives: (rows,), one per row of the table, adding up to one within each choice.  Transitions: (rows, S),
        the distribution of the next state over ``classes_`` (the labels of all states) for each row's state and action.
        """
        check_is_fitted(self, "theta_")
        return probabilities(self, X)

    def predict(self, X: Any) -> Any:
        """The most likely next state (a label) of each row of a table of transitions."""
        check_is_fitted(self, "theta_")
        if self.choices_.layout != "transitions":
            raise bad("X", "predict is for tables of transitions", cure="use predict_proba for alternatives")
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def score(self, X: Any, y: Any = None) -> float:
        """Mean log-likelihood per choice (larger is better; minus the log-loss)."""
        check_is_fitted(self, "theta_")
        choices = self._read(X, y, like=self.choices_)
        if not choices.n_choices > 0:
            raise bad("X", "has no observed choices", cure="it needs the next states, or the chosen flags")
        if self.homogeneous:
            return log_likelihood(choices, self.theta_) / choices.n_choices
        seen = choices.count > 0
        return float(choices.count[seen] @ self._log_probabilities(choices)[seen]) / choices.n_choices

    # --- inference

    @checked
    def summary(self, level: float = 0.95) -> Summary:
        """Coefficients, standard errors, z, p, intervals; log-likelihoods, McFadden's pseudo-R2, AIC, BIC, the
        likelihood-ratio test against theta = 0 (Wald's under weights or clusters).  ``to_latex()``, ``plot()``.

        With a ridge the standard errors are those of a Gaussian posterior (:mod:`livarot.data.fitting.inference`), and
        a :class:`DataWarning` says where the ridge decides more than the data."""
        check_is_fitted(self, "theta_")
        if self.reg > 0:
            warn_of_bias(self)
        return summarise(self, level)

    def _covariances(self) -> list[FloatArray]:
        return [self.covariance_] if self.homogeneous else list(self.covariance_)

    @checked
    def confidence_set(
        self, level: float = 0.95, kind: str = "wald", *, problem: Problem | None = None
    ) -> Ellipsoid | list[Ellipsoid]:
        """An ellipsoid that holds the true theta with probability ``level``.

        ``"wald"`` is asymptotic, and Bayesian if there is a ridge (with a :class:`DataWarning` where the ridge decides
        more than the data); ``"finite-sample"`` holds for every sample size, also for data collected adaptively
        (theorem and proof: :mod:`livarot.data.fitting.inference`), and is wider.  One theta per stage gives a list of
        sets that hold together (level 1 - (1 - level)/stages each).  ``problem``, made by :meth:`to_mdp`, gives the
        set in the units of its scaled features.  The axis of a coefficient that is held at 0 means nothing.
        """
        check_is_fitted(self, "theta_")
        sets = confidence_sets(self, level, kind)
        if problem is not None:
            scale = problem.feature_scale
            sets = [Ellipsoid(own.center * scale, own.matrix / scale**2, own.radius) for own in sets]
        return sets[0] if self.homogeneous else sets

    # --- towards a plan

    def support(self) -> pd.DataFrame:
        """How often each (stage, state, action) was observed: index of labels, column ``count``."""
        check_is_fitted(self, "theta_")
        frame = self.choices_.frame()
        keys = [name for name in ("stage", "state", "action") if name in frame]
        if "state" not in keys:
            raise bad("data", "has no state and action columns", cure="name them: state=..., action=...")
        return frame.groupby(keys, sort=True)[["count"]].sum()

    @checked(discount=stored_discount)
    def to_mdp(
        self,
        reward: Any = None,
        horizon: int | None = None,
        start: Any = None,
        *,
        cost: Any = None,
        discount: float | None = None,
        terminal: Any = None,
        terminal_reward: Any = None,
        terminal_cost: Any = None,
        available: Any = None,
        at: Mapping[str, Any] | None = None,
        unseen: str = "unavailable",
        param_bound: float | None = None,
    ) -> Any:
        """The fitted model as an MDP, in the names of the log and in the units of the rewards.

        Parameters
        ----------
        reward, cost : one of them, of any scale, with a number for every available (state, action): a mapping from
            state, (state, action) or (state, action, next_state) names; a table (or its path) with these columns and
            one called reward or cost; a function of (state, action) or (state, action, next_state) names; an array
            (S,), (S, A), (H, S, A) or (S, A, S') in the order of ``states_`` and ``actions_``.
        horizon : number of steps.  None is a model without an end, an :class:`livarot.infinite.InfiniteMDP`, unless the
            fit differs from stage to stage: then it is the number of its stages.
        start : a state's name, a mapping from names to probabilities, an array (S,); None is what was observed at the
            first stage, or, if there is neither stage nor horizon, how often each state was visited.
        discount : from 0 to 1; None is 1: the total reward of the steps, the average reward where there is no end.
        terminal : states where an episode is over, or ``{state: what that is worth}`` as a reward or cost.
        terminal_reward, terminal_cost : what the last state is worth: ``{state: number}`` (0 for others), a table, an
            array (S,).  Without a horizon only terminal states have one.
        available : which of the seen actions exist: ``{state: [actions]}``, a mask (S, A) or (H, S, A).
        at : the covariates of the person or unit to plan for, ``{"age": 60.0, "sex": "f"}``, if the model has any.
        unseen : what an action does in a state where the data have no reachable set for it.  "unavailable": it does
            not exist there; "error": the model is refused; "stay": it leads back to the state; "sink": it leads to an
            extra state ``"(unseen)"`` that pays 0 for ever, or the worst reward if that is below 0.  A state without
            any known action has to be terminal, or, with "stay" and "sink", is absorbing.
        param_bound : B of the problem; None is the largest |theta|.
        """
        check_is_fitted(self, "theta_")
        ends = (terminal, terminal_reward, terminal_cost)
        asked = Asked(reward, cost, horizon, start, discount, *ends, available, unseen, param_bound)
        stages = None if self.homogeneous else self.stages_
        return build_mdp(at_profile(self.choices_, at), self.theta_, stages, self._columns(), asked)
