"""Formulas as MathML, which browsers draw by themselves: no script, nothing asked of another machine.

A formula that cannot be translated is a warning, and so stops a build that takes warnings for errors.
"""

from __future__ import annotations

from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator


def _draw(translator: HTML5Translator, node: nodes.math | nodes.math_block) -> None:
    block = isinstance(node, nodes.math_block)
    try:
        drawn = convert(node.astext(), display="block" if block else "inline")
        drawn = drawn.replace("<mo>&#x02016;", '<mo stretchy="false">&#x02016;')  # norms' bars stay on the line
    except Exception as error:
        logging.getLogger(__name__).warning("%s is no formula: %r", node.astext(), error, location=node)
        drawn = f"<code>{translator.encode(node.astext())}</code>"
    translator.body.append(f'<div class="math" id="{" ".join(node["ids"])}">{drawn}</div>' if block else drawn)
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register what draws formulas."""
    app.add_html_math_renderer("mathml", inline_renderers=(_draw, None), block_renderers=(_draw, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
