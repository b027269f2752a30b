"""Rewards with a window at the edge: it closes by the times of its chain, whether the service is there or not."""

import time
from collections.abc import Callable
from typing import Any

import pytest

from surefoot.client import ServiceError
from surefoot.errors import DecisionSettledError
from surefoot.rounds import encode
from surefoot.rounds.events import REWARD, Reward
from tests.sharing.edges import ROWS, Shop, crash, reward_of, visit
from tests.sharing.experiments import findings

WINDOW = 0.2
METRICS = {
    "revenue": {"kind": "floor", "low": 0.0, "high": 2.0, "alpha": 0.1, "reserve": 4.0, "default": 0.5},
    "refunds": {"kind": "ceiling", "low": 0.1, "high": 1.0, "alpha": 0.2, "reserve": 3.0},
}


@pytest.fixture
def windowed(new_shop: Callable[..., Shop]) -> Shop:
    return new_shop(reward_window=WINDOW, default_reward=0.4)


def test_what_came_is_learned_when_its_window_closes_and_else_the_default(windowed: Shop) -> None:
    with windowed.edge() as edge:
        edge.leases.look_after = lambda: None
        first, second, third = (visit(edge) for _ in range(3))
        assert edge.reward(second.decision_id, 0.5).is_accepted
        again, other = (edge.reward(second.decision_id, value) for value in (0.5, 0.6))
        assert (again.is_repeat, again.refused, other.refused) == (True, None, "conflict")
        edge.abandon(third.decision_id)
        assert edge.status().pending == 2
        time.sleep(WINDOW)
        late = edge.reward(first.decision_id, 9.0)  # whoever waits for the value must not choose which ones count
        assert late.refused == "too_late"
        with pytest.raises(DecisionSettledError):
            edge.abandon(first.decision_id)
        with pytest.raises(DecisionSettledError, match="window"):
            edge.void(first.decision_id, 1)
        visit(edge)
        settled = edge.policy_state()["settled"]
        assert [tuple(one) for one in settled] == [(3, None), (1, {"reward": 0.4}), (2, {"reward": 0.5})]


def test_windows_close_alike_at_the_edge_and_at_the_service(windowed: Shop) -> None:
    """Or the service would decide otherwise, and refuse the chain."""
    with windowed.edge() as edge:
        learner = 0
        for turn in range(60):
            answer = visit(edge)
            learner += answer.source == "learner"
            if turn % 3:
                edge.reward(answer.decision_id, reward_of(edge, answer))
            time.sleep(0.01)
            if turn % 12 == 0:
                edge.leases.renew()
        time.sleep(WINDOW)
        edge.close_windows()
        edge.leases.leave()
    report = windowed.audit()
    assert findings(report) == []
    tally = report.shards["till"].tally
    assert (tally.decisions, tally.learned, tally.defaults) == (60, 60, 20)
    assert learner > 0


def test_a_window_that_closes_while_nobody_runs_is_closed_by_the_next_process(windowed: Shop) -> None:
    edge = windowed.opened()
    waits, paid = visit(edge), visit(edge)
    edge.reward(paid.decision_id, 0.45)
    edge.leases.renew()
    crash(edge)
    time.sleep(WINDOW)
    with windowed.edge() as again:
        assert again.reward(waits.decision_id, 0.9).refused == "too_late"
        again.leases.renew()
        assert again.status().pending == 0
    report = windowed.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.defaults == 1


def test_a_request_that_is_refused_does_not_part_the_edge_from_its_chain(windowed: Shop) -> None:
    """It closes windows, and a clock that is a little behind then must not undo that."""
    ahead = [0.0]
    with windowed.edge(clock=lambda: time.time() + ahead[0]) as edge:
        answer = visit(edge)
        ahead[0] = WINDOW + 0.1
        with pytest.raises(Exception, match="features"):
            edge.decide([[7.0, 7.0]], baseline=0)
        ahead[0] = 0.0
        assert edge.reward(answer.decision_id, 0.9).refused == "too_late"
        edge.decide(ROWS, baseline=0)
        time.sleep(WINDOW + 0.2)
        edge.leases.renew()
    assert findings(windowed.audit()) == []


def test_a_reward_that_is_stamped_after_its_window_is_refused_by_the_service(windowed: Shop) -> None:
    with windowed.edge() as edge:
        edge.leases.look_after = lambda: None
        answer = visit(edge)
        time.sleep(WINDOW)
        record = Reward(decision_id=answer.decision_id, values={"reward": 0.9})
        # Past the verb, which would have closed the window first.
        edge.journal.transact(edge.name, lambda it: it.append(REWARD, encode(record), time=time.time(), key="r:x"))
        with pytest.raises(ServiceError, match="too_late"):
            edge.leases.hub.prepare(edge.journal.view(edge.name))


def test_windows_metrics_predictions_and_own_ids_of_a_guard_come_through(new_shop: Callable[..., Shop]) -> None:
    settings = {"alpha": None, "reserve": 0.0, "metrics": METRICS}
    shop = new_shop("pair", settings=settings, reward_window=2 * WINDOW)
    edge: Any = shop.opened()
    for turn in range(12):
        asked = {"revenue": 0.7} if turn % 2 else {"revenue": 0.7, "refunds": 0.2}
        answer = edge.decide(baseline=["old", 1], proposal={"new": turn}, prediction=asked, decision_id=f"visit-{turn}")
        if turn % 3:
            assert edge.reward(answer.decision_id, {"revenue": 1.0, "refunds": 0.1}).is_accepted
            assert edge.reward(answer.decision_id, {"revenue": 1.0, "refunds": 0.1}).is_repeat
            assert edge.reward(answer.decision_id, {"revenue": 1.5, "refunds": 0.1}).refused == "conflict"
        if turn == 5:
            edge.leases.renew()
    crash(edge)
    time.sleep(2 * WINDOW)
    with shop.edge() as again:
        request: dict[str, Any] = {
            "baseline": ["old", 1],
            "proposal": {"new": 0},
            "prediction": {"revenue": 0.7, "refunds": 0.2},
        }
        assert again.decide(**request, decision_id="visit-0").is_repeat
        assert again.reward("visit-0", {"revenue": 1.0}).refused == "too_late"
        again.leases.renew()
        assert again.status().pending == 0
        again.leases.leave()
    report = shop.audit()
    assert findings(report) == []
    tally = report.shards["till"].tally
    assert (tally.decisions, tally.defaults) == (12, 4)
