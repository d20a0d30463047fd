"""The agents by their names: one line each.  A class is imported when its name is first asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from livarot import agents
from livarot.registry import Registry

if TYPE_CHECKING:
    from livarot.agents.base import Agent

registry: Registry[Agent[Any]] = Registry("agent", "livarot.agents")
add = registry.register_later
add("livarot", lambda: agents.Livarot, "optimism by the joint maximum over OMD ellipsoids, with optional burn-in")
add("sound-livarot", lambda: agents.SoundLivarot, "LIVAROT over likelihood-ratio sets that are proved to hold theta*")
add("adaptive-livarot", lambda: agents.AdaptiveLivarot, "LIVAROT with a learned ridge, maximum likelihood from counts")
add("bonus-livarot", lambda: agents.BonusLivarot, "LIVAROT with the variance-aware bonus: no inner optimisation")
add("thompson-livarot", lambda: agents.ThompsonLivarot, "LIVAROT's estimate, one Gaussian sample of theta per episode")
add("ucrl-mnl", lambda: agents.UCRLMNL, "maximum likelihood with the max-norm bonus (Hwang and Oh)")
add("ucrl-mnl-ll", lambda: agents.UCRLMNLLL, "maximum likelihood with a Bernstein set (Li et al., third version)")
add("ons-ucrl-mnl", lambda: agents.ONSUCRLMNL, "online Newton steps, max-norm bonus (Li et al., NeurIPS version)")
add("ucrl-mnl-plus", lambda: agents.UCRLMNLPlus, "OMD with Cho's bonus (Cho et al.)")
add("rrl-mnl", lambda: agents.RRLMNL, "online Newton steps with Gaussian optimistic sampling (Cho et al.)")
add("orrl-mnl", lambda: agents.ORRLMNL, "OMD with Gaussian optimistic sampling, no kappa (Cho et al.)")
add("ucrl-mnl-ol", lambda: agents.UCRLMNLOL, "OMD with a second-order bonus (Li et al., third version)")
add("certainty-equivalent", lambda: agents.CertaintyEquivalent, "OMD estimate, no optimism")
add("drifting-livarot", lambda: agents.DriftingLivarot, "LIVAROT that forgets: discounted or restarted OMD")
add("rare-switching", lambda: agents.RareSwitching, "another agent that plans only when it has learned enough")
add("ucbvi", lambda: agents.UCBVI, "tabular: empirical kernels with a Hoeffding, Bernstein or simple bonus")
add("psrl", lambda: agents.PSRL, "tabular: plans in one kernel drawn from the posterior")
add("rlsvi", lambda: agents.RLSVI, "tabular: empirical kernels with noisy rewards")
add("ucrl2", lambda: agents.UCRL2, "tabular: optimism over L1 balls around empirical kernels")
add("oful-mlogb", lambda: agents.OFULMLogB, "bandits only: OMD with a gradient bonus (Zhang and Sugiyama)")
add("ofu-mnl-pp", lambda: agents.OFUMNLPP, "bandits only: OMD with optimistic utilities (Lee and Oh, 2025)")
add("uniform", lambda: agents.Uniform, "every action with the same probability")
add("oracle", lambda: agents.Oracle, "plays a given policy, normally the optimal one")

make = registry.make
