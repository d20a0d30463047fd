"""The online Newton step (ONS): a curvature that is assumed, kappa_small/2 per outcome, instead of the Hessian.

With g the gradient of a transition's loss at theta_t (Cho et al. 2024, certain; Li et al. NeurIPS 2024, likely),

    Sigma_{t+1} = Sigma_t + (kappa_small/2) sum_{s'} phi phi'
    theta_{t+1} = argmin over |theta| <= B of <g, theta> + |theta - theta_t|^2_{Sigma_{t+1}} / 2,

that is theta_t - Sigma_{t+1}^-1 g, projected on the B-ball in the norm of Sigma_{t+1}.  kappa_small = 1/kappa must be
a lower bound of p p' over the ball; the inequality behind it, Hessian >= kappa_small sum phi phi', needs one reachable
state with phi = 0 in every pair (reading E9), which is not checked here.  O(U d^2 + d^3) per stage and episode.

Deviation: a pair with one outcome adds nothing to Sigma, since it says nothing about theta.
"""

from __future__ import annotations

import math

import numpy as np

from livarot.core.arrays import FloatArray
from livarot.estimation.omd import ball, project, stepped, take_steps
from livarot.estimation.projection import SLACK
from livarot.model.episodes import Episodes, Estimate, check_episodes, check_shape
from livarot.model.problem import Problem


def ons_update(problem: Problem, estimate: Estimate, episodes: Episodes, information: float, bound: float) -> Estimate:
    """One step per stage with the transitions of one episode per replica, in stage order; ``information`` is
    kappa_small/2, the assumed curvature per phi phi' of an outcome."""
    rule = 1.0, float(information)
    return stepped(problem, estimate, episodes, rule, ball(problem, float(bound), len(estimate.theta)))


def add_design(problem: Problem, gram: FloatArray, whiten: FloatArray, episodes: Episodes) -> None:
    """gram += sum over the outcomes of every transition of phi phi', in place; ``whiten`` follows."""
    episodes = check_episodes(problem, episodes)
    check_shape("gram", gram, (len(episodes.states), *problem.gram_shape))
    check_shape("whiten", whiten, gram.shape)
    unused = np.zeros((len(gram), *problem.theta_shape))
    new, within = Estimate(unused, gram, whiten), ball(problem, math.inf, len(gram))
    take_steps(problem, new, episodes, (1.0, 1.0), within)


def project_on_ball(problem: Problem, theta: FloatArray, gram: FloatArray, bound: float) -> FloatArray:
    """theta (R, K, d) projected on |theta| <= bound in the norm of its Gram matrix (R, K, G)."""
    new = Estimate(theta.copy(), np.ascontiguousarray(gram), gram)
    outside = np.einsum("rkd,rkd->rk", theta, theta) > bound * bound * (1.0 + SLACK)
    if outside.any():
        project(problem, new, ball(problem, float(bound), len(theta)), outside.astype(np.int8))
    return new.theta
