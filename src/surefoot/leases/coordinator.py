"""The coordinator of shards: one proof over all rounds handed in, leases within it, and one order of learning."""

import math
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from typing import Any, Self

import numpy as np

from surefoot.arrays import finite
from surefoot.errors import InputError, ProofError
from surefoot.leases.hand_in_checks import check_sums, check_values
from surefoot.leases.lease import HandIn, Lease, check_leasable, frozen, plain_round, read_round
from surefoot.leases.merged_policy import MergedPolicy
from surefoot.leases.merging import Member
from surefoot.linear.ellipsoid import EPS, Ball
from surefoot.policies import SafeLUCB
from surefoot.policies.linear_policy import CONTRADICTION
from surefoot.safety.constraints import read_constraint
from surefoot.safety.facts import Linear
from surefoot.safety.proof import Proof, assemble
from surefoot.safety.prove import prove

AT_MOST = 0.8  # of the pot, in equal shares by pace; the rest is for whoever joins
CUSHION = 1e-9  # of B D: kept back from every lease, for what later sums round away


class Coordinator(MergedPolicy[SafeLUCB, HandIn]):
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
        """Everything the coordinator knows, as plain data and arrays.

        Returns
        -------
        dict
            For `from_state`, which goes on to the bit.
        """
        return {
            "policy": self.policy.state(),
            "skew": self.members.skew,
            "watermark": self.watermark,
            "members": {name: _plain(member) for name, member in self.members.all.items()},
            "rounds": [[*key, round_] for key, round_ in self._rounds.items()],
            "early": [[*key, reward] for key, reward in self._early.items()],
            "handed_in": [str(entry) for entry in self._handed_in],
            "carried": [self._carried.normal, self._carried.level],
            "spent": self._spent,
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> Self:
        """A coordinator that goes on where another one was saved.

        Parameters
        ----------
        state : mapping
            What `state` returned.

        Returns
        -------
        Coordinator
            The coordinator; its `proof` is what it carried, until the next hand-in.
        """
        policy = SafeLUCB.from_state(state["policy"])
        found = cls(SafeLUCB(**policy.settings), skew=state["skew"])
        found.policy, found.members.watermark = policy, state["watermark"]
        found.members.all = {
            name: Member(**{**told, "waiting": [read_round(made) for made in told["waiting"]]})
            for name, told in state["members"].items()
        }
        found._rounds = {(shard, number): round_ for shard, number, round_ in state["rounds"]}
        found._early = {(shard, number): reward for shard, number, reward in state["early"]}
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

    def join(self, shard: str, *, now: float) -> Lease:
        """Let a shard in, with a first lease.

        Parameters
        ----------
        shard : str
            A name that no shard has had.
        now : float
            The coordinator's clock, in seconds.

        Returns
        -------
        Lease
            Its first lease.

        Raises
        ------
        InputError
            If the name is taken.
        """
        self.admit(shard, now=now)
        return self.grant(shard)

    def take(self, given: HandIn, *, now: float, sent: float | None = None) -> Lease:
        """Take in what a shard did, and lease to it anew.

        Parameters
        ----------
        given : HandIn
            What `Shard.hand_in` returned.
        now : float
            The coordinator's clock, in seconds.
        sent : float, optional
            The shard's clock now, where it handed in before and says it again.

        Returns
        -------
        Lease
            The shard's next lease.

        Raises
        ------
        InputError
            If it was handed in before, or cannot be true; an AssumptionError if the clocks disagree.
        """
        self.check(given, now=now, sent=sent)
        self.receive(given)
        return self.grant(given.shard)

    def leave(self, given: HandIn, *, now: float, sent: float | None = None) -> None:
        """Take in what a shard did last; it has no lease any more, and holds nothing back.

        Parameters
        ----------
        given, now, sent
            As in `take`.
        """
        self.check(given, now=now, sent=sent)
        self.receive(given, leaves=True)

    def check(self, given: HandIn, *, now: float, sent: float | None = None) -> None:
        """Raise unless a hand-in can be taken in; nothing is changed.

        Parameters
        ----------
        given, now, sent
            As in `take`.

        Raises
        ------
        InputError
            If it was handed in before, or cannot be true; an AssumptionError if the clocks disagree.
        """
        check_values(given, self.policy.dim)
        member = self.members.check(
            given,
            finite("now", now, hint="It is the coordinator's clock."),
            given.through if sent is None else finite("sent", sent, hint="It is the shard's clock."),
        )
        check_sums(given, self.policy, member.amount)
        if any(number > member.rounds + len(given.rounds) for number, _ in given.rewards):
            raise InputError(f"Rewards must be of rounds that were handed in, but some of {given.shard!r} are not.")

    def receive(self, given: HandIn, *, leaves: bool = False) -> None:
        """Take in what a shard did, which was checked; its lease is over.

        Parameters
        ----------
        given : HandIn
            What it did.
        leaves : bool
            Whether it leaves.
        """
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

    def grant(self, shard: str) -> Lease:
        """Lease to a shard that has none.

        Parameters
        ----------
        shard : str
            Its name.

        Returns
        -------
        Lease
            An amount within what is left of the pot, and the set as it stands.

        Raises
        ------
        InputError
            If its last lease was not handed in.
        """
        member = self.members.find(shard)
        if member.is_leased:
            raise InputError(f"Lease {member.lease} of shard {shard!r} must be handed in before it is leased to again.")
        amount = self._amount(member)
        self.granted(shard, amount)
        return Lease(
            shard, member.lease, amount, member.through, self.watermark, member.merged, frozen(self.policy, amount)
        )

    def granted(self, shard: str, amount: float) -> None:
        """Count a lease that was granted.

        Parameters
        ----------
        shard : str
            Whose it is.
        amount : float
            How much.
        """
        member = self.members.find(shard)
        member.lease += 1
        member.amount, member.is_away, member.is_leased = amount, False, True

    def _amount(self, member: Member) -> float:
        """Its share of the pot by its pace, or what one round of the learner can cost if that is more."""
        settings = self.policy.core.settings
        free = self.pot - self.leased - CUSHION * settings.theta_bound * settings.feature_bound
        if self.policy.alarm is not None or free <= 0:
            return 0.0
        present = [other.pace for other in self.members.all.values() if not other.is_away]
        share = AT_MOST * self.pot * member.pace / math.fsum(present)
        # A pot that is cut into pieces too small for one round would be of no use to anybody.
        return float(min(free, max(share, self.policy.worst_of_round)))

    @property
    def _reserve(self) -> float:
        amount: float = read_constraint(self.policy.settings["constraint"]).amount
        return amount


def _plain(member: Member) -> dict[str, Any]:
    """The fields of a member, with its waiting rounds as lists."""
    return {one.name: getattr(member, one.name) for one in fields(member)} | {
        "waiting": [plain_round(made) for made in member.waiting]
    }
