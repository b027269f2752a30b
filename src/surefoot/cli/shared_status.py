"""What `surefoot experiment status` prints of an experiment that shards share: the sum, and who holds which lease."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.audit.report import when
from surefoot.cli.number_lists import number_text
from surefoot.experiment import HubStatus, ShardStatus


def print_shared(status: HubStatus, modes: Mapping[str, str]) -> None:
    """Print the status of a hub; `modes` says what each mode means."""
    table = Table(title=f"Experiment {status.name!r}, shared by shards", show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for row in _rows(status, modes):
        table.add_row(*row)
    console = Console()
    console.print(table)
    shards = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    shards.add_column("shard", overflow="fold")
    for column in ("lease", "may lose", "rounds", "not merged"):
        shards.add_column(column, justify="right", no_wrap=True)
    shards.add_column("handed in until", no_wrap=True)
    shards.add_column("", style="dim")
    for shard in status.members:
        shards.add_row(*_shard(shard))
    console.print(shards)
    if status.alarm is not None:
        console.print(Text(f"ALARM: {status.alarm} Only the baseline is played, by all shards.", "bold red"))


def _rows(status: HubStatus, modes: Mapping[str, str]) -> list[tuple[str, str, str]]:
    away = len(status.members) - status.shards
    return [
        ("mode", status.mode, modes[status.mode]),
        ("alarm", "none" if status.alarm is None else "ALARM", "whether the data contradict what was declared"),
        ("pot", _amounts(status.pots), "what all shards together may lose"),
        ("leased", _amounts(status.leased), "the sum of all leases, those of shards that are away included"),
        ("margin", number_text(left_of(status)), "what is left to be leased"),
        ("rounds", f"{status.rounds:,}", "of all shards, as far as they are merged"),
        ("rewards pending", f"{status.pending:,}", "of these rounds"),
        ("shards", f"{status.shards:,}", f"that are waited for; {away:,} away, having left or been lost"),
        ("policy", status.policy, f"{status.events:,} events, the newest at {when(status.time)}"),
    ]


def _shard(shard: ShardStatus) -> tuple[str, ...]:
    through = when(shard.through)
    is_away = "away" if shard.is_away else ""
    return (
        shard.name,
        f"{shard.lease:,}",
        _amounts(shard.amounts),
        f"{shard.rounds:,}",
        f"{shard.waiting:,}",
        through,
        is_away,
    )


def left_of(status: HubStatus) -> float:
    """What is left to be leased, of the metric with least left."""
    return min(pot - status.leased[name] for name, pot in status.pots.items())


def _amounts(amounts: Mapping[str, float]) -> str:
    """An amount, or one for each metric."""
    if len(amounts) == 1:
        return number_text(next(iter(amounts.values()))) if any(amounts.values()) else "0"
    return ", ".join(f"{name} {number_text(amount)}" for name, amount in amounts.items())
