"""Personalizer's deferred events never move a round that was decided, and shown, before."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from tests.service.servers import POLICY, create, running

BASE = "/v1/experiments/shop/personalizer/v1.0"
ACTIONS = [{"id": "a", "features": [{"x": 1}]}, {"id": "b", "features": [{"x": 2}]}]
# Half of the baseline may be lost, and nothing is below zero: the learner plays within a few rounds.
BOLD: dict[str, Any] = {**POLICY, "dim": 16, "alpha": 0.5, "delta": 0.1, "noise": 0.05}


def rank(client: httpx.Client, event: str, **more: Any) -> httpx.Response:
    return client.post(f"{BASE}/rank", json={"eventId": event, "contextFeatures": [], "actions": ACTIONS, **more})


def shown(client: httpx.Client, first: str) -> str:
    """The first event for which the learner's action is shown; before each, the request `first`, if any."""
    for n in range(600):
        if first == "deferred":
            rank(client, f"e{n}", deferActivation=True)
        if rank(client, f"e{n}").json()["rewardActionId"] == "b":
            return f"e{n}"
        client.post(f"{BASE}/events/e{n}/reward", json={"value": 0.9})
    raise AssertionError("the learner never played")


@pytest.mark.parametrize("first", ["deferred", "active"])
def test_what_was_shown_stays_what_was_shown(first: str, tmp_path: Path) -> None:
    database = str(tmp_path / "shop.journal")
    with (
        running(Settings(database=database)) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        create(client, settings=BOLD)
        event = shown(client, first)
        if first == "active":
            again = rank(client, event, deferActivation=True)
            assert (again.status_code, again.json()["type"]) == (409, "/problems/decision-conflict")
        assert client.post(f"{BASE}/events/{event}/activate").status_code == 204
    with open_journal(database, read_only=True) as journal:
        assert [one.kind for one in journal.read("shop") if one.kind == "voided"] == []
