"""`surefoot audit JOURNAL`: check every past decision without trusting the code that made it."""

import json
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bar
from rich.table import Table
from rich.text import Text

from surefoot.audit import ExpectedHead, JournalReport, Report, audit_whole
from surefoot.audit.chain import read_expected
from surefoot.audit.report import SHOWN, as_markdown, cannot_show, closest, findings_text, promise, rows, verdict
from surefoot.audit.whole import Progress
from surefoot.errors import ConfigError
from surefoot.experiment.snapshots import differing
from surefoot.journal import open_journal
from surefoot.journal.signatures import PublicKey
from surefoot.reports.audit_page import as_html


def audit(
    journal: Annotated[str, typer.Argument(help="A SQLite file, or postgresql://...")],
    experiment: Annotated[str | None, typer.Option(help="Name of the experiment; all of them by default.")] = None,
    expect: Annotated[
        list[str] | None,
        typer.Option(
            help="A hash that must be in the chain, such as the head of an earlier audit; or a file of heads: a "
            "client's receipts, a server's heads, or its log. Repeat for several."
        ),
    ] = None,
    key: Annotated[
        list[Path] | None,
        typer.Option(
            help="A public key of the server (PEM). Every head of the files must then be signed with it. Repeat where "
            "the key was changed."
        ),
    ] = None,
    shard: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=JOURNAL of a shard, for the hub of shards that share a floor. Repeat for each shard; "
            "edges are found by themselves."
        ),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Write a report to this file (.html or .md).")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Check every recorded decision from the raw events. Exit code 0: clean; 1: findings; 2: unreadable."""
    if report is not None and report.suffix not in (".html", ".md"):
        raise ConfigError(f"`--report` must end in .html or .md, but got {report}.")
    if report is not None and not report.parent.is_dir():
        raise ConfigError(f"`--report` must lie in a folder that exists, but {report.parent} is none.")
    # An auditor must be able to look while a server writes, and must change nothing.
    with ExitStack() as stack:
        opened = stack.enter_context(open_journal(journal, read_only=True))
        given = [head for one in expect or [] for head in _expected(one)]
        if key and all(isinstance(one, str) for one in given):
            raise ConfigError("`--key` checks the signatures of heads, but none are given: name a file by `--expect`.")
        if report is not None and experiment is None and len(names := opened.names()) > 1:
            raise ConfigError(f"A report is about one of {', '.join(names)}: name it by `--experiment`.")
        paths = dict(one.partition("=")[::2] for one in shard or [])
        if not all((*paths, *paths.values())) or (paths and experiment is None):
            raise ConfigError(f"`--shard` must be NAME=JOURNAL, for one `--experiment`, but got {shard}.")
        shards = {name: stack.enter_context(open_journal(path, read_only=True)) for name, path in paths.items()}
        keys = [PublicKey(path) for path in key or ()]
        progress = stack.enter_context(_bar())
        audited = audit_whole(
            opened, experiment, expect=given, keys=keys, shards=shards, replay=differing, progress=progress
        )
    if report is not None:
        first = audited.experiments[0]
        report.write_text(as_html(first) if report.suffix == ".html" else as_markdown(first), "utf-8")
    if as_json:
        typer.echo(json.dumps(audited.as_dicts(), indent=2))
    else:
        for one in audited.experiments:
            _print(one)
        _print_whole(audited.journal)
    sys.exit(0 if audited.is_clean else 1)


def _expected(text: str) -> list[str | ExpectedHead]:
    """A hash, or the heads of a file."""
    return [text] if re.fullmatch("[0-9a-f]{64}", text) else [*read_expected(Path(text))]


@contextmanager
def _bar() -> Iterator[Progress]:
    columns = (BarColumn(), MofNCompleteColumn(), TextColumn("events"), TimeElapsedColumn(), TextColumn("left"))
    console = Console(stderr=True)
    title = TextColumn("auditing {task.description}", markup=False)
    bar, tasks = Bar(title, *columns, TimeRemainingColumn(), console=console, transient=True), dict[str, TaskID]()

    def progress(name: str, done: int, total: int) -> None:
        if name not in tasks:
            bar.start()  # an audit that says nothing of how far it is prints no empty line
            tasks[name] = bar.add_task(name)
        bar.update(tasks[name], completed=done, total=total)

    try:
        yield progress
    finally:
        if tasks:
            bar.stop()


def _print(report: Report) -> None:
    console = Console()
    seal = Text("CLEAN", "bold green") if report.is_clean else Text(findings_text(report.findings).upper(), "bold red")
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
    *facts, (_, head) = rows(report)
    for name, value in facts:
        table.add_row(name, Text(value, overflow="fold"))
    console.print(Text("\nWhat was checked", "bold"))
    console.print(table)
    # A line of its own, so that a hash can be copied whole.
    console.print(Text(f"head: event {head}"), soft_wrap=True)
    console.print(Text("\nWhat an audit cannot show", "bold"))
    for text in cannot_show(report):
        console.print(Text(f"- {text}"))


def _print_whole(report: JournalReport) -> None:
    console = Console()
    if report.signed:
        console.print(Text(f"\nSignatures checked: {report.signed:,} heads."))
    for one in report.deleted:
        how = "archived" if one.is_archived else "deleted"
        console.print(Text(f"\n{one.name!r} was {how} by {one.by} at its event {one.number:,}: {one.reason}"))
    if not report.is_clean:
        console.print(Text.assemble("\nThe journal as a whole: ", (findings_text(report.findings).upper(), "bold red")))
        _print_findings(console, report)


def _print_findings(console: Console, report: Report | JournalReport) -> None:
    console.print(Text("\nFindings", "bold red"))
    for finding in list(report.findings)[:SHOWN]:
        console.print(Text(f"- {finding}"))
    if len(report.findings) > SHOWN:
        console.print(
            f"- and {len(report.findings) - SHOWN:,} more (--json lists the first {len(report.findings.listed)})"
        )
