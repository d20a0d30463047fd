"""Files read by threads come in the order they were asked for."""

import threading

import pytest

from livarot.sweeps.store import reading
from livarot.sweeps.store.reading import AT_ONCE, read_in_threads


def test_the_order_is_that_of_the_items_and_threads_do_the_work():
    names = [str(n) for n in range(3 * AT_ONCE + 5)]
    workers = set()

    def work(name):
        workers.add(threading.current_thread())
        return int(name)

    assert list(read_in_threads(work, iter(names))) == list(range(len(names)))
    assert 1 <= len(workers) <= reading.READERS and threading.current_thread() not in workers
    assert list(read_in_threads(work, [])) == []


def test_what_the_work_raises_is_raised_here():
    with pytest.raises(ValueError, match="invalid literal"):
        list(read_in_threads(int, ["1", "x"]))
