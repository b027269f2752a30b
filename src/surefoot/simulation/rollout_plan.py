"""Planning: before going live, how long until the learner acts freely, what is at stake, what is gained.

A company knows its baseline's mean reward and hopes for some lift. Worlds that fit are drawn, and policies simulated in
them: SafeLUCB, which is recommended, and the paper's, with the theorem's bound beside what was observed.

>>> found = plan(
...     dim=4, actions=5, noise=0.5, baseline_reward=0.3, lift=0.2, per_day=100, days=1, alphas=[0.2],
...     policies=["paper"], runs=2,
... )
>>> found.policies, found.rounds
(['CLUCB'], 100)
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from surefoot import theory
from surefoot.arrays import Matrix, Vector, count, positive
from surefoot.errors import ConfigError
from surefoot.hints import nearest
from surefoot.linear.features import Disjoint, FeatureMap, OneHot
from surefoot.simulation.engine import Outcome, simulate
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.rewards import Bernoulli, Gaussian, RewardsNeeded
from surefoot.simulation.workers import Progress, Where
from surefoot.simulation.worlds import Baseline, Realisation, World


@dataclass(frozen=True)
class PlanWorld(World):
    """Random actions of which one, the baseline, earns `baseline_reward` and the best one `lift` more, as a share."""

    baseline: Baseline = field(default_factory=lambda: Baseline(action=0))
    baseline_reward: float = 0.5
    lift: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        positive("baseline_reward", self.baseline_reward, hint="baseline_reward is what today's action earns.")
        positive("lift", self.lift, hint="lift is how much more the best action earns; 0.1 is 10%.")

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw rows with positive means; scale them to the best reward, and make row 0 the baseline."""
        rng, shared = self.parts(seed)
        theta = rng.standard_normal(self.dim)
        rows = rng.standard_normal((self.actions, self.dim))
        # Mirrored instead of drawn again: as likely, and as many rows as were asked for.
        rows[rows @ theta < 0] *= -1
        best = self.baseline_reward * (1 + self.lift)
        means = rows @ theta
        theta = theta * (best / means.max())
        means = rows @ theta
        # The action whose reward is nearest becomes the baseline; stretching its row makes that exact.
        order = np.argsort(-means, kind="stable")
        # Never the best row itself, which has to earn `lift` more.
        chosen = int(order[1:][np.argmin(np.abs(means[order[1:]] - self.baseline_reward))])
        rows[chosen] *= self.baseline_reward / means[chosen]
        rows[[0, chosen]] = rows[[chosen, 0]]
        return Realisation(
            rows=np.ascontiguousarray(rows),
            theta=theta,
            theta_bound=float(np.linalg.norm(theta)),
            feature_bound=float(np.linalg.norm(rows, axis=1).max()),
            **shared,
        )


