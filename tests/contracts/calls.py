"""Every public callable with arguments that it accepts: what a fuzz test alters, one argument at a time.

A call is (function, arguments).  An agent is made *and* plays a few episodes, a rule makes a plan, an environment is
solved: a setting that is accepted has to work.
"""

import inspect
import itertools
from pathlib import Path

import gymnasium
import numpy as np

import livarot
from livarot import agents, data, envs, infinite, theory
from livarot.core import mnl
from livarot.lanes import expectation
from livarot.planning.sampling import OutcomeSampling
from tests.support import machine_logs, offline_logs

# not called: classes that only hold results, protocols, decorators, and what needs data that are not installed
CONTAINERS = {
    "Agent", "AgentRandom", "AverageSolution", "BanditConstants", "BaseAgent", "Bootstrap", "Bound", "Bracket",
    "Calibration", "Constants", "Coverage", "DataWarning", "DiscountedSolution", "Encoding", "Episodes", "FeatureMap",
    "Gain", "Gaps", "HeldOut", "InfiniteAgent", "InfinitePlan", "InfiniteResult", "InnerMax", "Interrupted", "Interval",
    "LearnResult", "LearnState", "LikelihoodRatio", "LivarotError", "LoggedEpisodes", "LowerBound", "MirrorDescent",
    "ModelLabels", "NewtonSteps", "NotIdentified", "OptimisticAverage", "OptimisticDiscounted", "Paths",
    "PessimisticDiscounted",
    "PessimisticPlan", "PessimisticPolicy", "Plan", "Policy", "PolicyEvaluation", "Problem", "Rate", "RewardScale",
    "RobustDiscounted", "RobustSolution", "RobustnessCurve", "RunResult", "Settings", "Solution", "Steps", "Summary",
    "SignOracle", "TheoryWarning", "Transitions", "TuneResult", "UnfinishedFit", "ValueInterval", "Wald",
    "WarmStarted", "checked", "icu_sepsis",
}  # fmt: skip

HORIZON, STATES, ACTIONS = 3, 3, 2
LIMITS = {"gap": 0.05, "n_episodes": 20, "n_runs": 3}
NAMES = {"states": ["new", ("worn", 1), 2], "actions": ["rest", "work"]}
PAID = np.array([[0.5, 0.5], [0.0, 0.5], [0.0, 0.0]])  # where TERMS leave an action
TERMS = {"discount": 0.9, "available": [[0, 1], [1], []], "terminal": [2], "terminal_reward": [0.0, 2.0, 5.0]}


def everything(function, **given):
    """All arguments of a function, its defaults made explicit."""
    found = {}
    for name, one in inspect.signature(function).parameters.items():
        if name in given:
            found[name] = given[name]
        elif one.default is not one.empty and not repr(one.default).startswith("<"):
            found[name] = one.default
    return found


def solved(factory):
    def call(**arguments):
        mdp = factory(**arguments)
        return mdp, livarot.solve(mdp)

    return call


def played(factory, mdp):
    def call(**arguments):
        return livarot.run(mdp, factory(**arguments), 3)

    return call


def features(h, s, a):
    return [s, (s + 1) % STATES], [[0.0, 0.0], [0.6, 0.8 if a else -0.8]]


def model_arguments():
    return {
        "horizon": HORIZON,
        "n_states": STATES,
        "n_actions": ACTIONS,
        "reward": np.full((HORIZON, STATES, ACTIONS), 0.5),
        "theta": np.tile([0.3, 0.4], (HORIZON, 1)),
        "start": np.array([0.25, 0.25, 0.5]),
        "param_bound": 1.0,
        "normalise": False,
    } | NAMES


def array_arguments():
    return model_arguments() | {
        "outcomes": np.full((STATES, ACTIONS), 2),
        "next_state": np.array([[s, (s + 1) % STATES] for s in range(STATES) for _ in range(ACTIONS)]).reshape(-1),
        "features": np.tile([[0.0, 0.0], [0.6, 0.8]], (STATES * ACTIONS, 1)),
        "stage_table": np.zeros(HORIZON, dtype=np.int32),
        "offset": np.zeros(2 * STATES * ACTIONS),
    }


def other_terms():
    """A model with costs, a discount, missing actions and a terminal state."""
    return {k: v for k, v in model_arguments().items() if k != "reward"} | {
        "cost": np.arange(18.0).reshape(3, 2, 3),
        "terminal_cost": {"new": 3.0},
        "discount": 0.9,
        "available": {"new": ["rest", "work"], ("worn", 1): ["work"]},
        "terminal": [2],
    }


