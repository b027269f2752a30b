"""Logged rounds, as arrays that compiled code can take; and the log, which gives them batch by batch."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike, NDArray

from surefoot.arrays import Matrix, Vector, finite_array
from surefoot.errors import InputError, LogError

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
    """Rows that could not be used: how many, and the first of them with line and reason. Too many stop the run.

    Without a limit somebody else decides how many are too many.
    """

    limit: int | None = 0
    count: int = 0
    shown: list[tuple[int, str]] = field(default_factory=list)

    def add(self, found: Sequence[tuple[int, str]], path: object) -> None:
        """Count some bad rows; raise once there are more than the limit."""
        self._count(found, len(found), path)

    def join(self, other: "BadRows", before: int, path: object) -> None:
        """Count those of another part of the log, before which there are so many lines."""
        self._count([(before + line, why) for line, why in other.shown], other.count, path)

    def _count(self, found: Sequence[tuple[int, str]], number: int, path: object) -> None:
        self.shown += list(found)[: max(0, 20 - len(self.shown))]
        self.count += number
        if self.limit is not None and self.count > self.limit:
            listed = "\n".join(f"  line {line:,}: {reason}" for line, reason in self.shown[:10])
            allowed = "none is allowed" if self.limit == 0 else f"{self.limit:,} are allowed"
            raise LogError(
                f"Every row of `{path}` must be usable, but {self.count:,} so far {'is' if self.count == 1 else 'are'} "
                f"not, and {allowed}:\n{listed}\nMend them, or allow more (`max_bad`, on the command line `--max-bad`)."
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
        self._batch = Batch(
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
        batch, n = self._batch, len(self._batch)
        if len(batch.rewards) != n or len(batch.propensities) != n or len(self.actions) != batch.features.shape[1]:
            raise InputError("`features`, `rewards`, `propensities` and `names` must belong to the same rounds.")
        wrong = ~(np.isnan(batch.propensities) | ((batch.propensities > 0) & (batch.propensities <= 1)))
        if wrong.any():
            at = int(np.argmax(wrong))
            raise InputError(f"`0 < propensity <= 1` must hold, but row {at + 1} has {batch.propensities[at]:g}.")

    def batches(self) -> Iterator[Batch]:
        """All rounds, in order."""
        yield from split(self._batch)


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
    given = np.broadcast_to(np.asarray(values), (rounds,)).astype(np.int64)
    wrong = (given < 0) | (given >= actions)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"`{name}` must be rows 0 to {actions - 1}, but row {at + 1} has {given[at]}.")
    return np.ascontiguousarray(given)
