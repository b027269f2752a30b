"""A log: logged rounds, batch by batch, as arrays that compiled code takes; and logs in memory.

A table of labels becomes a bandit by hiding all labels but the one that was guessed (`classification`), a table of
ratings by hiding all ratings but the one that was asked for (`ratings`): every action's reward is known, and a policy
can be judged on the table without any propensity.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arrays import Matrix, Vector, count, finite_array
from surefoot.errors import EvidenceError, InputError, LogError
from surefoot.linear.features import Disjoint, FeatureMap, OneHot

BATCH_NUMBERS = 500_000  # at most so many features in a batch: 4 MB, near enough to the processor
COMPACT_ROWS = 4_096  # at most so many rounds in a compact batch, after which progress is shown


def batch_rows(dim: int, actions: int, *, is_compact: bool) -> int:
    """How many rounds make a batch; a core that is given contexts still writes out a row of `dim` for each."""
    return max(1, min(COMPACT_ROWS, BATCH_NUMBERS // dim) if is_compact else BATCH_NUMBERS // (dim * actions))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Some consecutive rounds of a log.

    features (rounds, actions, dim); actions, baselines and lines (rounds); rewards (rounds, 1), or (rounds, actions)
    where the reward of every action is known. A propensity is NaN where none was logged. `offered` (rounds, actions)
    says which actions could be played, where not all could in every round. Where every action has a theta of its own,
    a compact batch has `blocks` of them, and as features the context that stands in each (rounds, 1, width).
    """

    features: NDArray[np.float64]
    actions: NDArray[np.int64]
    rewards: Matrix
    propensities: Vector
    baselines: NDArray[np.int64]
    lines: NDArray[np.int64]
    offered: NDArray[np.bool_] | None = None
    blocks: int = 0

    def even_chances(self, actions: int) -> Vector:
        """The chance of what was played, if all actions that could be played had the same."""
        return np.full(len(self), 1.0 / actions) if self.offered is None else 1.0 / self.offered.sum(axis=1)

    def __len__(self) -> int:
        return int(self.actions.size)

    def part(self, start: int, stop: int) -> "Batch":
        """Some of its rounds."""
        return Batch(
            self.features[start:stop],
            self.actions[start:stop],
            self.rewards[start:stop],
            self.propensities[start:stop],
            self.baselines[start:stop],
            self.lines[start:stop],
            None if self.offered is None else self.offered[start:stop],
            self.blocks,
        )

    def rows(self, t: int) -> Matrix:
        """The feature rows of one round, (actions, dim)."""
        return np.kron(np.eye(self.blocks), self.features[t]) if self.blocks else self.features[t]


@dataclass(slots=True)
class BadRows:
    """Rows that could not be used: how many, and the first of them with line and reason. Too many stop the run."""

    limit: int = 0
    count: int = 0
    shown: list[tuple[int, str]] = field(default_factory=list)

    def add(self, found: Sequence[tuple[int, str]], path: object) -> None:
        """Count some bad rows; raise once there are more than the limit."""
        self.shown += found[: max(0, 20 - len(self.shown))]
        self.count += len(found)
        if self.count > self.limit:
            listed = "\n".join(f"  line {line:,}: {reason}" for line, reason in self.shown[:10])
            allowed = "none is allowed" if self.limit == 0 else f"{self.limit:,} are allowed"
            raise LogError(
                f"Every row of `{path}` must be usable, but {self.count:,} so far {'is' if self.count == 1 else 'are'} "
                f"not, and {allowed}:\n{listed}\nCorrect them, or allow more (`max_bad`, `--max-bad`)."
            )


