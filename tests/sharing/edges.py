"""A server that leases to edges, and edges: experiments on file journals, in worlds whose truth is known."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np

from surefoot.audit import SharedReport, audit_shards
from surefoot.client.remote_hub import RemoteHub
from surefoot.experiment import Experiment
from surefoot.experiment.edge_upload import UploadedEvent
from surefoot.journal import Event, open_journal
from surefoot.journal.events import START, next_event
from surefoot.rounds.events import edge_chain
from surefoot.service.settings import Settings
from tests.journal import killing
from tests.service.servers import POLICY
from tests.sharing.experiments import GUARD

ROWS = np.array([[0.6, 0.1], [0.9, 0.2], [0.3, 0.4]])
MEANS = np.array([0.52, 0.8, 0.4])
POLICIES: dict[str, tuple[str, dict[str, Any]]] = {
    "rows": ("SafeLUCB", {**POLICY, "noise": 0.05}),
    "pair": ("Guard", GUARD),
}


def new_keys(folder: Path, name: str = "head") -> None:
    """A private and a public key, in files."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, plain = Ed25519PrivateKey.generate(), forms.NoEncryption()
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, plain)
    public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.key").touch(0o600)
    (folder / f"{name}.key").write_bytes(private)
    (folder / f"{name}.pub").write_bytes(public)


def options_of(folder: Path) -> dict[str, Any]:
    """A server that is a shard on a hub of its own, and signs leases."""
    return {
        "database": str(folder / "own.db"), "hub": str(folder / "hub.db"), "shard": "server", "window_seconds": 0.05,
        "signing_key": str(folder / "head.key"), "lease_seconds": 0.05,
    }  # fmt: skip


def environment_of(folder: Path, **extra: Any) -> dict[str, str]:
    """The same for a server in a process of its own."""
    options = {**options_of(folder), **extra}
    return os.environ | {f"SUREFOOT_{name.upper()}": str(value) for name, value in options.items()}


def settings_of(folder: Path, **extra: Any) -> Settings:
    return Settings(**{**options_of(folder), **extra})


class Way(httpx.HTTPTransport):
    """The way to the service, which can be cut, before it or behind it; `change` may alter what is sent."""

    is_cut = loses_answers = False
    change: Callable[[dict[str, Any]], dict[str, Any]] | None = None

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_cut:
            raise httpx.ConnectError("cut")
        if self.change is not None and request.method == "POST":
            body = msgspec.json.encode(self.change(msgspec.json.decode(request.read())))
            headers = {"content-type": "application/json"}
            request = httpx.Request("POST", request.url, headers=headers, content=body)
        answer = super().handle_request(request)
        if self.loses_answers:
            answer.read()
            raise httpx.ReadError("the answer was lost")
        return answer


