"""Servers that share a floor: each decides by itself, into its own journal, and they meet on one PostgreSQL."""

import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.audit import audit_shards
from surefoot.errors import ConfigError, JournalUnavailableError
from surefoot.journal import open_journal
from surefoot.service.settings import Settings, load
from surefoot.sharing.hub import Hub
from tests.journal.servers import PostgresServer, new_database
from tests.service.page_browser import browser
from tests.service.servers import POLICY, running
from tests.sharing.edges import new_keys

ACTIONS = [{"id": "blue", "features": [0.6, 0.1]}, {"id": "red", "features": [0.9, 0.2]}]


@pytest.fixture(scope="module")
def hub(server: PostgresServer) -> str:
    return new_database(server)


def settings_of(folder: Path, hub: str, shard: str) -> Settings:
    return Settings(database=str(folder / f"{shard}.db"), hub=hub, shard=shard, lease_decisions=20, window_seconds=0.05)


def visits(client: httpx.Client, prefix: str, count: int) -> int:
    learner = 0
    for n in range(count):
        asked: dict[str, Any] = {"actions": ACTIONS, "baseline": "blue", "decision_id": f"{prefix}-{n}"}
        made = client.post("/v1/experiments/shop/decisions", json=asked)
        assert made.status_code == 201, made.text
        learner += made.json()["source"] == "learner"
        value = 0.8 if made.json()["action_id"] == "red" else 0.52
        paid = client.post(f"/v1/experiments/shop/decisions/{prefix}-{n}/reward", json={"value": value})
        assert paid.status_code == 200, paid.text
    return learner


def test_two_servers_share_a_floor_and_the_audit_is_clean(hub: str, tmp_path: Path) -> None:
    berlin, lima = (settings_of(tmp_path, hub, shard) for shard in ("berlin", "lima"))
    with running(berlin) as one, running(lima) as two:
        first, second = (httpx.Client(base_url=address, timeout=60, trust_env=False) for address in (one, two))
        body = {"name": "shop", "settings": {**POLICY, "noise": 0.05}, "mode": "guarded", "ledger": "sharded"}
        assert first.post("/v1/experiments", json=body).status_code == 201
        both = list(enumerate((first, second)))
        learner = sum(visits(client, f"{turn}.{n}", 15) for turn in range(6) for n, client in both)
        found = second.get("/v1/experiments/shop/shards").json()["hub"]
        listed = second.get("/v1/experiments").json()
        metrics = second.get("/metrics").status_code
        for client in (first, second):
            client.close()
    assert learner > 30
    assert metrics == 200
    assert [one["name"] for one in listed["experiments"]] == ["shop"]
    assert found["shard"] == "lima"
    check_amounts(found)
    assert all(one["amounts"]["reward"] > 0 for one in found["members"])
    with open_journal(hub) as place:
        journals = {told.shard or "": open_journal(told.database) for told in (berlin, lima)}
        report = audit_shards(place, "shop", journals)
        for journal in journals.values():
            journal.close()
    assert report.is_clean
    assert sum(one.tally.decisions for one in report.shards.values()) == 180


def check_amounts(hub: dict[str, Any]) -> None:
    """What is leased is what the shards may lose, and no more than there is."""
    assert [one["name"] for one in hub["members"]] == ["berlin", "lima"]
    assert 0 < hub["leased"]["reward"] <= hub["pots"]["reward"]
    assert hub["leased"]["reward"] == pytest.approx(sum(one["amounts"]["reward"] for one in hub["members"]))


def guarded_visits(client: httpx.Client, prefix: str, count: int) -> int:
    learner = 0
    for n in range(count):
        asked = {"baseline": "old", "proposal": {"model": "new"}, "decision_id": f"{prefix}-{n}"}
        made = client.post("/v1/experiments/models/decisions", json=asked)
        assert made.status_code == 201, made.text
        learner += made.json()["source"] == "learner"
        paid = client.post(f"/v1/experiments/models/decisions/{prefix}-{n}/reward", json={"value": 0.75})
        assert paid.status_code == 200, paid.text
    return learner


