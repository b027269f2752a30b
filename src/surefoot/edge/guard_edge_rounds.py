"""What a guard's edge remembers of its rounds beside its shard: windows, the callers' ids, and what was not played.

What was really played changes nothing of a round: its coin, its side and its share stay (intention to treat).
"""

import hashlib
from typing import Any

import msgspec

from surefoot.client.models import GuardDecision
from surefoot.edge.bundle import BankHead
from surefoot.edge.edge_entries import Drawn
from surefoot.edge.edge_rounds import AT_ONCE, BaseEdgeRounds
from surefoot.experiment.attribution_windows import OpenWindow
from surefoot.leases import GuardShard


class OwnDrawn(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A guard's round with an id of the caller's; `action` is JSON."""

    decision_id: str
    asked: bytes
    round: int
    action: bytes
    is_learner: bool
    share: float
    mode: str
    is_expired: bool
    is_voided: bool = False

    def again(self) -> GuardDecision:
        """The decision, for whoever asks once more."""
        return GuardDecision(
            self.decision_id,
            msgspec.json.decode(self.action),
            "learner" if self.is_learner else "baseline",
            self.share if self.is_learner else 1.0 - self.share,
            self.share,
            mode=self.mode,
            round=self.round,
            explanation="It was decided before, and is the same round.",
            is_repeat=True,
            is_held=self.is_expired or self.mode != "guarded",
            is_fallback=self.is_expired,
            is_voided=self.is_voided,
        )


class PlayedRound(msgspec.Struct, array_like=True, frozen=True):
    """What was played in place of what the coin chose, as JSON; None for the baseline."""

    action: bytes | None


class KeptGuardRounds(msgspec.Struct, array_like=True):
    """All of it, for a log that begins anew."""

    windows: list[OpenWindow]
    own: list[OwnDrawn]
    played: dict[int, PlayedRound]


class GuardEdgeRounds(BaseEdgeRounds[OwnDrawn]):
    """The rounds of an edge that decides for a guard."""

    def __init__(self, shard: GuardShard, head: BankHead, kept: bytes = b"") -> None:
        told = msgspec.msgpack.decode(kept, type=KeptGuardRounds) if kept else KeptGuardRounds([], [], {})
        super().__init__(shard, head, told.windows, told.own)
        self._shard, self.played = shard, told.played

    def kept(self) -> bytes:
        """All of it, as it is written."""
        windows = [] if self._windows is None else list(self._windows)
        return msgspec.msgpack.encode(KeptGuardRounds(windows, list(self.own), self.played))

    def close(self, moment: float) -> None:
        """Book what windows that closed by then say: what is missing counts as its default, or at its worst."""
        while self._windows is not None and (due := self._windows.due_of_guard(moment, AT_ONCE)):
            for settled in due:
                values = self.reward_of(settled.round)
                self._windows.close(settled)
                self._shard.observe(settled.round, values or {})

    def decided(self, entry: Drawn, mode: str, asked: bytes) -> None:
        """Remember a round."""
        if self._windows is not None:
            self._windows.begin(str(entry.round), entry.round, entry.moment)
        if entry.decision_id is not None:
            told = entry.decision_id, asked, entry.round, entry.played, entry.is_learner, entry.share
            self.own.keep(OwnDrawn(*told, mode, entry.is_expired))

    def _take(self, round_: int, value: Any, bounds: tuple[float, float] | None) -> None:
        """Take a reward, now or when its window closes; the metrics have bounds of their own."""
        waiting = None if self._windows is None else self._windows.find(str(round_))
        if waiting is None:
            self._shard.observe(round_, value)
        else:
            waiting.value = value

    def void(self, decided: Drawn, action: bytes | None) -> None:
        """Note what was really played."""
        self.played[decided.round] = PlayedRound(action)
        own = None if decided.decision_id is None else self.own.find(decided.decision_id)
        if own is not None:
            shown = decided.baseline if action is None else action
            self.own.keep(msgspec.structs.replace(own, action=shown, is_voided=True))

    def forget_settled(self) -> None:
        """With a new lease, what was not played matters only of rounds that are open."""
        awaits = self._policy.settlement.awaits
        self.played = {round_: one for round_, one in self.played.items() if awaits(round_)}


def fingerprint_drawn(baseline: bytes, proposal: bytes, prediction: Any) -> bytes:
    """What tells one question of a guard from another."""
    told = msgspec.msgpack.encode((baseline, proposal, prediction))
    return hashlib.blake2b(told, digest_size=16).digest()
