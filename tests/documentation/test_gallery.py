"""The gallery: every example runs, and draws and prints what the repository shows of it."""

import re
import shutil
from pathlib import Path

import pytest

from docs.tools import gallery
from tests.documentation.drawings import differs

SLOW = {"dosing", "guarded_sklearn", "service_from_javascript"}  # seconds, where the others take one
SCRIPTS = [
    pytest.param(script, id=script.stem, marks=[pytest.mark.long] if script.stem in SLOW else [])
    for script in gallery.scripts()
]


@pytest.mark.parametrize("script", SCRIPTS)
def test_the_example_draws_and_prints_what_is_shown(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if script.with_suffix(".mjs").exists() and shutil.which("node") is None:
        pytest.skip("no Node here, which runs the client")
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "0")
    assert gallery.run(script, tmp_path) == (gallery.PICTURES / f"{script.stem}.txt").read_text()
    assert differs(gallery.PICTURES / f"{script.stem}.svg", tmp_path / f"{script.stem}.svg") is None


def test_the_overview_shows_every_example_and_nothing_else() -> None:
    overview = (gallery.EXAMPLES / "README.md").read_text()
    names = {script.stem for script in gallery.scripts()}
    assert {name for name in names if f"({name}.py) | " not in overview} == set()
    assert {name for name in names if f"(pictures/{name}.svg)]({name}.py)" not in overview} == set()
    assert {picture.stem for picture in gallery.pictures()} == names


@pytest.mark.parametrize("script", gallery.scripts(), ids=lambda script: script.stem)
def test_the_page_of_an_example_has_words_picture_output_and_code(script: Path) -> None:
    page = gallery.page(script)
    assert page.startswith("# ")
    assert f"](pictures/{script.stem}.svg)" in page
    assert (gallery.PICTURES / f"{script.stem}.txt").read_text() in page
    assert f'figure.savefig("{script.stem}.svg")' in page


def test_links_of_the_overview_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)\s]+)\)", (gallery.EXAMPLES / "README.md").read_text())
    assert links
    assert [link for link in links if not (gallery.EXAMPLES / link).exists()] == []
