"""Policies on a log: how it answers for decisions that it did not make.

rejection   A logged round counts only where the policy would have played the logged action; all others are skipped,
            and the policy never learns of them. On a log whose actions were drawn by chance, the rounds that count are
            distributed as a live run of the policy (Li et al. 2011).
importance  The policy decides every round and learns from what was logged; importance weighting estimates what its
            decisions would have earned. It is what a learner would do beside the strategy that wrote the log.
full        The reward of every action is known, as in a table of labels or ratings: the decisions are simply paid.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count, fraction
from surefoot.errors import ConfigError, LogError
from surefoot.linear.ridge import Ridge
from surefoot.replay.doubts import SURE, Doubt, SampleRatio
from surefoot.replay.estimates import ASSUMES as WEIGHTING_ASSUMES
from surefoot.replay.estimates import (
    GAMMA,
    NORMAL,
    DifferingRows,
    Estimate,
    ImportanceWeighting,
    Moments,
    WeightedMean,
    robust_terms,
    weights,
)
from surefoot.replay.log import Batch, Log
from surefoot.replay.propensities import Propensities, check_rewards, check_support
from surefoot.replay.replayed_policy import (
    FULL,
    GUARD,
    IMPORTANCE,
    LEARNER,
    REJECTED,
    REJECTION,
    Declared,
    PlayedRows,
    check_length,
    log_player,
)
from surefoot.simulation.policy_specs import Spec, as_specs
from surefoot.simulation.workers import available_memory

FIT = 12  # matrices that a fit holds at once
WHOLE, OF_BLOCKS = 3, 5  # that each policy of a replay fills, and those of which it fills only actions' own blocks


def replayed_matrices(policies: Sequence[Spec], blocks: int) -> float:
    """How many matrices a replay fills, where actions have so many blocks of their own (0: one of all).

    Policies of your own are not counted, for nobody knows what they keep; a guard's learner is LUCB.
    """
    counted = sum(not policy.is_own or policy.name == GUARD for policy in policies)
    return counted * (WHOLE + OF_BLOCKS / max(1, blocks))


def check_memory(log: Log, matrices: float, *, available: int | None = None) -> None:
    """Refuse a log whose matrices would not fit."""
    need, have = 8 * log.dim**2 * matrices, available_memory() if available is None else available
    if need <= have:
        return
    each = log.dim // max(1, len(log.actions))
    raise ConfigError(
        f"{matrices:.3g} matrices of {log.dim:,} x {log.dim:,} numbers must fit into memory, but they take "
        f"{_size(need)}, and {_size(have)} are free: {len(log.actions)} actions have {each:,} columns "
        "each. Take fewer buckets (`--hash`) or columns (`--context`), fewer policies (`--policy`), or describe "
        "actions by features of their own (`--action-features`)."
    )


def _size(number: float) -> str:
    return f"{number / 1e9:,.1f} GB" if number >= 1e9 else f"{number / 1e6:,.0f} MB"


SLACK = 1e-12  # relative rounding of the sums that the floor is judged by
CHECKPOINTS = np.unique(np.round(np.geomspace(1, 1e12, 720)).astype(np.int64))  # 60 in every power of ten
CURVES = ("round", "earned", "owed", "learner_share", "margin")


@dataclass(frozen=True, slots=True, eq=False)
class ReplayOutcome:
    """One policy. `below` counts, for each watched alpha, the rounds in which less than the floor had been earned.

    Earned and owed agree by definition where the baseline was played. `free_from` is the round after the last baseline
    round, or None where the baseline still plays in the last fifth. `alarm` is the round in which data contradicted
    what was declared, and the line of the log: from there on a policy with a floor plays the baseline. `doubts` are
    about what the estimates rest on, and `actions` has what each action earned over all contexts. Of a guard
    `differing_rounds` are those in which the learner proposed another action than the baseline's, and
    `differing_learner_rounds` those of them that it was given; None of a policy that does not tell what it proposed.
    """

    spec: Spec
    evaluator: str
    rows: int
    rounds: int
    learner_rounds: int
    free_from: int | None
    worst_share: float
    below: Mapping[float, int]
    estimates: Mapping[str, Mapping[str, Estimate]]
    curves: Mapping[str, Vector] = field(repr=False)
    alarm: tuple[int, int] | None = None
    doubts: tuple[Doubt, ...] = ()
    actions: Mapping[str, Estimate] = field(default_factory=dict)
    differing_rounds: int | None = None
    differing_learner_rounds: int | None = None

    @property
    def main(self) -> Mapping[str, Estimate]:
        """The estimates to look at first: reward, baseline, gain."""
        return next(iter(self.estimates.values()))

    @property
    def learner_share(self) -> float:
        """Share of the rounds that the learner played."""
        return self.learner_rounds / self.rounds if self.rounds else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {
            "policy": self.spec.name if self.spec.is_own else self.spec.policy,
            "label": self.spec.label,
            "alpha": self.spec.alpha,
            "exploration": self.spec.exploration,
            "evaluator": self.evaluator,
            "rows": self.rows,
            "rounds": self.rounds,
            "learner_rounds": self.learner_rounds,
            "differing_rounds": self.differing_rounds,
            "differing_learner_rounds": self.differing_learner_rounds,
            "free_from": self.free_from,
            "alarm": None if self.alarm is None else {"round": self.alarm[0], "line": self.alarm[1]},
            "worst_share": self.worst_share if math.isfinite(self.worst_share) else None,
            "below_floor": [{"alpha": alpha, "rounds": number} for alpha, number in self.below.items()],
            "estimates": {
                name: {what: estimate.as_dict() for what, estimate in by_question.items()}
                for name, by_question in self.estimates.items()
            },
            "curves": {name: _plain(values) for name, values in self.curves.items()},
        }


class OutcomeCounter:
    """Counts along the counted rounds of one policy; curves are kept at checkpoints, whatever the log's length."""

    def __init__(self, watched: Sequence[float]) -> None:
        self.rounds = self.learner_rounds = self.last_baseline = 0
        self.worst_share, self.below = math.inf, dict.fromkeys(watched, 0)
        self._earned = self._owed = 0.0
        self._alarm: tuple[int, int] | None = None
        self._kept: list[Vector] = []
        self._differing: tuple[int, int] | None = None

    def add(self, earned: Vector, owed: Vector, played: PlayedRows, counted: Any, lines: np.ndarray[Any, Any]) -> None:
        """Take in counted rounds, in order."""
        if earned.size == 0:
            return
        fates, margins = played.fates[counted], played.margins[counted]
        if played.differs is not None:
            differs, (rounds, learner_rounds) = played.differs[counted], self._differing or (0, 0)
            self._differing = rounds + int(differs.sum()), learner_rounds + int((differs & (fates == LEARNER)).sum())
        got, due = self._earned + np.cumsum(earned), self._owed + np.cumsum(owed)
        round_ = self.rounds + np.arange(1, earned.size + 1)
        learner = self.learner_rounds + np.cumsum(fates == LEARNER)
        for alpha in self.below:
            floor = (1 - alpha) * due
            # Relative to |due|: doubly robust terms may add up to a negative sum.
            self.below[alpha] += int((got < floor - SLACK * np.abs(due)).sum())
        positive = due > 0
        if positive.any():
            self.worst_share = min(self.worst_share, float((got[positive] / due[positive]).min()))
        baseline_rounds = round_[fates != LEARNER]
        if baseline_rounds.size:
            self.last_baseline = int(baseline_rounds[-1])
        first, last = np.searchsorted(CHECKPOINTS, (self.rounds, int(round_[-1])), side="right")
        keep = np.unique(np.append(CHECKPOINTS[first:last] - self.rounds - 1, earned.size - 1))
        self._keep(np.stack([values[keep] for values in (round_, got, due, learner / round_, margins)]))
        # Anything follows from a contradiction, and so nothing is guaranteed any more.
        refuted = np.flatnonzero(np.isneginf(margins))
        if self._alarm is None and refuted.size:
            self._alarm = int(round_[refuted[0]]), int(lines[refuted[0]])
        self.rounds, self.learner_rounds = int(round_[-1]), int(learner[-1])
        self._earned, self._owed = float(got[-1]), float(due[-1])

    def _keep(self, columns: Vector) -> None:
        # The last round of the batch before was kept in case it was the last of all.
        if self._kept and int(self._kept[-1][0, -1]) not in CHECKPOINTS:
            self._kept[-1] = self._kept[-1][:, :-1]
        self._kept.append(columns)

    def outcome(
        self, spec: Spec, evaluator: str, rows: int, estimates: Mapping[str, Mapping[str, Estimate]]
    ) -> ReplayOutcome:
        """Everything together."""
        kept = np.hstack(self._kept) if self._kept else np.zeros((len(CURVES), 0))
        is_free = self.last_baseline < 0.8 * self.rounds
        return ReplayOutcome(
            spec,
            evaluator,
            rows,
            self.rounds,
            self.learner_rounds,
            self.last_baseline + 1 if is_free else None,
            self.worst_share,
            dict(self.below),
            estimates,
            dict(zip(CURVES, kept, strict=True)),
            self._alarm if spec.alpha is not None else None,
            differing_rounds=None if self._differing is None else self._differing[0],
            differing_learner_rounds=None if self._differing is None else self._differing[1],
        )


