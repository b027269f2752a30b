"""The house: sizes of files, names that are used once, and the answers of the guess test."""

import statistics
import tomllib
from collections import Counter
from pathlib import Path

import pytest

import surefoot

SOURCE = Path(surefoot.__file__).parent
MODULES = [path for path in SOURCE.rglob("*.py") if path.name not in ("__init__.py", "__main__.py")]
ANSWERS: dict[str, list[str]] = tomllib.loads(Path(__file__).with_name("where_is.toml").read_text())["answers"]
LONGEST, MEDIAN = 400, 180
TWICE = {"experiment", "decisions"}  # a command, and a route, beside what they drive


def lines(path: Path) -> int:
    return len(path.read_text().splitlines())


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_no_module_is_longer_than_one_can_read(path: Path) -> None:
    assert lines(path) <= LONGEST


def test_the_median_module_is_short() -> None:
    assert statistics.median(map(lines, MODULES)) < MEDIAN


def test_a_name_stands_for_one_module() -> None:
    counts = Counter(path.stem for path in MODULES)
    assert {name for name, count in counts.items() if count > 1} <= TWICE


def test_the_guess_test_has_forty_questions_and_their_files_exist() -> None:
    assert len(ANSWERS) == 40
    missing = {name for names in ANSWERS.values() for name in names if not (SOURCE / name).is_file()}
    assert missing == set()