def all_calls():
    """name -> (function, arguments)."""
    calls = {}
    mdp = livarot.MNLMDP.from_function(features=features, **model_arguments())
    bandit = envs.mnl_bandit(4, 3, 2)
    for part in (_models, _environments, _agents, _rules, _planning, _theory, _infinite, _data, _running, _other):
        calls |= part(mdp, bandit)
    return calls


def _models(mdp, bandit):
    path = Path("model.livarot")
    mdp.save(path)
    pair = {"stage": 0, "state": 1, "action": 1}
    known = {k: v for k, v in model_arguments().items() if k != "theta"} | {"shared_parameter": False}
    arrays = {k: v for k, v in array_arguments().items() if k != "theta"} | {"shared_parameter": False}
    return {
        "MNLMDP": (livarot.MNLMDP, {"problem": mdp.problem, "theta": mdp.theta}),
        "MNLMDP.from_function": (
            solved(livarot.MNLMDP.from_function),
            model_arguments() | {"features": features, "offset": None},
        ),
        "MNLMDP.from_arrays": (solved(livarot.MNLMDP.from_arrays), array_arguments()),
        "MNLMDP.from_function in other terms": (
            solved(livarot.MNLMDP.from_function),
            {"features": features} | other_terms(),
        ),
        "MNLMDP.from_arrays in other terms": (
            solved(livarot.MNLMDP.from_arrays),
            {k: v for k, v in array_arguments().items() if k != "reward"} | other_terms(),
        ),
        "Problem.returns": (mdp.problem.returns, {"episodes": livarot.simulate(mdp, livarot.solve(mdp).policy, 2)}),
        "Problem.from_function": (livarot.Problem.from_function, known | {"features": features, "offset": None}),
        "Problem.from_arrays": (livarot.Problem.from_arrays, arrays),
        "MNLMDP.probabilities": (mdp.probabilities, pair),
        "MNLMDP.with_labels": (mdp.with_labels, NAMES),
        "Problem.with_labels": (mdp.problem.with_labels, NAMES),
        "MNLMDP.save": (mdp.save, {"path": path}),
        "MNLMDP.load": (livarot.MNLMDP.load, {"path": path}),
        "Problem.next_states": (mdp.problem.next_states, pair),
        "Problem.features": (mdp.problem.features, pair),
        "Problem.offset": (mdp.problem.offset, pair),
        "Problem.probabilities": (mdp.problem.probabilities, {"theta": mdp.theta} | pair),
        "Problem.original_theta": (mdp.problem.original_theta, {"theta": mdp.theta}),
        "Problem.same_as": (mdp.problem.same_as, {"other": bandit.problem}),
        "Episodes.from_states": (
            livarot.Episodes.from_states,
            {
                "problem": mdp.problem,
                "states": np.zeros((1, HORIZON + 1), dtype=np.int64),
                "actions": np.zeros((1, HORIZON), dtype=np.int64),
            },
        ),
    }


