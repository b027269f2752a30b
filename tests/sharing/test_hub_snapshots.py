"""Snapshots of the hub: a server that starts need not replay everything, and comes to the same bits."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import surefoot
from surefoot.cli.commands import app
from surefoot.errors import JournalSchemaError
from surefoot.journal import Event, Journal, Transaction
from surefoot.policies.policy import Policy
from surefoot.rounds import decode, encode, events
from surefoot.safety.facts import Linear
from surefoot.sharing import hub as hub_module
from surefoot.sharing.coordinator import Coordinator
from surefoot.sharing.hub import Hub, HubState, SharedMode
from surefoot.sharing.pots import RowsPot
from tests.sharing.experiments import Fleet, GuardFleet, GuardWorld, at, play
from tests.sharing.shards import Shard, World, new_coordinator

EVERY = 60


@pytest.fixture
def fleet(tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(hub_module, "SNAPSHOT_ROUNDS", EVERY)
    return Fleet(tmp_path, hub)


def plain(value: Any) -> Any:
    """Arrays as lists, so that states compare."""
    if isinstance(value, np.ndarray):
        return [str(value.dtype), value.tolist()]
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def state_of(coordinator: Coordinator) -> Any:
    return plain(coordinator.state())


def from_events(hub: Journal, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The coordinator without any snapshot."""
    with monkeypatch.context() as without:
        without.setattr(HubState, "_resume", lambda self, view: None)
        return Hub(hub, "shop", lambda: 1e9).look(lambda state, view: state_of(state.coordinator))


