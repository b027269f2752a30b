"""In a real browser: colours follow the theme, nothing is wider than a phone, and paper is white and whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.reports import PAGES, page_of
from tests.service.page_browser import Browser, Tab, browser

LINE = "[...document.querySelectorAll('.picture path')].map(p => getComputedStyle(p).stroke).join(' ')"
BACK = "getComputedStyle(document.body).backgroundColor"

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


@pytest.mark.parametrize("name", ["paper", "plan", "replay"])
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
