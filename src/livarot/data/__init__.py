"""From logged data to a model: tables in, a transition model with standard errors and confidence sets out."""

from livarot.data.bootstrap import Bootstrap, bootstrap
from livarot.data.choices import Choices, ModelLabels
from livarot.data.diagnostics import (
    Calibration,
    HeldOut,
    calibration,
    held_out,
    influence,
    likelihood_ratio,
    residuals,
)
from livarot.data.features import Computed
from livarot.data.inference import LikelihoodRatio, Summary
from livarot.data.intervals import ValueInterval, value_interval
from livarot.data.model import MNLTransition
from livarot.data.online import WarmStarted, warm_start
from livarot.data.plans import plan_optimistic, plan_robust, robust_radius, support_check
from livarot.data.policy_table import policy_table, write_policy
from livarot.data.separation import NotIdentified
from livarot.data.stored import load_fit, save_fit
from livarot.data.table import DataWarning, Labels
from livarot.data.to_mdp import labels_of

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