def _plain(values: Vector) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]


EvaluatorName = Literal["rejection", "importance", "full"]
Progress = Callable[[int, int], None]
MODES: dict[str, int] = {"rejection": REJECTION, "importance": IMPORTANCE, "full": FULL}
ASSUMES: dict[str, tuple[str, ...]] = {
    "rejection": (
        "Rejection replay: rounds are independent of each other and of their order, each logged action was drawn with "
        "its logged propensity, and nothing but the logged context decides both action and reward. Then the rounds "
        "that count are distributed as a live run. Where the smallest propensities would leave fewer than 1,000 of "
        "them, rows of such propensities are not thinned out like the others, and count by as much more.",
        "The policy's interval is for the average expected reward of this run. The baseline's reward is estimated by "
        "self-normalised weighting over all rows. The gain is that of the rows in which the policy and the baseline "
        "would have played different actions: rewards of the one less those of the other, by the share of such rows.",
        NORMAL,
        GAMMA,
    ),
    "importance": (
        "Shadow: the policy learns from the logged rows and not from its own decisions, so that these are the "
        "decisions of a learner running beside the logged strategy, not those of a live run.",
        *WEIGHTING_ASSUMES.values(),
        NORMAL,
        GAMMA,
    ),
    "full": (
        "Full information: the table's reward of an action is what playing it would have paid, and playing one action "
        "changes nothing for later rows.",
        NORMAL,
        GAMMA,
    ),
}  # fmt: skip


