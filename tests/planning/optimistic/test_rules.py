"""Rules of optimism are checked."""

import pytest

from livarot.errors import LivarotError
from livarot.planning.optimistic.rules import MaxNormBonus, check_rule


def test_rules_are_checked():
    check_rule(MaxNormBonus())
    with pytest.raises(LivarotError, match="constant"):
        MaxNormBonus(-1.0)
