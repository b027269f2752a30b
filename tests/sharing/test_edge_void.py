"""Rounds of an edge that were not played as decided: said before the reward, counted as played, and audited."""

import numpy as np
import pytest
from surefoot.edge import Edge, base_edge_journal
from surefoot.edge.edge_entries import VoidedEntry

from surefoot.client import ServiceError
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError
from tests.edge.edges import ACTIONS, MEANS, ROWS, Shop, crash, findings, play, warmed

THETA = np.array([0.8, 0.4])


def level_of(edge: Edge) -> tuple[float, float]:
    """What the rounds under the lease are worth by the truth, and what is proved of them."""
    policy = edge._journal.shard.policy
    question, level = policy.proved(edge._journal.shard.lease.amount)
    alpha = policy.settings["alpha"]
    own = sum(
        (made.played - (1 - alpha) * made.displaced if made.is_learner else alpha * made.displaced)
        for made in edge._journal.shard._since
    )
    assert np.allclose(own, question)
    return float(THETA @ question), level


def test_a_round_counts_as_it_was_played(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        made = edge.decide(ACTIONS, baseline="blue", decision_id="visit-1")
        assert (made.source, made.action_id) == ("learner", "red")
        before = level_of(edge)
        assert edge.void("visit-1") is True
        after = level_of(edge)
        assert after[0] < before[0]  # red is better, and was not played
        assert after[1] <= after[0]
        assert edge.void("visit-1") is False
        assert edge.void("visit-1", "blue") is False
        assert edge.void("visit-1", 0) is False
        for other in ("green", 1):
            with pytest.raises(DecisionConflictError, match="once"):
                edge.void("visit-1", other)
        again = edge.decide(ACTIONS, baseline="blue", decision_id="visit-1")
        assert (again.is_voided, again.action_id, again.source) == (True, "blue", "baseline")
        assert edge.reward("visit-1", float(MEANS[0])).is_accepted
        edge.renew()
        with pytest.raises(DecisionSettledError):
            edge.void("visit-1")
        assert play(edge, 5) == 5
        edge.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.voided == 1
    assert report.hub.tally.learner == report.shards["till"].tally.learner


def test_who_knows_the_reward_moves_nothing(shop: Shop) -> None:
    """Or bad rounds of the learner would be the baseline's afterwards."""
    with shop.edge() as edge:
        warmed(edge)
        made = edge.decide(ROWS, baseline=0)
        edge.reward(made.decision_id, 0.1)
        with pytest.raises(DecisionSettledError, match="choose the data"):
            edge.void(made.decision_id)
        edge._journal._log.append(VoidedEntry(made.round, edge._journal.moment, 0))  # and past the client
        edge._journal.handed += 1
        with pytest.raises(ServiceError, match="reward"):
            edge.renew()


def test_what_was_handed_in_stands_and_teaches_nothing(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        made, kept = edge.decide(ROWS, baseline=0), edge.decide(ROWS[[0]], baseline=0)
        edge.renew()
        assert edge.void(kept.decision_id) is False  # it was the baseline's
        with pytest.raises(DecisionError, match="handed in"):
            edge.void(made.decision_id)
        edge.abandon(made.decision_id)
        assert edge.reward(made.decision_id, 0.8).refused == "conflict"
        assert edge.reward(kept.decision_id, 0.5).is_accepted
        edge.renew()
    report = shop.audit()
    assert findings(report) == []
    assert (report.shards["till"].tally.voided, report.shards["till"].tally.abandoned) == (0, 1)


def test_what_was_never_offered_or_decided_is_refused(shop: Shop) -> None:
    with shop.edge() as edge:
        edge.decide(ACTIONS, baseline="blue", decision_id="visit-1")
        unsent = edge.unsent
        for action in ("yellow", 3, -1, True, 1.5):
            with pytest.raises(InputError):
                edge.void("visit-1", action)  # type: ignore[arg-type]
        for unknown in ("visit-2", "till:2"):
            with pytest.raises(DecisionError, match="none has the id"):
                edge.void(unknown)
        assert edge.void("visit-1") is False
        assert edge.unsent == unsent


@pytest.mark.parametrize("begins_anew", [False, True])
def test_a_process_that_goes_on_knows_what_was_voided(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, begins_anew: bool
) -> None:
    if begins_anew:
        monkeypatch.setattr(base_edge_journal, "LARGEST_LOG", 0)
    edge = shop.edge()
    warmed(edge)
    made, moved = (edge.decide(ROWS, baseline=0, decision_id=visit) for visit in ("a", "b"))
    edge.void("b", 2)
    crash(edge)
    with shop.edge() as again:
        assert again.void("b", 2) is False
        assert level_of(again)[1] <= level_of(again)[0]
        again.renew()
        assert again.void("b", 2) is False  # also after it was handed in
        with pytest.raises(DecisionConflictError):
            again.void("b")
        assert again.reward("b", float(MEANS[2])).is_accepted
        assert again.reward("a", float(MEANS[made.action])).is_accepted
        again.renew()
        again.renew()
    with shop.edge() as third:
        assert third.decide(ROWS, baseline=0, decision_id="b").action == 2 != moved.action
    assert findings(shop.audit()) == []


def test_a_shop_that_voids_every_round_stops_its_own_learner_and_takes_nothing_from_others(shop: Shop) -> None:
    """What was to pay for other rounds was not played: the ledger says so, here and where all are added up."""
    with shop.edge("a") as edge, shop.edge("b") as other:
        for _ in range(8):
            play(edge, 15)
            play(other, 15)
            edge.renew()
            other.renew()
        amount = edge._journal.shard.lease.amount
        moved = 0
        for _ in range(200):
            made = edge.decide(ROWS, baseline=0)
            if made.source == "learner":
                moved += 1
                assert edge.void(made.decision_id, 2)  # the worst of them
        true, proved = level_of(edge)
        assert proved <= true
        assert proved < -amount  # what it was leased did not pay for that, and it does not say so
        assert 0 < moved < 200
        for round_ in edge._journal.shard.policy.pending:
            edge.abandon(f"a:{round_}")
        edge.renew()
        other.renew()
        found = shop.ask("GET", f"/v1/experiments/{shop.name}/shards").json()
        assert found["leased"] <= max(found["pot"], other._journal.shard.lease.amount)
    assert findings(shop.audit()) == []
