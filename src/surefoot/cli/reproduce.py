"""`surefoot reproduce`: the paper's whole experiment with one command."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from surefoot.cli.number_lists import parse_numbers
from surefoot.cli.on_option import OnOption
from surefoot.cli.progress import progress_bar
from surefoot.errors import ConfigError
from surefoot.paper.report import write_results
from surefoot.paper.section5 import ALPHAS, FULL, INSTANCES, QUICK, paper_sweep, rivals
from surefoot.simulation.result_folder import folder_at
from surefoot.simulation.sweep import run_sweep

if TYPE_CHECKING:
    import polars as pl

DEFAULT_ALPHAS = ",".join(f"{alpha:g}" for alpha in ALPHAS)


def reproduce(
    out: Annotated[
        str | None, typer.Option(help="Folder for figures, table and report, or an address such as s3://bucket/folder.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Fewer runs and rounds: seconds instead of minutes.")] = False,
    runs: Annotated[int | None, typer.Option(help="Number of realisations; by default 1,000.")] = None,
    horizon: Annotated[int | None, typer.Option(help="Rounds per realisation.")] = None,
    alphas: Annotated[str, typer.Option(help="Alphas, separated by commas.")] = DEFAULT_ALPHAS,
    seed: Annotated[int, typer.Option(help="Seed: same seed, same bits.")] = 0,
    instance: Annotated[str, typer.Option(help="as-written, normalized, or both.")] = "both",
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    on: OnOption = None,
) -> None:
    """Reproduce Section 5 of the paper.

    Writes figures 1 to 4, results.csv, results.parquet and report.html, and judges the paper's claims one by one.
    If interrupted, run the same command again: it continues where it stopped.
    """
    base = QUICK if quick else FULL
    scale = replace(
        base, runs=base.runs if runs is None else runs, horizon=base.horizon if horizon is None else horizon
    )
    folder = out or ("results/paper-quick" if quick else "results/paper")
    grid = parse_numbers("--alphas", alphas)
    sweep = paper_sweep(scale, alphas=grid, seed=seed, instances=_instances(instance))
    is_full = (scale.runs, scale.horizon) == (FULL.runs, FULL.horizon)
    note = None if is_full else f"{scale.runs:,} runs x {scale.horizon:,} rounds, not the paper's 1,000 x 40,000"
    against = rivals(sweep)
    with progress_bar("simulating") as report:
        table = run_sweep(sweep, folder, threads=threads, progress=report, on=on)
    with folder_at(folder).filled() as path:
        write_results(table, path, settings=sweep.describe(), rivals=against, note=note)
    _summary(table, folder, against)


def _instances(name: str) -> tuple[Literal["as-written", "normalized"], ...]:
    if name == "both":
        return INSTANCES
    chosen = tuple(known for known in INSTANCES if known == name)
    if not chosen:
        raise ConfigError(f"`--instance` must be as-written, normalized or both, but got {name!r}.")
    return chosen


def _summary(table: "pl.DataFrame", folder: str, against: Mapping[str, str]) -> None:
    from surefoot.paper.claims import judge
    from surefoot.paper.sweep_rows import section5_worlds

    console = Console()
    rows = Table("what the paper says", "measured", "", title="Section 5, claim by claim")
    for world in section5_worlds(table):
        rows.add_section()
        rows.add_row(f"[bold]{world}[/bold]", "", "")
        for claim in judge(table, world):
            rows.add_row(claim.text, claim.measured, "holds" if claim.holds else "does not hold")
    console.print(rows)
    console.print(_ratios(table, against))
    console.print(f"Wrote figure1-4 (.png, .pdf), results.csv, results.parquet and report.html to {folder}/")


def _ratios(table: "pl.DataFrame", against: Mapping[str, str]) -> Table:
    """How many times fewer rounds of the baseline SafeLUCB needs, by alpha."""
    from surefoot.paper.sweep_rows import all_alphas, fewer, of_world, policies_of, section5_worlds, times

    alphas = all_alphas(table, list(against))
    shown = Table("rounds of the baseline, times fewer", title="Beyond the paper: SafeLUCB, by alpha")
    for alpha in alphas:
        shown.add_column(f"{alpha:g}", justify="right", no_wrap=True)
    for world in section5_worlds(table):
        found = of_world(table, world)
        shown.add_section()
        shown.add_row(f"[bold]{world}[/bold]")
        for name in [name for name in against if name in policies_of(found)]:
            ratios = [fewer(found, name, against[name], alpha) for alpha in alphas]
            cells = ["–" if ratio is None else times(ratio) for ratio in ratios]
            # rich would take [0, 1] in a policy's name for markup.
            shown.add_row(escape(f"{name} (against {against[name]})"), *cells)
    return shown
