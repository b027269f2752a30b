"""Where a guard stands: its share, who limits it, what is in the banks, and what both sides have earned."""

import math
from dataclasses import dataclass

from surefoot.experiment.counts import GuardCounts
from surefoot.policies import Guard
from surefoot.safety.guard_certificate import certified
from surefoot.safety.metric import Promise


@dataclass(frozen=True, slots=True)
class GuardStatus:
    """Where a guard stands after the newest event; maps go by metric.

    Attributes
    ----------
    promise : {"mean", "played"}
        What the floor is kept by.
    share : float
        The probability with which the next proposal would be played, were the baseline not held.
    allowed : float
        The largest share that is proved to be safe.
    binds : str
        The metric that allows least.
    banks : dict
        What may be spent, in the metric's own units; rounds without a reward count at their worst.
    learner_means, baseline_means : dict
        Means of the rewards that were booked for each side in rounds in which the proposal had a share, defaults
        included and a unit counted once; nan before the first.
    lifts : dict
        By which share the learner's mean lies above the baseline's. Where shares and rewards change over time, that is
        misled: whether it pays is said by the intervals.
    lift_intervals : dict of (low, high)
        How much more a proposal earned than the baseline would have, on average, in the metric's own units: 95% at all
        times at once, over the rounds in which it had a share.
    visits, open_units : int
        Visits of units after their first, and units whose window is open.

    Examples
    --------
    >>> import surefoot
    >>> guard = surefoot.Guard(alpha=0.1, delta=0.05)
    >>> models = surefoot.Experiment.create(surefoot.open_journal("memory:"), "models", guard)
    >>> models.status().guard.binds
    'reward'
    """

    promise: Promise
    share: float
    allowed: float
    binds: str
    banks: dict[str, float]
    learner_means: dict[str, float]
    baseline_means: dict[str, float]
    lifts: dict[str, float]
    lift_intervals: dict[str, tuple[float, float]]
    visits: int
    open_units: int


def guard_status(guard: Guard, tally: GuardCounts) -> GuardStatus:
    """The status of a guard."""
    names = tuple(guard.metrics)
    gate = certified(names, guard.step_settings.metrics, guard._books.snapshot, 0.0, False)
    learner, baseline = (guard.booked.means(is_learner=is_learner) for is_learner in (True, False))
    return GuardStatus(
        promise=guard.settings["promise"],
        share=guard.share,
        allowed=gate.allowed,
        binds=gate.binds,
        banks=guard.banks,
        learner_means=learner,
        baseline_means=baseline,
        lifts={name: _lift(learner[name], baseline[name]) for name in names},
        lift_intervals=guard.lift_intervals,
        visits=tally.visits,
        open_units=len(guard.units),
    )


def _lift(learner: float, baseline: float) -> float:
    """By which share one mean lies above the other; nan where that is not known."""
    return learner / baseline - 1.0 if baseline > 0.0 else math.nan
