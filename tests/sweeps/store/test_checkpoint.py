"""A run that was stopped in the middle goes on from its checkpoint as if nothing had happened."""

import random

import pytest

from livarot import LivarotError, agents
from livarot.running.loop import STAGES, Replicas
from livarot.running.result import COLUMNS
from livarot.sweeps.experiment.keys import Cell
from livarot.sweeps.store import checkpoint

SEEDS = [3, 5, 8]


def cell_of(name, episodes=16):
    if agents.registry.summary(name).startswith("bandits only"):
        return Cell.of("mnl-bandit", {}, name, {}, episodes)
    return Cell.of("hard-chain", {"horizon": 3, "gap": 0.1}, name, {}, episodes)


def replicas_of(cell, seeds):
    mdp = cell.model()
    return Replicas([mdp], cell.learner(mdp), cell.episodes, seeds)


def same(found, wanted, rows=slice(None)):
    return all(found[name].tobytes() == wanted[name][rows].tobytes() for name in (*COLUMNS, STAGES))


@pytest.mark.parametrize("name", list(agents.registry))
def test_every_agent_resumes_bit_for_bit(name, tmp_path):
    cell = cell_of(name)
    whole = replicas_of(cell, SEEDS)
    whole.advance(16)
    draw = random.Random(name)
    for k in sorted(draw.sample(range(1, 16), 3)):
        first = replicas_of(cell, SEEDS)
        first.advance(k)
        assert checkpoint.save(tmp_path, cell, first)
        second = replicas_of(cell, SEEDS)
        assert checkpoint.restore(tmp_path, cell, second) == k
        second.advance(16)
        assert same(second.found(), whole.found())


# agents whose states change their form on the way, and settings with which burn-in sets bind
BINDING = {
    "n_explore": 6,
    "kappa": 10.0,
    "step_size": 300.0,
    "reg": 0.01,
    "failure_level": 0.9,
    "intersect_ball": False,
}
HARDER = [
    ("hard-chain", {"horizon": 3, "gap": 0.1}, "livarot", BINDING),
    ("hard-chain", {"horizon": 3, "gap": 0.1}, "livarot", {"n_explore": 4, "start_at_mle": True}),
    ("hard-chain", {"horizon": 3, "gap": 0.1}, "rare-switching", {"agent": {"name": "livarot", "n_explore": 4}}),
    ("hard-chain", {"horizon": 3, "gap": 0.1}, "rare-switching", {"agent": {"name": "uniform"}}),
    ("park-two-state", {"horizon": 5}, "rare-switching", {"agent": {"name": "ucrl-mnl-ll"}, "factor": 1.2}),
    ("park-two-state", {"horizon": 5}, "rare-switching", {"agent": {"name": "ucrl-mnl"}, "factor": 1.2}),
]
CELLS = [cell_of(name) for name in agents.registry] + [Cell.of(*parts, 40) for parts in HARDER]


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.agent)
def test_a_checkpoint_serves_some_of_its_seeds(cell, tmp_path):
    whole, first = replicas_of(cell, SEEDS), replicas_of(cell, SEEDS)
    whole.advance(cell.episodes)
    for done in (3, 9, cell.episodes - 5):
        first.advance(done)
        checkpoint.save(tmp_path, cell, first)
        for seeds, rows in (([8], [2]), ([8, 3], [2, 0]), ([5], [1])):
            part = replicas_of(cell, seeds)
            assert checkpoint.restore(tmp_path, cell, part) == done
            part.advance(cell.episodes)
            assert same(part.found(), whole.found(), rows)
    assert checkpoint.restore(tmp_path, cell, replicas_of(cell, [3, 4])) == 0


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.agent)
def test_seeds_do_not_see_their_neighbours(cell):
    many = list(range(12))
    whole = replicas_of(cell, many)
    whole.advance(cell.episodes)
    for part in ([0], [1, 7, 11], many[5:]):
        alone = replicas_of(cell, part)
        alone.advance(cell.episodes)
        assert same(alone.found(), whole.found(), part)


def test_another_cell_or_other_sources_do_not_count(tmp_path, monkeypatch):
    cell = cell_of("uniform")
    first = replicas_of(cell, SEEDS)
    first.advance(4)
    checkpoint.save(tmp_path, cell, first)
    assert checkpoint.restore(tmp_path, cell_of("uniform", 17), replicas_of(cell_of("uniform", 17), SEEDS)) == 0
    assert checkpoint.restore(tmp_path, cell, replicas_of(cell, SEEDS), "a module of the user's") == 0
    assert checkpoint.restore(tmp_path, cell, replicas_of(cell, SEEDS)) == 4
    monkeypatch.setattr(checkpoint, "provenance", lambda: {"source": "another"})
    assert checkpoint.restore(tmp_path, cell, replicas_of(cell, SEEDS)) == 0


def test_a_folder_removed_while_a_checkpoint_is_written_is_made_again(tmp_path, monkeypatch):
    cell, folder, save = cell_of("uniform"), tmp_path / "checkpoints", checkpoint.save_tensors
    first = replicas_of(cell, SEEDS)
    first.advance(4)
    removed = []

    def removing(path, *args, **options):
        if not removed:
            removed.append(path.parent.rmdir())
        save(path, *args, **options)

    monkeypatch.setattr(checkpoint, "save_tensors", removing)
    assert checkpoint.save(folder, cell, first)
    assert checkpoint.restore(folder, cell, replicas_of(cell, SEEDS)) == 4


def test_a_damaged_checkpoint_is_dropped(tmp_path):
    cell = cell_of("livarot")
    first = replicas_of(cell, SEEDS)
    first.advance(4)
    checkpoint.save(tmp_path, cell, first)
    path = checkpoint.path_of(tmp_path, cell, SEEDS)
    whole = path.read_bytes()
    draw = random.Random(0)
    for trial in range(40):
        data = bytearray(whole)
        if trial % 4:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
        else:
            del data[draw.randrange(len(data)) :]
        path.write_bytes(data)
        fresh = replicas_of(cell, SEEDS)
        assert checkpoint.restore(tmp_path, cell, fresh) == 0
        assert not path.exists()
        assert fresh.episode == 0


def test_a_full_disk_is_our_error(tmp_path, monkeypatch):
    import errno
    import os

    cell = cell_of("uniform")
    first = replicas_of(cell, SEEDS)
    first.advance(4)

    def full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(LivarotError, match="No space left"):
        checkpoint.save(tmp_path, cell, first)
    assert list(tmp_path.iterdir()) == []
