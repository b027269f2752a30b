"""An adversary who couples shards through the world: rows here depend on rewards there, with every declaration true.

Merged in the order of hand-ins the floor breaks; merged by the watermark it holds. No hand-in has to look at a reward.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.sharing.coordinator import Coordinator
from surefoot.sharing.merging import Members
from tests.policies.adversaries import ALPHA, NOTHING, PRIZE, SURE, Luck
from tests.policies.safe_runs import most_allowed
from tests.sharing.shards import Shard
from tests.worlds import Array

DELTA, RUNS, SHARDS = 0.2, 16, 180
LUCK = Luck(odds=0.13, streak=2)


class InOrderOfHandIns(Members):
    """What a coordinator must not do: learn rounds as they are handed in."""

    def advance(self) -> Iterator[tuple[str, Any]]:
        for name, member in self.all.items():
            ready, member.waiting = member.waiting, []
            member.merged += len(ready)
            for made in ready:
                yield name, made


class Day:
    """A day of visits over many shards, and a night in which they hand in; the account is kept in true means."""

    def __init__(self, seed: list[int], *, by_watermark: bool, skew: float = 0.0) -> None:
        self.rng = np.random.default_rng(seed)
        self.coordinator = Coordinator(surefoot.SafeLUCB(**LUCK.declared(DELTA)), skew=skew)
        if not by_watermark:
            self.coordinator.members = InOrderOfHandIns(skew)
        self.shards = [Shard(self.coordinator.join(str(k), now=0.0)) for k in range(SHARDS)]
        # Clocks as wrong as they may be, in turn: any two neighbours differ by the whole skew.
        self.offsets = {str(k): (0.499 if k % 2 else -0.499) * skew for k in range(SHARDS)}
        self.time = self.slack = 0.0
        self.is_below = False

    def clock(self, shard: Shard) -> float:
        """The shard's own."""
        return self.time + self.offsets[shard.lease.shard]

    def visit(self, shard: Shard, *rows: Array) -> tuple[bool, bool]:
        """One visit, the first row the baseline's, and its reward: whether it was a prize, and who played."""
        self.time += 1.0
        decision = shard.decide(np.array(rows), baseline=0, moment=self.clock(shard))
        mean, owed = float(LUCK.theta @ rows[decision.action]), float(LUCK.theta @ rows[0])
        self.slack += mean - (1 - ALPHA) * owed
        self.is_below |= self.slack < -1e-9
        share = float(rows[decision.action][1])
        is_prize = bool(share > 0 and self.rng.random() < LUCK.odds)
        shard.observe(shard.rounds, mean + share * (is_prize - LUCK.odds))
        return is_prize, decision.action == 0

    def hand_in(self, shard: Shard) -> None:
        """Renew, and tempt: a sure baseline beside the prize, as long as the shard gives it away."""
        self.time += 1.0
        shard.meet(self.coordinator, self.time, self.clock(shard))
        while not self.is_below and not self.visit(shard, SURE, PRIZE)[1]:
            pass

    def play(self, order: str) -> bool:
        """Shard after shard gets a few visits; once one had prizes alone, all others are shown nothing."""
        lucky: Shard | None = None
        for shard in self.shards:
            row = PRIZE if lucky is None else NOTHING
            prizes = sum(self.visit(shard, row)[0] for _ in range(LUCK.streak))
            lucky = shard if prizes == LUCK.streak else lucky
        handing_in = self.shards[::-1]
        if order == "lucky first":
            handing_in.sort(key=lambda shard: shard is not lucky)
        for shard in handing_in:
            self.hand_in(shard)
            if self.is_below:  # which no later round takes back
                break
        return self.is_below


@pytest.mark.parametrize("order", ["newest first", "lucky first"])
def test_shards_that_are_coupled_through_the_world_break_the_order_of_hand_ins_and_not_the_watermark(
    order: str,
) -> None:
    limit = most_allowed(RUNS, DELTA)
    careless = sum(Day([17, run], by_watermark=False).play(order) for run in range(RUNS))
    careful = sum(Day([17, run], by_watermark=True).play(order) for run in range(RUNS))
    assert careless > limit  # what the watermark is for
    assert careful <= limit


def test_clocks_that_differ_by_less_than_a_reward_needs_to_be_known_break_nothing() -> None:
    # A row depends on rewards of a second before, and clocks differ by 0.9.
    below = sum(Day([17, run], by_watermark=True, skew=0.9).play("newest first") for run in range(RUNS))
    assert below <= most_allowed(RUNS, DELTA)
