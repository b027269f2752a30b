"""What a shard, its coordinator and its hub refuse; what is refused changes nothing."""

import math
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.audit import audit_shards
from surefoot.errors import AssumptionError, ConfigError, DecisionError, DecisionSettledError, InputError
from surefoot.experiment import Experiment, create_shared
from surefoot.experiment.turn import Turn
from surefoot.journal import Journal
from surefoot.rounds.events import CORRECTED, Corrected, RowsHanded, RowsHandIn
from surefoot.sharing import hub as hub_module
from tests.sharing.experiments import RESERVE, Fleet
from tests.sharing.shards import SETTINGS, Shard, World, leave, new_coordinator


def handed_in(hub: Journal) -> list[Any]:
    return [msgspec.json.decode(event.payload) for event in hub.read("shop") if event.kind == "handed_in"]


@pytest.mark.parametrize("way", ["void", "fallback"])
def test_the_reward_of_a_round_that_was_not_played_as_decided_is_not_learned(
    tmp_path: Path, hub: Journal, way: str
) -> None:
    fleet, world = Fleet(tmp_path, hub, constraint=RESERVE), World(np.random.default_rng(1))
    shop = fleet.join("a", every=10**6)
    assert shop.decide(world.rows, baseline=0, decision_id="x").source == "learner"
    if way == "void":
        with pytest.raises(DecisionError, match=r"handed in.* Abandon it"):
            shop.void("x")
        assert shop.status().abandoned == 0  # a call that raises has changed nothing
        shop.abandon("x", reason="It was not played.")
    else:
        shop.book(world.rows, baseline=0, decision_id="x")
    assert shop.known_state is not None  # the next decision need not replay the chain
    assert not shop.reward("x", 0.5).is_accepted
    shop.leases.renew()
    assert [entry for given in handed_in(hub) for entry in given["rewards"]] == [[1, None]]
    assert fleet.audit().is_clean
    fleet.close()


changed = msgspec.structs.replace
ROW, OTHER = [0.6, 0.1, 0.0], [0.2, 0.3, 0.0]
ROUND = RowsHanded(number=1, moment=0.5, is_learner=True, played=OTHER, displaced=ROW)
HONEST: dict[str, Any] = {
    "shard": "a", "lease": 1, "token": "", "rounds": [ROUND], "rewards": [(1, {"reward": 0.5})], "level": -0.4,
    "question": [b - 0.9 * a for a, b in zip(ROW, OTHER, strict=True)], "through": 1.0,
}  # fmt: skip
BAD: dict[str, dict[str, Any]] = {
    "a level that is no number": {"level": math.nan},
    "a level without end": {"level": math.inf},
    "a level beyond the ball": {"level": 1.0},
    "a level below the lease": {"level": -100.0},
    "another question": {"question": [100.0, 0.0, 0.0], "level": 90.0},
    "a question of another dimension": {"question": [0.0, 0.0]},
    "a question that is no number": {"question": [math.nan, 0.0, 0.0]},
    "a row of another dimension": {"rounds": [changed(ROUND, played=[0.0, 0.0])]},
    "a row that is no number": {"rounds": [changed(ROUND, played=[math.nan] * 3)]},
    "a baseline reward that is no number": {"rounds": [changed(ROUND, baseline_reward=math.nan)]},
    "a reward that is no number": {"rewards": [(1, {"reward": math.nan})]},
    "a reward of another metric": {"rewards": [(1, {"clicks": 0.5})]},
    "a reward of a round to come": {"rewards": [(2, {"reward": 0.5})]},
    "an endless moment": {"through": math.inf},
    "rounds that were moved and cost no number": {"moved": math.nan},
    "rounds that were moved and gained": {"moved": -0.1},
    "rounds that were moved and cost more than they can": {"moved": 5.0, "level": -100.0},
}


