"""The coordinator of shards: one proof over all rounds handed in, leases within it, and one order of learning."""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Self

import numpy as np

from surefoot.errors import InputError, ProofError
from surefoot.leases.base_coordinator import BaseCoordinator
from surefoot.leases.hand_in_checks import check_sums, check_values
from surefoot.leases.lease import HandIn, Lease, check_leasable, frozen, read_round
from surefoot.leases.merging import Member
from surefoot.linear.ellipsoid import EPS, Ball
from surefoot.policies import SafeLUCB
from surefoot.policies.linear_policy import CONTRADICTION
from surefoot.safety.constraints import read_constraint
from surefoot.safety.facts import Linear
from surefoot.safety.proof import Proof, assemble
from surefoot.safety.prove import prove

CUSHION = 1e-9  # of B D: kept back from every lease, for what later sums round away


class Coordinator(BaseCoordinator[SafeLUCB, HandIn, Lease, float]):
    """Shares one floor among shards that decide by themselves.

    It holds a proof that <theta, Q> >= G over all rounds handed in, and leases amounts that add up to G at most. Each
    shard keeps its own rounds above minus its lease, so all together stay above 0. What was learned is merged in the
    order of decisions over all shards (`surefoot.leases.merging`), by the policy itself.

    Parameters
    ----------
    policy : SafeLUCB
        A new policy; its constraint is "cumulative" or "reserve".
    skew : float
        Seconds by which the clocks of two shards may differ, less than the time between a decision and anything that
        its reward can influence; each may be half of it away from the coordinator's.

    Raises
    ------
    ConfigError
        If the policy's promise cannot be shared.

    Examples
    --------
    >>> import surefoot
    >>> told = {"noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
    >>> constraint = {"name": "reserve", "granted": 10.0}
    >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, constraint=constraint, **told)
    >>> coordinator = Coordinator(policy, skew=0.5)
    >>> [round(coordinator.join(shard, now=0.0).amount, 6) for shard in ("berlin", "tokyo")]
    [8.0, 2.0]
    >>> coordinator.leased <= coordinator.pot
    True
    """

    def __init__(self, policy: SafeLUCB, *, skew: float) -> None:
        check_leasable(policy)
        if policy.rounds:
            raise InputError(f"`policy` must be new, but this one has decided {policy.rounds} rounds.")
        super().__init__(policy, skew=skew)
        self._ball = Ball(policy.settings["theta_bound"])
        self._handed_in = [Fraction(0)] * policy.dim  # the question of all rounds handed in, exactly
        self._carried = Linear(np.zeros(policy.dim), 0.0, "earlier proof over all shards")
        self._proof = Proof(self._carried.normal, (), 0.0)
        self._spent = 0.0  # leases that will never be handed in

    def state(self) -> dict[str, Any]:
        """See `BaseCoordinator.state`."""
        return {
            **self._merged_state(),
            "handed_in": [str(entry) for entry in self._handed_in],
            "carried": [self._carried.normal, self._carried.level],
            "spent": self._spent,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """See `BaseCoordinator.from_state`; its `proof` is what it carried, until the next hand-in."""
        policy = SafeLUCB.from_state(state["policy"])
        found = cls(SafeLUCB(**policy.settings), skew=state["skew"])
        found._restore_merged(policy, state, read_round)
        found._handed_in = [Fraction(entry) for entry in state["handed_in"]]
        normal, level = state["carried"]
        found._carried = Linear(normal, level, found._carried.name)
        found._proof = assemble(found._carried.normal, [(found._carried, found._carried.normal)], found._ball)
        found._spent = state["spent"]
        return found

    @property
    def proved(self) -> float:
        """G: what <theta, Q> is at least over all rounds handed in."""
        return self._carried.level

    @property
    def proof(self) -> Proof:
        """Why, since the last hand-in; `surefoot.check` verifies it."""
        return self._proof

    @property
    def leased(self) -> float:
        """The sum of all leases that have not been handed in."""
        return math.fsum([self._spent, *(member.amount for member in self.members.all.values())])

    @property
    def pot(self) -> float:
        """What may be leased in all: G, and a reserve that was granted up front."""
        return self.proved + self._reserve

    def _check_values(self, given: HandIn) -> None:
        check_values(given, self.policy.dim)

    def _check_claims(self, given: HandIn, member: Member) -> None:
        check_sums(given, self.policy, member.amount)

    def receive(self, given: HandIn, *, leaves: bool = False) -> None:
        """See `BaseCoordinator.receive`: the certificate of the shard is one more fact about all rounds."""
        member = self.members.find(given.shard)
        if given.alarm is not None:
            self.policy.report_breach(given.alarm.kind, f"Shard {given.shard!r}: {given.alarm.text}")
        self._receive(given, leaves=leaves)
        if self.policy.alarm is None:
            self._prove(Linear(given.question, given.level, f"certificate of shard {given.shard}"))
            member.amount = 0.0
        else:  # nothing is proved any more, and the lease stays charged
            self._spent += member.amount
            member.amount = 0.0

    def _prove(self, given: Linear) -> None:
        """Carry the proof on to all rounds handed in: at least by this fact, at best by everything that is known."""
        whole = [before + Fraction(now) for before, now in zip(self._handed_in, given.normal.tolist(), strict=True)]
        question = np.array([float(entry) for entry in whole])
        found = assemble(question, [(self._carried, self._carried.normal), (given, given.normal)], self._ball)
        try:
            facts = [fact for fact in (self._carried, given) if fact.normal.any()]
            known = [self.policy.confidence_set, self._ball, *facts]
            found = max(found, prove(question, known), key=lambda proof: proof.value)
        except ProofError:
            self.policy.report_breach("contradiction", CONTRADICTION)
        rounded = self._ball.radius * EPS * float(np.linalg.norm(question))  # from whole to question
        self._handed_in, self._proof = whole, found
        self._carried = Linear(question, found.value - 2.0 * rounded, self._carried.name)

    def _charge(self, member: Member, amount: float) -> None:
        member.amount = amount

    def _lease(self, shard: str, member: Member, amount: float) -> Lease:
        state = frozen(self.policy, amount)
        return Lease(shard, member.lease, amount, member.through, self.watermark, member.merged, state)

    def _amount(self, member: Member) -> float:
        """Its share of the pot by its pace, or what one round of the learner can cost if that is more."""
        settings = self.policy.core.settings
        free = self.pot - self.leased - CUSHION * settings.theta_bound * settings.feature_bound
        if self.policy.alarm is not None or free <= 0:
            return 0.0
        # A pot that is cut into pieces too small for one round would be of no use to anybody.
        return float(min(free, max(self._part(member) * self.pot, self.policy.worst_of_round)))

    @property
    def _reserve(self) -> float:
        amount: float = read_constraint(self.policy.settings["constraint"]).amount
        return amount
