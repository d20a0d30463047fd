"""Generators of MNL MDPs and their registry: one line per environment (``livarot list envs``)."""

from __future__ import annotations

import importlib
from functools import partial
from typing import TYPE_CHECKING, Any

from livarot.envs.bandit import BanditConstants, bandit_constants, mnl_bandit
from livarot.envs.deepsea import deep_sea
from livarot.envs.drifting import Drifting
from livarot.envs.features import (
    Encoding,
    FeatureMap,
    Function,
    LogNominal,
    LongTable,
    Moves,
    NextState,
    OneHot,
    Transitions,
)
from livarot.envs.hard import hard_chain
from livarot.envs.kl_robust import kl_robust
from livarot.envs.maintenance import machine_maintenance
from livarot.envs.park import park_two_state
from livarot.envs.random_mdp import random_mdp
from livarot.envs.riverswim import river_swim
from livarot.envs.sepsis import icu_sepsis
from livarot.envs.sixarms import six_arms
from livarot.envs.tabular import RewardScale, TabularMDP, from_tabular
from livarot.model.problem import MNLMDP
from livarot.registry import Registry

if TYPE_CHECKING:
    from livarot.envs.gymnasium.env import MNLEnv, MNLVectorEnv, StageObservation
    from livarot.envs.gymnasium.from_env import from_gymnasium

registry: Registry[MNLMDP] = Registry("environment")
registry.register("hard-chain", hard_chain, "the chain of the lower bound, gap tuned to T or fixed")
registry.register("hard-chain-fixed", partial(hard_chain, gap=0.05), "the same with a gap that can be learned")
registry.register("river-swim", river_swim, "RiverSwim (Osband/Cho), one-hot or shared move features")
registry.register("river-swim-park", partial(river_swim, variant="park"), "RiverSwim, Park's copy: small reward .05")
registry.register("river-swim-vtr", partial(river_swim, n_states=5, variant="vtr"), "RiverSwim of the UCRL-VTR code")
registry.register("river-swim-strehl", partial(river_swim, variant="strehl"), "RiverSwim as first published, rescaled")
registry.register("six-arms", six_arms, "SixArms: rare doors to rich rooms")
registry.register("deep-sea", deep_sea, "DeepSea with slips: one reward behind N moves to the right")
registry.register("park-two-state", park_two_state, "the two-state instance of Park et al., finite horizon")
registry.register("random", random_mdp, "random MNL MDP with chosen S, A, U, d, H, B, gap and sigma_bar")
registry.register("mnl-bandit", mnl_bandit, "multinomial logit bandit: one decision, outcomes of known value")
registry.register("kl-robust", kl_robust, "KL-robust MDP, constant eta or a KL ball, V exactly in the span of psi")
registry.register("machine-maintenance", machine_maintenance, "synthetic example: wear, breakdowns and service")
registry.register("icu-sepsis", icu_sepsis, "ICU-Sepsis patients who respond differently; needs the package icu-sepsis")

LARGE = frozenset({"icu-sepsis"})  # too large for what tries everything, and its data come with an extra
make = registry.make

# Gymnasium is imported when it is needed
_LAZY = {
    "from_gymnasium": "gymnasium.from_env",
    "MNLEnv": "gymnasium.env",
    "MNLVectorEnv": "gymnasium.env",
    "StageObservation": "gymnasium.env",
}

__all__ = [
    "LARGE",
    "BanditConstants",
    "Drifting",
    "Encoding",
    "FeatureMap",
    "Function",
    "LogNominal",
    "LongTable",
    "MNLEnv",
    "MNLVectorEnv",
    "Moves",
    "NextState",
    "OneHot",
    "RewardScale",
    "StageObservation",
    "TabularMDP",
    "Transitions",
    "bandit_constants",
    "deep_sea",
    "from_gymnasium",
    "from_tabular",
    "hard_chain",
    "icu_sepsis",
    "kl_robust",
    "machine_maintenance",
    "make",
    "mnl_bandit",
    "park_two_state",
    "random_mdp",
    "registry",
    "river_swim",
    "six_arms",
]


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        return getattr(importlib.import_module(f"livarot.envs.{_LAZY[name]}"), name)
    raise AttributeError(f"module 'livarot.envs' has no attribute {name!r}")
