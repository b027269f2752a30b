"""Planning: before going live, how long until the learner acts freely, what is at stake, what is gained.

A company knows its baseline's mean reward and hopes for some gain. Worlds that fit are drawn, the policy is simulated
in them, and the theorem's bound stands beside what was seen.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from surefoot import theory
from surefoot.arrays import count, positive
from surefoot.errors import ConfigError
from surefoot.simulation.engine import Outcome, simulate
from surefoot.simulation.environments import Baseline, FixedRealisation, World
from surefoot.simulation.rewards import Gaussian
from surefoot.simulation.specs import Spec

FREE_FROM = 0.8  # a learner acts freely once the baseline has not been played in the last fifth of what was simulated
MOST_ROUNDS = 400_000  # a longer month is simulated up to here, and the rest is said to be free play


@dataclass(frozen=True)
class PlanWorld(World):
    """Random actions of which one, the baseline, earns `baseline_reward` and the best one `gain` more, as a share."""

    baseline: Baseline = field(default_factory=lambda: Baseline(action=0))
    baseline_reward: float = 0.5
    gain: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("baseline_reward", self.baseline_reward, hint="baseline_reward is what today's action earns.")
        positive("gain", self.gain, hint="gain is how much more the best action earns; 0.1 is 10%.")

    def realise(self, seed: np.random.SeedSequence) -> FixedRealisation:
        """Draw rows with positive means; scale them to the best reward, and make row 0 the baseline."""
        rng, shared = self._parts(seed)
        theta = rng.standard_normal(self.dim)
        rows = rng.standard_normal((self.actions, self.dim))
        rows[rows @ theta < 0] *= -1
        best = self.baseline_reward * (1 + self.gain)
        means = rows @ theta
        theta = theta * (best / means.max())
        means = rows @ theta
        # The action whose reward is nearest becomes the baseline; stretching its row makes that exact.
        order = np.argsort(-means, kind="stable")
        chosen = int(order[1:][np.argmin(np.abs(means[order[1:]] - self.baseline_reward))])
        rows[chosen] *= self.baseline_reward / means[chosen]
        rows[[0, chosen]] = rows[[chosen, 0]]
        return FixedRealisation(
            rows=np.ascontiguousarray(rows),
            theta=theta,
            theta_bound=float(np.linalg.norm(theta)),
            feature_bound=float(np.linalg.norm(rows, axis=1).max()),
            **shared,
        )


@dataclass(frozen=True)
class Answer:
    """What a manager asked, for one alpha. Rounds and days are medians over runs; `slow` is the 90th percentile.

    A run is free where the baseline was not played in its last fifth; then `free_round` follows the last time it was.
    """

    alpha: float
    policy: str
    baseline_rounds: float
    free_round: float
    free_round_slow: float
    free_day: float
    free_day_slow: float
    free_share: float
    bound_rounds: float
    at_stake_share: float
    worst_seen_share: float
    gained: float
    gained_share: float
    gained_stderr: float
    violations: int


@dataclass(frozen=True)
class Plan:
    """The answers, and what they rest on."""

    answers: tuple[Answer, ...]
    rounds: int
    days: float
    settings: dict[str, Any]
    outcomes: tuple[Outcome, ...] = field(repr=False, compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Plain data, for JSON; what is not finite becomes null."""
        answers = [{k: _plain(v) for k, v in asdict(answer).items()} for answer in self.answers]
        return {"answers": answers, "rounds": self.rounds, "days": self.days, "settings": self.settings}


