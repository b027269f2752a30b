"""The leases of one shard: what it hands in and takes anew, in the background, and the mode that all shards share."""

import logging
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from surefoot.arrays import count, positive
from surefoot.errors import (
    AssumptionError,
    ConfigError,
    DecisionError,
    InputError,
    JournalError,
    JournalNotFoundError,
    JournalUnavailableError,
    SurefootError,
)
from surefoot.experiment.operator_words import go_over
from surefoot.experiment.status import HubStatus, hub_status, own_status
from surefoot.experiment.turn import Turn
from surefoot.journal import Journal, View
from surefoot.policies.by_name import make_policy
from surefoot.rounds import decode, encode, events
from surefoot.rounds.events import Created, Lease, Mode, ModeName
from surefoot.sharing.hub import NEXT_MODES, Granted, SharedMode, refused_mode
from surefoot.sharing.pots import pot_of

if TYPE_CHECKING:
    from surefoot.experiment.experiment import Experiment

LOG = logging.getLogger("surefoot.sharing")


class AnyHub(Protocol):
    """Where shards meet: rows of a journal that all of them reach, or a service that speaks for one."""

    @property
    def chain(self) -> str:
        """What the shard calls its own chain."""

    def created(self) -> tuple[Created, str]:
        """What the experiment was created with, and the hash of that event."""

    def now(self) -> float:
        """The time where the shards meet; raises while nobody answers."""

    def prepare(self, chain: View) -> None:
        """Whatever takes long, before others wait for it."""

    def join(self, shard: str, token: str) -> Granted:
        """Let a shard in, and give its first lease."""

    def confirm(self, shard: str, token: str, lease: Lease, *, is_ended: bool) -> None:
        """Raise unless a shard that is opened again stands where the hub has it."""

    def take(self, hand_in: Any, *, sent: float, chain: View) -> Granted | None:
        """Take in what a shard did, and lease to it anew unless it leaves."""

    @property
    def may_change_mode(self) -> bool:
        """Whether a shard may change the mode of all of them."""

    def set_mode(self, mode: ModeName, *, reason: str, by: str) -> SharedMode:
        """Have all shards go over to a mode."""


