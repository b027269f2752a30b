"""An edge decides by itself, and what it did arrives later, counts once and is audited."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot.client import ServiceError
from surefoot.errors import DecisionError, InputError, JournalUnavailableError, ModeError
from tests.sharing.edges import (
    ROWS,
    Shop,
    Way,
    chain_of,
    crash,
    lease_of,
    lets_the_learner_play,
    merged,
    play,
    reward_of,
    visit,
    warmed,
)
from tests.sharing.experiments import GUARD, GuardWorld, findings
from tests.sharing.shards import ALPHA

RESERVE = GUARD["reserve"]


def test_an_edge_learns_with_the_others_and_is_audited(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop()
    with shop.edge("a") as one, shop.edge("b") as two:
        for _ in range(6):
            play(one, 15)
            play(two, 10)
            one.leases.renew()
            two.leases.renew()
        merged(one, two)
        assert play(one, 15) == 15
        two.decide(surefoot.Catalogue(ROWS), actions=["blue", "red", "green"], baseline="blue")
        two.leases.renew()
    assert {name: shard["rounds"] for name, shard in shop.shards.items()} == {"a": 90, "b": 61, "server": 0}
    report = shop.audit()
    assert report.is_clean
    assert {name: one.tally.decisions for name, one in report.shards.items()} == {"a": 90, "b": 61, "server": 0}
    assert report.hub.tally.learner > 0


def test_a_guard_plays_the_proposal_within_its_lease_and_the_bank_earns(new_shop: Callable[..., Shop]) -> None:
    shop, world = new_shop("pair", settings={"ramp": "auto"}), GuardWorld(1)
    with shop.edge() as edge:
        amount = lease_of(edge).amounts[0]
        assert 0.0 < amount < RESERVE
        learner = 0
        for _ in range(12):
            learner += world.play(edge, 50, 0.9, 0.5)
            merged(edge)
        assert learner > 100
        assert lease_of(edge).amounts[0] > 1.5 * amount
        assert world.least >= -RESERVE
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 600
    assert report.hub.tally.learner == report.shards["till"].tally.learner == learner


def test_what_an_edge_predicts_from_contexts_is_taken_as_it_was_recorded(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop("pair", settings={"ramp": "free"})
    with shop.edge() as edge:
        for number in range(150):
            answer = visit(edge, context={"device": ("phone", "desk")[number % 2]})
            edge.reward(answer.decision_id, (0.1, 0.9)[number % 2])
        edge.leases.renew()
        own, theirs = chain_of(edge), shop.chain()
    assert any(b'"forecast"' in event.payload for event in own)
    assert [event.hash for event in theirs] == [event.hash for event in own[: len(theirs)]]
    assert findings(shop.audit()) == []


def test_while_the_service_is_away_a_lease_is_spent_and_then_only_what_is_free(new_shop: Callable[..., Shop]) -> None:
    shop, world, way = new_shop("pair"), GuardWorld(2), Way()
    with shop.edge(way=way) as edge:
        way.is_cut = True
        shares = [world.visit(edge, 0.0, 1.0, is_paid=False, proposal="new").share for _ in range(60)]
        assert shares[0] > 0.9
        assert shares[-1] == pytest.approx(ALPHA, abs=1e-6)
        assert world.least == pytest.approx(-lease_of(edge).amounts[0])  # all of it, and no more
        way.is_cut = False
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_an_edge_goes_on_while_the_service_is_away_and_reports_afterwards(shop: Shop) -> None:
    way = Way()
    with shop.edge(way=way) as edge:
        warmed(edge)
        lease = lease_of(edge).number
        way.is_cut = True
        with pytest.raises(JournalUnavailableError, match="reached"):
            edge.leases.renew()
        learner = play(edge, 200)
        assert learner == 200 or (shop.kind == "pair" and learner > 0)
        assert "reached" in str(edge.leases.error)
        assert lease_of(edge).number == lease
        way.is_cut = False
        assert edge.leases.renew()
        assert str(edge.leases.error) == "None"
        assert lease_of(edge).number == lease + 1
        play(edge, 5)
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 345


def test_without_the_service_an_edge_opens_its_journal_again_and_goes_on(shop: Shop) -> None:
    way = Way()
    with shop.edge(way=way) as edge:
        warmed(edge)
        waits = visit(edge)
        way.is_cut = True
    with shop.edge(way=way) as again:
        assert again.status().rounds == 141
        play(again, 10)
        reward = reward_of(again, waits)
        assert again.reward(waits.decision_id, reward).is_accepted
        assert again.reward(waits.decision_id, reward).is_repeat
        way.is_cut = False
        again.leases.renew()
    assert findings(shop.audit()) == []


def test_an_answer_that_is_lost_counts_once(shop: Shop) -> None:
    way = Way()
    with shop.edge(way=way) as edge:
        warmed(edge)
        for _ in range(3):
            way.loses_answers = True
            with pytest.raises(JournalUnavailableError):
                edge.leases.renew()
            play(edge, 3)
        way.loses_answers = False
        edge.leases.renew()
        # Now the answer with the new lease is lost: the baseline plays until it is here.
        ended, lossy = lease_of(edge).number, Lossy(edge)
        with pytest.raises(JournalUnavailableError):
            edge.leases.renew()
        assert play(edge, 4) == 0
        lossy.restore()
        edge.leases.renew()
        assert lease_of(edge).number == ended + 1
        play(edge, 3)
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 156


class Lossy:
    """Loses what the hub answers to a hand-in."""

    def __init__(self, edge: Any) -> None:
        self.hub, self.take = edge.leases.hub, edge.leases.hub.take
        self.hub.take = self.lost

    def lost(self, *args: Any, **kwargs: Any) -> Any:
        self.take(*args, **kwargs)
        raise JournalUnavailableError("The answer was lost.")

    def restore(self) -> None:
        self.hub.take = self.take


def test_a_lease_that_expired_plays_the_baseline(shop: Shop) -> None:
    ahead = [0.0]
    with shop.edge(clock=lambda: time.time() + ahead[0]) as edge:
        warmed(edge)
        ahead[0] = lease_of(edge).expires - time.time() + 1.0
        answer = visit(edge)
        assert (answer.source, answer.is_held) == ("baseline", True)
        assert play(edge, 20) == 0


def test_who_pauses_the_experiment_stops_its_edges_with_their_next_lease(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        path = f"/v1/experiments/{shop.name}/mode"
        assert shop.ask("PUT", path, {"mode": "paused", "reason": "enough"}).status_code == 200
        assert visit(edge, decision_id="before").mode == "guarded"
        edge.leases.renew()
        answer = visit(edge, decision_id="after")
        assert (answer.mode, answer.source, answer.is_held) == ("paused", "baseline", True)
        assert play(edge, 20) == 0
        with pytest.raises(ModeError, match="at the service"):
            edge.set_mode("guarded")
        shop.ask("PUT", path, {"mode": "guarded", "reason": "again"})
        edge.leases.renew()
        assert lets_the_learner_play(edge)
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_an_edge_leaves_for_good_once_nothing_is_open(shop: Shop) -> None:
    with shop.edge() as edge:
        warmed(edge)
        answer = visit(edge)
        with pytest.raises(DecisionError, match="open"):
            edge.leases.leave()
        edge.reward(answer.decision_id, reward_of(edge, answer))
        edge.leases.leave()
        assert play(edge, 20) == 0
    till = shop.shards["till"]
    assert (till["amounts"], till["is_away"]) == ({"reward": 0.0}, True)
    assert findings(shop.audit()) == []


def test_an_edge_in_the_background_renews_by_itself(shop: Shop) -> None:
    with shop.edge(in_background=True, every=20, seconds=0.05) as edge:
        deadline = time.monotonic() + 30.0
        while lease_of(edge).number < 6 or lease_of(edge).merged < 60:
            play(edge, 5)
            assert time.monotonic() < deadline
            time.sleep(0.02)
        edge.leases.renewal_lock.acquire()  # so that none is under way when the journal is closed
    assert findings(shop.audit()) == []


def test_an_experiment_with_one_ledger_has_no_edges(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop()
    shop.name += "one"
    shop.ask("POST", "/v1/experiments", {"name": shop.name, "settings": {"arms": 2}, "policy": "UCB"})
    with pytest.raises(ServiceError, match="one ledger"):
        shop.opened()


def test_a_killed_edge_goes_on_with_the_coins_that_it_had(new_shop: Callable[..., Shop]) -> None:
    """Whoever ends the process cannot have a coin drawn again."""
    shop, world = new_shop("pair"), GuardWorld(3)
    edge = shop.opened()
    asked: list[dict[str, Any]] = [{"proposal": "new", "decision_id": f"visit-{n}"} for n in range(30)]
    made = [world.visit(edge, 0.9, 0.5, **one) for one in asked]
    kept = [event.hash for event in chain_of(edge)]
    crash(edge)
    copy = shop.folder / "other.log"
    copy.write_bytes(shop.journal_of("till").read_bytes())
    with shop.edge() as again:
        for one, known in zip(asked, made, strict=True):
            repeat = again.decide(baseline="old", **one)
            assert repeat.is_repeat
            assert (repeat.source, repeat.share, repeat.probability) == (known.source, known.share, known.probability)
        assert [event.hash for event in chain_of(again)] == kept
        next_ = again.decide(baseline="old", proposal="new", decision_id="visit-30")
        drawn: Any = again.round("visit-30")
        assert drawn.coins == again.round("visit-29").coins
        assert (drawn.draw < next_.share) == (next_.source == "learner")
        again.leases.renew()
    assert findings(shop.audit()) == []


def test_void_is_intention_to_treat_and_may_come_after_the_hand_in(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop("pair")
    with shop.edge() as edge:
        made = [visit(edge, decision_id=f"visit-{n}") for n in range(12)]
        banks = edge.policy_state()["banks"].tolist()
        learner = next((one for one in made if one.source == "learner"), made[0])
        instead = "old" if learner.source == "learner" else "new"
        assert edge.void(learner.decision_id, instead) is True
        assert edge.policy_state()["banks"].tolist() == banks
        other = next(one for one in made if one is not learner)
        edge.leases.renew()  # handed in
        assert edge.void(other.decision_id, {"third": 1}) is True
        for one in made:
            assert edge.reward(one.decision_id, 0.5).is_accepted
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.voided == 2


def test_one_id_at_two_edges_is_two_rounds_each_paid_by_its_own_lease(shop: Shop) -> None:
    with shop.edge("a") as one, shop.edge("b") as two:
        for edge in (one, two):
            assert not visit(edge, decision_id="visit-1").is_repeat
        assert one.reward("visit-1", 0.5).is_accepted
        assert two.reward("visit-2", 0.5).refused == "unknown"
        one.leases.renew()
        two.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.hub.tally.decisions == 2


def test_an_edge_of_another_kind_of_request_is_told(shop: Shop, tmp_path: Path) -> None:
    with shop.edge() as edge:
        wrong: dict[str, Any] = {"baseline": "old", "proposal": "new"} if shop.kind == "rows" else {"features": ROWS}
        with pytest.raises(InputError):
            edge.decide(**wrong)
        assert edge.status().rounds == 0
