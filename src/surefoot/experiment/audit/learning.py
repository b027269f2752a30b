"""Which rewards were learned, and when: once each, after their decision, and with a window only when it had closed."""

from collections.abc import Callable
from dataclasses import dataclass

from surefoot.experiment import records
from surefoot.experiment.audit.findings import Findings
from surefoot.experiment.audit.sums import Vector
from surefoot.experiment.audit.tally import Tally
from surefoot.journal.events import Event

LARGEST = 1e100  # of any reward


@dataclass(slots=True)
class Waiting:
    """A decision whose reward is not learned yet."""

    round: int
    time: float
    features: Vector
    is_learner: bool
    reward: float | None = None


class Learning:
    """The decisions that wait for a reward; `take_in` is told each reward that is learned, in order."""

    def __init__(
        self,
        created: records.Created,
        take_in: Callable[[Vector, float, bool], None],
        findings: Findings,
        tally: Tally,
    ) -> None:
        self._created, self._take_in, self._findings, self._tally = created, take_in, findings, tally
        self._waiting: dict[str, Waiting] = {}
        self._closed = 0  # rounds whose windows have closed: always the oldest

    def wait(self, decision: records.Decision, time: float, features: Vector, is_learner: bool) -> bool:
        """Wait for a decision's reward; false where it is waited for already."""
        is_new = decision.decision_id not in self._waiting
        self._waiting[decision.decision_id] = Waiting(decision.round, time, features, is_learner)
        self._tally.pending = len(self._waiting)
        return is_new

    def reward(self, event: Event, reward: records.Reward) -> None:
        """A reward that came in, accepted or refused."""
        if reward.refused is not None:
            self._tally.refused[reward.refused] += 1 + reward.unrecorded
            self._check_refusal(event, reward)
            return
        self._tally.rewards += 1
        waiting, value = self._waiting.get(reward.decision_id), float(reward.value)
        if waiting is None:
            text = f"a reward of {reward.decision_id!r} was accepted, but no such decision is waiting for one"
            self._findings.add(event.number, "reward", text)
            return
        if event.key != f"r:{reward.decision_id}":
            self._findings.add(event.number, "key", f"the key of this reward is {event.key!r}")
        if not self._is_in_range(value):
            self._findings.add(event.number, "reward", f"{value:g} was accepted, which is out of range")
        if self._created.reward_window is None:
            self._learn(reward.decision_id, value)
        elif waiting.reward is not None:
            self._findings.add(event.number, "reward", f"{reward.decision_id!r} has a reward already")
        elif event.time >= waiting.time + self._created.reward_window:
            self._findings.add(
                event.number, "reward", f"{reward.decision_id!r} was rewarded after its window had closed"
            )
        else:
            waiting.reward = value

    def _check_refusal(self, event: Event, reward: records.Reward) -> None:
        """A reward that counts must not be turned away: learning only what is welcome would bias everything."""
        waiting, value, window = self._waiting.get(reward.decision_id), float(reward.value), self._created.reward_window
        is_wrong = {
            "unknown": waiting is not None,
            "too_late": waiting is not None and (window is None or event.time < waiting.time + window),
            "out_of_range": self._is_in_range(value),
            "conflict": waiting is not None and waiting.reward in (None, value),
        }
        if is_wrong[reward.refused or ""]:
            text = f"a reward of {reward.decision_id!r} was refused as {reward.refused}, which it is not"
            self._findings.add(event.number, "refused", text)

    def _is_in_range(self, value: float) -> bool:
        low, high = self._created.reward_bounds or (-LARGEST, LARGEST)
        return low <= value <= high

    def close(self, event: Event, closed: records.Closed) -> None:
        """Windows that closed."""
        if self._created.reward_window is None:
            self._findings.add(event.number, "window", "windows closed in an experiment that has none")
        for learned in closed.learned:
            self._check_closed(event, learned)

    def _check_closed(self, event: Event, learned: records.Learned) -> None:
        waiting = self._waiting.get(learned.decision_id)
        if waiting is None or waiting.round != learned.round:
            text = f"the window of {learned.decision_id!r} (round {learned.round}) closed, which is not waiting"
            self._findings.add(event.number, "window", text)
            return
        if learned.round != self._closed + 1:
            text = (
                f"windows close in the order of decisions: round {self._closed + 1} is next, but it is {learned.round}"
            )
            self._findings.add(event.number, "window", text)
        self._closed = learned.round
        if event.time < waiting.time + (self._created.reward_window or 0.0):
            self._findings.add(event.number, "window", f"the window of round {learned.round} closed too early")
        expected = (self._created.default_reward or 0.0) if waiting.reward is None else waiting.reward
        if learned.value != expected or learned.is_default != (waiting.reward is None):
            text = f"round {learned.round} must learn {expected}, but {learned.value} was learned"
            self._findings.add(event.number, "learned", text)
        self._tally.defaults += learned.is_default
        self._learn(learned.decision_id, learned.value)

    def _learn(self, decision_id: str, value: float) -> None:
        waiting = self._waiting.pop(decision_id)
        self._tally.pending = len(self._waiting)
        self._tally.learned += 1
        self._take_in(waiting.features, value, waiting.is_learner)
