"""The page's list of experiments: what needs somebody is first, and nothing is shown in place of another."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.page_browser import Browser, Tab
from tests.service.servers import ACTIONS, create, running
from tests.service.test_health import damage

LONG = "homepage-banner.winter-campaign.returning-visitors.mobile_app.germany-austria-switzerland"
NAMES = "[...document.querySelectorAll('.card-name')].map((name) => name.textContent)"
NOTHING = "document.getElementById('nothing').textContent"


@pytest.fixture(scope="module")
def many(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server with fifteen experiments: one is damaged, one has an alarm, one a long name."""
    path = tmp_path_factory.mktemp("many") / "shop.journal"
    damage(path, "UPDATE events SET kind = 'unheard of' WHERE number = 2")
    with running(Settings(database=str(path))) as address, httpx.Client(base_url=address, timeout=60) as client:
        for name in [f"ranking-{n:02d}" for n in range(11)] + [LONG, "zoo"]:
            create(client, name, reward_bounds=[0, 1])
        client.post("/v1/experiments/zoo/decisions", json={"decision_id": "a", "actions": ACTIONS}).raise_for_status()
        client.post("/v1/experiments/zoo/decisions/a/reward", json={"value": 7}).raise_for_status()
        yield address


@pytest.mark.parametrize("width", [1280, 360])
def test_what_needs_somebody_is_counted_and_comes_first(tab: Tab, many: str, width: int) -> None:
    tab.size(width, 800)
    tab.open(many)
    tab.wait("document.querySelectorAll('.card').length === 15")
    assert tab.run("document.getElementById('overview').textContent") == "15 experiments, 1 with an alarm, 1 damaged"
    assert tab.run(NAMES)[:2] == ["shop", "zoo"]
    assert tab.run("document.querySelector('.card[aria-current] .card-name').textContent") == "zoo"
    for theme in ("light", "dark"):
        tab.theme(theme)
        assert tab.run("document.documentElement.scrollWidth") <= width
    # A long name takes two lines, and does not draw its neighbours out.
    name = "document.querySelector('.card[href*=homepage] .card-name')"
    lines = tab.run(f"{name}.clientHeight / parseFloat(getComputedStyle({name}).lineHeight)")
    assert lines == pytest.approx(2, abs=0.1)
    gap = "(card) => card.lastChild.offsetTop - card.offsetTop"
    assert max(tab.run(f"[...document.querySelectorAll('.card[href*=ranking]')].map({gap})")) < 70
    assert tab.complaints == []


def test_an_experiment_is_found_by_a_part_of_its_name(tab: Tab, many: str) -> None:
    tab.open(many)
    tab.wait("document.querySelectorAll('.card').length === 15")
    tab.run("document.getElementById('find').focus()")
    tab.type("CAMPAIGN")
    tab.wait("document.querySelectorAll('.card').length === 1")
    assert tab.run(NAMES) == [LONG]
    tab.run("document.querySelector('.card').click()")
    tab.wait(f"document.getElementById('name').textContent === '{LONG}'")
    tab.run("document.getElementById('find').focus()")
    tab.type("-of-mars")
    tab.wait("document.getElementById('experiments').textContent === 'No experiment has that in its name.'")
    assert tab.run("document.activeElement.id") == "find"
    assert tab.complaints == []


def test_an_address_of_what_is_not_there_shows_nothing_else_in_its_place(tab: Tab, many: str) -> None:
    tab.open(f"{many}#/ranking-77")
    tab.wait(f"({NOTHING}).includes('No experiment is called ranking-77 here')")
    assert tab.run("document.getElementById('detail').hidden")
    tab.run("location.hash = '#/shop'")
    tab.wait(f"({NOTHING}).includes('shop is damaged.') && ({NOTHING}).includes('unheard of')")
    tab.run("location.hash = '#/ranking-07'")
    tab.wait("document.getElementById('name').textContent === 'ranking-07'")
    tab.run("document.querySelector('.skip').click()")  # which is an address of its own
    tab.run("new Promise((done) => setTimeout(done, 2500))")
    assert tab.run("document.getElementById('nothing').hidden && !document.getElementById('detail').hidden")
    assert tab.complaints == []


def test_before_the_first_decision_there_is_no_empty_picture(tab: Tab, many: str) -> None:
    tab.open(f"{many}#/ranking-03")
    tab.wait("document.getElementById('name')?.textContent === 'ranking-03'")
    assert tab.run("document.getElementById('picture').hidden && document.getElementById('hold').hidden")
    assert tab.run("document.getElementById('no-decisions').offsetHeight > 0")
    with httpx.Client(base_url=many, timeout=60) as client:
        client.post("/v1/experiments/ranking-03/decisions", json={"actions": ACTIONS}).raise_for_status()
    tab.wait("document.querySelectorAll('#chart .dot').length > 0 && document.getElementById('no-decisions').hidden")
    assert tab.complaints == []


@pytest.mark.parametrize("asks_for_tokens", [False, True])
def test_an_empty_page_leads_to_the_first_experiment(tab: Tab, tmp_path: Path, asks_for_tokens: bool) -> None:
    file = tmp_path / "tokens"
    token = TokenFile(file).create(["admin", "decide", "read"]) if asks_for_tokens else ""
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(file) if asks_for_tokens else None)
    with running(settings) as address:
        tab.open(address)
        if asks_for_tokens:
            tab.wait("document.getElementById('token-dialog').open")
            tab.run(f"document.getElementById('token').value = {token!r}")
            tab.run("document.querySelector('#token-dialog .main').click()")
        tab.wait("!document.getElementById('begin').hidden")
        commands = tab.run("document.getElementById('begin-commands').textContent")
        environment = {"PATH": os.environ["PATH"], "SUREFOOT_TOKEN": token}
        done = subprocess.run(["sh", "-ec", commands], env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert '"value":1.0' in done.stdout, done.stdout
        tab.wait("document.getElementById('name').textContent === 'first'")
        assert tab.run("document.getElementById('begin').hidden")
    assert ("authorization" in commands) == asks_for_tokens