def _environments(mdp, bandit):
    made = (
        envs.hard_chain, envs.river_swim, envs.six_arms, envs.deep_sea, envs.park_two_state, envs.random_mdp,
        envs.mnl_bandit, envs.kl_robust, envs.machine_maintenance, envs.jittered_chain, envs.unknown_river,
        envs.combination_lock, envs.sparse_mdp,
    )  # fmt: skip
    small = {
        "n_states": 5,
        "n_actions": 2,
        "horizon": 3,
        "size": 3,
        "dim": 3,
        "n_reachable": 2,
        "n_active": 1,
        "seed": 1,
    }
    calls = {}
    for factory in made:
        kept = {k: v for k, v in small.items() if k in inspect.signature(factory).parameters}
        calls[factory.__name__] = (solved(factory), everything(factory, **kept))
    calls["random_mdp with gap"] = (
        solved(envs.random_mdp),
        everything(envs.random_mdp, gap=0.1, sigma_bar=0.001, n_states=7, persistent=True),
    )
    calls["hard_chain with gap"] = (solved(envs.hard_chain), everything(envs.hard_chain, gap=0.1, param_bound=30.0))
    calls["kl_robust with radius"] = (solved(envs.kl_robust), everything(envs.kl_robust, radius=0.01, n_states=8))
    calls["paper_gap"] = (envs.paper_gap, {"horizon": 3, "n_episodes": 100})
    calls["envs.make"] = (lambda name, **k: envs.make(name, **k), {"name": "hard-chain", "horizon": 3})
    P = np.full((3, 2, 3), 1 / 3)
    line = np.array([[[0.5, 0.5, 0.0]] * 2, [[0.25, 0.5, 0.25]] * 2, [[0.0, 0.5, 0.5]] * 2])
    table = {"P": P, "R": PAID, "horizon": 3, "start": 0, "theta": None, "param_bound": None}
    switches = {"features": "one-hot", "shared_parameter": True, "rescale": False, "normalise": True} | NAMES | TERMS
    lake = gymnasium.make("FrozenLake-v1")
    lines = {"state": [0, 0, 1], "action": [0, 0, 0], "next_state": [0, 1, 1], "features": [[0.0], [1.0], [0.0]]}
    rest = {"horizon": 2, "n_states": 2, "n_actions": 1, "reward": [[0], [1]], "theta": [0.0], "start": 0}
    drifting = envs.Drifting.rotation(mdp, 10)
    calls |= {
        "from_tabular": (solved(envs.from_tabular), table | switches),
        "from_gymnasium": (
            solved(envs.from_gymnasium),
            {"env": lake, "horizon": 5, "features": "one-hot", "shared_parameter": True, "rescale": False, "start": 0},
        ),
        "mnl_embedding": (
            solved(envs.mnl_embedding),
            {"nominal": mdp, "radius": 0.01, "penalty": None, "psi": None, "param_bound": None},
        ),
        "bandit_constants": (envs.bandit_constants, {"mdp": bandit}),
        "Drifting": (
            envs.Drifting,
            {"problem": mdp.problem, "thetas": drifting.thetas, "boundaries": drifting.boundaries},
        ),
        "Drifting.at": (drifting.at, {"episode": 3}),
        "Drifting.pieces": (lambda n_episodes: list(drifting.pieces(n_episodes)), {"n_episodes": 5}),
        "Drifting.abrupt": (envs.Drifting.abrupt, everything(envs.Drifting.abrupt, mdp=mdp, every=5, n_pieces=3)),
        "Drifting.rotation": (envs.Drifting.rotation, everything(envs.Drifting.rotation, mdp=mdp, n_episodes=9)),
        "Drifting.interpolation": (
            envs.Drifting.interpolation,
            {"mdp": mdp, "theta": -mdp.theta, "n_episodes": 9, "every": 2},
        ),
        "LongTable": (lambda **k: envs.LongTable(**k).mdp(**rest), lines | {"stage": None}),
        "LongTable.mdp": (
            envs.LongTable(**lines).mdp,
            rest | {"offset": None, "param_bound": 1.0, "normalise": False, "discount": 0.9},
        ),
        "LongTable.from_columns": (
            envs.LongTable.from_columns,
            {
                "table": {"state": [0], "action": [0], "next_state": [0], "x": [0.5]},
                "features": ["x"],
                "state": "state",
                "action": "action",
                "next_state": "next_state",
                "stage": None,
            },
        ),
        "MNLEnv": (lambda **k: envs.MNLEnv(**k).reset(seed=0), {"mdp": mdp, "render_mode": None}),
        "MNLEnv.reset": (envs.MNLEnv(mdp).reset, {"seed": 0, "options": None}),
        "MNLEnv.step": (_stepped(envs.MNLEnv(mdp)), {"action": 1}),
        "MNLVectorEnv": (
            lambda **k: envs.MNLVectorEnv(**k).reset(seed=0),
            {"mdp": mdp, "num_envs": 2, "autoreset_mode": "NextStep", "render_mode": None},
        ),
        "MNLVectorEnv.step": (_stepped(envs.MNLVectorEnv(mdp, 2)), {"actions": np.array([0, 1])}),
        "StageObservation": (envs.StageObservation, {"env": envs.MNLEnv(mdp)}),
        "TabularMDP": (
            envs.TabularMDP,
            {"problem": mdp.problem, "theta": mdp.theta, "reward_scale": envs.RewardScale()},
        ),
        "TabularMDP.original_value": (
            envs.from_tabular(P, np.full((3, 2), 0.5), 3).original_value,
            {"value": np.zeros((4, 3))},
        ),
    }
    for each, arguments in (
        (envs.NextState, {"attributes": np.ones((3, 1)), "per_action": False}),
        (envs.Function, {"function": lambda s, a, t: [0.1 * s]}),
        (envs.LogNominal, {"tilt": lambda s, a, t: [0.1 * s], "learn_nominal": False}),
        (envs.OneHot, {}),
        (envs.Moves, {}),
    ):
        calls[each.__name__] = (_encoded(each, line if each is envs.Moves else P), arguments)
    return calls


def _encoded(factory, P):
    return lambda **k: envs.from_tabular(P, np.full((3, 2), 0.5), 3, features=factory(**k))