def evaluator_named(name: str) -> EvaluatorName:
    """The evaluator of that name; a ConfigError if there is none."""
    if name not in MODES:
        raise ConfigError(f"`evaluator` must be rejection, importance or full, but got {name!r}.")
    return cast("EvaluatorName", name)


def replay(
    log: Log,
    specs: Sequence[Any],
    *,
    declared: Declared,
    evaluator: EvaluatorName = "rejection",
    uniform: bool = False,
    seed: int = 0,
    level: float = 0.95,
    watched: Sequence[float] = (),
    progress: Progress | None = None,
) -> list[ReplayOutcome]:
    """Evaluate policies on a log, all over the same rows in one pass: memory does not grow with the log.

    Parameters
    ----------
    log : Log
        What `read_log` returned, or an `ArrayLog`.
    specs : sequence of surefoot.simulation.Spec, str, Policy or callable
        The policies. A `Spec` names one of surefoot's, which plays compiled; a new policy object, or a function from a
        `surefoot.simulation.Problem` to one, plays in Python.
    declared : Declared
        What they are told before they start.
    evaluator : {"rejection", "importance", "full"}
        How the log answers for decisions that it did not make; docs/replay.md compares them.
    uniform : bool
        Whether every action had the same probability, for logs without propensities.
    seed : int
        For the rejection of rows with unequal propensities, and for policies of your own that draw.
    level : float
        Level of the intervals.
    watched : sequence of float
        Alphas by which rounds below the floor are counted, in addition to the policies' own.
    progress : callable, optional
        Called with rows done and rows in all.

    Returns
    -------
    list of ReplayOutcome
        One per policy: counts, curves, and estimates with intervals.

    Raises
    ------
    ConfigError
        If a setting is invalid, replay cannot play a policy, or their matrices do not fit into memory.
    LogError
        If the log is empty.
    EvidenceError
        If the log cannot answer, for example without propensities.
    AssumptionError
        If a row is longer than the log's `feature_bound`.
    PolicyError
        If a policy of your own fails, with its name and the line of the log.

    Examples
    --------
    >>> from surefoot.replay import ArrayLog
    >>> from surefoot.simulation import Spec
    >>> log = ArrayLog(
    ...     features=[[[1.0, 0.0], [0.0, 1.0]]] * 8, actions=[0, 1] * 4, rewards=[0.2, 0.9] * 4, baselines=0
    ... )
    >>> (found,) = replay(
    ...     log, [Spec("LUCB")], declared=Declared(noise=0.5, theta_bound=1.0, baseline_reward=0.2), uniform=True
    ... )
    >>> found.rows, found.evaluator
    (8, 'rejection')
    """
    evaluator = evaluator_named(evaluator)
    count("seed", seed, least=0, hint="A seed is any whole number; the same one gives the same bits.")
    fraction("level", level, hint="level is the share of intervals that cover.")
    policies = as_specs(specs)
    alphas = sorted({*watched, *(spec.alpha for spec in policies if spec.alpha is not None)})
    chances = Propensities(log, evaluator, uniform, seed)
    trials: list[_PolicyRun] = []
    done, model = 0, Ridge(dim=log.dim, ridge=1.0) if evaluator == "importance" else None
    # The reward model of `dr` reads whole rows.
    for read in log.batches() if evaluator == "importance" else log.compact_batches():
        batch = chances.prepared(read)
        if not trials:
            check_memory(log, replayed_matrices(policies, read.blocks))
            trials = [_PolicyRun(spec, log, declared, evaluator, alphas, chances, seed) for spec in policies]
        check_length(batch, log.feature_bound)
        check_rewards(batch, declared)
        propensities = chances.of(batch)
        usable, owed = chances.usable(propensities), chances.baseline_weights(batch, propensities)
        predicted = _predict(model, batch, declared) if model is not None else np.zeros((0, 0))
        for trial in trials:
            trial.take(batch, propensities, usable, owed, predicted)
        done += len(batch)
        if progress is not None:
            progress(done, log.rows or done)
    if not trials:
        raise LogError(f"The log `{log.name}` must have at least one row, but it has none.")
    doubts = chances.finish()
    return [trial.outcome(level, doubts, chances.earned(level, trial.bounds)) for trial in trials]


