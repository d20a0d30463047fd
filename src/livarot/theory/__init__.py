"""Every constant and bound of the paper as a function, and audits of runs.

Names are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from livarot.theory.auditing import audit
    from livarot.theory.bounds import Bound, Settings, regret_bound, theory_settings
    from livarot.theory.constants import (
        Bracket,
        Gaps,
        TheoryWarning,
        diameter,
        gaps,
        has_zero_outcomes,
        kappa,
        kappa_bound,
        kappa_star,
        max_reachable,
        nu_max,
        rho,
    )
    from livarot.theory.lower import LowerBound, chain_lower_bound, lower_bound
    from livarot.theory.rates import RATES, Rate, compare
    from livarot.theory.summary import Constants
    from livarot.theory.variance import (
        hard_chain_sigma_bar,
        sigma_bar,
        sigma_bar_limit,
        sigma_bar_star,
        sigma_bar_star_limit,
    )

_HOME = {
    "audit": "auditing",
    "Bound": "bounds",
    "Settings": "bounds",
    "regret_bound": "bounds",
    "theory_settings": "bounds",
    "Bracket": "constants",
    "Gaps": "constants",
    "TheoryWarning": "constants",
    "diameter": "constants",
    "gaps": "constants",
    "has_zero_outcomes": "constants",
    "kappa": "constants",
    "kappa_bound": "constants",
    "kappa_star": "constants",
    "max_reachable": "constants",
    "nu_max": "constants",
    "rho": "constants",
    "LowerBound": "lower",
    "chain_lower_bound": "lower",
    "lower_bound": "lower",
    "RATES": "rates",
    "Rate": "rates",
    "compare": "rates",
    "Constants": "summary",
    "hard_chain_sigma_bar": "variance",
    "sigma_bar": "variance",
    "sigma_bar_limit": "variance",
    "sigma_bar_star": "variance",
    "sigma_bar_star_limit": "variance",
}

__all__ = [
    "RATES",
    "Bound",
    "Bracket",
    "Constants",
    "Gaps",
    "LowerBound",
    "Rate",
    "Settings",
    "TheoryWarning",
    "audit",
    "chain_lower_bound",
    "compare",
    "diameter",
    "gaps",
    "hard_chain_sigma_bar",
    "has_zero_outcomes",
    "kappa",
    "kappa_bound",
    "kappa_star",
    "lower_bound",
    "max_reachable",
    "nu_max",
    "regret_bound",
    "rho",
    "sigma_bar",
    "sigma_bar_limit",
    "sigma_bar_star",
    "sigma_bar_star_limit",
    "theory_settings",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        found = getattr(importlib.import_module(f"livarot.theory.{_HOME[name]}"), name)
        globals()[name] = found
        return found
    raise AttributeError(f"module 'livarot.theory' has no attribute {name!r}")
