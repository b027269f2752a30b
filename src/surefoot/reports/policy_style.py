"""How a policy is drawn: one look for paper and screen, for a light and a dark page.

Solid lines and filled markers know the baseline's reward, dashed lines and open markers do not. Markers and hatches
differ from policy to policy, so that a grey print can be read.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.colors import to_hex

from surefoot.reports.figure_style import INK, STYLE

LEAST = 0.1  # rounds; less is drawn here, as a logarithmic axis has no zero
MARKERS = "osD^v<p>h8d*"  # by alpha
DASHES: dict[str, Any] = {"solid": "-", "dash": (0, (4, 2)), "dot": (0, (1, 1.5)), "dashdot": (0, (5, 1.5, 1, 1.5))}
HATCHES = {"": "", "/": "/////", ".": "...", "x": "xx", "\\": "\\\\\\\\\\", "-": "----", "+": "+++"}
# 42 embeds TrueType: many publishers refuse the Type 3 fonts that matplotlib writes otherwise.
PAPER_STYLE = STYLE | {"axes.titlesize": 9.5, "hatch.linewidth": 0.6, "pdf.fonttype": 42}


@dataclass(frozen=True, slots=True)
class PolicyStyle:
    """Colours on light and on dark, line, marker (its name in a figure and on a page), bar."""

    light: str
    dark: str
    dash: str
    marker: str
    symbol: str
    is_filled: bool
    fill: str
    pattern: str

    @property
    def tones(self) -> tuple[str, str]:
        """On a light and on a dark page."""
        return self.light, self.dark

    @property
    def line(self) -> dict[str, Any]:
        """What matplotlib is told of a line over alphas."""
        face = self.light if self.is_filled else "w"
        width = 1.6 if self.is_filled else 1.2
        return {
            "color": self.light,
            "ls": DASHES[self.dash],
            "lw": width,
            "marker": self.marker,
            "ms": 5.5,
            "mfc": face,
        }

    @property
    def page_line(self) -> dict[str, Any]:
        """What Plotly is told of it."""
        open_ = {"symbol": f"{self.symbol}-open", "line": {"width": 2}}
        marker = {"size": 9, **({"symbol": self.symbol} if self.is_filled else open_)}
        return {"mode": "lines+markers", "line": {"width": 2, "dash": self.dash}, "marker": marker}

    @property
    def bar(self) -> dict[str, Any]:
        """What matplotlib is told of a bar."""
        return {"color": self.fill, "hatch": HATCHES[self.pattern], "edgecolor": INK, "lw": 0.6}


POLICY_STYLES = {
    "LUCB": PolicyStyle(INK, "#f2f2f2", "solid", "", "circle", True, "#3b3b3b", ""),
    "CLUCB": PolicyStyle("#1f5f8b", "#5cc4d6", "solid", "o", "circle", True, "#7ad0bb", "/"),
    "CLUCB2": PolicyStyle("#8a6bb8", "#b79ae6", "dash", "s", "square", False, "#d5cde8", "."),
    "CLUCB2-exact": PolicyStyle("#6e6e6e", "#b5b5b5", "dot", "h", "hexagon", False, "#ffffff", "x"),
    "SafeLUCB": PolicyStyle("#d9731a", "#f5a25d", "dash", "^", "triangle-up", False, "#f3c9a0", "\\"),
    "SafeLUCB, means in [0, 1]": PolicyStyle("#a3230f", "#ff8a75", "dash", "D", "diamond", False, "#e59c90", "-"),
    "SafeLUCB, means in [0, 1], known baseline": PolicyStyle(
        "#2c6e1f", "#8ddc7a", "solid", "*", "star", True, "#a8d69c", "+"
    ),
}
SPARE = (
    PolicyStyle("#00736b", "#4fd1c5", "solid", "v", "triangle-down", True, "#9ad8d2", "\\"),
    PolicyStyle("#9c3f88", "#e79ad5", "dashdot", "P", "cross", True, "#dfb3d5", "+"),
    PolicyStyle("#7a6a00", "#dccb4c", "dot", "X", "x", True, "#e0d78f", "-"),
    PolicyStyle("#4a4fb5", "#a9adff", "dashdot", "p", "pentagon", False, "#c3c5ee", "x"),
)


def styles_for(policies: Sequence[str]) -> dict[str, PolicyStyle]:
    """A look for each policy: its own, or for names of somebody's choice the next spare one."""
    others = [policy for policy in policies if policy not in POLICY_STYLES]
    return POLICY_STYLES | {policy: SPARE[place % len(SPARE)] for place, policy in enumerate(others)}


def colour_of(alpha: float, alphas: Sequence[float], *, dark: bool = False) -> str:
    """An alpha's colour: along viridis by its rank, short of the end that the background would swallow."""
    along = list(alphas).index(alpha) / max(1, len(alphas) - 1)
    return to_hex(mpl.colormaps["viridis"](0.97 - 0.5 * along if dark else 0.85 * along))