def test_two_servers_share_the_bank_of_a_guard_and_a_pause(hub: str, tmp_path: Path) -> None:
    berlin, lima = (settings_of(tmp_path, hub, shard) for shard in ("berlin", "lima"))
    with running(berlin) as one, running(lima) as two:
        first, second = (httpx.Client(base_url=address, timeout=60, trust_env=False) for address in (one, two))
        told = {"alpha": 0.1, "delta": 0.05, "reserve": 10.0, "ramp": "gate", "reward_bounds": [0.0, 2.0]}
        body = {"name": "models", "policy": "Guard", "settings": told, "mode": "guarded", "ledger": "sharded"}
        refused = first.post("/v1/experiments", json={**body, "settings": {**told, "promise": "played"}})
        assert refused.status_code == 422
        assert "mean" in refused.text
        assert first.post("/v1/experiments", json=body).status_code == 201
        learner = sum(guarded_visits(client, f"{n}", 25) for n, client in enumerate((first, second)))
        found = second.get("/v1/experiments/models/shards").json()["hub"]
        summary = second.get("/v1/experiments/models").json()
        paused = first.put("/v1/experiments/models/mode", json={"mode": "paused", "reason": "a trial"})
        assert paused.status_code == 200, paused.text
        assert guarded_visits(first, "held", 5) == 0
        until = time.monotonic() + 30
        while second.get("/v1/experiments/models").json()["mode"] != "paused":  # a second, by the lease's length
            assert time.monotonic() < until
            time.sleep(0.05)
        assert guarded_visits(second, "held", 5) == 0
        edge = first.post("/v1/experiments/models/edges", json={"shard": "till", "token": "ab" * 16})
        assert edge.status_code == 422
        assert "signing_key" in edge.text
        for client in (first, second):
            client.close()
    assert learner > 5
    assert (summary["rounds"], summary["guard"]["binds"]) == (25, "reward")
    check_amounts(found)
    with open_journal(hub) as place:
        journals = {told.shard or "": open_journal(told.database) for told in (berlin, lima)}
        report = audit_shards(place, "models", journals)
        for journal in journals.values():
            journal.close()
    assert report.is_clean
    assert sum(one.tally.decisions for one in report.shards.values()) == 60


def away(*_: Any) -> None:
    """In place of what the hub answers."""
    raise JournalUnavailableError("The server must answer, but does not.")


