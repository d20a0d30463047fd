"""The tolerances that several modules use, each with the question it answers."""

from __future__ import annotations

TIE = 1e-9  # values within TIE (1 + |best|) of the best one are equal: the first of them is taken
SUM_SLACK = 1e-9  # how far probabilities may be from summing to one
NORM_SLACK = 1e-9  # feature norms and |theta| may exceed their bound by this share of it
ROUNDING = 1e-9  # regret and optimism below this are taken for the rounding of a sum
