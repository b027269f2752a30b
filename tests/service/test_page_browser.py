"""The page in a real browser: it grows by itself, changes modes, and fits both themes and a phone."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.service.demo_shop import CHOICES
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.page_browser import Browser, Tab
from tests.service.servers import ACTIONS, Apart, create, running
from tests.service.test_demo import demo
from tests.service.test_health import damage

POINTS = "(document.querySelector('#chart .line.floor')?.points.length ?? 0)"
NEWEST = "document.querySelector('#decisions li')?.dataset.id"
MODE = "document.getElementById('mode').textContent"
STATE = "document.getElementById('connection').dataset.state"
GUARDED, SHADOW = (choice.name for choice in CHOICES)


@pytest.fixture(scope="module")
def shop(chrome: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The demo, with more visitors than usual; only where there is a browser to look at it."""
    folder = tmp_path_factory.mktemp("demo")
    with demo(folder, "--seconds", "400", "--rate", "50") as (process, address):
        yield address
        process.terminate()
        assert process.wait(60) == 0
    assert list(folder.iterdir()) == []


@pytest.fixture(scope="module")
def script(chrome: Browser, shop: str) -> Iterator[Tab]:
    """A tab in which modules of the page can be called."""
    with chrome.tab() as found:
        found.call("Emulation.setLocaleOverride", locale="en-US")
        yield found.open(shop)


def mode_of(address: str, name: str) -> str:
    return str(httpx.get(f"{address}/v1/experiments/{name}", timeout=60).json()["mode"])


def test_chart_and_decisions_grow_without_reloading(tab: Tab, shop: str) -> None:
    tab.open(shop)
    tab.run("window.isTheSamePage = true")
    points, newest = tab.wait(POINTS), tab.wait(NEWEST)
    tab.wait(f"{POINTS} > {points} + 2 && {NEWEST} !== {newest!r}")
    assert tab.run("window.isTheSamePage")
    assert tab.run(STATE) == "live"
    tab.wait("document.querySelectorAll('#chart .margin').length > 0")
    tab.wait("document.querySelectorAll('#decisions li').length === 12")
    sentences = tab.run("[...document.querySelectorAll('.why')].map((why) => why.textContent)")
    assert all(sentence.startswith(("Played the learner: ", "Played the baseline: ")) for sentence in sentences)
    assert all(" the floor" in sentence for sentence in sentences)
    assert tab.complaints == []


def test_everything_that_a_manager_asks_for_is_on_the_page(tab: Tab, shop: str) -> None:
    tab.open(f"{shop}/#/{GUARDED}")
    tab.wait("document.querySelectorAll('.belief').length === 8")
    tab.wait("document.querySelectorAll('#assumptions dt').length > 5")
    text = tab.text()
    for word in ("Does it pay?", "What is at risk?", "10% of what today's choice would have earned so far"):
        assert word in text
    why = tab.run("document.getElementById('verdict').textContent")
    assert "of what the baseline would have earned" in why or "Only the baseline has played so far" in why
    for word in (
        "Proved above the floor",
        "With the learner",
        "Rewards pending",
        "95% sure",
        "At least this, proved",
        "Estimated",
        "reward_window 1.5",
        GUARDED,
        SHADOW,
    ):
        assert word in text
    assert tab.complaints == []


def test_looking_back_by_keyboard_shows_an_earlier_decision(tab: Tab, shop: str) -> None:
    tab.open(shop)
    tab.wait(f"{POINTS} > 4")
    tab.run("document.getElementById('look').focus()")
    tab.press("Home", 36)
    tab.wait("document.querySelector('#chart .cursor') && !document.getElementById('when').textContent.includes('now')")
    tab.press("End", 35)
    tab.wait("document.getElementById('when').textContent.endsWith('now')")
    assert tab.complaints == []


BACK = "((look) => ((look.value = 3), look.dispatchEvent(new Event('input'))))(document.getElementById('look'))"
SHOWN = ("#answer", "#risk", "#verdict", "#tiles", "#decisions", "#beliefs")


