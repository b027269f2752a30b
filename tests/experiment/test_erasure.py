"""Data that must go, can go: erased by id, by person and by age, while the mathematics can still be audited."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.errors import DecisionConflictError, DecisionError, InputError
from surefoot.experiment import Experiment
from surefoot.experiment.export import pair_rounds, row_rounds
from surefoot.journal import Journal, open_journal
from surefoot.rounds.format import pack
from tests.experiment.worlds import Clock, safe_policy

ROWS = np.array([[0.5, 0.2], [0.2, 0.5], [0.6, 0.1]])
NAMES = ["mild-offer", "bold-offer", "wild-offer"]
SECRET = "Ada-Lovelace"


def shop(journal: Journal, clock: Clock | None = None, **settings: Any) -> Experiment:
    return Experiment.create(
        journal, "shop", safe_policy(), mode="guarded", sealed=True, clock=clock or Clock(), **settings
    )


def visit(experiment: Experiment, n: int, person: str = SECRET) -> Any:
    return experiment.decide(
        ROWS * (1 - 0.01 * (n % 7)),
        baseline=0,
        decision_id=f"{person}-visit-{n}",
        actions=NAMES,
        context={"person": person, "note": f"{person} lives in Ockham"},
    )


def play(experiment: Experiment, visits: int, person: str = SECRET) -> None:
    for n in range(visits):
        answer = visit(experiment, n, person)
        if n % 5 == 3:
            experiment.void(answer.decision_id, "wild-offer")
        experiment.reward(answer.decision_id, 0.3 + 0.01 * n)


def raw(journal: Journal, name: str = "shop") -> bytes:
    """Everything that the chain and its newest snapshot hold."""
    newest = journal.latest(name, "snapshot")
    state = None if newest is None else journal.attachment(name, newest.value()["digest"])
    return b"".join(f"{event.key}".encode() + event.payload for event in journal.read(name)) + (state or b"")


def test_the_chain_of_a_sealed_experiment_holds_nothing_of_anybody() -> None:
    with open_journal("memory:") as journal:
        experiment = shop(journal)
        play(experiment, 8)
        visit(experiment, 99)
        experiment.reward(f"{SECRET}-unheard-of", 1.0)
        experiment.snapshot()
        held = raw(journal)
        assert SECRET.encode() not in held
        assert b"offer" not in held
        answer: Any = experiment.find(f"{SECRET}-visit-1")
        record: Any = experiment.round(answer.decision_id)
        assert (answer.decision_id, record.request.actions) == (
            f"{SECRET}-visit-1",
            NAMES,
        )
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
        assert report.tally.texts == 9


def test_callers_notice_nothing_of_it() -> None:
    """The same calls on a sealed and on an open experiment have the same answers."""
    with open_journal("memory:") as journal:
        sealed = shop(journal)
        plain = Experiment.create(journal, "open", safe_policy(), mode="guarded", clock=Clock())
        for n in range(12):
            ours, theirs = visit(sealed, n), visit(plain, n)
            assert msgspec.structs.replace(ours, head=None) == msgspec.structs.replace(theirs, head=None)
            assert visit(sealed, n).is_repeat
            if n % 4 == 1:
                assert sealed.void(ours.decision_id, "wild-offer") == plain.void(theirs.decision_id, "wild-offer")
                moved: Any = sealed.find(ours.decision_id)
                assert moved.action_id == "wild-offer"
            if n % 4 == 2:
                assert sealed.abandon(ours.decision_id) is plain.abandon(theirs.decision_id) is True
                assert sealed.abandon(ours.decision_id) is False
            for value in (0.5, 0.5, 0.7):
                a, b = sealed.reward(ours.decision_id, value), plain.reward(theirs.decision_id, value)
                assert (a.refused, a.is_repeat, a.decision_id) == (b.refused, b.is_repeat, b.decision_id)
        with pytest.raises(DecisionConflictError):
            sealed.decide(ROWS, baseline=1, decision_id=f"{SECRET}-visit-1", actions=NAMES)
        ends = [(one.rounds, one.learned, one.voided, one.margin) for one in (sealed.status(), plain.status())]
        assert ends[0] == ends[1]
        rows = [{k: v for k, v in row.items() if k != "time"} for row in row_rounds(journal, "shop")]
        assert rows == [{k: v for k, v in row.items() if k != "time"} for row in row_rounds(journal, "open")]


def test_what_is_erased_by_id_is_gone_and_the_mathematics_stay() -> None:
    with open_journal("memory:") as journal:
        experiment = shop(journal)
        play(experiment, 20)
        before = pack(experiment.policy_state())
        assert experiment.erase([f"{SECRET}-visit-4"], by="privacy-desk", reason="asked by letter") == 1
        with pytest.raises(DecisionError):
            experiment.find(f"{SECRET}-visit-4")
        assert experiment.reward(f"{SECRET}-visit-4", 0.5).refused == "unknown"
        assert pack(experiment.policy_state()) == pack(Experiment.open(journal, "shop").policy_state()) == before
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
        assert [(erased.by, erased.reason, len(erased.events)) for _, erased in report.tally.erasures] == [
            ("privacy-desk", "asked by letter", 1)
        ]
        assert "privacy-desk" in str(report.as_dict()["erasures"])
        row = list(row_rounds(journal, "shop"))[4]
        assert row["decision_id"] != f"{SECRET}-visit-4"
        assert row["decision_id"].startswith(f"{row['event']:011d}.")
        assert row["reward"] == pytest.approx(0.34)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_a_person_is_erased_to_the_last_byte(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal("memory:" if kind == "memory" else path) as journal:
        experiment = shop(journal, snapshot_every=10)
        play(experiment, 12)
        play(experiment, 12, person="Babbage")
        assert experiment.erase(person=SECRET, by="privacy-desk") == 12
        assert experiment.erase(person=SECRET) == 0
        assert [row["decision_id"][:7] for row in row_rounds(journal, "shop")].count("Babbage") == 12
        assert audit(journal, "shop").is_clean
        files = list(tmp_path.iterdir())
        assert all(SECRET.encode() not in file.read_bytes() for file in files)
        assert kind == "memory" or any(b"Babbage" in file.read_bytes() for file in files)


def test_retention_erases_by_age() -> None:
    with open_journal("memory:") as journal:
        clock = Clock()
        experiment = shop(journal, clock)
        for n in range(30):
            clock.now += 10.0
            visit(experiment, n)
        edge = experiment.find(f"{SECRET}-visit-12").time
        assert experiment.erase(before=edge, by="retention") == 12
        assert experiment.erase(before=edge, by="retention") == 0
        assert experiment.find(f"{SECRET}-visit-12").round == 13
        with pytest.raises(DecisionError):
            experiment.find(f"{SECRET}-visit-11")
        assert audit(journal, "shop").is_clean


def test_more_texts_than_one_transaction_takes_are_erased() -> None:
    with open_journal("memory:") as journal:
        experiment = Experiment.create(journal, "shop", surefoot.UCB(arms=2), sealed=True)
        for _ in range(21):
            experiment.decide_all([{"baseline": 0, "context": {"person": SECRET}} for _ in range(100)])
        assert experiment.erase(person=SECRET) == 2100
        assert len([event for event in journal.read("shop") if event.kind == "erased"]) == 3


def test_an_open_round_is_settled_by_its_reference_once_its_id_is_erased() -> None:
    with open_journal("memory:") as journal:
        experiment = shop(journal)
        visit(experiment, 0)
        visit(experiment, 1)
        assert experiment.status().held_up_by in (None, f"{SECRET}-visit-0")
        experiment.erase([f"{SECRET}-visit-0"])
        (ref,) = [event.value()["decision_id"] for event in journal.read("shop") if event.number == 2]
        assert experiment.reward(ref, 0.5).is_accepted
        assert audit(journal, "shop").is_clean


def test_a_bad_erasure_changes_nothing() -> None:
    with open_journal("memory:") as journal:
        experiment, plain = shop(journal), Experiment.create(journal, "open", safe_policy())
        visit(experiment, 0)
        head = journal.head("shop")
        with pytest.raises(DecisionError, match="must exist to be erased"):
            experiment.erase([f"{SECRET}-visit-0", "nobody"])
        with pytest.raises(InputError, match="at most 400"):
            experiment.erase(["x"] * 401)
        with pytest.raises(InputError, match="Only a sealed experiment"):
            plain.erase(["x"])
        assert journal.head("shop") == head
        assert experiment.find(f"{SECRET}-visit-0").round == 1


def test_a_guard_is_sealed_and_erased_too() -> None:
    with open_journal("memory:") as journal:
        guard = surefoot.Guard(alpha=0.1, delta=0.05, seed=3, unit_window=40)
        models = Experiment.create(journal, "models", guard, mode="guarded", sealed=True, clock=Clock())
        for n in range(60):
            unit = f"{SECRET}-{n % 9}"
            asked: dict[str, Any] = {
                "baseline": {"letter": f"to {unit}"},
                "proposal": {"mail": f"to {unit}"},
                "unit": unit,
            }
            answer = models.decide(decision_id=f"{unit}-{n}", **asked)
            assert answer.action in (asked["baseline"], asked["proposal"])
            assert answer.unit == unit
            assert models.decide(decision_id=f"{unit}-{n}", **asked).is_repeat
            if n == 7:
                models.void(answer.decision_id, {"call": unit})
                assert models.find(answer.decision_id).action == {"call": unit}
                assert models.void(answer.decision_id, {"call": unit}) is False
            models.reward(answer.decision_id, 0.5)
        assert models.status().guard.visits > 0  # type: ignore[union-attr]
        models.snapshot()
        assert SECRET.encode() not in raw(journal, "models")
        before = list(pair_rounds(journal, "models"))
        assert before[7]["played"] == {"call": f"{SECRET}-7"}
        assert models.erase(person=f"{SECRET}-7", by="privacy-desk") == 7
        report = audit(journal, "models")
        assert report.is_clean, list(report.findings)
        assert SECRET + "-7" not in str(list(pair_rounds(journal, "models")))
        assert pack(models.policy_state()) == pack(Experiment.open(journal, "models").policy_state())
        assert models.decide_all([{"baseline": "a", "proposal": "b", "unit": f"{SECRET}-1"}])[0].is_visit  # type: ignore[union-attr]


@pytest.mark.parametrize("how", ["edited", "removed"])
def test_a_text_that_was_edited_or_removed_without_a_word_is_found(how: str, tmp_path: Path) -> None:
    import sqlite3
    from contextlib import closing

    path = tmp_path / "shop.db"
    with open_journal(path) as journal:
        play(shop(journal), 6)
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        statement = (
            "UPDATE private SET text = replace(text, 'Ockham', 'London') WHERE number = 4"
            if how == "edited"
            else "DELETE FROM private WHERE number = 4"
        )
        connection.execute(statement)
    with open_journal(path, read_only=True) as journal:
        assert [(one.event, one.what) for one in audit(journal, "shop").findings] == [(4, "private")]
