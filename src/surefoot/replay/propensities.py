"""Propensities: whether a log can answer a question at all, and which of its rows may be used.

Where the baseline is what was logged, and that was drawn by chance, it is the distribution of the draw: its reward is
the mean of all rewards, and where it is to play in a row, an action is drawn from that distribution afresh, since the
logged draw is what the answer is judged by.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.errors import EvidenceError, LogError
from surefoot.replay.doubts import PROPENSITIES_STATED, SURE, CovariateBalance, Doubt, is_set_aside
from surefoot.replay.estimates import Estimate, WeightedMean, weights
from surefoot.replay.log import BadRows, Batch, Log, span
from surefoot.replay.replayed_policy import Declared

ENOUGH = 1_000  # rounds that a thinned log should leave
CHANCES = np.concatenate([[0.0], np.geomspace(1e-12, 1.0, 481)])
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
        counts = sum(np.histogram(batch.propensities, CHANCES)[0] for batch in _nonempty(self._log))
        within = np.flatnonzero(np.cumsum(counts) <= SHORT * rows)
        most = float(CHANCES[within[-1] + 1]) if within.size else self.least
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
        propensities = self.of(batch)
        if self._balance is not None:
            self._balance.add(self._log.contexts(batch), batch.actions, propensities, batch.offered)
        for action, mean in enumerate(self._earned):
            if batch.rewards.shape[1] > 1:
                mean.add(batch.rewards[:, action], np.ones(len(batch)))
            else:
                rows = batch.actions == action
                mean.add(batch.rewards[rows, 0], 1.0 / propensities[rows])
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
    has_rows = False
    for batch in log.batches():
        has_rows = True
        yield batch
    if not has_rows:
        raise LogError(f"The log `{log.name}` must have at least one row, but it has none.")


FIT_NUMBERS = 4_000_000  # features in memory while a half is fitted
STEPS, CLOSE = 200, 1e-6
FITS = 0.05  # how far the mean weight of an action may be from 1 where the model fits
LEAST = 0.01  # a chance below this is taken as this: weights of a hundred are as much as an estimate can carry
PROPENSITIES_ESTIMATED = "Propensities: nothing but the logged context decided both the action and the reward"


class ActionModel:
    """The chance of every action in a row, by a conditional logit over the rows' features.

    The chance of action a in a row is taken as exp(<gamma, phi(x, a)>) / sum over all actions, over the rows' own
    features: with a theta for each action a multinomial logit, with shared features a conditional one. Gamma maximises
    the likelihood, less a small square length, by steps whose size a bound on the curvature allows (Boehning 1992), so
    that none is too long. Rows are predicted by a gamma that was fitted to other blocks of the log, so that no row
    explains itself.
    """

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
        estimated = _softmax(features @ self._gamma / self._length)
        least = min(LEAST, 1.0 / estimated.shape[1])
        lifted = np.maximum(estimated, least)
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
