"""`surefoot experiment create|list|status|mode|fork|abandon|correct|void|acknowledge|export|erase|archive|delete`."""

import json
import math
import time
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from surefoot.cli.existing_journal import JournalArgument, open_existing
from surefoot.cli.experiment_changes import correct, fork
from surefoot.cli.number_lists import number_text, parse_numbers
from surefoot.cli.policy_settings import read_pairs
from surefoot.cli.shared_status import left_of, print_shared
from surefoot.cli.status_table import MODE_WORDS, alarm_of, lift_of, print_status
from surefoot.errors import ConfigError
from surefoot.experiment import Configuration, Experiment, HubStatus, read_configuration, read_status
from surefoot.experiment.export import export as write_export
from surefoot.experiment.removal import archive as write_archive
from surefoot.experiment.removal import delete as remove
from surefoot.journal import open_journal
from surefoot.journal.address import without_password
from surefoot.policies.by_name import POLICIES, make_policy
from surefoot.rounds.events import ModeName, Response, RowsRound

experiment = typer.Typer(help="Create and inspect experiments in a journal.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The experiment's name.")]
MODES = get_args(ModeName)
DespiteDoubt = Annotated[
    bool, typer.Option("--despite-doubt", help="Guarded mode although the log casts doubt on a linear model.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@experiment.command()
def create(
    journal: JournalArgument,
    name: NameArgument,
    config: Annotated[
        Path | None,
        typer.Option(help="experiment.toml, as fit-baseline writes it, instead of --policy and its settings."),
    ] = None,
    policy: Annotated[str | None, typer.Option(help=f"One of {', '.join(POLICIES)}; SafeLUCB by default.")] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file with the policy's settings.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as alpha=0.05; repeat for several.")
    ] = None,
    actions: Annotated[
        str | None,
        typer.Option(help="Of a Guard that is a flag: baseline and proposal as JSON, such as [false, true]."),
    ] = None,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(MODES)}.")] = "shadow",
    reward_window: Annotated[float | None, typer.Option(help="Seconds until a reward is learned.")] = None,
    default_reward: Annotated[
        float | None, typer.Option(help="What is learned if no reward came within the window.")
    ] = None,
    reward_bounds: Annotated[str | None, typer.Option(help="LOW,HIGH: a reward outside raises the alarm.")] = None,
    confirm_within: Annotated[
        float | None,
        typer.Option(help="Seconds until a learner round that nobody confirms counts at its worst; not with a window."),
    ] = None,
    description: Annotated[str, typer.Option(help="What the experiment is about.")] = "",
    despite_doubt: DespiteDoubt = False,
    feature_names: Annotated[
        str | None, typer.Option(help="What the page calls the features or arms: NAME,NAME,...")
    ] = None,
    reward_unit: Annotated[str, typer.Option(help='What rewards are counted in: "clicks", or a currency, "EUR".')] = "",
    sealed: Annotated[
        bool, typer.Option(help="Keep ids, names and contexts outside the chain, so that they can be erased.")
    ] = True,
) -> None:
    """Create an experiment, and the journal if there is none."""
    if config is not None and (policy or settings or set_):
        raise ConfigError("`--config` must not be given beside --policy, --settings or --set: the file has them.")
    advice = "Give them with --set or --settings."
    played = (
        make_policy(policy or "SafeLUCB", read_pairs(settings, set_ or []), advice=advice)
        if config is None
        else read_configuration(config)
    )
    options: dict[str, Any] = {
        "mode": mode,
        "actions": None if actions is None else _actions(actions),
        "reward_window": reward_window,
        "default_reward": default_reward,
        "reward_bounds": None if reward_bounds is None else parse_numbers("--reward-bounds", reward_bounds),
        "description": description,
        "despite_doubt": despite_doubt,
        "sealed": sealed,
        "confirm_within": confirm_within,
        "feature_names": None if feature_names is None else feature_names.split(","),
        "reward_unit": reward_unit,
    }
    # First in memory, so that what is refused leaves no new file.
    for place in ("memory:", journal):
        with open_journal(place) as opened:
            Experiment.create(opened, name, played, **options)
    shown = played.policy if isinstance(played, Configuration) else type(played).__name__
    typer.echo(f"Created {name!r} with {shown} in mode {mode!r} in {without_password(journal)}.")


def _actions(text: str) -> Any:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list):
        raise ConfigError(f"`--actions` must be a list of two as JSON, such as '[false, true]', but got {text!r:.80}.")
    return found


