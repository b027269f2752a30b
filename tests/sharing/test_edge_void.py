"""Rounds of an edge that were not played as decided: said before the reward, counted as played, and audited."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError
from tests.sharing.edges import MEANS, ROWS, Shop, crash, lease_of, merged, play, visit, warmed
from tests.sharing.experiments import findings, of_shard

THETA = np.array([0.8, 0.4])
NAMES = ["blue", "red", "green"]


@pytest.fixture
def shop(new_shop: Callable[..., Shop]) -> Shop:
    return new_shop()


def level_of(edge: Any) -> tuple[float, float]:
    """What the rounds under the lease are worth by the truth, and what is proved of them."""
    amount, policy = lease_of(edge).amounts[0], edge.look(lambda state: state.policy)
    question, level = policy.proved(amount)
    alpha = policy.settings["alpha"]
    own = np.zeros(2)
    for one in of_shard(edge, lambda shard: shard.since):
        played, displaced = np.array(one.played), np.array(one.displaced)
        own += played - (1 - alpha) * displaced if one.is_learner else alpha * displaced
    assert np.allclose(own, question)
    return float(THETA @ question), level


def test_a_round_counts_as_it_was_played(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        edge.leases.look_after = lambda: None
        asked: dict[str, Any] = {"actions": NAMES, "baseline": "blue", "decision_id": "visit-1"}
        answer = edge.decide(ROWS, **asked)
        assert (answer.source, answer.action_id) == ("learner", "red")
        before = level_of(edge)
        assert edge.void("visit-1") is True
        after = level_of(edge)
        assert after[0] < before[0]  # red is better, and was not played
        assert after[1] <= after[0]
        for same in (None, "blue", 0):
            assert edge.void("visit-1", same) is False
        for other in ("green", 1):
            with pytest.raises(DecisionConflictError, match="once"):
                edge.void("visit-1", other)
        again = edge.decide(ROWS, **asked)
        assert (again.is_voided, again.action_id, again.source) == (True, "blue", "baseline")
        assert edge.reward("visit-1", float(MEANS[0])).is_accepted
        edge.leases.renew()
        with pytest.raises((DecisionSettledError, DecisionConflictError)):
            edge.void("visit-1", "green")
        assert play(edge, 5) == 5
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.voided == 1
    assert report.hub.tally.learner == report.shards["till"].tally.learner


def test_what_was_handed_in_stands_and_teaches_nothing(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        answer, kept = visit(edge), visit(edge, features=ROWS[[0]])
        edge.leases.renew()
        assert edge.void(kept.decision_id) is False  # it was the baseline's
        with pytest.raises(DecisionError, match="handed in"):
            edge.void(answer.decision_id)
        edge.abandon(answer.decision_id)
        assert edge.reward(answer.decision_id, 0.8).refused == "abandoned"
        assert edge.reward(kept.decision_id, 0.5).is_accepted
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert (report.shards["till"].tally.voided, report.shards["till"].tally.abandoned) == (0, 1)


def test_a_process_that_goes_on_knows_what_was_voided(shop: Shop) -> None:
    edge: Any = shop.opened()
    warmed(edge)
    edge.leases.look_after = lambda: None
    made, moved = (visit(edge, decision_id=name) for name in ("a", "b"))
    edge.void("b", 2)
    crash(edge)
    with shop.edge() as again:
        assert again.void("b", 2) is False
        assert level_of(again)[1] <= level_of(again)[0]
        again.leases.renew()
        assert again.void("b", 2) is False  # also after it was handed in
        with pytest.raises(DecisionConflictError):
            again.void("b")
        assert again.reward("b", float(MEANS[2])).is_accepted
        assert again.reward("a", float(MEANS[made.action])).is_accepted
        again.leases.renew()
    with shop.edge() as third:
        assert visit(third, decision_id="b").action == 2 != moved.action
    assert findings(shop.audit()) == []


def test_a_shop_that_voids_every_round_stops_its_own_learner_and_takes_nothing_from_others(shop: Shop) -> None:
    """What was to pay for other rounds was not played: the ledger says so, here and where all are added up."""
    with shop.edge("a") as edge, shop.edge("b") as other:
        for _ in range(8):
            play(edge, 15)
            play(other, 15)
            edge.leases.renew()
            other.leases.renew()
        merged(edge, other)
        edge.leases.look_after = lambda: None
        amount, moved = lease_of(edge).amounts[0], 0
        made = list[str]()
        for _ in range(200):
            answer = visit(edge)
            made.append(answer.decision_id)
            if answer.source == "learner":
                moved += 1
                assert edge.void(answer.decision_id, 2)  # the worst of them
        true, proved = level_of(edge)
        assert proved <= true
        assert proved < -amount  # what it was leased did not pay for that, and it does not say so
        assert 0 < moved < 200
        for decision_id in made:
            edge.abandon(decision_id)
        edge.leases.renew()
        other.leases.renew()
        told = shop.ask("GET", f"/v1/experiments/{shop.name}/shards").json()["hub"]
        assert told["leased"]["reward"] <= max(told["pots"]["reward"], lease_of(other).amounts[0])
    assert findings(shop.audit()) == []
