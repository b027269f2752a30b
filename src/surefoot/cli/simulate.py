"""`surefoot simulate FILE.toml`: any sweep, into a table and pictures."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from surefoot.cli.progress import progress_bar
from surefoot.paper.paper_figures import save_figures
from surefoot.paper.paper_report import write_report
from surefoot.paper.section5 import rivals
from surefoot.simulation.sweep import run_sweep
from surefoot.simulation.sweep_config import read_sweep


def simulate(
    file: Annotated[Path, typer.Argument(help="TOML file that describes the sweep.")],
    out: Annotated[Path | None, typer.Option(help="Folder for the results; results/NAME by default.")] = None,
    threads: Annotated[int | None, typer.Option(help="Threads; all cores by default.")] = None,
) -> None:
    """Run the sweep of a TOML file: results.csv, results.parquet, figures and report.html.

    Interrupted, the same command continues where it stopped.
    """
    sweep = read_sweep(file)
    folder = out or Path("results") / file.stem
    with progress_bar("simulating") as report:
        table = run_sweep(sweep, folder, threads=threads, progress=report)
    save_figures(table, folder)
    write_report(table, folder / "report.html", settings=sweep.describe(), rivals=rivals(sweep))
    Console().print(f"Wrote figure1-4 (.png, .pdf), results.csv, results.parquet and report.html to {folder}/")
