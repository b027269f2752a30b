"""Certificates: what was guaranteed, what was required, and the proof, for one decision."""

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from surefoot.safety.proof import Proof
from surefoot.values import Value

CONDITION = "true with probability 1 - delta if what was declared is true"


class Certificate(Value, frozen=True):
    """The evidence on which the learner's proposal was allowed or refused.

    Attributes
    ----------
    guaranteed : float
        What has been earned at least if the proposal is played, with probability 1 - delta and if what was declared is
        true; -inf while the alarm is on.
    required : float
        What must be earned at least; -inf for a policy without a floor.
    proposal : int
        Row of the optimistic action; -1 if the action set has no rows.
    optimism : float
        Its upper confidence bound.
    method : str
        How the optimistic action was searched for.
    gap : float
        By how much another action might have a larger bound.
    is_held : bool
        Whether the baseline was to be played whatever the verdict.
    is_held_out : bool
        Whether the learner was allowed, and the coin of a holdout let the baseline play.

    Examples
    --------
    >>> import surefoot
    >>> policy = surefoot.ConservativeUCB(arms=3, alpha=0.1, delta=0.01, baseline_reward=0.5)
    >>> print(policy.decide(baseline=0).certificate.explain())
    Played the baseline: playing action 1 could have left us 0.45 below the floor.
    """

    guaranteed: float
    required: float
    proposal: int
    optimism: float
    _evidence: Callable[[], Proof]  # a proof is made only if somebody reads it
    method: str = "rows"
    gap: float = 0.0
    is_held: bool = False
    is_held_out: bool = False

    @property
    def margin(self) -> float:
        """guaranteed - required: at least 0 exactly if the learner was allowed; inf if nothing is required."""
        return math.inf if self.required == -math.inf else self.guaranteed - self.required

    @property
    def is_safe(self) -> bool:
        """Whether the proposal was allowed."""
        return self.guaranteed >= self.required

    @property
    def proof(self) -> Proof:
        """The split over facts behind the margin; `surefoot.check` verifies it without a solver."""
        return self._evidence()

    def explain(self) -> str:
        """The reason for the decision, in one sentence; `proof.reason()` says which facts it rests on."""
        return explain_gate(
            self.guaranteed, self.required, self.proposal, self.optimism, is_held=self.is_held,
            is_held_out=self.is_held_out,
        )  # fmt: skip


def explain_gate(
    guaranteed: float,
    required: float,
    proposal: int,
    optimism: float,
    *,
    is_held: bool,
    is_held_out: bool,
    name: str | None = None,
) -> str:
    """The reason for a decision of a linear policy, in one sentence; `name` is the caller's name of the proposal."""
    action = name or (f"action {proposal}" if proposal >= 0 else "the optimistic action")
    margin = guaranteed - required
    if is_held and guaranteed == -math.inf < required:
        return "Played the baseline, as asked: the alarm is on, so nothing else would have been allowed."
    if is_held and required > -math.inf:
        verdict = "would have been allowed" if guaranteed >= required else "would not have been allowed"
        return f"Played the baseline, as asked: {action} {verdict}, with a margin of {margin:.4g}."
    if is_held:
        return f"Played the baseline, as asked: {action} promises the most ({optimism:.4g} at best)."
    if required == -math.inf:
        return f"Played the learner: {action} promises the most ({optimism:.4g} at best), and no floor is kept."
    if is_held_out:
        return f"Played the baseline, by the holdout coin: {action} was allowed, with a margin of {margin:.4g}."
    if guaranteed == -math.inf:
        return "Played the baseline: the alarm is on, because the data contradict the declarations."
    if guaranteed >= required:
        return f"Played the learner: {action} leaves us at least {margin:.4g} above the floor; {CONDITION}."
    return f"Played the baseline: playing {action} could have left us {-margin:.4g} below the floor."


def unproved(dim: int, proposal: int, is_held: bool) -> Certificate:
    """The certificate of a policy that keeps no floor: it claims nothing, and nothing is required."""
    claim = partial(Proof, np.zeros(dim), (), -math.inf)
    return Certificate(-math.inf, -math.inf, proposal, math.inf, claim, is_held=is_held)
