"""One HTML file about a reproduction of Section 5: charts, claims, numbers and settings, readable without a network."""

import os
from collections.abc import Mapping
from pathlib import Path

import polars as pl

from surefoot.paper.charts import CHARTS
from surefoot.paper.claims import Claim, judge
from surefoot.paper.paper_page import (
    FOOTER,
    GLANCE,
    REPRODUCTION,
    SWEEP,
    cards,
    is_of_paper,
    other_runs,
    verdict,
    world_section,
)
from surefoot.paper.report_tables import scale_table
from surefoot.paper.sweep_rows import of_world, panel_worlds, policies_of, pooled, worlds
from surefoot.reports.frame import page, section
from surefoot.reports.markup import join, tag
from surefoot.reports.plotly_charts import chart_scripts
from surefoot.reports.tables import settings_table
from surefoot.simulation.atomic_files import whole_file


def write_report(
    table: pl.DataFrame,
    path: str | os.PathLike[str],
    *,
    settings: Mapping[str, object],
    note: str | None = None,
    rivals: Mapping[str, str] | None = None,
) -> Path:
    """Write the page; the file appears whole or not at all.

    `rivals` names for a policy of ours the one of the paper that its conservative rounds are held against.
    """
    text = report_html(pooled(table), settings=settings, note=note, rivals=rivals or {})
    with whole_file(Path(path)) as file:
        file.write(text.encode())
    return Path(path)


def report_html(
    table: pl.DataFrame, *, settings: Mapping[str, object], note: str | None, rivals: Mapping[str, str]
) -> str:
    """The page, from a table in which seeds are pooled."""
    names = panel_worlds(table)
    judged = {world: _judged(table, world) for world in names}
    charts = {f"{kind}-{i}": make(of_world(table, w)) for i, w in enumerate(names) for kind, make in CHARTS.items()}
    told = REPRODUCTION if any(map(is_of_paper, names)) else SWEEP
    return page(
        told.title,
        section("At a glance", cards(table, judged, rivals), tag("p", GLANCE), anchor="glance"),
        join(world_section(table, world, judged[world], i, rivals) for i, world in enumerate(names)),
        other_runs(table, [world for world in worlds(table) if world not in names]),
        section("What was run", scale_table(table), tag("h3", "Settings"), settings_table(settings), anchor="run"),
        heading=told.heading,
        verdict=verdict(table, judged),
        lead=[tag("p", told.lead, class_="lead")],
        note=note,
        footer=FOOTER,
        scripts=chart_scripts(charts),
    )


def _judged(table: pl.DataFrame, world: str) -> list[Claim]:
    """Section 5's claims, in its own worlds and where LUCB and CLUCB were both run; none elsewhere."""
    has_both = {"LUCB", "CLUCB"} <= set(policies_of(of_world(table, world)))
    return judge(table, world) if has_both and is_of_paper(world) else []
