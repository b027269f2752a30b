"""`surefoot audit JOURNAL`: check every past decision without trusting the code that made it."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from surefoot.audit import ExpectedHead, JournalReport, Report, audit_journal, audit_shards
from surefoot.audit import Progress as Report_
from surefoot.audit import audit as run_audit
from surefoot.audit.chain import HeadSearch, read_expected
from surefoot.audit.report import SHOWN, as_markdown, cannot_show, closest, findings_text, promise, rows, verdict
from surefoot.audit.shards import declared
from surefoot.errors import ConfigError, JournalNotFoundError, SurefootError
from surefoot.experiment.snapshots import differing
from surefoot.journal import Journal, View, open_journal
from surefoot.journal.signatures import PublicKey
from surefoot.reports.audit_page import as_html
from surefoot.rounds.events import edge_chain


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
    with open_journal(journal, read_only=True) as opened:
        hashes, kept = _expected(expect or [])
        if key and not kept:
            raise ConfigError("`--key` checks the signatures of heads, but none are given: name a file by `--expect`.")
        whole = audit_journal(opened, expect=kept, keys=[PublicKey(path) for path in key or ()])
        names = opened.names() if experiment is None else [experiment]
        if not names and whole.is_clean and not whole.deleted:
            raise JournalNotFoundError(f"The journal {journal} has no experiment to audit.")
        if len(names) > 1 and (report is not None or hashes):
            raise ConfigError(f"Name one of {', '.join(names)} with `--experiment`: a report and a hash belong to one.")
        reports = []
        is_shared = _is_shared(opened, names)
        if shard and len(names) == 1 and not is_shared:
            raise ConfigError(f"`--shard` is for an experiment that shards share, but {names[0]!r} is not one.")
        if is_shared:
            heads = [head.hash for name in names for head in whole.expected.get(name, ())]
            reports = _shared(opened, names, shard or [], [*hashes, *heads])
        for name in () if is_shared else names:
            with _bar(f"auditing {name}") as progress:
                expected = HeadSearch(whole.expected.get(name, ()), hashes)
                reports.append(run_audit(opened, name, progress=progress, expect=expected))
            _replay_snapshots(opened.view(name), reports[-1])
    if report is not None:
        report.write_text(as_html(reports[0]) if report.suffix == ".html" else as_markdown(reports[0]), "utf-8")
    if as_json:
        own = [whole.as_dict()] if whole.head.number or not whole.is_clean else []
        typer.echo(json.dumps([one.as_dict() for one in reports] + own, indent=2))
    else:
        for one in reports:
            _print(one)
        _print_whole(whole)
    sys.exit(0 if whole.is_clean and all(one.is_clean for one in reports) else 1)


def _is_shared(journal: Journal, names: list[str]) -> bool:
    """Whether the one experiment to audit is shared; an error where it is one of several, or a shard's own part."""
    for name in names:
        created = declared(journal.view(name))
        if created is None or created.skew is None:
            continue
        if created.shard is not None or len(names) > 1:
            whose = "" if created.shard is None else f", of which this is the chain of shard {created.shard!r}"
            raise ConfigError(
                f"The chains of shards must be audited together, but {name!r} is shared{whose}. Audit the journal "
                "where they meet, with `--experiment`, and give the shards' journals by `--shard NAME=JOURNAL`."
            )
        return True
    return False


def _shared(hub: Journal, names: list[str], options: list[str], expect: list[str]) -> list[Report]:
    """The reports of shards that share a floor, the chain where they meet first."""
    paths = dict(one.partition("=")[::2] for one in options)
    if len(names) != 1 or not all(paths) or not all(paths.values()):
        raise ConfigError(f"`--shard` must be NAME=JOURNAL, for one `--experiment`, but got {options} for {names}.")
    with ExitStack() as opened:
        journals = {name: opened.enter_context(open_journal(path, read_only=True)) for name, path in paths.items()}
        audited = audit_shards(hub, names[0], journals, expect=expect)
        for shard, report in audited.shards.items():
            own = journals[shard].view(names[0]) if shard in journals else hub.view(edge_chain(names[0], shard))
            _replay_snapshots(own, report)
    if audited.missing and not paths:
        raise ConfigError(
            f"The chains of shards must be audited together, but only that where they meet is given. Give the shards' "
            f"journals by `--shard NAME=JOURNAL`: {', '.join(audited.missing)}."
        )
    _replay_snapshots(hub.view(names[0]), audited.hub)
    for name in audited.missing:
        audited.hub.findings.add(0, "missing", f"the journal of shard {name!r} is not among those given")
    return [audited.hub, *audited.shards.values()]


def _replay_snapshots(
    view: View, report: Report, differ: Callable[[View], Iterator[tuple[int, str]]] = differing
) -> None:
    """Compare snapshots with the events, by the code that goes on from them."""
    try:
        for event, text in differ(view):
            report.findings.add(event, "snapshot", text)
    except (SurefootError, ValueError) as error:
        # Of an event that does not fit the audit has said so; and it does not know policies of one's own.
        if report.is_clean:
            report.findings.add(0, "replay", f"the events cannot be replayed: {error}")


def _expected(given: list[str]) -> tuple[list[str], list[ExpectedHead]]:
    """Hashes, and the heads of files."""
    hashes = [one for one in given if re.fullmatch("[0-9a-f]{64}", one)]
    return hashes, [head for one in given if one not in hashes for head in read_expected(Path(one))]


@contextmanager
def _bar(title: str) -> Iterator[Report_]:
    columns = (TextColumn(title), BarColumn(), MofNCompleteColumn(), TextColumn("events"), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, TextColumn("left"), TimeRemainingColumn(), console=console, transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


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
