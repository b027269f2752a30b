"""Defaults that the documentation states are those of the code."""

import ast
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import surefoot

DOCS = Path(__file__).parents[1] / "docs" / "policies"
PAGES = {
    "safe_lucb.md": surefoot.SafeLUCB,
    "clucb.md": surefoot.CLUCB,
    "clucb2.md": surefoot.CLUCB2,
    "lucb.md": surefoot.LUCB,
    "ucb.md": surefoot.UCB,
    "conservative_ucb.md": surefoot.ConservativeUCB,
}
NONE = ("required", "-", "–", "")


def tables(text: str) -> list[list[list[str]]]:
    """Every table of a page, as rows of cells."""
    blocks = re.findall(r"(?:^\|.*\|\n)+", text, flags=re.MULTILINE)
    return [[line.strip("|").split(" | ") for line in block.splitlines()] for block in blocks]


def stated(page: str) -> dict[str, str]:
    """What the page's table of arguments says of their defaults."""
    found: dict[str, str] = {}
    for header, _, *rows in (table for table in tables((DOCS / page).read_text("utf-8")) if len(table) > 2):
        names = [cell.strip().lower() for cell in header]
        if names[0] == "argument" and names[-1] == "default":
            found |= {name: row[-1].strip() for row in rows for name in re.findall(r"`(\w+)`", row[0])[:1]}
    return found


def value(text: str) -> Any:
    return ast.literal_eval(text.strip("`"))


@pytest.mark.parametrize("page", PAGES)
def test_every_default_on_a_policys_page_is_the_codes(page: str) -> None:
    parameters = inspect.signature(PAGES[page]).parameters
    for name, text in stated(page).items():
        if name not in parameters:  # an argument of `decide`
            continue
        default = parameters[name].default
        if default is inspect.Parameter.empty:
            assert text in NONE, f"{name} has no default, but {page} says {text}"
        else:
            assert value(text) == default, f"{name} is {default!r} by default, but {page} says {text}"


@pytest.mark.parametrize("page", PAGES)
def test_every_default_in_words_on_a_policys_page_is_the_codes(page: str) -> None:
    """As in "`noise` | ...; default 0.5" or "`ridge` is 1 by default"."""
    text, parameters = (DOCS / page).read_text("utf-8"), inspect.signature(PAGES[page]).parameters
    rows = re.findall(r"^\| `(\w+)` .*?\bdefault ([-\d.]+\d|`[^`]+`)", text, flags=re.MULTILINE)
    for name, said in [*rows, *re.findall(r"`(\w+)` is ([-\d.]*\d) by default", text)]:
        assert value(said) == parameters[name].default, f"{page} says {said} of {name}"


def test_the_table_of_safe_lucb_states_its_defaults() -> None:
    assert len(stated("safe_lucb.md")) >= 12