def test_looking_back_changes_everything_on_the_page_and_now_is_one_click_away(tab: Tab, shop: str) -> None:
    tab.open(f"{shop}/#/{GUARDED}")
    tab.wait("Number(document.getElementById('look').max) > 30 && document.querySelectorAll('.belief').length === 8")
    tab.wait(
        "document.querySelectorAll('#decisions li').length === 12 && document.getElementById('verdict').textContent"
    )
    now = {place: tab.run(f"document.querySelector('{place}').textContent") for place in SHOWN}
    tab.run(BACK)
    tab.wait("!document.getElementById('back').hidden")
    tab.wait(f"document.querySelector('#decisions').textContent !== {now['#decisions']!r}")
    tab.wait(f"document.querySelector('#beliefs').textContent !== {now['#beliefs']!r}")
    then = {place: tab.run(f"document.querySelector('{place}').textContent") for place in SHOWN}
    assert [place for place in SHOWN if then[place] == now[place]] == []
    # All of it is of the same moment: the banner, the number of decisions, and the newest in the list.
    rounds = tab.run("document.getElementById('back-when').textContent").split()[1].rstrip(",")
    assert f"Decisions{rounds}" in then["#tiles"]
    newest = tab.run("document.querySelector('#decisions .certificate dd').textContent")
    assert newest.startswith(f"{rounds},")
    # What comes in does not disturb it.
    events = len(httpx.get(f"{shop}/v1/experiments/{GUARDED}/history", timeout=60).json()["points"])
    tab.wait(f"Number(document.getElementById('look').max) + 1 >= {events}")
    assert tab.run("document.querySelector('#decisions .certificate dd').textContent") == newest
    tab.run("document.getElementById('back-now').click()")
    tab.wait("document.getElementById('back').hidden && document.querySelectorAll('#decisions li').length > 6")
    assert tab.run("document.querySelector('#decisions .certificate dd').textContent") != newest
    assert tab.complaints == []


def test_features_are_called_by_their_names_and_estimates_have_a_band(tab: Tab, shop: str) -> None:
    tab.open(f"{shop}/#/{GUARDED}")
    tab.wait("document.querySelectorAll('.belief').length === 8")
    names = tab.run("[...document.querySelectorAll('.belief-name')].map((name) => name.textContent)")
    assert names[:2] == ["bestsellers", "new arrivals"]
    assert names[4] == "bestsellers, returning"
    tab.wait("document.querySelector('#chart .uncertain')?.points.length > 20")
    for view in ("total", "each"):
        tab.run(f"document.querySelector('#views [value={view}]').click()")
        tab.wait("document.querySelector('#chart .uncertain')?.points.length > 20")


DRAWN = """
Promise.all([import('/static/chart.js'), %s]).then(([chart, points]) => {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('id', 'chart');
  document.getElementById('chart').replaceWith(svg);
  chart.draw(svg, points, { view: 'total', at: points.length - 1 });
  const heights = [...svg.querySelector('.uncertain').points].map((point) => point.y);
  return [Math.min(...heights) >= chart.TOP, svg.querySelector('#edges stop').getAttribute('stop-color')];
})"""


@pytest.mark.parametrize(("most", "fits"), [(11.0, True), (19.0, True), (80.0, False)])
def test_what_is_shaded_has_room_or_fades(tab: Tab, shop: str, most: float, fits: bool) -> None:
    tab.open(f"{shop}/#/{GUARDED}")
    tab.wait("document.getElementById('chart').clientWidth > 0")
    lines = {"estimated_reward": 10.0, "guaranteed": 1.0, "estimated_baseline": 9.0, "floor": 0.5, "learner_share": 0.5}
    points = [{"rounds": rounds, "reward_interval": [2.0, most], **lines} for rounds in (50, 60, 70)]
    assert tab.run(DRAWN % json.dumps(points)) == [fits, "white" if fits else "black"]


