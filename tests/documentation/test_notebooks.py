"""The notebooks are the pages that they are made of, and their cells run from first to last."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from docs.tools.notebooks import NOTEBOOKS, ROOT, written


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_the_notebook_is_made_of_its_page(page: str) -> None:
    assert (ROOT / NOTEBOOKS[page]).read_text() == written(ROOT / page), "run `python -m docs.tools.notebooks`"


# The code of the longer ones runs as examples of their pages.
SHORT = "examples/try_it.ipynb"
LONGER = [pytest.param(file, marks=pytest.mark.long) for file in NOTEBOOKS.values() if file != SHORT]


@pytest.mark.parametrize("file", [SHORT, *LONGER])
def test_every_cell_of_the_notebook_runs(file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for cell in json.loads((ROOT / file).read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        code = compile("".join(cell["source"]), f"{file}, {cell['id']}", "exec")
        if "raises-exception" in cell["metadata"].get("tags", ()):
            with pytest.raises(Exception, match=r"\w"):
                exec(code, names)
        else:
            exec(code, names)


@pytest.mark.parametrize("file", NOTEBOOKS.values())
def test_links_of_the_notebook_lead_somewhere(file: str) -> None:
    text = "".join("".join(cell["source"]) for cell in json.loads((ROOT / file).read_text())["cells"])
    links = {link.partition("#")[0] for link in re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", text)}
    assert links
    assert [link for link in links if not (ROOT / file).parent.joinpath(link).exists()] == []
