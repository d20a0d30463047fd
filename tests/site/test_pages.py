"""The pages that are generated, and the examples of the pages that are written."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.printed import same_binomials

ROOT = Path(__file__).parents[2]
WRITTEN = ["coming_from_rl", "optimism", "plugins", "risk", "soundness", "start_research", "tracking"]
WRITTEN.append(pytest.param("start_data", marks=same_binomials))


@pytest.mark.parametrize("name", WRITTEN)
def test_a_page_prints_what_it_says(name, capsys, tmp_path, monkeypatch):
    """Every Python block, in one namespace; a text block is what the block before it prints."""
    import livarot

    monkeypatch.chdir(ROOT)
    entries = dict(livarot.envs.registry._entries)
    text = (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8")
    pairs = re.findall(r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert len(pairs) == text.count("```python") > 0
    namespace = {"folder": tmp_path}
    try:
        for code, printed in pairs:
            exec(compile(code, f"{name}.md", "exec"), namespace)  # noqa: S102
            assert capsys.readouterr().out == printed
    finally:
        livarot.envs.registry._entries = entries


def test_every_page_is_in_a_table_of_contents():
    pages = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
    blocks = [block for text in pages.values() for block in re.findall(r"```{toctree}\n(.*?)```", text, re.DOTALL)]
    listed = {line.strip() for block in blocks for line in block.splitlines()}
    assert set(pages) - listed == {"index"}


def test_the_reference_has_a_page_for_every_public_name():
    pytest.importorskip("sphinx")
    from sitekit.api import pages
    from sitekit.names import PACKAGES, public_names

    found = pages()
    assert {f"{name.path}.rst" for name in public_names()} <= set(found)
    assert {f"{package}.index.rst" for package in PACKAGES} <= set(found)
    assert ".. autofunction:: run" in found["livarot.run.rst"]
    assert ":doc:`/gallery/research/plot_02_compare_agents`" in found["livarot.run.rst"]
    assert "The same as :py:obj:`livarot.RunResult`" in found["livarot.experiments.RunResult.rst"]


def test_formulas_are_mathml():
    pytest.importorskip("sphinx")
    from sitekit.mathml import mathml

    assert "<mfrac>" in mathml(r"\frac{1}{2}", block=True)


def test_an_environment_has_its_numbers_and_a_picture():
    pytest.importorskip("sphinx")
    import numpy as np
    from sitekit.environments import occupancy, page, picture

    import livarot

    mdp = livarot.envs.make("river-swim")
    policy = livarot.solve(mdp).policy
    chance = occupancy(mdp, policy)
    assert np.allclose(chance.sum(axis=1), 1.0)
    reward = np.take_along_axis(np.asarray(mdp.problem.reward), policy[:, :, None], axis=2)[:, :, 0]
    assert np.isclose((chance * reward).sum(), livarot.solve(mdp).value[0, 0])  # what it earns where it is
    text = page("river-swim", {"S": 6, "V*": 3.39726})
    assert "3.39726" in text and "``n_states``" in text
    assert picture(mdp)[:4] == b"\x89PNG"


def test_every_name_links_to_a_page_that_shows_it():
    from sitekit.names import public_names
    from sitekit.uses import uses, words

    names = public_names()
    found = uses(names)
    assert all(any(":doc:`/" in link for link in found[name.path]) for name in names)
    pages = {link for links in found.values() for page in links for link in re.findall(r":doc:`/(\w+)`", page)}
    assert [page for page in pages if not (ROOT / "docs" / f"{page}.md").is_file()] == []
    assert found["livarot.Solution"][0] == "returned by :py:obj:`livarot.solve <livarot.solve>`"
    assert not any("livarot.experiments" in link for link in found["livarot.data.Interval"])  # another Interval
    assert words("from livarot import (\n    envs,  # here\n    data as d,\n)\nd.read(envs.six_arms())") == {
        "livarot.envs",
        "livarot.data",
        "livarot.data.read",
        "livarot.envs.six_arms",
    }


def test_a_page_of_an_environment_stands_alone():
    import livarot
    from livarot.cli.listing import described

    for name in livarot.envs.registry:
        assert "same" not in described("envs", name)["summary"].split()


def test_the_pictures_say_what_the_best_policy_never_reaches():
    pytest.importorskip("sphinx")
    from io import BytesIO

    import numpy as np
    from matplotlib.image import imread
    from sitekit.environments import NEVER, occupancy, page, picture

    import livarot

    def painted(mdp):
        colour = [int(NEVER[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        return bool(np.isclose(imread(BytesIO(picture(mdp)))[..., :3], colour, atol=1e-3).all(axis=2).sum() > 50)

    for mdp, missed in ((livarot.envs.six_arms(8), True), (livarot.envs.hard_chain(5), False)):
        there = mdp.problem.reachable[: mdp.problem.horizon]
        chance = occupancy(mdp, livarot.solve(mdp).policy)
        assert bool((there & (chance == 0)).any()) == missed == painted(mdp)
    assert "Light blue" in page("six-arms", {"S": 7})


def test_thumbnails_are_described():
    pytest.importorskip("sphinx")
    from sitekit.gallery import described

    text = ".. image:: /gallery/images/thumb/a.png\n    :alt:\n\n  :doc:`/a`\n\n"
    text += ' thumbnail-title">The paper&#x27;s\n one</div>\n'
    assert ":alt: First figure of: The paper's one\n" in described(text * 2)
    assert described(text * 2).count("First figure") == 2


def test_types_of_arrays_have_short_names():
    pytest.importorskip("sphinx")
    import inspect

    from conf import autodoc_type_aliases
    from sphinx.util.inspect import signature, stringify_signature

    import livarot

    shown = stringify_signature(signature(livarot.inner_max, type_aliases=autodoc_type_aliases))
    assert "features: ArrayLike" in shown and "_Buffer" not in shown
    assert "_Buffer" in stringify_signature(inspect.signature(livarot.inner_max, eval_str=True))


def test_names_of_types_stand_alone_in_signatures():
    pytest.importorskip("sphinx")
    from sitekit.api import plain

    assert plain("(radius: TypeAliasForwardRef('ArrayLike') | None = None, rule: Rule = <factory>)") == (
        "(radius: ArrayLike | None = None, rule: Rule = ...)"
    )
    assert plain(None) is None
