"""Thompson-sampling LIVAROT: optimism by a sample of the parameter, no burn-in and no inner optimisation.

Every episode draws theta_h ~ N(theta_hat_h, v^2 gram_h^-1), v = beta_scale beta_t, with LIVAROT's OMD estimate, Gram
matrix and radius, and plays the optimal policy of the drawn model:

    Q_h = r_h + p(theta_h) . V_{h+1},   V_h = max_a Q_h.

The sample never leaves the model, so nothing is clipped, and the spread of V under it follows the gradient
Cov_p(phi, V): the variance enters by itself.  One theta is drawn for all stages where they share it.

The paper names sampling as future work and gives no constants; the scale of v is a guess after linear Thompson
sampling, and no regret bound is proved.  With ``project`` the sample is moved into the B-ball, in the norm of gram.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.online import LivarotSets, OnlineState
from livarot.core.arguments import checked
from livarot.estimation.ons import project_on_ball
from livarot.model.episodes import Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import PlugIn
from livarot.planning.sampling import posterior_sample
from livarot.simulation.streams import AgentRandom


@checked
@dataclass(frozen=True)
class ThompsonLivarot(LivarotSets):
    """OMD and one Gaussian sample per episode."""

    name: ClassVar[str] = "thompson-livarot"

    step_size: float = 3.0  # eta of the OMD step
    reg: float | None = 3.0  # lambda; None is the theory's 144 d
    beta_scale: float = 0.05  # v is this times LIVAROT's radius
    failure_level: float = 0.05  # delta
    project: bool = True  # move the sample into the B-ball

    @classmethod
    def theory(cls) -> ThompsonLivarot:
        """The estimate with the constants of LIVAROT's theorem and v its full radius (a guess)."""
        return cls(step_size=1.0, reg=None, beta_scale=1.0)

    def plan(self, problem: Problem, state: OnlineState, rng: AgentRandom) -> Plan:
        normals = rng.of(len(state.estimate.theta)).normal((problem.n_parameters, problem.dim))
        theta = posterior_sample(problem, state.estimate, self.radius(problem, state.episode), normals)
        if self.project:
            theta = project_on_ball(problem, theta, state.estimate.gram, problem.param_bound)
        return optimistic_plan(problem, state.estimate._replace(theta=theta), 0.0, PlugIn())
