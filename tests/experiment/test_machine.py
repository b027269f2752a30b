"""Any sequence of decisions, rewards, duplicates, late ones, crashes and reopenings, against a model of a few lines."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from surefoot.audit import audit
from surefoot.errors import AlarmError, DecisionConflictError, DecisionError, ModeError
from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode, events
from surefoot.rounds.format import pack
from tests.experiment.worlds import POLICIES, Clock

IDS = [f"visit-{n}" for n in range(12)]
VALUES = [0.0, 0.25, 1.0]
ROWS = [[[0.6, 0.0], [0.9, 0.0]], [[0.1, 0.5], [0.5, 0.1], [0.3, 0.3]]]
ALLOWED = {("shadow", "guarded"), ("shadow", "paused"), ("guarded", "paused"), ("paused", "guarded")}


@dataclass
class Visit:
    """What the model knows of a decision."""

    round: int
    rows: int
    time: float
    record: Any
    value: float | None = None
    is_learned: bool = False
    is_abandoned: bool = False
    teaches: bool = True
    voided: int | None = None


class Machine(RuleBasedStateMachine):
    """The experiment under test beside the model."""

    policy = "SafeLUCB"
    on_disk = False

    @initialize(window=st.sampled_from([None, 30.0]))
    def begin(self, window: float | None) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.window, self.clock, self.mode = window, Clock(), "shadow"
        self.other: Experiment | None = None  # stands where it was left, and must catch up when its turn comes
        self.visits: dict[str, Visit] = {}
        self.refused: dict[str, int] = {}
        self.learned: list[tuple[str, float]] = []
        self.is_alarmed = False
        self.journal = self.new_journal()
        self.live = Experiment.create(
            self.journal,
            "shop",
            POLICIES[self.policy](),
            reward_window=window,
            default_reward=None if window is None else 0.5,
            reward_bounds=(0.0, 1.0),
            clock=self.clock,
            snapshot_every=7,
        )

    def new_journal(self) -> Journal:
        return open_journal(Path(self.folder.name) / "shop.db" if self.on_disk else "memory:")

    def open(self) -> Experiment:
        return Experiment.open(self.journal, "shop", clock=self.clock, snapshot_every=7)

    def let_windows_close(self) -> None:
        for name, visit in self.visits.items():
            is_open = self.window is not None and not (visit.is_learned or visit.is_abandoned)
            if is_open and visit.time + (self.window or 0.0) <= self.clock.now:
                visit.is_learned = True
                self.learned.append((name, 0.5 if visit.value is None else visit.value))

    def learn_in_order(self) -> None:
        """Without a window: up to the first that teaches and is not settled."""
        is_blocked = False
        for name, visit in self.visits.items():
            if visit.is_learned or visit.is_abandoned:
                continue
            if visit.value is None:
                is_blocked |= visit.teaches
            elif not (is_blocked and visit.teaches):
                visit.is_learned = True
                self.learned.append((name, visit.value))

    @rule(name=st.sampled_from(IDS), rows=st.sampled_from([0, 1]))
    def decide(self, name: str, rows: int) -> None:
        self.let_windows_close()
        known = self.visits.get(name)
        if known is not None and known.rows != rows:
            with pytest.raises(DecisionConflictError):
                self.live.decide(ROWS[rows], baseline=0, decision_id=name)
            return
        answer = self.live.decide(ROWS[rows], baseline=0, decision_id=name)
        record = self.live.round(name)
        assert answer.is_repeat == (known is not None)
        if known is None:
            known = self.visits[name] = Visit(len(self.visits) + 1, rows, self.clock.now, record)
            assert answer.mode == self.mode
            assert (self.mode == "guarded" and not self.is_alarmed) or answer.source == "baseline"
        assert (answer.round, record, answer.time) == (known.round, known.record, known.time)
        assert answer.action == (record.action if known.voided is None else known.voided)

    @rule(name=st.sampled_from([*IDS, "nobody"]), value=st.sampled_from([*VALUES, 2.0]))
    def reward(self, name: str, value: float) -> None:
        self.let_windows_close()
        receipt = self.live.reward(name, value)
        expected = self.expected_refusal(name, value)
        assert receipt.refused == expected
        if expected is not None:
            self.refused[expected] = self.refused.get(expected, 0) + 1
            return
        visit = self.visits[name]
        assert receipt.is_repeat == (visit.value is not None)
        if visit.value is None and value > 1.0 and visit.teaches:
            self.is_alarmed = True
        visit.value = value
        if self.window is None:
            self.learn_in_order()

    @rule(name=st.sampled_from([*IDS, "nobody"]))
    def abandon(self, name: str) -> None:
        self.let_windows_close()
        visit = self.visits.get(name)
        if visit is None or visit.value is not None or visit.is_learned:
            with pytest.raises(DecisionError):
                self.live.abandon(name)
            return
        assert self.live.abandon(name) == (not visit.is_abandoned)
        visit.is_abandoned = True
        if self.window is None:
            self.learn_in_order()

    @rule(name=st.sampled_from([*IDS, "nobody"]), action=st.sampled_from([0, 1]))
    def void(self, name: str, action: int) -> None:
        self.let_windows_close()
        visit = self.visits.get(name)
        if visit is None:
            with pytest.raises(DecisionError):
                self.live.void(name, action)
        elif visit.voided is not None and visit.voided != action:
            with pytest.raises(DecisionConflictError):
                self.live.void(name, action)
        elif visit.voided is not None or visit.record.action == action:
            assert not self.live.void(name, action)
        elif visit.value is not None or visit.is_learned or visit.is_abandoned:
            with pytest.raises(DecisionError):
                self.live.void(name, action)
        else:
            assert self.live.void(name, action)
            visit.voided = action

    @rule(response=st.sampled_from(["stay", "relearn", "renew"]))
    def acknowledge(self, response: Any) -> None:
        self.let_windows_close()
        if not self.is_alarmed or (response != "stay" and self.policy != "SafeLUCB"):
            with pytest.raises(AlarmError):
                self.live.acknowledge(response, reason="a test")
            return
        self.live.acknowledge(response, reason="a test", by="somebody")
        if response != "stay":
            self.is_alarmed = False
            for visit in self.visits.values():
                visit.teaches = False
            if self.window is None:
                self.learn_in_order()

    def expected_refusal(self, name: str, value: float) -> str | None:
        visit = self.visits.get(name)
        if visit is None:
            return "unknown"
        if visit.is_abandoned:
            return "abandoned"
        if visit.value is not None:
            return None if visit.value == value else "conflict"
        if self.window is not None and visit.is_learned:
            return "too_late"
        return None

    @rule(seconds=st.sampled_from([1.0, 10.0, 30.0]))
    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    @rule()
    def close_windows(self) -> None:
        before = len(self.learned)
        self.let_windows_close()
        assert self.live.close_windows() == len(self.learned) - before

    @rule(mode=st.sampled_from(["shadow", "guarded", "paused"]))
    def change_mode(self, mode: Any) -> None:
        self.let_windows_close()
        if mode == self.mode or (self.mode, mode) in ALLOWED:
            assert self.live.set_mode(mode) == self.mode
            self.mode = mode
        else:
            with pytest.raises(ModeError):
                self.live.set_mode(mode)

    @rule()
    def crash(self) -> None:
        self.live = self.open()

    @rule()
    def another_process_goes_on(self) -> None:
        self.live, self.other = self.other or self.open(), self.live

    @precondition(lambda self: self.on_disk)
    @rule()
    def restart(self) -> None:
        self.journal.close()
        self.journal = self.new_journal()
        self.live, self.other = self.open(), None

    @rule()
    def snapshot(self) -> None:
        self.let_windows_close()
        self.live.snapshot()

    @invariant()
    def the_status_is_the_models(self) -> None:
        status = self.live.status()
        assert (status.rounds, status.mode) == (len(self.visits), self.mode)
        assert status.rewards == sum(visit.value is not None for visit in self.visits.values())
        abandoned = sum(visit.is_abandoned for visit in self.visits.values())
        pending = len(self.visits) - len(self.learned) - abandoned
        assert (status.learned, status.pending, status.abandoned) == (len(self.learned), pending, abandoned)
        assert status.voided == sum(visit.voided is not None for visit in self.visits.values())
        assert status.refused == self.refused
        assert status.is_refuted == self.is_alarmed

    def teardown(self) -> None:
        if not hasattr(self, "live"):
            return
        assert pack(self.open().policy_state()) == pack(self.live.policy_state())
        assert self.window is None or self.journalled() == self.learned
        assert audit(self.journal, "shop").is_clean
        self.journal.close()
        self.folder.cleanup()

    def journalled(self) -> list[tuple[str, float]]:
        """What was learned, by the events."""
        learned, values = list[tuple[str, float]](), dict[str, float]()
        for event in self.journal.read("shop"):
            if event.kind == events.REWARD:
                reward = decode(event, events.Reward)
                if reward.refused is None:
                    values[reward.decision_id] = float(reward.values[events.METRIC])
            elif event.kind == events.SETTLED:
                for window in decode(event, events.Settled).windows:
                    assert window.is_missing == (window.decision_id not in values)
                    learned.append((window.decision_id, values.get(window.decision_id, 0.5)))
        return learned


class OnDisk(Machine):
    """The same on a file, closed and opened again."""

    on_disk = True


class Exact(Machine):
    """The same with the policy whose state grows."""

    policy = "CLUCB2"


@pytest.mark.parametrize(("machine", "examples"), [(Machine, 60), (OnDisk, 15), (Exact, 15)])
def test_any_sequence_agrees_with_the_model(machine: type[Machine], examples: int) -> None:
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
