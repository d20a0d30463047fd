"""Where tasks run: joblib's processes (loky), a Dask cluster, or this process; one interface, joblib's.

joblib raises when a worker dies, without saying which task it had; the sweep finds that out and tries again.  Under
loky, one task at a time still runs in a process of its own (two workers, one task in flight), so that a crash of the
task does not crash the driver.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import socket
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import joblib
from joblib.externals.loky import get_reusable_executor
from joblib.externals.loky.backend.process import LokyProcess

from livarot.errors import bad
from livarot.sweeps.stopping import KILL, handling
from livarot.sweeps.tasks import Task
from livarot.sweeps.worker import Outcome, begin_worker, execute, limit_threads

BACKENDS = ("loky", "dask", "sequential")


class WorkersDied(Exception):
    """A worker ended in the middle of a task."""


class Engine:
    """A way to run tasks, as many as ``workers`` at once."""

    workers: int

    def run(self, tasks: Iterable[Task], *, alone: bool = False) -> Iterator[Outcome]:
        """Outcomes in the order they come; ``alone``: one task at a time.  Raises `WorkersDied`."""
        raise NotImplementedError

    def abandon(self) -> None:
        """End the workers at once."""

    def close(self) -> None:
        """Give back what the engine holds."""


def check_backend(backend: str, address: str | None) -> None:
    """Is there such a backend, is its library installed, and does it take an address?"""
    if backend not in BACKENDS:
        instead = "; a cluster is used through dask" if backend == "ray" else ""
        raise bad("backend", f"no {backend!r}", cure=f"choose one of {', '.join(BACKENDS)}{instead}")
    if address is not None and backend != "dask":
        raise bad("address", f"the backend {backend!r} takes no address", cure="use --backend dask")
    if backend == "dask" and find_spec("distributed") is None:
        raise bad("backend", "Dask is not installed", cure="pip install 'livarot[cluster]'")


def engine(backend: str, workers: int, address: str | None, faults: Path) -> Engine:
    """The engine of a backend; ``faults`` is the folder for the notes of crashes."""
    check_backend(backend, address)
    if backend == "sequential":
        return Sequential()
    if backend == "loky":
        return Loky(workers, faults)
    return Dask(workers, address)


class Sequential(Engine):
    """This process, one task after the other: no protection against a task that crashes."""

    workers = 1

    def run(self, tasks: Iterable[Task], *, alone: bool = False) -> Iterator[Outcome]:
        with limit_threads():
            for task in tasks:
                yield execute(task)


class Loky(Engine):
    """Processes of this machine that end with the driver."""

    def __init__(self, workers: int, faults: Path) -> None:
        self.workers = workers
        self._faults = faults
        self._begun = False

    def run(self, tasks: Iterable[Task], *, alone: bool = False) -> Iterator[Outcome]:
        flight = 1 if alone or self.workers == 1 else 2 * self.workers
        # one thread for linear algebra: the tasks are parallel already, and bits depend on the number of threads
        with joblib.parallel_config(backend="loky", inner_max_num_threads=1):
            parallel = joblib.Parallel(
                n_jobs=max(2, self.workers),  # with 1 joblib would run the task in this process
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch=flight,
                initializer=begin_worker,
                initargs=(os.getpid(), str(self._faults)),
            )
        self._begun = True
        yield from _outcomes(parallel, tasks, ignoring=_ignoring_interrupts)

    def abandon(self) -> None:
        """End only processes that this one started and has not waited for: no others can have their numbers."""
        for child in multiprocessing.active_children():
            if isinstance(child, LokyProcess) and child.pid is not None:
                with contextlib.suppress(OSError):
                    os.kill(child.pid, KILL)  # its own method kill is not implemented

    def close(self) -> None:
        """End the workers, which hold nothing; joblib would keep them for a next call, which no sweep makes."""
        if self._begun:
            with contextlib.suppress(Exception):
                # the one that joblib used, whatever its settings; a broken one is not waited for
                get_reusable_executor(reuse=True, kill_workers=True).shutdown(wait=False, kill_workers=True)


class Dask(Engine):
    """A Dask cluster: the one at an address, or one of this machine's processes."""

    def __init__(self, workers: int, address: str | None) -> None:
        import distributed

        library: Any = distributed  # it has no type annotations
        self._cluster: Any = None
        self._client: Any = None
        try:
            if address is None:
                options = {"threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
                with _ignoring_interrupts():  # Ctrl-C is for the driver, which then asks its workers to stop
                    self._cluster = library.LocalCluster(n_workers=workers, **options)
            else:
                _knock(library, address)
            self._client = library.Client(self._cluster or address, timeout=10)
        except (
            OSError,
            ValueError,
            TypeError,
            RuntimeError,
        ) as error:  # the last two: TLS asked for and not configured
            raise bad("address", f"no Dask scheduler at {address!r} ({_said(error)})") from error
        self.workers = max(1, sum(self._client.nthreads().values()))

    def run(self, tasks: Iterable[Task], *, alone: bool = False) -> Iterator[Outcome]:
        flight = 1 if alone else 2 * self.workers
        with joblib.parallel_config(backend="dask", client=self._client, wait_for_workers_timeout=60):
            parallel = joblib.Parallel(
                n_jobs=max(2, self.workers), return_as="generator_unordered", batch_size=1, pre_dispatch=flight
            )
            yield from _outcomes(parallel, tasks)

    def abandon(self) -> None:
        self.close()

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._client.close(timeout=2)
        if self._cluster is not None:
            with contextlib.suppress(Exception):
                self._cluster.close(timeout=2)


def _knock(library: Any, address: str) -> None:
    """Check that the address answers before Dask connects: a Dask client that failed to connect may wait for itself
    for ever when it is removed from memory."""
    host, port = library.comm.get_address_host_port(address, strict=True)
    socket.create_connection((host, port), timeout=10).close()


def _ignoring_interrupts() -> contextlib.AbstractContextManager[None]:
    """Processes that are started meanwhile ignore SIGINT for ever; this one ignores it for a moment."""
    return handling(signal.SIG_IGN, ("SIGINT",))


def _outcomes(
    parallel: joblib.Parallel,
    tasks: Iterable[Task],
    ignoring: Callable[[], contextlib.AbstractContextManager[None]] = contextlib.nullcontext,
) -> Iterator[Outcome]:
    """Hand out the tasks; ``ignoring`` holds while the workers are started."""
    try:
        with warnings.catch_warnings():
            # joblib warns that a worker stopped while some jobs were given to it: the sweep notices that itself
            warnings.simplefilter("ignore", UserWarning)
            with ignoring():
                started = parallel(joblib.delayed(execute)(task) for task in tasks)
            yield from started
    except (BrokenExecutor, CancelledError, ConnectionError, EOFError) as error:
        raise WorkersDied(_said(error)) from error
    except Exception as error:
        if type(error).__module__.split(".")[0] in ("distributed", "dask", "joblib"):
            raise WorkersDied(_said(error)) from error
        raise


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:500]
