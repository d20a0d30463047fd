"""The board's server is for this machine only."""

import pytest

from livarot.board import known_hosts, settings
from livarot.errors import LivarotError


def test_the_server_is_told_to_stay_on_this_machine():
    told = settings(8600)
    assert told["server.address"] == "127.0.0.1" and told["browser.gatherUsageStats"] is False
    with pytest.raises(LivarotError, match="port"):
        settings(80)


@pytest.mark.parametrize("name", ["http://x", "x/y", "x y", "", "x:y", "user@x", "*"])
def test_what_is_not_a_host_is_refused(name):
    with pytest.raises(LivarotError, match=r"^host: .* is not a host"):
        known_hosts(8501, [name])
