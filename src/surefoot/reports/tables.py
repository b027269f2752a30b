"""Tables of a page: a wide one scrolls in a box of its own, and is printed whole."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

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


def settings_table(settings: Mapping[str, object]) -> Html:
    """Names and values, such as the settings of a run: one row each, those of a part beneath it."""
    return table("Settings", (), _setting_rows(settings), "facts settings")


def _setting_rows(settings: Mapping[str, object], depth: int = 0) -> Iterator[Html]:
    for name, value in settings.items():
        parts = dict(_parts(value))
        yield _nested(name.replace("_", " "), Html() if parts else _folded(said(value)), depth)
        yield from _setting_rows(parts, depth + 1)


def _nested(name: str, value: str, depth: int) -> Html:
    return tag("tr", tag("th", name, scope="row", class_=f"depth-{min(depth, 3)}"), tag("td", value))


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """What a mapping, or a list of mappings, is made of; a part is called by its own name where it has one."""
    if isinstance(value, Mapping):
        yield from ((str(name), part) for name, part in value.items())
    elif isinstance(value, (list, tuple)) and value and all(isinstance(part, Mapping) for part in value):
        for place, part in enumerate(value, start=1):
            called = [str(part[key]) for key in ("name", "policy") if part.get(key) is not None][:1]
            yield f"{place}. {''.join(called)}".strip(), {key: one for key, one in part.items() if one is not None}


def said(value: object) -> str:
    """A value as a person would say it.

    >>> said(True), said(None), said([0.1, 0.2]), said(40000), said(0.05)
    ('yes', 'not set', '0.1, 0.2', '40,000', '0.05')
    """
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(said, value)) or "none"
    if isinstance(value, int):
        return f"{value:,}"
    return "not set" if value is None or value == "" else f"{value:g}" if isinstance(value, float) else str(value)


def _folded(text: str) -> str:
    if len(text) <= LONG:
        return text
    return tag("details", tag("summary", f"{text[:SHOWN]} …"), tag("p", text, class_="long"))
