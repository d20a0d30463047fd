"""Mathematics as MathML, which browsers draw themselves: no script, no font and no request."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError, latex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)
# With an empty group, or docutils writes what stands below the symbol under it, as if it were a sum.
ACCENT = re.compile(
    r"\\(?:hat|bar|tilde)\s*(?:\{(?:[^{}]|\{[^{}]*\})*\}|\\[A-Za-z]+|[A-Za-z])(?=[\s}]*[_^])",
)


def mathml(source: str, *, block: bool) -> str:
    """LaTeX as a ``<math>`` element.

    >>> mathml("x^2", block=False)[:5]
    '<math'
    >>> "munder" in mathml(r"\\bar\\sigma_T", block=False)
    False
    """
    return str(latex2mathml.tex2mathml(ACCENT.sub(r"{\g<0>{}}", source), as_block=block))


def _written(translator: Any, node: nodes.Element, *, block: bool) -> None:
    try:
        text = mathml(node.astext(), block=block)
    except MathError as error:
        logger.warning("%s: %s", error, node.astext(), location=node)
        text = node.astext()
    translator.body.append(f'<div class="formula">{text}</div>\n' if block else text)
    raise nodes.SkipNode


def _inline(translator: Any, node: nodes.math) -> None:
    _written(translator, node, block=False)


def _block(translator: Any, node: nodes.math_block) -> None:
    _written(translator, node, block=True)


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_html_math_renderer("mathml", (_inline, None), (_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
