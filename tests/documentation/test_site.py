"""The site: it builds without a network, its links lead somewhere, and every public name is in the reference."""

import html
import re
from pathlib import Path
from urllib.parse import unquote, urldefrag

import pytest

from docs.tools import hooks, reference
from tests.documentation.conftest import Built
from tests.test_public_surface import PACKAGES

HREF = re.compile(r'<(?:a|link)\b[^>]*?\shref="?([^"\s>]+)')
SOURCE = re.compile(r'<(?:script|img|iframe)\b[^>]*?\ssrc="?([^"\s>]+)')
ID = re.compile(r'\s(?:id|name)="?([^"\s>]+)')
SLOWEST = 60.0


def ids(page: Path) -> set[str]:
    return {html.unescape(found) for found in ID.findall(page.read_text())}


def test_the_site_is_built_in_under_a_minute(built: Built) -> None:
    assert built.seconds < SLOWEST


def test_no_page_asks_the_network_for_anything(built: Built) -> None:
    asked = {
        found
        for page in built.pages
        for found in (
            *SOURCE.findall(page.read_text()),
            *re.findall(r'<link [^>]*href="?(http[^"\s>]+)', page.read_text()),
        )
        if found.startswith(("http:", "https:", "//"))
    }
    styles = {
        path.name for path in built.folder.rglob("*.css") if re.search(r"url\(['\"]?(https?:)?//", path.read_text())
    }
    assert (asked, styles) == (set(), set())


def test_no_link_of_the_site_is_dead(built: Built) -> None:
    known = {page: ids(page) for page in built.pages}
    dead = []
    for page in built.pages:
        text = page.read_text()
        for link in {html.unescape(found) for found in (*HREF.findall(text), *SOURCE.findall(text))}:
            if re.match(r"[a-z]+:", link):
                continue
            path, anchor = urldefrag(link)
            target = (page.parent / unquote(path)).resolve() if path else page
            if not target.is_file() or (
                anchor and target in known and unquote(anchor) not in known[target] | {"__skip"}
            ):
                dead.append(f"{page.relative_to(built.folder)}: {link}")
    assert dead == []


def test_the_reference_has_the_packages_of_the_public_surface() -> None:
    assert sorted(reference.PACKAGES) == sorted(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_in_the_reference(built: Built, package: str) -> None:
    missing = []
    for name in reference.names(package):
        told = built.folder / "reference" / f"{reference.home(package, name)}.html"
        alone = built.folder / "reference" / f"{package}.{name}.html"
        if f"{reference.home(package, name)}.{name}" not in ids(told) and not alone.is_file():
            missing.append(name)
    assert missing == []


def test_every_page_of_the_documentation_is_on_the_site(built: Built) -> None:
    sources = {
        path.relative_to(hooks.ROOT / "docs").with_suffix(".html") for path in (hooks.ROOT / "docs").rglob("*.md")
    }
    assert sources <= {page.relative_to(built.folder) for page in built.pages}


@pytest.mark.parametrize(
    ("link", "here", "there"),
    [
        ("../examples/README.md", "", "gallery/index.md"),
        ("../../examples/news_ranking.py", "policies", "../gallery/news_ranking.md"),
        ("../CHANGELOG.md", "", "changes.md"),
        ("docs/guard.md", "", "guard.md"),
        ("guard.md", "", "guard.md"),
        ("../guard.md", "policies", "../guard.md"),
    ],
)
def test_links_out_of_docs_lead_to_the_pages_made_of_their_files(link: str, here: str, there: str) -> None:
    assert hooks.moved(link, Path(here)) == there
