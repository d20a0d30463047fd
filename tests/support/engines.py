"""Take one way of filling the lanes of the optimistic planner, whatever it would choose itself."""

from contextlib import contextmanager
from unittest import mock

from livarot.planning.optimistic import plan


@contextmanager
def engine(name):
    """Optimistic plans are computed by "replicas", "pairs" or "screened"."""
    with mock.patch.object(plan, "engine_for", return_value=name):
        yield
