"""The paper's experiment: what is run, what is reported, what the text claims."""

import json
import statistics
import threading

import numpy as np
import pytest

import livarot
from livarot.envs import hard_chain
from livarot.studies.paper.experiment import (
    CONTENDERS,
    FAMILIES,
    FIXED_GAP,
    LIVAROT,
    PAPER_GAP,
    SINGLE_PHASE,
    UCRL_MNL_OL,
    UNIFORM,
    reproduce,
)
from tests.support.paper import made_up

# what is run


def test_the_paper_s_settings():
    livarot_agent, other = LIVAROT.agent, UCRL_MNL_OL.agent
    assert (livarot_agent.n_explore, livarot_agent.reg_explore, livarot_agent.reg) == (80, 1.0, 10.0)
    assert (livarot_agent.step_size, livarot_agent.beta_scale, livarot_agent.printed_radius) == (
        20.0,
        0.01,
        True,
    )
    assert (other.reg, other.step_size, other.beta_scale) == (10.0, 10.0, 0.02)
    assert SINGLE_PHASE.agent.n_explore == 0
    assert PAPER_GAP.gap(10, 1000) == pytest.approx(1 / (4 * np.sqrt(2 * 10 * 1000)), rel=1e-14)
    assert FIXED_GAP.gap(10, 1000) == 0.05


@pytest.mark.parametrize(("family", "gap"), [(PAPER_GAP, None), (FIXED_GAP, 0.5 / 4)])
@pytest.mark.parametrize("contender", CONTENDERS, ids=lambda c: c.key)
def test_a_cell_is_the_run_of_each_seed_on_the_model_of_that_seed(small, family, gap, contender):
    for seed in range(3):
        mdp = hard_chain(4, n_episodes=20, gap=gap, seed=seed)
        alone = livarot.run(mdp, contender.agent, 20, seed=seed)
        assert np.array_equal(small.of(family, contender, 4).exact[seed], alone.cumulative_regret[0])
        assert np.array_equal(small.of(family, contender, 4).realised[seed], alone.cumulative_realised_regret[0])


def test_the_uniform_policy_has_the_known_constants():
    result = reproduce(n_seeds=2, horizons=(5, 10))  # T = 1000
    ratio, sd = result.ratio(PAPER_GAP, UNIFORM, "exact")
    assert ratio == pytest.approx([1.458, 1.457], abs=6e-4)  # exact values of the chain
    assert sd == pytest.approx([0, 0], abs=1e-10)
    fixed = [result.final(FIXED_GAP, UNIFORM, h, "exact").mean() for h in (5, 10)]
    assert fixed == pytest.approx([501, 964], rel=0.01)  # by simulation, 10 seeds
    assert all(result.final(FIXED_GAP, c, 5, "exact").mean() < 250 for c in CONTENDERS if c is not UNIFORM)


def test_progress_counts_to_the_end():
    seen = []
    reproduce(n_seeds=2, n_episodes=30, horizons=[3], workers=2, progress=lambda *now: seen.append(now))
    done = [d for d, _ in seen]
    assert done[0] == 0
    assert done == sorted(done)
    assert {total for _, total in seen} == {2 * 30 * len(FAMILIES) * len(CONTENDERS)} == {done[-1]}


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_what_progress_raises_ends_the_experiment_and_its_threads(error):
    before = threading.active_count()

    def progress(done, total):
        if done:
            raise error

    with pytest.raises(error):
        reproduce(n_seeds=2, n_episodes=2000, horizons=(3, 4), workers=2, progress=progress)
    assert threading.active_count() == before


@pytest.mark.parametrize("wrong", [{"n_seeds": 0}, {"n_episodes": 0}, {"workers": 0}, {"horizons": []}])
def test_refused(wrong):
    with pytest.raises(livarot.LivarotError):
        reproduce(**({"n_seeds": 1, "n_episodes": 2, "horizons": [3]} | wrong))


# what is reported


def test_summary_by_hand():
    exact = {"livarot": [1.0, 2.0, 6.0], "uniform": [4.0, 4.0, 4.0]}
    result = made_up(lambda f, c, h: exact.get(c.key, [3.0, 3.0, 3.0]), horizons=(4,))
    numbers = result.summary()["families"]["fixed-gap"]["agents"]["livarot"]["4"]
    sd = statistics.stdev([1, 2, 6])
    assert numbers["exact"]["mean"] == 3.0
    assert numbers["exact"]["median"] == 2.0
    assert numbers["exact"]["sd"] == pytest.approx(sd)
    assert numbers["exact"]["regret_over_h15"] == pytest.approx({"mean": 3 / 8, "sd": sd / 8})
    assert numbers["realised"] == numbers["exact"]
    assert numbers["locked_in"] == pytest.approx(1 / 3)  # 6 > 2; 2 is not above half of 4
    assert result.summary()["families"]["fixed-gap"]["agents"]["uniform"]["4"]["locked_in"] is None


def test_summary_is_json_and_complete(small):
    summary = json.loads(json.dumps(small.summary(), allow_nan=False))
    assert summary == small.summary()
    for family in FAMILIES:
        assert summary["families"][family.key]["gap"]["3"] == family.gap(3, 20)
        for contender in CONTENDERS:
            assert summary["families"][family.key]["agents"][contender.key].keys() == {"3", "4"}


# what the text claims


# figures and files
