"""Every tampering is found and named, in a real SQLite file: edits that the hashes show, and, where whoever edited also
computed all hashes anew, edits that only the mathematics shows.
"""

import copy
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.experiment.audit import Finding, Report, audit
from surefoot.journal import canonical, open_journal
from surefoot.journal.events import START, Event, next_event
from tests.experiment.test_audit_honest import played, safe

Row = dict[str, Any]
Tamper = Callable[[list[Row]], int]  # edits the events, and returns the number of the one that was touched
COLUMNS = ("number", "kind", "time", "payload", "key", "previous", "hash")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two honest journals: rewards on arrival, and rewards in windows; the second with a catalogue."""
    folder = tmp_path_factory.mktemp("audit")
    with open_journal(folder / "arrival.db") as journal:
        played(safe(alpha=0.02, reward_range=None), 90, journal=journal, lag=2)
    with open_journal(folder / "window.db") as journal:
        played(safe(), 90, journal=journal, window=5.0, changing=False, lost=0.2)
    with open_journal(folder / "known.db") as journal:
        played(lambda told: surefoot.CLUCB(alpha=0.3, **told), 60, journal=journal)
    return folder


def load(path: Path) -> list[Row]:
    """The events, payloads as data."""
    with sqlite3.connect(path) as connection:
        found = connection.execute(f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY number").fetchall()
    connection.close()
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in found]
    return [{**row, "payload": msgspec.json.decode(row["payload"])} for row in rows]


def save(path: Path, rows: list[Row], *, head: tuple[int, str] | None) -> None:
    """Write events over those of the file, and the head where one is given."""
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM events")
        for row in rows:
            values = [row[column] if column != "payload" else packed(row["payload"]) for column in COLUMNS]
            connection.execute("INSERT INTO events VALUES (1, ?, ?, ?, ?, ?, ?, ?)", values)
        if head is not None:
            connection.execute("UPDATE experiments SET number = ?, hash = ?", head)
    connection.close()


def packed(payload: Any) -> bytes:
    return canonical(payload)


def rehashed(rows: list[Row]) -> list[Row]:
    """Number all events anew and compute every hash: what a careful forger does."""
    head, made = START, list[Row]()
    for row in rows:
        if row["kind"] == "snapshot" and row["payload"]["number"] == row["number"] - 1:
            row["payload"].update(number=head.number, hash=head.hash)
        event: Event = next_event(
            "shop", head, kind=row["kind"], payload=packed(row["payload"]), time=row["time"], key=row["key"]
        )
        made.append({**row, "number": event.number, "previous": event.previous, "hash": event.hash})
        head = event.head
    return made


def forged(folder: Path, name: str, tamper: Tamper, tmp_path: Path, *, rehash: bool) -> tuple[int, Report]:
    """The number of the event that was touched, and what the audit says."""
    path = tmp_path / f"{name}.db"
    shutil.copy(folder / f"{name}.db", path)
    rows = load(path)
    touched = tamper(rows)
    rows = rehashed(rows) if rehash else rows
    save(path, rows, head=(rows[-1]["number"], rows[-1]["hash"]) if rehash else None)
    with open_journal(path, read_only=True) as journal:
        return touched, audit(journal, "shop")


def first(rows: list[Row], kind: str, where: Callable[[Row], bool] = lambda row: True, *, after: int = 0) -> Row:
    return next(row for row in rows if row["kind"] == kind and row["number"] > after and where(row["payload"]))


def is_learner(payload: Row) -> bool:
    return bool(payload["source"] == "learner")


def is_refused(payload: Row) -> bool:
    """The gate said no to a proposal, by a proof that rests on a confidence set."""
    proof = payload["certificate"]["proof"]
    return (
        payload["source"] == "baseline"
        and payload["mode"] == "guarded"
        and not payload.get("is_fallback")
        and proof["pieces"][0]["fact"]["kind"] == "ellipsoid"
        and payload["certificate"]["proposal"] != payload["asked"]["baseline"]
    )


def swap(rows: list[Row], a: int, b: int) -> None:
    for column in ("kind", "time", "payload", "key"):
        rows[a][column], rows[b][column] = rows[b][column], rows[a][column]


# Edits that leave the hashes alone.


def edit_a_feature(rows: list[Row]) -> int:
    row = first(rows, "decision", is_learner)
    row["payload"]["asked"]["features"][0][0] += 1e-12
    return int(row["number"])


def edit_a_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", after=50)
    row["payload"]["value"] += 0.001
    return int(row["number"])


def edit_a_number_of_a_proof(rows: list[Row]) -> int:
    row = first(rows, "decision", after=80)
    row["payload"]["certificate"]["proof"]["pieces"][0]["bound"] += 0.01
    return int(row["number"])


def edit_a_time(rows: list[Row]) -> int:
    rows[40]["time"] += 0.25
    return 41


def edit_a_key(rows: list[Row]) -> int:
    row = first(rows, "decision", after=30)
    row["key"] = "d:somebody-else"
    return int(row["number"])


def change_a_kind(rows: list[Row]) -> int:
    row = first(rows, "snapshot")
    row["kind"] = "mode"
    return int(row["number"])


def swap_two_events(rows: list[Row]) -> int:
    swap(rows, 30, 31)
    return 31


def drop_an_event(rows: list[Row]) -> int:
    del rows[60]
    return 62


def drop_several_events(rows: list[Row]) -> int:
    del rows[60:64]
    return 65


def drop_the_last_event(rows: list[Row]) -> int:
    rows.pop()
    return 0


def drop_the_first_event(rows: list[Row]) -> int:
    rows.pop(0)
    return 2


def append_a_copy(rows: list[Row]) -> int:
    rows.append({**rows[50], "number": rows[-1]["number"] + 1, "key": None})
    return int(rows[-1]["number"])


def replace_a_hash(rows: list[Row]) -> int:
    rows[70]["hash"] = "f" * 64
    return 71


def change_the_mode(rows: list[Row]) -> int:
    row = first(rows, "mode")
    row["payload"]["mode"] = "paused"
    return int(row["number"])


def write_nonsense(rows: list[Row]) -> int:
    rows[45]["payload"] = {"nonsense": True}
    return 46


BY_HASH: dict[Tamper, str] = {
    edit_a_feature: "hash",
    edit_a_reward: "hash",
    edit_a_number_of_a_proof: "hash",
    edit_a_time: "hash",
    edit_a_key: "hash",
    change_a_kind: "hash",
    swap_two_events: "hash",
    drop_an_event: "number",
    drop_several_events: "number",
    drop_the_last_event: "head",
    drop_the_first_event: "number",
    append_a_copy: "previous",
    replace_a_hash: "hash",
    change_the_mode: "hash",
    write_nonsense: "hash",
}


@pytest.mark.parametrize("tamper", BY_HASH, ids=lambda tamper: tamper.__name__)
def test_the_hashes_show_it(tamper: Tamper, folder: Path, tmp_path: Path) -> None:
    touched, report = forged(folder, "arrival", tamper, tmp_path, rehash=False)
    assert any(found.event == touched and found.what == BY_HASH[tamper] for found in report.findings), [
        *report.findings
    ]


def test_the_files_are_clean_before_anybody_touches_them(folder: Path, tmp_path: Path) -> None:
    for name in ("arrival", "window", "known"):
        for rehash in (False, True):
            _, report = forged(folder, name, lambda rows: 0, tmp_path, rehash=rehash)
            assert report.is_clean, [*report.findings]


def test_an_end_that_was_cut_off_with_its_head_is_found_by_a_head_kept_elsewhere(folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    shutil.copy(folder / "arrival.db", path)
    rows = load(path)
    kept = rows[-1]["hash"]
    save(path, rows[:-4], head=(rows[-5]["number"], rows[-5]["hash"]))
    with open_journal(path, read_only=True) as journal:
        assert audit(journal, "shop").is_clean  # a shorter chain is a chain
        assert [found.what for found in audit(journal, "shop", expect=kept).findings] == ["expected"]
        assert audit(journal, "shop", expect=rows[20]["hash"]).is_clean


# Edits after which all hashes were computed anew. The check that must catch it, and how many events later at most.


def played_feature(rows: list[Row]) -> int:
    row = first(rows, "decision", is_learner, after=60)
    row["payload"]["asked"]["features"][row["payload"]["action"]][0] *= 1.01
    return int(row["number"])


def feature_of_an_action_that_was_not_played(rows: list[Row]) -> int:
    row = first(rows, "decision", is_learner, after=60)
    payload = row["payload"]
    others = set(range(len(payload["asked"]["features"]))) - {payload["action"], payload["asked"]["baseline"]}
    other = max(others)
    played_row = np.array(payload["asked"]["features"][payload["action"]])
    payload["asked"]["features"][other] = (played_row * 1.2).tolist()
    return int(row["number"])


def learned_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    row["payload"]["value"] += 0.05
    return int(row["number"])


def rewards_of_two_decisions(rows: list[Row]) -> int:
    one = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    two = first(rows, "reward", lambda p: not p.get("refused"), after=one["number"])
    one["payload"]["value"], two["payload"]["value"] = two["payload"]["value"], one["payload"]["value"]
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
    row = first(rows, "decision", after=60)
    rows.remove(row)
    return int(row["number"])


def two_decisions(rows: list[Row]) -> int:
    one = first(rows, "decision", after=60)
    two = first(rows, "decision", after=one["number"])
    swap(rows, rows.index(one), rows.index(two))
    one["time"], two["time"] = two["time"], one["time"]
    return int(one["number"])


def dropped_mode(rows: list[Row]) -> int:
    row = first(rows, "mode")
    rows.remove(row)
    return int(row["number"])


def mode_of_a_decision(rows: list[Row]) -> int:
    row = first(rows, "decision", is_learner)
    row["payload"]["mode"] = "shadow"
    return int(row["number"])


def learner_in_shadow(rows: list[Row]) -> int:
    row = first(rows, "decision", lambda p: p["mode"] == "shadow")
    row["payload"]["source"], row["payload"]["action"] = "learner", row["payload"]["certificate"]["proposal"]
    return int(row["number"])


def baseline_that_was_another_action(rows: list[Row]) -> int:
    row = first(rows, "decision", lambda p: p["source"] == "baseline")
    row["payload"]["action"] = (row["payload"]["action"] + 1) % len(row["payload"]["asked"]["features"])
    return int(row["number"])


def learner_against_the_gate(rows: list[Row]) -> int:
    row = first(rows, "decision", is_refused)
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
        p["decision_id"]: np.array(p["asked"]["features"][p["action"]])
        for p in (row["payload"] for row in rows if row["kind"] == "decision")
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
    easier = first(rows, "decision", is_learner)["payload"]["certificate"]
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
        "decision",
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
    row = first(rows, "decision", is_learner, after=60)
    row["payload"]["certificate"]["proof"]["pieces"][0]["vector"][0] += 0.001
    return int(row["number"])


def optimism(rows: list[Row]) -> int:
    row = first(rows, "decision", is_learner, after=60)
    row["payload"]["certificate"]["optimism"] *= 1.01
    return int(row["number"])


def setting(name: str, value: float) -> Tamper:
    def tamper(rows: list[Row]) -> int:
        rows[0]["payload"]["settings"][name] = value
        return 1

    tamper.__name__ = f"declared_{name}"
    return tamper


def a_number_that_is_none(rows: list[Row]) -> int:
    row = first(rows, "decision", is_learner, after=60)
    row["payload"]["certificate"]["proof"]["value"] = "nan"
    return int(row["number"])


BY_MATHEMATICS: dict[Tamper, tuple[str, int]] = {
    played_feature: ("question", 0),
    feature_of_an_action_that_was_not_played: ("proposal", 0),
    learned_reward: ("bound", 9),
    rewards_of_two_decisions: ("bound", 9),
    dropped_reward: ("fact", 9),
    doubled_reward: ("reward", 0),
    dropped_decision: ("round", 9),
    two_decisions: ("round", 0),
    dropped_mode: ("mode", 9),
    mode_of_a_decision: ("held", 0),
    learner_in_shadow: ("held", 0),
    baseline_that_was_another_action: ("action", 0),
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
    setting("alpha", 0.3): ("question", 9),
    setting("delta", 0.2): ("radius", 9),
    setting("noise", 0.02): ("radius", 9),
    setting("theta_bound", 0.1): ("radius", 9),
}


@pytest.mark.parametrize("tamper", BY_MATHEMATICS, ids=lambda tamper: tamper.__name__)
def test_the_mathematics_show_it_where_every_hash_was_computed_anew(
    tamper: Tamper, folder: Path, tmp_path: Path
) -> None:
    touched, report = forged(folder, "arrival", tamper, tmp_path, rehash=True)
    check, later = BY_MATHEMATICS[tamper]
    found: list[Finding] = [finding for finding in report.findings if finding.what == check]
    assert found, [*report.findings]
    assert touched <= min(finding.event for finding in found) <= touched + later


# The same, in an experiment with windows and a catalogue, and in one with known baseline rewards.


def learned_value(rows: list[Row]) -> int:
    row = first(rows, "closed", after=60)
    row["payload"]["learned"][0][2] += 0.1
    return int(row["number"])


def default_passed_off_as_a_reward(rows: list[Row]) -> int:
    row = first(rows, "closed", lambda p: any(entry[3] for entry in p["learned"]), after=60)
    next(entry for entry in row["payload"]["learned"] if entry[3])[3] = False
    return int(row["number"])


def windows_in_another_order(rows: list[Row]) -> int:
    one = first(rows, "closed", after=60)
    two = first(rows, "closed", after=one["number"])
    one["payload"]["learned"], two["payload"]["learned"] = two["payload"]["learned"], one["payload"]["learned"]
    return int(one["number"])


def window_that_closed_too_early(rows: list[Row]) -> int:
    one = first(rows, "closed", after=60)
    two = first(rows, "closed", after=one["number"])
    one["payload"]["learned"] += two["payload"]["learned"]
    rows.remove(two)
    return int(one["number"])


def dropped_window(rows: list[Row]) -> int:
    row = first(rows, "closed", after=60)
    rows.remove(row)
    return int(row["number"])


def reward_in_a_window(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    row["payload"]["value"] += 0.1
    return int(row["number"])


def refused_reward_that_is_accepted(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: bool(p.get("refused")))
    del row["payload"]["refused"]
    return int(row["number"])


def reward_that_is_refused(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    row["payload"]["refused"], row["key"] = "too_late", None
    return int(row["number"])


def row_of_a_catalogue(rows: list[Row]) -> int:
    row = first(rows, "catalogue")
    row["payload"]["rows"][0][0] *= 1.001
    return int(row["number"])


def time_that_runs_backwards(rows: list[Row]) -> int:
    rows[60]["time"] -= 100.0
    return 61


def snapshot_of_another_state(rows: list[Row]) -> int:
    row = first(rows, "snapshot")
    row["payload"]["number"] -= 1
    return int(row["number"])


WITH_WINDOWS: dict[Tamper, tuple[str, int]] = {
    learned_value: ("learned", 0),
    default_passed_off_as_a_reward: ("learned", 0),
    windows_in_another_order: ("window", 0),
    window_that_closed_too_early: ("window", 0),
    dropped_window: ("window", 9),
    reward_in_a_window: ("learned", 30),
    refused_reward_that_is_accepted: ("reward", 0),
    reward_that_is_refused: ("refused", 0),
    row_of_a_catalogue: ("catalogue", 0),
    time_that_runs_backwards: ("time", 0),
    snapshot_of_another_state: ("snapshot", 0),
}


@pytest.mark.parametrize("tamper", WITH_WINDOWS, ids=lambda tamper: tamper.__name__)
def test_windows_catalogues_and_times_are_held_to_account(tamper: Tamper, folder: Path, tmp_path: Path) -> None:
    touched, report = forged(folder, "window", tamper, tmp_path, rehash=True)
    check, later = WITH_WINDOWS[tamper]
    found = [finding for finding in report.findings if finding.what == check]
    assert found, [*report.findings]
    assert touched <= min(finding.event for finding in found) <= touched + later


def test_a_known_baseline_reward_cannot_be_edited(folder: Path, tmp_path: Path) -> None:
    def lower(rows: list[Row]) -> int:
        row = first(rows, "decision", is_learner)
        row["payload"]["asked"]["baseline_reward"] *= 0.9
        return int(row["number"])

    touched, report = forged(folder, "known", lower, tmp_path, rehash=True)
    assert (touched, "required") in [(finding.event, finding.what) for finding in report.findings]


def test_a_proof_cannot_be_passed_over_as_a_refutation(folder: Path, tmp_path: Path) -> None:
    """For CLUCB there is no such thing; SafeLUCB never plays the learner again after one."""

    def lift(rows: list[Row]) -> int:
        row = first(rows, "decision", is_learner)
        row["payload"]["certificate"]["guaranteed"] = "-inf"
        row["payload"]["source"], row["payload"]["action"] = "baseline", row["payload"]["asked"]["baseline"]
        return int(row["number"])

    touched, report = forged(folder, "known", lift, tmp_path, rehash=True)
    assert (touched, "certificate") in [(finding.event, finding.what) for finding in report.findings]
    _, report = forged(folder, "arrival", lift, tmp_path, rehash=True)
    assert report.findings.counts["refuted"] > 0


def test_both_sides_of_algorithm_2_cannot_be_shifted_together(tmp_path: Path) -> None:
    with open_journal(tmp_path / "unknown.db") as journal:
        played(lambda told: surefoot.CLUCB2(alpha=0.3, nesting="latest", **told), 40, journal=journal)

    def shift(rows: list[Row]) -> int:
        row = first(rows, "decision", is_learner)
        row["payload"]["certificate"]["guaranteed"] += 1.0
        row["payload"]["certificate"]["required"] += 1.0
        return int(row["number"])

    (tmp_path / "forged").mkdir()
    touched, report = forged(tmp_path, "unknown", shift, tmp_path / "forged", rehash=True)
    assert [(finding.event, finding.what) for finding in report.findings] == [(touched, "required")]
