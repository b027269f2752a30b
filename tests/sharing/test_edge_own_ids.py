"""Callers' own ids at the edge: one question is one round, whatever is asked twice, by whomever."""

import time

import msgspec
import numpy as np
import pytest
from surefoot.edge import base_edge_journal, own_ids
from surefoot.edge.edge_entries import Decided, framed, read_handed
from surefoot.edge.edge_messages import HandInEntries
from surefoot.edge.own_ids import OwnIds, OwnRound
from surefoot.records_of_leases import edge_chain

from surefoot.client import ServiceError
from surefoot.errors import DecisionConflictError, DecisionError, InputError
from surefoot.experiment.state import decode
from surefoot.journal import open_journal
from surefoot.rounds.events import DECISION, DecisionRecord
from tests.edge.edges import ACTIONS, MEANS, ROWS, Shop, crash, findings, warmed


def test_the_same_question_again_is_the_same_round(shop: Shop) -> None:
    with shop.edge() as edge:
        made = edge.decide(ACTIONS, baseline="blue", decision_id="visit-1")
        again = edge.decide(ACTIONS, baseline="blue", decision_id="visit-1")
        assert (made.decision_id, made.is_repeat, again.is_repeat) == ("visit-1", False, True)
        told = {"is_repeat": False, "explanation": made.explanation}
        assert msgspec.structs.replace(again, **told) == made
        assert edge.rounds == 1
        for other in ({"baseline": "red"}, {"baseline": 0, "baseline_reward": 0.5}):
            with pytest.raises(DecisionConflictError, match="one question"):
                edge.decide(ACTIONS, decision_id="visit-1", **other)
        with pytest.raises(DecisionConflictError, match="one question"):
            edge.decide(ROWS, baseline=0, decision_id="visit-1")
        assert edge.reward("visit-1", 0.5).is_accepted
        assert edge.reward("visit-1", 0.5).refused == "conflict"
        assert edge.reward("till:1", 0.5).refused == "conflict"
        assert edge.decide(ACTIONS, baseline="blue", decision_id="visit-1").is_repeat
        edge.decide(ROWS, baseline=0, decision_id="visit-2")
        edge.abandon("visit-2")
        with pytest.raises(DecisionError, match="open"):
            edge.abandon("visit-2")
        edge.renew()
    assert findings(shop.audit()) == []


def test_ids_that_the_edge_gives_itself_and_what_is_no_text_are_refused(shop: Shop) -> None:
    with shop.edge() as edge:
        for taken in ("till:1", "till:٣", "", "x" * 201, "\ud800", 7, b"visit"):
            with pytest.raises(InputError, match="decision_id"):
                edge.decide(ROWS, baseline=0, decision_id=taken)  # type: ignore[arg-type]
        assert edge.rounds == 0
        edge.decide(ROWS, baseline=0, decision_id="till:x")
        edge.decide(ROWS, baseline=0, decision_id="x" * 200)
        assert edge.reward("till:2", 0.5).is_accepted


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_process_that_goes_on_knows_the_ids_of_the_one_before(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, begins_anew: bool
) -> None:
    if begins_anew:
        monkeypatch.setattr(base_edge_journal, "LARGEST_LOG", 0)
    edge = shop.edge()
    warmed(edge)
    made = edge.decide(ROWS, baseline=0, decision_id="visit-1")
    assert made.source == "learner"
    edge.renew()
    crash(edge)  # between the decision and its reward
    with shop.edge() as again:
        asked = again.decide(ROWS, baseline=0, decision_id="visit-1")
        assert (asked.round, asked.action, asked.source) == (made.round, made.action, "learner")
        with pytest.raises(DecisionConflictError):
            again.decide(ROWS[:2], baseline=0, decision_id="visit-1")
        assert again.reward("visit-1", float(MEANS[made.action])).is_accepted
        again.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 141


def test_one_id_at_two_edges_is_two_rounds_each_paid_by_its_own_lease(shop: Shop) -> None:
    with shop.edge("a") as one, shop.edge("b") as two:
        for edge in (one, two):
            assert not edge.decide(ROWS, baseline=0, decision_id="visit-1").is_repeat
        assert one.reward("visit-1", 0.5).is_accepted
        assert two.reward("a:1", 0.5).refused == "unknown"
        one.renew()
        two.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.hub.tally.decisions == 2
    with open_journal(str(shop.keys / "hub.db"), read_only=True) as hub:
        for shard in "ab":
            events = hub.view(edge_chain(shop.name, shard)).read()
            kept = [decode(event, DecisionRecord) for event in events if event.kind == DECISION]
            assert [(one.decision_id, one.asked.context) for one in kept] == [
                (f"{shard}:1", {"decision_id": "visit-1"})
            ]


def test_another_id_for_a_round_that_was_taken_in_is_refused(shop: Shop) -> None:
    """Two logs that differ in nothing else."""
    with shop.edge() as edge:
        edge.decide(ROWS, baseline=0, decision_id="visit-1")
        journal, told = edge._journal, edge._journal.bundle.bundle
        part = journal.part(10_000)
        given = HandInEntries(
            token=journal.token, head=told.head, signature=told.signature, follows=journal.follows,
            entries=part.data, sent=time.time(),
        )  # fmt: skip
        answers = [edge._service.hand_in("till", given) for _ in range(2)]  # the first may have been lost
        assert answers[0].hash == answers[1].hash
        other = b"".join(
            framed(msgspec.structs.replace(entry, decision_id="visit-2") if isinstance(entry, Decided) else entry)
            for entry in read_handed(part.data)
        )
        with pytest.raises(ServiceError, match="copy"):
            edge._service.hand_in("till", msgspec.structs.replace(given, entries=other))
        edge.renew()
    assert findings(shop.audit()) == []


def test_old_ids_are_forgotten_once_they_are_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_ids, "REMEMBERED", 10)
    waiting = {3}
    known = OwnIds[OwnRound](waiting.__contains__)

    def rounds() -> list[int]:
        return [own.round for own in known]

    for round_ in range(1, 31):
        known.keep(OwnRound(f"visit-{round_}", b"", round_, 0, "0", False, "guarded", False))
    assert rounds() == [3, *range(21, 31)]
    assert known.find("visit-4") is None
    assert known.find("visit-3") is not None
    again = OwnIds(waiting.__contains__, list(known))
    again.keep(OwnRound("visit-31", b"", 31, 0, "0", False, "guarded", False))
    assert again.find("visit-3") is not None
    monkeypatch.setattr(known, "_sweep_at", 0)
    waiting.clear()
    known.keep(OwnRound("visit-31", b"", 31, 0, "0", False, "guarded", False))
    assert rounds() == list(range(22, 32))


def test_an_id_used_again_after_it_was_forgotten_is_a_new_round_and_stops_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_ids, "REMEMBERED", 2)
    with shop.edge() as edge:
        for visit in ("a", "b", "c", "d", "a"):
            made = edge.decide(ROWS, baseline=0, decision_id=visit)
            assert not made.is_repeat
            edge.reward(visit, float(MEANS[made.action]))
        assert edge.rounds == 5
        edge.renew()
    assert findings(shop.audit()) == []


def test_a_fingerprint_tells_questions_apart() -> None:
    seen = {
        own_ids.fingerprint(rows, names, baseline, known)
        for rows in (ROWS, ROWS[:2], ROWS.T.copy(), np.array([[0.6]]))
        for names in (None, ["a"], ["b"])
        for baseline in (0, 1)
        for known in (None, 0.5, [0.4, 0.5])
    }
    assert len(seen) == 4 * 3 * 2 * 3
