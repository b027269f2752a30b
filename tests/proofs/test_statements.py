"""What `docs/proofs.md` says of the proofs stands in them, and none is left open; `make proofs` runs Coq itself."""

import re
from pathlib import Path

import numpy as np
import pytest
from proofs.compare import BROKEN, broken_check
from proofs.mutations import VARIANTS, Variant
from proofs.proof_text import guard_line, proof_line

from surefoot import Guard
from surefoot.linear.ellipsoid import Ball
from surefoot.safety.bank_proof import RATE_GRID
from surefoot.safety.facts import Linear
from surefoot.safety.proof import Piece, Proof

ROOT = Path(__file__).parents[2]
FILES = {path.name: path.read_text(encoding="utf-8") for path in sorted((ROOT / "proofs").glob("*.v"))}
PAGE = (ROOT / "docs/proofs.md").read_text(encoding="utf-8")
QUOTES = re.findall(r"^```coq\n(.*?)^```", PAGE, flags=re.DOTALL | re.MULTILINE)
LEFT_OPEN = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjecture|Abort|bypass_check|Unset\s+(Guard|Positivity|Universe)\s+Check\w*)\b"
)
COMMENT = re.compile(r"\(\*.*?\*\)", flags=re.DOTALL)


def without_comments(text: str) -> str:
    while COMMENT.search(text):
        text = re.sub(r"\(\*(?:(?!\(\*|\*\)).)*\*\)", "", text, flags=re.DOTALL)
    return text


def test_there_are_quotes_to_compare() -> None:
    assert len(QUOTES) == 2


@pytest.mark.parametrize("quote", QUOTES, ids=lambda quote: str(quote.split()[1]))
def test_what_the_page_quotes_stands_in_the_files(quote: str) -> None:
    assert [name for name, text in FILES.items() if quote in text] != []


@pytest.mark.parametrize("name", FILES)
def test_no_proof_is_left_open_and_nothing_is_assumed(name: str) -> None:
    assert LEFT_OPEN.findall(without_comments(FILES[name])) == []


@pytest.mark.parametrize("name", FILES)
def test_hypotheses_and_variables_stand_in_sections_only(name: str) -> None:
    """Outside of a section, a hypothesis is an axiom."""
    depth = 0
    for line in without_comments(FILES[name]).splitlines():
        words = line.split() or [""]
        if words[0] == "Section":
            depth += 1
        elif words[0] == "End":
            depth -= 1
        elif words[0] in ("Hypothesis", "Hypotheses", "Variable", "Variables", "Context"):
            assert depth > 0, line
    assert depth == 0


def test_every_file_is_compiled() -> None:
    listed = re.findall(r"^(\w+\.v)$", (ROOT / "proofs/_CoqProject").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert sorted([*listed, "Statements.v"]) == sorted(FILES)


@pytest.mark.parametrize("name", FILES)
def test_every_statement_is_proved_under_its_name(name: str) -> None:
    stated = re.findall(r"^Definition (\w+_statement) : Prop", FILES[name], flags=re.MULTILINE)
    for statement in stated:
        assert re.search(rf"^ *(?:Lemma|Theorem) \w+ : {statement}\.", FILES[name], flags=re.MULTILINE), statement


def test_every_condition_of_the_theorem_stands_in_the_table_of_the_guarantee() -> None:
    theorem = next(quote for quote in QUOTES if "promise_kept_statement" in quote)
    conditions = re.findall(r"^  (\w+) g(?: delta)? ->$", theorem, flags=re.MULTILINE)
    assert len(conditions) == 11
    defined = "".join(FILES[name] for name in ("Guard.v", "Leases.v"))
    assert all(re.search(rf"Definition {condition}\b", defined) for condition in conditions)
    page = (ROOT / "docs/guarantee.md").read_text(encoding="utf-8")
    table = page.split("### Every condition")[1].split("\n### ")[0]
    rows = re.findall(r"^\| \*\*([^|]*)\|", table, flags=re.MULTILINE)
    assert {*conditions} <= {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def test_every_file_that_the_page_names_exists() -> None:
    assert {*re.findall(r"`(\w+\.v)`", PAGE)} == {*FILES} - {"Extraction.v", "Statements.v"}


@pytest.mark.parametrize("variant", VARIANTS, ids=lambda variant: str(variant.name))
def test_a_wrong_variant_has_its_place_and_its_lemma(variant: Variant) -> None:
    assert FILES[variant.file].count(variant.old) == 1
    assert variant.old != variant.new
    file, lemma = variant.fails
    assert re.search(rf"^ *(?:Lemma|Theorem) {lemma}\b", FILES[file], flags=re.MULTILINE)


@pytest.mark.parametrize("name", BROKEN)
def test_our_checker_can_be_broken_in_the_places_that_are_named(name: str) -> None:
    ball = Ball(1.0)
    question = np.array([3.0, 4.0])
    broken_check(*BROKEN[name])(Proof(question, (Piece(ball, question, -6.0),), -6.0))


def test_a_proof_is_written_as_fractions_of_powers_of_two() -> None:
    line = Linear(np.array([0.5, -2.0]), 0.75, "floor")
    proof = Proof(np.array([0.5, -2.0]), (Piece(line, line.normal, 0.75),), 0.75, Ball(1.0))
    words = "proof none 2 1/1 -2/0 some 3/2 none 1 linear 2 1/1 -2/0 3/2 2 1/1 -2/0 3/2 some ball 1/0"
    assert proof_line(proof) == words
    assert proof_line(Proof(np.array([1.0]), (), -np.inf), question=[1.0]) == "proof some 1 1/0 1 1/0 none"


def test_what_is_no_float_is_written_as_such() -> None:
    for odd in (np.nan, np.inf, 2**53 + 1, "1"):
        assert "some ! " in proof_line(Proof(np.array([1.0]), (), odd, Ball(1.0)))  # type: ignore[arg-type]
    assert proof_line(Proof(np.zeros((2, 2)), (), 0.0)).startswith("proof none ! some")


def test_a_guards_proof_is_written_with_every_rate_and_bank() -> None:
    proof = Guard(alpha=0.25, delta=0.05).decide(baseline="old", proposal="new").certificate.proof
    words, rates = guard_line(proof).split(), len(RATE_GRID)
    assert words[:2] == ["guard", str(rates)]
    bank = words[2 + 2 * rates :]
    assert bank[:4] == ["1", "1", "0", "1/2"]
    assert len(bank) == 1 + 7 + (1 + rates) + 5
