"""Force one way of filling the lanes of the optimistic planner, whatever the planner would choose."""

from contextlib import contextmanager
from unittest import mock

from livarot.planning.optimistic import plan


@contextmanager
def engine(name):
    """Within this context, optimistic plans are computed by "replicas", "pairs" or "screened"."""
    with mock.patch.object(plan, "engine_for", return_value=name):
        yield