def _stepped(env):
    def call(**arguments):
        env.reset(seed=0)
        return env.step(**arguments)

    return call


def _agents(mdp, bandit):
    calls = {}
    for name in agents.registry:
        factory = agents.registry._entry(name).factory
        given = {"policy": livarot.solve(mdp).policy} if factory.plays_given_policy else {}
        where = bandit if factory(**given).made_for else mdp
        arguments = everything(factory, **given)
        arguments |= {k: getattr(factory(**given), k) for k in inspect.signature(factory).parameters}
        calls[factory.__name__] = (played(factory, where), arguments)
        for preset in ("theory", "paper", "single_phase"):
            method = getattr(factory, preset, None)
            if method is not None and inspect.signature(method).parameters:
                calls[f"{factory.__name__}.{preset}"] = (played(method, where), everything(method, n_episodes=100))
        agent = factory(**given)
        calls[f"{factory.__name__}.init"] = (agent.init, {"problem": where.problem, "n_replicas": 2})
        for method in ("radius", "formula"):
            if hasattr(agent, method):
                calls[f"{factory.__name__}.{method}"] = (
                    getattr(agent, method),
                    {"problem": where.problem, "episode": 3},
                )
    explored = {"n_explore": 2, "reg_explore": 1.0, "kappa": 3.0, "n_episodes": 5}
    calls["Livarot with burn-in"] = (played(agents.Livarot, mdp), explored)
    for each in (agents.LiteralExploration, agents.StateAwareExploration):
        calls[each.__name__] = (
            lambda each=each: livarot.run(mdp, agents.Livarot(n_explore=2, exploration=each()), 3),
            {},
        )
    for bonus in (agents.Hoeffding, agents.Bernstein, agents.Simple):
        factory = lambda bonus=bonus, **k: agents.UCBVI(bonus(**k))  # noqa: E731
        calls[bonus.__name__] = (played(factory, mdp), everything(bonus))
    path = Path("state.livarot")
    agent = agents.Livarot()
    state = agent.init(mdp.problem)
    agents.save_state(path, agent, state)
    estimate, within = agents.initial_estimate(mdp.problem, 1, 1.0), agents.ball(mdp.problem, 1.0, 1)
    episodes = livarot.simulate(mdp, np.zeros((HORIZON, STATES), dtype=np.int64), 1, seed=0)
    step = {"problem": mdp.problem, "estimate": estimate, "episodes": episodes, "step_size": 1.0, "within": within}
    agents.omd_update(**step | {"step_size": 1e6})  # compiles the projection, which takes longer than a call may
    calls |= {
        "initial_estimate": (agents.initial_estimate, {"problem": mdp.problem, "n_replicas": 1, "reg": 1.0}),
        "ball": (agents.ball, {"problem": mdp.problem, "bound": 1.0, "n_replicas": 1}),
        "omd_update": (agents.omd_update, step),
        "agents.make": (lambda name, **k: agents.make(name, **k), {"name": "livarot", "reg": 1.0}),
        "save_state": (agents.save_state, {"path": path, "agent": agent, "state": state}),
        "load_state": (agents.load_state, {"path": path, "agent": agent, "problem": mdp.problem}),
    }
    return calls


def _estimate(mdp):
    return agents.initial_estimate(mdp.problem, 1, 1.0)


def _rules(mdp, bandit):
    estimate = _estimate(mdp)
    calls = {}
    for rule in (
        livarot.JointMaximum,
        livarot.VarianceBonus,
        livarot.SecondOrderBonus,
        livarot.MaxNormBonus,
        livarot.PlugIn,
    ):
        make = lambda rule=rule, **k: livarot.optimistic_plan(mdp.problem, estimate, 0.5, rule(**k))  # noqa: E731
        given = {"solver": livarot.ShiftedPower()} if rule is livarot.JointMaximum else {}
        calls[rule.__name__] = (make, everything(rule, **given))
    inner = {"features": [[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.5, 0.5]], "values": [0.0, 1.0, 0.5, 0.2]}
    region = livarot.Ellipsoid([0.0, 0.0], np.eye(2), 2.0)
    for solver in (livarot.ShiftedPower, livarot.FrankWolfe):
        make = lambda solver=solver, **k: livarot.inner_max(**inner, ellipsoid=region, solver=solver(**k))  # noqa: E731
        calls[solver.__name__] = (make, everything(solver))
    make = lambda **k: livarot.optimistic_plan(mdp.problem, estimate, 0.5, livarot.rule(**k))  # noqa: E731
    calls["rule"] = (make, everything(livarot.rule, value=_plain_rule, settings=None, bound=None))
    calls["OutcomeSampling"] = (OutcomeSampling, {"constant": 3.0})
    calls["inner_max"] = (
        livarot.inner_max,
        inner | {"ellipsoid": region, "solver": livarot.ShiftedPower(), "offset": np.zeros(4)},
    )
    calls["optimistic_plan"] = (
        livarot.optimistic_plan,
        {"problem": mdp.problem, "estimate": estimate, "radius": 0.5, "rule": livarot.JointMaximum()},
    )
    calls["pessimistic_plan"] = (
        livarot.pessimistic_plan,
        {"problem": mdp.problem, "estimate": estimate, "radius": 0.5, "solver": livarot.ShiftedPower()},
    )
    return calls


