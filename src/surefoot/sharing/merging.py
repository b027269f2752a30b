"""Rounds of all shards in the order of their decisions, up to a watermark (docs/mathematics.md, "Leases").

A row in one shard may depend, through the world, on a reward in another. So nothing is learned beyond the moment up to
which every shard has handed in its rounds.
"""

import heapq
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from surefoot.errors import AssumptionError, InputError
from surefoot.rounds.events import HandIn


@dataclass(slots=True)
class Member:
    """A shard as its coordinator knows it.

    through: every round that it decided before has been handed in
    amounts: what its rounds may cost under its present lease; empty if it has none
    frozen:  a guard's banks as its newest lease knew them, of which all bets under that lease are functions
    is_away: nobody waits for its rounds: it has left, or is lost
    """

    through: float
    since: float  # when its last hand-in was
    lease: int = 0
    amounts: tuple[float, ...] = ()
    frozen: Any = None
    rounds: int = 0  # handed in so far
    merged: int = 0  # of these
    pace: float = 1.0  # rounds under a lease, lately: its share of what can be leased
    is_away: bool = False
    is_leased: bool = False  # the present lease is not handed in
    waiting: list[Any] = field(default_factory=list)  # rounds that are handed in, and beyond the watermark


class Members:
    """The shards of one promise, and the order of their rounds.

    skew: seconds by which the clocks of two shards may differ; so each by half of it from the coordinator's, the way of
          a message included
    """

    def __init__(self, skew: float) -> None:
        self.skew = skew
        self.all: dict[str, Member] = {}
        self.watermark = -math.inf

    def find(self, name: str) -> Member:
        """A shard that has joined."""
        if name not in self.all:
            raise InputError(f"There must be a shard of that name, but none has joined as {name!r}.")
        return self.all[name]

    def check(self, hand_in: HandIn, rounds: list[Any], now: float, sent: float) -> Member:
        """The shard that hands in, if all that it says can be true; `sent` is its clock now."""
        member = self.find(hand_in.shard)
        if hand_in.lease != member.lease or not member.is_leased:
            raise InputError(
                f"Shard {hand_in.shard!r} must hand in its lease {member.lease}, once, but got lease {hand_in.lease}"
                f"{'' if member.is_leased else ' and has none any more'}. What was handed in counts once."
            )
        if not (abs(sent - now) <= self.skew / 2 and hand_in.through <= now + self.skew / 2):
            raise AssumptionError(
                f"The clock of shard {hand_in.shard!r} must agree with the coordinator's within half of "
                f"skew={self.skew:g} seconds, since two shards may differ by twice that, but says {sent!r}, and "
                f"through={hand_in.through!r}, at {now!r}. Set its clock, or hand in again if the message was slow or "
                "once `through` has passed: rounds are learned in the order of their moments."
            )
        moments = [member.since, *(one.moment for one in rounds), hand_in.through]
        is_ordered = all(before <= after for before, after in pairwise(moments))
        numbers = [one.number for one in rounds]
        if not is_ordered or numbers != list(range(member.rounds + 1, member.rounds + 1 + len(numbers))):
            raise InputError(
                f"Rounds must be handed in whole and in the order of their moments, from {member.since!r} on and up to "
                f"`through`, but those of shard {hand_in.shard!r} are not."
            )
        return member

    def advance(self) -> Iterator[tuple[str, Any]]:
        """Move the watermark on, and give the rounds before it, oldest first."""
        present = [member.through for member in self.all.values() if not member.is_away]
        latest = max(member.through for member in self.all.values())
        # Where nobody is waited for, a round at the very last moment counts, too.
        self.watermark = max(self.watermark, min(present) if present else math.nextafter(latest, math.inf))
        ready = []
        for name, member in self.all.items():
            due = sum(one.moment < self.watermark for one in member.waiting)
            ready.append([(one.moment, name, one) for one in member.waiting[:due]])
            del member.waiting[:due]
            member.merged += due
        # Neither of two rounds at the same moment can have seen the other's reward: any order of the two is right.
        for _, name, one in heapq.merge(*ready, key=lambda entry: entry[:2]):
            yield name, one
