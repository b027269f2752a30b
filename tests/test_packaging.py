"""What a package says of itself: one version everywhere, metadata that is true, and nothing that points nowhere."""

import re
import sys
import tomllib
from importlib.metadata import metadata
from pathlib import Path

import pytest
import yaml

import surefoot

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
CITATION = yaml.safe_load((ROOT / "CITATION.cff").read_text())


def test_there_is_one_version() -> None:
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    assert newest is not None
    assert {PROJECT["version"], CITATION["version"], newest[1], surefoot.__version__} == {surefoot.__version__}


def test_the_changes_are_by_version_and_the_newest_comes_first() -> None:
    found = re.findall(r"^## (\d+)\.(\d+)\.(\d+)", (ROOT / "CHANGELOG.md").read_text(), flags=re.MULTILINE)
    versions = [tuple(map(int, version)) for version in found]
    assert versions == sorted(set(versions), reverse=True)


def test_pythons_of_the_classifiers_are_those_that_are_required() -> None:
    named = [found[1] for one in PROJECT["classifiers"] if (found := re.search(r":: 3\.(\d+)$", one))]
    assert PROJECT["requires-python"] == f">=3.{min(named, key=int)}"
    assert "Typing :: Typed" in PROJECT["classifiers"]
    assert sys.version_info >= (3, int(min(named, key=int)))


def test_types_travel_with_the_package() -> None:
    assert (Path(surefoot.__file__).parent / "py.typed").is_file()


def test_the_installed_metadata_are_those_of_the_project() -> None:
    found = metadata("surefoot")
    assert found["Version"] == surefoot.__version__
    assert found["License-Expression"] == "MIT"
    assert found.get_all("Classifier") == PROJECT["classifiers"]
    assert found.get_all("Project-URL") == [f"{name}, {url}" for name, url in PROJECT["urls"].items()]


def test_the_citation_has_what_the_format_asks_for() -> None:
    assert CITATION["cff-version"] == "1.2.0"
    assert {"message", "title", "authors", "license", "references"} <= set(CITATION)
    (paper,) = CITATION["references"]
    assert [author["family-names"] for author in paper["authors"]] == [
        "Kazerouni",
        "Ghavamzadeh",
        "Abbasi-Yadkori",
        "Van Roy",
    ]
    assert paper["url"] == PROJECT["urls"]["Paper"]


@pytest.mark.parametrize("extra", PROJECT["optional-dependencies"])
def test_every_extra_is_in_the_documentation(extra: str) -> None:
    pages = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {
        name for page in pages for group in re.findall(r"\[([\w,]+)\]'", page.read_text()) for name in group.split(",")
    }
    assert extra in named
