"""The site in a real browser, opened from a file: search, keyboard, phone, and nothing to complain of."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documentation.conftest import Built
from tests.service.page_browser import Browser, Tab, browser

PHONE = 360
OF_EVERY_KIND = (
    "index.html",
    "tutorial-clicks.html",
    "glossary.html",
    "reference/surefoot.policies.html",
    "gallery/index.html",
)
FITS = "document.documentElement.scrollWidth <= innerWidth"
# What a reader must scroll sideways for is a table, code or picture in a frame of its own; all else wraps.
CUT_OFF = """[...document.querySelectorAll('.md-content :is(p, li, h1, h2)')]
  .filter(one => one.offsetParent && !one.closest('table, pre'))
  .filter(one => one.getBoundingClientRect().right > innerWidth + 1).length"""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture
def tab(chromium: Browser) -> Iterator[Tab]:
    with chromium.tab() as found:
        yield found
        assert found.complaints == []


def fits_a_phone(tab: Tab, page: Path) -> bool:
    tab.open(page.as_uri())
    return bool(tab.run(FITS)) and tab.run(CUT_OFF) == 0


@pytest.mark.parametrize("theme", ["light", pytest.param("dark", marks=pytest.mark.long)])
def test_pages_of_every_kind_fit_a_phone(built: Built, tab: Tab, theme: str) -> None:
    tab.size(PHONE, 740)
    tab.theme(theme)
    tab.open((built.folder / "index.html").as_uri())
    tab.run("localStorage.clear()")  # where a visit before has kept its colours
    assert [name for name in OF_EVERY_KIND if not fits_a_phone(tab, built.folder / name)] == []
    assert tab.run("document.body.dataset.mdColorScheme") == {"light": "default", "dark": "slate"}[theme]


@pytest.mark.long
def test_every_page_fits_a_phone(built: Built, tab: Tab) -> None:
    tab.size(PHONE, 740)
    assert [page.name for page in built.pages if not fits_a_phone(tab, page)] == []


def search(tab: Tab, built: Built, word: str) -> None:
    tab.size(1280, 900)
    tab.open((built.folder / "index.html").as_uri())
    tab.press("/", 191)
    tab.wait("document.activeElement.matches('.md-search__input')")
    tab.wait("document.querySelector('.md-search-result__meta').innerText.includes('Type')")  # the index is loaded
    tab.type(word)
    tab.press("Shift", 16)  # the search listens to keys that are let go
    tab.wait("document.querySelectorAll('.md-search-result__link').length > 0")


@pytest.mark.parametrize(
    ("word", "page"),
    [
        ("LLM", "small-model.html"),
        ("webhook", "small-model.html"),
        ("FastAPI", "small-model.html"),
        ("canary", "small-model.html"),
        ("rollback", "small-model.html"),
        ("rollout", "openfeature.html"),
        ("propensity", "replay.html"),
    ],
)
def test_the_right_page_comes_first(built: Built, tab: Tab, word: str, page: str) -> None:
    search(tab, built, word)
    assert f"/{page}?" in tab.run("document.querySelector('.md-search-result__link').href")


def test_search_works_from_a_file_and_by_keyboard_alone(built: Built, tab: Tab) -> None:
    search(tab, built, "propensity")
    tab.wait("document.querySelectorAll('.md-search-result__link').length > 3")
    for _ in range(2):
        tab.press("ArrowDown", 40)
    tab.wait("document.activeElement.matches('.md-search-result__link')")
    tab.press("Enter", 13)
    tab.wait("!location.pathname.endsWith('/index.html') && document.readyState === 'complete'")
    assert "propensit" in tab.text().lower()


def test_whoever_tabs_can_skip_to_the_content_and_sees_where_they_are(built: Built, tab: Tab) -> None:
    tab.size(1280, 900)
    tab.open((built.folder / "try-it.html").as_uri())
    tab.press("Tab", 9)
    assert tab.run("document.activeElement.innerText.trim()") == "Skip to content"
    tab.wait("getComputedStyle(document.activeElement).opacity === '1'")
    tab.press("Enter", 13)
    tab.wait("location.hash !== ''")
    reached = set()
    for _ in range(80):
        tab.press("Tab", 9)
        reached.add(tab.run("document.activeElement.getAttribute('href') || document.activeElement.tagName"))
    assert {"use-my-data.html", "production.html", "guarantee.html"} <= reached


def test_copying_an_example_leaves_prompts_and_output_behind(built: Built, tab: Tab) -> None:
    tab.size(1280, 900)
    tab.open((built.folder / "try-it.html").as_uri())
    tab.wait("document.querySelectorAll('.language-pycon [data-clipboard-target]').length > 2")
    tab.run("document.querySelectorAll('.language-pycon [data-clipboard-target]')[2].click()")
    copied = tab.run("document.querySelectorAll('.language-pycon [data-clipboard-target]')[2].dataset.clipboardText")
    assert copied.splitlines()[0] == "kept = np.cumsum(earned) / np.cumsum(today)"
    assert "never below 98%" not in copied
    assert ">>>" not in copied
