"""A world with a truth, and shards over it in this process, without journals, for the tests of leases."""

from dataclasses import dataclass, field
from typing import Any

import msgspec
import numpy as np

import surefoot
from surefoot.linear.actions import Catalogue
from surefoot.policies.guard_settings import is_same
from surefoot.policies.policy import Policy
from surefoot.rounds.events import Lease, PairHanded, RowsHanded
from surefoot.sharing import LeasedGuard, LeasedLUCB
from surefoot.sharing.coordinator import Coordinator
from tests.worlds import Array

ALPHA = 0.1
SETTINGS: dict[str, Any] = {
    "dim": 3, "alpha": ALPHA, "delta": 0.01, "noise": 0.1, "theta_bound": 1.05, "feature_bound": 1.0, "ridge": 0.3,
    "reward_range": (0.0, 1.0),
}  # fmt: skip
BOUNDED = {"noise": None, "reward_bounds": (0.0, 1.0)}


class Shard:
    """One shard: the policy that it decides by, its lease, and what it has to hand in."""

    def __init__(self, granted: tuple[Lease, dict[str, Any]], *, seed: int | None = None) -> None:
        self.lease, self.state = granted
        policy: Any = Policy.from_state(self.state)
        self.is_guard = isinstance(policy, surefoot.Guard)
        self.policy: Any = (
            LeasedGuard(**{**policy.settings, "seed": seed}) if self.is_guard else LeasedLUCB(**policy.settings)
        )
        self.since: list[Any] = []
        self.moment = self.lease.since
        self.policy.renew(self.lease, self.state)

    @property
    def rounds(self) -> int:
        return int(self.policy.rounds)

    @property
    def amount(self) -> float:
        return self.lease.amounts[0]

    def is_due(self, every: int) -> bool:
        return len(self.since) >= min(every, max(1, self.rounds // 2))

    def decide(self, features: Any = None, *, moment: float, **request: Any) -> Any:
        assert moment >= self.moment
        decision = self.policy.decide(**request) if self.is_guard else self.policy.decide(features, **request)
        told: dict[str, Any] = {"number": decision.round, "moment": moment, "is_learner": decision.source == "learner"}
        self.moment = moment
        if self.is_guard:
            teaches, draw = not is_same(request["baseline"], request["proposal"]), decision.draw
            told |= {"share": decision.share, "draw": None if np.isnan(draw) else draw, "teaches": teaches}
            self.since.append(PairHanded(**told, prediction=request.get("prediction")))
        else:
            rows = features.rows if isinstance(features, Catalogue) else np.asarray(features)
            played, displaced = rows[decision.action].tolist(), rows[request["baseline"]].tolist()
            known = request.get("baseline_reward")
            known = list(known) if isinstance(known, tuple) else known
            self.since.append(RowsHanded(**told, played=played, displaced=displaced, baseline_reward=known))
        return decision

    def void(self, number: int, features: Array, *, baseline: int, action: int, played: int) -> None:
        """Move a round of the learner to what was really played."""
        told: dict[str, Any] = {"baseline": baseline, "action": action, "source": "learner", "played": played}
        self.policy.void(number, features, **told)
        place = number - self.since[0].number
        row = features[played].tolist()
        self.since[place] = msgspec.structs.replace(self.since[place], played=row, is_learner=played != baseline)

    def observe(self, number: int, reward: Any) -> None:
        self.policy.observe(number, reward)

    def abandon(self, number: int) -> None:
        self.policy.abandon(number)

    def hand_in(self, moment: float) -> Any:
        """What was done under the lease; from now on only the baseline plays."""
        given = self.policy.hand_in(self.lease, self.since, token="", through=moment)
        self.policy.end_lease()
        self.since, self.moment = [], moment
        return given

    def renew(self, granted: tuple[Lease, dict[str, Any]]) -> None:
        self.lease, self.state = granted
        self.policy.renew(self.lease, self.state, self.since)

    def meet(self, coordinator: Coordinator, now: float, moment: float | None = None) -> Any:
        """Hand in, and go on under the next lease; what was handed in."""
        given = self.hand_in(now if moment is None else moment)
        self.renew(coordinator.take(given, now=now))
        return given


def leave(coordinator: Coordinator, given: Any, *, now: float) -> None:
    """Take in what a shard did that leaves."""
    given = msgspec.structs.replace(given, leaves=True)
    coordinator.check(given, now=now)
    coordinator.receive(given)


@dataclass
class World:
    """Rows and a truth with means in [0, 1]; the baseline is neither the best row nor the worst."""

    rng: np.random.Generator
    is_bounded: bool = False  # rewards are 0 or 1
    theta: Array = field(init=False)
    rows: Array = field(init=False)
    slack: float = 0.0
    least: float = 0.0

    def __post_init__(self) -> None:
        theta = np.abs(self.rng.normal(size=3)) + 0.05
        self.theta = theta / np.linalg.norm(theta)
        rows = np.abs(self.rng.normal(size=(5, 3)))
        rows *= self.rng.uniform(0.2, 1.0, size=(5, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
        self.rows = rows[np.argsort(rows @ self.theta)]
        self.baseline = 3

    def visit(self, shard: Shard, moment: float) -> float:
        """Have one round decided, count it by the truth, and return its reward."""
        return self.played(shard.decide(self.rows, baseline=self.baseline, moment=moment).action)

    def played(self, action: int) -> float:
        """Count a round by the truth, and draw its reward."""
        means = self.rows @ self.theta
        self.slack += float(means[action] - (1 - ALPHA) * means[self.baseline])
        self.least = min(self.least, self.slack)
        if self.is_bounded:
            return float(self.rng.random() < means[action])
        return float(means[action] + 0.1 * self.rng.normal())


def new_coordinator(*, skew: float = 1e6, **extra: Any) -> Coordinator:
    return Coordinator(surefoot.SafeLUCB(**{**SETTINGS, **extra}), skew=skew)


def lease_twice(coordinator: Coordinator) -> Coordinator:
    """Break a coordinator: it leases the same money to each shard."""
    pot: Any = coordinator.pot
    pot.amounts = lambda part, leased: tuple(max(0.0, amount) for amount in pot.totals())
    return coordinator
