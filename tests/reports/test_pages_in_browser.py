"""In a real browser: colours follow the theme, nothing is wider than a phone, and paper is white and whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reports import PAGES, page_of
from tests.service.page_browser import Browser, Tab, browser

LINE = "[...document.querySelectorAll('.picture path')].map(p => getComputedStyle(p).stroke).join(' ')"
BACK = "getComputedStyle(document.body).backgroundColor"
WIDTHS = "[...document.querySelectorAll('.chart')].map(p => p.querySelector('.main-svg').clientWidth)"

FOLDED = "[...document.querySelectorAll('details > :not(summary)')].filter(e => !e.checkVisibility()).length"


@pytest.fixture(scope="module")
def chrome() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture
def tab(chrome: Browser) -> Iterator[Tab]:
    with chrome.tab() as opened:
        opened.size(1200, 900)
        yield opened


def opened(tab: Tab, name: str, folder: Path) -> Tab:
    (folder / f"{name}.html").write_text(page_of(name), "utf-8")
    return tab.open((folder / f"{name}.html").as_uri())


def media(tab: Tab, kind: str, theme: str) -> None:
    tab.call("Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": theme}])


@pytest.mark.parametrize("name", PAGES)
def test_a_phone_scrolls_down_only_and_the_page_complains_of_nothing(name: str, tab: Tab, tmp_path: Path) -> None:
    tab.size(390, 800)
    opened(tab, name, tmp_path)
    assert tab.run("document.documentElement.scrollWidth") <= 390
    assert tab.complaints == []


@pytest.mark.parametrize("name", ["plan", "replay"])
def test_figures_follow_the_theme_and_are_light_on_paper(name: str, tab: Tab, tmp_path: Path) -> None:
    seen = {}
    opened(tab, name, tmp_path)
    for kind, theme in (("screen", "light"), ("screen", "dark"), ("print", "dark")):
        media(tab, kind, theme)
        seen[kind, theme] = (tab.run(LINE), tab.run(BACK))
    assert seen["screen", "light"] != seen["screen", "dark"]
    assert "rgb(233, 234, 236)" in seen["screen", "dark"][0]  # --ink
    assert "rgb(233, 234, 236)" not in seen["print", "dark"][0]
    assert seen["print", "dark"][1] == "rgb(255, 255, 255)"


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_cut_off_on_paper(name: str, tab: Tab, tmp_path: Path) -> None:
    tab.size(680, 900)  # A4 within its margins
    media(tab, "print", "dark")
    opened(tab, name, tmp_path)
    tab.run("window.dispatchEvent(new Event('beforeprint'))")
    assert tab.run("document.documentElement.scrollWidth") <= 680
    assert tab.run(FOLDED) == 0


def test_charts_are_drawn_for_paper_and_for_the_screen_again(tab: Tab, tmp_path: Path) -> None:
    media(tab, "screen", "dark")
    before = opened(tab, "paper", tmp_path).run(WIDTHS)
    tab.run("window.dispatchEvent(new Event('beforeprint'))")
    assert set(tab.run(WIDTHS)) == {640}
    tab.run("window.dispatchEvent(new Event('afterprint'))")
    tab.wait(f"JSON.stringify({WIDTHS}) === '{str(before).replace(' ', '')}'")


# Of each chart, top and bottom of what stands below its axis, in this order: none may reach into the next.
STACKED = """[...document.querySelectorAll('.chart')].map((chart) => {
  const [title, legend] = ['.xtitle', '.legend'].map((one) => chart.querySelector(one));
  const parts = [title, legend, chart.closest('figure').lastElementChild];
  return parts.map((part) => part.getBoundingClientRect()).map(({ top, bottom }) => [top, bottom]);
})"""


def test_titles_legends_and_captions_of_charts_stand_below_each_other_at_any_width(tab: Tab, tmp_path: Path) -> None:
    opened(tab, "paper", tmp_path)
    for width in (700, 360, 1100):  # one after the other, as a window that is resized
        tab.size(width, 900)
        tab.wait(f"{WIDTHS}.every((found) => found < {width} && found > {width} - 120)")
        for (_, title), legend, (caption, _) in tab.run(STACKED):
            assert title <= legend[0] + 1
            assert legend[1] <= caption + 1