LIFT = {"metric": "reward", "estimate": 0.1, "low": 0.05, "high": 0.2, "decisions": 40, "confidence": 0.95}
OPEN, LOSS = LIFT | {"low": -0.01}, LIFT | {"low": -0.3, "high": -0.2}
COST = {"metric": "cost", "kind": "ceiling"}
MEAN = {"learner_mean": 0.9, "baseline_mean": 0.5}
QUALITY = {"kind": "floor", "alpha": 0.1, "bank": 2.0, "lift_low": -0.1, "lift_high": 0.2, **MEAN}
COSTS = {"kind": "ceiling", "alpha": 0.3, "bank": 99.0, "lift_low": -0.2, "lift_high": -0.1, **MEAN}
GUARD = {"metrics": {"cost": COSTS, "quality": QUALITY}}
ONE = {"metrics": {"reward": QUALITY}}
DOLLARS: dict[str, Any] = {"reward_unit": {"cost": "USD"}}
UNITS: dict[str, Any] = {"reward_unit": {"cost": "USD", "quality": "points"}}
SAVES = {"metrics": {"cost": COSTS | {"learner_mean": 0.1}, "quality": QUALITY}}
WORSE = {"metrics": SAVES["metrics"] | {"quality": QUALITY | {"lift_high": -0.01}}}
STANDING: dict[str, Any] = {
    "rounds": 99,
    "learned": 90,
    "learner_rounds": 40,
    "events": 500,
    "restarts": 0,
    "promise_round": 1,
    "proof": None,
}
STANDING |= {"is_refuted": False, "mode": "guarded", "debt": 0, "margin": 3, "estimated_baseline": 400, "lift": OPEN}


def proof(lift: dict[str, Any]) -> dict[str, Any]:
    return {"round": 7, "time": 1.6e9, "lift": lift}


PAYS: dict[str, Any] = {"lift": LIFT, "proof": proof(LIFT)}


@pytest.mark.parametrize(
    ("standing", "answer", "words"),
    [
        ({"rounds": 0}, "open", "No result yet."),
        ({"learner_rounds": 0}, "open", "The learner has not played yet."),
        ({"lift": None}, "open", "This policy has no interval"),
        ({"is_refuted": True}, "no", "The data contradict what was declared."),
        ({}, "open", "Not known yet. Now: on average the learner earns 0.01 less to 0.2 more per decision"),
        ({"reward_unit": "clicks"}, "open", "0.01 clicks less to 0.2 clicks more per decision than"),
        (PAYS | {"reward_unit": "EUR"}, "yes", "earns €0.05 to €0.20 more per decision than today's choice."),
        (PAYS | {"reward_unit": "clicks"}, "yes", "It pays: proved at decision 7. Now: on average"),
        (PAYS | {"reward_unit": "clicks"}, "yes", "earns 0.05 to 0.2 clicks more per decision than"),
        (PAYS | {"reward_unit": "clicks"}, "yes", "That is 2 to 8 clicks more in the"),
        # Of a guard's metric without a unit, shares of today's mean.
        ({"guard": ONE}, "open", "on average a proposal earns 20% less to 40% more than today's choice."),
        (
            {"guard": GUARD} | DOLLARS,
            "open",
            "a proposal costs $0.10 to $0.20 less and has 20% less to 40% more quality",
        ),
        ({"guard": GUARD} | UNITS, "open", "and has 0.1 points less to 0.2 points more quality than today's choice."),
        (PAYS, "yes", "than today's choice. 95% sure, however often you look."),
        (PAYS | {"lift": LIFT | {"confidence": 0.99999}}, "yes", "99.999% sure"),
        # What was proved stays said, and what is so now beside it.
        (PAYS | {"lift": OPEN}, "yes", "It pays: proved at decision 7."),
        (
            PAYS | {"lift": OPEN},
            "yes",
            "0.01 less to 0.2 more per decision than today's choice. 95% sure, however",
        ),
        (
            PAYS | {"lift": OPEN},
            "yes",
            "That alone would not prove it; what was proved stands. First proved: Sep 13, 2020, ",
        ),
        (PAYS | {"lift": LIFT | {"low": -1e-9}}, "yes", "the learner earns 0 to 0.2 more per decision"),
        ({"lift": LIFT | {"low": -0.2, "high": 1e-9}}, "open", "the learner earns 0 to 0.2 less per decision"),
        ({"proof": proof(LOSS)}, "no", "It does not pay: proved at decision 7."),
        (PAYS | {"lift": LOSS}, "yes", "It pays: proved at decision 7."),
        ({"restarts": 1, "lift": None, "floor": 0.1, "margin": None}, "open", "not played since it started over"),
        # Of a guard, whose metric may be a cost; a server that shares its floor keeps no proof.
        ({"guard": GUARD}, "open", "Not proved yet that reward is higher. Now: "),
        ({"lift": LIFT | COST, "guard": GUARD}, "no", "It does not pay. Now: on average"),
        ({"lift": LIFT | COST, "guard": GUARD}, "no", "a proposal has 20% to 40% less cost and"),
        ({"lift": LIFT | COST, "guard": GUARD}, "no", "and has 20% less to 40% more quality than today's choice."),
        (
            {"lift": LOSS | COST, "guard": GUARD, "proof": proof(LOSS | COST)},
            "yes",
            "It pays: less cost, proved at decision 7. Now: on average a proposal",
        ),
        (
            {"lift": LOSS | COST, "guard": WORSE, "proof": proof(LOSS | COST)} | DOLLARS,
            "open",
            "Less cost, proved at decision 7. But less quality. $16.00 saved so far. Now: on average a proposal",
        ),
    ],
)
def test_the_first_answer_says_whether_it_pays_since_when_and_how_sure(
    script: Tab, standing: dict[str, Any], answer: str, words: str
) -> None:
    found = script.run(f"import('/static/lift.js').then((lift) => lift.liftLine({json.dumps(STANDING | standing)}))")
    assert found["answer"] == answer
    assert words in " ".join([found["verdict"], *found["texts"]])


