"""What one policy did on a log: counts, curves along the rounds, and estimates with intervals."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.replay.diagnostics import Doubt
from surefoot.replay.intervals import Estimate
from surefoot.replay.replayed_policy import LEARNER
from surefoot.simulation.policy_specs import Spec

SLACK = 1e-12  # relative rounding of the sums that the floor is judged by
CHECKPOINTS = np.unique(np.round(np.geomspace(1, 1e12, 720)).astype(np.int64))  # 60 in every power of ten
CURVES = ("round", "earned", "owed", "learner_share", "margin")


@dataclass(frozen=True, slots=True, eq=False)
class ReplayOutcome:
    """One policy. `below` counts, for each watched alpha, the rounds in which less than the floor had been earned.

    Earned and owed agree by definition where the baseline was played. `free_from` is the round after the last baseline
    round, or None where the baseline still plays in the last fifth. `alarm` is the round in which data contradicted
    what was declared, and the line of the log: from there on a policy with a floor plays the baseline. `doubts` are
    about what the estimates rest on, and `actions` has what each action earned over all contexts.
    """

    spec: Spec
    evaluator: str
    rows: int
    rounds: int
    learner_rounds: int
    free_from: int | None
    worst_share: float
    below: Mapping[float, int]
    estimates: Mapping[str, Mapping[str, Estimate]]
    curves: Mapping[str, Vector] = field(repr=False)
    alarm: tuple[int, int] | None = None
    doubts: tuple[Doubt, ...] = ()
    actions: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def main(self) -> Mapping[str, Estimate]:
        """The estimates to look at first: reward, baseline, gain."""
        return next(iter(self.estimates.values()))

    @property
    def learner_share(self) -> float:
        """Share of the rounds that the learner played."""
        return self.learner_rounds / self.rounds if self.rounds else math.nan

    def as_dict(self) -> dict[str, Any]:
        """Plain numbers for JSON."""
        return {
            "policy": self.spec.name if self.spec.is_own else self.spec.policy,
            "label": self.spec.label,
            "alpha": self.spec.alpha,
            "exploration": self.spec.exploration,
            "evaluator": self.evaluator,
            "rows": self.rows,
            "rounds": self.rounds,
            "learner_rounds": self.learner_rounds,
            "free_from": self.free_from,
            "alarm": None if self.alarm is None else {"round": self.alarm[0], "line": self.alarm[1]},
            "worst_share": self.worst_share if math.isfinite(self.worst_share) else None,
            "below_floor": [{"alpha": alpha, "rounds": number} for alpha, number in self.below.items()],
            "estimates": {
                name: {what: estimate.as_dict() for what, estimate in found.items()}
                for name, found in self.estimates.items()
            },
            "curves": {name: _plain(values) for name, values in self.curves.items()},
        }


class OutcomeCounter:
    """Counts along the counted rounds of one policy; curves are kept at checkpoints, whatever the log's length."""

    def __init__(self, watched: Sequence[float]) -> None:
        self.rounds = self.learner_rounds = self.last_baseline = 0
        self.worst_share, self.below = math.inf, dict.fromkeys(watched, 0)
        self._earned = self._owed = 0.0
        self._alarm: tuple[int, int] | None = None
        self._kept: list[Vector] = []

    def add(
        self, earned: Vector, owed: Vector, fates: np.ndarray[Any, Any], margins: Vector, lines: np.ndarray[Any, Any]
    ) -> None:
        """Take in counted rounds, in order."""
        if earned.size == 0:
            return
        got, due = self._earned + np.cumsum(earned), self._owed + np.cumsum(owed)
        round_ = self.rounds + np.arange(1, earned.size + 1)
        learner = self.learner_rounds + np.cumsum(fates == LEARNER)
        for alpha in self.below:
            floor = (1 - alpha) * due
            # Relative to |due|: doubly robust terms may add up to a negative sum.
            self.below[alpha] += int((got < floor - SLACK * np.abs(due)).sum())
        positive = due > 0
        if positive.any():
            self.worst_share = min(self.worst_share, float((got[positive] / due[positive]).min()))
        baseline_rounds = round_[fates != LEARNER]
        if baseline_rounds.size:
            self.last_baseline = int(baseline_rounds[-1])
        first, last = np.searchsorted(CHECKPOINTS, (self.rounds, int(round_[-1])), side="right")
        keep = np.unique(np.append(CHECKPOINTS[first:last] - self.rounds - 1, earned.size - 1))
        self._keep(np.stack([values[keep] for values in (round_, got, due, learner / round_, margins)]))
        # Anything follows from a contradiction, and so nothing is guaranteed any more.
        refuted = np.flatnonzero(np.isneginf(margins))
        if self._alarm is None and refuted.size:
            self._alarm = int(round_[refuted[0]]), int(lines[refuted[0]])
        self.rounds, self.learner_rounds = int(round_[-1]), int(learner[-1])
        self._earned, self._owed = float(got[-1]), float(due[-1])

    def _keep(self, columns: Vector) -> None:
        # The last round of the batch before was kept in case it was the last of all.
        if self._kept and int(self._kept[-1][0, -1]) not in CHECKPOINTS:
            self._kept[-1] = self._kept[-1][:, :-1]
        self._kept.append(columns)

    def outcome(
        self, spec: Spec, evaluator: str, rows: int, estimates: Mapping[str, Mapping[str, Estimate]]
    ) -> ReplayOutcome:
        """Everything together."""
        kept = np.hstack(self._kept) if self._kept else np.zeros((len(CURVES), 0))
        is_free = self.last_baseline < 0.8 * self.rounds
        return ReplayOutcome(
            spec,
            evaluator,
            rows,
            self.rounds,
            self.learner_rounds,
            self.last_baseline + 1 if is_free else None,
            self.worst_share,
            dict(self.below),
            estimates,
            dict(zip(CURVES, kept, strict=True)),
            self._alarm if spec.alpha is not None else None,
        )


def _plain(values: Vector) -> list[float | None]:
    return [float(value) if math.isfinite(value) else None for value in values]