def test_a_hub_goes_on_from_its_snapshot_to_the_bit(
    fleet: Fleet, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(np.random.default_rng(6))
    a, b = fleet.join("a"), fleet.join("b")
    for turn in range(30):
        play(world, a, 6)
        play(world, b, 4)
        if turn == 27:
            b.decide(world.rows, baseline=world.baseline)  # stays open, so that rounds wait
    snapshots = [event for event in hub.read("shop") if event.kind == events.SNAPSHOT]
    assert 2 <= len(snapshots) <= 300 // EVERY
    kept = [hub.attachment("shop", records_of(event).digest) is not None for event in snapshots]
    assert kept == [False] * (len(kept) - 2) + [True, True]

    applied = list[int]()
    apply = HubState.apply

    def counted(self: HubState, event: Event) -> None:
        applied.append(event.number)
        apply(self, event)

    with monkeypatch.context() as watched:
        watched.setattr(HubState, "apply", counted)
        resumed = Hub(hub, "shop", fleet.clock).look(lambda state, view: state_of(state.coordinator))
    assert min(applied) == snapshots[-1].number  # and nothing before
    fresh = Hub(hub, "shop", fleet.clock)
    fresh.prepare()
    since = [of.look(lambda state, _: state.since) for of in (fresh, a.leases.hub)]
    assert 0 < since[0] == since[1]  # the next one is taken when it would have been
    assert resumed == from_events(hub, monkeypatch) == at(a, state_of)
    for _ in range(5):
        play(world, a, 6)
        play(world, b, 4)
    c = fleet.join("c")
    play(world, c, 20)
    assert at(c, state_of) == at(a, state_of) == from_events(hub, monkeypatch)
    assert fleet.audit().is_clean
    fleet.close()


def records_of(event: Event) -> events.Snapshot:
    return decode(event, events.Snapshot)


def test_a_snapshot_that_is_lost_or_damaged_is_passed_over(
    fleet: Fleet, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(np.random.default_rng(8))
    a = fleet.join("a")
    for _ in range(40):
        play(world, a, 6)
    expected = from_events(hub, monkeypatch)
    newest = hub.view("shop").latest(events.SNAPSHOT)
    assert newest is not None
    real = HubState._thaw
    for broken in ({1}, {1, 2}):
        seen = list[bytes]()

        def thaw(self: HubState, data: bytes, broken: set[int] = broken, seen: list[bytes] = seen) -> bool:
            seen.append(data)
            return False if len(seen) in broken else real(self, data)

        with monkeypatch.context() as damaged:
            damaged.setattr(HubState, "_thaw", thaw)
            assert Hub(hub, "shop", fleet.clock).look(lambda state, view: state_of(state.coordinator)) == expected
        assert len(seen) == 2
    for data in (b"", b"\x81\xa1x\x01", seen[0][:-9]):
        assert not HubState._thaw(HubState.__new__(HubState), data)
    fleet.close()


def test_a_snapshot_that_lies_is_found_by_the_audit(fleet: Fleet, hub: Journal) -> None:
    world = World(np.random.default_rng(9))
    a = fleet.join("a")
    play(world, a, 30)
    assert fleet.audit().is_clean
    state = Hub(hub, "shop", fleet.clock).look(lambda state, _: state)
    pot: Any = state.coordinator.pot
    pot._carried = Linear(pot._carried.normal, 500.0, pot._carried.name)
    head = state.head

    def forge(transaction: Transaction) -> None:
        digest = transaction.attach(state.frozen())
        record = events.Snapshot(digest=digest, number=head.number, hash=head.hash)
        transaction.append(events.SNAPSHOT, encode(record), time=fleet.clock())

    hub.transact("shop", forge)
    assert at(fleet.join("b"), lambda it: it.members.find("b").amounts[0]) > 40.0
    forged = fleet.audit().hub.findings
    assert any("is leased in all" in one.text for one in forged)
    fleet.close()


@pytest.mark.parametrize("is_guard", [False, True])
def test_the_mode_is_not_the_snapshot_s_to_say_and_the_command_line_finds_one_that_differs(
    is_guard: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub_module, "SNAPSHOT_ROUNDS", 20)
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        fleet: Any = GuardFleet(tmp_path, hub) if is_guard else Fleet(tmp_path, hub)
        a = fleet.join("a", every=10)
        a.set_mode("paused", reason="fire")
        GuardWorld(3).play(a, 90) if is_guard else play(World(np.random.default_rng(9)), a, 90)
        a.leases.renew()
        audited = ["audit", f"{tmp_path}/hub.db", "--experiment", "shop", "--shard", f"a={tmp_path}/a.db"]
        honest = CliRunner().invoke(app, audited)
        assert honest.exit_code == 0, honest.output
        state: Any = Hub(hub, "shop", fleet.clock).look(lambda state, _: state)
        state.mode, head = SharedMode("guarded", 10**6), state.head

        def forge(transaction: Transaction) -> None:
            record = events.Snapshot(digest=transaction.attach(state.frozen()), number=head.number, hash=head.hash)
            transaction.append(events.SNAPSHOT, encode(record), time=fleet.clock())

        hub.transact("shop", forge)
        assert fleet.join("b").status().mode == "paused"
        forged = CliRunner().invoke(app, [*audited, "--shard", f"b={tmp_path}/b.db"])
        fleet.close()
    assert forged.exit_code == 1
    assert "its state.mode" in forged.output


def test_an_unknown_event_is_still_refused(fleet: Fleet, hub: Journal) -> None:
    hub.transact("shop", lambda transaction: transaction.append("something", b"{}", time=2e9))
    with pytest.raises(JournalSchemaError):
        Hub(hub, "shop", fleet.clock).prepare()
    fleet.close()


def test_a_coordinator_goes_on_from_its_state_whatever_waits() -> None:
    world = World(np.random.default_rng(2))
    coordinator = new_coordinator(constraint={"name": "reserve", "granted": 9.0})
    shards = {name: Shard(coordinator.join(name, now=0.0)) for name in ("a", "b", "c")}
    for number in range(1, 40):
        shard = shards["abc"[number % 3]]
        reward = world.visit(shard, float(number))
        if number % 4:
            shard.observe(shard.rounds, reward)
    shards["a"].meet(coordinator, 40.0)  # it waits for the others
    assert coordinator._early
    assert coordinator.members.find("a").waiting
    assert state_of(Coordinator.from_state(coordinator.state())) == state_of(coordinator)
    coordinator.lose("c")
    shards["b"].meet(coordinator, 40.0, 30.5 + 9.0)
    alarmed = shards["a"]
    world.visit(alarmed, 41.0)
    alarmed.policy.report_breach("reward", "a test")
    again = Coordinator.from_state(coordinator.state())
    assert state_of(again) == state_of(coordinator)
    assert isinstance(again.pot, RowsPot)
    assert isinstance(coordinator.pot, RowsPot)
    assert again.pot.proof.value <= coordinator.pot.proof.value
    hand_in = alarmed.hand_in(42.0)
    leases = [one.take(hand_in, now=42.0)[0] for one in (again, coordinator)]
    assert leases[0].amounts == leases[1].amounts == [0.0]
    assert coordinator.pot.spent > 0.0
    last = Coordinator.from_state(coordinator.state())
    assert state_of(last) == state_of(again) == state_of(coordinator)
    assert (last.leased, last.watermark) == (coordinator.leased, coordinator.watermark)
    assert last.pot.totals() == coordinator.pot.totals()


def test_a_shard_goes_on_from_its_state_to_the_bit() -> None:
    world, coordinator = (
        World(np.random.default_rng(3)),
        new_coordinator(constraint={"name": "reserve", "granted": 9.0}),
    )
    shard = Shard(coordinator.join("a", now=0.0))
    for number in range(1, 30):
        reward = world.visit(shard, float(number))
        if number % 5:
            shard.observe(number, reward)
        if number % 7 == 0:
            hand_in = shard.hand_in(number + 0.25)
            world.visit(shard, number + 0.5)
            shard.observe(shard.rounds, 0.5)
            shard.renew(coordinator.take(hand_in, now=number + 0.75))
            break
    again = copy.copy(shard)
    again.policy, again.since = Policy.from_state(shard.policy.state()), list(shard.since)
    assert plain(again.policy.state()) == plain(shard.policy.state())
    assert len(again.since) == 1  # a round of the baseline waits to be handed in
    for number in range(40, 80):
        one, two = (each.decide(world.rows, baseline=world.baseline, moment=float(number)) for each in (shard, again))
        assert (one.action, one.round) == (two.action, two.round)
        for each in (shard, again):
            each.observe(one.round, 0.4)
    mine, other = shard.hand_in(90.0), again.hand_in(90.0)
    assert len(mine.rounds) == len(other.rounds) == 41
    assert mine == other
