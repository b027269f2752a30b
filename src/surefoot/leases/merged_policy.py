"""A policy that learns from the rounds of many shards, in the order of their decisions up to a watermark."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Generic, Protocol, TypeVar

from surefoot.arrays import finite, nonnegative
from surefoot.errors import InputError
from surefoot.leases.lease import plain_round, read_shard
from surefoot.leases.merging import AnyRound, Handed, Member, Members

PACE = 0.5  # weight of the newest lease in a shard's pace


class Merged(Protocol):
    """What is asked of the policy."""

    def state(self) -> dict[str, Any]:
        """Everything that it knows."""

    def observe(self, decision: Any, reward: Any) -> None:
        """Take a reward."""

    def abandon(self, decision: Any) -> None:
        """Settle a round without its reward."""


P = TypeVar("P", bound=Merged)
H = TypeVar("H", bound=Handed)


class MergedPolicy(Generic[P, H]):
    """The rounds of all shards, counted by one policy and learned in one order.

    Parameters
    ----------
    policy : Policy or Guard
        A new one.
    skew : float
        Seconds by which the clocks of two shards may differ.
    """

    def __init__(self, policy: P, *, skew: float) -> None:
        nonnegative("skew", skew, hint="skew is in seconds.")
        self.policy = policy
        self.members = Members(skew)
        self._rounds: dict[tuple[str, int], int] = {}  # merged and open, by shard and number: the policy's round
        self._early: dict[tuple[str, int], Any] = {}  # rewards of rounds beyond the watermark

    @property
    def watermark(self) -> float:
        """The moment up to which the rounds of all shards are merged."""
        return self.members.watermark

    def _merged_state(self) -> dict[str, Any]:
        return {
            "policy": self.policy.state(),
            "skew": self.members.skew,
            "watermark": self.watermark,
            "members": {name: _plain(member) for name, member in self.members.all.items()},
            "rounds": [[*key, round_] for key, round_ in self._rounds.items()],
            "early": [[*key, reward] for key, reward in self._early.items()],
        }

    def _restore_merged(self, policy: P, state: Mapping[str, Any], read: Callable[[Sequence[Any]], AnyRound]) -> None:
        """Restore what `_merged_state` returned, of a policy that is restored; `read` makes a round of plain data."""
        self.policy, self.members.watermark = policy, state["watermark"]
        self.members.all = {
            name: Member(**{**told, "waiting": [read(made) for made in told["waiting"]]})
            for name, told in state["members"].items()
        }
        self._rounds = {(shard, number): round_ for shard, number, round_ in state["rounds"]}
        self._early = {(shard, number): reward for shard, number, reward in state["early"]}

    def admit(self, shard: str, *, now: float) -> None:
        """Let a shard in, without a lease yet.

        Parameters
        ----------
        shard, now
            As in `join`.

        Raises
        ------
        InputError
            If the name is taken.
        """
        if read_shard(shard) in self.members.all:
            raise InputError(f"A shard's name must be new, but {shard!r} has joined before.")
        # Its rounds come after everything that is merged already.
        through = max(finite("now", now, hint="It is the time."), self.watermark)
        self.members.all[shard] = Member(through=through, lease=0, since=through)

    def lose(self, shard: str) -> None:
        """Stop waiting for a shard that is gone: its lease stays charged, and its open rounds are abandoned.

        Valid only if nothing has influenced this call that the rewards of its open rounds, or of rounds decided after
        them, can have influenced (`Policy.abandon`): a server that crashed is fine. What it did may still be handed in,
        which gives the lease back; rounds that were not waited for are counted then, and not learned.

        Parameters
        ----------
        shard : str
            Its name.
        """
        member = self.members.find(shard)
        member.is_away = True
        self.settle(shard, [(number, None) for number in self._open_of(shard, member)])
        self._merge()

    def settle(self, shard: str, rewards: Sequence[tuple[int, Any]]) -> None:
        """Take rewards of rounds that were handed in before, from whoever received them.

        Parameters
        ----------
        shard : str
            Who decided the rounds.
        rewards : sequence of (int, reward or None)
            Rewards by the shard's number of the round; None abandons it. Those of settled rounds are left out.
        """
        member = self.members.find(shard)
        for number, reward in rewards:
            self._reward(member, (shard, number), reward)

    def open_after(self, given: H) -> set[int]:
        """Which rounds of a shard wait for their rewards once it has handed this in.

        Parameters
        ----------
        given : object
            What it is about to hand in.

        Returns
        -------
        set of int
            Their numbers; if it leaves, somebody else must `settle` them, or nothing that follows is learned.
        """
        made = {made.number for made in given.rounds if made.moment >= self.watermark}
        before = self._open_of(given.shard, self.members.find(given.shard))
        return {*before, *made} - {number for number, _ in given.rewards}

    def _open_of(self, shard: str, member: Member) -> list[int]:
        merged = [number for name, number in self._rounds if name == shard]
        waiting = [made.number for made in member.waiting if (shard, made.number) not in self._early]
        return merged + waiting

    def _receive(self, given: H, *, leaves: bool) -> None:
        """Take in rounds and rewards that were checked, and merge what can be."""
        member = self.members.find(given.shard)
        member.is_away, member.is_leased = leaves, False
        member.pace += PACE * (len(given.rounds) - member.pace)
        member.rounds += len(given.rounds)
        # Whoever was not waited for has nothing to add to what was merged meanwhile.
        late = [made for made in given.rounds if made.moment < self.watermark]
        for made in late:
            self.policy.abandon(self._recall(given.shard, made))
        member.merged += len(late)
        member.waiting += given.rounds[len(late) :]
        member.since, member.through = given.through, max(given.through, self.watermark)
        if given.is_untimed:
            self.settle(given.shard, [(made.number, None) for made in given.rounds])
        self.settle(given.shard, given.rewards)
        self._merge()

    def _merge(self) -> None:
        for name, made in self.members.advance():
            self._count(name, made)

    def _count(self, name: str, made: AnyRound) -> None:
        key = (name, made.number)
        self._rounds[key] = self._recall(name, made).round
        if key in self._early:
            self._reward(self.members.all[name], key, self._early.pop(key))

    def _recall(self, name: str, made: Any) -> Any:
        """Count a round of a shard as it was played."""
        return made.recall(self.policy)

    def _reward(self, member: Member, key: tuple[str, int], reward: Any) -> None:
        round_ = self._rounds.pop(key, None)
        if round_ is None:
            if member.merged < key[1] <= member.rounds:
                self._early.setdefault(key, reward)  # what was abandoned stays so
        elif reward is None:
            self.policy.abandon(round_)
        else:
            self.policy.observe(round_, reward)


def _plain(member: Member) -> dict[str, Any]:
    """The fields of a member, with its waiting rounds as lists."""
    return {one.name: getattr(member, one.name) for one in fields(member)} | {
        "waiting": [plain_round(made) for made in member.waiting]
    }
