"""The pictures of the documentation are those that their script draws."""

import re
from pathlib import Path

import matplotlib.pyplot as plt
import pytest

from docs.tools import pictures
from surefoot.reports.figures import STYLE
from tests.documentation.drawings import differs
from tests.test_docs import DOCS, read


@pytest.mark.parametrize("name", pictures.PICTURES)
def test_the_picture_is_what_the_script_draws(name: str, tmp_path: Path) -> None:
    with plt.rc_context(STYLE):
        pictures.save(pictures.PICTURES[name](), tmp_path / f"{name}.svg")
    assert differs(pictures.FOLDER / f"{name}.svg", tmp_path / f"{name}.svg") is None


def test_every_picture_is_shown_and_described() -> None:
    shown = [found for page in DOCS for found in re.findall(r"!\[([^\]]*)\]\(pictures/(\w+)\.svg\)", read(page))]
    assert {name for _, name in shown} == set(pictures.PICTURES)
    assert all(len(words) > 40 for words, _ in shown)


def test_a_picture_that_changed_is_noticed(tmp_path: Path) -> None:
    drawn = pictures.FOLDER / "ledger.svg"
    text = drawn.read_text()
    line = max(re.findall(r'd="([^"]{200,})"', text), key=len)
    (tmp_path / "moved.svg").write_text(text.replace(line, re.sub(r"\d+\.\d+", "9.5", line, count=1), 1))
    (tmp_path / "less.svg").write_text(text.replace("<use", "<g", 1))
    assert "off by" in (differs(drawn, tmp_path / "moved.svg") or "")
    assert differs(drawn, tmp_path / "less.svg") == "other elements or words"
