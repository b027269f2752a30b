"""`surefoot simulate FILE.toml`: any sweep, into a table and pictures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from surefoot.cli.on_option import OnOption
from surefoot.cli.progress import progress_bar
from surefoot.paper.report import write_results
from surefoot.paper.section5 import rivals
from surefoot.simulation.result_folder import folder_at
from surefoot.simulation.sweep import run_sweep
from surefoot.simulation.sweep_config import read_sweep


def simulate(
    file: Annotated[Path, typer.Argument(help="TOML file that describes the sweep.")],
    out: Annotated[
        str | None,
        typer.Option(help="Folder for the results, or an address such as s3://bucket/folder; results/NAME by default."),
    ] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
    on: OnOption = None,
) -> None:
    """Run the sweep of a TOML file.

    Writes results.csv, results.parquet, figures and report.html.
    If interrupted, run the same command again: it continues where it stopped.
    """
    sweep = read_sweep(file)
    folder = out or f"results/{file.stem}"
    with progress_bar("simulating") as report:
        table = run_sweep(sweep, folder, threads=threads, progress=report, on=on)
    with folder_at(folder).filled() as path:
        write_results(table, path, settings=sweep.describe(), rivals=rivals(sweep))
    Console().print(f"Wrote figure1-4 (.png, .pdf), results.csv, results.parquet and report.html to {folder}/")