SURE, TENTH = "95% sure, however often you look.", "10% of what today's choice would have earned so far."
SO_FAR = "than today's choice would have earned so far."
STAGED = {"constraint.stagewise": None}
PAUSED = {"mode": "paused", "learner_rounds": 0}


@pytest.mark.parametrize(
    ("standing", "declared", "words"),
    [
        ({}, {}, f"At most 10% less {SO_FAR} At worst 9.3% is lost so far. {SURE}"),
        ({"reward_unit": "clicks"}, {}, f"At most 40 clicks less, {TENTH} At worst 37 clicks are lost so far. {SURE}"),
        ({"reward_unit": "EUR", "estimated_baseline": 25}, {}, "At most €2.50 less, 10% of what today's choice"),
        ({"margin": 41}, {}, "None of it has been lost."),
        ({"estimated_baseline": 0}, {}, "At most 10% less than today's choice earns."),
        ({"margin": 41}, {"constraint.reserve": 6}, f"At most 12% less {SO_FAR} At worst 1.3% is lost so far. {SURE}"),
        ({"margin": 41}, STAGED, f"At most 10% less {SO_FAR} {SURE}"),
        ({"estimated_baseline": None}, {}, f"At most 10% less than today's choice earns. {SURE}"),
        ({"learner_rounds": 0, "margin": None}, {}, "None of it has been lost: the learner has not played yet."),
        (PAUSED, {}, "Nothing now. Only today's choice is played. Once the learner plays: at most 10% less than"),
        ({"margin": None, "debt": 9}, {}, "At worst 2.3% is lost so far, and is earned back before the learner plays"),
        ({"is_refuted": True}, {}, "Not proved any more. Only today's choice is played."),
        ({}, {"alpha": None}, "Nothing is promised. This policy keeps no floor."),
        ({}, {"skew": 1.0}, f"At most 10% less than today's choice earns. All servers together are counted. {SURE}"),
        ({"guard": ONE, "reward_unit": "clicks"}, {}, f"At most 4.5 clicks less, {TENTH}"),
        ({"guard": ONE}, {}, f"At worst 5.6% is lost so far. {SURE}"),
        ({"guard": ONE}, {"reward.reserve": 1}, f"At most 12% less {SO_FAR}"),
        ({"guard": GUARD}, {}, "At most 30% more cost and 10% less quality than today's choice. Cost: at most 30%"),
        ({"guard": GUARD}, {}, "Cost: at most 30% more may be spent. None of it has been spent: what was saved comes"),
        ({"guard": SAVES}, {}, "Quality: at most 10% may be lost. At worst 5.6% is lost so far. 95% sure"),
        ({"guard": SAVES} | DOLLARS, {}, "At worst 5.6% is lost so far, while $16.00 was saved. 95% sure"),
        ({"guard": GUARD} | DOLLARS, {}, "Quality: at most 10% may be lost. At worst 5.6% is lost so far. 95% sure"),
        ({"guard": GUARD} | UNITS, {}, "Quality: at most 4.5 points less so far. At worst 2.5 points are lost so far."),
        ({"guard": GUARD}, {"cost.reserve": 2}, "Cost: at most 34% more may be spent."),
        ({"guard": GUARD} | DOLLARS, {"cost.reserve": 2}, "Cost: at most $16 more so far, 30% plus the $2.00 granted."),
        ({"guard": GUARD}, {"skew": 1.0}, "10% less quality than today's choice. All servers together are counted."),
        ({"guard": GUARD} | PAUSED, {}, "Once the learner plays: at most 30% more cost and 10% less quality than"),
    ],
)  # fmt: skip
def test_the_second_answer_says_what_is_at_risk_in_the_users_own_unit(
    script: Tab, standing: dict[str, Any], declared: dict[str, Any], words: str
) -> None:
    given = json.dumps(STANDING | standing), json.dumps({"alpha": 0.1, "delta": 0.05} | declared)
    found = script.run(f"import('/static/risk.js').then((risk) => risk.riskLine({given[0]}, {given[1]}))")
    assert words in " ".join([found["verdict"], *found["texts"]])


