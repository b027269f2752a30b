"""Edits of a journal after which all hashes were computed anew: only the mathematics shows them, and names each."""

from pathlib import Path

import numpy as np
import pytest

from tests.experiment.tampering import Row, Tamper, assert_named, first, forged, is_learner, swap


def played_feature(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=60)
    row["payload"]["request"]["features"][row["payload"]["action"]][0] *= 1.01
    return int(row["number"])


def feature_of_an_action_that_was_not_played(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=60)
    payload = row["payload"]
    others = set(range(len(payload["request"]["features"]))) - {payload["action"], payload["request"]["baseline"]}
    other = max(others)
    played_row = np.array(payload["request"]["features"][payload["action"]])
    payload["request"]["features"][other] = (played_row * 1.2).tolist()
    return int(row["number"])


def learned_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    row["payload"]["values"]["reward"] += 0.05
    return int(row["number"])


def rewards_of_two_decisions(rows: list[Row]) -> int:
    one = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    two = first(rows, "reward", lambda p: not p.get("refused"), after=one["number"])
    one["payload"]["values"], two["payload"]["values"] = two["payload"]["values"], one["payload"]["values"]
    return int(one["number"])


def dropped_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    rows.remove(row)
    return int(row["number"])


def doubled_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    rows.insert(rows.index(row) + 1, {**row, "key": None})
    return int(row["number"]) + 1


def dropped_decision(rows: list[Row]) -> int:
    row = first(rows, "round", after=60)
    rows.remove(row)
    return int(row["number"])


def two_decisions(rows: list[Row]) -> int:
    one = first(rows, "round", after=60)
    two = first(rows, "round", after=one["number"])
    swap(rows, rows.index(one), rows.index(two))
    one["time"], two["time"] = two["time"], one["time"]
    return int(one["number"])


def dropped_mode(rows: list[Row]) -> int:
    row = first(rows, "mode")
    rows.remove(row)
    return int(row["number"])


def mode_of_a_decision(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner)
    row["payload"]["mode"] = "shadow"
    return int(row["number"])


def learner_in_shadow(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: p["mode"] == "shadow")
    row["payload"]["source"], row["payload"]["action"] = "learner", row["payload"]["certificate"]["proposal"]
    return int(row["number"])


def baseline_that_was_another_action(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: p["source"] == "baseline")
    row["payload"]["action"] = (row["payload"]["action"] + 1) % len(row["payload"]["request"]["features"])
    return int(row["number"])


def setting(name: str, value: float) -> Tamper:
    def tamper(rows: list[Row]) -> int:
        rows[0]["payload"]["settings"][name] = value
        return 1

    tamper.__name__ = f"declared_{name}"
    return tamper


# The check that must catch it, and how many events later at most.
BY_MATHEMATICS: dict[Tamper, tuple[str, int]] = {
    played_feature: ("question", 0),
    feature_of_an_action_that_was_not_played: ("proposal", 0),
    learned_reward: ("bound", 30),
    rewards_of_two_decisions: ("bound", 9),
    dropped_reward: ("fact", 30),
    doubled_reward: ("reward", 0),
    dropped_decision: ("round", 9),
    two_decisions: ("round", 0),
    dropped_mode: ("mode", 9),
    mode_of_a_decision: ("held", 0),
    learner_in_shadow: ("held", 0),
    baseline_that_was_another_action: ("action", 0),
    setting("alpha", 0.3): ("question", 9),
    setting("delta", 0.2): ("radius", 9),
    setting("noise", 0.02): ("radius", 9),
    setting("theta_bound", 0.1): ("radius", 9),
}


@pytest.mark.parametrize("tamper", BY_MATHEMATICS, ids=lambda tamper: tamper.__name__)
def test_the_mathematics_show_it_where_every_hash_was_computed_anew(
    tamper: Tamper, honest: Path, tmp_path: Path
) -> None:
    check, later = BY_MATHEMATICS[tamper]
    assert_named(honest, "arrival", tamper, tmp_path, check=check, later=later)


def test_a_known_baseline_reward_cannot_be_edited(honest: Path, tmp_path: Path) -> None:
    def lower(rows: list[Row]) -> int:
        row = first(rows, "round", is_learner)
        row["payload"]["request"]["baseline_reward"] *= 0.9
        return int(row["number"])

    touched, report = forged(honest, "known", lower, tmp_path, rehash=True)
    assert (touched, "required") in [(finding.event, finding.what) for finding in report.findings]