class Leases:
    """One shard's way to the promise that it shares; its experiment decides under what it is leased.

    The hub is asked once in `every` decisions or `seconds`. While it is away the shard goes on within its lease, and
    then plays the baseline.

    Attributes
    ----------
    hub : Hub
        Where the shards meet.
    error : SurefootError or None
        Why the lease could not be renewed when it was last tried; None if it was.
    renewal_lock : threading.Lock
        Held while a lease is renewed; whoever holds it keeps the shard under the lease it has.
    """

    def __init__(
        self,
        experiment: "Experiment",
        hub: Any,
        *,
        every: int,
        seconds: float,
        in_background: bool,
    ) -> None:
        self._every = count("every", every, hint="every is how many decisions a lease lasts.")
        self._seconds = positive("seconds", seconds, hint="seconds is how long a lease lasts.")
        self.hub: Any = hub
        self.error: SurefootError | None = None
        self._experiment, self._in_background = experiment, in_background
        self.renewal_lock, self._sharing = threading.Lock(), threading.RLock()
        self._tried, self._offset = time.monotonic(), clock_offset()
        self.has_left = False

    def start(self) -> None:
        """Join, or go on where the journal ends."""
        shard = self._look(lambda state: state.shard)
        if shard.lease is None:
            self._accept(self.hub.join(shard.shard, shard.token))
            return
        is_ended = shard.due is not None
        # A journal that cannot be an old copy of itself goes on while nobody answers.
        with suppress(*((JournalUnavailableError,) if self._experiment.journal.knows_copies else ())):
            self.hub.confirm(shard.shard, shard.token, shard.lease, is_ended=is_ended)
        if is_ended:
            # It may have been taken in before the server went away.
            with suppress(SurefootError):
                self.renew()

    def check_size(self, size: int) -> None:
        """Raise where an event of that many bytes is too large to be sent: it would keep all later ones from it."""
        state = self._experiment.known_state
        lease = None if state is None or state.shard is None else state.shard.lease
        if lease is not None and lease.event_bytes is not None and size > lease.event_bytes:
            raise InputError(
                f"A decision at the edge must take at most {lease.event_bytes:,} bytes in the service's journal, but "
                f"this one may take {size:,}: offer fewer rows, or raise the service's `limits.body_bytes`."
            )

    def look_after(self) -> None:
        """Renew the lease if it is time, in a thread of its own where that was asked for."""
        if not self.is_due or self.renewal_lock.locked():
            return
        if self._in_background:
            threading.Thread(target=self.renew_if_due, name="lease", daemon=True).start()
        else:
            self.renew_if_due()

    def renew_if_due(self) -> None:
        """Renew the lease if it is time, and the hub answers; `error` tells why it failed, and so does the log."""
        if self.is_due:
            with suppress(SurefootError):
                self.renew()

    @property
    def is_due(self) -> bool:
        """Whether to renew the lease now: after so many rounds or seconds, and sooner while few were decided."""
        state, elapsed = self._experiment.known_state, time.monotonic() - self._tried
        if state is None or state.shard is None or self.has_left:
            return False
        if state.shard.due is not None or elapsed >= self._seconds:
            return elapsed >= min(1.0, self._seconds)
        since = len(state.shard.since)
        return since >= self._every or since >= max(1, state.policy.rounds // 2)

    def renew(self) -> bool:
        """Hand in what was done, and go on under a new lease.

        Returns
        -------
        bool
            False if another thread is doing so.

        Raises
        ------
        JournalError
            If the hub is away: the lease goes on or, where the hand-in may have arrived, the baseline plays.
        AssumptionError
            If the clock of this server is further from the hub's than was declared.
        """
        if not self.renewal_lock.acquire(blocking=False):
            return False
        try:
            self._tried = time.monotonic()
            self.hub.prepare(self._chain())
            self._pass_on()
            self._hand_in()
            self.error = None
            return True
        except SurefootError as error:
            if type(error) is not type(self.error):  # it is tried once a second
                LOG.warning("The lease of %r was not renewed: %s", self._experiment.name, error)
            self.error = error
            raise
        finally:
            self.renewal_lock.release()

    def leave(self) -> None:
        """Hand in what was done, and take no other lease; the baseline plays from now on.

        A pause that the others have not heard of is passed on first.

        Raises
        ------
        DecisionError
            If rounds are open: what others decided later would wait for their rewards.
        JournalError
            If the hub is away; leave again.
        """
        with self.renewal_lock:
            self.hub.prepare(self._chain())
            pending, is_ended = self._look(lambda state: (len(state.policy.pending), state.shard.due is not None))
            if pending:
                raise DecisionError(
                    f"Every round must be settled before a shard leaves, but {pending} are open: all that was decided "
                    "later would wait for their rewards. Wait for them, or `abandon` the rounds."
                )
            self._pass_on()  # nobody would do so later
            if is_ended:  # it may have been taken in, and leased to anew
                self._hand_in()
            if not self.has_left:
                self._hand_in(leaves=True)

    def set_mode(self, record: Mode) -> ModeName:
        """Change the mode of all shards: here at once, elsewhere with each shard's next lease at the latest.

        A pause holds here even while the hub is away, and is passed on with the next lease; returns the mode before.
        """
        if not self.hub.may_change_mode:
            self.hub.set_mode(record.mode, reason=record.reason, by=record.by)
        before, known = self._look(lambda state: (state.mode, (state.shard.shared_mode, state.shard.unshared)))
        if record.mode not in (before, *NEXT_MODES[before]):
            raise refused_mode(before, record.mode)
        if record.mode == "paused":
            # At once, whoever waits for the hub.
            self._experiment.transact(lambda turn: pause_here(turn, record))
            with suppress(*() if self.has_left else (JournalError,)):
                self._share(record, known)
        else:
            self._share(record, known)
        result: ModeName = before
        return result

    def status(self) -> HubStatus:
        """Who shares the promise, and what each may lose; while the hub is away, what this shard knows by itself."""
        experiment, error = self._experiment, self.error
        name, shard = experiment.name, experiment.settings.shard
        try:
            if not hasattr(self.hub, "look"):  # an edge's service is asked by whoever runs it
                status: HubStatus = self._look(lambda state: own_status(name, state))
            else:
                status = self.hub.look(lambda state, view: hub_status(name, experiment.kind, state, view))
        except JournalError as away:
            status, error = self._look(lambda state: own_status(name, state)), error or away
        return msgspec.structs.replace(status, shard=shard, error=None if error is None else str(error))

    def _chain(self) -> View:
        return self._experiment.journal.view(self._experiment.name)

    def _look(self, at: Callable[[Any], Any]) -> Any:
        return self._experiment.look(at)

    def _is_untimed(self) -> bool:
        """Whether the clock is wrong now, or was set since the lease began: the order of rounds is not known then."""
        clock, skew = self._experiment.clock, self._experiment.settings.skew or 0.0
        before, now, after = clock(), self.hub.now(), clock()
        # Another clock than the system's is the caller's to vouch for.
        was_set = clock is time.time and abs(clock_offset() - self._offset) > skew / 2
        return was_set or before > now + skew / 2 or after < now - skew / 2

    def _hand_in(self, *, leaves: bool = False) -> None:
        is_untimed = self._is_untimed()  # which asks the hub: while nobody answers, the lease goes on
        hand_in = self._experiment.transact(lambda turn: end_lease(turn, is_untimed=is_untimed))
        hand_in = msgspec.structs.replace(hand_in, leaves=leaves)
        granted = self.hub.take(hand_in, sent=self._experiment.clock(), chain=self._chain())
        if granted is None:
            self.has_left = True
        else:
            self._accept(granted)

    def _accept(self, granted: Granted) -> None:
        def accept(turn: Any) -> None:
            accept_lease(turn, granted.lease, granted.data, granted.secrets)
            adopt_mode(turn, granted.mode.mode, granted.mode.event)

        self._experiment.transact(accept)
        self._offset = clock_offset()

    def _share(self, record: Mode, known: tuple[int, Any]) -> None:
        with self._sharing:
            shared = self.hub.set_mode(record.mode, reason=record.reason, by=record.by)
            self._experiment.transact(lambda turn: adopt_mode(turn, shared.mode, shared.event, record, known))

    def _pass_on(self) -> None:
        """Tell the others of a pause that they have not heard of."""
        with self._sharing:
            known = self._look(lambda state: (state.shard.shared_mode, state.shard.unshared))
            if known[1] is not None:
                self._share(known[1], known)


def begin_chain(journal: Journal, hub: AnyHub, shard: str, *, time: float) -> None:
    """Begin the shard's own chain, unless it is there."""
    name = hub.chain
    try:
        first = decode(next(journal.view(name).read(limit=1)), Created)
    except JournalNotFoundError:
        created, link = hub.created()
        now, half = hub.now(), (created.skew or 0.0) / 2
        if abs(time - now) > half:
            raise AssumptionError(
                f"The clock of shard {shard!r} must agree within half of skew={2 * half:g} seconds with that where the "
                f"shards meet, but says {time!r} at {now!r}. Set it: rounds are learned in the order of their moments."
            ) from None
        policy = pot_of(make_policy(created.policy, created.settings)).shard_policy
        token = secrets.token_hex(16)
        own = msgspec.structs.replace(created, policy=policy, shard=shard, token=token, hub=link)
        journal.create(name, encode(own), time=time)
        return
    try:
        link = hub.created()[1]
    except JournalUnavailableError:
        if not journal.knows_copies:
            raise
        link = first.hub or ""
    if first.hub != link and first.shard == shard:
        raise ConfigError(
            f"The journal of shard {shard!r} must be of this experiment, but its {name!r} belongs to another one of "
            "the same name. Its lease is not of this floor: give the shard a new journal."
        )
    if first.shard != shard:
        raise ConfigError(
            f"The journal of shard {shard!r} must be its own, but its {name!r} is another experiment's or another "
            "shard's. Give each shard a journal of its own."
        )


def clock_offset() -> float:
    """What the system's clock says beyond the one that cannot be set."""
    return time.time() - time.monotonic()


def end_lease(turn: Turn, *, is_untimed: bool) -> Any:
    """End the lease, unless it has ended; what is to be handed in."""
    state = turn.state
    shard = state.shard
    assert shard is not None
    if shard.due is None:
        assert shard.lease is not None
        alarm = state.policy.alarm
        record = events.LeaseEnded(
            lease=shard.lease.number,
            untimed=is_untimed,
            alarm=None if alarm is None else (alarm.kind, alarm.round, alarm.text),
        )
        turn.write(events.LEASE_ENDED, record)
        state.lease_ended(record)
    return shard.due


def accept_lease(turn: Turn, lease: events.Lease, data: bytes | None, coin_secrets: Sequence[bytes] = ()) -> None:
    """Write a lease down and go on under it, unless another thread has; `coin_secrets` are those of an edge's coins."""
    state = turn.state
    shard = state.shard
    assert shard is not None
    if shard.lease is not None and shard.lease.number >= lease.number:
        return
    for attached in (*coin_secrets, *(() if data is None else (data,))):
        turn.transaction.attach(attached)
    if shard.lease is not None:
        turn.transaction.detach(shard.lease.digest)
    # Its rounds come after what is merged already, also where this server's clock is a little behind.
    turn.now = max(turn.now, lease.since)
    turn.write(events.LEASED, lease)
    state.leased(lease, data)


def pause_here(turn: Turn, mode: events.Mode) -> None:
    """Pause this shard at once, and note that the others are to be told."""
    assert turn.state.shard is not None
    if turn.state.shard.unshared is None:
        go_over(turn, msgspec.structs.replace(mode, shared=0))


def adopt_mode(
    turn: Turn, mode: ModeName, event: int, own: events.Mode | None = None, known: tuple[int, Any] | None = None
) -> None:
    """Go over to the mode of all shards, which that event says; `own` says why, if this shard changed it.

    Answers may overtake each other: an older word never undoes a newer one, and a pause that the others have not heard
    of stays, unless whoever resumes knew of it: `known` is what the shard knew of the mode then.
    """
    shard = turn.state.shard
    assert shard is not None
    if event < shard.shared_mode:
        return
    if shard.unshared is not None:
        if own is None or (mode != "paused" and (shard.shared_mode, shard.unshared) != known):
            return
    elif event == shard.shared_mode:
        return
    # Also where the mode is the same, so that nothing older counts from now on.
    record = own or events.Mode(mode=mode, reason="as where the shards meet")
    go_over(turn, msgspec.structs.replace(record, shared=event))
