"""Rows of the benchmark table, and how time is taken."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

Clock = Callable[[], float]
SHORTEST = 0.02  # seconds: a shorter call is timed many times in a row


@dataclass(frozen=True)
class Target:
    figure: str
    bound: float
    at_least: bool = False

    def holds(self, value: float) -> bool:
        return value >= self.bound if self.at_least else value <= self.bound

    def __str__(self) -> str:
        return f"{'>=' if self.at_least else '<='} {self.bound:g}"


@dataclass
class Row:
    """Figures with their targets, remarks, and what failed: ``wrong`` decides the exit status, targets do not."""

    name: str
    figures: dict[str, float] = field(default_factory=dict)
    checks: dict[str, float] = field(default_factory=dict)  # largest differences between the sides
    targets: list[Target] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def set(self, figure: str, value: float, *, most: float | None = None, least: float | None = None) -> None:
        self.figures[figure] = float(value)
        if most is not None:
            self.targets.append(Target(figure, most))
        if least is not None:
            self.targets.append(Target(figure, least, at_least=True))

    def check(self, name: str, differences: ArrayLike, limit: float) -> None:
        """A correctness check: the largest difference so far is kept; above the limit (or NaN) it is wrong."""
        worst = float(np.maximum(np.max(differences), self.checks.get(name, 0.0)))
        self.checks[name] = worst
        if not worst <= limit:
            self.wrong = [reason for reason in self.wrong if not reason.startswith(f"{name} ")]
            self.wrong.append(f"{name} is {worst:.3g}, more than {limit:g}")

    def unmet(self) -> list[Target]:
        return [target for target in self.targets if not target.holds(self.figures[target.figure])]

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = dict(self.figures)
        found["checks"] = {name: value if math.isfinite(value) else None for name, value in self.checks.items()}
        found["targets"] = {t.figure: {"bound": str(t), "holds": t.holds(self.figures[t.figure])} for t in self.targets}
        found["wrong"] = self.wrong
        return found

    def lines(self) -> list[str]:
        by_figure = {target.figure: target for target in self.targets}
        out = []
        for number, (figure, value) in enumerate(self.figures.items()):
            text = f"{self.name if number == 0 else '':<11}{figure:<26}{short(value):>11}"
            if figure in by_figure:
                target = by_figure[figure]
                text += f"  {target!s:<9} {'holds' if target.holds(value) else 'UNMET'}"
            out.append(text)
        if self.checks:
            found = ", ".join(f"{name} {short(value)}" for name, value in self.checks.items())
            out.append(f"{'':<11}  checks: {found}")
        out += [f"{'':<11}  {remark}" for remark in self.remarks]
        return out + [f"{'':<11}  WRONG: {reason}" for reason in self.wrong]


def short(value: float) -> str:
    if abs(value) >= 1000.0:
        return f"{value:,.0f}".replace(",", " ")
    return f"{value:.3g}" if abs(value) < 0.001 else f"{value:.4g}"


def interleaved(
    sides: Mapping[str, Callable[[], Any]], repeats: int, clock: Clock = time.process_time
) -> dict[str, float]:
    """Best seconds of each side; every round runs all of them, so that a busy minute hurts all of them."""
    best = dict.fromkeys(sides, math.inf)
    for _ in range(repeats):
        for name, call in sides.items():
            began = clock()
            call()
            best[name] = min(best[name], clock() - began)
    return best


def repeated(call: Callable[[], Any]) -> tuple[Callable[[], Any], int]:
    """The call, as often as it takes to last ``SHORTEST``; and how often that is."""
    began = time.process_time()
    call()
    count = max(1, math.ceil(SHORTEST / max(time.process_time() - began, 1e-6)))

    def many() -> None:
        for _ in range(count):
            call()

    return many, count


def growth(calls: Mapping[int, Callable[[], Any]], repeats: int) -> tuple[float, float, dict[int, float]]:
    """Slope of log seconds over log size by least squares, slope of the last step, and the seconds."""
    for call in calls.values():
        call()  # warm: packing, caches, page faults
    many = {size: repeated(call) for size, call in calls.items()}
    total = interleaved({str(size): call for size, (call, _) in many.items()}, repeats)
    seconds = {size: total[str(size)] / count for size, (_, count) in many.items()}
    return (*slopes(list(seconds), list(seconds.values())), seconds)


def slopes(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float]:
    x, y = np.log(np.asarray(sizes, float)), np.log(np.asarray(seconds, float))
    return float(np.polyfit(x, y, 1)[0]), float((y[-1] - y[-2]) / (x[-1] - x[-2]))