def _plain_rule(choice, v, settings):
    return expectation(choice.p, v)


def _planning(mdp, bandit):
    policy = np.zeros((HORIZON, STATES), dtype=np.int64)
    ball = livarot.Ellipsoid([0.1, 0.2], [[2.0, 0.0], [0.0, 1.0]], 0.5)
    robust = {"nominal": mdp, "radius": 0.1, "penalty": None, "count_penalty": True}
    P = np.full((3, 2, 3), 1 / 3)
    return {
        "solve": (livarot.solve, {"mdp": mdp}),
        "evaluate": (livarot.evaluate, {"mdp": mdp, "policy": policy}),
        "simulate": (livarot.simulate, {"mdp": mdp, "policy": policy, "n_episodes": 2, "seed": 0}),
        "solve_robust": (livarot.solve_robust, robust),
        "solve_robust with penalty": (livarot.solve_robust, robust | {"radius": None, "penalty": 1.0}),
        "evaluate_robust": (livarot.evaluate_robust, robust | {"policy": policy}),
        "robustness_curve with an end": (livarot.robustness_curve, {"nominal": mdp, "radii": [0.0, 0.1]}),
        "nominal_model": (
            livarot.nominal_model,
            {"transitions": P, "reward": PAID, "horizon": 3, "start": 0} | TERMS,
        ),
        "worst_case": (
            livarot.worst_case,
            {"values": [0.0, 1.0, 0.3], "nominal": [0.2, 0.3, 0.5], "radius": 0.1, "penalty": None},
        ),
        "worst_case with penalty": (
            livarot.worst_case,
            {"values": [0.0, 1.0, 0.3], "nominal": [0.2, 0.3, 0.5], "radius": None, "penalty": 1.0},
        ),
        "Ellipsoid": (livarot.Ellipsoid, {"center": [0.0, 0.0], "matrix": np.eye(2), "radius": 1.0}),
        "Ellipsoid.ball": (livarot.Ellipsoid.ball, {"dim": 2, "radius": 1.0}),
        "Ellipsoid.width": (ball.width, {"direction": [1.0, 0.0]}),
        "Ellipsoid.support": (ball.support, {"direction": [1.0, 0.0]}),
        "Ellipsoid.distance": (ball.distance, {"x": [1.0, 0.0]}),
        "Ellipsoid.contains": (ball.contains, {"x": [1.0, 0.0], "tolerance": 1e-10}),
        "Ellipsoid.project": (ball.project, {"x": [1.0, 0.0], "metric": np.eye(2)}),
        "Ellipsoid.projection": (ball.projection, {"x": [1.0, 0.0], "metric": np.eye(2)}),
        "softmax": (mnl.softmax, {"logits": [0.0, 1.0]}),
    }


def _theory(mdp, bandit):
    numbers = {"n_episodes": 1000, "failure_level": 0.05, "gap": 0.05, "horizon": 5, "dim": 3, "p": 0.3}
    numbers |= {
        "models": [mdp, mdp],
        "model": mdp,
        "mdp": mdp,
        "region": 0.25,
        "episodes": np.zeros((1, HORIZON + 1), dtype=np.int64),
    }
    numbers |= {"result": livarot.run(mdp, agents.Livarot.theory(10), 3)}
    calls = {}
    for name in theory.__all__:
        function = getattr(theory, name)
        if inspect.isfunction(function):
            given = numbers | LIMITS if name in ("sign_oracle", "chain_log_rate") else numbers
            kept = {k: v for k, v in given.items() if k in inspect.signature(function).parameters}
            calls[name if name != "diameter" else "theory.diameter"] = (function, everything(function, **kept))
    calls["Constants.of"] = (theory.Constants.of, everything(theory.Constants.of, model=mdp))
    calls["chain_lower_bound without gap"] = (
        theory.chain_lower_bound,
        {"horizon": 5, "dim": 3, "n_episodes": 100, "gap": None},
    )
    return calls


