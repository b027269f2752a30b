"""Predictions of the baseline's rewards from contexts, by whoever drives a guard: an experiment, a guarded learner."""

import math
import zlib
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from surefoot.arrays import LARGEST
from surefoot.policies.guard import Guard

PERSON = "person"  # in a context, whom it is about

Row: TypeAlias = dict[int, float]  # what is not 0


def predicted_metrics(guard: Guard) -> list[str]:
    """The metrics of a guard of which the baseline's rewards may be predicted for it."""
    is_on = guard.settings["predict"] and guard.settings["unit_window"] is None
    return [name for name, metric in guard.metrics.items() if is_on and metric.baseline_ceiling is None]


class BaselineForecast:
    """Predicts the baseline's rewards from contexts, by a ridge regression that learns as rewards come.

    A prediction is made of what is known before the coin, so a bad one costs rounds and never the promise. It is given
    only while predictions so far were nearer than the mean alone, and not by a guard with `predict=False`, one whose
    units have several contexts, or of a metric under a ceiling: whoever declared that may have meant it on average.

    metrics: what is predicted
    """

    SIZE = 32  # of a context as numbers
    RIDGE = 4.0
    FEWEST = 50  # rounds before the first prediction
    GAIN = 0.98  # of the squared error of the mean alone, which predictions must stay below
    DIGITS = 3  # a journal keeps a prediction even where its context is erased
    MOST_OPEN = 10_000  # rounds
    MOST_FIELDS = 100  # of a context that are looked at

    def __init__(self, guard: Guard) -> None:
        self.metrics = predicted_metrics(guard)
        self._open: dict[int, tuple[Row, dict[str, float]]] = {}  # row and the rewards that came, by round
        self._inverse = np.eye(self.SIZE) / self.RIDGE
        self._weights = np.zeros((len(self.metrics), self.SIZE))
        # Of each metric rounds, rewards, and squared errors of predictions and of the mean.
        self._counts = [[0.0] * 4 for _ in self.metrics]
        self._largest = [1.0] * self.SIZE  # of each number of a context, which is divided by it

    def predict(self, context: Any) -> dict[str, float] | None:
        """By metric, what the baseline will earn; None where nothing better than the mean is known."""
        better = [
            i
            for i, (rounds, _, error, plain) in enumerate(self._counts)
            if rounds >= self.FEWEST and error < self.GAIN * plain
        ]
        row = self._row(context) if better else None
        if row is None:
            return None
        rewards = {self.metrics[i]: float(f"{self._predict(i, row):.{self.DIGITS}g}") for i in better}
        return rewards if all(map(math.isfinite, rewards.values())) else None

    def _predict(self, metric: int, row: Row) -> float:
        weights = self._weights[metric]
        return sum(float(weights[place]) * number for place, number in row.items())

    def learn(self, context: Any, rewards: Mapping[str, float]) -> None:
        """Take the rewards of a round that the baseline played, if they are all there."""
        row = self._row(context, is_new=True) if self._is_whole(rewards) else None
        if row is not None:
            self._learn(row, rewards)

    def opened(self, round_: int, context: Any) -> None:
        """Await the rewards of a round that the baseline plays; of too many the oldest is not learned."""
        row = self._row(context, is_new=True)
        if row is not None and self.metrics:
            self._open[round_] = row, {}
            if len(self._open) > self.MOST_OPEN:
                del self._open[next(iter(self._open))]

    def rewarded(self, round_: int, rewards: Mapping[str, float]) -> None:
        """Take rewards of a round, all at once or one by one."""
        if round_ in self._open:
            row, came = self._open[round_]
            came.update(rewards)
            if self._is_whole(came):
                del self._open[round_]
                self._learn(row, came)

    def _is_whole(self, rewards: Mapping[str, float]) -> bool:
        return bool(self.metrics) and all(name in rewards for name in self.metrics)

    def _learn(self, row: Row, rewards: Mapping[str, float]) -> None:
        whole = np.zeros(self.SIZE)
        for place, number in row.items():
            whole[place] = number
        step = self._inverse @ whole
        scale = 1.0 / (1.0 + float(whole @ step))
        for i, name in enumerate(self.metrics):
            counts, value = self._counts[i], float(rewards[name])
            error, mean = value - self._predict(i, row), counts[1] / max(1.0, counts[0])
            for j, more in enumerate((1.0, value, error**2, (value - mean) ** 2)):
                counts[j] += more
            self._weights[i] += (scale * error) * step
        self._inverse -= (scale * step)[:, None] * step

    def state(self) -> list[list[float]]:
        """Plain data, from which `restore` makes the same."""
        parts = self._inverse, self._weights, np.array(self._counts), np.array(self._largest)
        return [one.ravel().tolist() for one in parts]

    def restore(self, saved: Sequence[Sequence[float]]) -> None:
        """Take back what `state` gave."""
        shapes = (self.SIZE, self.SIZE), (len(self.metrics), self.SIZE), (len(self.metrics), 4), (self.SIZE,)
        parts = [np.array(one, dtype=np.float64).reshape(shape) for one, shape in zip(saved, shapes, strict=True)]
        self._inverse[...], self._weights[...] = parts[:2]
        self._counts, self._largest = parts[2].tolist(), parts[3].tolist()

    def _row(self, context: Any, *, is_new: bool = False) -> Row | None:
        """A context as numbers from -1 to 1, the first of them 1; None where it holds nothing to predict from."""
        row = {0: 1.0}
        if isinstance(context, Mapping):
            named = [(str(name), value) for name, value in islice(context.items(), self.MOST_FIELDS)]
        elif isinstance(context, (Sequence, np.ndarray)) and not isinstance(context, (str, bytes)):
            named = [(str(at), value) for at, value in enumerate(context[: self.MOST_FIELDS])]
        else:
            named = [] if context is None else [("", context)]
        for name, value in named:
            is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
            # Who it is tells nothing of others, and nobody should be learned by heart.
            if name == PERSON or not (isinstance(value, (str, bool)) or (is_number and abs(value) <= LARGEST)):
                continue
            # Names beyond the size share places, which a sign of their own lets cancel out in the mean.
            hashed = zlib.crc32((name if is_number else f"{name}={value}").encode(errors="replace"))
            place, number = 1 + hashed % (self.SIZE - 1), float(value) if is_number else 1.0
            if is_new:
                self._largest[place] = max(self._largest[place], abs(number))
            signed = (1.0 - 2.0 * (hashed >> 31)) * min(max(number / self._largest[place], -1.0), 1.0)
            row[place] = row.get(place, 0.0) + signed
        return row if len(row) > 1 else None
