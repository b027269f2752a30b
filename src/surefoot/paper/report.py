"""One HTML file about a reproduction of Section 5: charts, claims, numbers and settings, readable without a network.

Charts are plain Plotly descriptions, drawn by the JavaScript of the installed package, which the file carries along.
"""

import importlib
import json
import math
import os
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any

import polars as pl

from surefoot.errors import ConfigError
from surefoot.paper.claims import (
    FIRST,
    SURE,
    Claim,
    alphas_of,
    at_round,
    curve,
    judge,
    last_checkpoint,
    number,
    of_world,
    section5_worlds,
    worlds,
)
from surefoot.paper.figures import MARKERS, POLICIES, colour_of, instance_title, percent, write_whole

Chart = dict[str, Any]

INSTANCES = {
    "as-written": "Features and θ as the paper draws them. Mean rewards are then larger than 1, which the paper's own "
    "assumptions exclude; signals are strong, and everything is learned quickly.",
    "normalized": "The same draws, with θ divided by the best mean reward, so that the best action pays 1 and the "
    "paper's assumptions hold; signals are weaker, and learning takes longer.",
}
SYMBOLS = dict(
    zip(
        MARKERS,
        "circle square diamond triangle-up triangle-down triangle-left pentagon triangle-right hexagon octagon "
        "diamond-tall star".split(),
        strict=True,
    )
)
DASHES = {"CLUCB": "solid", "CLUCB2": "dash", "CLUCB2-exact": "dot"}
PATTERNS = {"LUCB": "", "CLUCB": "/", "CLUCB2": ".", "CLUCB2-exact": "x"}
TONES = {  # by policy, on a light and on a dark page
    "LUCB": ("#1a1a1a", "#f2f2f2"),
    "CLUCB": ("#1f6f8b", "#5cc4d6"),
    "CLUCB2": ("#7a57b0", "#b79ae6"),
    "CLUCB2-exact": ("#a5502a", "#e5a07c"),
}


def write_report(
    table: pl.DataFrame, path: str | os.PathLike[str], *, settings: Mapping[str, object], note: str | None = None
) -> Path:
    """Write the page; the file appears whole or not at all."""
    names = section5_worlds(table)
    judged = {world: judge(table, world) for world in names}
    charts = {f"{kind}-{i}": make(of_world(table, w)) for i, w in enumerate(names) for kind, make in _CHARTS.items()}
    page = Template(_file("report.html")).substitute(
        note=f'<p class="note" role="note">{escape(note)}</p>' if note else "",
        glance=_glance(table, judged),
        worlds="".join(_section(table, world, judged[world], i) for i, world in enumerate(names)),
        others=_others(table, [world for world in worlds(table) if world not in names]),
        settings=_settings(settings),
        scale=_scale(table),
        charts=json.dumps(charts, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        plotly=_plotly(),
    )
    return write_whole(Path(path), page.encode())
