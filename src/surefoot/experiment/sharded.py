"""Experiments over many servers: each decides by itself, into its own journal, under a lease of one shared floor."""

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import Executor, Future
from contextlib import suppress
from typing import Any, Self

import msgspec

from surefoot.arrays import count, positive
from surefoot.errors import DecisionError, JournalError, SurefootError
from surefoot.experiment.experiment import SNAPSHOT_EVERY, Experiment
from surefoot.experiment.lease_forms import AnyHandedIn
from surefoot.experiment.lease_hub import Granted, LeaseHub
from surefoot.experiment.modes import ALLOWED, refused_mode
from surefoot.experiment.question import read_text
from surefoot.experiment.shard_chain import (
    Stand,
    accept_lease,
    adopt_mode,
    begin_chain,
    end_lease,
    pause_here,
    shard_state,
    stand_of,
)
from surefoot.experiment.shard_state import ShardState
from surefoot.experiment.transacted_state import Call, caught_up
from surefoot.experiment.unit_of_work import UnitOfWork
from surefoot.journal import Journal
from surefoot.leases.lease import read_shard
from surefoot.records import Mode, ModeName

LOG = logging.getLogger("surefoot.leases")


class ShardedExperiment(Experiment):
    """One server's part of an experiment whose floor is shared: an `Experiment` in a journal of its own, and a lease.

    The journal where shards meet, on PostgreSQL as a rule, is asked once in `every` decisions or `seconds`. While it is
    away a shard goes on within its lease, and then plays the baseline. Rewards go to the shard that decided. Make the
    experiment with `create_sharded`, and let servers `join`.

    Examples
    --------
    >>> import surefoot
    >>> from surefoot.experiment import create_sharded
    >>> told = {"noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
    >>> policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, **told)
    >>> hub, own = surefoot.open_journal("memory:"), surefoot.open_journal("memory:")
    >>> create_sharded(hub, "shop", policy, mode="guarded", skew=1.0)
    >>> shop = ShardedExperiment.join(hub, "shop", own, shard="berlin", in_background=False)
    >>> shop.decide([[0.6, 0.1], [0.9, 0.3]], baseline=0, decision_id="visit-1").source
    'baseline'
    >>> shop.reward("visit-1", 1.0).is_accepted
    True
    >>> shop.renew(), shop.coordinator(lambda coordinator: coordinator.policy.rounds)
    (True, 1)
    """

    _hub: LeaseHub
    _renew_every: int
    _renew_seconds: float

    @classmethod
    def join(
        cls,
        hub: Journal,
        name: str,
        journal: Journal,
        *,
        shard: str,
        every: int = 1000,
        seconds: float = 1.0,
        in_background: bool = True,
        clock: Callable[[], float] = time.time,
        snapshot_every: int = SNAPSHOT_EVERY,
    ) -> Self:
        """Join a sharded experiment, or continue as one of its shards.

        Parameters
        ----------
        hub : Journal
            Where the shards meet.
        name : str
            The experiment.
        journal : Journal
            The shard's own, which nobody else writes to.
        shard : str
            A name that no other shard has had.
        every : int
            Most decisions under one lease.
        seconds : float
            The longest time under one lease.
        in_background : bool
            Whether leases are renewed in a thread of their own, so that no decision waits for the hub.
        clock : callable
            Tells the time in seconds since 1970, as the other shards' do within the declared skew.
        snapshot_every : int
            Events of the shard's own chain between two snapshots; 0 takes none.

        Returns
        -------
        ShardedExperiment
            Ready to decide.

        Raises
        ------
        ConfigError
            If the experiment is not sharded, or the journal is another shard's.
        """
        count("every", every, hint="every is how many decisions a lease lasts.")
        positive("seconds", seconds, hint="seconds is how long a lease lasts.")
        read_shard(shard)
        found = LeaseHub(hub, name, clock)
        begin_chain(journal, name, found, shard, time=clock())
        joined = cls(journal, name, caught_up(None, journal.view(name)), clock, snapshot_every)
        joined._hub, joined._renew_every, joined._renew_seconds = found, every, seconds
        joined._renewing, joined._telling, joined._asked = threading.Lock(), threading.RLock(), time.monotonic()
        joined._in_background, joined._offset = in_background, _offset()
        joined._start()
        return joined

    _in_background: bool
    _offset: float  # when the lease began
    _renewing: threading.Lock
    _telling: threading.RLock  # over what is said to the hub of the mode and what is made of its answer
    _has_left = False
    _lease_error: SurefootError | None = None
    _asked: float  # when the hub was asked last, by a clock that never goes back

    def _start(self) -> None:
        shard, token, lease, is_ended = self._shard_state(
            lambda state: (state.shard, state.token, state.lease, state.due is not None)
        )
        if lease is None:
            self._accept(self._hub.join(shard, token))
            return
        self._hub.confirm(shard, token, lease.number, is_ended=is_ended)
        if is_ended:
            # It may have been taken in before the server went away.
            with suppress(SurefootError):
                self.renew()

    def _shard_state(self, at: Callable[[ShardState], Any]) -> Any:
        return self._look(lambda state: at(shard_state(state)))

    def _run(self, call: "Call[Any]") -> Any:
        result = super()._run(call)
        self._look_after()
        return result

    def _submit(self, call: "Call[Any]", executor: Executor) -> "Future[Any]":
        done = super()._submit(call, executor)
        self._look_after()
        return done

    def _look_after(self) -> None:
        if not self._is_due() or self._renewing.locked():
            return
        if self._in_background:
            threading.Thread(target=self.renew_if_due, name="lease", daemon=True).start()
        else:
            self.renew_if_due()

    def renew_if_due(self) -> None:
        """Renew the lease if it is time, and the hub answers: the lease goes on, or the baseline plays, while not.

        Nobody waits for this: `lease_error` tells why it failed, and so does the log.
        """
        if self._is_due():
            with suppress(SurefootError):
                self.renew()

    @property
    def hub(self) -> LeaseHub:
        """Where the shards meet."""
        return self._hub

    @property
    def lease_error(self) -> SurefootError | None:
        """Why the lease could not be renewed when it was last tried; None if it was."""
        return self._lease_error

    def _is_due(self) -> bool:
        state, elapsed = self._state, time.monotonic() - self._asked
        if not isinstance(state, ShardState) or self._has_left:
            return False
        if state.due is not None or elapsed >= self._renew_seconds:
            return elapsed >= min(1.0, self._renew_seconds)
        rounds = len(state.since)
        return rounds >= min(self._renew_every, max(1, state.policy.rounds // 2)) and state.policy.rounds > 0

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
        if not self._renewing.acquire(blocking=False):
            return False
        try:
            self._asked = time.monotonic()
            self._hub.prepare()
            self._pass_on()
            self._hand_in()
            self._lease_error = None
            return True
        except SurefootError as error:
            if type(error) is not type(self._lease_error):  # it is tried once a second
                LOG.warning("The lease of %r was not renewed: %s", self.name, error)
            self._lease_error = error
            raise
        finally:
            self._renewing.release()

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
        with self._renewing:
            self._hub.prepare()
            pending, is_ended = self._shard_state(lambda state: (len(state.policy.pending), state.due is not None))
            if pending:
                raise DecisionError(
                    f"Every round must be settled before a shard leaves, but {pending} are open: all that was decided "
                    "later would wait for their rewards. Wait for them, or `abandon` the rounds."
                )
            self._pass_on()  # nobody would do so later
            if is_ended:  # it may have been taken in, and leased to anew
                self._hand_in()
            if not self._has_left:
                self._hand_in(leaves=True)

    def _is_untimed(self) -> bool:
        """Whether the clock is wrong now, or was set since the lease began: the order of rounds is not known then."""
        skew = self._created.skew or 0.0
        before, now, after = self._clock(), self._hub.now(), self._clock()
        # Another clock than the system's is the caller's to vouch for.
        was_set = self._clock is time.time and abs(_offset() - self._offset) > skew / 2
        return was_set or before > now + skew / 2 or after < now - skew / 2

    def _hand_in(self, *, leaves: bool = False) -> None:
        is_untimed = self._is_untimed()  # which asks the hub: while nobody answers, the lease goes on
        given: AnyHandedIn = super()._run(Call(lambda turn: end_lease(turn, is_untimed), closes=True))
        granted = self._hub.take(msgspec.structs.replace(given, leaves=leaves), sent=self._clock())
        if granted is None:
            self._has_left = True
        else:
            self._accept(granted)

    def lose(self, shard: str, *, reason: str, by: str = "") -> None:
        """Stop waiting for a shard that is gone (`Coordinator.lose` says when that is valid).

        Parameters
        ----------
        shard : str
            Its name.
        reason, by : str
            Why, and who says so; kept in the journal.
        """
        self._hub.lose(shard, reason=reason, by=by)

    def coordinator(self, at: Callable[[Any], Any]) -> Any:
        """Ask the coordinator something: what is proved, what is leased, who is there.

        Parameters
        ----------
        at : callable
            Is given the `Coordinator`, or of a guard the `GuardCoordinator`, which it must not change.

        Returns
        -------
        object
            What `at` returned.
        """
        return self._hub.look(at)

    def _accept(self, granted: Granted) -> None:
        def accept(turn: UnitOfWork) -> None:
            accept_lease(turn, granted.record, granted.data)
            adopt_mode(turn, granted.mode)

        super()._run(Call(accept))
        self._offset = _offset()

    def set_mode(self, mode: ModeName, *, reason: str = "", by: str = "", despite_doubt: bool = False) -> ModeName:
        """Change the mode of all shards: here at once, elsewhere with each shard's next lease at the latest.

        A pause holds here even while the hub is away, and is passed on with the next lease.

        Parameters
        ----------
        mode, reason, by, despite_doubt
            As in `Experiment.set_mode`.

        Returns
        -------
        str
            The mode before, here.

        Raises
        ------
        ModeError
            If the experiment cannot go from its mode to that one.
        JournalError
            If the hub is away, and the mode is not "paused", or this server has left and cannot pass it on.
        """
        told = Mode(mode=mode, reason=read_text("reason", reason), by=read_text("by", by))
        before, seen = self._shard_state(lambda state: (state.mode, stand_of(state)))
        if mode not in (before, *ALLOWED[before]):
            raise refused_mode(before, mode)
        if mode == "paused":
            # At once, whoever waits for the hub.
            super()._run(Call(lambda turn: pause_here(turn, told)))
            with suppress(*() if self._has_left else (JournalError,)):
                self._share(told, seen)
        else:
            self._share(told, seen)
        result: ModeName = before
        return result

    def _share(self, told: Mode, seen: Stand) -> None:
        with self._telling:
            shared = self._hub.set_mode(told.mode, reason=told.reason, by=told.by)
            super()._run(Call(lambda turn: adopt_mode(turn, shared, told, seen)))

    def _pass_on(self) -> None:
        """Tell the others of a pause that they have not heard of."""
        with self._telling:
            seen: Stand = self._shard_state(stand_of)
            if seen.unshared is not None:
                self._share(seen.unshared, seen)


def _offset() -> float:
    """What the system's clock says beyond the one that cannot be set."""
    return time.time() - time.monotonic()
