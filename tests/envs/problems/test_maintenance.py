"""The machine of the documentation: its page, and its best policy."""

import math

import numpy as np
import pytest

import livarot
from livarot import envs
from livarot.envs.problems import maintenance


def test_the_machine_is_the_page_that_describes_it():
    mdp = envs.machine_maintenance(4)
    wears, wears_hard, breaks, by_wear, breaks_hard, improves, as_new, repaired = maintenance.THETA
    for wear in range(5):
        for hard in (0, 1):
            weights = {wear: 1.0, 5: math.exp(breaks + by_wear * wear / 4 + breaks_hard * hard)}
            if wear < 4:
                weights[wear + 1] = math.exp(wears + wears_hard * hard)
            check(mdp, wear, hard, weights)
        service = {wear: 1.0}
        if wear > 0:
            service[wear - 1] = math.exp(improves)
        if wear > 1:
            service[0] = math.exp(as_new)
        check(mdp, wear, 2, service)
    check(mdp, 5, 2, {5: 1.0, 0: math.exp(repaired)})
    check(mdp, 5, 0, {5: 1.0})
    np.testing.assert_array_equal(mdp.problem.reward[0, :5], [[0.6, 1.0, 0.0]] * 5)
    np.testing.assert_array_equal(mdp.problem.reward[:, 5], 0.0)
    np.testing.assert_allclose(mdp.original_theta[0], maintenance.THETA, rtol=4e-16)


def check(mdp, state, action, weights):
    seen = dict(
        zip(mdp.problem.next_states(1, state, action).tolist(), mdp.probabilities(1, state, action), strict=True)
    )
    assert seen == pytest.approx({s: w / sum(weights.values()) for s, w in weights.items()}, rel=1e-12)


def test_the_machine_s_best_policy_is_the_one_described():
    mdp = envs.machine_maintenance()
    policy = livarot.solve(mdp).policy
    assert (policy[:, :3] == maintenance.HARD).all()
    assert (policy[:20, 3:] == maintenance.SERVICE).all()
    assert (policy[-1, :5] == maintenance.HARD).all()
    hard = np.full(policy.shape, maintenance.HARD)
    hard[:, 5] = maintenance.SERVICE
    gain = livarot.solve(mdp).value[0, 0] - livarot.evaluate(mdp, hard)[0, 0]
    assert gain > 2.0  # the service is worth more than two good weeks


@pytest.mark.parametrize(
    ("make", "argument"),
    [
        (lambda: envs.machine_maintenance(0), "horizon"),
    ],
)
def test_bad_settings_of_the_machine(make, argument):
    with pytest.raises(livarot.LivarotError) as caught:
        make()
    assert caught.value.argument == argument
