"""From logged data to a model: tables in, a transition model with standard errors and confidence sets out."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from livarot.data.estimator import MNLTransition
from livarot.data.fitting.bootstrap import Bootstrap, bootstrap
from livarot.data.fitting.features import Computed
from livarot.data.fitting.inference import LikelihoodRatio, Summary
from livarot.data.fitting.separation import NotIdentified
from livarot.data.reading.choices import Choices
from livarot.data.reading.table import DataWarning
from livarot.data.use.to_mdp import labels_of
from livarot.model.labels import Labels, ModelLabels

if TYPE_CHECKING:
    from livarot.data.fitting.diagnostics import (
        Calibration,
        HeldOut,
        calibration,
        held_out,
        influence,
        likelihood_ratio,
        residuals,
    )
    from livarot.data.use.files import load_fit, save_fit
    from livarot.data.use.intervals import ValueInterval, value_interval
    from livarot.data.use.plans import plan_optimistic, plan_robust, robust_radius, support_check
    from livarot.data.use.policy_table import policy_table, write_policy
    from livarot.data.use.warm_start import WarmStarted, warm_start

_LATER = ("diagnostics", "intervals", "online", "plans", "policy_table", "stored")  # modules that a fit does not need

__all__ = [
    "Bootstrap",
    "Calibration",
    "Choices",
    "Computed",
    "DataWarning",
    "HeldOut",
    "Labels",
    "LikelihoodRatio",
    "MNLTransition",
    "ModelLabels",
    "NotIdentified",
    "Summary",
    "ValueInterval",
    "WarmStarted",
    "bootstrap",
    "calibration",
    "held_out",
    "influence",
    "labels_of",
    "likelihood_ratio",
    "load_fit",
    "plan_optimistic",
    "plan_robust",
    "policy_table",
    "residuals",
    "robust_radius",
    "save_fit",
    "support_check",
    "value_interval",
    "warm_start",
    "write_policy",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        for module in _LATER:
            found = vars(importlib.import_module(f"livarot.data.{module}")).get(name)
            if found is not None:
                return found
    raise AttributeError(f"module 'livarot.data' has no attribute {name!r}")
