"""Actions that look worse than they are until they are tried: ``python -m benchmarks.untried [--json]``.

The README's machine and its four repair crews, 300 episodes, seeds 0..7.  The known offsets say that the crews nobody
has called yet are worse than our own, by 0 to 1 logits; in truth one of them is better by 2.5 logits less that.  A
radius that was tuned where nothing looks bad at first does not reach that far, and the agent never tries; a confidence
set that holds theta does, by definition.  Printed is the mean regret.
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from typing import Any

import livarot
from livarot import agents

UP, DOWN = 0, 1
WORSE = (0.0, 0.25, 0.5, 1.0)
FIELD: dict[str, Any] = {
    "Livarot()": agents.Livarot(),
    "AdaptiveLivarot()": agents.AdaptiveLivarot(),
    "AdaptiveLivarot(prior_fade=0.5)": agents.AdaptiveLivarot(prior_fade=0.5),
    "ThompsonLivarot()": agents.ThompsonLivarot(),
    "UCRLMNLLL()": agents.UCRLMNLLL(),
    "UCRLMNLOL()": agents.UCRLMNLOL(),
    "SoundLivarot()": agents.SoundLivarot(),
    'SoundLivarot(optimism="level set")': agents.SoundLivarot(optimism="level set"),
    "CertaintyEquivalent()": agents.CertaintyEquivalent(),
    "Uniform()": agents.Uniform(),
}


def features(_day: int, machine: int, crew: int) -> tuple[list[int], list[list[float]]]:
    other = [float(machine == DOWN and crew == k) for k in (1, 2, 3)]
    return [UP, DOWN], [other, [0.0, 0.0, 0.0]]


def offset(worse: float, _day: int, machine: int, crew: int) -> list[float]:
    return [float(machine == UP) - worse * (machine == DOWN and crew > 0), 0.0]


def crews(worse: float) -> livarot.MNLMDP:
    """The README's example, with crews that look worse by so many logits."""
    return livarot.MNLMDP.from_function(
        horizon=20,
        n_states=2,
        n_actions=4,
        features=features,
        offset=partial(offset, worse),
        reward=lambda _day, machine, _crew: float(machine == UP),
        theta=[-1.0, 0.0, 2.5],
    )


def regret(mdp: livarot.MNLMDP, agent: Any) -> float:
    return float(livarot.run(mdp, agent, 300, seed=range(8)).cumulative_regret[:, -1].mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print JSON")
    as_json = parser.parse_args().json
    found = {name: [regret(crews(worse), agent) for worse in WORSE] for name, agent in FIELD.items()}
    if as_json:
        print(json.dumps({"worse": WORSE, "regret": found}))
        return
    print("| looks worse by |", " | ".join(f"{worse:g}" for worse in WORSE), "|\n|---|" + "---:|" * len(WORSE))
    for name, row in found.items():
        print(f"| `{name}` |", " | ".join(f"{x:.3g}" for x in row), "|")


if __name__ == "__main__":
    main()
