"""Formulas as MathML, which browsers draw by themselves: pages need no script and no font from elsewhere."""

import re

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.util.math import get_node_equation_number
from sphinx.writers.html5 import HTML5Translator

LONG = 24  # characters that fit beside the indents of a phone


def inline(self: HTML5Translator, node: nodes.math) -> None:
    """Write a formula within a line. Browsers do not break it, so a long one may scroll."""
    formula = convert(node.astext(), display="inline")
    is_long = len(re.sub(r"\\mathrm|[\\{} ]", "", node.astext())) > LONG
    self.body.append(f'<span class="math-long">{formula}</span>' if is_long else formula)
    raise nodes.SkipNode


def block(self: HTML5Translator, node: nodes.math_block) -> None:
    """Write a formula on a line of its own, with its number if it has a label."""
    self.body.append(self.starttag(node, "div", CLASS="math-block"))
    self.body.append(convert(node.astext(), display="block"))
    if node["number"]:
        self.body.append(f'<span class="equation-number">({get_node_equation_number(self, node)})</span>')
        self.add_permalink_ref(node, "Link to this equation")
    self.body.append("</div>")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the renderer."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    app.config.html_math_renderer = "mathml"
    return {"parallel_read_safe": True, "parallel_write_safe": True}
