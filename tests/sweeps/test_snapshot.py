"""A sweep is complete when every planned run is stored, whoever computed it."""

from livarot.sweeps.snapshot import Report


def test_complete():
    assert Report(planned=5, before=2, done=3).complete
    assert Report(planned=0).complete
    assert not Report(planned=5, before=2, done=2, failed={"key": "Traceback"}).complete
