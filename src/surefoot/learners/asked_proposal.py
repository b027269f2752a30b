"""What a learner answers, checked, and the honest probability of what is then played."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from surefoot.errors import InputError
from surefoot.learners.learner import Learner, Proposal
from surefoot.learners.offered_actions import position_of

Odds: TypeAlias = Sequence[float] | None

WHAT = "The learner's proposal"


def asked(learner: Learner, context: Any, offered: list[Any]) -> tuple[int, Odds]:
    """The place of the proposal among the actions, and the probabilities it was drawn with; None if it was certain."""
    # Learners get copies of the list: one that sorts it must not move the places of the actions.
    sample = getattr(learner, "sample", None)
    if sample is None:
        return position_of(offered, learner.propose(context, list(offered)), what=WHAT), None
    drawn = sample(context, list(offered))
    if not isinstance(drawn, Proposal) or len(drawn.probabilities) != len(offered):
        raise InputError(f"`sample` must return a Proposal with {len(offered)} probabilities, but got {drawn!r:.80}.")
    place = position_of(offered, drawn.action, what=WHAT)
    # Some room for learners that compute in single precision.
    if not 0.0 < drawn.probabilities[place] <= 1.0 + 1e-6:
        raise InputError(f"{WHAT} must have a probability in (0, 1], but got {drawn!r:.80}.")
    return place, drawn.probabilities


def propensity(odds: Sequence[float], played: int, today: int, share: float) -> float:
    """Probability of the action played, over the learner's draw and the coin that lets its proposal in.

    p(action) = share q(action) + (1 - share) [action is the baseline's]

    The share depends on the past alone, so it is the same whatever the learner draws.

    >>> round(propensity([0.5, 0.3, 0.2], 1, 0, share=0.1), 6), round(propensity([0.5, 0.3, 0.2], 0, 0, share=0.1), 6)
    (0.03, 0.95)
    """
    return min(1.0, share * float(odds[played]) + (1.0 - share if played == today else 0.0))
