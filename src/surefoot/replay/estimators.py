"""Evaluators: how a log answers for decisions that it did not make.

rejection   A logged round counts only where the policy would have played the logged action; all others are skipped,
            and the policy never learns of them. On a log whose actions were drawn by chance, the rounds that count are
            distributed as a live run of the policy (Li et al. 2011).
importance  The policy decides every round and learns from what was logged; importance weighting estimates what its
            decisions would have earned. It is what a learner would do beside the strategy that wrote the log.
full        The reward of every action is known, as in a table of labels or ratings: the decisions are simply paid.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector, count, fraction
from surefoot.errors import ConfigError, LogError
from surefoot.linear.ridge import Ridge
from surefoot.replay.batch import BadRows, Batch, Log
from surefoot.replay.diagnostics import SURE, Doubt
from surefoot.replay.differing_rows import DifferingRows
from surefoot.replay.importance_weighting import ASSUMES as WEIGHTING_ASSUMES
from surefoot.replay.importance_weighting import ImportanceWeighting, robust_terms, weights
from surefoot.replay.intervals import NORMAL, Estimate, Moments, WeightedMean
from surefoot.replay.memory_need import check_memory, replayed_matrices
from surefoot.replay.propensities import Propensities, check_rewards, check_support
from surefoot.replay.rare_rewards import GAMMA
from surefoot.replay.replay_outcome import OutcomeCounter, ReplayOutcome
from surefoot.replay.replayed_policy import (
    FULL,
    IMPORTANCE,
    LEARNER,
    REJECTED,
    REJECTION,
    Declared,
    PlayedRows,
    check_length,
    log_player,
)
from surefoot.replay.sample_ratio import SampleRatio
from surefoot.simulation.policy_specs import Spec, as_specs
from surefoot.simulation.workers import VersionedTask, Where, check_version, completed, workers_on

EvaluatorName = Literal["rejection", "importance", "full"]
Progress = Callable[[int, int], None]
MODES: dict[str, int] = {
    "rejection": REJECTION,
    "importance": IMPORTANCE,
    "full": FULL,
}
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
    on: Where = None,
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
        Called with rows done and rows in all; with `on`, with those of all policies together.
    on : str or concurrent.futures.Executor, optional
        Where the policies are replayed side by side, each in a pass of its own: "local:4", "ray", "ray://host:port",
        "dask://host:port", or an executor. Workers must find the log's file under the same path. The bits are the same
        everywhere.

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
    WorkerError
        If the workers of `on` cannot be reached, or were lost too often.

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
    if on is not None:
        tasks = [ReplayTask(log, one, declared, evaluator, uniform, seed, level, alphas) for one in policies]
        return _side_by_side(tasks, on, progress)
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
        given = chances.of(batch)
        usable, owed = chances.usable(given), chances.baseline_weights(batch, given)
        predicted = _predict(model, batch, declared) if model is not None else np.zeros((0, 0))
        for trial in trials:
            trial.take(batch, given, usable, owed, predicted)
        done += len(batch)
        if progress is not None:
            progress(done, log.rows or done)
    if not trials:
        raise LogError(f"The log `{log.name}` must have at least one row, but it has none.")
    doubts = chances.finish()
    return [trial.outcome(level, doubts, chances.earned(level, trial.bounds)) for trial in trials]


@dataclass(frozen=True, eq=False)
class ReplayTask(VersionedTask):
    """One policy's way through the log: it learns from row to row, so that the log cannot be split for it."""

    log: Log
    policy: Spec
    declared: Declared
    evaluator: EvaluatorName
    uniform: bool
    seed: int
    level: float
    watched: Sequence[float]
    code: str | None = None

    def __call__(self) -> tuple[ReplayOutcome, BadRows]:
        """What the policy did, and which rows could not be used."""
        check_version(self.code)
        (found,) = replay(
            self.log,
            [self.policy],
            declared=self.declared,
            evaluator=self.evaluator,
            uniform=self.uniform,
            seed=self.seed,
            level=self.level,
            watched=self.watched,
        )
        return found, self.log.bad


def _side_by_side(tasks: Sequence[ReplayTask], on: Where, progress: Progress | None) -> list[ReplayOutcome]:
    found: dict[int, ReplayOutcome] = {}
    with workers_on(on) as executor, closing(completed(executor, tasks)) as answers:
        for place, (outcome, bad) in answers:
            # A pass elsewhere counts them on a copy of the log.
            tasks[place].log.bad.count, tasks[place].log.bad.shown = bad.count, bad.shown
            found[place] = replace(outcome, spec=tasks[place].policy)
            if progress is not None:
                progress(outcome.rows * len(found), outcome.rows * len(tasks))
    return [found[place] for place in range(len(tasks))]


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
        self._tally.add(earned, owed, played.fates[counted], played.margins[counted], batch.lines[counted])

    def _importance(
        self, batch: Batch, given: Vector, baseline_weight: Vector, played: PlayedRows, predicted: Matrix
    ) -> None:
        rewards, rows = batch.rewards[:, 0], np.arange(len(batch))
        self._accept(played.chosen == batch.actions, given)
        at_logged = predicted[rows, batch.actions]
        # Every row counts for a baseline that is what was logged: then its own action is the one asked about.
        asked = batch.actions if self._is_logged else batch.baselines
        check_support(batch, given, asked)
        check_support(batch, given, np.where(played.fates == LEARNER, played.chosen, asked))
        # Where the policy left it to the baseline, it earned what the baseline earned.
        is_learner = played.fates == LEARNER
        weight = np.where(is_learner, weights(batch.actions, played.chosen, given), baseline_weight)
        both, at_baseline = np.stack([weight, baseline_weight]), predicted[rows, asked]
        modelled = np.stack([np.where(is_learner, predicted[rows, played.chosen], at_baseline), at_baseline])
        robust = robust_terms(both, rewards, modelled, at_logged)
        self._weighted.add(both, rewards, robust, modelled)
        self._tally.add(robust[0], robust[1], played.fates, played.margins, batch.lines)

    def _full(self, batch: Batch, given: Vector, _weight: Vector, played: PlayedRows, _: Matrix) -> None:
        rows = np.arange(len(batch))
        earned, owed = batch.rewards[rows, played.chosen], batch.rewards[rows, batch.baselines]
        for what, values in (("reward", earned), ("baseline", owed), ("gain", earned - owed)):
            self._paid[what].add(values)
        self._tally.add(earned, owed, played.fates, played.margins, batch.lines)

    def _accept(self, hits: NDArray[np.bool_], propensities: Vector) -> None:
        """Rows that were logged as the policy would have played them, and the chance of each."""
        self._accepted.add(np.zeros(int(hits.sum()), np.int64), 1.0 / propensities[hits], float(len(hits)))

    def outcome(self, level: float, doubts: Sequence[Doubt], actions: Mapping[str, Estimate]) -> ReplayOutcome:
        """Everything together; `doubts` are those about the log."""
        found = self._tally.outcome(self._spec, self._evaluator, self._rows, self._estimates(level))
        own = () if self._evaluator == "full" else (self._acceptance(),)
        return replace(found, doubts=(*doubts, *own), actions=actions)

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
            found = self._weighted.all(level)
            # The first is the one that tables show.
            return {name: found[name] for name in ("dr", "ips", "snips", "dm")}
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
