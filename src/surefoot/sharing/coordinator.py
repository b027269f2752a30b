"""The coordinator of shards: leases out of one pot, each handed in before the next, and one order of learning."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, Self

from surefoot.arrays import finite, nonnegative
from surefoot.errors import InputError
from surefoot.policies import Guard, SafeLUCB
from surefoot.policies.policy import Policy
from surefoot.rounds import number
from surefoot.rounds.events import Lease
from surefoot.sharing.merging import Member, Members
from surefoot.sharing.pots import Amounts, pot_of

LONGEST_SHARD = 200
PACE = 0.5  # weight of the newest lease in a shard's pace
AT_MOST = 0.8  # of the pot, in equal shares by pace; the rest is for whoever joins


class Coordinator:
    """Shares the promise of one policy among shards that decide by themselves.

    Leases add up to what is proved at most. Rounds that are handed in are merged in the order of decisions over all
    shards, up to the moment that every shard has reached, and learned by the policy itself. Nothing that is refused has
    changed anything.

    Parameters
    ----------
    policy : SafeLUCB or Guard
        A new policy. The constraint of SafeLUCB is "cumulative" or "reserve"; a guard promises the mean, without a
        seed, units or a window of rounds.
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
    >>> coordinator = Coordinator(surefoot.Guard(alpha=0.1, delta=0.05, reserve=10.0), skew=0.5)
    >>> [round(coordinator.join(shard, now=0.0)[0].amounts[0], 6) for shard in ("berlin", "tokyo")]
    [8.0, 2.0]
    """

    def __init__(self, policy: SafeLUCB | Guard, *, skew: float) -> None:
        nonnegative("skew", skew, hint="skew is in seconds.")
        self.pot = pot_of(policy)
        if policy.rounds:
            raise InputError(f"`policy` must be new, but this one has decided {policy.rounds} rounds.")
        self.members = Members(skew)
        self._rounds: dict[tuple[str, int], int] = {}  # merged and open, by shard and number: the policy's round
        self._early: dict[tuple[str, int], Any] = {}  # rewards of rounds beyond the watermark

    @property
    def policy(self) -> Any:
        """The policy that learns from all rounds."""
        return self.pot.policy

    @property
    def watermark(self) -> float:
        """The moment up to which the rounds of all shards are merged."""
        return self.members.watermark

    @property
    def leased(self) -> Amounts:
        """The sums of all leases that have not been handed in."""
        amounts = [member.amounts for member in self.members.all.values() if member.amounts]
        return tuple(math.fsum(one[i] for one in amounts) for i in range(len(self.pot.totals())))

    def state(self) -> dict[str, Any]:
        """Everything the coordinator knows, as plain data and arrays; `from_state` goes on to the bit."""
        return {
            "policy": self.policy.state(),
            "pot": self.pot.state(),
            "skew": self.members.skew,
            "watermark": self.watermark,
            "members": {name: _plain(member) for name, member in self.members.all.items()},
            "rounds": [[*key, round_] for key, round_ in self._rounds.items()],
            "early": [[*key, values] for key, values in self._early.items()],
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
            The coordinator.
        """
        policy: Any = Policy.from_state(state["policy"])
        coordinator = cls(type(policy)(**policy.settings), skew=state["skew"])
        coordinator.pot.restore(policy, state["pot"])
        coordinator.members.watermark = state["watermark"]
        handed: Any = coordinator.pot.handed
        for name, saved in state["members"].items():
            waiting = [handed(**dict(zip(handed.__struct_fields__, one, strict=True))) for one in saved["waiting"]]
            kept = {**saved, "waiting": waiting, "amounts": tuple(saved["amounts"])}
            coordinator.members.all[name] = Member(**kept)
        coordinator._rounds = {(shard, number_): round_ for shard, number_, round_ in state["rounds"]}
        coordinator._early = {(shard, number_): values for shard, number_, values in state["early"]}
        return coordinator

    def join(self, shard: str, *, now: float) -> tuple[Lease, dict[str, Any]]:
        """Let a shard in, with a first lease.

        Parameters
        ----------
        shard : str
            A name that no shard has had.
        now : float
            The coordinator's clock, in seconds.

        Returns
        -------
        tuple of Lease and dict
            Its first lease, and the state of the policy that it decides by.

        Raises
        ------
        InputError
            If the name is taken.
        """
        self.admit(shard, now=now)
        return self.grant(shard)

    def admit(self, shard: str, *, now: float) -> None:
        """Let a shard in, without a lease yet, as `join`."""
        if read_shard(shard) in self.members.all:
            raise InputError(f"A shard's name must be new, but {shard!r} has joined before.")
        # Its rounds come after everything that is merged already.
        through = max(finite("now", now, hint="It is the time."), self.watermark)
        self.members.all[shard] = Member(through=through, since=through)

    def take(self, hand_in: Any, *, now: float, sent: float | None = None) -> tuple[Lease, dict[str, Any]]:
        """Take in what a shard did, and lease to it anew.

        Parameters
        ----------
        hand_in : HandIn
            What it did.
        now : float
            The coordinator's clock, in seconds.
        sent : float, optional
            The shard's clock now, where it handed in before and says it again.

        Returns
        -------
        tuple of Lease and dict
            Its next lease, and the state of the policy that it decides by.

        Raises
        ------
        InputError
            If it was handed in before, or cannot be true; an AssumptionError if the clocks disagree.
        """
        self.check(hand_in, now=now, sent=sent)
        self.receive(hand_in)
        return self.grant(hand_in.shard)

    def check(self, hand_in: Any, *, now: float, sent: float | None = None) -> None:
        """Raise unless a hand-in can be taken in; nothing is changed."""
        if not isinstance(hand_in, self.pot.hand_in):
            raise InputError(f"What is handed in must be of the policy's kind, but got {type(hand_in).__name__}.")
        member = self.members.check(
            hand_in,
            hand_in.rounds,
            finite("now", now, hint="It is the coordinator's clock."),
            hand_in.through if sent is None else finite("sent", sent, hint="It is the shard's clock."),
        )
        self.pot.check(hand_in, member)
        if any(not 1 <= of <= member.rounds + len(hand_in.rounds) for of, _ in hand_in.rewards):
            raise InputError(f"Rewards must be of rounds that were handed in, but some of {hand_in.shard!r} are not.")

    def receive(self, hand_in: Any) -> None:
        """Take in what a shard did, which was checked; its lease is over."""
        member = self.members.find(hand_in.shard)
        self.pot.receive(hand_in, member)
        member.is_away, member.is_leased = hand_in.leaves, False
        member.pace += PACE * (len(hand_in.rounds) - member.pace)
        member.rounds += len(hand_in.rounds)
        # Whoever was not waited for has nothing to add to what was merged meanwhile.
        late = [one for one in hand_in.rounds if one.moment < self.watermark]
        for one in late:
            self.policy.abandon(self.pot.recall(hand_in.shard, one))
        member.merged += len(late)
        member.waiting += hand_in.rounds[len(late) :]
        member.since, member.through = hand_in.through, max(hand_in.through, self.watermark)
        if hand_in.untimed:
            self.settle(hand_in.shard, [(one.number, None) for one in hand_in.rounds])
        self.settle(hand_in.shard, hand_in.rewards)
        self._merge()
        self.pot.merged(hand_in, member)

    def grant(self, shard: str) -> tuple[Lease, dict[str, Any]]:
        """Lease to a shard that has none; what is known as it stands."""
        member = self.members.find(shard)
        if member.is_leased:
            raise InputError(f"Lease {member.lease} of shard {shard!r} must be handed in before it is leased to again.")
        amounts = self.pot.amounts(self._part(member), self.leased)
        lease = Lease(
            shard=shard,
            number=member.lease + 1,
            amounts=list(amounts),
            since=member.through,
            watermark=number(self.watermark),
            merged=member.merged,
            learned=self.pot.learned(),
            digest="",
        )
        state = self.pot.frozen(amounts)
        self.granted(lease)
        return lease, state

    def granted(self, lease: Lease) -> None:
        """Count a lease that was granted."""
        member = self.members.find(lease.shard)
        member.lease, member.amounts = lease.number, tuple(lease.amounts)
        member.is_away, member.is_leased = False, True
        self.pot.grant(member)

    def lose(self, shard: str) -> None:
        """Stop waiting for a shard that is gone: its lease stays charged, and its open rounds are abandoned.

        Valid only if nothing has influenced this call that the rewards of its open rounds, or of rounds decided after
        them, can have influenced (`Policy.abandon`), nor, of a guard, their coins: a disk that failed is fine, a server
        that the learner's action brought down is not. What it did may still be handed in, which gives the lease back;
        rounds that were not waited for are counted then, and not learned.

        Parameters
        ----------
        shard : str
            Its name.
        """
        member = self.members.find(shard)
        member.is_away = True
        self.settle(shard, [(of, None) for of in self._open_of(shard, member)])
        self._merge()

    def settle(self, shard: str, rewards: Sequence[tuple[int, Mapping[str, float] | None]]) -> None:
        """Take rewards of rounds that were handed in before, from whoever received them.

        Parameters
        ----------
        shard : str
            Who decided the rounds.
        rewards : sequence of (int, mapping or None)
            Rewards by metric, by the shard's number of the round; None abandons it. Those of settled rounds are left
            out.
        """
        member = self.members.find(shard)
        for of, values in rewards:
            self._reward(member, (shard, of), values)

    def open_after(self, hand_in: Any) -> set[int]:
        """Which rounds of a shard wait for their rewards once it has handed this in.

        If it leaves, somebody else must `settle` them, or nothing that follows is learned.
        """
        rounds = {one.number for one in hand_in.rounds if one.moment >= self.watermark}
        before = self._open_of(hand_in.shard, self.members.find(hand_in.shard))
        return {*before, *rounds} - {of for of, _ in hand_in.rewards}

    def _part(self, member: Member) -> float:
        """Its share of the pot, by its pace."""
        present = math.fsum(other.pace for other in self.members.all.values() if not other.is_away)
        return AT_MOST * member.pace / present if member.pace > 0 else 0.0

    def _open_of(self, shard: str, member: Member) -> list[int]:
        merged = [of for name, of in self._rounds if name == shard]
        waiting = [one.number for one in member.waiting if (shard, one.number) not in self._early]
        return merged + waiting

    def _merge(self) -> None:
        for name, one in self.members.advance():
            key = (name, one.number)
            self._rounds[key] = self.pot.recall(name, one)
            if key in self._early:
                self._reward(self.members.all[name], key, self._early.pop(key))

    def _reward(self, member: Member, key: tuple[str, int], values: Mapping[str, float] | None) -> None:
        round_ = self._rounds.pop(key, None)
        if round_ is None:
            if member.merged < key[1] <= member.rounds:
                self._early.setdefault(key, values)  # what was abandoned stays so
        elif values is None:
            self.policy.abandon(round_)
        else:
            self.pot.observe(round_, values)


def read_shard(name: Any) -> str:
    """A shard's name, if it is one: it is written into keys, logs and addresses."""
    if not isinstance(name, str) or not name.isprintable() or not 0 < len(name) <= LONGEST_SHARD:
        raise InputError(f"`shard` must be 1 to {LONGEST_SHARD} printable characters, but got {name!r:.80}.")
    return name


def _plain(member: Member) -> dict[str, Any]:
    """The fields of a member, with its waiting rounds as lists."""
    waiting = [[getattr(one, name) for name in one.__struct_fields__] for one in member.waiting]
    return {one.name: getattr(member, one.name) for one in fields(member)} | {"waiting": waiting}
