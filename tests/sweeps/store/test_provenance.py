"""Provenance says which code made a run, and nothing of the machine."""

import os

from livarot.sweeps.store.provenance import provenance
from livarot.sweeps.store.records import read_head


def test_provenance_says_what_and_not_where(filled):
    import getpass
    import socket

    head = read_head(next((filled / "runs").glob("*.parquet")))
    assert head["provenance"] == provenance()
    text = str(head)
    for private in (socket.gethostname(), os.path.expanduser("~"), os.getcwd(), str(filled)):
        assert private not in text
    assert f"'{getpass.getuser()}'" not in text
    assert head["content"]["environment"]["settings"]["gap"] == 0.1
