"""A recovered experiment is the live one to the bit, whatever became of its snapshots."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

import surefoot
from surefoot.experiment import Experiment
from surefoot.experiment import snapshots as snapshot_room
from surefoot.experiment.turn import PENDING_PER_EVENT
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode, events
from surefoot.rounds.format import pack
from tests.experiment.worlds import POLICIES, Clock, World, play, safe_policy


def bits(experiment: Experiment) -> bytes:
    """Everything the experiment knows, as bytes."""
    return pack([experiment.policy_state(), repr(msgspec.structs.asdict(experiment.status()))])


def start(journal: Journal, clock: Clock, policy: str = "SafeLUCB", **more: Any) -> Experiment:
    settings = {"mode": "guarded", "snapshot_every": 0, **more}
    return Experiment.create(journal, "shop", POLICIES[policy](), clock=clock, **settings)


@pytest.mark.parametrize("window", [None, 7.0])
@pytest.mark.parametrize("policy", POLICIES)
def test_a_recovered_state_is_the_live_one_to_the_bit(policy: str, window: float | None) -> None:
    journal, clock, world = open_journal("memory:"), Clock(), World(policy)
    live = start(journal, clock, policy, reward_window=window, snapshot_every=50)
    play(live, world, clock, 60)
    replayed = Experiment.open(journal, "shop", clock=clock)
    assert bits(replayed) == bits(live)
    play(replayed, world, clock, 5)
    assert bits(live) == bits(replayed) == bits(Experiment.open(journal, "shop", clock=clock))


@pytest.mark.parametrize("policy", [name for name in POLICIES if name != "CLUCB"])
def test_the_learner_played_in_these_tests(policy: str) -> None:
    journal, clock = open_journal("memory:"), Clock()
    live = start(journal, clock, policy)
    play(live, World(policy), clock, 60)
    assert live.status().learner_rounds > 0


@pytest.mark.parametrize("policy", ["SafeLUCB", "CLUCB2 latest"])
def test_catalogues_are_written_once_and_recovered(policy: str) -> None:
    journal, clock, world = open_journal("memory:"), Clock(), World(policy)
    live = start(journal, clock, policy, snapshot_every=20)
    catalogues = [surefoot.Catalogue(world.rng.uniform(0.0, 0.7, size=(4, 2))) for _ in range(6)]
    for step in range(60):
        chosen = catalogues[step % 6 if step > 40 else 0]
        answer = live.decide(chosen, baseline=1)
        live.reward(answer.decision_id, world.reward())
    assert sum(event.kind == events.CATALOGUE for event in journal.read("shop")) == 6
    assert bits(Experiment.open(journal, "shop", clock=clock)) == bits(live)


def test_history_is_learned_before_the_first_decision_and_recovered() -> None:
    journal, clock, world = open_journal("memory:"), Clock(), World()
    history = world.rng.uniform(0.0, 0.7, size=(50, 2)), world.rng.uniform(size=50)
    live = start(journal, clock, history=history)
    assert (
        live.policy_state()["ridge"].tobytes()
        != start(open_journal("memory:"), clock).policy_state()["ridge"].tobytes()
    )
    play(live, world, clock, 10)
    assert bits(Experiment.open(journal, "shop", clock=clock)) == bits(live)


def test_the_more_is_pending_the_rarer_are_snapshots() -> None:
    journal, clock, world = open_journal("memory:"), Clock(), World()
    live = start(journal, clock, snapshot_every=2)
    for _ in range(4 * 2 * PENDING_PER_EVENT):
        live.decide(**world.question())
    numbers = [event.number for event in journal.read("shop") if event.kind == events.SNAPSHOT]
    gaps = [later - earlier for earlier, later in pairwise(numbers)]
    assert gaps == sorted(gaps)
    assert (gaps[0], gaps[-1]) == (2 + 1, 7 + 1)  # the snapshot itself is an event, too
    assert bits(Experiment.open(journal, "shop", clock=clock)) == bits(live)


@pytest.fixture
def long_run() -> tuple[Journal, Clock, Experiment]:
    """An experiment with several snapshots, windows open among them."""
    journal, clock = open_journal("memory:"), Clock()
    live = start(journal, clock, reward_window=20.0, snapshot_every=40)
    play(live, World(), clock, 120)
    return journal, clock, live


def snapshots_of(journal: Journal) -> list[events.Snapshot]:
    return [decode(event, events.Snapshot) for event in journal.read("shop") if event.kind == events.SNAPSHOT]


def replayed_events(journal: Journal, monkeypatch: pytest.MonkeyPatch) -> tuple[Experiment, int]:
    """An experiment opened anew, and after which event its state began."""
    begun, rebuild = [], snapshot_room.rebuild

    def spy(view: Any) -> Any:
        state = rebuild(view)
        begun.append(state.head.number)
        return state

    with monkeypatch.context() as spied:
        spied.setattr(snapshot_room, "rebuild", spy)
        opened = Experiment.open(journal, "shop", clock=Clock())
    return opened, begun[0]


def test_opening_starts_from_the_newest_snapshot(long_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, _, live = long_run
    opened, begun = replayed_events(journal, monkeypatch)
    assert begun == snapshots_of(journal)[-1].number
    assert bits(opened) == bits(live)


@pytest.mark.parametrize("lost", [1, 2])
def test_a_missing_snapshot_gives_way_to_an_older_one_or_to_the_start(
    long_run: Any, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    journal, _, live = long_run
    taken = snapshots_of(journal)
    for record in taken[-lost:]:
        journal.transact("shop", lambda t, digest=record.digest: t.detach(digest))
    opened, begun = replayed_events(journal, monkeypatch)
    assert begun == (taken[-2].number if lost == 1 else 1)
    assert bits(opened) == bits(live)


def test_only_the_newest_two_snapshots_are_kept(long_run: Any) -> None:
    journal, _, _ = long_run
    kept = [journal.attachment("shop", record.digest) is not None for record in snapshots_of(journal)]
    assert len(kept) > 3
    assert kept == [False] * (len(kept) - 2) + [True, True]


def test_a_policy_state_of_another_shape_is_replayed_from_events(
    long_run: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal, _, live = long_run
    expected = bits(live)
    monkeypatch.setattr("surefoot.policies.policy.STATE_FORMAT", 2)  # states of format 1 raise StateError from here on
    opened, begun = replayed_events(journal, monkeypatch)
    assert begun == 1
    monkeypatch.setattr("surefoot.policies.policy.STATE_FORMAT", 1)
    assert bits(opened) == expected


def test_a_snapshot_of_another_format_is_passed_over(long_run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    journal, _, live = long_run
    monkeypatch.setattr(snapshot_room, "FORMAT", 1)
    opened, begun = replayed_events(journal, monkeypatch)
    assert begun == 1
    assert bits(opened) == bits(live)


def test_a_damaged_snapshot_in_a_file_is_passed_over(tmp_path: Path) -> None:
    import sqlite3

    clock = Clock()
    with open_journal(tmp_path / "shop.db") as journal:
        live = start(journal, clock, snapshot_every=40)
        play(live, World(), clock, 60)
        expected = bits(live)
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        changed = connection.execute("UPDATE attachments SET data = CAST(substr(data, 2) AS BLOB)")
        assert changed.rowcount > 0
    connection.close()
    with open_journal(tmp_path / "shop.db") as journal:
        assert bits(Experiment.open(journal, "shop", clock=clock)) == expected


def test_a_read_only_journal_can_be_opened_and_looked_at(tmp_path: Path) -> None:
    clock = Clock()
    with open_journal(tmp_path / "shop.db") as journal:
        live = start(journal, clock)
        with open_journal(tmp_path / "shop.db", read_only=True) as other:
            reader = Experiment.open(other, "shop", clock=clock)
            play(live, World(), clock, 10)
            assert bits(reader) == bits(live)
            with pytest.raises(surefoot.errors.JournalReadOnlyError):
                reader.decide([[0.5, 0.5]], baseline=0)


def test_a_turn_that_broke_off_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, clock, world = open_journal("memory:"), Clock(), World()
    live = start(journal, clock)
    play(live, world, clock, 10)
    expected, events = bits(live), journal.head("shop").number

    def failing(*_: Any, **__: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as broken:
        broken.setattr("surefoot.experiment.kinds.Rows.write", failing)  # after the policy has counted the round
        with pytest.raises(MemoryError):
            live.decide(**world.question())
    assert journal.head("shop").number == events
    assert bits(live) == expected


def test_a_commit_that_failed_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    journal, clock, world = open_journal("memory:"), Clock(), World()
    live = start(journal, clock)
    play(live, world, clock, 10)
    expected = bits(live)

    def failing(*_: Any, **__: Any) -> None:
        raise surefoot.errors.JournalFullError("full")

    with monkeypatch.context() as broken:
        broken.setattr("surefoot.journal.memory.MemoryJournal._keep", failing)
        for _ in range(2):
            with pytest.raises(surefoot.errors.JournalFullError):
                live.decide(**world.question())
    assert bits(live) == expected
    play(live, world, clock, 3)
    assert bits(Experiment.open(journal, "shop", clock=clock)) == bits(live)


def test_events_of_an_unknown_kind_are_refused() -> None:
    journal, clock = open_journal("memory:"), Clock()
    live = start(journal, clock)
    journal.transact("shop", lambda t: t.append("surprise", b"{}", time=clock.now))
    with pytest.raises(surefoot.errors.JournalSchemaError, match="unknown kind, 'surprise'"):
        live.status()


def test_a_policy_that_has_seen_something_is_refused() -> None:
    used = safe_policy()
    used.decide([[0.5, 0.5]], baseline=0)
    with pytest.raises(surefoot.errors.ConfigError, match="must be new"):
        Experiment.create(open_journal("memory:"), "shop", used)
