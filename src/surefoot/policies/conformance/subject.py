"""The policy that is checked, what is declared to it, and what every check begins with."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from surefoot.linear.actions import Catalogue
from surefoot.policies.conformance.trial_world import TrialWorld
from surefoot.policies.decision import Decision
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.policy import Policy


@dataclass(frozen=True)
class Subject:
    """A policy to be checked.

    Parameters
    ----------
    make : callable
        A function from a `TrialWorld` to a new policy with the settings of that world.
    declare : callable, optional
        What `decide` is given as `baseline_reward`, as a function of the baseline's true mean; by default nothing.
    most_rounds : int
        No check plays more rounds than this.
    plays_rows : bool
        Whether a decision's features are the row that was played; plain arms have others.
    proves : {"margin", "guaranteed"}
        What the proof of a certificate bounds, where it claims anything.
    may_stay : bool
        Whether the learner may be refused throughout so few rounds.

    Examples
    --------
    >>> import surefoot
    >>> subject = Subject(lambda world: surefoot.UCB(arms=world.actions), plays_rows=False)
    >>> type(subject.make(subject.world(1))).__name__
    'UCB'
    """

    make: Callable[[TrialWorld], Any]
    declare: Callable[[float], Any] | None = None
    most_rounds: int = 1_000
    plays_rows: bool = True
    proves: Literal["margin", "guaranteed"] = "margin"
    may_stay: bool = False

    def world(self, seed: int, *, changing: bool = True) -> TrialWorld:
        """A small world.

        Parameters
        ----------
        seed : int
            Of everything random in it.
        changing : bool
            Whether every round has new feature rows.

        Returns
        -------
        TrialWorld
            Three features, five actions, little noise.
        """
        return TrialWorld(np.random.default_rng(seed), 3, 5, 0.05, changing=changing, moving=False)

    def rounds(self, most: int) -> int:
        """How many rounds a check plays.

        Parameters
        ----------
        most : int
            What the check would like.

        Returns
        -------
        int
            At most `most_rounds`.
        """
        return min(most, self.most_rounds)

    def baseline_reward(self, mean: float) -> Any:
        """What is declared of the baseline.

        Parameters
        ----------
        mean : float
            Its true mean reward.

        Returns
        -------
        float or (low, high) or None
            What `declare` makes of it.
        """
        return None if self.declare is None else self.declare(mean)

    def decide(self, policy: Policy, world: TrialWorld) -> tuple[Decision, float]:
        """Let the policy decide the next round; a catalogue where rows stay the same and it knows what that is.

        Parameters
        ----------
        policy : Policy
            What `make` returned.
        world : TrialWorld
            Where it plays.

        Returns
        -------
        tuple of Decision and float
            The decision and the mean reward of its action.
        """
        rows, baseline, means = world.round()
        takes_catalogue = not world.changing and isinstance(policy, LinearPolicy)
        offered: Any = Catalogue(rows) if takes_catalogue else rows
        decision = policy.decide(
            offered, baseline=baseline, baseline_reward=self.baseline_reward(float(means[baseline]))
        )
        return decision, float(means[decision.action])


CHECKS: list[Callable[[Subject], None]] = []


def check(rule: Callable[[Subject], None]) -> Callable[[Subject], None]:
    """Add a rule to `CHECKS`."""
    CHECKS.append(rule)
    return rule


def check_policy(make: Callable[[TrialWorld], Any], **facts: Any) -> None:
    """Hold a policy to every rule of the contract.

    Parameters
    ----------
    make : callable
        A function from a `TrialWorld` to a new policy.
    facts
        Whatever else a `Subject` says of it.

    Raises
    ------
    AssertionError
        If a rule is broken; the traceback names it.

    Examples
    --------
    >>> import surefoot
    >>> check_policy(lambda world: surefoot.UCB(arms=world.actions), plays_rows=False)
    """
    for rule in CHECKS:
        rule(Subject(make, **facts))


def trace(decision: Decision) -> tuple[Any, ...]:
    """All that a decision says, but for its proof."""
    c = decision.certificate
    coin = decision.probability, str(decision.draw)
    return decision.round, decision.action, decision.source, c.guaranteed, c.required, c.proposal, c.optimism, *coin


def same(a: Any, b: Any) -> bool:
    """Whether two states are the same to the bit."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    return np.asarray(a).dtype == np.asarray(b).dtype and np.array_equal(a, b)
