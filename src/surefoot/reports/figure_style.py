"""The look that all figures share: quiet axes, small type, and the colours of what is drawn, on light and on dark."""

from typing import TYPE_CHECKING, Any

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

# One meaning each, in every figure: a policy has its own line, and dots are floors.
LINES: tuple[Any, ...] = ("-", (0, (5, 2)), (0, (6, 2, 1, 2)), (0, (8, 2, 1, 2, 1, 2)))
FLOOR: Any = (0, (1, 1.4))

# What the background decides is named in style.css; everything else has a colour for each.
NEUTRAL = {
    INK: "var(--ink)",
    DARK_GREY: "var(--soft)",
    GREY: "var(--soft)",
    GRID: "var(--grid)",
    PAPER: "var(--card)",
}
SERIES = {
    "#31688e": "#7fb4dc",
    "#1f9e89": "#4fd1b5",
    "#b0562f": "#f09a72",
    "#8a6bb8": "#bda2ea",
    "#c59b08": "#e6c44d",
    "#7a7a7a": "#b8b8b8",
}


def series_colour(place: int) -> str:
    """The colour of the first, second, ... thing that is drawn, on a light background."""
    return list(SERIES)[place % len(SERIES)]


def legend_below(ax: "Axes", figure: "Figure") -> None:
    """Move the legend beneath the axes, where it hides nothing and takes no width from a phone."""
    if (legend := ax.get_legend()) is not None:
        legend.remove()
        # Long enough for the longest pattern of `LINES`, whose first dash alone would pass for a line.
        figure.legend(
            *ax.get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=8, handlelength=3.4
        )
