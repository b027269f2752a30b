"""A matplotlib figure inside of a page: drawn once, in colours that follow the page from light to dark."""

import re
from collections.abc import Mapping
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from surefoot.reports.figure_style import INK, NEUTRAL, SERIES
from surefoot.reports.markup import Html, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Matplotlib writes no colour where it is its own black, so that everything has to be told its ink.
INKED = dict.fromkeys(
    ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
)
SVG_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "surefoot", **INKED}

COLOURED = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})")
NAMED = re.compile(r'(\bid="|href="#|url\(#)')
# A stylesheet inside of a figure would hold for the whole page; style.css says the same of pictures alone.
DOCUMENT = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", flags=re.DOTALL)
# Words stay words, in the letters of whoever shows them; beyond hundredths of a point nobody sees a difference.
LETTERS = re.compile(r"'DejaVu Sans'[^;\"]*")
FINE = re.compile(r"(?<=\d\.\d\d)\d+")
TAG = re.compile(r"<[^>]*>")  # matplotlib escapes what stands in attributes
SIZED = re.compile(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>')


def inline_svg(figure: "Figure", name: str, label: str, *, tones: Mapping[str, str] | None = None) -> Html:
    """The figure as SVG, for a page that has no other figure of that name; `label` says what it shows.

    `tones` gives for a colour on light the one on dark, where the figure has others than `SERIES`. Draw the figure
    under `SVG_STYLE`.
    """
    written = StringIO()
    figure.savefig(written, format="svg", transparent=True, metadata={"Date": None})
    text = NAMED.sub(rf"\g<1>{name}-", DOCUMENT.sub("", slim(written.getvalue(), "inherit")))
    dark = {**SERIES, **(tones or {})}
    text = COLOURED.sub(lambda found: _themed(found[1], found[2], dark), text)
    start = f'<svg role="img" aria-label="{escape(label)}"'
    text = SIZED.sub(lambda found: f"{start} {found[1]}>", text, count=1)
    return tag("div", Html(text), class_="picture", tabindex="0")


def slim(text: str, letters: str = "sans-serif") -> str:
    """An SVG as matplotlib writes it, in other letters, and without digits of places that nobody sees."""
    return TAG.sub(lambda found: FINE.sub("", LETTERS.sub(letters, found[0])), text)


def _themed(what: str, colour: str, dark: Mapping[str, str]) -> str:
    """A declaration that follows the page; a browser that does not know `light-dark` stays with the first."""
    if colour in NEUTRAL:
        return f"{what}: {NEUTRAL[colour]}"
    return f"{what}: {colour}; {what}: light-dark({colour}, {dark[colour]})" if colour in dark else f"{what}: {colour}"
