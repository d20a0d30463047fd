"""Logged episodes of models without an end: the cut model, the tail, and intervals that allow for it."""

import numpy as np
import pandas as pd
import pytest

import livarot
from livarot.data import MNLTransition, evaluate_policy, policy_table, read_episodes
from livarot.infinite import InfiniteMDP, policy_value
from tests.support.offline_logs import PAYS, SETS, THETA, WEAR, behaviour, make_log, target, truth

GAMMA = 0.8
NAMES = ["behaviour", "model", "importance sampling", "per-decision", "weighted per-decision", "doubly robust"]


def logged(n, steps, seed=1):
    """A log of the first steps, its fit, and the fitted model without an end."""
    log = make_log(truth(steps), behaviour(steps), n, seed, noise=0.1)
    fit = MNLTransition(features=["action:wear"], reachable=SETS, states=WEAR).fit(log)
    return log, fit, fit.to_mdp(PAYS, discount=GAMMA, start={"new": 0.6, "used": 0.4}, param_bound=10.0)


def true_value(mdp, law):
    """In the model that made the log, without an end."""
    stage = livarot.MNLMDP(mdp.stage.problem, THETA[None] * mdp.stage.problem.feature_scale)
    return float(mdp.problem.start @ policy_value(InfiniteMDP(stage, mdp.terms), law))


def test_all_estimators_and_their_tail():
    log, fit, mdp = logged(400, 12)
    found = evaluate_policy(read_episodes(log, mdp, probability="probability"), target(1)[0], fit, mdp)
    assert list(found.estimates) == NAMES
    cut = fit.to_mdp(PAYS, 12, {"new": 0.6, "used": 0.4}, discount=GAMMA)
    plain = evaluate_policy(read_episodes(log, cut, probability="probability"), target(12), fit, cut)
    tail = GAMMA**12 / (1.0 - GAMMA)  # rewards from 0 to 1
    assert found.truncation == pytest.approx(0.5 * tail) and plain.truncation == 0.0
    for name in NAMES:
        assert found[name].value == pytest.approx(plain[name].value + 0.5 * tail, abs=1e-12)
        assert found[name].lower == pytest.approx(plain[name].lower, abs=1e-12)
        assert found[name].upper == pytest.approx(plain[name].upper + tail, abs=1e-12)
    value = true_value(mdp, target(1)[0])
    assert all(found[name].lower < value < found[name].upper for name in NAMES[1:])
    assert "moves a value by at most 0.1718" in repr(found)


def test_short_episodes_still_contain_the_value():
    """Two steps of a chain without an end: most is tail, and the intervals say so."""
    log, fit, mdp = logged(2000, 2)
    value = true_value(mdp, target(1)[0])
    for name, one in evaluate_policy(log, target(1)[0], fit, mdp).estimates.items():
        if name != "behaviour":
            assert one.lower < value < one.upper and one.upper - one.lower > 3.2


def test_units_shift_every_value_alike():
    """Rewards b r + a: values b V + a/(1 - gamma), of each estimator that reads them."""
    log, fit, mdp = logged(200, 4)
    other = fit.to_mdp({k: 50.0 * v - 30.0 for k, v in PAYS.items()}, discount=GAMMA, start={"new": 0.6, "used": 0.4})
    plain = evaluate_policy(log, target(1)[0], fit, mdp)
    scaled = evaluate_policy(log.assign(reward=50.0 * log.reward - 30.0), target(1)[0], fit, other)
    for name in ("behaviour", "model", "weighted per-decision", "doubly robust"):
        for one, two in zip(plain[name], scaled[name], strict=True):
            shift = 0.0 if one == plain[name].standard_error else -30.0 / (1.0 - GAMMA)
            assert two == pytest.approx(50.0 * one + shift, rel=1e-9)


def ended_log(n, seed=0):
    """A machine that breaks: from "worn" it may end, which pays 5 a step later, if gamma is .5: 2.5."""
    rng, rows = np.random.default_rng(seed), []
    for i in range(n):
        state = "new"
        for t in range(6):
            action = ["run", "mend"][rng.integers(2)]
            if state == "new":
                after = "worn" if rng.random() < 0.5 else "new"
            else:
                after = "broken" if action == "run" and rng.random() < 0.5 else ["new", "worn"][rng.integers(2)]
            rows.append((i, t, state, action, after, 1.0 * (action == "run") + 2.5 * (after == "broken")))
            if after == "broken":
                break
            state = after
    return pd.DataFrame(rows, columns=["episode", "step", "state", "action", "next_state", "reward"])


