"""Names are data: known ones build, unknown ones are answered with the closest."""

import sys
from dataclasses import dataclass
from typing import Any

import pytest

from livarot.errors import LivarotError
from livarot.registry import Registry
from tests.support.plugins import install


@dataclass(frozen=True)
class Thing:
    size: int = 1
    colour: str = "red"


def needs(n_states: int, *, gap: float, name: str = "x") -> Thing:
    return Thing(n_states, f"{gap}{name}")


@pytest.fixture
def things() -> Registry[Thing]:
    registry: Registry[Thing] = Registry("thing")
    registry.register("riverswim", Thing, "a  thing\nin the river")
    registry.register("hard-chain", needs, "a chain")
    registry.register("anything", lambda **kwargs: Thing(len(kwargs)), "takes all")
    return registry


def test_make_builds_with_keywords(things):
    assert things.make("riverswim") == Thing()
    assert things.make("riverswim", colour="blue") == Thing(colour="blue")
    assert things.make("hard-chain", n_states=3, gap=0.5, name="y") == Thing(3, "0.5y")
    assert things.make("anything", self=1, name=2) == Thing(2)


def test_it_is_a_sorted_collection_of_names(things):
    assert things.names() == tuple(things) == ("anything", "hard-chain", "riverswim")
    assert len(things) == 3
    assert "riverswim" in things
    assert "river" not in things
    assert None not in things
    assert ["riverswim"] not in things
    assert things.summary("riverswim") == "a thing in the river"
    assert "hard-chain" in repr(things)
    assert "empty" in repr(Registry("thing"))


@pytest.mark.parametrize("call", ["make", "summary"])
def test_an_unknown_name_gets_the_closest_and_all(things, call):
    with pytest.raises(LivarotError) as caught:
        getattr(things, call)("riverswin")
    message = str(caught.value)
    assert "no 'riverswin'; did you mean 'riverswim'?" in message
    assert message.endswith("Registered: anything, hard-chain, riverswim")
    assert caught.value.argument == "thing"


@pytest.mark.parametrize("name", ["zzz", "", "os:system", "os.system", "../etc", "a" * 10**6, "a\nb", 3, None, ["x"]])
def test_no_name_is_ever_imported_and_every_answer_is_short(things, name):
    with pytest.raises(LivarotError) as caught:
        things.make(name)
    assert "did you mean" not in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 200


def test_an_unknown_keyword_gets_the_closest(things):
    with pytest.raises(
        LivarotError, match=r"'riverswim' takes no 'color'; did you mean 'colour'\? It takes: size, colour"
    ):
        things.make("riverswim", color="blue")
    with pytest.raises(LivarotError, match="'riverswim' takes no 'zzzzz'; it takes"):
        things.make("riverswim", zzzzz=1)


def test_a_missing_keyword_is_named(things):
    with pytest.raises(LivarotError, match="'hard-chain' needs n_states, gap"):
        things.make("hard-chain")


def test_errors_of_the_factory_pass_through():
    def broken() -> Thing:
        raise TypeError("mine")

    registry: Registry[Thing] = Registry("thing")
    registry.register("broken", broken, "")
    with pytest.raises(TypeError, match="mine"):
        registry.make("broken")


def test_a_factory_without_a_signature_is_called_as_it_is():
    registry: Registry[dict[str, int]] = Registry("map")
    registry.register("dict", dict, "")
    assert registry.make("dict", a=1) == {"a": 1}


@pytest.mark.parametrize("name", ["", "a b", "module:Class", "a.b", "-a", "a\n", "é", 1, None])
def test_only_plain_names_are_registered(things, name):
    with pytest.raises(LivarotError, match="is not a name"):
        things.register(name, Thing, "")


def test_a_name_is_registered_once(things):
    with pytest.raises(LivarotError, match="registered already"):
        things.register("riverswim", Thing, "")
    with pytest.raises(LivarotError, match="cannot be called"):
        things.register("new", 3, "")
    assert "new" not in things


@pytest.fixture
def plugin(tmp_path, monkeypatch):
    """An installed package that offers an agent, one whose module fails, and a name that is taken."""
    points = "[livarot.tests]\ntheirs = their_plugin:Theirs\nbroken = their_plugin:nothing\n"
    points += "number = their_plugin:number\ntaken = their_plugin:Theirs\n"
    install(tmp_path, "their_plugin", "class Theirs:\n    name = 'theirs'\n\n\nnumber = 3\n", points)
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("their_plugin", None)


def test_an_installed_package_adds_names_without_being_imported(plugin, caplog):
    registry: Registry[Any] = Registry("thing", "livarot.tests")
    registry.register("taken", dict, "ours")
    assert "taken" in registry and "their_plugin" not in sys.modules
    assert registry.names() == ("broken", "number", "taken", "theirs") and "their_plugin" not in sys.modules
    assert registry.make("taken") == {} and "'taken' of the package their-plugin is left out" in caplog.text
    assert registry.summary("theirs") == "from the package their-plugin"
    assert registry.make("theirs").name == "theirs" and len(registry) == 4


@pytest.mark.parametrize(("name", "why"), [("broken", "cannot be loaded"), ("number", "cannot be called")])
def test_an_entry_point_that_fails_is_one_line(plugin, name, why):
    with pytest.raises(LivarotError, match=f"thing: '{name}' .*{why}"):
        Registry("thing", "livarot.tests").make(name)


def test_what_cannot_be_loaded_is_left_out_and_named_once(plugin, caplog):
    registry: Registry[Any] = Registry("thing", "livarot.tests")
    registry.register("ours", dict, "ours")
    for _ in range(2):
        assert registry.loadable() == ("ours", "taken", "theirs")
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2 and all(text.endswith("it is left out") for text in said)
    assert "'broken' (their_plugin:nothing) cannot be loaded (AttributeError" in said[0]
    assert "broken" in registry.names()


def test_a_plugin_that_ends_the_process_is_refused(tmp_path, monkeypatch):
    install(tmp_path, "ending_plugin", "raise SystemExit(3)\n", "[livarot.tests]\nends = ending_plugin:X\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(LivarotError, match=r"'ends' \(ending_plugin:X\) cannot be loaded \(SystemExit: 3\)"):
        Registry("thing", "livarot.tests").make("ends")