@experiment.command(name="list")
def list_(journal: JournalArgument, as_json: AsJson = False) -> None:
    """List the experiments of a journal. Of one that shards share, the margin is what is not leased."""
    with open_journal(journal, read_only=True) as opened:
        statuses = [read_status(opened, name) for name in opened.names()]
    if as_json:
        typer.echo(_json(statuses))
        return
    # Nine columns in 80 characters: lines between them would cut the numbers.
    table = Table(
        title=f"Experiments in {without_password(journal)}", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False
    )
    for column in ("experiment", "policy", "mode"):
        table.add_column(column, overflow="fold")
    for column in ("rounds", "learner", "lift", "margin", "pending"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("alarm")
    for status in statuses:
        if isinstance(status, HubStatus):
            policy, share, lift, margin = f"{status.policy} (shared)", "-", "-", left_of(status)
        else:
            policy, share, lift = status.policy, f"{status.learner_share:.1%}", lift_of(status)[0]
            margin = status.margin
        rounds, pending = f"{status.rounds:,}", f"{status.pending:,}"
        table.add_row(
            status.name, policy, status.mode, rounds, share, lift, number_text(margin), pending, alarm_of(status)
        )
    Console().print(table)


@experiment.command()
def status(journal: JournalArgument, name: NameArgument, as_json: AsJson = False) -> None:
    """Show where an experiment stands.

    That is its lift, floor, guarantee and margin, and who plays.

    Of one that shards share, in the journal where they meet: the shards, their leases, and the sum.
    """
    with open_journal(journal, read_only=True) as opened:
        standing = read_status(opened, name)
    if as_json:
        typer.echo(_json(standing))
    elif isinstance(standing, HubStatus):
        print_shared(standing, MODE_WORDS)
    else:
        print_status(standing)


@experiment.command()
def mode(
    journal: JournalArgument,
    name: NameArgument,
    mode: Annotated[str, typer.Argument(help=f"One of {', '.join(MODES)}.")],
    reason: Annotated[str, typer.Option(help="Why, kept in the journal.")] = "",
    by: Annotated[str, typer.Option(help="Who changes it.")] = "",
    despite_doubt: DespiteDoubt = False,
) -> None:
    """Change who may play: shadow, guarded or paused. Of a SQLite file that a server has open, ask the server."""
    with open_existing(journal) as opened:
        shop = Experiment.open(opened, name)
        before = shop.set_mode(cast("ModeName", mode), reason=reason, by=by, despite_doubt=despite_doubt)
    typer.echo(f"{name!r} is in mode {mode!r}{', as it was' if before == mode else f'; it was in {before!r}'}.")


@experiment.command()
def abandon(
    journal: JournalArgument,
    name: NameArgument,
    decision_id: Annotated[str, typer.Argument(help="The decision whose reward is lost.")],
    reason: Annotated[str, typer.Option(help="Why, kept in the journal.")] = "",
) -> None:
    """Settle a decision without its reward.

    No other reward waits for it then.

    Valid only if neither the reward nor anything that came after it has influenced this step.
    """
    with open_existing(journal) as opened:
        is_new = Experiment.open(opened, name).abandon(decision_id, reason=reason)
    typer.echo(f"Decision {decision_id!r} is settled without its reward{'' if is_new else ', as it was before'}.")


By = Annotated[str, typer.Option(help="Who does this; kept in the journal.")]
Why = Annotated[str, typer.Option(help="Why; kept in the journal.")]


@experiment.command()
def erase(
    journal: JournalArgument,
    name: NameArgument,
    by: By,
    reason: Why,
    decision_id: Annotated[list[str] | None, typer.Option(help="A decision; repeat for several.")] = None,
    person: Annotated[
        str | None, typer.Option(help="All decisions of that unit, or with it as `person` of the context.")
    ] = None,
    older_than: Annotated[float | None, typer.Option(help="All decisions that are older, in days.")] = None,
) -> None:
    """Erase ids, names and contexts for good. Features, proofs and rewards stay, and the audit stays clean."""
    if decision_id is None and person is None and older_than is None:
        raise ConfigError("Say what to erase: `--decision-id`, `--person` or `--older-than`.")
    if older_than is not None and not 0 <= older_than < math.inf:
        raise ConfigError(f"`--older-than` must be a number of days, at least 0, but got {older_than:g}.")
    if not by.strip() or not reason.strip():
        raise ConfigError("`--by` and `--reason` must say who erases, and why: an auditor will ask.")
    before = None if older_than is None else time.time() - 86_400.0 * older_than
    with open_existing(journal) as opened:
        erased = Experiment.open(opened, name).erase(
            decision_id or (), person=person, before=before, by=by, reason=reason
        )
        is_on_disk = opened.is_forgetting
    typer.echo(f"Erased {erased:,} private text{'s' * (erased != 1)} of {name!r}.")
    if is_on_disk:
        typer.echo(
            f"Somebody reads {without_password(journal)}: its log holds them until the next write after that.", err=True
        )


@experiment.command()
def archive(
    journal: JournalArgument,
    name: NameArgument,
    file: Annotated[Path, typer.Argument(help="A new SQLite file, which can be audited like any other.")],
    by: By,
    reason: Why,
) -> None:
    """Move an experiment to its own journal, and leave a tombstone. With a SQLite file, stop the server first."""
    with open_existing(journal) as opened:
        head = write_archive(opened, name, file, by=by, reason=reason)
    typer.echo(f"{name!r} is in {file}, up to event {head.number:,}, hash {head.hash}.")


@experiment.command()
def delete(
    journal: JournalArgument,
    name: NameArgument,
    by: By,
    reason: Why,
    yes: Annotated[bool, typer.Option("--yes", help="Confirm that it is removed for good.")] = False,
) -> None:
    """Remove an experiment for good, and leave a tombstone. With a SQLite file, stop the server first."""
    if not yes:
        raise ConfigError("Deleting cannot be undone: say `--yes`, or `surefoot experiment archive` it.")
    with open_existing(journal) as opened:
        head = remove(opened, name, by=by, reason=reason)
    typer.echo(f"{name!r} is gone; its tombstone says that it ended with event {head.number:,}, hash {head.hash}.")


@experiment.command()
def void(
    journal: JournalArgument,
    name: NameArgument,
    decision_id: Annotated[str, typer.Argument(help="The decision that was not carried out.")],
    action: Annotated[
        str | None, typer.Option(help="What was played, by name or index; of a guard as JSON. The baseline by default.")
    ] = None,
    reason: Annotated[str, typer.Option(help="Why, kept in the journal.")] = "",
    by: Annotated[str, typer.Option(help="Who reports it.")] = "",
) -> None:
    """Say that a round was not played as decided.

    Ledger and later proofs are then about what was played.

    Allowed until a reward of the round has come, and valid only if this does not depend on it.
    """
    with open_existing(journal) as opened:
        shop = Experiment.open(opened, name)
        played = None if action is None else _played(shop.round(decision_id), action)
        is_moved = shop.void(decision_id, played, reason=reason, by=by)
    typer.echo(f"Decision {decision_id!r} {'is moved to' if is_moved else 'stands as'} what was played.")


def _played(record: Any, text: str) -> Any:
    """A name that was offered, which may be a number; else a row, and of a guard any JSON."""
    if isinstance(record, RowsRound) and text in (record.request.actions or ()):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


@experiment.command()
def acknowledge(
    journal: JournalArgument,
    name: NameArgument,
    response: Annotated[str, typer.Argument(help="stay, relearn or renew.")],
    reason: Annotated[str, typer.Option(help="Why, kept in the journal.")],
    by: Annotated[str, typer.Option(help="Who responds.")] = "",
) -> None:
    """Answer the alarm: stay, relearn or renew.

    Stay on the baseline, relearn under the same promise, or start a new promise (renew).

    relearn charges every learner round so far at its worst case, which may never be earned back; renew starts a new
    ledger.
    """
    with open_existing(journal) as opened:
        Experiment.open(opened, name).acknowledge(cast("Response", response), reason=reason, by=by)
    typer.echo(f"The alarm of {name!r} is answered: {response}.")


@experiment.command()
def export(
    journal: JournalArgument,
    name: NameArgument,
    out: Annotated[Path, typer.Argument(help="The file to write: .parquet, .csv or .dsjson.")],
    format: Annotated[  # noqa: A002
        str | None, typer.Option(help="parquet, csv or dsjson; by the file's suffix by default.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option(help="Of a guard with several metrics, the one that is the reward of DSJSON.")
    ] = None,
) -> None:
    """Write every decision with its reward to a file. Parquet, CSV, or Vowpal Wabbit's DSJSON, by its name."""
    with open_journal(journal, read_only=True) as opened:
        count = write_export(opened, name, out, format=format, metric=metric)
        is_drawn = Experiment.open(opened, name).kind.draws
    marked = "with the probability of its coin" if is_drawn else "marked as deterministic"
    typer.echo(f"Wrote {count:,} decisions to {out}, each {marked}.")


for _verb in (fork, correct):  # after those that everybody needs, as help lists them
    experiment.command()(_verb)


def _json(standing: Any) -> str:
    """JSON has no nan: msgspec writes null."""
    return msgspec.json.format(msgspec.json.encode(standing), indent=2).decode()
