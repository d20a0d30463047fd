"""livarot: Markov decision processes whose next state is a multinomial-logistic choice.

Model an MNL MDP, plan in it, learn in it with LIVAROT and its rivals, and judge the learning exactly.
Names are imported when they are first used, so that the command line answers at once.
"""

import logging

from livarot.gymnasium_ids import register_when_imported
from livarot.lazy import attach

__version__ = "0.1.0"
__getattr__, __dir__ = attach(__name__, __file__)

logging.getLogger(__name__).addHandler(logging.NullHandler())
register_when_imported()