def plan(
    *,
    dim: int,
    actions: int,
    noise: float,
    baseline_reward: float,
    gain: float,
    per_day: float,
    alphas: Sequence[float],
    delta: float = 0.001,
    ridge: float = 1.0,
    days: float = 30.0,
    known: bool = True,
    runs: int = 100,
    seed: int = 0,
) -> Plan:
    """Simulate `days` of traffic for every alpha, in worlds that fit what is known."""
    positive("per_day", per_day, hint="per_day is the number of decisions a day.")
    positive("days", days, hint="days is how far to look ahead.")
    count("runs", runs, least=2, hint="runs is the number of simulated worlds.")
    if not alphas:
        raise ConfigError("`alphas` must hold at least one alpha.")
    world = PlanWorld(dim=dim, actions=actions, rewards=Gaussian(noise), baseline_reward=baseline_reward, gain=gain)
    policy = "CLUCB" if known else "CLUCB2"
    specs = [Spec(policy, alpha=alpha, delta=delta, ridge=ridge) for alpha in alphas]
    horizon = math.ceil(per_day * days)
    rounds = min(horizon, MOST_ROUNDS)
    found = simulate(world, specs, runs=runs, horizon=rounds, seed=seed)
    bounds = _bounds(world, specs, seed, known=known)
    answers = tuple(
        _answer(spec, outcome, bound, per_day, horizon, gain * baseline_reward, baseline_reward)
        for spec, outcome, bound in zip(specs, found, bounds, strict=True)
    )
    settings = {
        "dim": dim, "actions": actions, "noise": noise, "baseline_reward": baseline_reward, "gain": gain,
        "per_day": per_day, "days": days, "delta": delta, "ridge": ridge, "known": known, "runs": runs, "seed": seed,
        "simulated_rounds": rounds,
    }  # fmt: skip
    return Plan(answers, horizon, days, settings, tuple(found))


def _answer(
    spec: Spec, outcome: Outcome, bound: float, per_day: float, horizon: int, gap: float, baseline_reward: float
) -> Answer:
    assert spec.alpha is not None
    simulated = int(outcome.checkpoints[-1])
    last = outcome.measures["last_baseline"][:, -1]
    is_free = last <= FREE_FROM * simulated
    free = np.where(is_free, last + 1, math.inf)
    extra = outcome.measures["earned"][:, -1] - outcome.measures["owed"][:, -1]
    # Beyond what was simulated a free learner goes on as in the last tenth; one that is not free gains nothing more.
    tail = int(np.searchsorted(outcome.checkpoints, 0.9 * simulated))
    late = outcome.measures["earned"] - outcome.measures["owed"]
    rate = (late[:, -1] - late[:, tail]) / max(1, simulated - int(outcome.checkpoints[tail]))
    gained = extra + np.where(is_free, np.minimum(rate, gap), 0.0) * (horizon - simulated)
    typical, slow = float(np.quantile(free, 0.5, method="higher")), float(np.quantile(free, 0.9, method="higher"))
    own = outcome.watched.index(spec.alpha)
    return Answer(
        alpha=spec.alpha,
        policy=spec.policy,
        baseline_rounds=float(np.median(outcome.measures["baseline_rounds"][:, -1])),
        free_round=typical,
        free_round_slow=slow,
        free_day=typical / per_day,
        free_day_slow=slow / per_day,
        free_share=float(is_free.mean()),
        bound_rounds=bound,
        at_stake_share=spec.alpha,
        worst_seen_share=float(max(0.0, 1.0 - outcome.measures["worst_share"][:, -1].min())),
        gained=float(gained.mean()),
        gained_share=float(gained.mean() / (baseline_reward * horizon)),
        gained_stderr=float(gained.std(ddof=1) / math.sqrt(len(gained))),
        violations=int(outcome.violations[:, -1, own].sum()),
    )


def _bounds(world: PlanWorld, specs: Sequence[Spec], seed: int, *, known: bool) -> list[float]:
    """The theorem's bound on baseline rounds: the median over worlds, in rewards scaled to at most 1."""
    best = max(1.0, world.baseline_reward * (1 + world.gain))
    found = []
    for spec in specs:
        values = []
        for realisation in world.realisations(seed, range(15)):
            common: dict[str, Any] = {
                "dim": world.dim, "alpha": spec.alpha, "delta": spec.delta, "noise": world.rewards.noise / best,
                "ridge": spec.ridge, "theta_bound": realisation.theta_bound / best,
                "feature_bound": max(realisation.feature_bound, math.sqrt(spec.ridge)),
                "reward_floor": world.baseline_reward / best,
            }  # fmt: skip
            if known:
                gap = world.gain * world.baseline_reward / best
                values.append(theory.conservative_rounds_bound(gap_floor=gap * (1 - 1e-12), **common))
            else:  # Theorem 4 is about exact nesting and a floor that is known; neither is the case here
                values.append(math.inf)
        found.append(float(np.median(values)))
    return found


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
