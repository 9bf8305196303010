"""Pages with code as Jupyter notebooks: written without output when the site is built, and linked from the page.

`python docs/site/_ext/notebooks.py PAGE` writes the notebook beside the page; the build fails if the two disagree.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

BLOCK = re.compile(r"^```\{run\}\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
KEPT = ("two_tanks",)
"""Pages whose notebook is kept in the repository, for readers who have no built site."""


def cell(kind: str, number: int, text: str) -> dict[str, object]:
    """A cell of a notebook."""
    own: dict[str, object] = {"cell_type": kind, "id": f"cell-{number}", "metadata": {}}
    lines = text.strip("\n").splitlines(keepends=True)
    if kind == "code":
        own |= {"execution_count": None, "outputs": []}
    return own | {"source": lines}


def notebook(page: str) -> str:
    """The notebook of a page in Markdown."""
    cells = []
    for i, part in enumerate(BLOCK.split(page)):
        if part.strip():
            # Code stands between texts.
            kind = "code" if i % 2 else "markdown"
            text = part if i % 2 else re.sub(r"\[\]\((.*?)\)", r"`\1`", part)
            cells.append(cell(kind, len(cells) + 1, text))
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    content = {"cells": cells, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(content, indent=1, ensure_ascii=False) + "\n"


def write(app: object, error: Exception | None) -> None:
    """Write the notebooks of all pages with code into the site."""
    if error is not None:
        return
    source, out = Path(app.srcdir), Path(app.outdir)  # type: ignore[attr-defined]
    for page in sorted(source.glob("**/*.md")):
        text = page.read_text(encoding="utf-8")
        if BLOCK.search(text):
            place = (out / page.relative_to(source)).with_suffix(".ipynb")
            place.write_text(notebook(text), encoding="utf-8")


def check(app: object) -> None:
    """Refuse to build a site whose kept notebooks are not those of their pages."""
    source = Path(app.srcdir)  # type: ignore[attr-defined]
    for name in KEPT:
        page, kept = source / f"{name}.md", source / f"{name}.ipynb"
        if not kept.is_file() or kept.read_text(encoding="utf-8") != notebook(page.read_text(encoding="utf-8")):
            raise RuntimeError(f"{kept}: not the notebook of its page; run: python {Path(__file__)} {page}")


def link(app: object, name: str, source: list[str]) -> None:
    """Say where the notebook of a page is."""
    if BLOCK.search(source[0]):
        title, _, rest = source[0].partition("\n")
        notebook_name = name.rsplit("/", 1)[-1] + ".ipynb"
        html = f'<p class="notebook"><a href="{notebook_name}" download>This page as a notebook</a></p>'
        source[0] = f"{title}\n\n```{{raw}} html\n{html}\n```\n{rest}"


def setup(app: object) -> dict[str, object]:
    """Register the steps."""
    app.connect("builder-inited", check)  # type: ignore[attr-defined]
    app.connect("source-read", link)  # type: ignore[attr-defined]
    app.connect("build-finished", write)  # type: ignore[attr-defined]
    return {"version": "1", "parallel_read_safe": True}


if __name__ == "__main__":
    for argument in sys.argv[1:]:
        path = Path(argument)
        path.with_suffix(".ipynb").write_text(notebook(path.read_text(encoding="utf-8")), encoding="utf-8")
