"""Online from offline: an agent that starts from a fit instead of from zero.

    theta_1 = theta_hat,   gram_1 = lambda I + weight Hess(theta_hat)

with the agent's own lambda and the Hessian of the fit, in the units of the problem's features (theta times
``feature_scale``, the Hessian divided by its square).  From there the agent continues as usual: online mirror descent
adds the Hessian of every new choice to the same matrix, so old and new data weigh alike; ``weight < 1`` trusts the old
ones less (they may be from last year, or from another plant).

The agent's radius is its own and counts new episodes only.  What its theory promises holds for a start at
lambda I: with a start from data the set is a heuristic (guess), although a narrower matrix with the maximum likelihood
estimate in its centre is what the same number of online steps would have left.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from livarot.agents.base import Agent, Wrapper, declared, part_of
from livarot.core.arguments import checked
from livarot.core.arrays import FloatArray
from livarot.core.tolerances import NORM_SLACK
from livarot.data.reading.table import warn
from livarot.data.use.plans import estimate
from livarot.errors import bad, require_positive
from livarot.estimation.omd import whitened
from livarot.model.episodes import Episodes, Estimate, Plan, require_agent
from livarot.model.problem import Problem
from livarot.model.shown import html_of, size_of
from livarot.simulation.streams import AgentRandom

if TYPE_CHECKING:
    from livarot.data.estimator import MNLTransition

AT_THE_EDGE = 1.0 - 1e-6  # of the B-ball


@dataclass(frozen=True)
class WarmStarted(Wrapper):
    """Another agent, started from ``theta`` and ``gram``; made by :func:`warm_start`."""

    name: ClassVar[str] = "warm-started"

    agent: Agent[Any]  # the agent that plans and learns
    start: str  # the first digits of the SHA-256 of theta and gram, for repr and comparison
    theta: FloatArray = field(repr=False, compare=False)  # (K, d) in the units of the problem
    gram: FloatArray = field(repr=False, compare=False)  # (K, G) packed, without the agent's own lambda I

    def __post_init__(self) -> None:
        if self.start != _digest(self.theta, self.gram):
            raise bad("start", "is not the digest of theta and gram", cure="use livarot.data.warm_start")

    def _repr_html_(self) -> str:
        lines = {"agent": repr(self.agent), "theta": size_of(self.theta), "gram": size_of(self.gram)}
        return html_of(f"WarmStarted from {self.start}", lines)

    def init(self, problem: Problem, n_replicas: int = 1) -> Any:
        state = self.agent.init(problem, n_replicas)
        cold = _estimate_of(self.agent, state)
        if cold.theta.shape[1:] != self.theta.shape or cold.gram.shape[1:] != self.gram.shape:
            raise bad("problem", "is not the one this start was made for", cure="call livarot.data.warm_start again")
        theta = np.tile(self.theta, (n_replicas, 1, 1))
        warm = whitened(problem, theta, cold.gram + self.gram)
        return type(state)(*(warm if part is cold else part for part in state))

    def plan(self, problem: Problem, state: Any, rng: AgentRandom) -> Plan:
        return self.agent.plan(problem, state, rng)

    def update(self, problem: Problem, state: Any, episodes: Episodes) -> Any:
        return self.agent.update(problem, state, episodes)


@checked(weight=require_positive)
def warm_start(agent: Agent[Any], problem: Problem, fit: MNLTransition, *, weight: float = 1.0) -> WarmStarted:
    """``agent`` for ``problem``, started from a fit: any agent that keeps an OMD estimate with its Gram matrix.

    ``problem`` has the features of the fit, in the order of its columns, such as ``fit.to_mdp(...).problem``.  Give it
    room, ``to_mdp(param_bound=...)`` larger than the estimate: the agent stays in that ball, and the default is the
    estimate's own length (then a :class:`DataWarning` says so).  Where stages have parameters of their own and the fit
    has one for all, every stage starts from it with its share, 1/H, of the data.

    >>> import livarot
    >>> from livarot.data import MNLTransition
    >>> log = {"state": ["ok"] * 40, "action": ["run"] * 40, "next_state": ["ok"] * 30 + ["worn"] * 10,
    ...        "wear": [0.0] * 30 + [1.0] * 10}
    >>> fit = MNLTransition(features=["wear"], reachable="all").fit(log)
    >>> mdp = fit.to_mdp({"ok": 1.0}, horizon=5, start="ok", terminal="worn", param_bound=4.0)
    >>> agent = warm_start(livarot.agents.Livarot(), mdp.problem, fit)
    >>> agent.init(mdp.problem).estimate.theta.round(4)
    array([[[-1.0986]]])
    """
    require_agent(agent)
    if weight > 1.0:
        raise bad("weight", f"{weight} is above 1", cure="1 counts an old choice as much as a new one")
    thetas = np.atleast_2d(fit.theta_)
    n_fitted, dim = thetas.shape
    if dim != problem.dim:
        cure = "the problem must have the features of the fit, in the order of fit.columns_"
        raise bad("problem", f"has {problem.dim} features, the fit {dim}", cure=cure)
    if n_fitted not in (1, problem.n_parameters):
        raise bad("problem", f"has {problem.n_parameters} parameters, the fit {n_fitted}", cure="fit the same stages")
    scale = problem.feature_scale
    theta = np.repeat(thetas, problem.n_parameters // n_fitted, axis=0) * scale
    share = weight * n_fitted / problem.n_parameters
    hessians = np.stack([found.hessian for found in fit.maxima_]) * (share / scale**2)
    gram = np.repeat(hessians, problem.n_parameters // n_fitted, axis=0)
    longest = float(np.linalg.norm(theta, axis=1).max())
    if longest > problem.param_bound * (1.0 + NORM_SLACK):
        problem_text = f"has param_bound {problem.param_bound / scale:.4g}, the estimate has length"
        raise bad("problem", f"{problem_text} {longest / scale:.4g}", cure="raise param_bound")
    if longest > problem.param_bound * AT_THE_EDGE:
        warn(
            "the estimate lies on the edge of the problem's ball, so learning cannot go beyond its length; pass a "
            "larger param_bound= to to_mdp"
        )
    packed = np.asarray(estimate(problem, theta, gram).gram[0])
    theta = np.ascontiguousarray(theta)
    theta.setflags(write=False)
    packed.setflags(write=False)
    made = WarmStarted(agent, _digest(theta, packed), theta, packed)
    made.init(problem)  # an agent that cannot be started like this is refused here, not in the middle of a run
    return made


def _digest(theta: FloatArray, gram: FloatArray) -> str:
    total = hashlib.sha256()
    for array in (theta, gram):
        total.update(str(array.shape).encode() + np.asarray(array, dtype="<f8").tobytes())
    return total.hexdigest()[:16]


def _estimate_of(agent: Agent[Any], state: Any) -> Estimate:
    """The estimate in an agent's state, refused where the agent cannot start from data."""
    if isinstance(agent, Wrapper):
        cure = "warm-start the inner agent: RareSwitching(warm_start(...))"
        raise bad("agent", f"{agent.name} wraps another agent", cure=cure)
    found = part_of(state, Estimate)
    if found is None or not declared(agent).adds_hessians:
        raise bad("agent", f"{agent.name} keeps no OMD estimate with its Gram matrix", cure="use one such as Livarot()")
    return found
