"""Files that are well-formed but wrong: each has one alteration and a digest that fits it.

Run as a script, the module loads and uses each altered file in a process of its own and writes a line of JSON for it:
``refused`` (a LivarotError while loading), ``used`` (loaded, and using it raised at most a LivarotError), or what must
not happen: ``foreign`` exceptions, ``nan``, ``slow`` (more than a second until loaded or refused), ``crash``, ``hang``.
"""

import itertools
import json
import os
import signal
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

import livarot
from livarot import LivarotError, agents, envs
from livarot.data import bootstrap, load_fit, marginal_effects, save_fit
from livarot.storage import load_tensors, save_tensors
from tests.support.episodes import play_agent
from tests.support.machine_logs import ONLY_NEW, fitted, with_covariates

GOOD = ("refused", "used")
HANG = 10  # seconds
DTYPES = ("float64", "int32", "int64", "bool")
DEEP = json.loads("[" * 300 + "]" * 300)
VALUES = ("x", "", None, [], {}, [1, "a"], True, -1, 0, 1, 7, 10**30, 0.5, -1.0, 1e300, DEEP)


def alterations(tensors, header):
    """(name, tensors, header) of every alteration."""
    for name, array in tensors.items():
        for how, other in of_array(array):
            yield f"{name}: {how}", tensors | {name: other}, header
        rest = {key: tensors[key] for key in tensors if key != name}
        yield f"{name}: dropped", rest, header
        yield f"{name}: renamed", rest | {f"{name}x": array}, header
    yield "one more tensor", tensors | {"more": np.zeros(3)}, header
    yield "no tensors", {}, header
    yield "empty header", tensors, {}
    yield "one more entry", tensors, header | {"more": 1}
    for path in paths(header):
        yield f"header {path}: dropped", tensors, changed(header, path, None, drop=True)
        for value in VALUES:
            yield f"header {path}: {str(value)[:20]!r}", tensors, changed(header, path, value)


