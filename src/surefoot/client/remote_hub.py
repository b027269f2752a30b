"""A service as the hub of an app that decides in its own process: leases come over HTTP, and events go back."""

import threading
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import httpx
import msgspec

from surefoot.client.calls import EXPERIMENTS, RETRIED, problem
from surefoot.errors import ConfigError, InputError, JournalUnavailableError, ModeError
from surefoot.journal import View
from surefoot.journal.signatures import PublicKey
from surefoot.rounds.events import LEASE_ENDED, Created, ModeName, edge_chain
from surefoot.sharing.hub import Granted
from surefoot.sharing.messages import EdgeStanding, HubRead, JoinEdge, UploadEvents

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
        self._read: HubRead | None = None
        self._token, self._lease = "", 0
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

    @property
    def event_bytes(self) -> int:
        """The most that one event may take."""
        return (self._read or self._hub()).event_bytes

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

    def confirm(self, shard: str, token: str, lease: int, *, is_ended: bool) -> None:
        """Raise unless an edge that is opened again stands where the service has it.

        Parameters
        ----------
        shard, token : str
            The edge, and the token of its journal.
        lease : int
            Its newest lease.
        is_ended : bool
            Whether the rounds of that lease are complete.
        """
        self._token, self._lease = token, lease
        body = UploadEvents(token=token, lease=lease, is_ended=is_ended, is_opening=True)
        self._reached = self._ask("POST", f"edges/{shard}/events", body, EdgeStanding).number

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
            None where the edge leaves.

        Raises
        ------
        ConfigError
            If the service leases nothing to an edge that goes on.
        """
        with self._alone:
            last = {"is_ended": True, "leaves": hand_in.leaves, "sent": sent}
            self._token, self._lease = hand_in.token, hand_in.lease
            standing = self._upload(chain, chain.latest(LEASE_ENDED).number, **last)  # type: ignore[union-attr]
        if standing.lease is None:
            if not hand_in.leaves:
                raise ConfigError(f"The service must lease to edge {self.shard!r} anew, but it has left.")
            return None
        return self._granted(standing)

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

    def check_size(self, size: int) -> None:
        """Raise where an event would be too large to be sent, and so keep all later ones from being sent.

        Parameters
        ----------
        size : int
            Its bytes, at most.

        Raises
        ------
        InputError
            If it is.
        """
        if size > self.event_bytes:
            raise InputError(
                f"A decision at the edge must take at most {self.event_bytes:,} bytes in the service's journal, but "
                f"this one may take {size:,}: offer fewer rows, or raise the service's `limits.body_bytes`."
            )

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _upload(self, chain: View, until: int, **last: Any) -> EdgeStanding:
        """Send events up to that number, so many at a time; what is said with the last."""
        if self._reached is None:
            body = UploadEvents(token=self._token_of(chain), lease=max(1, self._lease))
            self._reached = self._ask("POST", f"edges/{self.shard}/events", body, EdgeStanding).number
        while True:
            part, size = list[Any](), 0
            for event in chain.read(self._reached, limit=until - self._reached):
                if part and size + len(event.payload) > MOST_SENT:
                    break
                part.append((event.kind, event.key, event.time, event.payload))
                size += len(event.payload) + 200
            reached = self._reached + len(part)
            body = UploadEvents(
                token=self._token_of(chain), lease=max(1, self._lease), follows=self._reached,
                events=msgspec.msgpack.encode(part), **(last if reached >= until else {}),
            )  # fmt: skip
            if not part and not last:
                return EdgeStanding(self._reached, "", 0.0)
            standing = self._ask("POST", f"edges/{self.shard}/events", body, EdgeStanding)
            self._check(chain, standing, reached)
            self._reached = reached
            if reached >= until:
                return standing

    def _check(self, chain: View, standing: EdgeStanding, reached: int) -> None:
        """Raise unless the service has what was sent, to the hash."""
        event = next(chain.read(reached - 1, limit=1)) if reached else None
        if event is not None and (
            standing.number < reached or (standing.number == reached and standing.hash != event.hash)
        ):
            raise ConfigError(
                f"The service must have event {reached} of edge {self.shard!r} as it was sent, but says "
                f"{standing.hash}: an older copy of its journal took its place."
            )

    def _token_of(self, chain: View) -> str:
        if not self._token:
            self._token = msgspec.json.decode(next(chain.read(limit=1)).payload, type=Created).token or ""
        return self._token

    def _granted(self, standing: EdgeStanding) -> Granted:
        if standing.lease is None:
            raise ConfigError("The service must answer with a lease, but did not.")
        link = None if self._read is None else self._read.link
        granted = standing.lease.read(self.name, link, self.shard, self._key)
        self._lease = granted.lease.number
        return granted

    def _hub(self) -> HubRead:
        self._read = self._ask("GET", "edges", None, HubRead)
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