@pytest.mark.parametrize(
    ("holdout", "share", "words"),
    [
        (0.02, 0.98, "A larger `min_holdout` (0.1 in place of 0.02) would make this interval about half as wide."),
        (0.05, 0.95, "(0.1 in place of 0.05) would make this interval narrower."),
        (0.1, 0.9, ""),
        (0.02, 0.5, ""),  # it is not the holdout that limits what is known
    ],
)
def test_what_is_not_proved_yet_says_that_a_larger_holdout_shows_it_sooner(
    script: Tab, holdout: float, share: float, words: str
) -> None:
    given = json.dumps(STANDING | {"guard": ONE | {"share": share}}), json.dumps({"min_holdout": holdout})
    found = script.run(f"import('/static/lift.js').then((lift) => lift.liftLine({given[0]}, {given[1]}))")
    said = " ".join(found["texts"])
    assert said.endswith(words or "95% sure, however often you look.")


def test_what_is_at_stake_is_told_by_the_day_once_a_minute_of_decisions_was_seen(script: Tab) -> None:
    standing = STANDING | DOLLARS | {"guard": GUARD, "time": 1.6e9, "rounds": 300}
    said = []
    for seconds in (59, 60, 3600):
        first = {"time": standing["time"] - seconds, "rounds": 100}
        given = (json.dumps(one) for one in (standing, {"alpha": 0.1, "delta": 0.05}, first))
        script.call("Emulation.setTimezoneOverride", timezoneId="UTC")
        found = script.run(f"import('/static/risk.js').then((risk) => risk.riskLine({','.join(given)}))")
        said.append(found["texts"][0])
    day = 200 / 60 * 86400 * 0.3 * 0.5  # decisions, the share at stake, today's mean
    assert "a day" not in said[0]
    assert f"At the pace since Sep 13, 2020, 12:25: at most ${day:,.0f} a day." in said[1]
    assert f"At the pace since Sep 13, 2020, 11:26: at most ${day / 60:,.0f} a day." in said[2]


TILES = "import('/static/guard_parts.js').then(({tiles}) => tiles(...%s, (...texts) => texts))"


