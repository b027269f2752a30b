"""The numbers of a replay as text: the same cells on the page and in the terminal."""

import math
from collections.abc import Sequence

from surefoot.replay.intervals import Estimate
from surefoot.replay.replay_outcome import ReplayOutcome

HEADS = (
    "Policy",
    "Rounds",
    "Learner",
    "Free from round",
    "Below the floor",
    "Least earned / owed",
    "Mean reward",
    "Gain",
)


def table_rows(outcomes: Sequence[ReplayOutcome]) -> list[tuple[str, ...]]:
    """The main table, under `HEADS`."""
    return [
        (
            outcome.spec.label,
            f"{outcome.rounds:,}",
            f"{outcome.learner_share:.0%}" if outcome.rounds else "–",
            "not yet" if outcome.free_from is None else f"{outcome.free_from:,}",
            below(outcome),
            f"{outcome.worst_share:.1%}" if math.isfinite(outcome.worst_share) else "–",
            shown(outcome.main["reward"]),
            shown(outcome.main["gain"], signed=True),
        )
        for outcome in outcomes
    ]


def below(outcome: ReplayOutcome) -> str:
    """Rounds below the floor; for a policy without one, by each alpha that was watched."""
    if outcome.spec.alpha is not None:
        return f"{outcome.below[outcome.spec.alpha]:,}"
    return ", ".join(f"{number:,} (α = {alpha:g})" for alpha, number in outcome.below.items()) or "–"


def shown(estimate: Estimate, *, signed: bool = False) -> str:
    """A number with its interval."""
    if not math.isfinite(estimate.value):
        return "–"
    sign = "+" if signed else ""
    return f"{estimate.value:{sign}.4f} [{estimate.low:{sign}.4f}, {estimate.high:{sign}.4f}]"
