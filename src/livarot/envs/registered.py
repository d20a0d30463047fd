"""The environments by their names: one line each.  A generator is imported when its name is first asked for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from livarot import envs
from livarot.registry import Registry

if TYPE_CHECKING:
    from livarot.model.problem import MNLMDP

registry: Registry[MNLMDP] = Registry("environment", "livarot.envs")
add = registry.register_later
add("hard-chain", lambda: envs.hard_chain, "the chain of the lower bound, gap tuned to T or fixed")
add(
    "hard-chain-fixed",
    lambda: partial(envs.hard_chain, gap=0.05),
    "the lower bound's chain, a gap that can be learned",
)
add("hard-chain-jitter", lambda: envs.jittered_chain, "the chain of the lower bound, another bias per stage")
add("river-swim-unknown", lambda: envs.unknown_river, "RiverSwim where both moves have to be learned, shared features")
add("combination-lock", lambda: envs.combination_lock, "a lock: one of ten actions opens each stage, four features")
add("sparse", lambda: envs.sparse_mdp, "a ring with fifty coordinates, six of them in each pair")
add("river-swim", lambda: envs.river_swim, "RiverSwim (Osband/Cho), known reachable sets: historical")
add("river-swim-park", lambda: partial(envs.river_swim, variant="park"), "RiverSwim, Park's copy: small reward .05")
add("river-swim-vtr", lambda: partial(envs.river_swim, n_states=5, variant="vtr"), "RiverSwim of the UCRL-VTR code")
add("river-swim-strehl", lambda: partial(envs.river_swim, variant="strehl"), "RiverSwim as first published, rescaled")
add("six-arms", lambda: envs.six_arms, "SixArms: rare doors to rich rooms")
add("deep-sea", lambda: envs.deep_sea, "DeepSea with slips: one reward behind N moves to the right")
add("park-two-state", lambda: envs.park_two_state, "the two-state instance of Park et al., finite horizon")
add("random", lambda: envs.random_mdp, "random MNL MDP with chosen S, A, U, d, H, B, gap and sigma_bar")
add("mnl-bandit", lambda: envs.mnl_bandit, "multinomial logit bandit: one decision, outcomes of known value")
add("kl-robust", lambda: envs.kl_robust, "KL-robust MDP, constant eta or a KL ball, V exactly in the span of psi")
add("machine-maintenance", lambda: envs.machine_maintenance, "synthetic example: wear, breakdowns and service")
add("icu-sepsis", lambda: envs.icu_sepsis, "ICU-Sepsis patients who respond differently; needs the package icu-sepsis")

LARGE = frozenset({"icu-sepsis"})  # too large where all environments are tried, and its data come with an extra
make = registry.make
