"""From logged data to a model: tables in, a transition model with standard errors and confidence sets out."""

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
from livarot.data.model import MNLTransition
from livarot.data.separation import NotIdentified
from livarot.data.table import DataWarning, Labels
from livarot.data.to_mdp import labels_of

__all__ = [
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
    "calibration",
    "held_out",
    "influence",
    "labels_of",
    "likelihood_ratio",
    "residuals",
]
