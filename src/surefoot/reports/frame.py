"""The frame of every page: title, lead, verdict, sections, footer, around the one stylesheet."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from surefoot.reports.markup import Html, join, tag

STYLESHEET = Path(__file__).with_name("style.css")
FOOTER = "Written by surefoot; needs no network."


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a reader wants to know first, as a badge under the heading."""

    text: str
    is_good: bool


def page(
    title: str,
    *sections: Html,
    heading: str | None = None,
    verdict: Verdict | None = None,
    lead: Iterable[object] = (),
    note: str | None = None,
    footer: str = "",
    scripts: Html | None = None,
) -> str:
    """A whole page as text. Strings are escaped; only what `tag` made, or `Html` marks, is HTML.

    `title` is what the browser's tab says, and the heading too unless there is another; `lead` holds paragraphs or
    other HTML; a `note` is a warning that nobody should miss.
    """
    shown = [tag("h1", heading or title)]
    shown += [tag("p", badge(verdict), class_="verdict")] if verdict else []
    shown += [part if isinstance(part, Html) else tag("p", part) for part in lead]
    shown += [tag("p", note, class_="note", role="note")] if note else []
    body = (
        tag("header", *shown),
        tag("main", *sections),
        tag("footer", tag("p", " ".join(filter(None, (footer, FOOTER))))),
        scripts or Html(),
    )
    whole = tag("html", _head(title), tag("body", join(body, Html("\n"))), lang="en")
    return f"<!doctype html>\n{whole}\n"


def badge(verdict: Verdict) -> Html:
    """Yes or no at a glance; the words say it, the colour only repeats it."""
    return tag("span", verdict.text, class_="yes" if verdict.is_good else "no")


def section(title: str, *body: object, anchor: str | None = None) -> Html:
    """A section with its heading; `anchor` names it for links and screen readers."""
    return tag("section", tag("h2", title, id=anchor), *body, aria_labelledby=anchor)


def figure(title: str, picture: Html, caption: str) -> Html:
    """A picture under its title and above its caption."""
    return tag("figure", tag("h3", title), picture, tag("figcaption", caption))


def bullets(items: Iterable[object]) -> Html:
    """A list."""
    return tag("ul", *(tag("li", item) for item in items))


@cache
def stylesheet() -> str:
    """The one look of every page: light, dark and printed."""
    return STYLESHEET.read_text(encoding="utf-8")


def _head(title: str) -> Html:
    return tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),  # or browsers ask for /favicon.ico
        tag("style", Html(stylesheet())),
    )
