"""Propensities: whether a log can answer a question at all, and which of its rows may be used.

Where the baseline is what was logged, and that was drawn by chance, it is the distribution of the draw: its reward is
the mean of all rewards, and where it is to play in a row, an action is drawn from that distribution afresh, since the
logged draw is what the answer is judged by.
"""

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Vector
from surefoot.errors import EvidenceError, LogError
from surefoot.replay.batch import Batch, Log, span
from surefoot.replay.covariate_balance import CovariateBalance
from surefoot.replay.diagnostics import SURE, Doubt
from surefoot.replay.importance_weighting import weights
from surefoot.replay.intervals import Estimate, WeightedMean
from surefoot.replay.propensity_model import EstimatedLog, shares_of
from surefoot.replay.replayed_policy import Declared

ENOUGH = 1_000  # rounds that a thinned log should leave
STEPS = np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 481)])
SHORT = 0.05  # share of the rows whose propensity may lie below what thinning leaves


class Propensities:
    """The propensities of a log, and whether they can answer at all."""

    def __init__(self, log: Log, evaluator: str, uniform: bool, seed: int) -> None:
        self._uniform = 1.0 / len(log.actions) if uniform else None
        self._rng, self._draws = np.random.default_rng(seed), np.random.default_rng([seed, 1])
        self._log, self.is_logged, self._rows = log, log.follows_log, 0
        self._balance: CovariateBalance | None = None
        self._earned = [WeightedMean() for _ in log.actions]
        self.least = self.kept = self._uniform or 1.0
        self._is_rejection = evaluator == "rejection"
        if evaluator == "full":
            if not log.is_full:
                raise EvidenceError("`full` needs the reward of every action, but this log has the played one's only.")
            if self.is_logged:
                raise EvidenceError(
                    "A table of labels needs to know what is played today, but no action of it was logged. Name one "
                    "(`baseline`, `--baseline`), or map a column of today's answers (`--baseline-column`)."
                )
            return
        if self._uniform is None:
            low, high = log.propensity_range or range_of(log)
            if math.isnan(low):
                raise EvidenceError(
                    f"`{evaluator}` needs the chance with which each logged action was drawn, but the log has none. "
                    "Map a propensity column, say that all actions had the same chance (`uniform`, `--uniform`), or "
                    "have them estimated (`estimate_propensities`, `--estimate-propensities`)."
                )
            if low == high == 1.0:
                raise EvidenceError(
                    "The question cannot be answered from this log: every propensity is 1, so that no other action "
                    "than the logged one was ever possible. Log some randomised rounds first."
                )
            self.least = low
        if self.is_logged and log.has_offers:
            raise EvidenceError(
                "A logged baseline is a distribution over all actions, but this log offers others in every row. Name "
                "today's action (`baseline`), or map a column (`--baseline-column`)."
            )
        if not isinstance(log, EstimatedLog):
            self._balance = CovariateBalance(log.actions, log.context_names, self.least)
        self.kept = self._read_kept()
        self._shares = self._read_shares(evaluator) if self.is_logged else None

    def _read_kept(self) -> float:
        """The chance that thinning leaves to every action: the smallest, unless next to no row would be left.

        A few tiny propensities, as a Thompson sampler's, would throw away all others. Then it is one that only a few
        rows fall short of; these all stay, and count by as much more.
        """
        rows = self._log.rows
        if not self._is_rejection or self._uniform is not None or rows is None or rows * self.least >= ENOUGH:
            return self.least
        counts = sum(np.histogram(batch.propensities, STEPS)[0] for batch in _nonempty(self._log))
        within = np.flatnonzero(np.cumsum(counts) <= SHORT * rows)
        most = float(STEPS[within[-1] + 1]) if within.size else self.least
        return max(self.least, min(most, ENOUGH / rows))

    def _read_shares(self, evaluator: str) -> Vector | None:
        """The distribution of a logged baseline, where it is the same in all rows; None where a model has it."""
        if self._uniform is not None:
            return np.full(len(self._log.actions), self._uniform)
        if isinstance(self._log, EstimatedLog):
            return None
        shares = shares_of(self._log)
        if shares is None:
            raise EvidenceError(
                f"`{evaluator}` needs a baseline that is known without looking at the logged action, but these "
                "propensities depend on the context, and the log has those of the logged actions only. Name an action, "
                "map a column, or have the chance of every action estimated (`estimate_propensities`, "
                "`--estimate-propensities`)."
            )
        return shares

    def prepared(self, batch: Batch) -> Batch:
        """The batch with a baseline in every row: the one it has, or a draw from the logged distribution."""
        start = self._rows
        self._rows += len(batch)
        given = self.of(batch)
        if self._balance is not None:
            self._balance.add(self._log.contexts(batch), batch.actions, given, batch.offered)
        for action, mean in enumerate(self._earned):
            if batch.rewards.shape[1] > 1:
                mean.add(batch.rewards[:, action], np.ones(len(batch)))
            else:
                rows = batch.actions == action
                mean.add(batch.rewards[rows, 0], 1.0 / given[rows])
        if not self.is_logged:
            return batch
        if isinstance(self._log, EstimatedLog):
            chances = self._log.chances(batch, start)
        else:
            assert self._shares is not None
            chances = np.broadcast_to(self._shares, (len(batch), self._shares.size))
        places = (self._draws.random((len(batch), 1)) > np.cumsum(chances, axis=1)).sum(axis=1)
        return replace(batch, baselines=np.minimum(places, chances.shape[1] - 1))

    def baseline_weights(self, batch: Batch, given: Vector) -> Vector:
        """What a row counts for the baseline: all alike where what was logged is the baseline."""
        return np.ones(len(batch)) if self.is_logged else weights(batch.actions, batch.baselines, given)

    def earned(self, level: float, bounds: tuple[float, float]) -> dict[str, Estimate]:
        """What each action earns on average, over all contexts."""
        named = zip(self._log.actions, self._earned, strict=True)
        return {action: mean.interval(level, bounds) for action, mean in named}

    def finish(self) -> tuple[Doubt, ...]:
        """What speaks against the propensities; raise if actions were said to have had the same chance and had not."""
        if self._balance is None:
            return (self._log.doubt,) if isinstance(self._log, EstimatedLog) else ()
        p_value, action, mean = self._balance.of_actions
        if self._uniform is not None and p_value < SURE:
            raise EvidenceError(
                f"All actions must have had the same chance (`uniform`), but {action!r} was played {mean:.2f} times as "
                f"often as that: p = {p_value:.2g}. Map a propensity column, or have them estimated "
                "(`estimate_propensities`, `--estimate-propensities`)."
            )
        return (self._balance.doubt,)

    def of(self, batch: Batch) -> Vector:
        """The chance of each logged action."""
        return batch.propensities if self._uniform is None else batch.even_chances(len(self._log.actions))

    def usable(self, given: Vector) -> NDArray[np.bool_]:
        """Rows that rejection may look at: thinned so that every action has the same chance."""
        if not self._is_rejection or bool((given == self.least).all()):
            return np.ones(given.size, dtype=np.bool_)
        return np.asarray(self._rng.random(given.size) * given < self.kept)


