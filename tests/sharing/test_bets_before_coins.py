"""What settles a bet is fixed before its coin: in a lease it follows from the bank that the lease froze.

Which rewards have entered the bank by the time a round is merged may depend on its coin. A world that delivers them by
the luck of the coins would choose the better of two bets.
"""

import math
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.policies import Guard
from surefoot.sharing.coordinator import Coordinator
from surefoot.sharing.pots import PairPot
from tests.policies.guard_reference import RATES, Bank
from tests.policies.safe_runs import most_allowed
from tests.sharing.shards import Shard

ALPHA, CAP, RESERVE, BLOCK = 0.1, 0.12, 40.0, 400
TURNS = 60  # settled by the bank at the merge, no run of eight needed more than 38 to break the floor
RATIO, SLOPE = (CAP - ALPHA) / CAP, (ALPHA - CAP) / (1.0 - CAP)


class Siege:
    """A world in which every round has a slack of exactly 0, until the bank is spent on a proposal that earns nothing.

    Rewards are fixed before their coin: the baseline's is `value` and the proposal's RATIO times that. Only when they
    are delivered depends on coins.
    """

    def __init__(self, seed: int, delta: float) -> None:
        guard = surefoot.Guard(alpha=ALPHA, delta=delta, ramp="gate", cap=CAP, reserve=RESERVE)
        self.coordinator = Coordinator(guard, skew=1e9)
        self.shard = Shard(self.coordinator.join("s", now=0.0), seed=seed)
        self.now, self.slack = 0.0, 0.0

    @property
    def bank(self) -> Any:
        return self.coordinator.policy.bank_records[0]

    def gap_after(self, rewards: list[tuple[int, float]], sides: list[bool]) -> float:
        """What the bank will know of learner less baseline, once these rewards have entered."""
        means = {True: self.bank.learner.mean, False: self.bank.baseline.mean}
        counts = {True: self.bank.learner.count, False: self.bank.baseline.count}
        for (_, reward), side in zip(rewards, sides, strict=True):
            counts[side] = min(counts[side] + 1.0, 300.0)
            means[side] += (reward - means[side]) / counts[side]
        return float(means[True] - means[False])

    def play(self, value: float, gap: float) -> tuple[float, list[tuple[int, float]], list[bool]]:
        """A block whose estimates have no luck in them if the hub knows `gap` at the merge; the luck of its coins."""
        predicted = min(1.0, max(0.0, ((RATIO - SLOPE) * value - gap) / (1.0 - SLOPE)))
        luck, rewards, sides = 0.0, list[tuple[int, float]](), list[bool]()
        for _ in range(BLOCK):
            self.now += 1.0
            made = self.shard.decide(baseline="old", proposal="new", moment=self.now, prediction=predicted)
            baseline = value if made.share > ALPHA else 0.0
            self.slack += made.share * RATIO * baseline + (ALPHA - made.share) * baseline
            sides.append(made.source == "learner")
            luck += sides[-1] - made.share
            rewards.append((made.round, RATIO * baseline if sides[-1] else baseline))
        return luck, rewards, sides

    def deliver(self, rewards: list[tuple[int, float]]) -> None:
        for round_, reward in rewards:
            self.shard.observe(round_, reward)

    def meet(self) -> None:
        self.now += 0.5
        self.shard.meet(self.coordinator, self.now)

    def spend(self) -> float:
        """Proposals that earn nothing, until nothing is left; how far above minus the reserve the slack ends."""
        for turn in range(4000):
            self.now += 1.0
            made = self.shard.decide(baseline="old", proposal="new", moment=self.now)
            self.slack -= max(0.0, made.share - ALPHA)
            if turn % 500 == 499:
                self.meet()
        return self.slack + RESERVE


def deliver_by_the_luck_of_coins(seed: int, delta: float) -> float:
    """Rewards of one block reach the hub just before or just after the next is handed in, as its coins fell."""
    siege, value = Siege(seed, delta), 0.0
    for _ in range(TURNS):
        value = 1.0 - value
        before = siege.bank.learner.mean - siege.bank.baseline.mean
        _, shift, sides = siege.play(value, before)
        siege.meet()
        later = siege.gap_after(shift, sides)
        luck, rewards, _ = siege.play(1.0, (before + later) / 2.0)
        # An estimate grows with luck where the hub knows the lower of the two gaps.
        if is_early := (luck > 0.0) == (later < before):
            siege.deliver(shift)
        siege.meet()
        siege.deliver(rewards if is_early else shift + rewards)
        siege.meet()
        if siege.bank.bound > 1.0:
            break
    return siege.spend()


