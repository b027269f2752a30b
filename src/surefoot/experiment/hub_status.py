"""Where an experiment that shards share stands, by the chain where they meet; it is only read."""

from dataclasses import dataclass

from surefoot.experiment.hub_state import HubState
from surefoot.journal import Journal
from surefoot.records import ModeName


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One shard, as the coordinator knows it.

    lease:    how many it has had
    amount:   what it may lose under the present one; of a guard by the same bank as `HubStatus.pot`
    rounds:   handed in so far
    waiting:  of these, not merged, since others have not come as far
    through:  every round that it decided before is handed in
    is_away:  nobody waits for it: it has left, or is lost
    """

    name: str
    lease: int
    amount: float
    rounds: int
    waiting: int
    through: float
    is_away: bool


@dataclass(frozen=True, slots=True)
class HubStatus:
    """What the coordinator knows after the newest event.

    rounds, pending: of all shards, as far as they are merged; of these, without a reward that is learned
    shards:          that are there: neither lost nor gone
    pot, leased:     what may be lost in all, and what is leased of it; of a guard in units of the highest reward, by
                     the bank of which the least is left
    members:         every shard that has joined
    """

    name: str
    policy: str
    mode: ModeName
    events: int
    head_hash: str
    time: float
    rounds: int
    pending: int
    shards: int
    pot: float
    leased: float
    alarm: str | None
    members: tuple[ShardStatus, ...]
    is_shared: bool = True


def hub_status(journal: Journal, name: str) -> HubStatus:
    """The status of an experiment in the journal where its shards meet."""
    view = journal.view(name)
    state = HubState(view)
    for event in view.read(state.head.number):
        state.apply(event)
    coordinator = state.coordinator
    pots, leases = (one if isinstance(one, tuple) else (one,) for one in (coordinator.pot, coordinator.leased))
    bank = min(range(len(pots)), key=lambda at: pots[at] - leases[at])
    alarm = coordinator.policy.alarm
    return HubStatus(
        name=name,
        policy=state.created.policy,
        mode=state.mode.mode,
        events=state.head.number,
        head_hash=state.head.hash,
        time=state.time,
        rounds=coordinator.policy.rounds,
        pending=len(coordinator.policy.pending),
        shards=state.present(),
        pot=pots[bank],
        leased=leases[bank],
        alarm=None if alarm is None else alarm.text,
        members=tuple(
            ShardStatus(
                name=shard,
                lease=member.lease,
                amount=member.amounts[bank] if member.amounts else member.amount,
                rounds=member.rounds,
                waiting=len(member.waiting),
                through=member.through,
                is_away=member.is_away,
            )
            for shard, member in sorted(coordinator.members.all.items())
        ),
    )
