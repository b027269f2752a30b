"""Whether actions were drawn with the propensities that a log states, in every context: a test of covariate balance.

With the propensity p of the logged action, w = 1{action = a} / p has mean 1 for every offered action a, whatever the
context. Two tests hold a log to that in one pass, and share the level.

Cells: each column is cut into six parts, and the weights of every action in every part are bet against
(`sample_ratio.py`). That holds for any propensities and any number of rows, and finds what depends on one column.

Fit: the excess w - 1 of every action, fitted by a linear function g of all columns to the rows so far whenever their
number has doubled, is held against the rows that follow: w g(x, a) - sum of g(x, .) over the offered actions has mean
0, and its sum by the root of its squares is beyond s with a chance of about exp(-s^2 / 2) or less. It finds what
depends a little on many columns.

Where a test fails, actions were not drawn as stated, or a column was measured after the action and depends on it.
"""

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import Matrix, Vector
from surefoot.replay.diagnostics import SURE, Doubt
from surefoot.replay.sample_ratio import SampleRatio

PARTS = 6
RATES = np.geomspace(0.01, 0.6, 4)
FIRST_FIT = 128  # rows
WIDEST_FIT = 300  # columns, beyond which a fit costs more than it finds
MOST_CELLS = 200_000  # of all columns and actions; columns beyond that are left out
SHOWN = 5  # columns that a doubt names
PROPENSITIES_STATED = "Propensities are as stated, whatever the context"


class CovariateBalance:
    """The tests over a log's rows; `least` is the smallest propensity."""

    def __init__(self, actions: Sequence[str], names: Sequence[str], least: float) -> None:
        self._actions, self._names = actions, names[: max(1, MOST_CELLS // (PARTS * len(actions)))]
        names = self._names
        self._edges: NDArray[np.float64] | None = None
        self._is_label = np.zeros(len(names), dtype=np.bool_)
        self._ratio = SampleRatio((len(names) * PARTS + 1) * len(actions), least, RATES)
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
        found = [self._ratio.p_value] + ([] if self._fit is None else [self._fit.p_value])
        return min(1.0, len(found) * min(found))

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
        width, found = PARTS * len(self._actions), list[str]()
        for place, name in enumerate(self._names):
            if self._ratio.p_value_of(slice(place * width, (place + 1) * width)) < SURE / len(self._names):
                found.append(name.partition("=")[0])
        return list(dict.fromkeys(found))

    def _seen(self) -> str:
        at, mean = self._ratio.worst_of(slice(None))
        cell, action = divmod(at, len(self._actions))
        p, others = f"p = {self.p_value:.2g}", ", ".join(self._columns[:SHOWN])
        if self._fit is not None and self._fit.p_value < SURE <= self._ratio.p_value:
            return f"all columns together predict the action, with a score of {self._fit.score:+.2g}; {p}"
        played = f"{self._actions[action]} was played {mean:.2f} times as often as stated"
        found = f"{played} {self._where(*divmod(cell, PARTS))}; {p}"
        return found + (f"; out of balance: {others}" if others else "")

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
