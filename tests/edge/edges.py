"""Keys, servers and visits for the tests of edges."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np

from surefoot.edge import Edge
from surefoot.service.settings import Settings
from tests.service.servers import POLICY

ROWS = np.array([[0.6, 0.1], [0.9, 0.2], [0.3, 0.4]])
MEANS = np.array([0.52, 0.8, 0.4])
NAMES = ("blue", "red", "green")
ACTIONS = {name: row.tolist() for name, row in zip(NAMES, ROWS, strict=True)}


def new_keys(folder: Path, name: str = "head") -> tuple[Path, Path]:
    """A private and a public key, in files."""
    from cryptography.hazmat.primitives import serialization as forms
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key, private, public = Ed25519PrivateKey.generate(), folder / f"{name}.key", folder / f"{name}.pub"
    private.write_bytes(key.private_bytes(forms.Encoding.PEM, forms.PrivateFormat.PKCS8, forms.NoEncryption()))
    told = forms.Encoding.PEM, forms.PublicFormat.SubjectPublicKeyInfo
    public.write_bytes(key.public_key().public_bytes(*told))
    return private, public


def settings_of(folder: Path, **extra: Any) -> Settings:
    """A server that is a shard on a hub of its own, and signs leases."""
    told: dict[str, Any] = {
        "database": str(folder / "own.db"), "hub": str(folder / "hub.db"), "shard": "server", "window_seconds": 0.05,
        "signing_key": str(folder / "head.key"), "lease_seconds": 0.05,
    }  # fmt: skip
    return Settings(**{**told, **extra})


def create(address: str, **extra: Any) -> None:
    """The experiment, sharded and guarded."""
    body = {"name": "shop", "settings": {**POLICY, "noise": 0.05}, "mode": "guarded", "ledger": "sharded", **extra}
    answer = httpx.post(f"{address}/v1/experiments", json=body, timeout=60, trust_env=False)
    assert answer.status_code == 201, answer.text


def new_edge(address: str, folder: Path, shard: str = "till", **extra: Any) -> Edge:
    """An edge that renews its lease when it is told to."""
    told: dict[str, Any] = {"log": folder / f"{shard}.log", "key": folder / "head.pub", "in_background": False}
    return Edge(address, shard=shard, **{"experiment": "shop", **told, **extra})


def play(edge: Edge, rounds: int) -> int:
    """Decide and reward; how many were the learner's."""
    learner = 0
    for _ in range(rounds):
        made = edge.decide(ROWS, baseline=0)
        learner += made.source == "learner"
        assert edge.reward(made.decision_id, float(MEANS[made.action])).is_accepted
    return learner
