"""What the API answers of the lift: an interval that holds at all times at once, and an estimate where there is one."""

import msgspec

from surefoot.experiment import Lift
from surefoot.safety.metric import MetricKind
from surefoot.service.numbers import finite


class LiftStanding(msgspec.Struct, frozen=True):
    """How much more a decision of the learner earned, on average, than the baseline would have, in the reward's unit.

    Of a guard: proposal less baseline, per proposal, played or not, over the rounds in which it had a share.

    metric:      of a guard, its first floor
    estimate:    null for a guard: the difference of both sides' means would be misled where shares and rewards change
                 over time, and can lie outside of the interval, which is not
    low, high:   hold at all times at once with probability `confidence`, if what was declared is true
    decisions:   the learner's so far, without those before a restart
    kind:        of a ceiling, such as costs, less is better
    """

    metric: str
    estimate: float | None
    low: float
    high: float
    decisions: int
    confidence: float
    kind: MetricKind = "floor"


def lift_standing(lift: Lift | None) -> LiftStanding | None:
    """A lift as the API tells it; null where there is none."""
    if lift is None:
        return None
    return LiftStanding(
        lift.metric, finite(lift.estimate), lift.low, lift.high, lift.decisions, lift.confidence, lift.kind
    )
