"""The algorithms, one file each, and their registry: one line per agent."""

from __future__ import annotations

from typing import Any

from livarot.agents.bandit.ofu_mnl_pp import OFUMNLPP
from livarot.agents.bandit.oful_mlogb import OFULMLogB
from livarot.agents.base import Agent, load_state, save_state
from livarot.agents.bonus_livarot import BonusLivarot
from livarot.agents.certainty_equivalent import CertaintyEquivalent
from livarot.agents.controls import Oracle, Uniform
from livarot.agents.drifting_livarot import DriftingLivarot
from livarot.agents.exploration import LiteralExploration, StateAwareExploration
from livarot.agents.livarot import Livarot
from livarot.agents.mnl.ons_ucrl_mnl import ONSUCRLMNL
from livarot.agents.mnl.orrl_mnl import ORRLMNL
from livarot.agents.mnl.rrl_mnl import RRLMNL
from livarot.agents.mnl.ucrl_mnl import UCRLMNL
from livarot.agents.mnl.ucrl_mnl_ll import UCRLMNLLL
from livarot.agents.mnl.ucrl_mnl_ol import UCRLMNLOL
from livarot.agents.mnl.ucrl_mnl_plus import UCRLMNLPlus
from livarot.agents.rare_switching import RareSwitching
from livarot.agents.tabular.psrl import PSRL
from livarot.agents.tabular.rlsvi import RLSVI
from livarot.agents.tabular.ucbvi import UCBVI
from livarot.agents.tabular.ucrl2 import UCRL2
from livarot.agents.thompson_livarot import ThompsonLivarot
from livarot.registry import Registry

registry: Registry[Agent[Any]] = Registry("agent")
registry.register("livarot", Livarot, "optimism by the joint maximum over OMD ellipsoids, with optional burn-in")
registry.register("bonus-livarot", BonusLivarot, "LIVAROT with the variance-aware bonus: no inner optimisation")
registry.register("thompson-livarot", ThompsonLivarot, "LIVAROT's estimate, one Gaussian sample of theta per episode")
registry.register("ucrl-mnl", UCRLMNL, "maximum likelihood with the max-norm bonus (Hwang and Oh)")
registry.register("ucrl-mnl-ll", UCRLMNLLL, "maximum likelihood with a Bernstein set (Li et al., third version)")
registry.register("ons-ucrl-mnl", ONSUCRLMNL, "online Newton steps, max-norm bonus (Li et al., NeurIPS version)")
registry.register("ucrl-mnl-plus", UCRLMNLPlus, "OMD with Cho's bonus (Cho et al.)")
registry.register("rrl-mnl", RRLMNL, "online Newton steps with Gaussian optimistic sampling (Cho et al.)")
registry.register("orrl-mnl", ORRLMNL, "OMD with Gaussian optimistic sampling, no kappa (Cho et al.)")
registry.register("ucrl-mnl-ol", UCRLMNLOL, "OMD with a second-order bonus (Li et al., third version)")
registry.register("certainty-equivalent", CertaintyEquivalent, "OMD estimate, no optimism")
registry.register("drifting-livarot", DriftingLivarot, "LIVAROT that forgets: discounted or restarted OMD")
registry.register("rare-switching", RareSwitching, "another agent that plans only when it has learned enough")
registry.register("ucbvi", UCBVI, "tabular: empirical kernels with a Hoeffding, Bernstein or simple bonus")
registry.register("psrl", PSRL, "tabular: plans in one kernel drawn from the posterior")
registry.register("rlsvi", RLSVI, "tabular: empirical kernels with noisy rewards")
registry.register("ucrl2", UCRL2, "tabular: optimism over L1 balls around empirical kernels")
registry.register("oful-mlogb", OFULMLogB, "bandits only: OMD with a gradient bonus (Zhang and Sugiyama)")
registry.register("ofu-mnl-pp", OFUMNLPP, "bandits only: OMD with optimistic utilities (Lee and Oh, 2025)")
registry.register("uniform", Uniform, "every action with the same probability")
registry.register("oracle", Oracle, "plays a given policy, normally the optimal one")

make = registry.make

__all__ = [
    "OFUMNLPP",
    "ONSUCRLMNL",
    "ORRLMNL",
    "PSRL",
    "RLSVI",
    "RRLMNL",
    "UCBVI",
    "UCRL2",
    "UCRLMNL",
    "UCRLMNLLL",
    "UCRLMNLOL",
    "Agent",
    "BonusLivarot",
    "CertaintyEquivalent",
    "DriftingLivarot",
    "LiteralExploration",
    "Livarot",
    "OFULMLogB",
    "Oracle",
    "RareSwitching",
    "StateAwareExploration",
    "ThompsonLivarot",
    "UCRLMNLPlus",
    "Uniform",
    "load_state",
    "make",
    "registry",
    "save_state",
]
