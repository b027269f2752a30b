"""What every edge is: a shard of an app's own, which needs the service only to renew its lease."""

import secrets
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx

from surefoot.arrays import count, positive
from surefoot.edge.edge_renewal import LOG, J
from surefoot.edge.edge_service import EdgeService
from surefoot.edge.edge_settling import EdgeSettling
from surefoot.errors import InputError, SurefootError
from surefoot.journal.signatures import PublicKey

SPARE = 2000  # bytes of an entry beside its rows and names, at most
ENDED = "Played the baseline: the lease is handed in, and the next one is on its way."
UNWRITTEN = "Played the baseline, which is not counted: the log cannot be written. {}"


class BaseEdge(EdgeSettling[J]):
    """An edge of any policy; `_opens` is the journal that it has."""

    _opens: type[J]

    def __init__(
        self,
        url: str | None = None,
        *,
        experiment: str,
        shard: str,
        log: Path | str,
        key: Path | str,
        token: str | None = None,
        catalogue: str | None = None,
        every: int = 1000,
        seconds: float = 60.0,
        timeout: float = 10.0,
        sync: bool = False,
        in_background: bool = True,
        clock: Callable[[], float] = time.time,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        count("every", every, hint="every is how many decisions a lease lasts.")
        positive("seconds", seconds, hint="seconds is how long a lease lasts.")
        positive("timeout", timeout, hint="timeout is in seconds.")
        public, token_of_log = PublicKey(key), secrets.token_hex(16)
        service = EdgeService(url, token, experiment, timeout, transport)
        journal = self._opens.open(Path(log), public, experiment=experiment, shard=shard, token=token_of_log, sync=sync)
        super().__init__(shard, journal, service, every, seconds, clock)
        self.experiment, self._in_background = experiment, in_background
        try:
            self._join(catalogue)
        except BaseException:
            journal.close()
            service.close()
            raise

    @property
    def rounds(self) -> int:
        """Rounds decided so far, over all leases."""
        return int(self._journal.shard.rounds)

    @property
    def unsent(self) -> int:
        """Entries of the log that the service has not taken in."""
        return self._journal.unsent

    @property
    def expires(self) -> float:
        """When the present lease expires, in seconds since 1970."""
        return self._head.expires

    def _check_fits(self, name: str, size: int) -> None:
        """Raise where a decision could be made and never be handed in."""
        most = self._head.entry_bytes - SPARE
        if size > most:
            raise InputError(
                f"{name} must fit into one request to the service, {most} bytes, but these have {size}. "
                "Make them smaller, or raise the server's `body_bytes`."
            )

    def _explained(self, is_expired: bool) -> str:
        if is_expired:
            return f"Played the baseline: the lease expired at {self._head.expires:.0f}, and was not renewed."
        return "" if self._journal.shard.policy.is_leased else ENDED

    def close(self) -> None:
        """Hand in what can be, and close the log; another process may go on with it.

        Every 600 kB of entries are a request of their own, which takes up to `timeout` seconds; the first that fails is
        the last. A renewal that is under way is waited for.
        """
        with self._renewing:
            if self._journal.error is None and self._error is None and self.unsent:
                try:
                    self._send()
                except SurefootError as error:
                    LOG.warning("Edge %r is closed with entries that were not handed in: %s", self.shard, error)
            with self._lock:
                self._journal.close()
        self._service.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