@pytest.mark.parametrize(
    ("seconds", "pace"),
    [
        (None, "$161.62 in 1,000 decisions"),
        (59, "$161.62 in 1,000 decisions"),
        (3600, "$288.00 a day, at the pace since Sep 13, 2020, 11:26"),  # $12 in an hour
        (7200, "$144.00 a day, at the pace since Sep 13, 2020, 10:26"),
    ],
)
def test_what_is_saved_in_a_day_follows_from_two_standings(script: Tab, seconds: float | None, pace: str) -> None:
    guard = {"share": 0.5, "allowed": 1.0, "binds": "quality", "differing_rounds": 99}
    costs = {"learner_mean": 0.1, "baseline_mean": 0.5, "lift": -0.4}
    standing = STANDING | {"time": 1.6e9, "waiting": 0, "pending": 0, "learner_share": 0.4, "baseline_rounds": 59}
    standing |= DOLLARS
    standing |= {"guard": guard | {"metrics": {"cost": COSTS | costs, "quality": QUALITY | {"lift": 0.0}}}}
    first = standing | {"learner_rounds": 10, "rounds": -1, "time": standing["time"] - (seconds or 0.0)}
    given = json.dumps([standing, 0.5, None if seconds is None else first])
    script.call("Emulation.setTimezoneOverride", timezoneId="UTC")
    saved, *_ = script.run(TILES % given)
    assert saved[:2] == ["Saved so far", "$16.00"]
    assert saved[2] == f"32% of today's bill, at least $4.00, 95% sure; {pace}"


@pytest.mark.parametrize(
    ("standing", "answer", "words"),
    [
        ({}, "open", "Wait. The learner plays only where that is proved to be safe."),
        ({}, "yes", "Leave it on."),
        ({}, "no", "Pause the learner, or improve it. What it may cost is limited"),
        ({"mode": "shadow"}, "open", "Let the learner play, if you accept that risk."),
        ({"mode": "paused"}, "no", "Let the learner play again, or leave it."),
        ({"is_refuted": True}, "no", "Answer the alarm."),
        ({"floor": None}, "yes", "No floor stops this policy."),
        ({"floor": None, "guard": GUARD}, "yes", "Leave it on."),
        (
            {"lift": LOSS | COST, "guard": WORSE},
            "open",
            "Decide whether it is worth that. No more is lost than is promised",
        ),
    ],
)
def test_the_third_answer_says_what_to_do(script: Tab, standing: dict[str, Any], answer: str, words: str) -> None:
    given = json.dumps(STANDING | {"floor": 360.0} | standing)
    found = script.run(f"import('/static/lift.js').then((lift) => lift.nextLine({given}, {answer!r}))")
    assert words in " ".join([found["verdict"], *found["texts"]])


def test_midnight_is_hour_0_and_nothing_is_certain(tab: Tab, shop: str) -> None:
    tab.call("Emulation.setTimezoneOverride", timezoneId="UTC")
    tab.call("Emulation.setLocaleOverride", locale="en-US")
    tab.open(shop)
    said = "import('/static/words.js').then(({ clock, when, precisely }) => [clock(86400), when(86400), ...%s])"
    shares = "[0.95, 0.999, 0.99975, 0.99999, 1 - 1e-12].map(precisely)"
    assert tab.run(said % shares) == [
        "00:00:00", "Jan 2, 1970, 00:00", "95%", "99.9%", "99.975%", "99.999%", "99.9999999999%",
    ]  # fmt: skip


def test_on_paper_the_page_is_light_and_has_no_buttons(tab: Tab, shop: str) -> None:
    tab.open(f"{shop}/#/{GUARDED}")
    tab.wait("document.querySelector('#answer .says').textContent")
    dark = [{"name": "prefers-color-scheme", "value": "dark"}]
    tab.call("Emulation.setEmulatedMedia", media="print", features=dark)
    assert tab.run("getComputedStyle(document.body).backgroundColor") == "rgb(246, 247, 248)"
    hidden = "[...document.querySelectorAll('.modes, .look, #hold')].map((one) => getComputedStyle(one).display)"
    assert set(tab.run(hidden)) == {"none"}


