"""Hands every registered agent data and states of another problem, and prints what became of each.

This is a program of its own: if compiled code read out of bounds, only this process would crash.
"""

import sys

import numpy as np

import livarot
from livarot import agents
from livarot.simulation.streams import AgentRandom

WORLD = livarot.envs.river_swim(6, 7)
OTHERS = {
    "smaller": livarot.envs.river_swim(3, 4),
    "larger": livarot.envs.river_swim(40, 60),
    "shared": livarot.envs.river_swim(6, 7, shared_parameter=True),
}
BANDIT, OTHER_BANDIT = livarot.envs.mnl_bandit(n_arms=4), livarot.envs.mnl_bandit(n_arms=30, dim=7)
BANDITS = ("oful-mlogb", "ofu-mnl-pp")
SETTINGS = {"ucrl-mnl-ll": {}, "rrl-mnl": {"kappa": 50.0}, "ons-ucrl-mnl": {"kappa": 50.0}, "ucrl-mnl": {"kappa": 50.0}}


def made():
    """Every agent that learns, some with several settings, with its own model and other models."""
    for name in agents.registry:
        if name in ("uniform", "oracle"):
            continue
        bandit = name in BANDITS
        world, others = (BANDIT, {"larger": OTHER_BANDIT}) if bandit else (WORLD, OTHERS)
        known = agents.registry._entry(name).factory.__dataclass_fields__
        settings = {key: value for key, value in SETTINGS.get(name, {}).items() if key in known}
        yield name, agents.make(name, **settings), world, others
    exploring = {"n_explore": 3, "kappa": 50.0}
    for rule in (agents.LiteralExploration(), agents.StateAwareExploration()):
        yield f"exploring {type(rule).__name__}", agents.Livarot(exploration=rule, **exploring), WORLD, OTHERS
    yield "ucbvi theory", agents.UCBVI.theory(100, agents.tabular.ucbvi.Bernstein()), WORLD, OTHERS
    yield "ucrl2 theory", agents.UCRL2.theory(), WORLD, OTHERS
    yield "drifting", agents.DriftingLivarot(discount=0.9), WORLD, OTHERS
    yield "rare switching of counts", agents.RareSwitching(agents.UCBVI()), WORLD, OTHERS


def played(mdp, n=2):
    problem = mdp.problem
    return livarot.simulate(mdp, np.zeros((problem.horizon, problem.n_states), dtype=np.int32), n)


def episodes_of_others(mdp):
    good = played(mdp)

    def changed(name, number, dtype=np.int32):
        array = np.array(getattr(good, name), dtype=dtype)
        array[1, 0] = number
        return good._replace(**{name: array})

    problem = mdp.problem
    yield "state above", changed("states", problem.n_states)
    yield "state far above", changed("states", 2**31 - 1)
    yield "state below", changed("states", -1)
    yield "action above", changed("actions", problem.n_actions)
    yield "action far above", changed("actions", 10**6)
    yield "action below", changed("actions", -(2**31))
    yield "choice above", changed("choices", 10**6)
    yield "choice below", changed("choices", -1)
    yield "long numbers", changed("states", 2**40, np.int64)
    yield "halves", changed("states", 0.5, np.float64)
    yield "fewer stages", livarot.Episodes(good.states[:, 1:], good.actions[:, 1:], good.choices[:, 1:])
    yield "more replicas", played(mdp, 3)
    yield "fewer replicas", played(mdp, 1)
    yield "no choices", good._replace(choices=None)
    spoilt = played(mdp)
    spoilt.states[1, 0] = 10**6
    yield "changed in place", spoilt


def outcome(work, *arguments):
    try:
        work(*arguments)
        return "accepted"
    except livarot.LivarotError as error:
        return f"refused {str(error)[:60]}"
    except Exception as error:
        return f"{type(error).__name__} {str(error)[:80]}"


def learned(agent, mdp):
    state = agent.init(mdp.problem, 2)
    for _ in range(2):
        state = agent.update(mdp.problem, state, played(mdp))
    return state


def main():
    for name, agent, world, others in made():
        problem, state, rng = world.problem, learned(agent, world), AgentRandom([0, 1])
        for case, episodes in episodes_of_others(world):
            print(name, "|", case, "|", outcome(agent.update, problem, state, episodes))
        for case, other in others.items():
            theirs = learned(agent, other)
            print(name, "|", f"plan, {case}", "|", outcome(agent.plan, problem, theirs, rng))
            print(name, "|", f"update, {case}", "|", outcome(agent.update, problem, theirs, played(world)))
        sys.stdout.flush()


if __name__ == "__main__":
    main()
