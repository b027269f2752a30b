"""Interactive charts on a page: plain Plotly descriptions, and the JavaScript that draws them, carried along.

A trace names its colours on light and on dark in `meta.tones`; everything else is taken from the stylesheet.
"""

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from surefoot.errors import ConfigError
from surefoot.reports.markup import Html, join, tag

SCRIPT = Path(__file__).with_name("plotly_charts.js")
NO_SCRIPT = "The charts need JavaScript; every number they show at the horizon is in the tables."


def chart_place(name: str, label: str) -> Html:
    """Where the chart of that name is drawn; `label` says what it shows."""
    return tag("div", class_="chart", id=name, role="img", aria_label=label)


def chart_scripts(charts: Mapping[str, Any]) -> Html:
    """What draws the charts: their descriptions, Plotly, and our own few lines."""
    # "</script>" in a name would end the element, and NaN is no JSON to a browser.
    told = json.dumps(charts, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    drawn = SCRIPT.read_text(encoding="utf-8")
    return join(
        (
            tag("noscript", tag("p", NO_SCRIPT, class_="note")),
            tag("script", Html(told), type="application/json", id="charts"),
            tag("script", Html(_plotly())),
            tag("script", Html(drawn)),
        ),
        Html("\n"),
    )


def _plotly() -> str:
    try:
        return str(importlib.import_module("plotly.offline").get_plotlyjs())
    except ModuleNotFoundError as missing:
        raise ConfigError(
            "The interactive report needs plotly, but it is not installed: pip install plotly"
        ) from missing