def _infinite(mdp, bandit):
    endless = infinite.InfiniteMDP.from_mdp(envs.park_two_state(3, 3))
    agent = infinite.FixedPolicy(np.zeros(2, dtype=np.int64))

    def pair(s, a):
        return [0, 1], [[0.0], [1.0 if a else -1.0]]

    def walked(factory):
        return lambda **k: infinite.run_infinite(endless, factory(**k), 5)

    calls = {
        "InfiniteMDP": (infinite.InfiniteMDP, {"stage": endless.stage}),
        "InfiniteProblem": (infinite.InfiniteProblem, {"stage": endless.stage.problem}),
        "InfiniteMDP.from_mdp": (infinite.InfiniteMDP.from_mdp, {"mdp": envs.park_two_state(3, 3)}),
        "InfiniteMDP.from_function": (
            infinite.InfiniteMDP.from_function,
            {
                "n_states": 2,
                "n_actions": 2,
                "features": pair,
                "reward": [[0, 0], [1, 1]],
                "theta": [0.5],
                "start": 0,
                "param_bound": 1.0,
                "normalise": False,
                "offset": None,
                "states": ["new", "worn"],
                "actions": ["rest", "work"],
            },
        ),
        "InfiniteMDP.from_arrays": (
            infinite.InfiniteMDP.from_arrays,
            {
                "n_states": 2,
                "n_actions": 2,
                "outcomes": [2, 0, 1, 1],
                "next_state": [1, 0, 0, 1],
                "features": np.eye(4, 2),
                "theta": [0.5, -0.5],
                "offset": np.zeros(4),
                "param_bound": 1.0,
                "normalise": False,
                "cost": lambda s, a, to: 3.0 * s + a - to,
                "available": [["rest"], ["rest", "work"]],
                "discount": 0.9,
                "start": "worn",
                "states": ["new", "worn"],
                "actions": ["rest", "work"],
            },
        ),
        "InfiniteMDP.from_transitions": (
            infinite.InfiniteMDP.from_transitions,
            {
                "transitions": [[[0.5, 0.5], [0.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]],
                "reward": [[1.0, 1e6], [0.0, 0.0]],
                "terminal": {1: 3.0},
                "available": None,
                "discount": 0.5,
                "start": 0,
                "states": None,
                "actions": None,
            },
        ),
        "InfiniteMDP.with_terms": (
            endless.with_terms,
            {"reward": None, "cost": [1.0, 2.0], "terminal": None, "discount": 0.5, "start": 0, "states": None},
        ),
        "bus_engine": (infinite.bus_engine, everything(infinite.bus_engine, n_bins=5)),
        "infinite.solve": (infinite.solve, {"mdp": endless, "discount": 0.9, "tol": 1e-10}),
        "infinite.evaluate": (infinite.evaluate, {"mdp": endless, "policy": [0, 0], "discount": 0.9}),
        "infinite.simulate": (
            infinite.simulate,
            {"mdp": endless, "policy": [0, 0], "n_steps": 4, "n_paths": 2, "seed": 0},
        ),
        "infinite.solve_robust": (
            infinite.solve_robust,
            {"mdp": endless, "discount": 0.9, "radius": 0.1, "penalty": None, "tol": 1e-9, "max_iter": 1000},
        ),
        "evaluate_robust": (
            infinite.evaluate_robust,
            {"mdp": endless, "policy": [0, 0], "discount": 0.9, "radius": None, "penalty": 0.1, "tol": 1e-9},
        ),
        "robustness_curve": (
            infinite.robustness_curve,
            {"mdp": endless, "radii": [0.0, 0.1], "discount": 0.9, "tol": 1e-9},
        ),
        "solve_optimistic": (
            infinite.solve_optimistic,
            {
                "mdp": endless,
                "covariance": np.eye(endless.problem.dim),
                "discount": 0.9,
                "level": 0.9,
                "radius": None,
                "rule": None,
                "tol": 1e-6,
            },
        ),
        "solve_pessimistic": (
            infinite.solve_pessimistic,
            {
                "mdp": endless,
                "covariance": np.eye(endless.problem.dim),
                "discount": 0.9,
                "level": 0.9,
                "radius": None,
                "solver": None,
                "tol": 1e-6,
            },
        ),
        "infinite.value_interval": (
            infinite.value_interval,
            {
                "mdp": endless,
                "covariance": np.eye(endless.problem.dim),
                "policy": None,
                "discount": 0.9,
                "level": 0.9,
                "method": "bootstrap",
                "n_draws": 3,
                "seed": 0,
                "statistic": None,
            },
        ),
        "InfiniteMDP.probabilities": (endless.probabilities, {"state": 0, "action": 0}),
        "FixedPolicy": (walked(infinite.FixedPolicy), {"policy": np.zeros(2, dtype=np.int64)}),
        "UCMNLK": (walked(infinite.UCMNLK), everything(infinite.UCMNLK, n_steps=50, diameter=3.0)),
        "UCMNLK with discount": (walked(infinite.UCMNLK), everything(infinite.UCMNLK, discount=0.9, step_size=1.0)),
        "UCMNLK.average": (walked(infinite.UCMNLK.average), {"n_steps": 50, "diameter": 3.0}),
        "UCMNLK.paper": (walked(infinite.UCMNLK.paper), {"n_steps": 50, "diameter": 3.0, "dim": 3}),
        "UCMNLK.theory": (walked(infinite.UCMNLK.theory), {"n_steps": 50, "diameter": 3.0}),
        "infinite.diameter": (infinite.diameter, {"mdp": endless, "tol": 1e-9, "max_iter": 100000}),
        "policy_gain": (infinite.policy_gain, {"mdp": endless, "policy": [0, 0]}),
        "policy_value": (infinite.policy_value, {"mdp": endless, "policy": [0, 0], "discount": 0.9}),
        "run_infinite": (
            infinite.run_infinite,
            {"mdp": endless, "agent": agent, "n_steps": 4, "seed": 0, "discount": None, "progress": None},
        ),
        "solve_average": (infinite.solve_average, {"mdp": endless, "tol": 1e-10, "max_iter": 1000}),
        "solve_discounted": (
            infinite.solve_discounted,
            {"mdp": endless, "discount": 0.9, "tol": 1e-10, "max_iter": 1000},
        ),
    }
    return calls


def _data(mdp, bandit):
    fit = machine_logs.fitted(60)
    small = data.MNLTransition(**fit.get_params() | {"features": ["wear"]}).fit(machine_logs.make_log(60, 0, 3))
    model = machine_logs.to_mdp(fit)
    policy = livarot.solve(model).policy
    log = machine_logs.make_log(60, 0, 3)
    path = Path("fit.livarot")
    data.save_fit(path, fit)
    numbers = {"fit": fit, "mdp": model, "policy": policy, "n_resamples": 20, "data": log, "small": small, "large": fit}
    numbers |= {"model": model, "path": path, "agent": agents.BonusLivarot(), "problem": model.problem, "radius": 0.1}
    numbers |= {"table": data.policy_table(model, policy)}
    calls = {}
    for name in data.__all__:
        function = getattr(data, name)
        if inspect.isfunction(function):
            kept = {k: v for k, v in numbers.items() if k in inspect.signature(function).parameters}
            calls[name] = (function, everything(function, **kept))
    ages = machine_logs.with_covariates(120)
    at = {"age": 1.0, "kind": "saw"}
    row = {"state": ["new"], "action": ["run"], "age": [1.0], "kind": ["saw"]}
    for name in ("marginal_effects", "elasticities"):
        calls[name] = (getattr(data, name), {"fit": ages, "variable": "age", "at": at, "level": 0.9})
    calls["probability_interval"] = (data.probability_interval, {"fit": ages, "data": row, "level": 0.9})
    drawn = {"fit": ages, "covariate": "age", "state": "new", "action": "run", "at": {"kind": "saw"}, "level": 0.9}
    calls["plot_probabilities"] = (data.plot_probabilities, drawn | {"values": [0.0, 1.0]})
    calls["wald_test"][1]["term"] = calls["lr_test"][1]["term"] = "action:wear"
    calls["MNLTransition.to_mdp at"] = (
        ages.to_mdp,
        {"reward": machine_logs.PAYS, "horizon": 3, "start": "new", "at": at, "terminal": "broken"},
    )
    calls["plan_robust"][1].update(radius=None, n_resamples=20)
    calls["write_policy"][1]["path"] = Path("policy.csv")
    episodes = offline_logs.make_log(offline_logs.truth(), offline_logs.behaviour(), 60, 0)
    own = offline_logs.fitted(episodes)
    judged = {"log": episodes, "policy": offline_logs.target(), "fit": own, "mdp": offline_logs.to_mdp(own)}
    calls["evaluate_policy"] = (data.evaluate_policy, everything(data.evaluate_policy, **judged, n_resamples=20))
    read = {"table": episodes, "model": judged["mdp"], "probability": "probability"}
    calls["read_episodes"] = (data.read_episodes, everything(data.read_episodes, **read))
    rows = {"features": [[0.0], [1.0], [0.0], [0.5]], "chosen": [1, 0, 0, 1], "choice": [0, 0, 1, 1]}
    settings = everything(data.MNLTransition, **fit.get_params())
    calls |= {
        "MNLTransition": (lambda **k: data.MNLTransition(**k).fit(log), settings),
        "MNLTransition.fit": (machine_logs.fitted(60).fit, {"X": log, "y": None}),
        "MNLTransition.predict_proba": (fit.predict_proba, {"X": log}),
        "MNLTransition.predict": (fit.predict, {"X": log}),
        "MNLTransition.score": (fit.score, {"X": log, "y": None}),
        "MNLTransition.summary": (fit.summary, {"level": 0.95}),
        "MNLTransition.confidence_set": (fit.confidence_set, everything(fit.confidence_set, problem=None)),
        "MNLTransition.to_mdp": (
            fit.to_mdp,
            everything(
                fit.to_mdp, reward=machine_logs.PAYS, horizon=4, start="new", terminal=["broken"], param_bound=50.0
            ),
        ),
        "Choices": (data.Choices.from_arrays, rows | {"offset": [0.0] * 4, "columns": ["x"]}),
        "Computed": (data.Computed, {"name": "x", "function": lambda table: table["x"]}),
        "Labels": (data.Labels, {"values": ["a", "b"], "ordered": False}),
        "Labels.decode": (data.Labels(["a", "b"]).decode, {"codes": [0, 1]}),
        "Labels.encode": (data.Labels(["a", "b"]).encode, {"values": ["a", "b"]}),
    }
    return calls


def _running(mdp, bandit):
    agent = agents.BonusLivarot()
    env = envs.MNLEnv(mdp)
    counter = itertools.count()

    def online(**k):
        found = livarot.Online(**k)
        return found.act(0, 0)

    def acted(**k):
        return livarot.Online(agent, mdp.problem, next(counter)).act(**k)

    def observed(**k):
        learner = livarot.Online(agent, mdp.problem, 0)
        learner.act(0, 0)
        return learner.observe(**k)

    calls = {
        "run": (livarot.run, {"mdp": mdp, "agent": agent, "n_episodes": 2, "seed": 0, "workers": 1, "progress": None}),
        "agent_checks": (lambda **k: dict(livarot.agent_checks(**k)), {"agent": agents.Uniform(), "env": mdp}),
        "check_agent": (livarot.check_agent, {"agent": agents.Uniform(), "env": mdp}),
        "tune": (
            livarot.tune,
            {
                "mdp": mdp,
                "agent": agent,
                "grid": {"reg": [1.0, 2.0]},
                "n_episodes": 2,
                "seeds": [1000],
                "workers": 1,
                "budget": 3,
                "metric": "regret",
                "reserved": range(5),
                "progress": None,
            },
        ),
        "learn": (
            livarot.learn,
            {
                "env": env,
                "agent": agent,
                "n_episodes": 2,
                "problem": mdp.problem,
                "seed": 0,
                "state": None,
                "progress": None,
            },
        ),
        "learn with features": (
            livarot.learn,
            {
                "env": env,
                "agent": agent,
                "n_episodes": 2,
                "features": features,
                "reward": mdp.problem.reward,
                "horizon": HORIZON,
                "param_bound": 1.0,
                "shared_parameter": False,
                "start": [0.25, 0.25, 0.5],
                "terminal_states": (),
                "end_state": None,
                "n_states": STATES,
                "encode": None,
                "normalise": False,
            },
        ),
        "Online": (online, {"agent": agent, "problem": mdp.problem, "seed": 0, "state": None}),
        "Online.act": (acted, {"state": 0, "stage": 0}),
        "Online.observe": (
            observed,
            {"state": 0, "action": 0, "reward": 0.5, "next_state": 0, "stage": 0, "terminated": False},
        ),
    }
    return calls


def _other(mdp, bandit):
    result = livarot.run(mdp, agents.Uniform(), 3)
    path = Path("result.livarot")
    result.save(path)
    return {
        "RunResult.save": (result.save, {"path": path}),
        "RunResult.load": (livarot.RunResult.load, {"path": path}),
        "RunResult.stage_covered": (livarot.run(mdp, agents.Livarot(), 3).stage_covered, {"parameter": 0}),
        "Estimate": (
            lambda **k: livarot.optimistic_plan(mdp.problem, livarot.Estimate(**k), 0.5),
            _estimate(mdp)._asdict(),
        ),
    }