def of_array(array):
    for dtype in DTYPES:
        if array.dtype != dtype:
            with np.errstate(invalid="ignore"):
                yield dtype, array.astype(dtype)
    if array.ndim:
        for axis in np.flatnonzero(array.shape):
            yield f"shorter along {axis}", np.delete(array, -1, axis)
            yield f"longer along {axis}", np.append(array, np.take(array, [-1], axis), axis)
        yield "empty", array[:0]
        yield "reversed", array[::-1].copy()
        yield "one more axis", array[None].copy()
        yield "flat with one more", np.append(array.reshape(-1), array.reshape(-1)[-1:])
    yield "zeros", np.zeros_like(array)
    if array.size == 0:
        return
    if array.dtype == np.bool_:
        values = [True, False]
    elif array.dtype == np.float64:
        values = [np.nan, np.inf, -np.inf, 1e300, -1e300, -1.0, 0.5, 2.0, 1e-320]
    else:
        values = [-1, -2, 0, 1, 2, 127, 10**6, np.iinfo(array.dtype).max, np.iinfo(array.dtype).min]
    for value, place in itertools.product(values, (0, -1, array.size // 2)):
        other = array.copy()
        other.reshape(-1)[place] = value
        if other.tobytes() != array.tobytes():
            yield f"{value} at {place}", other
    if array.dtype != np.bool_:
        yield "all larger", np.asarray(array + array.dtype.type(1))
        yield "all smaller", np.asarray(array - array.dtype.type(1))


def paths(header, prefix=()):
    for key, value in header.items():
        yield (*prefix, key)
        if isinstance(value, dict):
            yield from paths(value, (*prefix, key))


def changed(header, path, value, drop=False):
    if len(path) > 1:
        return header | {path[0]: changed(header[path[0]], path[1:], value, drop)}
    rest = {key: header[key] for key in header if key != path[0]}
    return rest if drop else rest | {path[0]: value}


# What is saved, how it is loaded, and what is done with it.  Sparse and dense models, labels, several tables.
def ragged():
    from tests.support.models import random_model, to_mdp

    return to_mdp(random_model(np.random.default_rng(5), H=3, S=4, A=2, d=4, U=3, kind="block", offsets=True))


def machine():
    return fitted(200).to_mdp(ONLY_NEW, 4, "new", terminal="broken")


MDP = envs.river_swim(4, 5)
AGENTS = {
    "livarot": agents.Livarot(n_explore=3),
    "ucrl-mnl": agents.UCRLMNL(),
    "ucbvi": agents.UCBVI(agents.tabular.ucbvi.Bernstein(), monotone=True),
    "ucrl2": agents.UCRL2(),
    "psrl": agents.PSRL(),
    "rare-switching": agents.RareSwitching(agents.UCRLMNL()),
    "uniform": agents.Uniform(),
}


def state_of(agent):
    return play_agent(MDP, agent, 5, seed=1)[1]


def use_model(mdp):
    problem = mdp.problem
    found = [livarot.solve(mdp).value, problem.features(0, 0, 0), mdp.probabilities(problem.horizon - 1, 0, 0)]
    for agent in (agents.Livarot(), agents.UCRLMNL(), agents.UCBVI()):
        found.append(livarot.run(mdp, agent, 3).regret)
    return found


def use_result(result):
    from livarot.theory import audit

    found = [result.cumulative_regret, result.cumulative_realised_regret, result.sigma_bar]
    found += [np.ma.filled(result.columns[name], 0.0) for name in result.columns]
    found += [result.stage_covered(k).filled(False) for k in (0, result.n_parameters - 1)]
    result.to_pandas()
    audit(result).to_dict()
    return found


def use_state(agent):
    def use(state):
        log, _ = play_agent(MDP, agent, 3, seed=1, state=state)
        return [plan.start_value for plan in log["plans"] if plan.start_value is not None]

    return use


def use_fit(fit):
    str(fit.summary())
    found = [fit.predict_proba({"state": ["new"], "action": list(fit.actions_)[:1]}), fit.theta_]
    mdp = fit.to_mdp(ONLY_NEW, 4, "new", terminal="broken")
    found += [livarot.solve(mdp).value, fit.support()["count"].to_numpy()]
    fit.confidence_set(0.9)
    fit.confidence_set(0.9, "finite-sample")
    return found


def use_covariates(fit):
    str(fit.summary())
    row = {"state": ["new"], "action": list(fit.actions_)[:1], "age": [1.0], "kind": ["saw"]}
    mdp = fit.to_mdp(ONLY_NEW, 4, "new", terminal="broken", at={"age": 1.0, "kind": "saw"})
    found = [fit.predict_proba(row), fit.theta_, livarot.solve(mdp).value, bootstrap(fit, 3, cluster="owner").theta]
    return [*found, marginal_effects(fit, "age")["effect"].to_numpy()]


def files():
    """name -> (save, load, use)."""
    found = {
        "model": (MDP.save, livarot.MNLMDP.load, use_model),
        "model ragged": (lambda path: ragged().save(path), livarot.MNLMDP.load, use_model),
        "model labels": (lambda path: machine().save(path), livarot.MNLMDP.load, use_model),
        "result": (
            lambda path: livarot.run(MDP, agents.Livarot(n_explore=2), 4, seed=[3, 4]).save(path),
            livarot.RunResult.load,
            use_result,
        ),
        "fit": (lambda path: save_fit(path, fitted(200)), load_fit, use_fit),
        "fit covariates": (lambda path: save_fit(path, with_covariates()), load_fit, use_covariates),
    }
    for name, agent in AGENTS.items():
        found[f"state {name}"] = (
            lambda path, agent=agent: livarot.save_state(path, agent, state_of(agent), MDP.problem),
            lambda path, agent=agent: livarot.load_state(path, agent, MDP.problem),
            use_state(agent),
        )
    return found


KINDS = {"model": "mnlmdp", "result": "run-result", "fit": "mnl-transition", "state": "agent-state"}


def became(path, load, use):
    """What becomes of one file, in this process."""
    begin = time.process_time()
    try:
        loaded = load(path)
    except livarot.LivarotError:
        return "refused" if time.process_time() - begin < 1.0 else "slow"
    except BaseException as error:
        return f"foreign {type(error).__name__} while loading"
    if time.process_time() - begin >= 1.0:
        return "slow"
    try:
        arrays = use(loaded)
    except livarot.LivarotError:
        return "used"
    except BaseException as error:
        return f"foreign {type(error).__name__}: {str(error)[:80]}"
    return "used" if all(np.isfinite(np.asarray(x, dtype=float)).all() for x in arrays) else "nan"


def in_a_process(path, load, use):
    """The same in a child process, so that a crash or a hang can be told from an answer."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        signal.alarm(HANG)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.write(writing, became(path, load, use).encode()[:500])
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return answer if code == 0 else "hang" if code == -signal.SIGALRM else f"crash {code}"


def main(folder, every, wanted):
    """Try one in ``every`` alterations of the files whose names begin with ``wanted``."""
    warnings.simplefilter("ignore")
    for name, (save, load, use) in files().items():
        if not name.startswith(wanted):
            continue
        path = folder / name.replace(" ", "-")
        save(path)
        use(load(path))  # compiles, so that the children do not
        kind = KINDS[name.split()[0]]
        cases = list(alterations(*load_tensors(path, kind=kind)))
        for number in range(len(name) % every, len(cases), every):
            what, tensors, header = cases[number]
            try:
                save_tensors(path, tensors, kind=kind, header=header)
            except LivarotError:  # too deep or too long: livarot cannot write such a file
                continue
            print(json.dumps([f"{name} | {what}", in_a_process(path, load, use)]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else "")


def refused(load, path):
    """The refusal, in one line that names the file, within a second."""
    begin = time.process_time()
    with pytest.raises(LivarotError) as caught:
        load(path)
    assert time.process_time() - begin < 1.0
    assert str(path) in str(caught.value) and caught.value.argument == "path"
    return str(caught.value)


def change(path, kind, tensors=None, header=None, drop=()):
    old, head = load_tensors(path, kind=kind)
    kept = {name: array for name, array in (old | (tensors or {})).items() if name not in drop}
    rest = {name: value for name, value in (head | (header or {})).items() if name not in drop}
    save_tensors(path, kept, kind=kind, header=rest)