@pytest.mark.parametrize("bad", BAD.values(), ids=BAD.keys())
def test_a_hand_in_that_cannot_be_true_is_refused_where_it_is_handed_in(bad: dict[str, Any]) -> None:
    coordinator = new_coordinator(skew=10.0, constraint=RESERVE)
    coordinator.join("a", now=0.0)
    before = coordinator.pot.totals(), coordinator.leased, 0
    with pytest.raises(InputError):
        coordinator.take(RowsHandIn(**{**HONEST, **bad}), now=1.0)
    assert (coordinator.pot.totals(), coordinator.leased, coordinator.members.all["a"].rounds) == before
    assert coordinator.take(RowsHandIn(**HONEST), now=1.0)[0].number == 2


def test_a_lease_is_not_granted_twice() -> None:
    coordinator = new_coordinator(constraint=RESERVE)
    shard = Shard(coordinator.join("a", now=0.0))
    with pytest.raises(InputError, match="handed in"):
        coordinator.grant("a")
    shard.renew(coordinator.take(shard.hand_in(1.0), now=1.0))
    assert coordinator.leased <= coordinator.pot.totals()


def test_a_shard_that_has_left_hands_in_nothing_more() -> None:
    coordinator = new_coordinator(constraint=RESERVE)
    shard = Shard(coordinator.join("berlin", now=0.0))
    given = shard.hand_in(1.0)
    leave(coordinator, given, now=1.0)
    with pytest.raises(InputError, match="none any more"):
        coordinator.take(given, now=1.0)
    assert coordinator.leased == (0.0,)


def test_two_clocks_differ_by_the_skew_at_most() -> None:
    coordinator = new_coordinator(skew=0.9)
    ahead, behind = (Shard(coordinator.join(name, now=0.0)) for name in ("ahead", "behind"))
    for shard, offset in ((ahead, 0.5), (behind, -0.5)):  # 1.0 from each other
        with pytest.raises(AssumptionError, match="half of skew"):
            coordinator.take(shard.hand_in(20.0 + offset), now=20.0)


def test_bad_values_are_refused_in_words() -> None:
    coordinator = new_coordinator()
    shard = Shard(coordinator.join("a", now=0.0))
    names: list[Any] = [[], 5, "", "a\n", None, "x" * 201]
    for name in names:
        with pytest.raises(InputError, match="shard"):
            coordinator.join(name, now=0.0)
    with pytest.raises(InputError, match="NoneType"):
        coordinator.take(None, now=0.0)
    rows = surefoot.Catalogue([OTHER, ROW])
    assert shard.decide(rows, baseline=1, moment=1.0).round == 1
    assert coordinator.take(shard.hand_in(2.0), now=2.0)[0].number == 2


def test_what_would_make_the_hub_unreadable_is_refused(tmp_path: Path, hub: Journal) -> None:
    fleet = Fleet(tmp_path, hub)
    shop = fleet.join("a")
    fleet.join("b")
    events = len(list(hub.read("shop")))
    bad: list[dict[str, Any]] = [{"reason": None}, {"reason": ""}, {"reason": "gone", "by": 3}]
    for told in bad:
        with pytest.raises(InputError):
            shop.leases.hub.lose("b", **told)
    with pytest.raises(InputError, match="shard"):
        fleet.join(5)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="join"):
        shop.leases.hub.lose("c", reason="it never was")
    assert len(list(hub.read("shop"))) == events
    with pytest.raises(ConfigError, match="skew"):
        create_shared(hub, "text", surefoot.SafeLUCB(**SETTINGS), skew="1")  # type: ignore[arg-type]
    fleet.close()


