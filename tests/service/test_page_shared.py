"""The page of a server that shares its floor: what it says of all servers, it has from where they meet."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from surefoot.service.settings import Settings
from tests.service.page_browser import Tab, browser
from tests.service.servers import POLICY, running
from tests.service.test_shards import settings_of, visits

ANSWER = "document.getElementById('answer').textContent"
VERDICT = "document.getElementById('verdict').textContent"
SHOP = "/v1/experiments/shop"


@pytest.fixture
def tab() -> Iterator[Tab]:
    with browser() as chrome, chrome.tab() as found:
        found.size(1280, 900)
        yield found


def test_sums_of_a_lease_are_not_taken_for_those_of_all_servers(tab: Tab, tmp_path: Path, url: str) -> None:
    with ExitStack() as servers:
        one, two = (servers.enter_context(running(settings_of(tmp_path, url, shard))) for shard in ("berlin", "lima"))
        first, second = (httpx.Client(base_url=address, timeout=60, trust_env=False) for address in (one, two))
        body = {"name": "shop", "settings": {**POLICY, "noise": 0.05}, "mode": "guarded", "ledger": "sharded"}
        assert first.post("/v1/experiments", json=body).status_code == 201
        for turn in range(5):
            for n, client in enumerate((first, second)):
                visits(client, f"{turn}.{n}", 15)
        summary, shared = first.get(SHOP).json(), first.get(f"{SHOP}/shards").json()["hub"]
        # What the server counts begins with its newest lease, so that it lies far below what is guaranteed of all.
        assert shared["lift"]["decisions"] > (summary["lift"] or {"decisions": 0})["decisions"]
        tab.open(f"{one}#/shop")
        tab.wait(f"({ANSWER}).includes('a decision of the learner, on all servers, earns')")
        assert "Shown since" not in tab.run(ANSWER)
        assert tab.run(VERDICT).startswith("All servers together have earned at least the floor, 90% of what")
        assert "more under its lease." in tab.run(VERDICT)
        tab.wait("document.querySelectorAll('#chart .line.guaranteed').length > 0")
        assert (
            tab.run("document.querySelectorAll('#chart .estimated, #chart .baseline, #chart .uncertain').length") == 0
        )
        assert tab.run("document.getElementById('views').hidden")
        assert "What this server may still lose, by its lease" in tab.text()
        assert "Left of this lease" in tab.run("document.getElementById('tiles').textContent")
        tab.run("document.getElementById('look').focus()")
        tab.press("Home", 36)
        tab.wait(f"({ANSWER}).includes('what all servers together had earned then is not kept')")
        for client in (first, second):
            client.close()
    assert tab.complaints == []


def test_an_own_experiment_beside_it_has_its_sums(tab: Tab, tmp_path: Path, url: str) -> None:
    settings = Settings(database=str(tmp_path / "own.db"), hub=str(tmp_path / "hub.db"), shard="berlin")
    with running(settings) as address, httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        client.post(
            "/v1/experiments", json={"name": "other", "settings": POLICY, "ledger": "sharded"}
        ).raise_for_status()
        client.post("/v1/experiments", json={"name": "shop", "settings": POLICY, "mode": "guarded"}).raise_for_status()
        visits(client, "v", 5)
        tab.open(f"{address}#/other")
        tab.wait("document.getElementById('name')?.textContent === 'other'")
        tab.run("location.hash = '#/shop'")
        tab.wait("document.querySelectorAll('#chart .line.estimated').length > 0")
        assert not tab.run("document.getElementById('views').hidden")
        assert "All servers" not in tab.text()
    assert tab.complaints == []
