"""Notebooks as pages: `{code-cell}` blocks of MyST Markdown, run one after the other, shown with what they give.

Jupyter opens the same files with jupytext. A cell shows what it prints and then its last line, as a notebook does: by
`_repr_html_`, `_repr_png_` or `repr`. A cell that fails stops the build.
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import re
import tempfile
from html import escape
from pathlib import Path
from typing import Any

CELL = re.compile(r"^```\{code-cell\}[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Notebook:
    """What the cells of one page share: names, and a folder of their own."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {"__name__": "__main__"}
        self.folder = tempfile.TemporaryDirectory(prefix="pamo-notebook-")

    def run(self, source: str) -> tuple[str, Any]:
        """Run a cell; return what it printed, and its last line's value."""
        tree, value, printed = ast.parse(source), None, io.StringIO()
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        with contextlib.chdir(self.folder.name), contextlib.redirect_stdout(printed):
            exec(compile(tree, "<cell>", "exec"), self.names)
            if last is not None:
                value = eval(compile(ast.Expression(last.value), "<cell>", "eval"), self.names)
        return printed.getvalue(), value

    def close(self) -> None:
        """Remove the folder."""
        self.folder.cleanup()


def run_page(page: Path) -> list[tuple[str, Any]]:
    """Run all cells of a page, and return what each printed and gave."""
    notebook = Notebook()
    try:
        return [notebook.run(cell) for cell in CELL.findall(page.read_text(encoding="utf-8"))]
    finally:
        notebook.close()


def shown(value: Any) -> str:
    """Return a value as HTML, as a notebook would show it."""
    if hasattr(value, "_repr_html_"):
        return str(value._repr_html_())
    if hasattr(value, "_repr_png_"):
        return f'<img alt="" src="data:image/png;base64,{base64.b64encode(value._repr_png_()).decode()}">'
    return f"<pre>{escape(repr(value))}</pre>"


def setup(app: Any) -> dict[str, Any]:
    """Have Sphinx know code cells."""
    from docutils import nodes
    from docutils.parsers.rst import Directive

    notebooks: dict[str, Notebook] = {}

    class CodeCell(Directive):
        """A cell: its source, and below it what it gave."""

        has_content, optional_arguments = True, 1

        def run(self) -> list[Any]:
            page = self.state.document.settings.env.docname
            if page not in notebooks:
                notebooks[page] = Notebook()
            source = "\n".join(self.content)
            printed, value = notebooks[page].run(source)
            result: list[Any] = [nodes.literal_block(source, source, language="python")]
            if printed:
                result.append(nodes.literal_block(printed, printed, language="text"))
            if value is not None:
                result.append(nodes.raw("", shown(value), format="html"))
            return result

    def close(app: Any, error: Exception | None) -> None:
        for notebook in notebooks.values():
            notebook.close()

    app.connect("build-finished", close)
    app.add_directive("code-cell", CodeCell)
    return {"parallel_read_safe": False}
