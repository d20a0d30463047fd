"""Everything the theory promises for a problem and a number of episodes, from its facts alone, ready for JSON."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from livarot.errors import require_positive_int
from livarot.model.problem import Problem
from livarot.theory.all_constants import Constants
from livarot.theory.bounds import regret_bound
from livarot.theory.constants import Bracket, TheoryWarning, kappa
from livarot.theory.lower import lower_bound
from livarot.theory.rates import compare

FAILURE_LEVEL = 0.05  # where the agent has none


def constants_from(facts: Mapping[str, Any], problem: Problem | None = None) -> Constants:
    """The constants behind stored facts (:func:`livarot.theory.audits.facts.problem_facts`).

    Without ``problem`` kappa is only known to lie between its value at theta* and U^2 e^{4B}; the bounds use the upper
    end.  Of several models, each constant is the one that is worst for the bounds.

    >>> import livarot
    >>> from livarot.theory.audits.facts import problem_facts
    >>> mdp = livarot.envs.hard_chain(10, param_bound="tight")
    >>> known = constants_from(problem_facts([mdp]))
    >>> round(known.kappa.lower, 2), round(known.kappa.upper), known.kappa.exact
    (11.29, 29095, False)
    >>> constants_from(problem_facts([mdp]), mdp.problem).kappa.exact
    True
    """
    own, truth = facts["problem"], facts["truth"]
    bracket = Bracket(truth["log_kappa_star"]["max"], own["log_kappa_bound"]) if problem is None else kappa(problem)
    return Constants(
        dim=own["dim"],
        horizon=own["horizon"],
        param_bound=own["param_bound"],
        max_reachable=own["max_reachable"],
        rho=own["rho"],
        kappa=bracket,
        log_kappa_bound=own["log_kappa_bound"],
        zero_outcomes=own["has_zero_outcomes"],
        log_kappa_star=truth["log_kappa_star"]["max"],
        sigma_bar_star=truth["sigma_bar_star"]["max"],
        nu_max=truth["nu_max"]["max"],
    )


def promises(
    constants: Constants,
    n_episodes: int,
    *,
    sigma_bar: float | None = None,
    failure_level: float | None = None,
    n_explore: int | None = None,
) -> dict[str, Any]:
    """Upper bound with its terms, lower bound and rates; conditions that fail are listed, not warned about.

    ``sigma_bar`` is the learner's, None the largest possible one.  ``terms`` and ``upper`` are those of the theorem
    with the lemma's burn-in; ``upper_as_run`` has ``n_explore`` episodes of burn-in instead, which is what a run pays,
    though nothing is proved for it.  A number that no float holds is None beside its logarithm.
    """
    require_positive_int("n_episodes", n_episodes)
    level = FAILURE_LEVEL if failure_level is None else failure_level
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TheoryWarning)  # they are listed in ``failed``
        bound = regret_bound(constants, n_episodes, failure_level=level, sigma_bar=sigma_bar)
        printed = regret_bound(constants, n_episodes, failure_level=level, sigma_bar=sigma_bar, reading="printed")
        as_run = regret_bound(constants, n_episodes, failure_level=level, sigma_bar=sigma_bar, n_explore=n_explore or 0)
        lower = lower_bound(constants, n_episodes)
    found = bound.to_json()
    return {
        "failure_level": level,
        "sigma_bar": bound.sigma_bar,
        "terms": found["terms"],
        "log_terms": found["log_terms"],
        "upper": found["upper"],
        "log_upper": found["log_upper"],
        "dominant": bound.dominant,
        "leading_from": found["leading_from"],
        "log_leading_from": found["log_leading_from"],
        "reason": bound.reason,
        "vacuous": bound.vacuous,
        "upper_printed": printed.to_json()["upper"],
        "log_upper_printed": printed.to_json()["log_upper"],
        "upper_as_run": as_run.to_json()["upper"],
        "log_upper_as_run": as_run.to_json()["log_upper"],
        "lower": lower.value,
        "lower_details": lower.to_json(),
        "failed": [*bound.failed, *lower.failed],
        "rates": compare(constants, n_episodes, sigma_bar=bound.sigma_bar),
    }