def test_the_page_shows_who_shares_the_floor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_keys(tmp_path)
    settings = Settings(
        database=str(tmp_path / "own.db"),
        hub=str(tmp_path / "hub.db"),
        shard="berlin",
        window_seconds=0.1,
        signing_key=str(tmp_path / "head.key"),
    )
    told = {**POLICY, "constraint": {"name": "reserve", "granted": 10.0}}
    body = {"name": "shop", "settings": told, "ledger": "sharded"}
    with browser() as chrome, running(settings) as address, httpx.Client(base_url=address, trust_env=False) as client:
        assert client.post("/v1/experiments", json=body).status_code == 201
        client.post("/v1/experiments", json={"name": "alone", "settings": POLICY}).raise_for_status()
        visits(client, "v", 3)
        with chrome.tab() as tab:
            tab.size(1280, 900)
            tab.open(f"{address}#/shop")
            tab.wait("document.querySelectorAll('#shards dt').length === 1")
            assert "is leased of 10" in tab.text()
            assert "This server is berlin" in tab.text()
            assert "may lose 8 under lease" in tab.text()
            verdict = tab.run("document.getElementById('verdict').textContent")
            assert "the floor, 90% of what the baseline would have earned, less the 10 of the reserve" in verdict
            assert "skew 1" in tab.text()
            joined = client.post("/v1/experiments/shop/edges", json={"shard": "gone", "token": "ab" * 16})
            assert joined.status_code == 201, joined.text
            tab.wait("document.querySelectorAll('#shards dt').length === 2")
            tab.run("document.querySelector('#shards button').click()")
            tab.wait("document.getElementById('confirm-dialog').open")
            assert "Its lease stays charged" in tab.text()
            tab.run("document.getElementById('confirm-reason').value = 'its machine is gone'")
            tab.run("document.getElementById('confirm').click()")
            tab.wait("document.querySelector('#shards dt .quiet') !== null")
            assert "gone away: nobody waits for it" in tab.text()
            assert "its machine is gone unattributed" in tab.text()
            assert tab.run("document.querySelectorAll('#shards button').length") == 0
            assert tab.run("document.getElementById('shards-error').hidden")
            with monkeypatch.context() as patched:
                patched.setattr(Hub, "prepare", away)
                tab.open(f"{address}#/shop")
                tab.wait("!document.getElementById('shards-error').hidden")
                assert "The lease of this server was not renewed: The server must answer, but does not." in tab.text()
            metrics = {
                "revenue": {"kind": "floor", "low": 0.0, "high": 2.0, "alpha": 0.1, "reserve": 10.0},
                "cost": {"kind": "ceiling", "low": 0.1, "high": 1.0, "alpha": 0.1, "reserve": 5.0},
            }
            guard = {"name": "models", "policy": "Guard", "settings": {"delta": 0.1, "metrics": metrics}}
            client.post("/v1/experiments", json={**guard, "ledger": "sharded"}).raise_for_status()
            tab.open(f"{address}#/models")
            tab.wait("document.getElementById('name').textContent === 'models'")
            tab.wait("document.getElementById('shards').textContent.includes('may lose 4 cost and 8 revenue')")
            assert "4 is leased of 5 cost, and 8 is leased of 10 revenue that may be lost in all" in tab.text()
            with monkeypatch.context() as patched:
                patched.setattr(Hub, "look", away)
                tab.wait("document.getElementById('shards-note').textContent.includes('The hub does not answer')")
                assert "may lose 4 cost and 8 revenue" in tab.text()
                tab.open(f"{address}#/shop")
                tab.wait("document.getElementById('name').textContent === 'shop'")
                tab.wait("document.getElementById('shards').textContent.includes('may lose 8 under lease')")
            tab.open(f"{address}#/alone")
            tab.wait("document.getElementById('name').textContent === 'alone'")
            tab.wait("document.getElementById('shards-panel').hidden")
            assert tab.complaints == []


def test_a_server_that_is_no_shard_says_so(tmp_path: Path) -> None:
    with running(Settings(database=str(tmp_path / "own.db"))) as address, httpx.Client(trust_env=False) as client:
        body = {"name": "shop", "settings": POLICY, "ledger": "sharded"}
        refused = client.post(f"{address}/v1/experiments", json=body)
        assert refused.status_code == 422
        assert "hub" in refused.text
        assert client.get(f"{address}/v1/experiments").json()["experiments"] == []


def test_a_shard_needs_a_hub_and_a_hub_a_name() -> None:
    for given in ({"hub": "memory:"}, {"shard": "berlin"}):
        with pytest.raises(ConfigError, match="together"):
            load(given=given).check()
    shown = Settings(hub="postgresql://me:secret@host/db", shard="a").shown()
    assert "secret" not in str(shown)


