"""Snapshots of a shard's own chain: whoever opens it goes on from the newest, to the bit of a replay of all events."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.cli.commands import app
from surefoot.errors import JournalUnavailableError
from surefoot.experiment import snapshots
from surefoot.experiment.snapshots import caught_up, differing, freeze, rebuild
from surefoot.experiment.state import State, first_state
from surefoot.journal import Journal
from surefoot.rounds import decode, events
from surefoot.rounds.format import pack
from tests.sharing.experiments import RESERVE, Away, Fleet, GuardFleet, GuardWorld, at, play, seeded_coins
from tests.sharing.shards import World

EVERY = 25
every_kind = pytest.mark.parametrize("kind", ["floor", "bank"])


class Shop:
    """A shard of either kind, whose hub may be away."""

    def __init__(self, kind: str, folder: Path, hub: Journal) -> None:
        away: Any = Away(hub)
        self.hub, self.is_guard = away, kind == "bank"
        self.fleet: Any = GuardFleet(folder, away) if self.is_guard else Fleet(folder, away, constraint=RESERVE)
        self.world: Any = GuardWorld(3) if self.is_guard else World(np.random.default_rng(3))
        self.joined = self.open()

    def open(self) -> Any:
        return self.fleet.join("a", snapshot_every=EVERY)

    def play(self, rounds: int) -> None:
        self.world.play(self.joined, rounds) if self.is_guard else play(self.world, self.joined, rounds)

    def visit(self) -> None:
        told: dict[str, Any] = {"baseline": "old", "proposal": "new"}
        self.joined.decide(**told) if self.is_guard else self.joined.decide(self.world.rows, baseline=3)

    def states(self) -> tuple[State, State]:
        """By the newest snapshot and the events since, and by all events."""
        view = self.fleet.journals["a"].view("shop")
        quick, whole = rebuild(view), first_state(view)
        assert quick.head.number > 1
        for state in (quick, whole):
            for event in view.read(state.head.number):
                state.apply(event, view)
        return quick, whole


@pytest.fixture
def shop(kind: str, tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch) -> Shop:
    seeded_coins(monkeypatch, 4)
    return Shop(kind, tmp_path, hub)


@every_kind
def test_a_shard_goes_on_from_its_snapshot_to_the_bit(shop: Shop) -> None:
    for rounds in (30, 1, 2, 11, 7):
        shop.play(rounds)
        shop.visit()  # and one that stays open
        quick, whole = shop.states()
        assert freeze(quick) == freeze(whole)
    again = shop.open()
    assert again.status().rounds == 56
    shop.joined = again
    shop.play(20)
    again.leases.renew()
    view = shop.fleet.journals["a"].view("shop")
    assert len([event for event in view.read() if event.kind == events.SNAPSHOT]) >= 3
    assert list(differing(view)) == []
    assert shop.fleet.audit().is_clean
    shop.fleet.close()


@every_kind
def test_a_snapshot_between_two_leases_knows_what_is_to_be_handed_in(shop: Shop) -> None:
    shop.play(12)
    shop.hub.loses_answers = True
    with pytest.raises(JournalUnavailableError):
        shop.joined.leases.renew()
    shop.hub.is_away = True
    shop.joined.set_mode("paused", reason="nobody answers")
    shop.visit()
    shop.joined.snapshot()
    quick, whole = shop.states()
    assert freeze(quick) == freeze(whole)
    due: Any = quick.shard
    assert (due.due.lease, len(due.since), due.unshared.reason) == (due.lease.number, 1, "nobody answers")
    shop.hub.is_away = shop.hub.loses_answers = False
    again = shop.open()
    assert again.status().mode == "paused"
    again.leases.renew()
    assert at(again, lambda it: it.policy.rounds) == 13
    assert shop.fleet.audit().is_clean
    shop.fleet.close()


@every_kind
def test_a_snapshot_that_is_damaged_is_passed_over_and_one_that_lies_is_found(shop: Shop) -> None:
    shop.play(40)
    journal = shop.fleet.journals["a"]
    newest = decode(journal.view("shop").latest(events.SNAPSHOT), events.Snapshot)
    before = freeze(shop.states()[1])
    data = journal.attachment("shop", newest.digest)
    assert data is not None
    journal.transact("shop", lambda turn: turn.detach(newest.digest))
    quick, _ = shop.states()
    assert freeze(quick) == before
    shop.joined.snapshot()
    shard: Any = shop.joined.known_state.shard
    shard.since = shard.since[:-1] if shard.since else []
    shard.lease = msgspec.structs.replace(shard.lease, number=shard.lease.number + 1)
    shop.joined.snapshot()
    texts = {text.split()[1] for _, text in differing(journal.view("shop"))}
    assert "state.shard.lease" in texts <= {"state.shard.lease", "state.shard.since"}
    shop.fleet.close()


def test_the_command_line_compares_snapshots_of_shards_with_their_events(tmp_path: Path) -> None:
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        shop = Shop("floor", tmp_path, hub)
        shop.play(12)
        shop.joined.snapshot()
        shop.visit()
        shop.fleet.close()
        options = ["--experiment", "shop", "--shard", f"a={tmp_path}/a.db"]
        honest = CliRunner().invoke(app, ["audit", f"{tmp_path}/hub.db", *options])
        assert honest.exit_code == 0, honest.output
        shop.joined = shop.open()
        state: Any = shop.joined.known_state
        state.shard.since = []
        shop.joined.snapshot()
        shop.fleet.close()
        forged = CliRunner().invoke(app, ["audit", f"{tmp_path}/hub.db", *options])
    assert forged.exit_code == 1
    assert "state.shard.since is not what the events come to" in " ".join(forged.output.split())


@every_kind
def test_a_shard_s_part_that_is_damaged_is_passed_over(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    shop.play(12)
    shop.joined.snapshot()
    shop.play(2)
    for part in (b"", b'{"x":1}', b"[1]"):
        with monkeypatch.context() as damaged:
            damaged.setattr(snapshots, "encode", lambda record, part=part: part)
            shop.joined.snapshot()
        shop.joined = shop.open()
        quick, whole = shop.states()
        assert freeze(quick) == freeze(whole)
        shop.joined.snapshot()
    shop.fleet.close()


@every_kind
@pytest.mark.parametrize("is_over", [False, True])
def test_what_a_snapshot_says_of_the_mode_changes_nothing_and_is_found_under_an_old_lease_too(
    shop: Shop, is_over: bool
) -> None:
    shop.play(5)
    shop.joined.leases.renew()
    shop.joined.set_mode("paused")
    shop.play(5)
    state: Any = shop.joined.known_state
    state.mode = "guarded"
    shop.joined.snapshot()
    state.mode = "paused"
    if is_over:
        shop.joined.leases.renew()
    shop.joined = shop.open()
    assert shop.joined.status().mode == "paused"
    texts = [text for _, text in differing(shop.fleet.journals["a"].view("shop"))]
    assert texts == ["its state.mode is not what the events come to"]
    shop.fleet.close()


def test_a_pause_that_was_not_passed_on_is_known_from_its_event(tmp_path: Path, hub: Journal) -> None:
    shop = Shop("floor", tmp_path, hub)
    shop.joined.set_mode("paused")
    shop.joined.set_mode("guarded")
    shop.hub.is_away = True
    shop.joined.set_mode("paused", reason="fire")
    known: Any = shop.joined.known_state
    said = known.shard.shared_mode
    shop.joined.snapshot()
    quick, whole = shop.states()
    assert freeze(quick) == freeze(whole)
    for state in (quick, whole):
        shard: Any = state.shard
        assert (shard.unshared.reason, shard.shared_mode) == ("fire", said)
    shop.fleet.close()


def test_a_proposal_by_the_shard_s_own_rewards_that_was_refused_is_judged_again_in_a_replay(
    tmp_path: Path, hub: Journal
) -> None:
    told: dict[str, Any] = {"dim": 2, "alpha": 0.2, "noise": 0.2, "theta_bound": 1.0, "ridge": None}
    fleet = Fleet(tmp_path, hub, **told, reward_range=(0.05, 1.0))
    shop, rows = fleet.join("a", every=10**6), [[0.1, 0.5], [0.5, 0.1], [0.3, 0.3]]
    for visit in ("x", "y", "z"):
        shop.decide(rows[:1], baseline=0, decision_id=visit)
    for visit in ("x", "y", "z"):
        shop.reward(visit, 0.5)
    refused = shop.round(shop.decide(rows, baseline=0).decision_id)
    assert isinstance(refused, events.RowsRound)
    # By its own rewards, so no bound is claimed; the frozen set would have proposed another row.
    assert (refused.source, refused.certificate.proposal, refused.certificate.optimism) == ("baseline", 1, "inf")
    again = caught_up(None, fleet.journals["a"].view("shop")).policy.state()
    assert pack(again) == pack(shop.policy_state())
    fleet.close()


def test_a_rebuilt_shard_names_the_round_of_its_alarm(tmp_path: Path, hub: Journal) -> None:
    """The set that the alarm was found by is removed with its lease, so a replay cannot find it there again."""
    told: dict[str, Any] = {"dim": 2, "alpha": 0.2, "noise": 0.01, "theta_bound": 0.5, "ridge": None}
    fleet = Fleet(tmp_path, hub, **told)
    shop, rows = fleet.join("a", every=10**6), [[0.1, 0.5], [0.5, 0.1]]
    for _ in range(3):
        shop.reward(shop.decide(rows, baseline=0).decision_id, 3.0)  # more than any theta of that length allows
    shop.leases.renew()
    shop.decide(rows, baseline=0)
    alarm: Any = shop.look(lambda state: state.policy.alarm)
    assert shop.status().alarm == alarm.text
    assert (alarm.kind, alarm.round) == ("contradiction", 2)
    for _ in range(3):
        shop.decide(rows, baseline=0)
        shop.leases.renew()
        again = caught_up(None, fleet.journals["a"].view("shop"))
        assert again.policy.alarm == shop.look(lambda state: state.policy.alarm)
        assert again.policy.alarm == alarm
    assert fleet.audit().is_clean
    fleet.close()
