"""HTML that is safe by default: what is not marked as HTML is escaped on its way into a page."""

from collections.abc import Iterable
from html import escape
from typing import Self

EMPTY_TAGS = frozenset({"link", "meta"})


class Html(str):
    """Text that is HTML already. A plain string is not, and an f-string never is."""

    __slots__ = ()

    def __add__(self, other: str) -> Self:
        """What is added to HTML is escaped unless it is HTML, too."""
        return type(self)(str.__add__(self, html(other)))


def html(content: object) -> Html:
    """Anything as HTML: marked text as it is, everything else escaped.

    >>> html("a < b"), html(Html("<br>"))
    ('a &lt; b', '<br>')
    """
    return content if isinstance(content, Html) else Html(escape(str(content)))


def join(parts: Iterable[object], separator: str = "") -> Html:
    """One piece of HTML of several, each escaped unless it is HTML."""
    return Html(html(separator).join(html(part) for part in parts))


def tag(name: str, /, *children: object, **attributes: object) -> Html:
    """An element around its children; an attribute that is None is left out.

    A trailing underscore lets `class_` be written, and others stand for dashes.

    >>> tag("p", "1 < 2", class_="note", aria_label='a "b"')
    '<p class="note" aria-label="a &quot;b&quot;">1 &lt; 2</p>'
    """
    shown = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    # Not `html`: inside of quotation marks even marked text must not end the attribute.
    said = "".join(f' {key}="{escape(str(value))}"' for key, value in shown.items())
    if name in EMPTY_TAGS:
        return Html(f"<{name}{said}>")
    return Html(f"<{name}{said}>{join(children)}</{name}>")
