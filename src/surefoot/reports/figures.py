"""How figures look: colours for light and dark pages, the line of each policy, SVG inside a page.

A policy has its own line, marker and hatch, so that a grey print can be read; a dotted line is a floor. Solid lines
and filled markers know the baseline's reward, dashed lines and open markers do not.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from surefoot.reports.html_page import Html, tag

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1a1a1a"
GREY = "#8a8a8a"
DARK_GREY = "#4d4d4d"
PAPER = "#ffffff"
GRID = "#e4e4e4"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
}
# 42 embeds TrueType: many publishers refuse matplotlib's default, Type 3.
PAPER_STYLE = STYLE | {"axes.titlesize": 9.5, "hatch.linewidth": 0.6, "pdf.fonttype": 42}
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (6, 2, 1, 2)), (0, (8, 2, 1, 2, 1, 2)))
FLOOR: Any = (0, (1, 1.4))

# Colours that depend on the background are variables of style.css; a series has one colour for each background.
NEUTRAL = {INK: "var(--ink)", DARK_GREY: "var(--soft)", GREY: "var(--soft)", GRID: "var(--grid)", PAPER: "var(--card)"}
SERIES = {
    "#31688e": "#7fb4dc",
    "#1f9e89": "#4fd1b5",
    "#b0562f": "#f09a72",
    "#8a6bb8": "#bda2ea",
    "#c59b08": "#e6c44d",
    "#7a7a7a": "#b8b8b8",
}

LEAST = 0.1  # the foot of a logarithmic axis of rounds, which has no zero
MARKERS = "osD^v<p>h8d*"  # by alpha
DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (4, 2)), "dot": (0, (1, 1.5)), "dashdot": (0, (5, 1.5, 1, 1.5))}


def series_colour(place: int) -> str:
    """The colour of the first, second, ... series, on a light background."""
    return list(SERIES)[place % len(SERIES)]


def legend_below(ax: "Axes", figure: "Figure") -> None:
    """Move the legend beneath the axes, where it hides nothing and takes no width on a phone."""
    if (legend := ax.get_legend()) is not None:
        labels = [text.get_text() for text in legend.get_texts()]
        handles = [handle for handle in legend.legend_handles if handle is not None]
        legend.remove()
        # Handles long enough for the longest pattern of `LINES`, whose first dash alone would look solid.
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8, handlelength=3.4)


@dataclass(frozen=True, slots=True)
class PolicyStyle:
    """Colours on light and on dark, line, marker and hatch."""

    light: str
    dark: str
    dash: str
    marker: str
    is_filled: bool
    hatch: str

    @property
    def line(self) -> dict[str, Any]:
        """A line over alphas."""
        return {
            "color": self.light,
            "ls": DASHES[self.dash],
            "lw": 1.6 if self.is_filled else 1.2,
            "marker": self.marker,
            "ms": 5.5,
            "mfc": self.light if self.is_filled else "w",
        }

    @property
    def bar(self) -> dict[str, Any]:
        """A bar."""
        return {"color": self.light, "hatch": self.hatch, "edgecolor": PAPER, "lw": 0.6}


POLICY_STYLES = {
    "LUCB": PolicyStyle(INK, "#f2f2f2", "solid", "", True, ""),
    "CLUCB": PolicyStyle("#1f5f8b", "#5cc4d6", "solid", "o", True, "/////"),
    "CLUCB2": PolicyStyle("#8a6bb8", "#b79ae6", "dash", "s", False, "..."),
    "CLUCB2-exact": PolicyStyle("#6e6e6e", "#b5b5b5", "dot", "h", False, "xx"),
    "SafeLUCB": PolicyStyle("#d9731a", "#f5a25d", "dash", "^", False, "\\\\\\\\\\"),
    "SafeLUCB, means in [0, 1]": PolicyStyle("#a3230f", "#ff8a75", "dash", "D", False, "----"),
    "SafeLUCB, means in [0, 1], known baseline": PolicyStyle("#2c6e1f", "#8ddc7a", "solid", "*", True, "+++"),
}
SPARE = (
    PolicyStyle("#00736b", "#4fd1c5", "solid", "v", True, "\\\\\\\\\\"),
    PolicyStyle("#9c3f88", "#e79ad5", "dashdot", "P", True, "+++"),
    PolicyStyle("#7a6a00", "#dccb4c", "dot", "X", True, "----"),
    PolicyStyle("#4a4fb5", "#a9adff", "dashdot", "p", False, "xx"),
)


def styles_for(policies: Sequence[str]) -> dict[str, PolicyStyle]:
    """A style for each policy: its own, or the next spare one for a name that we do not know."""
    others = [policy for policy in policies if policy not in POLICY_STYLES]
    return POLICY_STYLES | {policy: SPARE[place % len(SPARE)] for place, policy in enumerate(others)}


def colour_of(alpha: float, alphas: Sequence[float], *, dark: bool = False) -> str:
    """An alpha's colour: along viridis by its rank, short of the end that the background would swallow."""
    import matplotlib as mpl
    from matplotlib.colors import to_hex

    along = list(alphas).index(alpha) / max(1, len(alphas) - 1)
    return to_hex(mpl.colormaps["viridis"](0.97 - 0.5 * along if dark else 0.85 * along))


