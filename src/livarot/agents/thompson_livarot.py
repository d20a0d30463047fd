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

import logging
from dataclasses import dataclass
from typing import ClassVar

from livarot.agents.mnl.ucrl_mnl_ol import UCRLMNLOLState
from livarot.agents.parts import lemma_index, log_radius, updates
from livarot.confidence.radii import livarot_radius
from livarot.core.arguments import checked
from livarot.estimation.omd import ball, initial_estimate, omd_update
from livarot.estimation.ons import project_on_ball
from livarot.model.episodes import Episodes, Plan
from livarot.model.problem import Problem
from livarot.planning.optimistic import optimistic_plan
from livarot.planning.optimistic.rules import PlugIn
from livarot.planning.sampling import posterior_sample
from livarot.simulation.streams import AgentRandom

logger = logging.getLogger(__name__)


@checked
@dataclass(frozen=True)
class ThompsonLivarot:
    """OMD and one Gaussian sample per episode."""

    name: ClassVar[str] = "thompson-livarot"

    step_size: float = 3.0  # eta of the OMD step
    reg: float | None = 3.0  # lambda; None is the theory's 144 d
    beta_scale: float = 0.05  # v is this times LIVAROT's radius
    failure_level: float = 0.05  # delta
    project: bool = True  # the sample into the B-ball

    @classmethod
    def theory(cls) -> ThompsonLivarot:
        """The estimate with the constants of LIVAROT's theorem and v its full radius (a guess)."""
        return cls(step_size=1.0, reg=None, beta_scale=1.0)

    def init(self, problem: Problem, n_replicas: int = 1) -> UCRLMNLOLState:
        log_radius(logger, self.name, self.formula(problem, 0), self.radius(problem, 0))
        return UCRLMNLOLState(initial_estimate(problem, n_replicas, self._reg(problem)), 0)

    def plan(self, problem: Problem, state: UCRLMNLOLState, rng: AgentRandom) -> Plan:
        normals = rng.of(len(state.estimate.theta)).normal((problem.n_parameters, problem.dim))
        theta = posterior_sample(problem, state.estimate, self.radius(problem, state.episode), normals)
        if self.project:
            theta = project_on_ball(problem, theta, state.estimate.gram, problem.param_bound)
        return optimistic_plan(problem, state.estimate._replace(theta=theta), 0.0, PlugIn())

    def update(self, problem: Problem, state: UCRLMNLOLState, episodes: Episodes) -> UCRLMNLOLState:
        within = ball(problem, problem.param_bound, len(episodes.states))
        estimate = omd_update(problem, state.estimate, episodes, self.step_size, within)
        return UCRLMNLOLState(estimate, state.episode + 1)

    def radius(self, problem: Problem, episode: int) -> float:
        """v of the plan made after ``episode`` episodes."""
        return self.beta_scale * self.formula(problem, episode)

    def formula(self, problem: Problem, episode: int) -> float:
        """v without ``beta_scale``."""
        t = lemma_index(updates(problem, episode), self.reg)
        bound, reg = problem.param_bound, self._reg(problem)
        return livarot_radius(t, problem.dim, problem.horizon, bound, reg, self.failure_level)

    def _reg(self, problem: Problem) -> float:
        return 144.0 * problem.dim if self.reg is None else self.reg
