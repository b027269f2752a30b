"""Pages whose examples are also notebooks: `python -m docs.tools.notebooks` writes them into `examples/`."""

import doctest
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
NOTEBOOKS = {
    "docs/try-it.md": "examples/try_it.ipynb",
    "docs/tutorial-csv.md": "examples/tutorial_csv.ipynb",
    "docs/tutorial-clicks.md": "examples/tutorial_clicks.ipynb",
}
BLOCK = re.compile(r"^```python\n(?P<code>>>> .*?)^```\n", flags=re.DOTALL | re.MULTILINE)
RELATIVE = re.compile(r"\]\((?![a-z]+:|#)([^)\s]+)\)")


def notebook(page: Path) -> dict[str, Any]:
    """A page as a notebook: its words as they are, and a cell for each example that prints something."""
    text, cells, start = page.read_text(), list[dict[str, Any]](), 0
    for block in BLOCK.finditer(text):
        cells += [*_words(text[start : block.start()]), *_cells(block["code"])]
        start = block.end()
    cells += _words(text[start:])
    about = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    numbered = [cell | {"id": f"cell-{number}"} for number, cell in enumerate(cells)]
    return {"cells": numbered, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def written(page: Path) -> str:
    """The file's content."""
    return json.dumps(notebook(page), indent=1, ensure_ascii=False) + "\n"


def _words(text: str) -> Iterator[dict[str, Any]]:
    # Seen from examples/, the pages lie in docs/.
    found = RELATIVE.sub(lambda link: f"]({_from_examples(link[1])})", text.strip())
    if found:
        yield {"cell_type": "markdown", "metadata": {}, "source": found.splitlines(keepends=True)}


def _from_examples(link: str) -> str:
    return link.removeprefix("../examples/") if link.startswith("../") else f"../docs/{link}"


def _cells(code: str) -> Iterator[dict[str, Any]]:
    """Statements up to one that shows something: a notebook shows the value of a cell's last line alone."""
    gathered = ""
    for example in doctest.DocTestParser().get_examples(code):
        gathered += example.source
        if example.want or example.exc_msg:
            yield _cell(gathered, is_refused=example.exc_msg is not None)
            gathered = ""
    if gathered:
        yield _cell(gathered)


def _cell(source: str, *, is_refused: bool = False) -> dict[str, Any]:
    lines = source.rstrip("\n").splitlines(keepends=True)
    # With this tag Jupyter runs on after an error that the page means to show.
    about = {"tags": ["raises-exception"]} if is_refused else {}
    return {"cell_type": "code", "execution_count": None, "metadata": about, "outputs": [], "source": lines}


def main() -> None:
    """Writes them all."""
    for page, file in NOTEBOOKS.items():
        (ROOT / file).write_text(written(ROOT / page))


if __name__ == "__main__":
    main()
