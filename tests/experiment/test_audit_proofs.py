"""Proofs that were forged, up to every number of theirs, with all hashes computed anew: the mathematics shows it."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.journal import open_journal
from tests.experiment.honest import played
from tests.experiment.tampering import Row, Tamper, assert_named, first, forged, is_learner


def is_refused(payload: Row) -> bool:
    """The gate said no to a proposal, by a proof that rests on a confidence set."""
    proof = payload["certificate"]["proof"]
    return (
        payload["source"] == "baseline"
        and payload["mode"] == "guarded"
        and not payload.get("is_fallback")
        and proof["pieces"][0]["fact"]["kind"] == "ellipsoid"
        and payload["certificate"]["proposal"] != payload["request"]["baseline"]
    )


def learner_against_the_gate(rows: list[Row]) -> int:
    row = first(rows, "round", is_refused)
    row["payload"]["source"], row["payload"]["action"] = "learner", row["payload"]["certificate"]["proposal"]
    return int(row["number"])


def and_the_guarantee(rows: list[Row]) -> int:
    number = learner_against_the_gate(rows)
    certificate = rows[number - 1]["payload"]["certificate"]
    certificate["guaranteed"] = certificate["required"] + 0.01
    return number


def and_the_value(rows: list[Row]) -> int:
    number = and_the_guarantee(rows)
    certificate = rows[number - 1]["payload"]["certificate"]
    certificate["proof"]["value"] = certificate["guaranteed"]
    return number


def and_the_bound(rows: list[Row]) -> int:
    number = learner_against_the_gate(rows)
    certificate = rows[number - 1]["payload"]["certificate"]
    proof, missing = certificate["proof"], certificate["required"] + 0.01 - certificate["guaranteed"]
    proof["pieces"][0]["bound"] += missing
    proof["value"] += missing
    certificate["guaranteed"] += missing
    return number


def and_the_radius(rows: list[Row]) -> int:
    """All numbers of the forged proof fit together; only the set is smaller than the data make it."""
    number = learner_against_the_gate(rows)
    certificate = rows[number - 1]["payload"]["certificate"]
    proof, missing = certificate["proof"], certificate["required"] + 0.01 - certificate["guaranteed"]
    piece = proof["pieces"][0]
    width = set_width(rows[: number - 1], np.array(piece["vector"]))
    piece["fact"]["radius"] -= missing / width
    piece["bound"] += missing
    proof["value"] += missing
    certificate["guaranteed"] += missing
    return number


def set_width(rows: list[Row], q: Any) -> float:
    """||q||_{V^-1} of the events so far, ridge 0.3 and rewards on arrival."""
    played_rows = {
        p["decision_id"]: np.array(p["request"]["features"][p["action"]])
        for p in (row["payload"] for row in rows if row["kind"] == "round")
    }
    learned = [
        played_rows[row["payload"]["decision_id"]]
        for row in rows
        if row["kind"] == "reward" and not row["payload"].get("refused")
    ]
    gram = 0.3 * np.eye(3) + sum(np.outer(x, x) for x in learned)
    return float(np.sqrt(q @ np.linalg.solve(gram, q)))


def and_an_invented_fact(rows: list[Row]) -> int:
    """An action that nobody offered is said to lie in the declared range."""
    number = learner_against_the_gate(rows)
    certificate = rows[number - 1]["payload"]["certificate"]
    question = certificate["proof"]["question"]
    fact = {"kind": "linear", "name": "declared range of an action", "normal": question, "level": 0.5}
    certificate["proof"]["pieces"] = [{"fact": fact, "vector": question, "bound": 0.5}]
    certificate["proof"]["value"] = certificate["guaranteed"] = 0.5
    return number


def and_another_question(rows: list[Row]) -> int:
    """The proof holds, but of an easier question."""
    easier = first(rows, "round", is_learner)["payload"]["certificate"]
    number = learner_against_the_gate(rows)
    certificate = rows[number - 1]["payload"]["certificate"]
    certificate["proof"] = copy.deepcopy(easier["proof"])
    certificate["guaranteed"] = easier["guaranteed"]
    return number


def and_the_required_level(rows: list[Row]) -> int:
    number = learner_against_the_gate(rows)
    certificate = rows[number - 1]["payload"]["certificate"]
    certificate["required"] = certificate["guaranteed"] - 0.01
    return number


def level_of_a_linear_fact(rows: list[Row]) -> int:
    row = first(
        rows,
        "round",
        lambda p: any(piece["fact"]["kind"] == "linear" for piece in p["certificate"]["proof"]["pieces"]),
    )
    proof = row["payload"]["certificate"]["proof"]
    piece = next(piece for piece in proof["pieces"] if piece["fact"]["kind"] == "linear")
    normal, vector = np.array(piece["fact"]["normal"]), np.array(piece["vector"])
    weight = float(vector @ normal) / float(normal @ normal)
    piece["fact"]["level"] += 0.1
    piece["bound"] += 0.1 * weight
    proof["value"] += 0.1 * weight
    row["payload"]["certificate"]["guaranteed"] += 0.1 * weight
    return int(row["number"])


def piece_of_a_proof(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=60)
    row["payload"]["certificate"]["proof"]["pieces"][0]["vector"][0] += 0.001
    return int(row["number"])


def optimism(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=60)
    row["payload"]["certificate"]["optimism"] *= 1.01
    return int(row["number"])


def a_number_that_is_none(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=60)
    row["payload"]["certificate"]["proof"]["value"] = "nan"
    return int(row["number"])


# The check that must catch it, and how many events later at most.
BY_MATHEMATICS: dict[Tamper, tuple[str, int]] = {
    learner_against_the_gate: ("admissible", 0),
    and_the_guarantee: ("certificate", 0),
    and_the_value: ("value", 0),
    and_the_bound: ("bound", 0),
    and_the_radius: ("radius", 0),
    and_an_invented_fact: ("fact", 0),
    and_another_question: ("question", 0),
    and_the_required_level: ("required", 0),
    level_of_a_linear_fact: ("fact", 0),
    piece_of_a_proof: ("pieces", 0),
    optimism: ("proposal", 0),
    a_number_that_is_none: ("value", 0),
}


@pytest.mark.parametrize("tamper", BY_MATHEMATICS, ids=lambda tamper: tamper.__name__)
def test_the_mathematics_show_it_where_every_hash_was_computed_anew(
    tamper: Tamper, honest: Path, tmp_path: Path
) -> None:
    check, later = BY_MATHEMATICS[tamper]
    assert_named(honest, "arrival", tamper, tmp_path, check=check, later=later)


def test_a_proof_cannot_be_passed_over_as_a_refutation(honest: Path, tmp_path: Path) -> None:
    """For CLUCB there is no such thing; SafeLUCB never plays the learner again after one."""

    def lift(rows: list[Row]) -> int:
        row = first(rows, "round", is_learner)
        row["payload"]["certificate"]["guaranteed"] = "-inf"
        row["payload"]["source"], row["payload"]["action"] = "baseline", row["payload"]["request"]["baseline"]
        return int(row["number"])

    touched, report = forged(honest, "known", lift, tmp_path, rehash=True)
    assert (touched, "certificate") in [(finding.event, finding.what) for finding in report.findings]
    _, report = forged(honest, "arrival", lift, tmp_path, rehash=True)
    assert report.findings.counts["alarm"] > 0


def test_both_sides_of_algorithm_2_cannot_be_shifted_together(tmp_path: Path) -> None:
    with open_journal(tmp_path / "unknown.db") as journal:
        played(lambda told: surefoot.CLUCB2(alpha=0.3, nesting="latest", **told), 40, journal=journal)

    def shift(rows: list[Row]) -> int:
        row = first(rows, "round", is_learner)
        row["payload"]["certificate"]["guaranteed"] += 1.0
        row["payload"]["certificate"]["required"] += 1.0
        return int(row["number"])

    (tmp_path / "forged").mkdir()
    touched, report = forged(tmp_path, "unknown", shift, tmp_path / "forged", rehash=True)
    assert [(finding.event, finding.what) for finding in report.findings] == [(touched, "required")]
