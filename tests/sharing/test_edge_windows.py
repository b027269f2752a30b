"""Rewards with a window at the edge: it closes by the moments of the log, whether the service is there or not."""

import time
from collections.abc import Iterator

import msgspec
import pytest
from surefoot.edge import base_edge_journal
from surefoot.edge.edge_entries import Rewarded

from surefoot.client import ServiceError
from surefoot.errors import DecisionError, DecisionSettledError
from tests.edge.edges import MEANS, ROWS, Shop, crash, findings

WINDOW = 0.2


@pytest.fixture
def windowed(shop: Shop) -> Iterator[Shop]:
    made = Shop(shop.address, shop.keys, shop.folder, shop.name + "w")
    made.create(reward_window=WINDOW, default_reward=0.4)
    yield made
    made.ask("POST", f"/v1/experiments/{made.name}/shards/server/departure")


def test_what_came_is_learned_when_its_window_closes_and_else_the_default(windowed: Shop) -> None:
    with windowed.edge() as edge:
        first, second, third = (edge.decide(ROWS, baseline=0) for _ in range(3))
        assert edge.reward(second.decision_id, 0.5).is_queued
        again, other = (edge.reward(second.decision_id, value) for value in (0.5, 0.6))
        assert (again.is_repeat, again.refused, other.refused) == (True, None, "conflict")
        edge.abandon(third.decision_id)
        assert len(edge._journal.shard.policy.pending) == 2
        time.sleep(WINDOW)
        late = edge.reward(first.decision_id, 9.0)  # whoever waits for the value must not choose which ones count
        assert late.refused == "too_late"
        with pytest.raises(DecisionError, match="open"):
            edge.abandon(first.decision_id)
        with pytest.raises(DecisionSettledError, match="window"):
            edge.void(first.decision_id, 1)
        edge.decide(ROWS, baseline=0)
        assert edge._journal.shard.policy.take_settled() == [(3, None), (1, 0.4), (2, 0.5)]


def test_windows_close_alike_at_the_edge_and_in_its_chain(windowed: Shop) -> None:
    """Or the service would decide otherwise, and refuse the log."""
    with windowed.edge() as edge:
        learner = 0
        for turn in range(60):
            made = edge.decide(ROWS, baseline=0)
            learner += made.source == "learner"
            if turn % 3:
                edge.reward(made.decision_id, float(MEANS[made.action]))
            time.sleep(0.01)
            if turn % 12 == 0:
                edge.renew()
        time.sleep(WINDOW)
        edge.renew()
        edge.renew()
        assert not edge._journal.shard.policy.pending
        edge.leave()
    report = windowed.audit()
    assert findings(report) == []
    tally = report.shards["till"].tally
    assert (tally.decisions, tally.learned, tally.defaults) == (60, 60, 20)
    assert learner > 0


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_window_that_closes_while_nobody_runs_is_closed_by_the_next_process(
    windowed: Shop, monkeypatch: pytest.MonkeyPatch, begins_anew: bool
) -> None:
    if begins_anew:
        monkeypatch.setattr(base_edge_journal, "LARGEST_LOG", 0)
    edge = windowed.edge()
    waits, paid = edge.decide(ROWS, baseline=0), edge.decide(ROWS, baseline=0)
    edge.reward(paid.decision_id, 0.45)
    edge.renew()
    crash(edge)
    time.sleep(WINDOW)
    with windowed.edge() as again:
        assert again.reward(waits.decision_id, 0.9).refused == "too_late"
        again.renew()
        again.renew()
        assert not again._journal.shard.policy.pending
    report = windowed.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.defaults == 1


def test_a_question_that_is_refused_does_not_part_the_edge_from_its_chain(
    windowed: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It closes windows without an entry; a clock that is a little behind then must not undo that."""
    with windowed.edge() as edge:
        made = edge.decide(ROWS, baseline=0)
        opened, now = edge._journal.moment, [0.0]
        monkeypatch.setattr(edge, "_clock", lambda: now[0])
        now[0] = opened + WINDOW
        with pytest.raises(Exception, match="features"):
            edge.decide([[7.0, 7.0]], baseline=0)
        now[0] = opened + WINDOW - 0.01
        assert edge.reward(made.decision_id, 0.9).refused == "too_late"
        edge.decide(ROWS, baseline=0)
        monkeypatch.undo()
        time.sleep(WINDOW)
        edge.renew()
    assert findings(windowed.audit()) == []


def test_a_reward_that_is_stamped_after_its_window_is_refused_by_the_service(windowed: Shop) -> None:
    with windowed.edge() as edge:
        made = edge.decide(ROWS, baseline=0)
        time.sleep(WINDOW)
        forged = Rewarded(made.round, time.time(), 0.9)
        edge._journal._log.append(forged)
        edge._journal.handed += 1
        with pytest.raises(ServiceError, match="too_late"):
            edge.renew()


def test_a_log_with_another_window_than_the_lease_says_is_refused(windowed: Shop) -> None:
    """The window is signed with the lease: an edge that closed its own earlier would choose what is learned."""
    with windowed.edge() as edge:
        assert (edge._head.reward_window, edge._head.default_reward) == (WINDOW, 0.4)
        told = msgspec.structs.replace(edge._journal.bundle.bundle, head=edge._journal.bundle.bundle.head + b" ")
        with pytest.raises(Exception, match="signed"):
            edge._journal.opened(told)