def test_episodes_that_end():
    log = ended_log(600)
    reachable = {("new", a): ["new", "worn"] for a in ("run", "mend")}
    reachable |= {("worn", "run"): ["new", "worn", "broken"], ("worn", "mend"): ["new", "worn"]}
    states = pd.DataFrame({"state": ["new", "worn", "broken"], "wear": [0.0, 1.0, 2.0]})
    fit = MNLTransition(features=["action:wear"], reachable=reachable, states=states).fit(log)
    pays = {(s, a): 1.0 * (a == "run") for s, a in reachable}
    mdp = fit.to_mdp(pays, discount=0.5, start="new", terminal={"broken": 5.0})
    law = np.full((3, 2), 0.5)
    found = evaluate_policy(log, law, fit, mdp)
    # new = .5 + .5 (.5 new + .5 worn); worn = .5 + .5 (.25 5 + .375 new + .375 worn), once the law is counted
    new, _ = np.linalg.solve([[0.75, -0.25], [-0.1875, 0.8125]], [0.5, 0.5 + 0.625])
    assert found["behaviour"].lower < new < found["behaviour"].upper
    assert found["weighted per-decision"].lower < new < found["weighted per-decision"].upper
    assert found.truncation == pytest.approx(0.5 * 0.5**6 / 0.5 * 2.5)  # a step is worth 0 to 2.5 = (1 - gamma) 5
    short = log.drop(log[(log.episode == 0) & (log.step > 0)].index)  # from new: cannot have ended there
    with pytest.raises(
        livarot.LivarotError, match=r"has 1 of 6 steps and cannot have ended.*keep the first 1"
    ) as error:
        evaluate_policy(short, law, fit, mdp)
    assert error.value.index == (0,) and error.value.count == 1


def test_policies_and_refusals():
    log, fit, mdp = logged(400, 3)
    law = target(1)[0]
    found = evaluate_policy(log, law, fit, mdp)
    table = policy_table(mdp, law)
    assert evaluate_policy(log, table, fit, mdp).estimates == found.estimates
    sure = np.array([1, 1, 0], dtype=np.int32)
    assert evaluate_policy(log, sure, fit, mdp).estimates == evaluate_policy(log, np.eye(2)[sure], fit, mdp).estimates
    for call, said in (
        (lambda: evaluate_policy(log, table[table.state != "used"], fit, mdp), "policy: no action for 'used'"),
        (lambda: evaluate_policy(log, table.assign(stage=0), fit, mdp), "policy: has stages, and the model has none"),
        (lambda: evaluate_policy(log, target(3), fit, mdp), "policy: has shape"),
        (
            lambda: evaluate_policy(log, law, fit, fit.to_mdp(PAYS, start="new")),
            "mdp: has no discount: what a log says",
        ),
        (lambda: evaluate_policy(log.drop(index=2), law, fit, mdp), "keep the first 2 steps of every episode"),
    ):
        with pytest.raises(livarot.LivarotError, match=said):
            call()
    unpaid = log.drop(columns="reward")
    assert evaluate_policy(unpaid, law, fit, mdp)["behaviour"].value == pytest.approx(found["behaviour"].value, abs=0.1)


@pytest.mark.statistical
@pytest.mark.filterwarnings("ignore::livarot.data.DataWarning")
def test_intervals_hold_without_an_end():
    """300 logs of 200 episodes: those of 95 % hold the value of the chain without an end at least so often."""
    held = []
    for seed in range(300):
        log, fit, mdp = logged(200, 10, seed)
        value = true_value(mdp, target(1)[0])
        found = evaluate_policy(read_episodes(log, mdp, probability="probability"), target(1)[0], fit, mdp)
        held.append([found[name].lower < value < found[name].upper for name in ("model", "doubly robust")])
    assert (np.mean(held, axis=0) >= 0.93).all()