class Shop:
    """An experiment on a running server, and a folder for the journals of its edges."""

    def __init__(self, address: str, keys: Path, folder: Path, name: str = "shop", kind: str = "rows") -> None:
        self.address, self.keys, self.folder, self.name, self.kind = address, keys, folder, name, kind

    def create(self, **extra: Any) -> None:
        policy, settings = POLICIES[self.kind]
        body: dict[str, Any] = {"name": self.name, "policy": policy}
        body["settings"] = {**settings, **extra.pop("settings", {})}
        # A busy machine is no wrong clock.
        body |= {"mode": "guarded", "ledger": "sharded", "skew": 8.0, **extra}
        answer = self.ask("POST", "/v1/experiments", body)
        assert answer.status_code == 201, answer.text

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return httpx.request(method, self.address + path, json=body, timeout=60, trust_env=False)

    @property
    def shards(self) -> dict[str, Any]:
        told = self.ask("GET", f"/v1/experiments/{self.name}/shards").json()["hub"]
        return {one["name"]: one for one in told["members"]}

    def close(self) -> None:
        """Or its server's shard would renew its lease twenty times a second while other tests run."""
        self.ask("POST", f"/v1/experiments/{self.name}/shards/server/departure")

    def hub(self, transport: httpx.BaseTransport | None = None, key: Path | None = None) -> RemoteHub:
        return RemoteHub(self.address, key=key or self.keys / "head.pub", transport=transport)

    def journal_of(self, shard: str) -> Path:
        return self.folder / f"{shard}.log"

    def opened(self, shard: str = "till", *, path: Path | None = None, way: Any = None, **extra: Any) -> Any:
        """An edge, which renews its lease when it is told to."""
        told: dict[str, Any] = {"every": 10**6, "seconds": 1e6, "in_background": False, **extra}
        journal = open_journal(f"file:{path or self.journal_of(shard)}", sync=told.pop("sync", False))
        hub = self.hub(way, told.pop("key", None))
        try:
            return Experiment.join(hub, self.name, journal, shard=shard, **told)
        except BaseException:
            hub.close()
            journal.close()
            raise

    @contextmanager
    def edge(self, shard: str = "till", **extra: Any) -> Iterator[Any]:
        edge = self.opened(shard, **extra)
        try:
            yield edge
        finally:
            close(edge)

    def uploaded(self, edge: Experiment) -> list[UploadedEvent]:
        """Every event of an edge's chain, as it is sent."""
        return [UploadedEvent(one.kind, one.key, one.time, one.payload) for one in chain_of(edge)]

    def upload(self, edge: Experiment, uploaded: list[UploadedEvent], **extra: Any) -> httpx.Response:
        """Send events past the client."""
        state: Any = edge.known_state
        lease = state.shard.lease
        body = {"token": state.shard.token, "lease": lease.number, "proof": lease.proof, "sent": time.time()}
        body |= {"events": msgspec.msgpack.encode(uploaded), **extra}
        path = f"{self.address}/v1/experiments/{self.name}/edges/{state.shard.shard}/events"
        headers = {"content-type": "application/json"}
        return httpx.post(path, content=msgspec.json.encode(body), headers=headers, timeout=60, trust_env=False)

    def audit(self) -> SharedReport:
        """Over all chains, while the server is running."""
        for _ in range(5):  # the server's own goes on meanwhile: one may be read just before the other
            report = self.audit_of(self.keys)
            if report.is_clean:
                break
        return report

    def audit_of(self, folder: Path) -> SharedReport:
        with (
            open_journal(str(folder / "hub.db"), read_only=True) as hub,
            open_journal(str(folder / "own.db"), read_only=True) as own,
        ):
            return audit_shards(hub, self.name, {"server": own})

    def chain(self, shard: str = "till") -> list[Event]:
        """An edge's chain, as the hub has it."""
        with open_journal(str(self.keys / "hub.db"), read_only=True) as hub:
            return list(hub.view(edge_chain(self.name, shard)).read())


def chain_of(edge: Experiment) -> list[Event]:
    return list(edge.journal.view(edge.name).read())


def rechained(name: str, uploaded: list[UploadedEvent]) -> list[Event]:
    """Events with the hashes that follow from them."""
    head, chain = START, []
    for one in uploaded:
        event = next_event(name, head, kind=one.kind, payload=one.payload, time=one.time, key=one.key)
        head = event.head
        chain.append(event)
    return chain


def lease_of(edge: Experiment) -> Any:
    return edge.look(lambda state: state.shard.lease)  # type: ignore[union-attr]


def visit(edge: Experiment, **extra: Any) -> Any:
    """One decision, of either kind."""
    if edge.kind.draws:
        return edge.decide(**{"baseline": "old", "proposal": "new", **extra})
    return edge.decide(**{"features": ROWS, "baseline": 0, **extra})


def reward_of(edge: Experiment, answer: Any) -> float:
    if edge.kind.draws:
        return 0.9 if answer.source == "learner" else 0.5
    return float(MEANS[answer.action])


def play(edge: Experiment, rounds: int) -> int:
    """Decide and reward; how many were the learner's."""
    learner = 0
    for _ in range(rounds):
        answer = visit(edge)
        learner += answer.source == "learner"
        assert edge.reward(answer.decision_id, reward_of(edge, answer)).is_accepted
    return learner


def lets_the_learner_play(edge: Experiment) -> bool:
    """Whether the learner plays in one of 200 rounds: at a guard's least share of 0.1 it does but once in 10^9."""
    return any(play(edge, 1) for _ in range(200))


def merged(*edges: Experiment) -> None:
    """Renew until all that was decided is merged: the server must have handed in, too."""
    deadline = time.monotonic() + 60.0
    while any(lease_of(edge).merged < edge.status().rounds for edge in edges):
        assert time.monotonic() < deadline
        for edge in edges:
            edge.leases.renew()  # type: ignore[union-attr]
        time.sleep(0.02)


def warmed(edge: Experiment) -> None:
    """140 rounds, after which the learner plays all; of a guard most."""
    play(edge, 120)
    merged(edge)
    learner = play(edge, 20)
    assert learner == 20 or edge.kind.draws


def close(edge: Any) -> None:
    edge.leases.hub.close()
    edge.journal.close()


def crash(edge: Any) -> None:
    """As if the process had ended: nothing is flushed, and the lock is gone."""
    edge.leases.hub.close()
    killing.crash(edge.journal)