def test_rewards_delivered_by_the_luck_of_coins_do_not_break_the_floor() -> None:
    runs, delta = 5, 0.05  # five failures of five are more than chance allows
    below = sum(deliver_by_the_luck_of_coins(seed, delta) < -1e-6 for seed in range(runs))
    assert below <= most_allowed(runs, delta)


class NotedPot(PairPot):
    """Notes what every round is settled by."""

    def __init__(self, guard: Guard) -> None:
        super().__init__(guard)
        self.noted: dict[tuple[str, int], bytes] = {}

    def recall(self, shard: str, handed: Any) -> int:
        round_ = super().recall(shard, handed)
        self.noted[shard, handed.number] = self.policy.settlement.find(round_)[0]
        return round_


class History:
    """Shards that decide, are paid late or never, hand in, get lost and return, at random; up to `split` by one seed.

    What comes after follows another seed, so two histories with the same past have different futures.
    """

    def __init__(self, past: int, future: int, split: int, steps: int) -> None:
        self.rng, self.now = np.random.default_rng([past, 0]), 0.0
        guard = Guard(alpha=ALPHA, delta=0.05, ramp="gate", reserve=20.0)
        self.hub, self.pot = Coordinator(guard, skew=1e9), NotedPot(guard)
        self.hub.pot = self.pot
        self.shards = {f"s{k}": self.join(f"s{k}", past) for k in range(3)}
        self.unpaid: list[tuple[str, int]] = []
        self.lost: set[str] = set()
        self.decided: dict[tuple[str, int], float] = {}  # shares
        for step in range(steps):
            if step == split:
                self.known = dict(self.decided)
                self.rng = np.random.default_rng([past, 1, future])
            self.step()
        for name in self.shards:
            self.meet(name)

    def join(self, name: str, seed: int) -> Shard:
        return Shard(self.hub.join(name, now=self.now), seed=seed + int(name[1:]))

    def step(self) -> None:
        self.now += 1.0
        name = str(self.rng.choice(list(self.shards)))
        match self.rng.choice(["visit", "pay", "meet", "lose"], p=[0.6, 0.25, 0.13, 0.02]):
            case "visit":
                predicted = float(self.rng.random()) if self.rng.random() < 0.5 else None
                proposal, is_held = "old" if self.rng.random() < 0.1 else "new", bool(self.rng.random() < 0.1)
                made = self.shards[name].decide(
                    baseline="old", proposal=proposal, moment=self.now, prediction=predicted, hold=is_held
                )
                self.decided[name, made.round] = made.share
                self.unpaid.append((name, made.round))
            case "pay" if self.unpaid:
                shard, round_ = self.unpaid.pop(int(self.rng.integers(len(self.unpaid))))
                if self.rng.random() < 0.1:
                    self.shards[shard].abandon(round_)
                else:
                    self.shards[shard].observe(round_, float(self.rng.random()))
            case "meet":
                self.meet(name)
            case "lose" if len(self.lost) < 2:
                self.hub.lose(name)
                self.lost.add(name)

    def meet(self, name: str) -> None:
        """A shard hands in, one that was lost as well: what it did is counted, late."""
        self.shards[name].meet(self.hub, self.now)
        self.lost.discard(name)


@pytest.mark.parametrize("past", range(6))
def test_what_a_round_is_settled_by_does_not_depend_on_what_comes_after_it(past: int) -> None:
    first, second = (History(past, future, split=220, steps=420) for future in (1, 2))
    assert first.known == second.known
    both = [key for key in first.known if key in first.pot.noted and key in second.pot.noted]
    assert len(both) > 80
    assert [key for key in both if first.pot.noted[key] != second.pot.noted[key]] == []


def test_every_factor_has_a_mean_of_at_most_what_it_claims() -> None:
    """E[F] <= exp(rate d), whatever the two rewards are: from what was fixed before the coin alone."""
    history, rng = History(3, 1, split=300, steps=400), np.random.default_rng(5)
    bank = Bank(1.0, ALPHA, 0.0, 1.0, 0.05)
    for key, plan in history.pot.noted.items():
        share, worst, a, of_a, b, of_b = np.frombuffer(plan).tolist()
        for _ in range(3):
            learner, baseline = rng.random(2) * rng.integers(0, 2, size=2)
            slack = share * learner + (ALPHA - share) * baseline
            assert slack >= -worst - 1e-12
            for rate in RATES:
                told = rate, share, (a, of_a), (b, of_b)
                won, kept = bank.factor(*told, True, learner), bank.factor(*told, False, baseline)
                assert min(won, kept) >= 0.0
                assert share * won + (1.0 - share) * kept <= math.exp(rate * slack) * (1.0 + 1e-9), key
