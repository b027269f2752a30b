"""A service as the hub of an app that decides in its own process: leases come over HTTP, and events go back."""

import threading
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import httpx
import msgspec

from surefoot.client.calls import EXPERIMENTS, RETRIED, problem
from surefoot.errors import ConfigError, JournalUnavailableError, ModeError
from surefoot.journal import View
from surefoot.journal.signatures import PublicKey
from surefoot.rounds.events import LEASE_ENDED, LEASED, Created, Lease, ModeName, edge_chain
from surefoot.sharing.edge_messages import EdgeOrigin, EdgeStanding, JoinEdge, UploadEvents
from surefoot.sharing.hub import Granted

T = TypeVar("T")
MOST_SENT = 400_000  # bytes of events in one request, if there is more than one


class RemoteHub:
    """Where an app's own process gets its leases: a service whose experiment is shared.

    Parameters
    ----------
    url : str
        The service's address.
    key : Path or str
        The service's public key (PEM), by which its leases are known.
    token : str, optional
        A token of the role `decide`.
    timeout : float
        Seconds for one request; nothing but the renewal of a lease waits for it.
    transport : httpx.BaseTransport, optional
        For tests.

    Examples
    --------
    >>> RemoteHub("http://127.0.0.1:9", key="head.pub")
    Traceback (most recent call last):
    surefoot.errors.ConfigError: There must be an Ed25519 public key in PEM form at head.pub, but: ...
    """

    def __init__(
        self,
        url: str,
        *,
        key: Path | str,
        token: str | None = None,
        timeout: float = 10.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._key = PublicKey(key)
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        self._http = httpx.Client(
            base_url=url.rstrip("/"), headers=headers, timeout=timeout, transport=transport, trust_env=False
        )
        self.name, self.shard = "", ""
        self._read: EdgeOrigin | None = None
        self._token = ""
        self._standing: EdgeStanding | None = None  # where the service had the chain, until that is compared
        self._reached: int | None = None  # the newest event that the service has
        self._alone = threading.Lock()

    def of(self, name: str, shard: str) -> "RemoteHub":
        """The same for one edge of an experiment.

        Parameters
        ----------
        name, shard : str
            The experiment, and the edge.

        Returns
        -------
        RemoteHub
            Which remembers how far it has come.
        """
        bound = object.__new__(RemoteHub)
        bound.__dict__ = {**self.__dict__, "name": name, "shard": shard, "_alone": threading.Lock()}
        return bound

    @property
    def chain(self) -> str:
        """What the edge calls its own chain: the service has one of the same name, with the same hashes."""
        return edge_chain(self.name, self.shard)

    def created(self) -> tuple[Created, str]:
        """What the experiment was created with, and the hash of that event.

        Returns
        -------
        tuple of Created and str
            Both.
        """
        read = self._hub()
        return msgspec.json.decode(read.created, type=Created), read.link

    def now(self) -> float:
        """The service's clock.

        Returns
        -------
        float
            Seconds since 1970.
        """
        return self._hub().now

    def join(self, shard: str, token: str) -> Granted:
        """Be let in, with a first lease.

        Parameters
        ----------
        shard, token : str
            The edge, and the token of its journal.

        Returns
        -------
        Granted
            The lease.
        """
        self._token = token
        standing = self._ask("POST", "edges", JoinEdge(shard, token), EdgeStanding)
        self._reached = standing.number
        return self._granted(standing)

    def confirm(self, shard: str, token: str, lease: Lease, *, is_ended: bool) -> None:
        """Raise unless an edge that is opened again stands where the service has it.

        Parameters
        ----------
        shard, token : str
            The edge, and the token of its journal.
        lease : Lease
            Its newest one.
        is_ended : bool
            Whether the rounds of that lease are complete.
        """
        self._token = token
        self._stand(lease, is_ended=is_ended, is_opening=True)

    def prepare(self, chain: View) -> None:
        """Send what has been done so far, while the lease is still in use.

        Parameters
        ----------
        chain : View
            The edge's own.
        """
        with self._alone:
            self._upload(chain, chain.head.number)

    def take(self, hand_in: Any, *, sent: float, chain: View) -> Granted | None:
        """Send the rest, and get the next lease.

        Parameters
        ----------
        hand_in : HandIn
            What the edge comes to; the service comes to it by itself.
        sent : float
            The edge's clock.
        chain : View
            The edge's own.

        Returns
        -------
        Granted or None
            None where the edge leaves, or has left.

        Raises
        ------
        ConfigError
            If the service answers with no lease, or with one that is not for this edge.
        """
        with self._alone:
            last = {"is_ended": True, "leaves": hand_in.leaves, "sent": sent}
            self._token = hand_in.token
            standing = self._upload(chain, chain.latest(LEASE_ENDED).number, **last)  # type: ignore[union-attr]
        return None if standing.has_left else self._granted(standing)

    @property
    def may_change_mode(self) -> bool:
        """Not here: the mode is that of all shards, and an edge's token is for decisions."""
        return False

    def set_mode(self, mode: ModeName, *, reason: str, by: str) -> NoReturn:
        """Refuse: the mode is changed at the service.

        Parameters
        ----------
        mode, reason, by
            As in `Experiment.set_mode`.

        Returns
        -------
        NoReturn
            Nothing.

        Raises
        ------
        ModeError
            Always.
        """
        raise ModeError("The mode of an edge is that of all shards: change it at the service.")

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _upload(self, chain: View, until: int, **last: Any) -> EdgeStanding:
        """Send events up to that number, so many at a time; what is said with the last."""
        lease = msgspec.json.decode(chain.latest(LEASED).payload, type=Lease)  # type: ignore[union-attr]
        if self._reached is None:
            self._token = msgspec.json.decode(next(chain.read(limit=1)).payload, type=Created).token or ""
            self._stand(lease)
        if self._standing is not None:
            self._check(chain, self._standing, self._standing.number)
            self._standing = None
        assert self._reached is not None
        while True:
            part, size = list[Any](), 0
            for event in chain.read(self._reached, limit=until - self._reached):
                if part and size + len(event.payload) > MOST_SENT:
                    break
                part.append((event.kind, event.key, event.time, event.payload))
                size += len(event.payload) + 200
            reached = self._reached + len(part)
            body = UploadEvents(
                token=self._token, lease=lease.number, proof=lease.proof or "", follows=self._reached,
                events=msgspec.msgpack.encode(part), **(last if reached >= until else {}),
            )  # fmt: skip
            if not part and not last:
                return EdgeStanding(self._reached, "", 0.0)
            standing = self._ask("POST", f"edges/{self.shard}/events", body, EdgeStanding)
            self._check(chain, standing, reached)
            self._reached = reached
            if reached >= until:
                return standing

    def _stand(self, lease: Lease, **fields: Any) -> None:
        """Ask where the service has the chain."""
        body = UploadEvents(token=self._token, lease=lease.number, proof=lease.proof or "", **fields)
        self._standing = self._ask("POST", f"edges/{self.shard}/events", body, EdgeStanding)
        self._reached = self._standing.number

    def _check(self, chain: View, standing: EdgeStanding, reached: int) -> None:
        """Raise unless the service has this chain, to the hash."""
        event = next(chain.read(reached - 1, limit=1), None) if reached else None
        is_known = event is not None and (standing.number > reached or (standing.number, standing.hash) == event.head)
        if reached and not is_known:
            raise ConfigError(
                f"The service must have event {reached} of edge {self.shard!r} as its journal has it, but has "
                f"{standing.hash} as event {standing.number}: one of the two journals is a copy, or an older one."
            )

    def _granted(self, standing: EdgeStanding) -> Granted:
        if standing.lease is None:
            raise ConfigError("The service must answer with a lease, but did not.")
        link = None if self._read is None else self._read.link
        return standing.lease.read(self.name, link, self.shard, self._key)

    def _hub(self) -> EdgeOrigin:
        self._read = self._ask("GET", "edges", None, EdgeOrigin)
        return self._read

    def _ask(self, method: str, path: str, body: Any, kind: type[T]) -> T:
        content = None if body is None else msgspec.json.encode(body)
        try:
            response = self._http.request(method, f"{EXPERIMENTS}/{self.name}/{path}", content=content)
        except httpx.HTTPError as error:
            raise JournalUnavailableError(
                f"The service must be reached to renew a lease, but: {type(error).__name__}: {error}."
            ) from None
        if response.status_code in RETRIED:
            raise JournalUnavailableError(f"The service must be reached to renew a lease, but: {problem(response)}")
        if response.status_code >= 400:
            raise problem(response)
        return msgspec.json.decode(response.content, type=kind)
