"""What a shard writes into its own chain beside its rounds: whose it is, and where its leases begin and end."""

import secrets
from typing import Any, NamedTuple

import msgspec

from surefoot import records
from surefoot.errors import ConfigError, JournalNotFoundError
from surefoot.experiment.hub_state import SharedMode
from surefoot.experiment.lease_forms import AnyHandedIn, AnyLeaseRecord, form_of
from surefoot.experiment.lease_hub import LeaseHub
from surefoot.experiment.shard_state import ShardState
from surefoot.experiment.state import decode
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import Journal
from surefoot.records import Created, Mode, encode


def begin_chain(
    journal: Journal, name: str, hub: LeaseHub, shard: str, *, time: float, token: str | None = None
) -> None:
    """Begin the shard's own chain, unless it is there; by default with a token that is drawn."""
    created, link = hub.created()
    try:
        first = decode(next(journal.view(name).read(limit=1)), Created)
    except JournalNotFoundError:
        policy, drawn = form_of(created).shard_policy, token or secrets.token_hex(16)
        own = msgspec.structs.replace(created, policy=policy, shard=shard, token=drawn, hub=link)
        journal.create(name, encode(own), time=time)
        return
    if first.hub != link and first.shard == shard:
        raise ConfigError(
            f"The journal of shard {shard!r} must be of this experiment, but its {name!r} belongs to another one of "
            "the same name. Its lease is not of this floor: give the shard a new journal."
        )
    if first.shard != shard:
        raise ConfigError(
            f"The journal of shard {shard!r} must be its own, but its {name!r} is another experiment's or shard's."
        )


def shard_state(state: Any) -> ShardState:
    """The state of a shard."""
    assert isinstance(state, ShardState)
    return state


def end_lease(turn: UnitOfWork, is_untimed: bool, coins: bytes | None = None) -> AnyHandedIn:
    """End the lease, unless it has ended; returns what is to be handed in. `coins` is the secret of an edge's coins."""
    state = shard_state(turn.state)
    if state.due is None:
        assert state.lease is not None
        told = None if coins is None else coins.hex()
        alarm = state.policy.alarm
        found = None if alarm is None else (alarm.kind, alarm.round, alarm.text)
        record = records.LeaseEnded(lease=state.lease.number, untimed=is_untimed, coins=told, alarm=found)
        turn.write(records.LEASE_ENDED, record)
        state.ended(record)
    assert state.due is not None
    return state.due


def accept_lease(turn: UnitOfWork, record: AnyLeaseRecord, data: bytes | None) -> None:
    """Write a lease down and go on under it; another thread may have done so."""
    state = shard_state(turn.state)
    if state.lease is not None and state.lease.number >= record.number:
        return
    if data is not None:
        turn.transaction.attach(data)
    if state.lease is not None:
        turn.transaction.detach(state.lease.digest)
    # Its rounds come after what is merged already, also where this server's clock is a little behind.
    turn.now = max(turn.now, record.since)
    turn.write(state.form.leased, record)
    state.renewed(record, data)


def pause_here(turn: UnitOfWork, told: Mode) -> None:
    """Pause this shard at once, and note that the others are to be told."""
    state = shard_state(turn.state)
    if state.unshared is None:
        _go_over(turn, msgspec.structs.replace(told, shared=0))


class Stand(NamedTuple):
    """What a shard knew of the mode when it was asked to change it."""

    shared: int
    unshared: Mode | None


def stand_of(state: ShardState) -> Stand:
    """What a shard knows of the mode."""
    return Stand(state.shared_mode, state.unshared)


def adopt_mode(turn: UnitOfWork, shared: SharedMode, told: Mode | None = None, seen: Stand | None = None) -> None:
    """Go over to the mode of all shards; `told` says why, if this one changed it, having `seen` what it knew then.

    Answers may overtake each other: an older word never undoes a newer one, and a pause that the others have not heard
    of stays, unless whoever resumes knew of it.
    """
    state = shard_state(turn.state)
    if shared.event < state.shared_mode:
        return
    if state.unshared is not None:
        if told is None or (shared.mode != "paused" and stand_of(state) != seen):
            return
    elif shared.event == state.shared_mode:
        return
    # Also where the mode is the same, so that nothing older counts from now on.
    record = told or Mode(mode=shared.mode, reason="as where the shards meet")
    _go_over(turn, msgspec.structs.replace(record, shared=shared.event))


def _go_over(turn: UnitOfWork, record: Mode) -> None:
    turn.write(records.MODE, record)
    turn.state.went_over(record)