class _PolicyRun:
    """One policy on its way through the log."""

    def __init__(
        self,
        spec: Spec,
        log: Log,
        declared: Declared,
        evaluator: str,
        watched: Sequence[float],
        chances: Propensities,
        seed: int,
    ) -> None:
        self._player = log_player(spec, declared, log, mode=MODES[evaluator], seed=seed)
        self._spec, self._declared, self._evaluator = spec, declared, evaluator
        own = [spec.alpha] if spec.alpha is not None else list(watched)
        self._tally, self._rows = OutcomeCounter(own), 0
        self._paid = {what: Moments() for what in ("reward", "baseline", "gain")}
        self._range, self._apart = declared.reward_bounds, DifferingRows()
        self._seen, self._is_logged = (math.inf, -math.inf), log.follows_log
        self._weighted = ImportanceWeighting(bounds=declared.reward_bounds)
        self._kept, self._counted = chances.kept, WeightedMean()
        self._accepted = SampleRatio(1, chances.least)

    def take(
        self, batch: Batch, given: Vector, usable: NDArray[np.bool_], baseline_weight: Vector, predicted: Matrix
    ) -> None:
        """One batch."""
        played = self._player.play(batch, batch.rewards, usable)
        self._rows += len(batch)
        self._seen = min(self._seen[0], float(batch.rewards.min())), max(self._seen[1], float(batch.rewards.max()))
        {"rejection": self._reject, "importance": self._importance, "full": self._full}[self._evaluator](
            batch, given, baseline_weight, played, predicted
        )

    def _reject(self, batch: Batch, given: Vector, weight: Vector, played: PlayedRows, _: Matrix) -> None:
        counted = played.fates > REJECTED
        rewards = batch.rewards[:, 0]
        counts = np.maximum(1.0, self._kept / given)
        self._counted.add(rewards[counted], counts[counted])
        self._accept(counted, np.minimum(given, self._kept))
        # The weighting compares two targets; here both are the baseline, whose reward is all that is asked.
        both = np.stack([weight, weight])
        self._weighted.add(both, rewards, both * rewards)
        self._apart.add(played.chosen, batch.baselines, batch.actions, rewards, counts)
        owed = np.full(int(counted.sum()), self._declared.baseline_reward)
        # What the baseline would have played counts alike on both sides: its luck must not look like a broken floor.
        is_apart = (played.fates == LEARNER) & (played.chosen != batch.baselines)
        earned = np.where(is_apart[counted], rewards[counted], owed)
        self._tally.add(earned, owed, played, counted, batch.lines[counted])

    def _importance(
        self, batch: Batch, given: Vector, baseline_weight: Vector, played: PlayedRows, predicted: Matrix
    ) -> None:
        rewards, rows = batch.rewards[:, 0], np.arange(len(batch))
        self._accept(played.chosen == batch.actions, given)
        at_logged = predicted[rows, batch.actions]
        # Every row counts for a baseline that is what was logged: then its own action is the one asked about.
        targets = batch.actions if self._is_logged else batch.baselines
        check_support(batch, given, targets)
        check_support(batch, given, np.where(played.fates == LEARNER, played.chosen, targets))
        # Where the policy left it to the baseline, it earned what the baseline earned.
        is_learner = played.fates == LEARNER
        weight = np.where(is_learner, weights(batch.actions, played.chosen, given), baseline_weight)
        both, at_baseline = np.stack([weight, baseline_weight]), predicted[rows, targets]
        modelled = np.stack([np.where(is_learner, predicted[rows, played.chosen], at_baseline), at_baseline])
        robust = robust_terms(both, rewards, modelled, at_logged)
        self._weighted.add(both, rewards, robust, modelled)
        self._tally.add(robust[0], robust[1], played, slice(None), batch.lines)

    def _full(self, batch: Batch, given: Vector, _weight: Vector, played: PlayedRows, _: Matrix) -> None:
        rows = np.arange(len(batch))
        earned, owed = batch.rewards[rows, played.chosen], batch.rewards[rows, batch.baselines]
        for what, values in (("reward", earned), ("baseline", owed), ("gain", earned - owed)):
            self._paid[what].add(values)
        self._tally.add(earned, owed, played, slice(None), batch.lines)

    def _accept(self, hits: NDArray[np.bool_], propensities: Vector) -> None:
        """Rows that were logged as the policy would have played them, and the chance of each."""
        self._accepted.add(np.zeros(int(hits.sum()), np.int64), 1.0 / propensities[hits], float(len(hits)))

    def outcome(self, level: float, doubts: Sequence[Doubt], actions: Mapping[str, Estimate]) -> ReplayOutcome:
        """Everything together; `doubts` are those about the log."""
        counted = self._tally.outcome(self._spec, self._evaluator, self._rows, self._estimates(level))
        own = () if self._evaluator == "full" else (self._acceptance(),)
        return replace(counted, doubts=(*doubts, *own), actions=actions)

    def _acceptance(self) -> Doubt:
        (_, mean), p_value = self._accepted.worst_of(slice(None)), self._accepted.p_value
        often = f"{mean:.2f} times as often as stated"
        return Doubt(
            "Acceptance: what a policy would have played was logged as often as stated",
            p_value < SURE,
            f"{self._spec.label}: {often}; p = {p_value:.2g}",
            f"what it would have played was logged {often}",
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """Between which rewards lie: as declared, or as seen."""
        return self._range or self._seen

    def _estimates(self, level: float) -> Mapping[str, Mapping[str, Estimate]]:
        bounds = self.bounds
        if self._evaluator == "full":
            width = bounds[1] - bounds[0]
            ends = {"reward": bounds, "baseline": bounds, "gain": (-width, width)}
            return {"full": {what: moments.interval(level, ends[what]) for what, moments in self._paid.items()}}
        if self._evaluator == "importance":
            estimates = self._weighted.all(level)
            # The first is the one that tables show.
            return {name: estimates[name] for name in ("dr", "ips", "snips", "dm")}
        return {
            "rejection": {
                "reward": self._counted.interval(level, bounds),
                "baseline": self._weighted.estimate("snips", "baseline", level),
                "gain": self._apart.gain(level, bounds),
            }
        }


def _predict(model: Ridge, batch: Batch, declared: Declared) -> Matrix:
    predicted = np.empty(batch.features.shape[:2])
    model.core.learn_rows(batch.features, batch.actions, np.ascontiguousarray(batch.rewards[:, 0]), predicted)
    if declared.reward_bounds is not None:
        np.clip(predicted, *declared.reward_bounds, out=predicted)
    return predicted
