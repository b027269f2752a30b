"""Propensities: whether a log can answer a question at all, and which of its rows may be used."""

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Vector
from surefoot.errors import EvidenceError, LogError
from surefoot.replay.batch import Batch, Log, span
from surefoot.replay.replayed_policy import Declared


class Propensities:
    """The propensities of a log, and whether they can answer at all."""

    def __init__(self, log: Log, evaluator: str, uniform: bool, seed: int) -> None:
        self._uniform = 1.0 / len(log.actions) if uniform else None
        self._rng = np.random.default_rng(seed)
        self.least = self._uniform or 1.0
        self._is_rejection = evaluator == "rejection"
        if evaluator == "full":
            if not log.is_full:
                raise EvidenceError("`full` needs the reward of every action, but this log has the played one's only.")
            return
        if log.follows_log:
            raise EvidenceError(
                f"`{evaluator}` needs a baseline that is known without looking at the logged action: name an action, "
                "or map a column. With 'logged' the baseline is the very draw that the log is to be judged by."
            )
        if self._uniform is None:
            low, high = log.propensity_range or range_of(log)
            if math.isnan(low):
                raise EvidenceError(
                    f"`{evaluator}` needs the chance with which each logged action was drawn, but the log has none. "
                    "Map a propensity column, or say that all actions had the same chance (`uniform`, `--uniform`)."
                )
            if low == high == 1.0:
                raise EvidenceError(
                    "The question cannot be answered from this log: every propensity is 1, so that no other action "
                    "than the logged one was ever possible. Log some randomised rounds first."
                )
            self.least = low

    def of(self, batch: Batch) -> Vector:
        """The chance of each logged action."""
        return batch.propensities if self._uniform is None else np.full(len(batch), self._uniform)

    def usable(self, given: Vector) -> NDArray[np.bool_]:
        """Rows that rejection may look at: thinned so that every action has the same chance, the smallest one."""
        if not self._is_rejection or bool((given == self.least).all()):
            return np.ones(given.size, dtype=np.bool_)
        return np.asarray(self._rng.random(given.size) * given < self.least)


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
