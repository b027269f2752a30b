"""Where an experiment that shards share stands, by the chain where they meet; it is only read."""

from dataclasses import dataclass

from surefoot.experiment.hub_state import HubState
from surefoot.journal import Journal
from surefoot.records import ModeName


@dataclass(frozen=True, slots=True)
class HubStatus:
    """What the coordinator knows after the newest event.

    rounds, pending: of all shards, as far as they are merged; of these, without a reward that is learned
    shards:          that are there: neither lost nor gone
    pot, leased:     what may be lost in all, and what is leased of it; of a guard in units of the highest reward, by
                     the bank of which the least is left
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
    is_shared: bool = True


def hub_status(journal: Journal, name: str) -> HubStatus:
    """The status of an experiment in the journal where its shards meet."""
    view = journal.view(name)
    state = HubState(view)
    for event in view.read(state.head.number):
        state.apply(event)
    coordinator = state.coordinator
    sums = coordinator.pot, coordinator.leased
    pairs = zip(*sums, strict=True) if isinstance(coordinator.pot, tuple) else [sums]
    pot, leased = min(pairs, key=lambda pair: pair[0] - pair[1])
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
        pot=pot,
        leased=leased,
        alarm=None if alarm is None else alarm.text,
    )
