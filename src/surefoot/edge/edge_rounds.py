"""What an edge remembers of its rounds beside its shard: open windows, the callers' ids, and what was not played.

Windows close by the moments of the log's entries alone, so the service, which takes in the log, closes the same ones
before the same entries, however late it hears of them.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, Generic, Literal, NamedTuple

import msgspec

from surefoot.edge.bundle import BundleHead, SignedHead
from surefoot.edge.edge_entries import Decided, Rewarded
from surefoot.edge.own_ids import Own, OwnIds, OwnRound
from surefoot.experiment.attribution_windows import AttributionWindows, OpenWindow
from surefoot.leases import GuardShard, Shard

AT_ONCE = 1000  # windows


class VoidedRound(NamedTuple):
    """What was played in place of what was decided."""

    action: int
    name: str | None
    is_baseline: bool

    def is_meant_by(self, action: str | int | None) -> bool:
        """Whether a caller says the same again."""
        return self.is_baseline if action is None else action in (self.action, self.name)


class KeptRounds(msgspec.Struct, array_like=True):
    """All of it, for a log that begins anew."""

    windows: list[OpenWindow]
    own: list[OwnRound]
    voided: dict[int, VoidedRound]


class BaseEdgeRounds(ABC, Generic[Own]):
    """What is the same of every edge; `head` is that of any of its leases, since windows never change."""

    def __init__(
        self, shard: Shard | GuardShard, head: SignedHead, windows: Iterable[OpenWindow], own: list[Own]
    ) -> None:
        self._policy, self._windows = shard.policy, None
        if head.reward_window is not None:
            self._windows = AttributionWindows(head.reward_window, head.default_reward or 0.0, windows)
        self.own = OwnIds[Own](shard.policy.settlement.awaits, own)

    @abstractmethod
    def close(self, moment: float) -> None:
        """Learn what windows that closed by then say; only before an entry of that moment."""

    @abstractmethod
    def kept(self) -> bytes:
        """All of it, as it is written."""

    @abstractmethod
    def forget_settled(self) -> None:
        """Forget, with a new lease, what matters only of rounds that are open."""

    def settled_as(self, round_: int, now: float) -> Literal["settled", "rewarded", "too_late"] | None:
        """Why a round takes no reward; None while it waits for one."""
        if self._windows is None:
            return None if self._policy.settlement.awaits(round_) else "settled"
        waiting = self._windows.find(str(round_))
        if waiting is None or waiting.closes <= now:
            return "too_late" if waiting is None or waiting.value is None else "rewarded"
        return None if waiting.value is None else "rewarded"

    def reward_of(self, round_: int) -> float | dict[str, float] | None:
        """The reward that waits for its window to close."""
        waiting = None if self._windows is None else self._windows.find(str(round_))
        return None if waiting is None else waiting.value

    def settle(self, entry: Rewarded, bounds: tuple[float, float] | None) -> None:
        """Take a reward, or abandon the round."""
        if entry.value is not None:
            self._take(entry.round, entry.value, bounds)
            return
        self._policy.abandon(entry.round)
        if self._windows is not None:
            self._windows.abandon(str(entry.round))

    @abstractmethod
    def _take(self, round_: int, value: Any, bounds: tuple[float, float] | None) -> None:
        """Take a reward, now or when its window closes."""


class EdgeRounds(BaseEdgeRounds[OwnRound]):
    """The rounds of an edge that decides for SafeLUCB."""

    def __init__(self, shard: Shard, head: BundleHead, kept: bytes = b"") -> None:
        told = msgspec.msgpack.decode(kept, type=KeptRounds) if kept else KeptRounds([], [], {})
        super().__init__(shard, head, told.windows, told.own)
        self._shard, self.voided = shard, told.voided

    def kept(self) -> bytes:
        """All of it, as it is written."""
        windows = [] if self._windows is None else list(self._windows)
        return msgspec.msgpack.encode(KeptRounds(windows, list(self.own), self.voided))

    def close(self, moment: float) -> None:
        """Learn what windows that closed by then say; only before an entry of that moment."""
        while self._windows is not None and (due := self._windows.due(moment, AT_ONCE)):
            for learned in due:
                self._windows.close(learned)
                self._shard.observe(learned.round, learned.value)

    def decided(self, entry: Decided, mode: str, asked: bytes) -> None:
        """Remember a round."""
        if self._windows is not None:
            self._windows.begin(str(entry.round), entry.round, entry.moment)
        if entry.decision_id is not None:
            name = str(entry.action) if entry.names is None else entry.names[entry.action]
            told = entry.decision_id, asked, entry.round, entry.action, name, entry.is_learner, mode, entry.is_expired
            self.own.keep(OwnRound(*told))

    def _take(self, round_: int, value: Any, bounds: tuple[float, float] | None) -> None:
        """Take a reward, now or when its window closes; the alarm must not wait until then."""
        waiting = None if self._windows is None else self._windows.find(str(round_))
        if waiting is None:
            self._shard.observe(round_, value)
        else:
            waiting.value = value
            self._shard.policy.examine(round_, value)
        low, high = bounds or (value, value)
        if not low <= value <= high:
            text = f"A reward of {value:.6g} came in for round {round_}, outside of what was declared."
            self._shard.policy.report_breach("reward", text)

    def void(self, decided: Decided, played: int) -> None:
        """Move a round to what was really played."""
        self._shard.void(
            decided.round,
            decided.matrix(),
            baseline=decided.baseline,
            baseline_reward=decided.known,
            action=decided.action,
            source="learner" if decided.is_learner else "baseline",
            played=played,
        )
        name = None if decided.names is None else decided.names[played]
        self.voided[decided.round] = VoidedRound(played, name, played == decided.baseline)
        own = None if decided.decision_id is None else self.own.find(decided.decision_id)
        if own is not None:
            shown = str(played) if name is None else name
            is_learner = played != decided.baseline
            self.own.keep(
                msgspec.structs.replace(own, action=played, action_id=shown, is_learner=is_learner, is_voided=True)
            )

    def forget_settled(self) -> None:
        """With a new lease, what was voided matters only of rounds that are open."""
        awaits = self._policy.settlement.awaits
        self.voided = {round_: played for round_, played in self.voided.items() if awaits(round_)}
