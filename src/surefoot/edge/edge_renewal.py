"""How an edge renews its lease: entries first, while it goes on, then its end, and the next one with the answer."""

import logging
import math
import os
import threading
import time
import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Generic, TypeVar

from surefoot.client.service_error import ServiceError
from surefoot.edge.base_edge_journal import BaseEdgeJournal
from surefoot.edge.bundle import Bundle, OfferedActions, SignedHead
from surefoot.edge.edge_messages import EdgeKind, HandInEntries, JoinEdge
from surefoot.edge.edge_service import EdgeService
from surefoot.errors import AssumptionError, DecisionError, SurefootError

LOG = logging.getLogger("surefoot.edge")
PART = 600_000  # bytes of entries in one request
TOO_LARGE = "/problems/too-large"
J = TypeVar("J", bound=BaseEdgeJournal[Any, Any, Any])


class EdgeRenewal(Generic[J]):
    """A lease, its journal and the service; `_lock` is held for a moment, `_renewing` as long as a request takes."""

    _kind: ClassVar[EdgeKind]

    def __init__(
        self,
        shard: str,
        journal: J,
        service: EdgeService,
        every: int,
        seconds: float,
        clock: Callable[[], float],
    ) -> None:
        self.shard, self._journal, self._service = shard, journal, service
        self._every, self._seconds, self._clock = every, seconds, clock
        self._lock, self._renewing = threading.Lock(), threading.Lock()
        self._error: SurefootError | None = None
        self._has_left, self._asked = False, time.monotonic()
        self._offset, self._half = clock() - time.monotonic(), math.inf  # no lease says yet what is too far off
        _OPEN.add(self)

    def _forked(self) -> None:
        self._lock, self._renewing = threading.Lock(), threading.Lock()  # as they were, a thread may have held them
        self._journal.leave_to_parent()

    def _join(self, catalogue: str | None) -> None:
        if not self._journal.is_joined:  # by the log's token: a second time, if an answer was lost
            before = self._clock()
            answer = self._service.join(
                JoinEdge(shard=self.shard, token=self._journal.token, catalogue=catalogue, kind=self._kind)
            )
            if answer.bundle is None:
                raise ServiceError("The service must answer with a first lease, but gave none.")
            half = self._journal.opened(answer.bundle).head.skew / 2
            if before > answer.now + half or self._clock() < answer.now - half:
                raise AssumptionError(
                    f"The clock of an edge must agree with the service's within half of skew={2 * half:g} seconds, but "
                    f"says {before!r} at {answer.now!r}. Set it, and open the edge again."
                )
            self._begin(answer.bundle, answer.now)
        else:
            self._take_over(self._clock())

    def _begin(self, bundle: Bundle, now: float) -> None:
        """Go on under a lease that has come; `now` is the service's clock, which this one agrees with."""
        self._offset = self._clock() - time.monotonic()
        self._journal.accept(bundle, self._now())
        self._take_over(now)
        self._journal.time(self._offset, self._until)

    def _take_over(self, now: float) -> None:
        """Go by the lease that the journal holds."""
        journal = self._journal
        self._head: SignedHead = journal.bundle.head
        self._half = self._head.skew / 2
        # Whatever the clock is set to: the time that passed since then is known.
        self._until = time.monotonic() + max(0.0, self._head.expires - now)
        if journal.timed is not None:  # by a process before this one
            self._offset, self._until = journal.timed.offset, journal.timed.until
        self._offered = None if journal.actions is None else OfferedActions(journal.actions)

    def _now(self) -> float:
        """The time; by the clock that nobody sets where the other one was set, or one jump would hold for ever."""
        steady = time.monotonic() + self._offset
        told = self._clock()
        return max(steady if abs(told - steady) > self._half else told, self._journal.moment)

    @property
    def lease_error(self) -> SurefootError | None:
        """Why the lease could not be renewed when it was last tried; None if it was."""
        return self._error

    def _look_after(self) -> None:
        if self._is_due() and not self._renewing.locked():
            threading.Thread(target=self.renew_if_due, name="edge", daemon=True).start()

    def _is_due(self) -> bool:
        elapsed, shard = time.monotonic() - self._asked, self._journal.shard
        if self._has_left or self._journal.error is not None:
            return False
        if not shard.policy.is_leased or elapsed >= self._seconds:
            return elapsed >= min(1.0, self._seconds)
        return elapsed >= 0.01 and shard.rounds > 0 and shard.is_due(self._every) and self._error is None

    def renew_if_due(self) -> None:
        """Renew the lease if it is time; `lease_error` and the log tell why it failed."""
        if self._is_due():
            try:
                self.renew()
            except SurefootError:  # told where it was raised
                return

    def renew(self) -> bool:
        """Hand in what was decided, and go on under a new lease.

        Returns
        -------
        bool
            False if another thread is doing so.

        Raises
        ------
        JournalUnavailableError
            If the service cannot be reached: the lease goes on.
        ServiceError
            If the service refuses what is handed in.
        """
        return self._hand_in(leaves=False)

    def leave(self) -> None:
        """Hand in what was decided, and take no other lease: only the baseline plays from now on.

        Raises
        ------
        DecisionError
            If rounds are open: what others decided later would wait for their rewards.
        """
        with self._lock:
            pending, is_leased = len(self._journal.shard.policy.pending), self._journal.shard.policy.is_leased
        if pending:
            raise DecisionError(
                f"Every round must be settled before an edge leaves, but {pending} are open: wait, or `abandon` them."
            )
        if not is_leased:  # it may have been handed in, and leased anew
            self._hand_in(leaves=False)
        while not self._hand_in(leaves=True):
            time.sleep(0.01)

    def _hand_in(self, *, leaves: bool) -> bool:
        if self._journal.error is not None:
            raise self._journal.error.with_traceback(None)
        if not self._renewing.acquire(blocking=False):
            return False
        try:
            self._asked = time.monotonic()
            self._send_and_renew(leaves)
            self._error = None
            return True
        except SurefootError as error:
            if type(error) is not type(self._error):  # it is tried once a second
                LOG.warning("The lease of %r was not renewed: %s", self.shard, error)
            self._error = error
            raise
        finally:
            self._renewing.release()

    def _send_and_renew(self, leaves: bool) -> None:
        was_leased = self._journal.shard.policy.is_leased
        before, now, after = self._send()  # before the lease is given up: while nobody answers, it goes on
        if not was_leased and not leaves:  # what was handed in before is answered by now
            return
        with self._lock:
            if self._journal.shard.policy.is_leased:
                was_set = abs(self._clock() - time.monotonic() - self._offset) > self._half
                is_wrong = before > now + self._half or after < now - self._half
                self._journal.end_lease(self._now(), is_untimed=was_set or is_wrong)
        self._send(leaves=leaves)

    def _send(self, *, leaves: bool = False) -> tuple[float, float, float]:
        """Send what the service does not have; its clock, between two looks at this one."""
        size, everything = PART, self._journal.handed  # and what is decided meanwhile, the next time
        while True:
            with self._lock:
                part = self._journal.part(size)
                told = self._journal.bundle.bundle
            before = self._clock()
            given = HandInEntries(
                token=self._journal.token,
                head=told.head,
                signature=told.signature,
                follows=self._journal.follows,
                entries=part.data,
                sent=before,
                leaves=leaves,
            )
            try:
                answer = self._service.hand_in(self.shard, given)
            except ServiceError as error:
                if error.type != TOO_LARGE or part.entries < 2:
                    raise
                size = len(part.data) // 2
                continue
            after = self._clock()
            with self._lock:
                self._journal.acknowledged(part, answer)
                if answer.bundle is not None:
                    self._begin(answer.bundle, answer.now)
                    return before, answer.now, after
                if self._journal.kept >= everything:
                    self._has_left |= leaves and not self._journal.shard.policy.is_leased
                    return before, answer.now, after


_OPEN: weakref.WeakSet[EdgeRenewal[Any]] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for edge in list(_OPEN):
        edge._forked()


os.register_at_fork(after_in_child=_leave_to_parent)