def test_there_is_room_for_so_many_edges_of_one_caller(hub: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "SNAPSHOT_ROUNDS", 0)
    create_shared(hub, "shop", surefoot.SafeLUCB(**SETTINGS))
    room, place = hub_module.Room(shards=4, of_caller=2), hub_module.Hub(hub, "shop", lambda: 5.0)
    for name in ("till-1", "till-2", "till-2"):  # the last one asks again
        assert place.join(name, f"token of {name}", by="ada (1)", room=room).lease.number == 1
    for found in (place, hub_module.Hub(hub, "shop", lambda: 5.0)):
        with pytest.raises(ConfigError, match="2 edges of one token"):
            found.join("till-3", "token", by="ada (1)", room=room)
    place.join("kiosk-1", "token", by="ben (2)", room=room)
    place.join("kiosk-2", "token", by="ben (2)", room=room)
    place.lose("till-1", reason="its machine is gone")
    place.join("till-3", "token", by="ada (1)", room=room)
    with pytest.raises(ConfigError, match="At most 4 shards"):
        place.join("app", "token", by="cleo (3)", room=room)
    done: dict[str, Any] = {"rounds": [], "rewards": [], "question": [0.0] * 3, "level": 0.0, "through": 5.0}
    place.take(RowsHandIn(shard="kiosk-1", token="token", lease=1, **done), sent=5.0)  # which takes a snapshot
    place.lose("till-2", reason="its machine is gone")
    later = hub_module.Hub(hub, "shop", lambda: 5.0)
    with pytest.raises(ConfigError, match="2 edges of one token"):
        later.join("kiosk-3", "token", by="ben (2)", room=room)


@pytest.mark.parametrize("is_handed_in", [False, True])
def test_a_reward_that_goes_on_at_once_is_not_corrected(tmp_path: Path, hub: Journal, is_handed_in: bool) -> None:
    fleet, world = Fleet(tmp_path, hub), World(np.random.default_rng(1))
    shop = fleet.join("a", every=10**6)
    for visit in ("x", "y"):
        shop.decide(world.rows, baseline=3, decision_id=visit)
    assert shop.reward("y", 0.9).is_accepted  # it waits for that of x
    if is_handed_in:
        shop.leases.renew()
    with pytest.raises(DecisionSettledError, match="reward_window"):
        shop.correct("y", 0.2, reason="measured wrongly")
    assert shop.reward("x", 0.5).is_accepted
    shop.leases.renew()
    assert sorted((entry for given in handed_in(hub) for entry in given["rewards"]), key=str) == [
        [1, {"reward": 0.5}],
        [2, {"reward": 0.9}],
    ]
    assert fleet.audit().is_clean
    fleet.close()


def test_a_reward_whose_window_is_open_is_corrected_before_it_is_handed_in(hub: Journal) -> None:
    now, own = [1000.0], surefoot.open_journal("memory:")
    create_shared(hub, "shop", surefoot.SafeLUCB(**SETTINGS), reward_window=60.0, clock=lambda: now[0])
    shop: Any = Experiment.join(hub, "shop", own, shard="a", in_background=False, clock=lambda: now[0])
    shop.decide(World(np.random.default_rng(1)).rows, baseline=3, decision_id="x")
    assert shop.reward("x", 0.9).is_accepted
    assert shop.correct("x", 0.2, reason="measured wrongly")
    now[0] += 100.0
    shop.close_windows()
    shop.leases.renew()
    assert [entry for given in handed_in(hub) for entry in given["rewards"]] == [[1, {"reward": 0.2}]]
    assert audit_shards(hub, "shop", {"a": own}).is_clean


def test_a_correction_of_what_may_have_been_handed_in_is_a_finding(tmp_path: Path, hub: Journal) -> None:
    def correct(turn: Turn) -> None:
        record = Corrected(decision_id="y", values={"reward": 0.2}, reason="it suits somebody")
        turn.write(CORRECTED, record, "x:y")
        turn.state.corrected(record, 2)

    fleet, world = Fleet(tmp_path, hub), World(np.random.default_rng(1))
    shop = fleet.join("a", every=10**6)
    for visit in ("x", "y"):
        shop.decide(world.rows, baseline=3, decision_id=visit)
    shop.reward("y", 0.9)
    shop.transact(correct)
    shop.leases.renew()
    (report,) = fleet.audit().shards.values()
    assert report.findings.counts["corrected"] == 1
    fleet.close()
