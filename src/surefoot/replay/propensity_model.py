"""Propensities that no log states: estimated from the context, half of the log by the other half.

The chance of action a in a row is taken as exp(<gamma, phi(x, a)>) / sum over all actions, over the rows' own
features: with a theta for each action a multinomial logit, with shared features a conditional one. Gamma maximises the
likelihood, less a small square length, by steps whose size a bound on the curvature allows (Boehning 1992), so that
none is too long. Rows are predicted by a gamma that was fitted to other blocks of the log, so that no row explains
itself.

Estimated propensities are less than logged ones: they are right only if nothing but the context decided both the action
and the reward, and intervals do not know that they are estimates.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.errors import EvidenceError
from surefoot.replay.batch import BadRows, Batch, Log
from surefoot.replay.covariate_balance import PROPENSITIES_STATED
from surefoot.replay.diagnostics import Doubt
from surefoot.replay.linearity import is_set_aside

FIT_NUMBERS = 4_000_000  # features in memory while a half is fitted
STEPS, CLOSE = 200, 1e-6
FITS = 0.05  # how far the mean weight of an action may be from 1 where the model fits
LEAST = 0.01  # a chance below this is taken as this: weights of a hundred are as much as an estimate can carry
PROPENSITIES_ESTIMATED = "Propensities: nothing but the logged context decided both the action and the reward"


class ActionModel:
    """The chance of every action in a row, by a conditional logit over the rows' features."""

    def __init__(self, features: NDArray[np.float64], actions: NDArray[np.int64], length: float) -> None:
        self._length = max(length, 1e-12)
        rows = features / self._length
        count, number, dim = rows.shape
        # Half the spread of the features over the actions bounds the curvature at every gamma.
        sums = rows.sum(axis=1)
        flat = rows.reshape(-1, dim)
        bound = 0.5 * (flat.T @ flat - sums.T @ sums / number) + np.eye(dim)
        played = rows[np.arange(count), actions].sum(axis=0)
        self._gamma = np.zeros(dim)
        for _ in range(STEPS):
            chances = _softmax(rows @ self._gamma)
            slope = played - np.einsum("na,nad->d", chances, rows) - self._gamma
            step = np.linalg.solve(bound, slope)
            self._gamma += step
            if float(np.abs(step).max()) < CLOSE:
                break

    def chances(self, features: NDArray[np.float64]) -> Matrix:
        """(rounds, actions); each at least `LEAST`, or an equal share where there are more than a hundred actions."""
        found = _softmax(features @ self._gamma / self._length)
        least = min(LEAST, 1.0 / found.shape[1])
        lifted = np.maximum(found, least)
        shares: Matrix = lifted / lifted.sum(axis=1, keepdims=True)
        return shares


class EstimatedLog(Log):
    """A log with estimated propensities in place of its own."""

    def __init__(self, log: Log) -> None:
        if log.is_full:
            raise EvidenceError(
                "A table of labels or ratings has no propensities to estimate: nothing was drawn in it."
            )
        if log.has_offers:
            raise EvidenceError(
                "Propensities are estimated for actions that are offered in every row, but here they change. Map a "
                "propensity column, or say that all offered ones had the same chance (`uniform`, `--uniform`)."
            )
        self._log, self.name, self.actions, self.dim = log, log.name, log.actions, log.dim
        self.context, self.left_out, self.blocks = log.context, log.left_out, log.blocks
        self.feature_bound, self.rows, self.follows_log = log.feature_bound, log.rows, log.follows_log
        self._models = _fitted(log)
        self._weights, self._used = np.zeros(len(log.actions)), 0
        ends = (1.0, 0.0)
        for batch in self.batches():
            ends = min(ends[0], float(batch.propensities.min())), max(ends[1], float(batch.propensities.max()))
            self._weights += np.bincount(batch.actions, 1 / batch.propensities, minlength=len(self.actions))
            self._used += len(batch)
        self.propensity_range = ends

    @property
    def bad(self) -> BadRows:  # type: ignore[override]
        """Rows that could not be used."""
        return self._log.bad

    @property
    def weight_names(self) -> list[str]:
        """What each weight of theta belongs to."""
        return self._log.weight_names

    @property
    def context_names(self) -> list[str]:
        """What each column of `contexts` holds."""
        return self._log.context_names

    def batches(self) -> Iterator[Batch]:
        """All rounds, in order."""
        start = 0
        for batch in self._log.batches():
            chances = self.chances(batch, start)
            start += len(batch)
            yield replace(batch, propensities=chances[np.arange(len(batch)), batch.actions])

    def chances(self, batch: Batch, start: int) -> Matrix:
        """The chance of every action in a batch whose first row has that number, by the model of the other half."""
        aside = is_set_aside(np.arange(start, start + len(batch)))
        first, second = (model.chances(batch.features) for model in self._models)
        return np.where(aside[:, None], first, second)

    @property
    def doubt(self) -> Doubt:
        """What speaks for and against the estimates."""
        means = self._weights / max(1, self._used)
        low, high = self.propensity_range or (np.nan, np.nan)
        seen = (
            f"estimated from {low:.3g} to {high:.3g}; mean weights of actions {means.min():.3g} to {means.max():.3g} "
            "(1 where the model fits); what the log does not show cannot be tested, and intervals are too narrow by it"
        )
        off = max(abs(means - 1))
        weighed = f", by which actions weigh {means.min():.2f} to {means.max():.2f}, not 1" if off > FITS else ""
        return Doubt(PROPENSITIES_ESTIMATED, True, seen, f"propensities are estimates{weighed}")


