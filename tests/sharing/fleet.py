"""Fleets of shards that share one floor: what leases cost against one ledger, and whether the floor holds.

Shards decide in a world's rounds, one after the other; which one is a matter of traffic. Everything else is the code of
`surefoot.sharing`: the frozen sets are stale, clocks differ, and shards die with what they have not handed in.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from surefoot.arrays import Vector, count, nonnegative
from surefoot.errors import ConfigError
from surefoot.policies import SafeLUCB
from surefoot.sharing.coordinator import Coordinator
from surefoot.simulation.policy_specs import Spec, seed_of_run
from surefoot.simulation.rewards import reward_of
from surefoot.simulation.worlds import Block, Realisation, World
from tests.sharing.shards import Shard

BLOCK = 512  # rounds that are drawn at once


@dataclass(frozen=True)
class Fleet:
    """How many shards there are, how traffic falls on them, and what goes wrong.

    shards:   how many
    every:    most rounds of a shard under one lease; an idle one renews after as many rounds of an average shard
    traffic:  exponent of Zipf's law: shard k gets a share in proportion to k^-traffic; 0 is even
    clocks:   rounds by which clocks differ at most
    dying:    shards that die at some moment, and are declared lost `patience` rounds later
    """

    shards: int
    every: int = 100
    traffic: float = 0.0
    clocks: float = 0.0
    dying: int = 0
    patience: int = 500

    def __post_init__(self) -> None:
        count("shards", self.shards, hint="shards is how many servers decide.")
        count("every", self.every, hint="every is how many rounds a lease lasts.")
        nonnegative("traffic", self.traffic, hint="traffic is the exponent of Zipf's law; 0 is even.")
        nonnegative("clocks", self.clocks, hint="clocks is by how many rounds clocks differ at most.")
        if not 0 <= self.dying < self.shards:
            raise ConfigError(f"`0 <= dying < shards` must hold, but got dying={self.dying} of {self.shards}.")

    def shares(self) -> Vector:
        """The share of the traffic of each shard."""
        weights = np.arange(1, self.shards + 1, dtype=np.float64) ** -self.traffic
        shares: Vector = weights / weights.sum()
        return shares


@dataclass
class FleetOutcome:
    """What a fleet did in one run.

    rounds:       decided, over all shards
    conservative: those in which the baseline played
    least:        how far the true means of all rounds, those of dead shards included, lay above the floor at worst
    hand_ins:     transactions of the coordinator
    lag:          rounds between a decision and the newest one that its set had learned, on average
    lease:        the mean of all leases that were granted
    """

    rounds: int = 0
    conservative: int = 0
    least: float = 0.0
    hand_ins: int = 0
    lag: float = 0.0
    lease: float = 0.0

    @property
    def is_below(self) -> bool:
        """Whether the floor was broken by the true means; sums of so many rounds are off by far less than this."""
        return self.least < -1e-9


@dataclass
class _Running:
    """One run of a fleet."""

    fleet: Fleet
    realisation: Realisation
    coordinator: Coordinator
    rng: np.random.Generator
    alpha: float
    slack: float = 0.0
    outcome: FleetOutcome = field(default_factory=FleetOutcome)

    def __post_init__(self) -> None:
        fleet = self.fleet
        names = [f"shard-{k}" for k in range(fleet.shards)]
        self.offsets = self.rng.uniform(-0.5, 0.5, size=fleet.shards) * fleet.clocks
        self.shards = [Shard(self.coordinator.join(name, now=-fleet.clocks)) for name in names]
        self.shares = fleet.shares()
        self.renewed = np.zeros(fleet.shards)  # when each of them has handed in last
        self.leases: list[float] = []
        self.late: dict[int, list[tuple[int, int, float]]] = {}

    def play(self, horizon: int) -> FleetOutcome:
        dying = sorted(self.rng.integers(horizon, size=self.fleet.dying).tolist())
        doomed = self.rng.permutation(self.fleet.shards)[: self.fleet.dying].tolist()
        dead: list[tuple[int, int]] = []
        for round_, block, t in _rounds(self.realisation, horizon):
            while len(dead) < len(dying) and dying[len(dead)] <= round_:
                self.kill(doomed[len(dead)])
                dead.append((round_, doomed[len(dead)]))
            for died, k in dead:
                if round_ == died + self.fleet.patience:
                    self.coordinator.lose(f"shard-{k}")
            self.decide(round_, block, t)
        self.outcome.lag /= horizon
        self.outcome.lease = float(np.mean(self.leases)) if self.leases else 0.0
        return self.outcome

    def kill(self, k: int) -> None:
        self.shares[k] = 0.0
        self.shares /= self.shares.sum()

    def decide(self, round_: int, block: Block, t: int) -> None:
        k = int(self.rng.choice(self.shares.size, p=self.shares))
        shard, place = self.shards[k], 0 if len(block.features) == 1 else t
        baseline, means = int(block.baselines[t]), block.means[place]
        moment = round_ + float(self.offsets[k])
        decision = shard.decide(block.features[place], baseline=baseline, moment=moment)
        mean, outcome = float(means[decision.action]), self.outcome
        self.slack += mean - (1.0 - self.alpha) * float(means[baseline])
        outcome.least = min(outcome.least, self.slack)
        outcome.rounds += 1
        outcome.conservative += decision.source == "baseline"
        outcome.lag += moment - max(0.0, float(shard.lease.watermark))
        rewards = self.realisation.rewards
        reward = reward_of(rewards.kind, rewards.scale, mean, block.draws[t])
        self.late.setdefault(round_ + int(block.delays[t]), []).append((k, shard.rounds, reward))
        for owner, number, value in self.late.pop(round_, ()):
            if self.shares[owner] > 0:  # what comes to a dead server is lost
                self.shards[owner].observe(number, value)
        if shard.is_due(self.fleet.every):
            self.renew(k, round_)
        if round_ % self.fleet.every == 0:
            self.renew_idle(round_)

    def renew_idle(self, round_: int) -> None:
        longest = self.fleet.every * self.fleet.shards
        for k in np.flatnonzero((self.shares > 0) & (self.renewed + longest < round_)):
            self.renew(int(k), round_)

    def renew(self, k: int, round_: int) -> None:
        now = round_ + 0.25
        self.shards[k].meet(self.coordinator, now, now + float(self.offsets[k]))
        self.renewed[k] = round_
        self.leases.append(self.shards[k].amount)
        self.outcome.hand_ins += 1


def _rounds(realisation: Realisation, horizon: int) -> Iterator[tuple[int, Block, int]]:
    for first in range(0, horizon, BLOCK):
        block = realisation.take(min(BLOCK, horizon - first))
        for t in range(block.draws.size):
            yield first + t + 1, block, t


def simulate_fleet(
    world: World, spec: Spec, fleet: Fleet, *, horizon: int, runs: int = 1, seed: int = 0
) -> list[FleetOutcome]:
    """Play a fleet of SafeLUCB's shards, once in each of so many realisations."""
    outcomes = []
    for run, realisation in enumerate(world.realisations(seed=seed, runs=range(runs))):
        policy = spec.new_policy(realisation.problem(realisation.take(1), seed=seed_of_run(seed, run)))
        if not isinstance(policy, SafeLUCB) or spec.alpha is None:
            raise ConfigError(f"Only SafeLUCB can be leased to shards, but got {type(policy).__name__}.")
        coordinator = Coordinator(policy, skew=fleet.clocks + 1.0)
        rng = np.random.default_rng([seed, run, fleet.shards])
        outcomes.append(_Running(fleet, realisation, coordinator, rng, spec.alpha).play(horizon))
    return outcomes
