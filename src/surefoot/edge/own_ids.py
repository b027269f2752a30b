"""The caller's own ids of an edge's rounds, so that a question asked twice is one round.

An id is known while its round is open, and for the last `REMEMBERED` rounds: a log that lives for years must not keep
all of them. One that is used again after that is a new round, which the lease pays for.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, Generic, Protocol, TypeVar

import msgspec

from surefoot.arrays import Matrix
from surefoot.client.models import Decision
from surefoot.errors import DecisionConflictError, InputError
from surefoot.experiment.question import read_id

REMEMBERED = 50_000


class AnyOwnRound(Protocol):
    """A round with an id of the caller's; `asked` is the fingerprint of its question."""

    @property
    def decision_id(self) -> str:
        """The id."""

    @property
    def asked(self) -> bytes:
        """What tells its question from another."""

    @property
    def round(self) -> int:
        """Its number."""


Own = TypeVar("Own", bound=AnyOwnRound)


class OwnRound(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """A round of a linear policy."""

    decision_id: str
    asked: bytes
    round: int
    action: int
    action_id: str
    is_learner: bool
    mode: str
    is_expired: bool
    is_voided: bool = False

    def again(self) -> Decision:
        """The decision, for whoever asks once more."""
        return Decision(
            self.decision_id,
            self.action_id,
            self.action,
            "learner" if self.is_learner else "baseline",
            self.mode,
            self.round,
            "It was decided before, and is the same round.",
            is_repeat=True,
            is_fallback=self.is_expired,
            is_voided=self.is_voided,
        )


class OwnIds(Generic[Own]):
    """Rounds by the ids that callers gave them; `is_open` tells whether a round still waits for its reward."""

    def __init__(self, is_open: Callable[[int], bool], kept: list[Own] | None = None) -> None:
        self._is_open = is_open
        self._newest = OrderedDict((own.decision_id, own) for own in kept or ())
        self._older = dict[str, Own]()  # open ones
        self._sweep_at = 1000

    def __iter__(self) -> Iterator[Own]:
        yield from self._older.values()
        yield from self._newest.values()

    def find(self, decision_id: str) -> Own | None:
        """The round of an id."""
        return self._newest.get(decision_id) or self._older.get(decision_id)

    def keep(self, own: Own) -> None:
        """Remember a round, or what was really played in it."""
        if own.decision_id in self._older:
            self._older[own.decision_id] = own
            return
        self._newest[own.decision_id] = own
        newest = next(reversed(self._newest.values())).round
        while (oldest := next(iter(self._newest.values()))).round <= newest - REMEMBERED:
            del self._newest[oldest.decision_id]
            if self._is_open(oldest.round):
                self._older[oldest.decision_id] = oldest
        if len(self._older) > self._sweep_at:
            self._older = {name: one for name, one in self._older.items() if self._is_open(one.round)}
            self._sweep_at = 2 * len(self._older) + 1000


def fingerprint(rows: Matrix, names: list[str] | None, baseline: int, known: Any) -> bytes:
    """What tells one question of a linear policy from another."""
    told = msgspec.msgpack.encode((len(rows), names, baseline, known))
    return hashlib.blake2b(rows.tobytes() + told, digest_size=16).digest()


def read_own_id(decision_id: str, shard: str) -> str:
    """An id of the caller's, if it is none that the edge may give itself."""
    own = read_id(decision_id)
    name, _, number = own.rpartition(":")
    if name == shard and number.isdigit():
        raise InputError(
            f"`decision_id` must not be of the form {shard}:1, which the edge gives rounds without an id of yours, but "
            f"got {own!r}."
        )
    return own


def check_same(found: AnyOwnRound, asked: bytes) -> None:
    """Raise where an id stands for another question."""
    if found.asked != asked:
        raise DecisionConflictError(
            f"A decision_id must stand for one question, but {found.decision_id!r} was asked before with other "
            "actions, features, baseline or prediction. Use a new id for a new question."
        )