def estimate_propensities(log: Log) -> EstimatedLog:
    """The log with propensities estimated from its contexts, for a log that states none.

    Parameters
    ----------
    log : Log
        What `read_log` returned, or an `ArrayLog`.

    Returns
    -------
    EstimatedLog
        The same rows for `replay` and `fit_baseline`, and a `doubt` that says what the estimates rest on.

    Raises
    ------
    EvidenceError
        If nothing was drawn in the log, or it is too short to fit.

    Examples
    --------
    >>> from surefoot.replay import ArrayLog
    >>> rows = [[[1.0, 0.0], [0.0, 1.0]]] * 400
    >>> log = ArrayLog(features=rows, actions=[0, 0, 0, 1] * 100, rewards=[0.5] * 400, baselines=0)
    >>> found = next(estimate_propensities(log).batches()).propensities
    >>> found[[0, 3]].round(2)
    array([0.75, 0.25])
    """
    return EstimatedLog(log)


def with_estimates(doubts: Sequence[Doubt], log: Log) -> tuple[Doubt, ...]:
    """The doubts about a log, with the one that estimated propensities bring in place of the test of logged ones."""
    if not isinstance(log, EstimatedLog):
        return tuple(doubts)
    return (*(doubt for doubt in doubts if doubt.assumption != PROPENSITIES_STATED), log.doubt)


def _fitted(log: Log) -> tuple[ActionModel, ActionModel]:
    """Models of the rows that are not set aside, which predict those that are, and the other way round."""
    most = max(1, FIT_NUMBERS // (len(log.actions) * log.dim))
    kept: tuple[list[tuple[NDArray[np.float64], NDArray[np.int64]]], ...] = ([], [])
    taken, start = [0, 0], 0
    for batch in log.batches():
        aside = is_set_aside(np.arange(start, start + len(batch)))
        start += len(batch)
        for half, rows in enumerate((np.flatnonzero(~aside), np.flatnonzero(aside))):
            chosen = rows[: most - taken[half]]
            kept[half].append((batch.features[chosen], batch.actions[chosen]))
            taken[half] += chosen.size
        if min(taken) >= most:
            break
    if min(taken) < 10 * len(log.actions):
        raise EvidenceError(
            f"Propensities need at least {10 * len(log.actions)} rows in each half of the log to be estimated, but one "
            f"has {min(taken)}. Map a propensity column, or say that all actions had the same chance."
        )
    first, second = (
        ActionModel(
            np.concatenate([rows for rows, _ in half]), np.concatenate([taken for _, taken in half]), log.feature_bound
        )
        for half in kept
    )
    return first, second


def _softmax(scores: Matrix) -> Matrix:
    odds = np.exp(scores - scores.max(axis=1, keepdims=True))
    shares: Matrix = odds / odds.sum(axis=1, keepdims=True)
    return shares


def shares_of(log: Log) -> Vector | None:
    """The chance of every action, where propensities are logged and do not depend on the context; else None."""
    low, high = np.full(len(log.actions), np.inf), np.full(len(log.actions), -np.inf)
    for batch in log.batches():
        np.minimum.at(low, batch.actions, batch.propensities)
        np.maximum.at(high, batch.actions, batch.propensities)
    is_constant = np.all(high - low <= 1e-9) and abs(float(low.sum()) - 1.0) <= 1e-6
    return low / low.sum() if is_constant else None
