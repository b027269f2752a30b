"""The page says who did what, gives the newest receipt, and names the runbook's line of every alarm."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.page_browser import Browser, Tab, browser
from tests.service.servers import ACTIONS, create, running

SHOP = "/v1/experiments/shop"
RUNBOOK = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def tab(chrome: Browser) -> Iterator[Tab]:
    with chrome.tab() as found:
        found.size(1280, 900)
        yield found


def story(client: httpx.Client) -> None:
    """What an operator may come to see: a pause, an erasure, an alarm, and rewards that nobody knows of."""
    create(client, reward_bounds=[0, 1], description="Which banner a visitor sees.")
    for n in range(4):
        client.post(f"{SHOP}/decisions", json={"decision_id": f"v{n}", "actions": ACTIONS})
    client.put(f"{SHOP}/mode", json={"mode": "paused", "reason": "the till is being mended"})
    client.post(f"{SHOP}/decisions/v0/void", json={"action": "red", "reason": "sold out"})
    client.post(f"{SHOP}/erasures", json={"decision_ids": ["v3"], "reason": "asked by letter"})
    client.post(f"{SHOP}/decisions/v1/reward", json={"value": 7})
    client.post(f"{SHOP}/decisions/nobody/reward", json={"value": 1})


def test_changes_are_told_newest_first_with_their_authors(client: httpx.Client) -> None:
    create(client, "changed")
    client.put("/v1/experiments/changed/mode", json={"mode": "paused", "reason": "a look"})
    found = client.get("/v1/experiments/changed/changes").json()["changes"]
    assert [(one["kind"], one["reason"]) for one in found] == [("mode", "a look"), ("created", "")]
    assert found[0]["text"] == "Mode changed to paused."
    assert len(client.get("/v1/experiments/changed/changes?limit=1").json()["changes"]) == 1
    forked = {"name": "changed-2", "reason": "another look"}
    assert client.post("/v1/experiments/changed/forks", json=forked).status_code == 201
    (first,) = client.get("/v1/experiments/changed-2/changes").json()["changes"]
    assert (first["text"], first["reason"]) == ("Forked from changed, with 0 of its rounds.", "another look")


def test_every_alarm_has_its_line_in_the_runbook() -> None:
    from surefoot.service import alarms

    named = set(re.findall(r'"(Surefoot\w+)"', Path(alarms.__file__).read_text()))
    assert len(named) >= 4
    assert {name for name in named if f"### {name}\n" in RUNBOOK} == named


@pytest.mark.parametrize("width", [1280, 360])
def test_the_page_shows_who_did_what_and_the_receipt(tab: Tab, tmp_path: Path, width: int) -> None:
    file = TokenFile(tmp_path / "tokens")
    secret = file.create(["admin"], owner="Ada Lovelace")
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        client.headers["authorization"] = f"Bearer {secret}"
        story(client)
        tab.size(width, 800)
        tab.open(address)
        tab.wait("document.getElementById('token-dialog').open")
        tab.run("document.getElementById('token').focus()")
        tab.type(secret)
        tab.press("Enter", 13)
        tab.wait("document.querySelectorAll('#changes li').length >= 4")
        text = tab.run("document.getElementById('changes').textContent")
        for word in (
            "Mode changed to paused.",
            "the till is being mended",
            "Private texts erased: 1.",
            "Ada Lovelace (",
        ):
            assert word in text
        head = client.get(f"{SHOP}/head").json()
        tab.wait(f"document.getElementById('receipt-hash').textContent === '{head['hash']}'")
        assert tab.run("document.getElementById('receipt-number').textContent") == str(head["number"])
        alarms = tab.run("document.getElementById('alarms').textContent")
        assert "SurefootAlarm in the runbook" in alarms
        assert "SurefootRewardsRefused in the runbook" in alarms
        for theme in ("light", "dark"):
            tab.theme(theme)
            assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
            tab.shoot(tmp_path / f"changes-{width}-{theme}.png")
        assert [said for said in tab.complaints if "401" not in said] == [], "but that a token was asked for"