def test_a_mode_changes_by_keyboard_after_a_confirmation_and_not_before(tab: Tab, shop: str) -> None:
    tab.open(f"{shop}/#/{SHADOW}")
    tab.wait("!!document.querySelector('#modes [data-mode=guarded]')")
    for key, code in (("Enter", 13), ("Escape", 27)):
        tab.run("document.querySelector('#modes [data-mode=guarded]').focus()")
        tab.press(key, code)
    assert not tab.run("document.getElementById('confirm-dialog').open")
    assert mode_of(shop, SHADOW) == "shadow"
    tab.run("document.querySelector('#modes [data-mode=guarded]').focus()")
    tab.press("Enter", 13)
    assert tab.wait("document.getElementById('confirm-dialog').open")
    tab.run("document.getElementById('confirm-reason').focus()")
    tab.type("it has watched for long enough")
    assert mode_of(shop, SHADOW) == "shadow"
    tab.press("Enter", 13)
    tab.wait(f"{MODE} === 'guarded' && !document.getElementById('confirm-dialog').open")
    assert mode_of(shop, SHADOW) == "guarded"
    tab.wait("!!document.querySelector('#modes [data-mode=paused]')")
    assert tab.complaints == []


@pytest.mark.parametrize("width", [1280, 768, 390, 320])
def test_nothing_scrolls_sideways_in_either_theme(tab: Tab, shop: str, width: int) -> None:
    tab.size(width, 800)
    tab.open(shop)
    tab.wait(f"{POINTS} > 4 && document.querySelectorAll('.belief').length")
    grounds = set()
    for theme in ("light", "dark"):
        tab.theme(theme)
        assert tab.run("document.documentElement.scrollWidth") <= width  # innerWidth would grow with it on a phone
        wide = (
            "[...document.querySelectorAll('main *')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)"
        )
        assert tab.run(f"{wide}.map((e) => e.outerHTML.slice(0, 80))") == []
        grounds.add(tab.run("getComputedStyle(document.body).backgroundColor"))
    assert len(grounds) == 2
    assert tab.complaints == []


def test_a_stream_that_does_not_get_through_is_replaced_by_asking(tab: Tab, shop: str) -> None:
    tab.call("Network.enable")
    tab.call("Network.setBlockedURLs", urls=["*/live"])
    tab.open(shop)
    tab.wait(f"{STATE} === 'asking'")
    newest = tab.wait(NEWEST)
    tab.wait(f"{NEWEST} !== {newest!r}")


def test_a_tab_that_nobody_sees_holds_no_connection(tab: Tab, shop: str) -> None:
    """A browser has six for a server, and tabs share them."""
    ended = "performance.getEntriesByType('resource').filter((entry) => entry.name.endsWith('/live')).length"
    see = "document.dispatchEvent(new Event('visibilitychange'))"
    tab.open(shop)
    tab.wait(NEWEST)
    assert tab.run(ended) == 0
    tab.run(f"Object.defineProperty(document, 'hidden', {{ value: true, configurable: true }}); {see}")
    tab.wait(f"{ended} === 1")
    newest = tab.run(NEWEST)
    tab.run(f"Object.defineProperty(document, 'hidden', {{ value: false }}); {see}")
    tab.wait(f"{NEWEST} !== {newest!r}")
    assert tab.complaints == []


def present(tab: Tab, token: str) -> None:
    """Type a token when the page asks for one."""
    tab.wait("document.getElementById('token-dialog').open")
    tab.run("document.getElementById('token').focus()")
    tab.type(token)
    tab.press("Enter", 13)


def test_tokens_roles_and_a_server_that_goes_away(tab: Tab, tmp_path: Path) -> None:
    tokens = TokenFile(str(tmp_path / "tokens"))
    reader, admin = tokens.create(["read"]), tokens.create(["admin"])
    with Apart(tmp_path, tokens=tmp_path / "tokens") as server:
        headers = {"Authorization": f"Bearer {admin}"}
        with httpx.Client(base_url=server.address, headers=headers, timeout=60, trust_env=False) as client:
            create(client)
            client.post("/v1/experiments/shop/decisions", json={"actions": ACTIONS}).raise_for_status()
        tab.open(server.address)
        present(tab, "sf_00000000_wrong")
        tab.wait("document.getElementById('token-fault').textContent.includes('not valid here')")
        present(tab, reader)
        tab.wait(f"{MODE} === 'guarded'")
        assert "An admin's token may change the mode." in tab.text()
        assert tab.run("document.querySelectorAll('#modes button').length") == 0
        assert tab.run("[sessionStorage.length, localStorage.length, document.cookie]") == [1, 0, ""]
        server.kill()
        tab.wait(f"{STATE} === 'lost'")
        server.start()
        tab.wait(f"{STATE} === 'live'")
        tokens.revoke(reader.split("_")[1])
        present(tab, admin)
        tab.wait("document.querySelectorAll('#modes button').length === 1")