# Matplotlib writes no colour where it is its own black, so every text and edge gets an explicit ink.
INKED = dict.fromkeys(
    ("text.color", "axes.edgecolor", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK
)
SVG_STYLE: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "surefoot", **INKED}

COLOURED = re.compile(r"\b(fill|stroke): (#[0-9a-f]{6})")
FILLED = re.compile(r'\bfill="(#[0-9a-f]{6})"')  # beneath a hatch, where matplotlib writes no style
NAMED = re.compile(r'(\bid="|href="#|url\(#)')
# A stylesheet inside a figure would apply to the whole page; style.css says the same for pictures alone.
DOCUMENT = re.compile(r"^.*?(?=<svg)|<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", flags=re.DOTALL)
FONTS = re.compile(r"'DejaVu Sans'[^;\"]*")
FINE = re.compile(r"(?<=\d\.\d\d)\d+")  # hundredths of a point are enough
TAG = re.compile(r"<[^>]*>")  # matplotlib escapes attributes
SIZED = re.compile(r'<svg [^>]*?(viewBox="[^"]*")[^>]*>')


def inline_svg(figure: "Figure", name: str, label: str, *, tones: Mapping[str, str] | None = None) -> Html:
    """The figure as SVG in colours that follow the page from light to dark.

    `name` must be unique on the page, and `label` says what the figure shows. `tones` maps colours on light to those
    on dark where the figure has others than `SERIES`. Draw the figure under `SVG_STYLE`.
    """
    svg = StringIO()
    figure.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
    text = NAMED.sub(rf"\g<1>{name}-", DOCUMENT.sub("", slim(svg.getvalue(), "inherit")))
    text = FILLED.sub(r'style="fill: \1"', text)
    dark = {**SERIES, **(tones or {})}
    text = COLOURED.sub(lambda match: _themed(match[1], match[2], dark), text)
    start = f'<svg role="img" aria-label="{escape(label)}"'
    text = SIZED.sub(lambda match: f"{start} {match[1]}>", text, count=1)
    return tag("div", Html(text), class_="picture", tabindex="0")


def slim(text: str, fonts: str = "sans-serif") -> str:
    """Matplotlib's SVG with the reader's fonts, and coordinates rounded to hundredths."""
    return TAG.sub(lambda match: FINE.sub("", FONTS.sub(fonts, match[0])), text)


def _themed(what: str, colour: str, dark: Mapping[str, str]) -> str:
    """A declaration that follows the page; a browser without `light-dark` keeps the first."""
    if colour in NEUTRAL:
        return f"{what}: {NEUTRAL[colour]}"
    return f"{what}: {colour}; {what}: light-dark({colour}, {dark[colour]})" if colour in dark else f"{what}: {colour}"
