"""Agents that misbehave; driver and workers import them by ``--import tests.faults.plugin``."""

import ctypes
import os
import signal
import time
from dataclasses import dataclass
from typing import Any, ClassVar

from livarot import agents
from livarot.agents.controls import Uniform


@dataclass(frozen=True)
class Poison(Uniform):
    """The uniform policy, except that seed ``victim`` brings its process down, or raises."""

    name: ClassVar[str] = "test-poison"

    victim: int = 3
    how: str = "kill"
    episode: int = 2

    def plan(self, problem: Any, state: Any, rng: Any) -> Any:
        if self.victim in rng._seeds and rng._episode == self.episode:
            if self.how == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif self.how == "segfault":
                ctypes.string_at(0)
            elif self.how == "exit":
                os._exit(7)
            else:
                raise RuntimeError("this seed is poisoned")
        return super().plan(problem, state, rng)


@dataclass(frozen=True)
class Slow(Uniform):
    """The uniform policy, taking its time."""

    name: ClassVar[str] = "test-slow"

    delay: float = 0.002
    flavour: int = 0  # so that there can be many cells

    def plan(self, problem: Any, state: Any, rng: Any) -> Any:
        time.sleep(self.delay)
        return super().plan(problem, state, rng)


@dataclass(frozen=True)
class Threads(Uniform):
    """The uniform policy, which refuses to work where linear algebra may use several threads."""

    name: ClassVar[str] = "test-threads"

    def plan(self, problem: Any, state: Any, rng: Any) -> Any:
        import scipy.linalg  # noqa: F401 (has a library of its own)
        import threadpoolctl

        assert {pool["num_threads"] for pool in threadpoolctl.threadpool_info()} == {1}
        return super().plan(problem, state, rng)


for one, summary in (
    (Poison, "brings its worker down"),
    (Slow, "takes its time"),
    (Threads, "counts threads"),
):
    if one.name not in agents.registry:
        agents.registry.register(one.name, one, summary)
