"""`surefoot audit JOURNAL`: check every past decision without trusting the code that made it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from surefoot.audit import Progress as Report_
from surefoot.audit import Report
from surefoot.audit import audit as run_audit
from surefoot.audit.audit_text import SHOWN, as_markdown, cannot_show, closest, promise, rows, verdict
from surefoot.errors import ConfigError, JournalNotFoundError
from surefoot.journal import open_journal
from surefoot.reports.audit_page import as_html


def audit(
    journal: Annotated[str, typer.Argument(help="A SQLite file, or postgresql://...")],
    experiment: Annotated[str | None, typer.Option(help="Name of the experiment; all of them by default.")] = None,
    expect: Annotated[
        str | None,
        typer.Option(help="Hash of an event that must be in the chain, such as the head of an earlier audit."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this file (.html or .md).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check every recorded decision from the raw events. Exit code 0: clean; 1: findings; 2: unreadable."""
    if report is not None and report.suffix not in (".html", ".md"):
        raise ConfigError(f"`--report` must end in .html or .md, but got {report}.")
    # An auditor must be able to look while a server writes, and must change nothing.
    with open_journal(journal, read_only=True) as opened:
        names = opened.names() if experiment is None else [experiment]
        if not names:
            raise JournalNotFoundError(f"The journal {journal} has no experiment to audit.")
        if len(names) > 1 and (report is not None or expect is not None):
            raise ConfigError(f"Name one of {', '.join(names)} with `--experiment`: a report and a head belong to one.")
        reports = []
        for name in names:
            with _bar(f"auditing {name}") as progress:
                reports.append(run_audit(opened, name, progress=progress, expect=expect))
    if report is not None:
        report.write_text(as_html(reports[0]) if report.suffix == ".html" else as_markdown(reports[0]), "utf-8")
    if as_json:
        typer.echo(json.dumps([one.as_dict() for one in reports], indent=2))
    else:
        for one in reports:
            _print(one)
    sys.exit(0 if all(one.is_clean for one in reports) else 1)


@contextmanager
def _bar(title: str) -> Iterator[Report_]:
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("events"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def _print(report: Report) -> None:
    console = Console()
    seal = Text("CLEAN", "bold green") if report.is_clean else Text(f"{len(report.findings):,} FINDINGS", "bold red")
    # Text throughout: rich would read brackets in names and findings as markup.
    console.print(Text.assemble("Audit of experiment ", (repr(report.name), "bold"), ": ", seal))
    for title, text in (
        ("What was promised", promise(report)),
        ("Was it kept?", verdict(report)),
        ("How close did it get?", closest(report)),
    ):
        console.print(Text(f"\n{title}", "bold"))
        console.print(Text(text))
    if not report.is_clean:
        _print_findings(console, report)
    table = Table(show_header=False, box=None, pad_edge=False)
    for name, value in rows(report):
        table.add_row(name, Text(value, overflow="fold"))
    console.print(Text("\nWhat was checked", "bold"))
    console.print(table)
    console.print(Text("\nWhat an audit cannot show", "bold"))
    for text in cannot_show(report):
        console.print(Text(f"- {text}"))


def _print_findings(console: Console, report: Report) -> None:
    console.print(Text("\nFindings", "bold red"))
    for finding in list(report.findings)[:SHOWN]:
        console.print(Text(f"- {finding}"))
    if len(report.findings) > SHOWN:
        console.print(
            f"- and {len(report.findings) - SHOWN:,} more (--json lists the first {len(report.findings.listed)})"
        )
