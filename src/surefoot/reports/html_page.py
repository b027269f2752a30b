"""Pages, each one HTML file that needs no network: escaping by default, one frame, one stylesheet, tables."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Self

EMPTY_TAGS = frozenset({"link", "meta"})
STYLESHEET = Path(__file__).with_name("style.css")
FOOTER = "Written by surefoot; needs no network."
LONG, SHOWN = 400, 60  # characters of a setting that is folded, and of its summary


class Html(str):
    """Text that is already HTML. A plain string is not, and an f-string never is."""

    __slots__ = ()

    def __add__(self, other: str) -> Self:
        """Escape what is added, unless it is HTML too."""
        return type(self)(str.__add__(self, html(other)))


def html(content: object) -> Html:
    """Anything as HTML: `Html` as it is, everything else escaped.

    >>> html("a < b"), html(Html("<br>"))
    ('a &lt; b', '<br>')
    """
    return content if isinstance(content, Html) else Html(escape(str(content)))


def join(parts: Iterable[object], separator: str = "") -> Html:
    """The parts as one piece of HTML, each escaped unless it is HTML."""
    return Html(html(separator).join(html(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element around its children; an attribute that is None is left out.

    A trailing underscore lets `class_` be written, and other underscores become dashes.

    >>> tag("p", "1 < 2", class_="note", aria_label='a "b"')
    '<p class="note" aria-label="a &quot;b&quot;">1 &lt; 2</p>'
    """
    values = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    # Not `html`: inside quotation marks even `Html` must not end the attribute.
    text = "".join(f' {key}="{escape(str(value))}"' for key, value in values.items())
    if name in EMPTY_TAGS:
        return Html(f"<{name}{text}>")
    return Html(f"<{name}{text}>{join(children)}</{name}>")


@dataclass(frozen=True, slots=True)
class Badge:
    """What a reader wants to know first, as a badge under the heading."""

    text: str
    is_good: bool


def page(
    title: str,
    *sections: Html,
    heading: str | None = None,
    verdict: Badge | None = None,
    lead: Iterable[object] = (),
    note: str | None = None,
    footer: str = "",
) -> str:
    """A whole page as text.

    `title` is the browser tab's, and the heading's too unless there is another; `lead` holds paragraphs or other HTML;
    a `note` is a warning that nobody should miss.
    """
    header = [tag("h1", heading or title)]
    header += [tag("p", badge(verdict), class_="verdict")] if verdict else []
    header += [part if isinstance(part, Html) else tag("p", part) for part in lead]
    header += [tag("p", note, class_="note", role="note")] if note else []
    body = (
        tag("header", *header),
        tag("main", *sections),
        tag("footer", tag("p", " ".join(filter(None, (footer, FOOTER))))),
    )
    document = tag("html", _head(title), tag("body", join(body, Html("\n"))), lang="en")
    return f"<!doctype html>\n{document}\n"


def badge(verdict: Badge) -> Html:
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
    """The look of every page: light, dark and printed."""
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


def table(label: str, heads: Sequence[str], rows: Iterable[Html], kind: str | None = None) -> Html:
    """A table that scrolls if it is wide; `label` is for screen readers, `kind` its class in the stylesheet."""
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in heads)))
    inner = tag("table", head if heads else Html(), tag("tbody", *rows), class_=kind)
    return tag("div", inner, class_="scroll", role="region", tabindex="0", aria_label=label)


def row(*cells: str, head: str | None = None, kind: str | None = None) -> Html:
    """A row; `head` is the cell that says what it is about. A plain string becomes a `td`, `Html` must be one."""
    first = tag("th", head, scope="row") if head is not None else Html()
    return tag("tr", first, *(cell if isinstance(cell, Html) else tag("td", cell) for cell in cells), class_=kind)


def nested_row(*cells: str, head: str) -> Html:
    """A row that belongs to the one above if its head begins with blanks."""
    return row(*cells, head=head.strip(), kind="nested" if head.startswith(" ") else None)


def settings_table(settings: Mapping[str, object]) -> Html:
    """Names and values, one row each; the parts of a value follow beneath it."""
    return table("Settings", (), _setting_rows(settings), "facts settings")


def _setting_rows(settings: Mapping[str, object], depth: int = 0) -> Iterator[Html]:
    for name, value in settings.items():
        parts = dict(_parts(value))
        head = tag("th", name.replace("_", " "), scope="row", class_=f"depth-{min(depth, 3)}")
        yield tag("tr", head, tag("td", Html() if parts else _folded(in_words(value))))
        yield from _setting_rows(parts, depth + 1)


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """The entries of a mapping, or of a list of mappings by their `name` or `policy`."""
    if isinstance(value, Mapping):
        yield from ((str(name), part) for name, part in value.items())
    elif isinstance(value, (list, tuple)) and value and all(isinstance(part, Mapping) for part in value):
        for place, part in enumerate(value, start=1):
            names = [str(part[key]) for key in ("name", "policy") if part.get(key) is not None][:1]
            yield f"{place}. {''.join(names)}".strip(), {key: one for key, one in part.items() if one is not None}


def in_words(value: object) -> str:
    """A value as a person would write it.

    >>> in_words(True), in_words(None), in_words([0.1, 0.2]), in_words(40000), in_words(0.05)
    ('yes', 'not set', '0.1, 0.2', '40,000', '0.05')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(in_words, value)) or "none"
    if isinstance(value, int):
        return f"{value:,}"
    return "not set" if value is None or value == "" else f"{value:g}" if isinstance(value, float) else str(value)


def _folded(text: str) -> str:
    if len(text) <= LONG:
        return text
    return tag("details", tag("summary", f"{text[:SHOWN]} …"), tag("p", text, class_="long"))
