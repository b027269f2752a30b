"""Which rewards were learned, and when: once each, in the order of the decisions, by a rule that never looks at them.

A round is settled by its reward (with a window, when that closes), by the word that it was abandoned, or by the default
once `settle_after` more rounds were decided. It is learned when every earlier round that teaches is settled.
"""

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from surefoot.audit.compensated_sums import Vector
from surefoot.audit.declarations import LARGEST
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.audit.recorded_round import OfferedRound
from surefoot.journal.events import Event
from surefoot.rounds import events


@dataclass(slots=True)
class PendingReward:
    """A decision whose reward is not learned yet; whether it teaches was settled when it was decided.

    declared: the mean of a round that is watched, and that no confidence set learns
    """

    decision_id: str
    round: int
    time: float
    features: Vector
    is_learner: bool
    teaches: bool
    declared: float | None = None
    offered: OfferedRound | None = None
    reward: float | None = None
    is_voided: bool = False


class LearnedRewards:
    """The decisions that wait for a reward.

    take_in: is told each reward that is learned, in order
    examine: is told each reward that came in since the last restart: event, value, and whether the learner's
    """

    def __init__(
        self,
        created: events.Created,
        take_in: Callable[[Vector, float, bool, float | None], None],
        examine: Callable[[int, float, bool], None],
        findings: Findings,
        tally: AuditCounts,
    ) -> None:
        self._created, self._take_in, self._examine = created, take_in, examine
        self._findings, self._tally = findings, tally
        self._waiting: dict[str, PendingReward] = {}
        # In the order of their decisions; without a window, those that teach.
        self._order: deque[PendingReward] = deque()
        self._by_round: dict[int, PendingReward] = {}  # where rounds expire
        self._settle_after: int | None = created.settings.get("settle_after")
        self._default = float(created.settings.get("default_reward") or 0.0)
        self._abandoned: set[str] = set()
        self._corrected: set[str] = set()

    def wait(
        self,
        decision: events.RowsRound,
        time: float,
        features: Vector,
        *,
        is_learner: bool,
        teaches: bool,
        declared: float | None = None,
        offered: OfferedRound | None = None,
    ) -> bool:
        """Wait for a decision's reward; false where it is waited for already."""
        is_new = decision.decision_id not in self._waiting
        entry = PendingReward(
            decision.decision_id, decision.round, time, features, is_learner, teaches, declared, offered
        )
        self._waiting[decision.decision_id] = entry
        if teaches or self._created.reward_window is not None:
            self._order.append(entry)
        if self._settle_after is not None:
            self._by_round[decision.round] = entry
            self._expire(self._by_round.pop(decision.round - self._settle_after, None))
        self._tally.pending = len(self._waiting)
        return is_new

    def _expire(self, entry: PendingReward | None) -> None:
        """Settle a round by the default where it has no reward."""
        if entry is not None and entry.reward is None and entry.decision_id in self._waiting:
            self._tally.defaults += 1
            self._settle(entry, self._default)

    def stop_teaching(self) -> None:
        """After a restart no round that was decided before teaches any more."""
        for entry in list(self._order):
            entry.teaches = False
            # With a window they stay, and close in their order, though nobody learns them.
            if entry.reward is not None and self._created.reward_window is None:
                self._learn(entry, entry.reward)
        if self._created.reward_window is None:
            self._order.clear()

    def _settle(self, entry: PendingReward, value: float) -> None:
        """Keep a reward until its turn comes; a round that teaches nothing neither waits nor is waited for."""
        entry.reward = value
        if self._created.reward_window is None and not entry.teaches:
            self._learn(entry, value)
        elif self._created.reward_window is None:
            self._learn_settled()

    def _learn_settled(self) -> None:
        """Learn up to the first round that is not settled."""
        while self._order:
            entry = self._order[0]
            # One that was abandoned is only removed.
            if entry.decision_id in self._waiting:
                if entry.reward is None:
                    return
                self._learn(entry, entry.reward)
            self._order.popleft()

    def reward(self, event: Event, reward: events.Reward) -> None:
        """A reward that came in, accepted or refused."""
        if reward.refused is not None:
            self._tally.refused[reward.refused] += 1 + reward.unrecorded
            self._check_refusal(event, reward)
            return
        self._tally.rewards += 1
        waiting, value = self._waiting.get(reward.decision_id), _value(reward.values)
        if waiting is None:
            text = f"a reward of {reward.decision_id!r} was accepted, but no such decision is waiting for one"
            self._findings.add(event.number, "reward", text)
            return
        if event.key != f"r:{reward.decision_id}":
            self._findings.add(event.number, "key", f"the key of this reward is {event.key!r}")
        # Written so that NaN is refused, too.
        if not abs(value) <= LARGEST:
            self._findings.add(event.number, "reward", f"{value:g} was accepted, which nobody can compute with")
            return
        if waiting.reward is not None:
            self._findings.add(event.number, "reward", f"{reward.decision_id!r} has a reward already")
            return
        window = self._created.reward_window
        if window is not None and event.time >= waiting.time + window:
            text = f"{reward.decision_id!r} was rewarded after its window had closed"
            self._findings.add(event.number, "reward", text)
            return
        self._settle(waiting, value)
        if waiting.round > self._tally.restart_round:
            self._examine(event.number, value, waiting.is_learner)

    def correct(self, event: Event, corrected: events.Corrected) -> None:
        """A reward that counts in place of the accepted one; never once something was learned from that."""
        waiting, value = self._waiting.get(corrected.decision_id), _value(corrected.values)
        window = self._created.reward_window
        is_open = waiting is not None and (window is None or event.time < waiting.time + window)
        is_new = corrected.decision_id not in self._corrected and event.key == f"x:{corrected.decision_id}"
        if waiting is None or waiting.reward is None or not is_open or not is_new or not abs(value) <= LARGEST:
            text = f"the reward of {corrected.decision_id!r} was corrected, but had not come, was learned, or corrected"
            self._findings.add(event.number, "corrected", text)
            return
        self._corrected.add(corrected.decision_id)
        self._tally.corrections.append((event.number, corrected))
        waiting.reward = value
        if waiting.round > self._tally.restart_round:
            self._examine(event.number, value, waiting.is_learner)

    def _check_refusal(self, event: Event, reward: events.Reward) -> None:
        """A reward that counts must not be turned away: learning only what is welcome would bias everything."""
        waiting, value = self._waiting.get(reward.decision_id), _value(reward.values)
        window = self._created.reward_window
        is_wrong = {
            "unknown": waiting is not None,
            "too_late": waiting is not None and (window is None or event.time < waiting.time + window),
            "out_of_range": abs(value) <= LARGEST,
            "conflict": waiting is not None and waiting.reward in (None, value),
            "abandoned": reward.decision_id not in self._abandoned,
        }
        if is_wrong[reward.refused or ""]:
            text = f"a reward of {reward.decision_id!r} was refused as {reward.refused}, which it is not"
            self._findings.add(event.number, "refused", text)

    def is_late(self, event: Event, decision_id: str, within: float | None) -> bool:
        """Whether what is said of a round comes after the time within which no reward had come yet."""
        waiting = self._waiting.get(decision_id)
        return within is not None and waiting is not None and event.time > waiting.time + within

    def void_late(self, event: Event, voided: events.Voided) -> None:
        """A round that was voided after that time: it stands as decided, and is not learned."""
        waiting = self._waiting[voided.decision_id]
        text = self._void_fault(event, voided, waiting)
        if text is not None:
            self._findings.add(event.number, "voided", f"{voided.decision_id!r} was voided, but {text}")
            return
        del self._waiting[voided.decision_id]
        self._tally.voided += 1
        self._tally.pending = len(self._waiting)
        self._learn_settled()

    def abandon(self, event: Event, abandoned: events.Abandoned) -> None:
        """A decision whose reward will never be learned; one that has come must not be dropped."""
        waiting = self._waiting.get(abandoned.decision_id)
        if waiting is None or waiting.reward is not None:
            text = (
                f"{abandoned.decision_id!r} was abandoned, but it is not without a reward: that would choose the data"
            )
            self._findings.add(event.number, "abandoned", text)
            return
        if event.key != f"r:{abandoned.decision_id}":
            self._findings.add(event.number, "key", f"the key of this event is {event.key!r}")
        del self._waiting[abandoned.decision_id]
        self._abandoned.add(abandoned.decision_id)
        self._tally.abandoned += 1
        self._tally.pending = len(self._waiting)
        if self._created.reward_window is None:
            self._learn_settled()

    def void(self, event: Event, voided: events.Voided) -> tuple[OfferedRound, int] | None:
        """A round that was not played as decided: its reward is that of what was played.

        Returns what was decided and the row that was played, where the ledger counts the round.
        """
        waiting = self._waiting.get(voided.decision_id)
        text = self._void_fault(event, voided, waiting)
        if text is not None or waiting is None or waiting.offered is None:
            self._findings.add(event.number, "voided", f"{voided.decision_id!r} was voided, but {text}")
            return None
        offered, played = waiting.offered, int(voided.action)
        waiting.features, waiting.is_learner = offered.rows[played], played != offered.baseline
        # What was declared was the mean of another row, perhaps.
        waiting.declared, waiting.is_voided = None, True
        self._tally.moved(was_learner=offered.is_learner, is_learner=waiting.is_learner)
        # A restart has charged all rounds before it.
        return (offered, played) if waiting.round > self._tally.restart_round else None

    def _void_fault(self, event: Event, voided: events.Voided, waiting: PendingReward | None) -> str | None:
        window = self._created.reward_window
        if waiting is None or waiting.reward is not None:
            return "it is not without a reward: that would choose the data"
        if window is not None and event.time >= waiting.time + window:
            return "its window had closed"
        if waiting.is_voided or event.key != f"v:{voided.decision_id}":
            return f"that is said once, under a key of its own, and not {event.key!r}"
        count = 0 if waiting.offered is None else len(waiting.offered.rows)
        if type(voided.action) is not int or not 0 <= voided.action < count:
            return f"there are {count} actions, and {voided.action!r:.40} is none of them"
        return None

    def value_of(self, decision_id: str) -> float:
        """What is learned of a decision once its window closes."""
        waiting = self._waiting.get(decision_id)
        came = None if waiting is None else waiting.reward
        return (self._created.default_reward or 0.0) if came is None else came

    def close(self, event: Event, settled: events.Settled) -> None:
        """Windows that closed."""
        if self._created.reward_window is None:
            self._findings.add(event.number, "window", "windows closed in an experiment that has none")
        for window in settled.windows:
            self._check_closed(event, window)

    def _check_closed(self, event: Event, learned: events.SettledWindow) -> None:
        waiting = self._waiting.get(learned.decision_id)
        if waiting is None or waiting.round != learned.round:
            text = f"the window of {learned.decision_id!r} (round {learned.round}) closed, which is not waiting"
            self._findings.add(event.number, "window", text)
            return
        while self._order and self._order[0].decision_id in self._abandoned:
            self._order.popleft()
        if self._order and self._order[0] is waiting:
            self._order.popleft()
        else:
            text = f"windows close in the order of decisions, but round {learned.round} is not the oldest that is open"
            self._findings.add(event.number, "window", text)
        if event.time < waiting.time + (self._created.reward_window or 0.0):
            self._findings.add(event.number, "window", f"the window of round {learned.round} closed too early")
        if learned.is_missing != (waiting.reward is None):
            text = f"round {learned.round} has {'no' if waiting.reward is None else 'a'} reward, but settled otherwise"
            self._findings.add(event.number, "settled", text)
        self._tally.defaults += learned.is_missing
        self._learn(waiting, self.value_of(learned.decision_id))

    def _learn(self, waiting: PendingReward, value: float) -> None:
        del self._waiting[waiting.decision_id]
        self._tally.pending = len(self._waiting)
        self._tally.learned += 1
        if waiting.teaches:
            self._take_in(waiting.features, value, waiting.is_learner, waiting.declared)


def _value(values: Mapping[str, Any]) -> float:
    """A linear policy has one metric; rewards that name another cannot be computed with."""
    return float(values[events.METRIC]) if set(values) == {events.METRIC} else math.nan
