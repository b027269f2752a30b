"""Which assumptions a log makes doubtful, and how.

A doubt is raised where what was seen has a chance of less than 1 in 1,000 if the assumption holds. No doubt is no
proof: a test sees what it looks for, and few rows show little.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.replay.estimates import chi_square_tail
from surefoot.replay.theta_bound import GramSum, RidgeSums, ThetaLength

SURE = 0.001
BLOCKS = 10
MATTERS = 0.05  # correlation of neighbours from which on intervals are off by more than a twentieth
LINEARITY = "Linearity: the mean reward is <theta, features>"
NO_DRIFT = "No drift: the same theta from the first row to the last"


@dataclass(frozen=True, slots=True)
class Doubt:
    """One assumption: whether it looks doubtful, and what was seen.

    `consequence` is what becomes of the estimates where it is doubtful; of an assumption that the promise of a policy
    rests on, and no estimate, there is none.
    """

    assumption: str
    is_doubtful: bool
    seen: str
    consequence: str = ""

    def as_dict(self) -> dict[str, object]:
        """Plain values for JSON."""
        return {"assumption": self.assumption, "is_doubtful": self.is_doubtful, "seen": self.seen}


class Residuals:
    """What the tests need of a pass over the log, whose fit is known: one residual a row, in order."""

    def __init__(self, rows: int) -> None:
        self._rows, self._seen, self._last = rows, 0, math.nan
        self._blocks, self._powers = np.zeros((2, BLOCKS)), np.zeros(5)
        self._product, self._squares = 0.0, 0.0

    def add(self, residuals: Vector) -> None:
        """Take in rows, in order."""
        at = np.minimum((self._seen + np.arange(residuals.size)) * BLOCKS // max(1, self._rows), BLOCKS - 1)
        self._blocks[0] += np.bincount(at, minlength=BLOCKS)
        self._blocks[1] += np.bincount(at, residuals, minlength=BLOCKS)
        self._powers += [float((residuals**power).sum()) for power in range(5)]
        # The first row of all has no neighbour before it, and so a NaN.
        products = np.nan_to_num(np.concatenate([[self._last], residuals[:-1]]) * residuals)
        self._product += float(products.sum())
        self._squares += float(np.square(products).sum())
        self._seen, self._last = self._seen + residuals.size, float(residuals[-1])

    @property
    def variance(self) -> float:
        """Mean squared residual."""
        return float(self._powers[2] / self._powers[0])

    @property
    def fourth(self) -> float:
        """Mean fourth power of a residual."""
        return float(self._powers[4] / self._powers[0])

    def drift(self) -> Doubt:
        """Mean residuals of the tenths of the log, against their common variance.

        (sum of residuals)^2 / (n variance) has mean 1 and variance 2 + excess kurtosis / n: rare rewards make it vary
        more than a chi-square does, and a multiple of one of fewer degrees stands in for their sum.
        """
        counts, totals = self._blocks[:, self._blocks[0] > 0]
        statistic = float((totals**2 / (counts * max(self.variance, 1e-300))).sum())
        spread = 2 * counts.size + float((max(0.0, self.kurtosis - 3) / counts).sum())
        degrees = math.ceil(2 * counts.size**2 / spread)
        p = chi_square_tail(degrees, statistic * 2 * counts.size / spread)
        means = totals / counts
        worst = int(np.argmax(np.abs(means)))
        seen = f"mean residual of tenth {worst + 1} of the log: {means[worst]:+.3g}; p = {p:.2g}"
        return Doubt(NO_DRIFT, p < SURE, seen)

    def independence(self) -> Doubt:
        """Products of neighbouring residuals: their sum by its standard deviation, about normal where none depend.

        Where rewards are rare, the squares seen say too little on one side and the variance on the other: the larger
        counts.
        """
        score = self._product / math.sqrt(max(self._squares, self._seen * self.variance**2, 1e-300))
        share, p = self._product / max(self._powers[2], 1e-300), min(1.0, 2 * math.exp(-(score**2) / 2))
        seen = f"correlation of neighbouring residuals: {share:+.3g}; p = {p:.2g}"
        consequence = (
            "neighbouring rows depend on each other, and its interval is too narrow" if share > MATTERS else ""
        )
        return Doubt("Independence: neighbouring rows are independent", p < SURE, seen, consequence)

    def tails(self, *, is_bounded: bool) -> Doubt:
        """Kurtosis, where no range of rewards is known: in a range any noise is sub-Gaussian.  (Hoeffding)"""
        # 24 / n is its variance for normal residuals. In a long log any excess is certain, so it must be large, too.
        z = (self.kurtosis - 3) / math.sqrt(24 / max(1, self._seen))
        is_heavy = not is_bounded and self.kurtosis > 6 and z > NormalDist().inv_cdf(1 - SURE)
        seen = f"kurtosis of the residuals: {self.kurtosis:.3g} (normal: 3)"
        return Doubt("Light tails: noise is sub-Gaussian", is_heavy, "rewards are bounded" if is_bounded else seen)

    @property
    def kurtosis(self) -> float:
        """Fourth moment by the squared variance: 3 for a normal."""
        return self.fourth / max(self.variance**2, 1e-300)


def theta_length(theta: ThetaLength, names: Sequence[str]) -> Doubt:
    """Whether theta may be long only along a direction in which the rows hardly vary, and along which."""
    parts = np.argsort(-np.abs(theta.direction))
    parts = parts[np.abs(theta.direction[parts]) >= np.abs(theta.direction[parts[0]]) / 3][:4]
    named = " ".join(f"{theta.direction[at]:+.2g} ({names[at]})" for at in parts)
    seen = (
        f"at most {theta.norm.high:.4g}, where rows that vary alike in all directions leave {theta.even:.4g}; they "
        f"vary least along {named}"
    )
    return Doubt("Length of theta: rows vary in every direction", theta.is_doubtful, seen)


BLOCK = 64  # rows: neighbours that depend on each other lie in one block for the most part
BINS = 6
LEAST_ROWS = 20  # of a cell, below which its mean is no guess


def is_set_aside(rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which rows, by their number from 0, judge the guess."""
    return np.asarray(rows // BLOCK % 2 == 1)


class _Cells:
    """Mean residuals along some columns, each cut into equal parts between its ends."""

    def __init__(self, lows: Vector, highs: Vector) -> None:
        # What is the same in all rows is in the first cell.
        self._lows, self._widths = lows, np.where(highs - lows > 1e-300, highs - lows, np.inf)
        self._counts, self._totals = np.zeros((2, lows.size * BINS))

    def add(self, values: Matrix, residuals: Vector) -> None:
        """Take in rows (rows, columns) and what the fit missed in them."""
        places = self._places(values).ravel()
        self._counts += np.bincount(places, minlength=self._counts.size)
        self._totals += np.bincount(places, np.repeat(residuals, self._lows.size), minlength=self._counts.size)

    def guess(self, values: Matrix) -> Vector:
        """The sum of the mean residuals of the cells that a row lies in; 0 for a cell of few rows."""
        means = np.where(self._counts >= LEAST_ROWS, self._totals / np.maximum(self._counts, 1), 0.0)
        sums: Vector = means[self._places(values)].sum(axis=1)
        return sums

    def _places(self, values: Matrix) -> NDArray[np.int64]:
        at = np.clip((values - self._lows) / self._widths * BINS, 0, BINS - 1).astype(np.int64)
        return at + BINS * np.arange(self._lows.size)


class LinearityTest:
    """Learns the guess in one pass over the log, and judges it in the next.

    The log is cut into blocks of rows, every other of which is set aside. In the others, what a linear fit misses is
    averaged in cells along the fitted value and along each feature; these averages, added up, are a guess at what the
    fit will miss. In the blocks set aside the guess is held against what a fit to them missed. Where the model is
    linear the guess is worth nothing, and (sum of guess x residual) / sqrt(sum of their squares) is about standard
    normal, whatever the variance of each reward: one number, so that nothing is shared among tests, and no cell needs a
    variance of its own. A sum divided by the root of its squares is beyond x with a chance of about exp(-x^2 / 2) or
    less, also where rewards are rare and skewed.

    With least squares of the same rows the sum does not depend on theta; what is left of the guess beside the features
    is what its squares are taken of (White 1980), row by row where a row has the rewards of all actions.
    """

    def __init__(self, learned: RidgeSums, aside: RidgeSums, *, lows: Vector, highs: Vector) -> None:
        self._theta, (self._own, self._inverse) = learned.least_squares()[0], aside.least_squares()
        middle, reach = learned.fitted_spread(self._theta)
        self._cells = _Cells(np.append(middle - 2 * reach, lows), np.append(middle + 2 * reach, highs))
        rank = float((self._inverse * aside.gram).sum())
        self._free = max(1.0, aside.rows - rank) / max(1, aside.rows)
        dim = lows.size
        self._product, self._squares, self._along = 0.0, 0.0, np.zeros(dim)
        self._cross, self._spread = np.zeros(dim), GramSum(dim)

    def learn(self, features: Matrix, rewards: Vector) -> None:
        """Rows that are not set aside."""
        fitted = features @ self._theta
        self._cells.add(np.column_stack([fitted, features]), rewards - fitted)

    def judge(self, features: Matrix, rewards: Vector, *, together: int) -> None:
        """Rows that are set aside; each `together` that follow one another belong to one logged row."""
        guess = self._cells.guess(np.column_stack([features @ self._theta, features]))
        missed = rewards - features @ self._own
        self._along += features.T @ guess
        hits = (guess * missed).reshape(-1, together).sum(axis=1)
        moved = (features * missed[:, None]).reshape(-1, together, features.shape[1]).sum(axis=1)
        self._product += float(hits.sum())
        self._squares += float(hits @ hits)
        self._cross += moved.T @ hits
        self._spread.add(moved)

    @property
    def score(self) -> float:
        """About standard normal where the model is linear, and large where the guess was right."""
        beside = self._inverse @ self._along
        squares = self._squares - 2 * float(beside @ self._cross) + float(beside @ self._spread.value @ beside)
        # A fit makes residuals look smaller than they are.
        scale = math.sqrt(max(squares / self._free, 0.0))
        return self._product / scale if scale > 1e-12 * abs(self._product) else 0.0

    @property
    def p_value(self) -> float:
        """The chance of a guess this good where the model is linear."""
        return math.exp(-(max(0.0, self.score) ** 2) / 2)


RATES = np.geomspace(0.003, 0.9, 9)


def linearity(test: LinearityTest) -> Doubt:
    """Whether what a fit misses can be guessed from other rows."""
    seen = f"what a linear fit misses follows the features, with a score of {test.score:+.2g}; p = {test.p_value:.2g}"
    return Doubt(LINEARITY, test.p_value < SURE, seen)


class SampleRatio:
    """The wealth of the bets against a log's propensities, by group; `least` is the smallest propensity.

    A group is an action, or an action among some of the rows.

    With the propensity p of the logged action, w = 1{action = a} / p has mean 1 for every action a that is possible. So
    the wealth of a bet, the product of 1 + rate (w - 1), has mean 1 at all times, and exceeds 1 / level with a chance
    of at most `level`, for any propensities and any number of rows (Ville). Bets for and against every action in every
    group of rows, at several rates, share one wealth: its average.
    """

    def __init__(self, groups: int, least: float, rates: Vector = RATES) -> None:
        # Against an action no more than what is there when it is drawn at its least chance.
        self._rates = np.concatenate([rates, rates * least, -rates * least])
        self._gained = np.zeros((self._rates.size, groups))
        self._total, self._trials = np.zeros(groups), np.zeros(groups)

    def add(self, hits: NDArray[np.int64], weights: Vector, trials: Vector | float) -> None:
        """Take in the groups that were drawn, with 1 / p each, and how many rows could have been each group's."""
        self._trials += trials
        np.add.at(self._total, hits, weights)
        for place, rate in enumerate(self._rates):
            np.add.at(self._gained[place], hits, np.log1p(rate * (weights - 1.0)) - math.log1p(-rate))

    @property
    def wealth(self) -> Matrix:
        """Logarithms (rates, groups): every row is a loss for all groups but those that were drawn."""
        wealth: Matrix = self._gained + np.log1p(-self._rates)[:, None] * self._trials
        return wealth

    @property
    def p_value(self) -> float:
        """A bound on the chance of such a log where its propensities are right."""
        return self.p_value_of(slice(None))

    def p_value_of(self, groups: slice) -> float:
        """The same by the bets on some of the groups alone."""
        wealth = self.wealth[:, groups]
        most = float(wealth.max())
        return min(1.0, wealth.size / float(np.exp(wealth - most).sum()) * math.exp(-min(most, 700.0)))

    def worst_of(self, groups: slice) -> tuple[int, float]:
        """The group among these whose weights are farthest from 1 by their wealth, and their mean."""
        group = int(self.wealth[:, groups].max(axis=0).argmax())
        return group, float(self._total[groups][group] / max(1.0, self._trials[groups][group]))


PARTS = 6
BALANCE_RATES = np.geomspace(0.01, 0.6, 4)
FIRST_FIT = 128  # rows
WIDEST_FIT = 300  # columns, beyond which a fit costs more than it finds
MOST_CELLS = 200_000  # of all columns and actions; columns beyond that are left out
SHOWN = 5  # columns that a doubt names
PROPENSITIES_STATED = "Propensities are as stated, whatever the context"


class CovariateBalance:
    """The tests over a log's rows; `least` is the smallest propensity.

    With the propensity p of the logged action, w = 1{action = a} / p has mean 1 for every offered action a, whatever
    the context. Two tests hold a log to that in one pass, and share the level.

    Cells: each column is cut into six parts, and the weights of every action in every part are bet against
    (`SampleRatio`). That holds for any propensities and any number of rows, and finds what depends on one column.

    Fit: the excess w - 1 of every action, fitted by a linear function g of all columns to the rows so far whenever
    their number has doubled, is held against the rows that follow: w g(x, a) - sum of g(x, .) over the offered actions
    has mean 0, and its sum by the root of its squares is beyond s with a chance of about exp(-s^2 / 2) or less. It
    finds what depends a little on many columns.

    Where a test fails, actions were not drawn as stated, or a column was measured after the action and depends on it.
    """

    def __init__(self, actions: Sequence[str], names: Sequence[str], least: float) -> None:
        self._actions, self._names = actions, names[: max(1, MOST_CELLS // (PARTS * len(actions)))]
        names = self._names
        self._edges: NDArray[np.float64] | None = None
        self._is_label = np.zeros(len(names), dtype=np.bool_)
        self._ratio = SampleRatio((len(names) * PARTS + 1) * len(actions), least, BALANCE_RATES)
        self._fit = _ExcessFit(len(actions), len(names)) if len(names) <= WIDEST_FIT else None

    def add(
        self, contexts: Matrix, actions: NDArray[np.int64], propensities: Vector, offered: NDArray[np.bool_] | None
    ) -> None:
        """Take in rows (rows, columns), what was played, and the chance of it."""
        contexts = contexts[:, : len(self._names)]
        if self._edges is None:
            self._edges = np.quantile(contexts, np.arange(1, PARTS) / PARTS, axis=0)
            # What has two values is there, or it is not.
            low, high = contexts.min(axis=0), contexts.max(axis=0)
            self._is_label = ((contexts == low) | (contexts == high)).all(axis=0)
            self._edges[:, self._is_label] = (low + high)[self._is_label] / 2
        possible = np.ones((len(actions), len(self._actions))) if offered is None else offered.astype(np.float64)
        parts = sum((contexts > edge).astype(np.int64) for edge in self._edges)
        # Where a label is absent others are there, which are columns of their own; the last cell has all rows.
        rows, columns = np.nonzero((parts > 0) | ~self._is_label)
        last, number = PARTS * len(self._names), len(self._actions)
        rows = np.concatenate([rows, np.arange(len(actions))])
        cells = np.concatenate([PARTS * columns + parts[rows[: columns.size], columns], np.full(len(actions), last)])
        trials = np.stack([np.bincount(cells, each[rows], minlength=last + 1) for each in possible.T], axis=1)
        self._ratio.add(cells * number + actions[rows], 1.0 / propensities[rows], trials.ravel().astype(np.float64))
        if self._fit is not None:
            self._fit.add(contexts, possible, actions, 1.0 / propensities)

    @property
    def p_value(self) -> float:
        """The chance of so little balance where propensities are as stated; 1 for a log without rows."""
        p_values = [self._ratio.p_value] + ([] if self._fit is None else [self._fit.p_value])
        return min(1.0, len(p_values) * min(p_values))

    @property
    def of_actions(self) -> tuple[float, str, float]:
        """By all rows together: the chance, the action that is farthest off, and its mean weight."""
        groups = slice(PARTS * len(self._names) * len(self._actions), None)
        action, mean = self._ratio.worst_of(groups)
        return self._ratio.p_value_of(groups), self._actions[action], mean

    @property
    def doubt(self) -> Doubt:
        """What is out of balance, and what follows."""
        named = ", ".join(self._columns[:SHOWN]) or "the context"
        consequence = (
            f"the action depends on {named} in a way that its stated propensities do not: it was not drawn as stated, "
            "or that was measured after it"
        )
        return Doubt(PROPENSITIES_STATED, self.p_value < SURE, self._seen(), consequence)

    @property
    def _columns(self) -> list[str]:
        """The columns that are out of balance by themselves, the label left out."""
        width, columns = PARTS * len(self._actions), list[str]()
        for place, name in enumerate(self._names):
            if self._ratio.p_value_of(slice(place * width, (place + 1) * width)) < SURE / len(self._names):
                columns.append(name.partition("=")[0])
        return list(dict.fromkeys(columns))

    def _seen(self) -> str:
        at, mean = self._ratio.worst_of(slice(None))
        cell, action = divmod(at, len(self._actions))
        p, others = f"p = {self.p_value:.2g}", ", ".join(self._columns[:SHOWN])
        if self._fit is not None and self._fit.p_value < SURE <= self._ratio.p_value:
            return f"all columns together predict the action, with a score of {self._fit.score:+.2g}; {p}"
        played = f"{self._actions[action]} was played {mean:.2f} times as often as stated"
        seen = f"{played} {self._where(*divmod(cell, PARTS))}; {p}"
        return seen + (f"; out of balance: {others}" if others else "")

    def _where(self, column: int, part: int) -> str:
        if column == len(self._names):
            return "in all rows"
        if self._is_label[column]:
            return f"where {self._names[column]}"
        return f"in part {part + 1} of {PARTS} of {self._names[column]}"


class _ExcessFit:
    """A linear fit of the excess of every action to the rows so far, judged by those that follow."""

    def __init__(self, actions: int, columns: int) -> None:
        self._rows, self._until = 0, FIRST_FIT
        self._gram, self._moment = np.zeros((columns, columns)), np.zeros((columns, actions))
        self._theta: Matrix = np.zeros((columns, actions))
        self._sum = self._squares = 0.0

    def add(self, contexts: Matrix, offered: Matrix, actions: NDArray[np.int64], weights: Vector) -> None:
        """Take in rows; those up to a doubling are judged before it."""
        start = 0
        while start < len(actions):
            part = slice(start, min(len(actions), start + self._until - self._rows))
            self._judge(contexts[part], offered[part], actions[part], weights[part])
            self._rows, start = self._rows + part.stop - start, part.stop
            if self._rows == self._until:
                self._until *= 2
                ridge = np.eye(len(self._gram)) * max(float(np.trace(self._gram)) / self._rows, 1e-300)
                self._theta = np.asarray(np.linalg.solve(self._gram + ridge, self._moment), dtype=np.float64)

    def _judge(self, contexts: Matrix, offered: Matrix, actions: NDArray[np.int64], weights: Vector) -> None:
        excess = contexts @ self._theta
        terms = weights * excess[np.arange(len(actions)), actions] - (excess * offered).sum(axis=1)
        self._sum += float(terms.sum())
        self._squares += float(np.square(terms).sum())
        played = np.zeros_like(offered)
        played[np.arange(len(actions)), actions] = weights
        self._gram += contexts.T @ contexts
        self._moment += contexts.T @ (played - offered)

    @property
    def score(self) -> float:
        """About standard normal where propensities are as stated."""
        return self._sum / math.sqrt(self._squares) if self._squares > 0 else 0.0

    @property
    def p_value(self) -> float:
        """The chance of a score this high."""
        return math.exp(-(max(0.0, self.score) ** 2) / 2)
