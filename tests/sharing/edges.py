"""Keys, servers and visits for the tests of edges."""

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import numpy as np

from surefoot.audit import SharedReport, audit_shards
from surefoot.edge import Edge, GuardEdge
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from tests.service.servers import POLICY

ROWS = np.array([[0.6, 0.1], [0.9, 0.2], [0.3, 0.4]])
MEANS = np.array([0.52, 0.8, 0.4])
NAMES = ("blue", "red", "green")
ACTIONS = {name: row.tolist() for name, row in zip(NAMES, ROWS, strict=True)}


def new_keys(folder: Path, name: str = "head") -> None:
    """A private and a public key, in files."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, plain = Ed25519PrivateKey.generate(), forms.NoEncryption()
    private = key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, plain)
    public = key.public_key().public_bytes(forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo)
    (folder / f"{name}.key").write_bytes(private)
    (folder / f"{name}.pub").write_bytes(public)


def options_of(folder: Path) -> dict[str, Any]:
    """A server that is a shard on a hub of its own, and signs leases."""
    return {
        "database": str(folder / "own.db"), "hub": str(folder / "hub.db"), "shard": "server", "window_seconds": 0.05,
        "signing_key": str(folder / "head.key"), "lease_seconds": 0.05,
    }  # fmt: skip


def settings_of(folder: Path, **extra: Any) -> Settings:
    return Settings(**{**options_of(folder), **extra})


def new_edge(address: str, folder: Path, shard: str = "till", **extra: Any) -> Edge:
    """An edge that renews its lease when it is told to."""
    told: dict[str, Any] = {"log": folder / f"{shard}.log", "key": folder / "head.pub", "in_background": False}
    return Edge(address, shard=shard, **{"experiment": "shop", **told, **extra})


@dataclass
class Shop:
    """An experiment on a running server, and a folder for the logs of its edges."""

    address: str
    keys: Path
    folder: Path
    name: str = "shop"

    def create(self, **extra: Any) -> None:
        settings = {**POLICY, "noise": 0.05, **extra.pop("settings", {})}
        body = {"name": self.name, "settings": settings, "mode": "guarded", "ledger": "sharded", **extra}
        assert self.ask("POST", "/v1/experiments", body).status_code == 201

    def edge(self, shard: str = "till", **extra: Any) -> Edge:
        told = {"key": self.keys / "head.pub", "log": self.folder / f"{shard}.log", "experiment": self.name}
        return new_edge(self.address, self.folder, shard, **{**told, **extra})

    def ask(self, method: str, path: str, body: Any = None) -> httpx.Response:
        return httpx.request(method, self.address + path, json=body, timeout=60, trust_env=False)

    def audit(self) -> SharedReport:
        """Over all chains, while the server is running."""
        for _ in range(5):  # the server's own goes on meanwhile: one may be read just before the other
            report = self._audit()
            if report.is_clean:
                break
        return report

    def _audit(self) -> SharedReport:
        with (
            open_journal(str(self.keys / "hub.db"), read_only=True) as hub,
            open_journal(str(self.keys / "own.db"), read_only=True) as own,
        ):
            return audit_shards(hub, self.name, {"server": own})


def play(edge: Edge, rounds: int) -> int:
    """Decide and reward; how many were the learner's."""
    learner = 0
    for _ in range(rounds):
        made = edge.decide(ROWS, baseline=0)
        learner += made.source == "learner"
        assert edge.reward(made.decision_id, float(MEANS[made.action])).is_accepted
    return learner


def warmed(edge: Edge) -> None:
    """140 rounds, after which the learner plays all."""
    play(edge, 120)
    deadline = time.monotonic() + 60.0
    while edge._journal.shard.lease.merged < 120:  # once the server has handed in, too
        assert time.monotonic() < deadline
        edge.renew()
        time.sleep(0.02)
    assert play(edge, 20) == 20


def findings(report: SharedReport) -> list[Any]:
    """All findings, of all chains."""
    return [found for one in (report.hub, *report.shards.values()) for found in one.findings]


def crash(edge: Edge | GuardEdge) -> None:
    """As if the process had ended."""
    os.close(edge._journal._log._file)
    edge._service.close()
