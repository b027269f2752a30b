"""A guard in a replay: LUCB proposes, and a guard that assumes no model decides how often it may act."""

import copy
from dataclasses import dataclass
from typing import Any

from surefoot.arrays import Matrix
from surefoot.policies import LUCB, Guard
from surefoot.policies.guard_decision import GuardDecision
from surefoot.simulation.policy_specs import Problem, Spec

GUARD = "Guard"
EXPLORATION = 1.0  # of the learner under a guard


@dataclass(frozen=True, slots=True)
class GuardedChoice:
    """The row that is played, who chose it, and the guard's own decision."""

    action: int
    source: str
    features: Matrix
    decision: GuardDecision


class GuardedLUCB:
    """Decides as a linear policy does, over rows; the promise is the guard's, and holds whatever rewards are."""

    def __init__(self, learner: LUCB, guard: Guard) -> None:
        self._learner, self._guard = learner, guard

    def __deepcopy__(self, memo: dict[int, Any]) -> "GuardedLUCB":
        # The learner knows no more after a decision than before it; only rewards teach it.
        return GuardedLUCB(self._learner, copy.deepcopy(self._guard, memo))

    def decide(self, rows: Matrix, *, baseline: int, baseline_reward: float | None = None) -> GuardedChoice:
        """Ask the learner for a row, and the guard which of the two to play."""
        wished = self._learner.decide(rows)
        self._learner.abandon(wished)
        decision = self._guard.decide(baseline=baseline, proposal=wished.action)
        # Where both would play the same there is no coin, and the learner has what it wished for.
        is_learner = decision.source == "learner" or wished.action == baseline
        row = int(wished.action if is_learner else baseline)
        return GuardedChoice(row, "learner" if is_learner else "baseline", rows[row], decision)

    def observe(self, choice: GuardedChoice, reward: float) -> None:
        """The reward of what was played teaches both."""
        self._guard.observe(choice.decision, reward)
        self._learner.learn_logged(choice.features, reward)


def guarded(
    alpha: float, *, delta: float, ridge: float, reward_bounds: tuple[float, float], exploration: float = EXPLORATION
) -> Spec:
    """LUCB under a guard, for `replay` by rejection or on a full table.

    Parameters
    ----------
    alpha : float
        Share of the baseline's reward that may be at risk.
    delta : float
        Probability that the promise fails.
    ridge : float
        Regulariser of the learner.
    reward_bounds : (low, high)
        Range that no reward leaves; the lower end must not be negative.
    exploration : float
        The learner's, as in `Spec`, times the largest reward. The promise does not rest on it, so that it need not hold
        at all times.

    Returns
    -------
    Spec
        For `replay` and `simulate`.

    Examples
    --------
    >>> guarded(0.1, delta=0.01, ridge=1.0, reward_bounds=(0.0, 1.0)).label
    'Guard, α = 0.1'
    """
    # In units of the largest reward: an action that was never tried must promise as much.
    learner = Spec("LUCB", delta=delta, ridge=ridge, exploration=exploration * reward_bounds[1])

    def make(problem: Problem) -> GuardedLUCB:
        told: dict[str, Any] = dict(learner.settings_in(problem))
        guard = Guard(alpha=alpha, delta=delta, reward_bounds=reward_bounds, seed=problem.seed)
        return GuardedLUCB(LUCB(dim=problem.dim, **told), guard)

    return Spec(make, name=GUARD, alpha=alpha)
