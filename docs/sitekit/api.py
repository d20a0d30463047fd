"""The reference: a page for every public name, an overview for every package, and links from code to them.

Pages are written into ``docs/api`` before Sphinx reads its sources, each only if its text has changed, so that what has
not changed is not read again.  In every page of the site a literal that is a public name, such as ``livarot.run``,
becomes a link to its page.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform

from sitekit.docstrings import escaped, to_rst
from sitekit.names import PACKAGES, Name, fields_of, kind, mathematics, public_names, summary
from sitekit.uses import uses

ROOT = Path(__file__).parents[2]
CALL = re.compile(r"(livarot(?:\.\w+)+)(?:\(.*\))?")


def page(name: Name, used: list[str]) -> str:
    """The page of one public name."""
    title = name.path
    lines = [f".. py:currentmodule:: {name.package}", "", title, "=" * len(title), ""]
    if name.home != name.path:
        sort = {"autoclass": "class", "autoexception": "exception", "autofunction": "function", "autodata": "data"}
        lines += [f".. py:{sort[kind(name.thing)]}:: {name.name}", "", f"   The same as :py:obj:`{name.home}`.", ""]
        return "\n".join([*lines, *_used(used)])
    directive = kind(name.thing)
    lines += [f".. {directive}:: {name.name}"]
    if directive in ("autoclass", "autoexception"):
        skipped = [field.name for field in fields_of(name.thing)]
        lines += [
            "   :members:",
            "   :undoc-members:",
            *([f"   :exclude-members: {', '.join(skipped)}"] if skipped else []),
        ]
    if directive == "autodata":
        lines += ["   :no-value:"]
    lines += [""]
    return "\n".join([*lines, *_used(used)])


def _used(links: list[str]) -> list[str]:
    return [".. rubric:: Where it is used", "", *(f"- {link[0].upper()}{link[1:]}" for link in links), ""]


def overview(package: str, names: list[Name]) -> str:
    """The page of a package: its names with a sentence each."""
    title = f"{PACKAGES[package]}: {package}"
    lines = [title, "=" * len(title), "", f".. py:module:: {package}", "", ".. list-table::", "   :widths: 30 70", ""]
    for name in names:
        lines += [f"   * - :doc:`{name.name} <{name.path}>`", f"     - {escaped(summary(name.thing))}"]
    lines += ["", ".. toctree::", "   :hidden:", "   :maxdepth: 1", ""]
    lines += [f"   {name.name} <{name.path}>" for name in names]
    return "\n".join([*lines, ""])


def pages() -> dict[str, str]:
    """Every page of the reference by the name of its file."""
    names = public_names()
    used = uses(names)
    out = {f"{name.path}.rst": page(name, used[name.path]) for name in names}
    for package in PACKAGES:
        out[f"{package}.index.rst"] = overview(package, [name for name in names if name.package == package])
    title = "Reference"
    lines = [title, "=" * len(title), "", "Every public name, by package; anything else may change.", ""]
    lines += [".. toctree::", "   :maxdepth: 1", "", *(f"   {package}.index" for package in PACKAGES), ""]
    return out | {"index.rst": "\n".join(lines)}


def write_pages(folder: Path, texts: dict[str, str]) -> None:
    """Write the pages that have changed and remove those that are no longer there."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*.rst"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


class Linker:
    """From a name as a docstring writes it to the public path, if there is exactly one."""

    def __init__(self) -> None:
        self.paths = {name.path for name in public_names()} | set(PACKAGES)
        self.homes: dict[str, set[str]] = {}
        for name in public_names():
            self.homes.setdefault(name.name, set()).add(name.home)

    def __call__(self, text: str) -> str | None:
        if text in self.paths:
            return text
        if (page := re.fullmatch(r"docs/(\w+)\.md", text)) and (ROOT / text).is_file():
            return f"/{page.group(1)}"
        if not text.startswith("livarot."):
            return None
        last = text.rpartition(".")[2]
        homes = self.homes.get(last, set())
        return next(iter(homes)) if len(homes) == 1 and last != "livarot" else None

    def role(self, text: str) -> str | None:
        """The target of a role, which may be a bare name."""
        return self(text) or next(iter(self.homes[text]), None) if len(self.homes.get(text, ())) == 1 else self(text)


class LinkLiterals(SphinxPostTransform):
    """A literal that is a public name links to its page."""

    default_priority = 5  # before references are resolved

    def run(self, **_: Any) -> None:
        linker: Linker = self.app.livarot_linker  # type: ignore[attr-defined]
        for literal in list(self.document.findall(nodes.literal)):
            if isinstance(literal.parent, (nodes.reference, pending_xref, nodes.title)):
                continue
            found = CALL.fullmatch(literal.astext())
            if found is None or found.group(1) not in linker.paths:
                continue
            path = found.group(1)
            cross = pending_xref(
                "", refdomain="py", reftype="mod" if path in PACKAGES else "obj", reftarget=path, refexplicit=True
            )
            cross["refdoc"] = self.env.docname
            literal.replace_self(cross)
            cross += literal


def on_docstring(app: Sphinx, what: str, name: str, thing: object, options: object, lines: list[str]) -> None:
    """Make a docstring valid, and add the fields of a class."""
    linker: Linker = app.livarot_linker  # type: ignore[attr-defined]
    text = to_rst(lines, linker.role)
    if what in ("class", "exception") and (fields := fields_of(thing)):
        text += [".. rubric:: Fields", ""]
        for field in fields:
            text += [f"- ``{field.declared}``" + (f" — {escaped(field.meaning, linker)}" if field.meaning else "")]
        text += [""]
    public = what in ("class", "exception", "function") and name.startswith("livarot.")
    if public and name in linker.paths and (more := mathematics(thing)):
        text += [".. rubric:: In detail", "", *to_rst(more.splitlines(), linker.role)]
    lines[:] = text


def on_signature(app: Sphinx, what: str, name: str, thing: object, options: object, given: str, back: str) -> object:
    return plain(given), plain(back)


def plain(signature: str | None) -> str | None:
    """A default that is made anew is written as ``...``, which can be parsed; an alias of a type by its name."""
    if signature is None:
        return None
    return re.sub(r"TypeAliasForwardRef\('(\w+)'\)", r"\1", signature.replace("<factory>", "..."))


def on_source(app: Sphinx, docname: str, content: list[str]) -> None:
    """Pages link to files outside of the site as GitHub needs it; two of them have pages here."""
    for name in ("CONTRIBUTING", "CHANGELOG"):
        content[0] = content[0].replace(f"](../{name}.md", f"]({name.lower()}.md")


def on_start(app: Sphinx) -> None:
    app.livarot_linker = Linker()  # type: ignore[attr-defined]
    write_pages(Path(app.srcdir) / "api", pages())


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", on_start, priority=100)  # before the gallery
    app.connect("autodoc-process-docstring", on_docstring)
    app.connect("autodoc-process-signature", on_signature)
    app.connect("source-read", on_source)
    app.add_post_transform(LinkLiterals)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