class Log(ABC):
    """Logged rounds that can be read again and again, batch by batch.

    `actions` names the rows of the features; `feature_bound` is a length that none of them exceeds.
    """

    name: str = "log"
    actions: tuple[str, ...]
    dim: int
    feature_bound: float
    rows: int | None = None
    propensity_range: tuple[float, float] | None = None  # NaN where none were logged; None: not looked at yet
    is_full: bool = False
    follows_log: bool = False  # the baseline is whatever was logged
    has_offers: bool = False  # which actions could be played changes from row to row
    blocks: int = 0  # actions, where each has a theta of its own over the same context
    context: tuple[str, ...] = ()  # the columns that became features, where a table has any
    left_out: Mapping[str, str] = MappingProxyType({})  # columns that might have been context, and why they are not
    bad: BadRows

    @property
    def weight_names(self) -> list[str]:
        """What each weight of theta belongs to."""
        return [f"feature {place}" for place in range(1, self.dim + 1)]

    @property
    def context_names(self) -> list[str]:
        """What each column of `contexts` holds."""
        names = self.weight_names
        return names[: self.dim // self.blocks] if self.blocks else names * len(self.actions)

    def contexts(self, batch: Batch) -> Matrix:
        """What is known of each round of a batch before its action, (rounds, columns)."""
        if not self.blocks:
            return batch.features.reshape(len(batch), -1)
        return batch.features[:, 0, : self.dim // self.blocks]

    @abstractmethod
    def batches(self) -> Iterator[Batch]:
        """All rounds, in order."""

    def compact_batches(self) -> Iterator[Batch]:
        """The same in as little as the core needs: contexts alone where a log knows how rows are made of them."""
        return self.batches()


class ArrayLog(Log):
    """A log in memory: one round per row.

    Parameters
    ----------
    features : array_like of shape (rounds, actions, dim)
        Feature rows.
    actions : array_like of shape (rounds,)
        The row that was played.
    rewards : array_like of shape (rounds,) or (rounds, actions)
        Its reward, or the reward of every action where that is known.
    baselines : int or array_like of shape (rounds,)
        The row that the baseline plays.
    propensities : array_like of shape (rounds,), optional
        Probability with which the played action was chosen.
    names : sequence of str, optional
        Names of the actions; their numbers by default.
    name : str
        Name of the log in reports.
    feature_bound : float, optional
        Bound on the length of every row; by default that of the longest.

    Raises
    ------
    InputError
        If an array is not finite or does not match the others, or a row or propensity is out of range.

    Examples
    --------
    >>> log = ArrayLog(features=[[[1.0, 0.0], [0.0, 1.0]]] * 3, actions=[0, 1, 1], rewards=[1.0, 0.0, 1.0], baselines=0)
    >>> log.dim, log.rows, log.actions
    (2, 3, ('0', '1'))
    """

    def __init__(
        self,
        *,
        features: ArrayLike,
        actions: ArrayLike,
        rewards: ArrayLike,
        baselines: ArrayLike,
        propensities: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        name: str = "log",
        feature_bound: float | None = None,
    ) -> None:
        self.name, self.bad = name, BadRows()
        rows = finite_array("features", features, ndim=3)
        paid = finite_array("rewards", rewards, ndim=np.ndim(rewards))
        self.is_full = paid.ndim == 2
        n, k, self.dim = rows.shape
        self.actions = tuple(names) if names is not None else tuple(str(i) for i in range(k))
        chances = np.full(n, np.nan) if propensities is None else finite_array("propensities", propensities, ndim=1)
        self.batch = Batch(
            rows,
            indices("actions", actions, n, k),
            paid if self.is_full else paid.reshape(-1, 1),
            chances,
            indices("baselines", baselines, n, k),
            np.arange(1, n + 1),
        )
        self._check()
        longest = float(np.linalg.norm(rows, axis=2).max(initial=0.0))
        self.feature_bound = longest if feature_bound is None else feature_bound
        self.rows, self.propensity_range = n, span(chances)

    def _check(self) -> None:
        batch, n = self.batch, len(self.batch)
        if len(batch.rewards) != n or len(batch.propensities) != n or len(self.actions) != batch.features.shape[1]:
            raise InputError("`features`, `rewards`, `propensities` and `names` must belong to the same rounds.")
        wrong = ~(np.isnan(batch.propensities) | ((batch.propensities > 0) & (batch.propensities <= 1)))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"`0 < propensity <= 1` must hold, but row {at + 1} has {batch.propensities[at]:g}.")

    def batches(self) -> Iterator[Batch]:
        """All rounds, in order."""
        yield from split(self.batch)


def span(propensities: Vector) -> tuple[float, float]:
    """Smallest and largest; NaN where any is missing."""
    if propensities.size == 0:
        return np.nan, np.nan
    return float(np.min(propensities)), float(np.max(propensities))


def split(batch: Batch) -> Iterator[Batch]:
    """Parts of a batch that are small enough for the memory they are worked on in."""
    per_round = max(1, int(np.prod(batch.features.shape[1:])))
    size = max(1, BATCH_NUMBERS // per_round)
    for start in range(0, len(batch), size):
        yield batch.part(start, start + size)


def indices(name: str, values: ArrayLike, rounds: int, actions: int) -> NDArray[np.int64]:
    """Row numbers, one for all rounds or one per round, each within the actions."""
    rows = np.broadcast_to(np.asarray(values), (rounds,)).astype(np.int64)
    wrong = (rows < 0) | (rows >= actions)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"`{name}` must be rows 0 to {actions - 1}, but row {at + 1} has {rows[at]}.")
    return np.ascontiguousarray(rows)


class RowMaker:
    """phi(x, a) for a block of contexts.

    Every map of the library is affine in the context, and so known from its own values at 0 and along each axis; with
    steps that are powers of two the block is equal to the map to the last bit. A map that is not affine is called row
    by row. Rows of `Disjoint` are zeros but for one block, and are written as such: their planes would be as large as
    the cube of what they hold.

    >>> from surefoot import Disjoint
    >>> RowMaker(Disjoint(actions=2, context_dim=1, context_bound=1.0), 1)(np.array([[0.5], [0.25]]))[1]
    array([[1.  , 0.25, 0.  , 0.  ],
           [0.  , 0.  , 1.  , 0.25]])
    """

    def __init__(self, phi: FeatureMap, context_dim: int) -> None:
        self.phi = phi
        self._context_dim = 0 if isinstance(phi, OneHot) else context_dim
        if type(phi) is Disjoint:
            self.is_affine = True
            return
        origin = self._one(np.zeros(self._context_dim))
        self._shape = origin.shape
        step = 2.0 ** math.floor(math.log2(getattr(phi, "context_bound", 1.0)))
        axes = [(self._one(step * axis) - origin) / step for axis in np.eye(self._context_dim)]
        self._planes = np.stack([origin, *axes]).reshape(1 + self._context_dim, -1)
        probe = np.full(self._context_dim, 0.3 * step / math.sqrt(max(1, self._context_dim)))
        self.is_affine = bool(np.array_equal(self._block(probe.reshape(1, -1))[0], self._one(probe)))

    def _one(self, context: NDArray[np.float64]) -> Matrix:
        return self.phi() if isinstance(self.phi, OneHot) else self.phi(context)

    def _block(self, contexts: Matrix) -> NDArray[np.float64]:
        with_one = np.hstack([np.ones((len(contexts), 1)), contexts])
        return (with_one @ self._planes).reshape(len(contexts), *self._shape)

    @property
    def blocks(self) -> int:
        """How many blocks hold the same context, one for each action; 0 where rows are made in another way."""
        return self.phi.actions if type(self.phi) is Disjoint else 0

    def contexts(self, contexts: Matrix) -> NDArray[np.float64]:
        """What stands in every block, (rounds, 1, width)."""
        assert type(self.phi) is Disjoint
        return np.ascontiguousarray(self._one_block(contexts, self.phi)[:, None])

    @staticmethod
    def _one_block(contexts: Matrix, phi: Disjoint) -> Matrix:
        return np.hstack([np.ones((len(contexts), 1)), contexts]) if phi.intercept else contexts

    @classmethod
    def _disjoint(cls, contexts: Matrix, phi: Disjoint) -> NDArray[np.float64]:
        block = cls._one_block(contexts, phi)
        rows = np.zeros((len(contexts), phi.actions, phi.dim))
        for action in range(phi.actions):
            start = action * block.shape[1]
            rows[:, action, start : start + block.shape[1]] = block
        return rows

    def __call__(self, contexts: Matrix) -> NDArray[np.float64]:
        """(rounds, actions, dim)."""
        contexts = contexts[:, : self._context_dim]
        if type(self.phi) is Disjoint:
            return self._disjoint(contexts, self.phi)
        if self.is_affine:
            return np.ascontiguousarray(self._block(contexts))
        return np.stack([self._one(context) for context in contexts])


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
    scores = finite_array("table", table, ndim=2)
    low, high = float(scores.min()), float(scores.max())
    if not high > low:
        raise InputError(f"Ratings must differ, but all of them are {low:g}.")
    return _table(contexts, (scores - low) / (high - low), baselines=baselines, names=names, name=name)


def _table(
    contexts: ArrayLike, rewards: Matrix, *, baselines: ArrayLike, names: Sequence[str] | None, name: str
) -> ContextLog:
    rows = finite_array("contexts", contexts, ndim=2)
    longest = float(np.linalg.norm(rows, axis=1).max(initial=0.0))
    scaled = rows / longest if longest > 0 else rows
    phi = Disjoint(actions=rewards.shape[1], context_dim=rows.shape[1], context_bound=1.0)
    return ContextLog(contexts=scaled, phi=phi, rewards=rewards, baselines=baselines, names=names, name=name)


def history(log: Log, *, most: int = 1_000_000) -> tuple[Matrix, Vector]:
    """Feature rows and rewards of the logged actions, for a policy's `warm_start` or `Experiment.create(history=...)`.

    They may enter a confidence set if actions were chosen without looking at the rewards to come. Scale them as the
    experiment will: a log read with the experiment's own configuration does.

    Parameters
    ----------
    log : Log
        What `read_log` returned, or an `ArrayLog`.
    most : int
        How many rows to take at most, from the start.

    Returns
    -------
    tuple of ndarray
        Rows of shape (rounds, dim), and their rewards.

    Raises
    ------
    EvidenceError
        If the log is a table of labels or ratings, in which nothing was played.

    Examples
    --------
    >>> from surefoot.replay import ArrayLog
    >>> rows = [[[1.0, 0.0], [0.0, 1.0]]] * 2
    >>> history(ArrayLog(features=rows, actions=[1, 0], rewards=[0.5, 0.2], baselines=0))
    (array([[0., 1.], [1., 0.]]), array([0.5, 0.2]))
    """
    count("most", most, hint="most is the number of rows to take.")
    if log.is_full:
        raise EvidenceError("A table of labels or ratings has no history: nothing in it was played.")
    features, rewards, taken = [np.zeros((0, log.dim))], [np.zeros(0)], 0
    for batch in log.batches():
        part = batch.part(0, most - taken)
        features.append(part.features[np.arange(len(part)), part.actions])
        rewards.append(part.rewards[:, 0])
        taken += len(part)
        if taken >= most:
            break
    return np.concatenate(features), np.concatenate(rewards)
