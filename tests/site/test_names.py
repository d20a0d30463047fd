"""Every public name has a page in the reference, and its docstring is rendered whatever it holds."""

from __future__ import annotations

import importlib

import pytest
from sitekit.names import PACKAGES, fields_of, kind, mathematics, public_names, summary

import livarot
from tests.test_public_names import PACKAGES as LISTED
from tests.test_public_names import PUBLIC, listed

NAMES = public_names()


def test_every_public_name_is_there():
    assert {*LISTED, *PUBLIC} == set(PACKAGES)
    found = {(name.package, name.name) for name in NAMES}
    for package in LISTED:
        modules = {name for name in listed(package) if f"{package}.{name}" in PACKAGES}
        assert {name for _, name in {pair for pair in found if pair[0] == package}} == {*listed(package)} - modules
    assert {name for package, name in found if package == "livarot.lanes"} == set(livarot.lanes.__all__)


def test_a_name_that_two_packages_list_is_at_home_in_one():
    homes = {name.path: name.home for name in NAMES}
    assert homes["livarot.experiments.RunResult"] == "livarot.RunResult" == homes["livarot.RunResult"]
    assert all(homes[home] == home for home in homes.values())


@pytest.mark.parametrize("name", NAMES, ids=lambda name: name.path)
def test_it_can_be_described(name):
    assert summary(name.thing), "no first sentence"
    assert kind(name.thing) in ("autoclass", "autoexception", "autofunction", "autodata")
    assert getattr(importlib.import_module(name.package), name.name) is name.thing


def test_fields_have_their_types_defaults_and_comments():
    fields = {field.name: field for field in fields_of(livarot.agents.Livarot)}
    assert fields["step_size"].declared == "step_size: float = 3.0"
    assert fields["step_size"].meaning.startswith("eta of the OMD step")
    assert {field.name for field in fields_of(livarot.Episodes)} == {"states", "actions", "choices"}
    assert fields_of(livarot.solve) == []


def test_the_mathematics_of_a_module_comes_along():
    assert "alpha = sqrt(bD" in mathematics(livarot.envs.hard_chain)
