"""States of another agent, another problem or another size are refused."""

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents, envs

MDP = envs.river_swim(4, 5)


OTHERS = [envs.river_swim(6, 5), envs.river_swim(4, 3), envs.hard_chain(5), envs.river_swim(4, 9)]


AGENTS = [agents.Livarot(), agents.UCRLMNL(), agents.UCBVI(), agents.PSRL(), agents.RareSwitching(), agents.Uniform()]


@pytest.mark.parametrize("agent", AGENTS, ids=lambda agent: agent.name)
@pytest.mark.parametrize("told", [True, False])
def test_the_state_of_another_problem_is_refused(tmp_path, agent, told):
    path = tmp_path / "state"
    for other in OTHERS:
        livarot.save_state(path, agent, agent.init(other.problem, 2), other.problem if told else None)
        with pytest.raises(LivarotError, match="another problem" if told else "does not hold what it should"):
            livarot.load_state(path, agent, MDP.problem)
        state = livarot.LearnState(agent.init(other.problem), 0, other.problem.fingerprint if told else None)
        with pytest.raises(LivarotError, match=r"^state: "):
            livarot.Online(agent, MDP.problem, state=state)


def test_a_problem_of_the_same_sizes_is_told_apart_by_its_fingerprint(tmp_path, caplog):
    other = livarot.MNLMDP.from_arrays(
        5, 4, 2, outcomes=MDP.problem.rows.outcomes, next_state=MDP.problem.rows.next_state,
        features=np.concatenate([MDP.problem.rows.features(p) for p in range(8)]), offset=MDP.problem.rows.offset,
        reward=MDP.problem.reward * 0.5, start=MDP.problem.start, theta=MDP.theta,
    )  # fmt: skip
    assert other.problem.fingerprint != MDP.problem.fingerprint
    agent, path = agents.Livarot(), tmp_path / "state"
    livarot.save_state(path, agent, agent.init(other.problem), other.problem)
    with pytest.raises(LivarotError, match=r"^problem: .* another problem"):
        livarot.load_state(path, agent, MDP.problem)
    livarot.save_state(path, agent, agent.init(other.problem))  # as earlier versions did
    with caplog.at_level("INFO"):
        livarot.load_state(path, agent, MDP.problem)
    assert "does not say which problem" in caplog.text


@pytest.mark.parametrize("state", [3, None, (1, 2, 3), agents.UCBVI().init(MDP.problem)])
def test_what_is_not_a_state_of_the_agent_is_refused(state):
    with pytest.raises(LivarotError, match=r"^state: "):
        livarot.Online(agents.Livarot(), MDP.problem, state=livarot.LearnState(state))
    if state is not None:
        with pytest.raises(LivarotError, match=r"^state: "):
            livarot.Online(agents.Livarot(), MDP.problem, state=state)
