"""Tables of a page: a wide one scrolls in a box of its own, and is printed whole."""

from collections.abc import Iterable, Mapping, Sequence

from surefoot.reports.markup import Html, tag

LONG, SHOWN = 400, 60  # characters


def table(label: str, heads: Sequence[str], rows: Iterable[Html], kind: str | None = None) -> Html:
    """A table in a box that scrolls; `label` names it for screen readers, `kind` is its class in the stylesheet."""
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in heads)))
    inner = tag("table", head if heads else Html(), tag("tbody", *rows), class_=kind)
    return tag("div", inner, class_="scroll", role="region", tabindex="0", aria_label=label)


def row(*cells: str, head: str | None = None, kind: str | None = None) -> Html:
    """A row; `head` is the cell that says what it is about. A plain string becomes a `td`, HTML must be one."""
    first = tag("th", head, scope="row") if head is not None else Html()
    return tag("tr", first, *(cell if isinstance(cell, Html) else tag("td", cell) for cell in cells), class_=kind)


def nested_row(*cells: str, head: str) -> Html:
    """A row that tells more of the one before; a head that begins with blanks is nested, any other is not."""
    return row(*cells, head=head.strip(), kind="nested" if head.startswith(" ") else None)


def definitions(entries: Mapping[str, object]) -> Html:
    """Names and what they stand for, such as the settings of a run; what is very long is folded."""
    return tag("dl", *(tag("dt", name) + tag("dd", _folded(str(value))) for name, value in entries.items()))


def _folded(text: str) -> str:
    if len(text) <= LONG:
        return text
    return tag("details", tag("summary", f"{text[:SHOWN]} …"), tag("p", text, class_="long"))
