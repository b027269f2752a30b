"""The documentation is true: its examples run, its links lead somewhere, and no public name is left out."""

import doctest
import re
from pathlib import Path
from typing import Any

import pytest

import surefoot

ROOT = Path(__file__).parents[1]
DOCS = sorted((ROOT / "docs").rglob("*.md"))
PAGES = [*DOCS, ROOT / "README.md"]
# Those of LiteLLM are run by tests/integrations; others have commands, or link to a page that runs.
WITHOUT_EXAMPLES = {
    f"docs/{name}.md" for name in ("index", "errata", "litellm", "container", "glossary", "page", "use-my-data")
}
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS

FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<body>.*?)^```", flags=re.DOTALL | re.MULTILINE)
INLINE_CODE = re.compile(r"`[^`\n]+`")
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ +(.+?) *$", flags=re.MULTILINE)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def read(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def examples(page: Path) -> list[doctest.DocTest]:
    """Every fenced Python block with a prompt, in order, each at its own line of the page."""
    text, parser = read(page), doctest.DocTestParser()
    return [
        parser.get_doctest(block["body"], {}, name_of(page), str(page), text[: block.start("body")].count("\n"))
        for block in FENCE.finditer(text)
        if block["language"] == "python" and ">>>" in block["body"]
    ]


def prose(page: Path) -> str:
    """A page without its code, where brackets mean links."""
    return INLINE_CODE.sub("", FENCE.sub("", read(page)))


def anchors(page: Path) -> set[str]:
    """What `#...` may point at: headings in lower case, without punctuation, with dashes for blanks."""
    headings = HEADING.findall(FENCE.sub("", read(page)))
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def leads_somewhere(link: str, page: Path) -> bool:
    path, _, anchor = link.partition("#")
    target = page.parent / path if path else page
    return target.exists() and (not anchor or anchor in anchors(target))


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_example_of_the_page_runs(page: Path) -> None:
    runner, report, names = doctest.DocTestRunner(optionflags=FLAGS), list[str](), dict[str, Any]()
    for block in examples(page):
        block.globs = names
        runner.run(block, out=report.append, clear_globs=False)
    if report:
        pytest.fail("".join(report), pytrace=False)


@pytest.mark.parametrize("page", DOCS, ids=name_of)
def test_the_page_has_an_example(page: Path) -> None:
    assert examples(page) or name_of(page) in WITHOUT_EXAMPLES


@pytest.mark.parametrize("name", sorted(set(surefoot.__all__) - {"__version__"}))
def test_the_public_name_is_documented(name: str) -> None:
    code = [
        found.group() for page in DOCS for pattern in (FENCE, INLINE_CODE) for found in pattern.finditer(read(page))
    ]
    assert any(re.search(rf"\b{name}\b", piece) for piece in code)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_relative_link_of_the_page_leads_somewhere(page: Path) -> None:
    links = [link for link in LINK.findall(prose(page)) if not re.match(r"[a-z]+:", link)]
    assert [link for link in links if not leads_somewhere(link, page)] == []


def test_the_index_links_every_page() -> None:
    index = ROOT / "docs" / "index.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(prose(index))}
    assert [name_of(page) for page in DOCS if page.resolve() not in linked and page != index] == []


def test_every_condition_names_a_test_that_exists() -> None:
    text = (ROOT / "docs" / "guarantee.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(tests/[\w/]+\.py)`", text))
    assert len(named) > 8
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []
