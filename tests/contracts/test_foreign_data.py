"""No agent reads out of bounds, whatever episodes and states it is handed; see ``foreign_data.py``."""

import subprocess
import sys
from pathlib import Path

import pytest

# plans that only pass on what the state holds (a run checks them), choices that are not read because any state may
# follow, and an exploration that does not use its problem's parameters yet
HARMLESS = {
    *(f"{name} | plan, {other}" for name in ("ucrl2", "ucrl2 theory") for other in ("smaller", "larger", "shared")),
    *(f"{name} | choice {where}" for name in ("ucbvi theory", "ucrl2 theory") for where in ("above", "below")),
    *(f"exploring LiteralExploration | plan, {other}" for other in ("smaller", "larger", "shared")),
    "exploring StateAwareExploration | plan, shared",
}


@pytest.fixture(scope="module")
def outcomes():
    program = Path(__file__).with_name("foreign_data.py")
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr[-2000:]
    found = {}
    for line in done.stdout.splitlines():
        agent, case, outcome = line.split(" | ", 2)
        found[f"{agent} | {case}"] = outcome
    return found


def test_foreign_data_is_refused(outcomes):
    accepted = {case for case, outcome in outcomes.items() if not outcome.startswith("refused")}
    assert accepted == HARMLESS
    assert len(outcomes) > 400


def test_the_message_says_where(outcomes):
    told = outcomes["livarot | state above"]
    assert "episodes: no transition of the problem at (replica, stage)" in told