@dataclass(frozen=True)
class MappedWorld(PlanWorld):
    """The same over the rows of a feature map that gives every action a theta of its own, and contexts drawn evenly.

    Action 0 is the baseline, whatever the context, and the others earn between half as much and the best.
    """

    phi: FeatureMap | None = None
    theta_bound: float = 0.0

    @property
    def fixed(self) -> bool:  # type: ignore[override]
        """Without a context all rounds are alike."""
        return isinstance(self.phi, OneHot)

    def realise(self, seed: np.random.SeedSequence) -> Realisation:
        """Draw the means of the actions."""
        assert self.phi is not None
        rng, shared = self.parts(seed)
        means = self.baseline_reward * rng.uniform(0.5, 1.0 + self.lift, self.actions)
        means[:2] = self.baseline_reward, self.baseline_reward * (1.0 + self.lift)
        theta = np.zeros((self.actions, self.dim // self.actions))
        theta[:, 0] = means
        settings: dict[str, Any] = {
            "theta": theta.ravel(),
            "theta_bound": max(self.theta_bound, float(np.linalg.norm(means))),
            "feature_bound": self.phi.bound * (1 + 1e-9),
            **shared,
        }
        if isinstance(self.phi, OneHot):
            return Realisation(rows=np.eye(self.actions), **settings)
        return Realisation(draw=self._rows, **settings)

    def _rows(self, rng: np.random.Generator) -> Matrix:
        """Rows (1, x) in the block of each action, x drawn afresh in every round."""
        width, at = self.dim // self.actions, np.arange(self.actions)
        rows = np.zeros((self.actions, self.actions, width))
        rows[at, at, 0] = 1.0
        rows[at, at, 1:] = rng.random(width - 1) / math.sqrt(max(1, width - 1))
        return rows.reshape(self.actions, -1)


FREE_FROM = 0.8  # a learner acts freely if the baseline was not played in the last fifth of the simulation
KINDS = ("safe", "paper")
MOST_ROUNDS = 400_000  # a longer month is simulated up to here, and extrapolated from there


@dataclass(frozen=True)
class Rollout:
    """What a manager asked, for one policy and alpha. Rounds and days are medians over runs; `slow`: nine runs of ten.

    A run is free if the baseline was not played in its last fifth; `free_round` then follows the last time it was.
    `bound_rounds` is the theorem's bound for CLUCB; for other policies it is infinite. Of clicks, `needed_day` is when
    as many rewards have come as bounds like SafeLUCB's need, at a share alpha of the rounds, and `needed_times` how
    many times as many were seen until the learner was free; without clicks both are infinite.
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
    needed_day: float = math.inf
    needed_times: float = math.inf


@dataclass(frozen=True)
class Plan:
    """The answers, policy by policy and in the order of alphas, and what they rest on."""

    answers: tuple[Rollout, ...]
    rounds: int
    days: float
    settings: dict[str, Any]
    outcomes: tuple[Outcome, ...] = field(repr=False, compare=False)

    @property
    def policies(self) -> list[str]:
        """The policies, in the order asked for."""
        return list(dict.fromkeys(answer.policy for answer in self.answers))

    def of(self, policy: str) -> list[Rollout]:
        """The answers of one policy, by alpha."""
        return [answer for answer in self.answers if answer.policy == policy]

    def needed(self, alpha: float) -> RewardsNeeded:
        """How many rewards bounds that hold at all times must see."""
        settings = self.settings
        return RewardsNeeded(settings["lift"], alpha, settings["delta"], is_known=settings["known"])

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
    lift: float,
    per_day: float,
    alphas: Sequence[float],
    delta: float = 0.001,
    ridge: float | None = None,
    days: float = 30.0,
    known: bool = True,
    reward_range: tuple[float, float] | None = None,
    clicks: bool = False,
    policies: Sequence[str] = KINDS,
    phi: FeatureMap | None = None,
    theta_bound: float = 0.0,
    runs: int = 100,
    seed: int = 0,
    progress: Progress | None = None,
    on: Where = None,
) -> Plan:
    """Simulate `days` of traffic for every policy and alpha, in worlds that fit what is known.

    Parameters
    ----------
    dim, actions : int
        Features of an action, and actions to choose from.
    noise : float
        Standard deviation of a reward.
    baseline_reward : float
        Mean reward of today's strategy.
    lift : float
        Lift hoped for, as a share: 0.1 is 10% more.
    per_day, days : float
        Decisions a day, and how many days to look ahead.
    alphas : sequence of float
        Shares of the baseline's reward to try.
    delta : float
        Probability that the guarantee may fail.
    ridge : float, optional
        Regulariser; by default each policy's own.
    known : bool
        Whether the baseline's reward is known.
    reward_range : (low, high), optional
        Range of every mean reward, told to SafeLUCB.
    clicks : bool
        Whether rewards are 0 or 1; SafeLUCB is then told their bounds, and `noise` is that of a click for the others.
    policies : sequence of {"safe", "paper"}
        SafeLUCB, and the paper's CLUCB or, if the baseline's reward is not `known`, CLUCB2.
    phi : FeatureMap, optional
        How contexts become rows, if every action has a theta of its own (`Disjoint`, `OneHot`): what one action teaches
        then says nothing of another. Otherwise all actions share one theta.
    theta_bound : float
        With `phi`, the bound that the policies are told, if it is above the length of theta.
    runs : int
        Number of simulated worlds.
    seed : int
        Seed of the worlds.
    progress : callable, optional
        Called with the rounds done and the rounds in all.
    on : str or concurrent.futures.Executor, optional
        Where the runs are played, such as "local:4", "ray" or "dask://host:port"; on all cores by default.

    Returns
    -------
    Plan
        One answer per policy and alpha.

    Raises
    ------
    ConfigError
        If a setting is invalid.
    """
    positive("per_day", per_day, hint="per_day is the number of decisions a day.")
    positive("days", days, hint="days is how far to look ahead.")
    count("runs", runs, least=2, hint="runs is the number of simulated worlds.")
    if not alphas:
        raise ConfigError("`alphas` must hold at least one alpha.")
    positive("noise", noise, hint="noise is the standard deviation of a reward; 0.5 for clicks and sales.")
    rewards = Bernoulli() if clicks else Gaussian(noise)
    options: dict[str, Any] = {"rewards": rewards, "baseline_reward": baseline_reward, "lift": lift}
    world = PlanWorld(dim=dim, actions=actions, **options)
    if isinstance(phi, Disjoint | OneHot):
        world = MappedWorld(dim=phi.dim, actions=actions, phi=phi, theta_bound=theta_bound, **options)
    if clicks and baseline_reward * (1 + lift) > 1:
        raise ConfigError(
            f"`baseline_reward * (1 + lift) <= 1` must hold for clicks, but it is {baseline_reward * (1 + lift):g}. "
            "A mean of clicks is a share."
        )
    _check_range(reward_range, world)
    common: dict[str, Any] = {"delta": delta, "ridge": ridge}
    bounds = (0.0, 1.0) if clicks else None
    safe: dict[str, Any] = {
        **common, "knows_baseline": known, "reward_range": reward_range, "reward_bounds": bounds
    }  # fmt: skip
    kinds = {"safe": ("SafeLUCB", safe), "paper": ("CLUCB" if known else "CLUCB2", common)}
    chosen = [kinds[kind] for kind in _kinds(policies)]
    specs = [Spec(policy, alpha=alpha, **options) for policy, options in chosen for alpha in alphas]
    horizon = math.ceil(per_day * days)
    rounds = min(horizon, MOST_ROUNDS)
    outcomes = simulate(world, specs, runs=runs, horizon=rounds, seed=seed, progress=progress, on=on)
    answers = [_answer(outcome, _bound(world, outcome.spec, seed), per_day, horizon, world) for outcome in outcomes]
    if clicks:
        answers = [
            _with_need(answer, RewardsNeeded(lift, answer.alpha, delta, is_known=known), outcome, per_day, world)
            for answer, outcome in zip(answers, outcomes, strict=True)
        ]
    settings = {
        "dim": dim, "actions": actions, "noise": rewards.noise, "baseline_reward": baseline_reward, "lift": lift,
        "per_day": per_day, "days": days, "delta": delta, "ridge": ridge, "known": known, "runs": runs,
        "reward_range": None if reward_range is None else list(reward_range), "seed": seed,
        "simulated_rounds": rounds, "clicks": clicks,
    }  # fmt: skip
    return Plan(tuple(answers), horizon, days, settings, tuple(outcomes))


def _kinds(policies: Sequence[str]) -> list[str]:
    for kind in policies:
        if kind not in KINDS:
            raise ConfigError(
                f"`policy` must be safe (SafeLUCB) or paper (the paper's CLUCB or CLUCB2), but got {kind!r}. "
                f"{nearest(kind, KINDS)}"
            )
    if not policies:
        raise ConfigError("`policies` must hold safe, paper or both, but is empty.")
    return list(dict.fromkeys(policies))


def _check_range(reward_range: tuple[float, float] | None, world: PlanWorld) -> None:
    best = world.baseline_reward * (1 + world.lift)
    if reward_range is not None and not (reward_range[0] <= 0 and reward_range[1] >= best):
        raise ConfigError(
            f"`reward_range` must hold every mean reward of the worlds that are drawn, 0 to {best:g}, "
            f"but got {reward_range[0]:g} to {reward_range[1]:g}. A range that is not true voids the guarantee."
        )


def _with_need(answer: Rollout, needed: RewardsNeeded, outcome: Outcome, per_day: float, world: PlanWorld) -> Rollout:
    """With the day on which enough rewards have come, and how many more there were when the learner was free."""
    day = needed.rounds(world.baseline_reward, needed.alpha) / per_day
    free = free_rounds(outcome)
    times = np.where(np.isfinite(free), needed.times(*rewards_until(outcome, free, world.baseline_reward)), math.inf)
    return replace(answer, needed_day=day, needed_times=float(np.quantile(times, 0.5, method="higher")))


def free_rounds(outcome: Outcome) -> Vector:
    """The round in which each run's learner was free; inf where it was not."""
    last = outcome.measures["last_baseline"][:, -1]
    return np.asarray(np.where(last <= FREE_FROM * int(outcome.checkpoints[-1]), last + 1, math.inf))


def rewards_until(outcome: Outcome, rounds: Vector, baseline_reward: float) -> tuple[Vector, Vector]:
    """Expected rewards of the learner's rounds, and of the baseline's, in each run before its round."""
    last = np.minimum(rounds - 1, outcome.checkpoints[-1])
    earned, kept = (
        np.array(
            [np.interp(one, outcome.checkpoints, run) for one, run in zip(last, outcome.measures[name], strict=True)]
        )
        for name in ("earned", "baseline_rounds")
    )
    return np.maximum(earned - baseline_reward * kept, 1e-12), np.maximum(baseline_reward * kept, 1e-12)


def _answer(outcome: Outcome, bound: float, per_day: float, horizon: int, world: PlanWorld) -> Rollout:
    spec, gap, baseline_reward = outcome.spec, world.lift * world.baseline_reward, world.baseline_reward
    assert spec.alpha is not None
    simulated = int(outcome.checkpoints[-1])
    free = free_rounds(outcome)
    is_free = np.isfinite(free)
    extra = outcome.measures["earned"][:, -1] - outcome.measures["owed"][:, -1]
    # Beyond the simulation a free learner continues as in its last tenth; one that is not free gains nothing more.
    tail = int(np.searchsorted(outcome.checkpoints, 0.9 * simulated))
    late = outcome.measures["earned"] - outcome.measures["owed"]
    rate = (late[:, -1] - late[:, tail]) / max(1, simulated - int(outcome.checkpoints[tail]))
    gained = extra + np.where(is_free, np.minimum(rate, gap), 0.0) * (horizon - simulated)
    # "higher" never interpolates: runs that are not free are infinite, and inf - inf is NaN.
    typical, slow = float(np.quantile(free, 0.5, method="higher")), float(np.quantile(free, 0.9, method="higher"))
    own = outcome.watched.index(spec.alpha)
    return Rollout(
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


def _bound(world: PlanWorld, spec: Spec, seed: int) -> float:
    """The theorem's bound on CLUCB's baseline rounds: the median over worlds, in rewards scaled to at most 1."""
    if spec.policy != "CLUCB":  # Theorem 4 is about exact nesting and a known floor; neither is the case here
        return math.inf
    best, ridge = max(1.0, world.baseline_reward * (1 + world.lift)), spec.ridge or 1.0
    gap = world.lift * world.baseline_reward / best
    values = [
        theory.conservative_rounds_bound(
            dim=world.dim,
            alpha=spec.alpha or 0.0,
            delta=spec.delta,
            noise=world.rewards.noise / best,
            ridge=ridge,
            theta_bound=realisation.theta_bound / best,
            # The theorem asks for ridge <= D^2, and a larger D is still a bound.
            feature_bound=max(realisation.feature_bound, math.sqrt(ridge)),
            reward_floor=world.baseline_reward / best,
            gap_floor=gap * (1 - 1e-12),
        )
        for realisation in world.realisations(seed, range(15))
    ]
    return float(np.median(values))


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
