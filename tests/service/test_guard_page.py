"""The page of a guard in a real browser: verdict, share, banks and lift, in both themes and on a phone."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from surefoot.service.settings import Settings
from tests.service.page_browser import Browser, Tab
from tests.service.servers import create, running
from tests.sharing.experiments import seeded_coins

METRICS = {
    "quality": {"kind": "floor", "low": 0, "high": 1, "alpha": 0.3},
    "cost": {"kind": "ceiling", "low": 0, "high": 2, "alpha": 0.4, "reserve": 9.0},
}
PATH = "/v1/experiments/models"
VERDICT = "document.getElementById('verdict').textContent"
POINTS = "document.querySelector('#chart .line.share').points.length"
NEWEST = "document.querySelector('#decisions li')?.dataset.id"


@pytest.fixture(scope="module")
def models(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A guard with two metrics and some hundred decisions, beside an experiment over features."""
    settings = Settings(database=str(tmp_path_factory.mktemp("guard-page") / "shop.journal"))
    with running(settings) as address, httpx.Client(base_url=address, timeout=300, trust_env=False) as client:
        create(client)
        create(client, "models", policy="Guard", settings={"delta": 0.2, "metrics": METRICS})
        play(client, 150)
        saving = {"delta": 0.2, "goal": "save", "metrics": METRICS}
        with pytest.MonkeyPatch.context() as patch:
            # Coins of the system now and then prove so much of the saving that nothing of what may be spent is.
            seeded_coins(patch, 1)
            create(client, "bill", policy="Guard", settings=saving, reward_unit={"cost": "USD"})
            play(client, 300, "bill")
        yield client


@pytest.fixture
def tab(chrome: Browser, models: httpx.Client) -> Iterator[Tab]:
    with chrome.tab() as found:
        found.size(1280, 900)
        found.open(f"{models.base_url}#/models")
        found.wait(f"{NEWEST} && {VERDICT}")
        yield found
        assert found.complaints == []


def play(client: httpx.Client, rounds: int, name: str = "models") -> dict[str, Any]:
    path, made = f"/v1/experiments/{name}", dict[str, Any]()
    for n in range(rounds):
        proposal = "big" if n % 3 == 0 else {"model": "small"}
        made = client.post(f"{path}/decisions", json={"baseline": "big", "proposal": proposal}).json()
        is_learner = made["source"] == "learner"
        value = {"quality": 0.9 if is_learner else 0.6, "cost": 0.4 if is_learner else 0.8}
        client.post(f"{path}/decisions/{made['decision_id']}/reward", json={"value": value}).raise_for_status()
    return made


def test_everything_that_a_manager_asks_of_a_guard_is_on_the_page(tab: Tab, models: httpx.Client) -> None:
    text, summary = tab.text(), models.get(PATH).json()
    for word in ("quality is at least 70% of the baseline's", "cost is at most 140% of the baseline's", "80% certain"):
        assert word in tab.run(VERDICT)
    for word in (
        "Share of the next decisions",
        "Proved safe up to",
        "quality left to spend",
        "What each metric says",
        "cost.alpha",
    ):
        assert word in text
    assert "Proposal less baseline, per proposal: " in text
    tiles, low = tab.run("document.getElementById('tiles').innerText"), summary["lift"]["low"]
    card = tab.run("document.querySelector('.card[aria-current]').innerText")
    shown = re.search(r"Lift of quality\n(\S+) to \S+\nProposal less baseline, per proposal, 95% sure", tiles)
    assert shown is not None
    assert float(shown[1].replace("−", "-")) == pytest.approx(low, rel=0.02)  # as it is rounded
    proof = summary["proof"]
    pays = "not known yet if it pays" if proof is None else "it pays" if proof["lift"]["low"] > 0 else "it does not pay"
    assert pays in card
    assert f"{summary['learner_rounds']} the learner's, {summary['baseline_rounds']} the baseline's" in text
    share = summary["learner_rounds"] / summary["guard"]["differing_rounds"]
    assert f"since the start, {share:.0%} of where both differ" in tiles
    assert summary["guard"]["differing_rounds"] == pytest.approx(summary["rounds"] * 2 / 3, abs=2)
    numbers = "[...document.querySelectorAll('[data-metric=quality] dd')].map((dd) => dd.textContent)"
    assert tab.run(numbers)[1:] == ["0.6", "0.9"]
    assert tab.run("document.querySelectorAll('.spark .bank').length") == 2
    assert tab.run("document.getElementById('views').hidden")


