"""Equations as MathML, made while the site is built: browsers draw it themselves, without a script or network.

The converter is the one of docutils. It knows less of LaTeX than MathJax, and says so: what it does not know becomes a
warning, and warnings fail the build.
"""

from __future__ import annotations

import html
from typing import Any

from docutils import nodes
from docutils.utils.math import MathError
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.application import Sphinx
from sphinx.util import logging

logger = logging.getLogger(__name__)


def _convert(node: nodes.math | nodes.math_block, *, as_block: bool) -> str:
    try:
        return str(tex2mathml(node.astext(), as_block=as_block))
    except MathError as reason:
        logger.warning("equation %r: %s", node.astext(), reason, location=node)
        return f"<code>{html.escape(node.astext())}</code>"


def inline(self: Any, node: nodes.math) -> None:
    """``$...$``."""
    self.body.append(_convert(node, as_block=False))
    raise nodes.SkipNode


def block(self: Any, node: nodes.math_block) -> None:
    """``$$...$$``."""
    self.body.append(f'<div class="math">{_convert(node, as_block=True)}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer ``html_math_renderer = "mathml"``."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