def test_an_alarm_is_answered_on_the_page_and_the_new_promise_is_said_openly(tab: Tab, tmp_path: Path) -> None:
    easy = [{"id": "more", "features": [0.9, 0.0]}, {"id": "today", "features": [0.6, 0.0]}]
    asked = {"actions": easy, "baseline": "today", "baseline_reward": 0.3}
    alarm = "document.querySelector('#alarms .alarm, #notes .alarm')?.textContent ?? ''"
    with Apart(tmp_path) as server, httpx.Client(base_url=server.address, timeout=60, trust_env=False) as client:
        create(client, reward_bounds=[0, 1])
        client.post("/v1/experiments/shop/decisions", json={**asked, "decision_id": "a"}).raise_for_status()
        tab.open(server.address)
        tab.wait(NEWEST)
        assert tab.run("document.getElementById('answers').hidden")
        client.post("/v1/experiments/shop/decisions/a/reward", json={"value": 7}).raise_for_status()
        tab.wait(f"({alarm}).includes('A reward of 7 came in for round 1, but 0 to 1 was declared.')")
        tab.wait("document.querySelectorAll('#answers button').length === 3")
        assert "the floor is not proved any more" in tab.run("document.getElementById('verdict').textContent")
        assert "Not proved any more." in tab.text()
        for response, words in (("stay", "It was acknowledged"), ("renew", "counts from round 2 on")):
            tab.run(f"document.querySelector('#answers [data-response={response}]').focus()")
            tab.press("Enter", 13)
            tab.wait("document.getElementById('confirm-dialog').open")
            tab.run("document.getElementById('confirm-reason').focus()")
            tab.press("Enter", 13)  # without a reason nothing is sent
            assert tab.run("document.getElementById('confirm-dialog').open")
            tab.type("the tracker counted twice")
            tab.press("Enter", 13)
            tab.wait(f"!document.getElementById('confirm-dialog').open && ({alarm}).includes({words!r})")
        tab.wait("document.getElementById('answers').hidden")
        tab.wait("document.getElementById('answer').textContent.includes('has not played since it started over')")
        client.post("/v1/experiments/shop/decisions", json={**asked, "decision_id": "b"}).raise_for_status()
        tab.wait("document.getElementById('verdict').textContent.includes('it counts from decision 2 on')")
        tab.run("document.getElementById('look').focus()")
        tab.press("Home", 36)  # where nobody knew of another promise yet
        tab.wait("!document.getElementById('back').hidden")
        assert tab.run("document.getElementById('answers').hidden"), "what was then cannot be answered now"
        assert "above" in (then := tab.run("document.getElementById('verdict').textContent")) or "more than" in then
        assert "it counts from decision" not in then
    assert tab.complaints == []


@pytest.mark.parametrize("width", [1280, 360])
def test_a_damaged_experiment_is_shown_with_its_reason(tab: Tab, tmp_path: Path, width: int) -> None:
    path = tmp_path / "shop.journal"
    damage(path, "UPDATE events SET kind = 'unheard of' WHERE number = 2")
    with running(Settings(database=str(path))) as address:
        tab.size(width, 800)
        tab.open(address)
        tab.wait("document.querySelectorAll('.card').length === 2")
        text = tab.run("document.querySelector('.card.is-damaged').textContent")
        assert text.startswith("shopdamaged")
        assert "unheard of" in text
        tab.wait("document.querySelector('.card[aria-current] .card-name').textContent === 'other'")
        assert tab.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
        assert tab.complaints == []