def test_a_decision_shows_what_was_played_and_what_it_rested_on(tab: Tab) -> None:
    tab.run("document.querySelector('#decisions summary').click()")
    shown = tab.run("document.querySelector('#decisions li').innerText")
    assert "big" in shown or '{"model":"small"}' in shown
    for word in ("Share of the proposal", "Proved safe up to", "Probability of what was played", "Margin"):
        assert word in shown


def test_a_page_with_a_cost_speaks_of_money(tab: Tab, models: httpx.Client) -> None:
    tab.run("location.hash = '#/bill'")
    tab.wait("document.getElementById('name').textContent === 'bill'")
    tab.wait("document.getElementById('tiles').innerText.includes('in 1,000 decisions')")
    status = models.get("/v1/experiments/bill").json()
    cost = status["guard"]["metrics"]["cost"]
    saved = (cost["baseline_mean"] - cost["learner_mean"]) * status["learner_rounds"]
    assert saved > 1.0
    tiles = tab.run("document.getElementById('tiles').innerText")
    assert (
        f"Saved so far\n${saved:,.2f}\n{saved / (cost['baseline_mean'] * status['rounds']):.0%} of today's bill"
        in tiles
    )
    assert f"; ${1000 * saved / status['rounds']:,.2f} in 1,000 decisions" in tiles  # a minute says nothing of a day
    kept = 1 + status["guard"]["metrics"]["quality"]["lift"] * status["learner_rounds"] / status["rounds"]
    assert f"Of quality kept\n{int(100 * kept)}" in tiles
    assert "estimated; 70% is promised" in tiles
    assert re.search(
        r"a proposal .*costs .*\$\d.* (less|more) .* has .*% (less|more) quality",
        tab.run("document.getElementById('answer').innerText"),
    )
    risk = tab.run("document.getElementById('risk').innerText")
    assert "At most 40% plus $9.00 more cost and 30% less quality than today's choice" in risk
    spent = r"Cost: at most \$[\d.]+ more so far, 40% plus the \$9\.00 granted\. At worst \$[\d.]+ is spent"
    assert re.search(spent, risk)
    assert re.search(
        r"cost left to spend\s*(limits the share\s*)?\$", tab.run("document.getElementById('legend').innerText")
    )


def test_the_share_grows_without_reloading_and_can_be_looked_back_at(tab: Tab, models: httpx.Client) -> None:
    points, newest = tab.run(POINTS), play(models, 5)["decision_id"]
    tab.wait(f"{NEWEST} === {newest!r} && {POINTS} > {points}")
    tab.run("document.getElementById('look').focus()")
    tab.press("Home", 36)
    tab.wait("document.querySelector('#chart .cursor') && !document.getElementById('when').textContent.includes('now')")
    tab.wait(f"!document.getElementById('back').hidden && {NEWEST} !== {newest!r}")
    rounds = tab.run("document.getElementById('back-when').textContent").split()[1].rstrip(",")
    assert f"Decisions{rounds}" in tab.run("document.getElementById('tiles').textContent")
    assert tab.run("document.querySelectorAll('.spark .bank')[0].points.length") == 1


def test_the_page_of_the_other_kind_is_as_it_was(tab: Tab, models: httpx.Client) -> None:
    tab.run("location.hash = '#/shop'")
    tab.wait("document.getElementById('beliefs-title').textContent === 'What the learner believes'")
    assert not tab.run("document.getElementById('views').hidden")
    assert tab.run("document.querySelectorAll('.metric').length") == 0


@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_nothing_of_a_guard_scrolls_sideways_in_either_theme(tab: Tab, width: int) -> None:
    tab.size(width, 800)
    tab.wait("document.querySelectorAll('.metric').length === 2")
    wide = "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
    for theme in ("light", "dark"):
        tab.theme(theme)
        assert tab.run("document.documentElement.scrollWidth") <= width
        assert tab.run(f"{wide}.map((e) => e.outerHTML.slice(0, 80))") == []
