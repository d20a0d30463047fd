"""Constants of problems that need not exist."""

import math

from livarot.theory.all_constants import Constants
from livarot.theory.constants import Bracket


def constants(d=2, H=10, B=2.5, kappa=11.3, rho=0.8, nu=3.0, sigma=0.1, zero=True):
    log_kappa = math.log(kappa)
    return Constants(d, H, B, 2, rho, Bracket(log_kappa, log_kappa), 4 * B, zero, log_kappa, sigma, nu)