def test_an_admin_stops_waiting_for_a_shard_and_a_server_leaves(hub: str, tmp_path: Path) -> None:
    berlin, lima = (settings_of(tmp_path, hub, shard) for shard in ("berlin", "lima"))
    name = "/v1/experiments/left"
    with running(berlin) as one, httpx.Client(base_url=one, timeout=60, trust_env=False) as first:
        told = {**POLICY, "noise": 0.05, "constraint": {"name": "reserve", "granted": 10.0}}
        body = {"name": "left", "settings": told, "mode": "guarded", "ledger": "sharded"}
        assert first.post("/v1/experiments", json=body).status_code == 201
        with running(lima) as two, httpx.Client(base_url=two, timeout=60, trust_env=False) as second:
            asked: dict[str, Any] = {"actions": ACTIONS, "baseline": "blue", "decision_id": "open"}
            assert second.post(f"{name}/decisions", json=asked).status_code == 201
            open_ = second.post(f"{name}/shards/lima/departure")
            assert (open_.status_code, open_.json()["type"]) == (409, "/problems/rounds-open")
            assert "settled" in open_.json()["detail"]
        for wrong, text in (("", "reason"), ("   ", "reason")):
            refused = first.post(f"{name}/shards/lima/loss", json={"reason": wrong})
            assert refused.status_code in (400, 422)
            assert text in refused.text
        assert first.post(f"{name}/shards/nobody/loss", json={"reason": "gone"}).status_code == 422
        lost = first.post(f"{name}/shards/lima/loss", json={"reason": "its machine is gone"})
        assert lost.status_code == 200, lost.text
        away = {one["name"]: (one["is_away"], one["amounts"]["reward"] > 0) for one in lost.json()["hub"]["members"]}
        assert away == {"berlin": (False, True), "lima": (True, True)}
        other = first.post(f"{name}/shards/lima/departure")
        assert other.status_code == 422
        assert "Ask that one" in other.json()["detail"]
        left = first.post(f"{name}/shards/berlin/departure")
        assert left.status_code == 200, left.text
        members = left.json()["hub"]["members"]
        assert {shard["name"]: shard["amounts"]["reward"] for shard in members}["berlin"] == 0.0
        reasons = {shard["name"]: (shard["is_away"], shard["lost"]) for shard in members}
        assert reasons == {"berlin": (True, None), "lima": (True, "its machine is gone")}
        made = first.post(f"{name}/decisions", json={"actions": ACTIONS, "baseline": "blue"})
        assert made.json()["source"] == "baseline"
        notes = first.post("/v1/experiments", json={"name": "one", "settings": POLICY})
        assert notes.status_code == 201
        assert first.post("/v1/experiments/one/shards/x/loss", json={"reason": "gone"}).status_code == 409
    with open_journal(hub) as place:
        journals = {told.shard or "": open_journal(told.database) for told in (berlin, lima)}
        report = audit_shards(place, "left", journals)
        for journal in journals.values():
            journal.close()
    assert report.is_clean


@pytest.mark.parametrize("is_guard", [False, True], ids=["floor", "bank"])
def test_a_server_that_does_not_reach_the_hub_says_why_and_what_it_is_leased(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_guard: bool
) -> None:
    settings = settings_of(tmp_path, str(tmp_path / "hub.db"), "berlin")
    body: dict[str, Any] = {"name": "shop", "mode": "guarded", "ledger": "sharded"}
    if is_guard:
        told = {"alpha": 0.1, "delta": 0.05, "reserve": 10.0, "reward_bounds": [0.0, 2.0]}
        body |= {"policy": "Guard", "settings": told}
    else:
        body |= {"settings": {**POLICY, "constraint": {"name": "reserve", "granted": 10.0}}}

    with running(settings) as address, httpx.Client(base_url=address, trust_env=False) as client:
        client.post("/v1/experiments", json=body).raise_for_status()
        before = client.get("/v1/experiments/shop/shards").json()["hub"]
        monkeypatch.setattr(Hub, "look", away)
        found = client.get("/v1/experiments/shop/shards")
        assert found.status_code == 200, found.text
        alone = found.json()["hub"]
    assert "must answer" in alone["error"]
    assert (alone["shard"], alone["pots"], alone["leased"]) == ("berlin", {}, {})
    (own,) = alone["members"]
    (known,) = before["members"]
    assert {**own, "through": known["through"]} == known
    assert own["amounts"]["reward"] > 0