def check_support(batch: Batch, given: Vector, asked: NDArray[np.int64]) -> None:
    """A row whose action was certain says nothing of any other action in its context."""
    silent = (given == 1.0) & (asked != batch.actions)
    if silent.any():
        raise EvidenceError(
            "The question cannot be answered from this log: in line "
            f"{batch.lines[int(np.argmax(silent))]:,} (and {int(silent.sum()) - 1:,} more of its batch) the logged "
            "action was certain, and the policy would have played another. Leave out such rows, or log randomised ones."
        )


def check_rewards(batch: Batch, declared: Declared) -> None:
    """Rewards must lie in their declared bounds."""
    if declared.reward_bounds is None:
        return
    low, high = declared.reward_bounds
    outside = ((batch.rewards < low) | (batch.rewards > high)).any(axis=1)
    if outside.any():
        at = int(np.argmax(outside))
        raise LogError(
            f"Rewards must lie in the declared range [{low:g}, {high:g}], but line {batch.lines[at]:,} has "
            f"{batch.rewards[at].tolist()}. Declare a wider range."
        )


def range_of(log: Log) -> tuple[float, float]:
    """Smallest and largest propensity, by a pass over the log."""
    ends = [span(batch.propensities) for batch in _nonempty(log)]
    lows, highs = zip(*ends, strict=True)
    return float(np.min(lows)), float(np.max(highs))


def _nonempty(log: Log) -> Iterator[Batch]:
    found = False
    for batch in log.batches():
        found = True
        yield batch
    if not found:
        raise LogError(f"The log `{log.name}` must have at least one row, but it has none.")
