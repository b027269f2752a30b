"""Logs in memory that hold contexts: feature rows are made batch by batch, so that long runs stay small.

A table of labels becomes a bandit by hiding all labels but the one that was guessed (`classification`), a table of
ratings by hiding all ratings but the one that was asked for (`ratings`): every action's reward is known, and a policy
can be judged on the table without any propensity.
"""

from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arrays import Matrix, count, finite_array
from surefoot.errors import InputError
from surefoot.linear.features import Disjoint, FeatureMap
from surefoot.replay.batch import BadRows, Batch, Log, batch_rows, indices, span
from surefoot.replay.feature_rows import RowMaker


class ContextLog(Log):
    """Contexts (rounds, context_dim), a feature map, and rewards (rounds) or, of every action, (rounds, actions)."""

    def __init__(
        self,
        *,
        contexts: ArrayLike,
        phi: FeatureMap,
        rewards: ArrayLike,
        baselines: ArrayLike,
        actions: ArrayLike = 0,
        propensities: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        name: str = "log",
        order: NDArray[np.int64] | None = None,
    ) -> None:
        self._contexts = finite_array("contexts", contexts, ndim=2)
        n = len(self._contexts)
        self.phi, self._maker = phi, RowMaker(phi, self._contexts.shape[1])
        self.blocks = self._maker.blocks
        # With room for the rounding of rows that are made in blocks.
        self.dim, self.feature_bound = phi.dim, phi.bound * (1 + 1e-9)
        k = len(self._maker(self._contexts[:1])[0])
        paid = finite_array("rewards", rewards, ndim=np.ndim(rewards))
        self.is_full = paid.ndim == 2
        self._rewards: Matrix = paid if self.is_full else paid.reshape(-1, 1)
        if self._rewards.shape != (n, k if self.is_full else 1):
            raise InputError(f"`rewards` must belong to {n} rounds of {k} actions, but have shape {paid.shape}.")
        chances = np.full(n, np.nan) if propensities is None else finite_array("propensities", propensities, ndim=1)
        self._actions, self._baselines = indices("actions", actions, n, k), indices("baselines", baselines, n, k)
        self._propensities, self.propensity_range = np.broadcast_to(chances, (n,)), span(chances)
        self.actions = tuple(names) if names is not None else tuple(str(i) for i in range(k))
        self.name, self.bad = name, BadRows()
        self._order = np.arange(n) if order is None else order
        self.rows = self._order.size

    def batches(self) -> Iterator[Batch]:
        """All rounds, in order."""
        return self._batches(is_compact=False)

    def compact_batches(self) -> Iterator[Batch]:
        """The same with contexts alone, where every action has a theta of its own."""
        return self._batches(is_compact=self._maker.blocks > 0)

    def _batches(self, *, is_compact: bool) -> Iterator[Batch]:
        size = batch_rows(self.dim, len(self.actions), is_compact=is_compact)
        for start in range(0, self._order.size, size):
            at = self._order[start : start + size]
            yield Batch(
                self._maker.contexts(self._contexts[at]) if is_compact else self._maker(self._contexts[at]),
                self._actions[at],
                self._rewards[at],
                self._propensities[at],
                self._baselines[at],
                at + 1,
                blocks=self._maker.blocks if is_compact else 0,
            )

    def resampled(self, rounds: int, seed: int) -> Self:
        """Rounds drawn from these with replacement: a longer run in the world that this log is the whole of."""
        count("rounds", rounds, hint="rounds is the length of the run.")
        return self._in_order(np.random.default_rng(seed).choice(self._order, size=rounds))

    def shuffled(self, seed: int) -> Self:
        """The same rounds in another order."""
        return self._in_order(np.random.default_rng(seed).permutation(self._order))

    def _in_order(self, order: NDArray[np.int64]) -> Self:
        # Past the checks and copies of __init__: the arrays are shared, and only the order differs.
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other._order, other.rows = order, order.size
        return other


def classification(
    contexts: ArrayLike, labels: ArrayLike, *, baselines: ArrayLike, name: str = "classification"
) -> ContextLog:
    """A table of labels as a bandit: an action is a guess at the label, and pays 1 where it is right.

    `baselines` is today's guess, one row or one per context. Contexts are divided by the longest of them.

    >>> log = classification([[1.0, 0.0], [0.0, 2.0]], ["no", "yes"], baselines=0)
    >>> log.actions, next(log.batches()).rewards.tolist()
    (('no', 'yes'), [[1.0, 0.0], [0.0, 1.0]])
    """
    known, places = np.unique(np.asarray(labels), return_inverse=True)
    names = tuple(str(label) for label in known)
    return _table(contexts, np.eye(len(names))[places], baselines=baselines, names=names, name=name)


def ratings(
    contexts: ArrayLike,
    table: ArrayLike,
    *,
    baselines: ArrayLike,
    names: Sequence[str] | None = None,
    name: str = "ratings",
) -> ContextLog:
    """A table of ratings (users, items) as a bandit: an action is an item to show, and pays the user's rating.

    Every rating must be there, and is moved into [0, 1] by the smallest and the largest.
    """
    given = finite_array("table", table, ndim=2)
    low, high = float(given.min()), float(given.max())
    if not high > low:
        raise InputError(f"Ratings must differ, but all of them are {low:g}.")
    return _table(contexts, (given - low) / (high - low), baselines=baselines, names=names, name=name)


def _table(
    contexts: ArrayLike, rewards: Matrix, *, baselines: ArrayLike, names: Sequence[str] | None, name: str
) -> ContextLog:
    given = finite_array("contexts", contexts, ndim=2)
    longest = float(np.linalg.norm(given, axis=1).max(initial=0.0))
    scaled = given / longest if longest > 0 else given
    phi = Disjoint(actions=rewards.shape[1], context_dim=given.shape[1], context_bound=1.0)
    return ContextLog(contexts=scaled, phi=phi, rewards=rewards, baselines=baselines, names=names, name=name)
