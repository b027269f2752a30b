"""Units that carry a reward over several visits: one coin, one round, and the sum of what came within the window."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from surefoot.errors import InputError, StateError
from surefoot.values import Value

LONGEST_UNIT = 200


class OpenUnit(Value, frozen=True):
    """A unit whose coin has fallen: its round, its side, the share of that moment, and when it closes."""

    round: int
    is_learner: bool
    share: float
    draw: float
    closes: int


class Units:
    """The open units of a guard, in the order in which they close.

    window: rounds for which a unit keeps its side and its rewards are added up; None where units are not used
    """

    def __init__(self, window: int | None, metrics: int) -> None:
        self.window, self._metrics = window, metrics
        self._open: dict[str, OpenUnit] = {}
        self._names: dict[int, str] = {}
        self._sums: dict[int, tuple[float, ...]] = {}

    def __len__(self) -> int:
        return len(self._open)

    def find(self, unit: Any) -> OpenUnit | None:
        """An open unit by its name."""
        if self.window is None:
            raise InputError(
                f"`unit` needs a guard with `unit_window`, but got unit={unit!r:.80}. "
                "unit_window is the number of rounds for which a unit keeps its side."
            )
        if not isinstance(unit, str) or not 0 < len(unit) <= LONGEST_UNIT:
            raise InputError(f"`unit` must be a text of 1 to {LONGEST_UNIT} characters, but got {unit!r:.80}.")
        return self._open.get(unit)

    def opened(self, unit: str, round_: int, is_learner: bool, share: float, draw: float) -> None:
        """Keep the side of a unit."""
        assert self.window is not None
        self._open[unit] = OpenUnit(round_, is_learner, share, draw, round_ + self.window)
        self._names[round_] = unit
        self._sums[round_] = (0.0,) * self._metrics

    def holds(self, round_: int) -> bool:
        """Whether the round belongs to an open unit."""
        return round_ in self._sums

    def add(self, round_: int, reward: tuple[float, ...]) -> None:
        """Add a reward, in units of the highest one, which the sum does not exceed; NaN is missing, and stays so."""
        before = self._sums[round_]
        self._sums[round_] = tuple(
            math.nan if math.isnan(total + one) else min(total + one, 1.0)
            for total, one in zip(before, reward, strict=True)
        )

    def close(self, round_: int) -> tuple[float, ...]:
        """Close the unit of a round; returns what it has earned."""
        del self._open[self._names.pop(round_)]
        return self._sums.pop(round_)

    def due(self, rounds: int) -> list[int]:
        """The rounds whose window has passed once so many rounds are decided, oldest first."""
        closed = []
        for unit in self._open.values():
            # There is one window for all, so they close in the order in which they were opened.
            if unit.closes > rounds:
                break
            closed.append(unit.round)
        return closed

    def state(self) -> dict[str, Any]:
        """Plain data from which `restore` makes the same."""
        units = list(self._open.values())
        return {
            "unit_names": list(self._open),
            "unit_rounds": np.array([unit.round for unit in units], dtype=np.int64),
            "unit_sides": np.array([unit.is_learner for unit in units], dtype=np.bool_),
            "unit_shares": np.array([unit.share for unit in units], dtype=np.float64),
            "unit_draws": np.array([unit.draw for unit in units], dtype=np.float64),
            "unit_sums": np.array([self._sums[unit.round] for unit in units], dtype=np.float64),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` gave."""
        columns = ("unit_names", "unit_rounds", "unit_sides", "unit_shares", "unit_draws", "unit_sums")
        for name, round_, side, share, draw, sums in zip(*(state[column] for column in columns), strict=True):
            if np.shape(sums) != (self._metrics,) or not (np.isnan(sums) | ((sums >= 0.0) & (sums <= 1.0))).all():
                raise StateError(f"A unit must have earned from 0 to 1 of each metric, but {name!r} has {sums}.")
            self.opened(str(name), int(round_), bool(side), float(share), float(draw))
            self._sums[int(round_)] = tuple(float(one) for one in sums)
