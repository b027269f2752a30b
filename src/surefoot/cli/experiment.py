"""`surefoot experiment create|list|status|fork|abandon|correct|void|acknowledge|export|erase|archive|delete`."""

import json
import math
import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.audit.audit_text import when
from surefoot.cli.experiment_changes import correct, fork
from surefoot.cli.number_lists import number_text, parse_numbers
from surefoot.cli.policy_settings import read_pairs
from surefoot.cli.shared_status import print_shared
from surefoot.errors import ConfigError
from surefoot.experiment import MODES, Experiment, Status, read_configuration
from surefoot.experiment.decoding import created_of, is_hub
from surefoot.experiment.experiment_toml import Configuration
from surefoot.experiment.export import export as write_export
from surefoot.experiment.hub_status import HubStatus, hub_status
from surefoot.experiment.policy_by_name import POLICIES, make_any_policy
from surefoot.experiment.removal import archive as write_archive
from surefoot.experiment.removal import delete as remove
from surefoot.journal import Journal, open_journal
from surefoot.records import ModeName, Response
from surefoot.scalars import precisely

experiment = typer.Typer(help="Create and inspect experiments in a journal.", no_args_is_help=True)
for _verb in (fork, correct):
    experiment.command()(_verb)

JournalArgument = Annotated[str, typer.Argument(help="A SQLite file, or postgresql://...")]
NameArgument = Annotated[str, typer.Argument(help="The experiment's name.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]


@experiment.command()
def create(
    journal: JournalArgument,
    name: NameArgument,
    config: Annotated[
        Path | None,
        typer.Option(help="experiment.toml, as fit-baseline writes it, instead of --policy and its settings."),
    ] = None,
    policy: Annotated[
        str | None, typer.Option(help=f"One of {', '.join(POLICIES)}, or Guard; SafeLUCB by default.")
    ] = None,
    settings: Annotated[Path | None, typer.Option(help="TOML file with the policy's settings.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as alpha=0.05; repeat for several.")
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
    despite_doubt: Annotated[
        bool,
        typer.Option("--despite-doubt", help="Start in guarded mode although the log casts doubt on a linear model."),
    ] = False,
    feature_names: Annotated[
        str | None, typer.Option(help="What the page calls the features or arms: NAME,NAME,...")
    ] = None,
    sealed: Annotated[
        bool, typer.Option(help="Keep ids, names and contexts outside the chain, so that they can be erased.")
    ] = True,
) -> None:
    """Create an experiment, and the journal if there is none."""
    if config is not None and (policy or settings or set_):
        raise ConfigError("`--config` must not be given beside --policy, --settings or --set: the file has them.")
    advice = "Give them with --set or --settings."
    made = (
        make_any_policy(policy or "SafeLUCB", read_pairs(settings, set_ or []), advice=advice)
        if config is None
        else read_configuration(config)
    )
    with open_journal(journal) as opened:
        Experiment.create(
            opened,
            name,
            made,
            mode=cast("ModeName", mode),
            reward_window=reward_window,
            default_reward=default_reward,
            reward_bounds=None if reward_bounds is None else parse_numbers("--reward-bounds", reward_bounds),
            description=description,
            despite_doubt=despite_doubt,
            sealed=sealed,
            confirm_within=confirm_within,
            feature_names=None if feature_names is None else feature_names.split(","),
        )
    shown = made.policy if isinstance(made, Configuration) else type(made).__name__
    typer.echo(f"Created {name!r} with {shown} in mode {mode!r} in {journal}.")


@experiment.command(name="list")
def list_(journal: JournalArgument, as_json: AsJson = False) -> None:
    """List the experiments of a journal. Of one that shards share, the margin is what is not leased."""
    with open_journal(journal, read_only=True) as opened:
        found = [_any_status(opened, name) for name in opened.names()]
    if as_json:
        typer.echo(json.dumps([_plain(status) for status in found], indent=2))
        return
    # Nine columns in 80 characters: lines between them would cut the numbers.
    table = Table(title=f"Experiments in {journal}", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for column in ("experiment", "policy", "mode"):
        table.add_column(column, overflow="fold")
    for column in ("rounds", "learner", "lift", "margin", "pending"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("alarm")
    for status in found:
        if isinstance(status, HubStatus):
            policy, share, lift, margin = f"{status.policy} (shared)", "-", "-", status.pot - status.leased
        else:
            policy, share, lift = status.policy, f"{status.learner_share:.1%}", _lift(status)[0]
            margin = status.margin
        rounds, pending = f"{status.rounds:,}", f"{status.pending:,}"
        table.add_row(
            status.name, policy, status.mode, rounds, share, lift, number_text(margin), pending, _alarm(status)
        )
    Console().print(table)


@experiment.command()
def status(journal: JournalArgument, name: NameArgument, as_json: AsJson = False) -> None:
    """Show where an experiment stands: lift, floor, guarantee, margin, and who plays.

    Of one that shards share, in the journal where they meet: the shards, their leases, and the sum.
    """
    with open_journal(journal, read_only=True) as opened:
        found = _any_status(opened, name)
    if as_json:
        typer.echo(json.dumps(_plain(found), indent=2))
    elif isinstance(found, HubStatus):
        print_shared(found, _MODES)
    else:
        _print(found)


@experiment.command()
def abandon(
    journal: JournalArgument,
    name: NameArgument,
    decision_id: Annotated[str, typer.Argument(help="The decision whose reward is lost.")],
    reason: Annotated[str, typer.Option(help="Why, kept in the journal.")] = "",
) -> None:
    """Settle a decision without its reward, so that no other reward waits for it.

    Valid only if neither the reward nor anything that came after it has influenced this step.
    """
    with open_journal(journal) as opened:
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
    """Erase ids, names and contexts for good; features, proofs and rewards stay, and the audit stays clean."""
    if decision_id is None and person is None and older_than is None:
        raise ConfigError("Say what to erase: `--decision-id`, `--person` or `--older-than`.")
    before = None if older_than is None else time.time() - 86_400.0 * older_than
    with open_journal(journal) as opened:
        found = Experiment.open(opened, name)
        erased = found.erase(decision_id or (), person=person, before=before, by=by, reason=reason)
        is_on_disk = opened.is_forgetting
    typer.echo(f"Erased {erased:,} private texts of {name!r}.")
    if is_on_disk:
        typer.echo(f"Somebody reads {journal}: its log holds them until the next write after that.", err=True)


@experiment.command()
def archive(
    journal: JournalArgument,
    name: NameArgument,
    file: Annotated[Path, typer.Argument(help="A new SQLite file, which can be audited like any other.")],
    by: By,
    reason: Why,
) -> None:
    """Move an experiment to its own journal, and leave a tombstone. With a SQLite file, stop the server first."""
    with open_journal(journal) as opened:
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
    with open_journal(journal) as opened:
        head = remove(opened, name, by=by, reason=reason)
    typer.echo(f"{name!r} is gone; its tombstone says that it had {head.number:,} events, hash {head.hash}.")


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
    """Say that a round was not played as decided, so that ledger and later proofs are about what was played.

    Allowed until a reward of the round has come, and valid only if this does not depend on it.
    """
    with open_journal(journal) as opened:
        played = None if action is None else _json_or_text(action)
        is_moved = Experiment.open(opened, name).void(decision_id, played, reason=reason, by=by)
    typer.echo(f"Decision {decision_id!r} {'is moved to' if is_moved else 'stands as'} what was played.")


def _json_or_text(text: str) -> Any:
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
    """Answer the alarm: stay on the baseline, relearn under the same promise, or start a new promise (renew).

    relearn charges every learner round so far at its worst case, which may never be earned back; renew starts a new
    ledger.
    """
    with open_journal(journal) as opened:
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
) -> None:
    """Write every decision with its reward to a file: Parquet, CSV, or Vowpal Wabbit's DSJSON."""
    with open_journal(journal, read_only=True) as opened:
        count = write_export(opened, name, out, format=format)
    typer.echo(f"Wrote {count:,} decisions to {out}, each marked as deterministic.")


def _status(journal: Journal, name: str) -> Status:
    return Experiment.open(journal, name).status()


def _any_status(journal: Journal, name: str) -> Status | HubStatus:
    return hub_status(journal, name) if is_hub(created_of(journal, name)) else _status(journal, name)


def _print(status: Status) -> None:
    table = Table(title=f"Experiment {status.name!r}", show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for name, value, meaning in _rows(status):
        table.add_row(name, value, meaning)
    console = Console()
    console.print(table)
    if status.is_refuted:
        answered = f" Acknowledged: {status.alarm_answer}." if status.alarm_answer else ""
        plays = "" if math.isnan(status.floor) else " Only the baseline is played."
        console.print(Text(f"ALARM: {status.alarm}{plays}{answered}", "bold red"))
        answers = "|".join(status.alarm_responses)
        hint = f"Answer it: surefoot experiment acknowledge JOURNAL {status.name} {answers} --reason ..."
        console.print(Text(hint, "dim"))
    if status.is_stalled:
        text = (
            f"WARNING: {status.waiting:,} rewards have waited for that of {status.held_up_by!r} for "
            f"{status.held_up_rounds:,} rounds. Send it, or abandon the decision (surefoot experiment abandon)."
        )
        console.print(Text(text, "bold yellow"))


def _rows(status: Status) -> list[tuple[str, str, str]]:
    refused = ", ".join(f"{count:,} {reason}" for reason, count in status.refused.items())
    worst = f"round {status.worst_round:,}" if status.worst_round else "the learner has not played"
    return [
        ("lift", *_lift(status)),
        ("mode", status.mode, _MODES[status.mode]),
        ("alarm", _alarm(status), "whether the data contradict what was declared"),
        (
            "floor",
            number_text(status.floor),
            "what must have been earned by now, by the newest estimate of the baseline",
        ),
        ("guaranteed", number_text(status.guaranteed), "what has been earned at least, if the declarations are true"),
        ("margin", number_text(status.margin), "guaranteed above the floor, at the learner's newest round"),
        ("worst moment", number_text(status.worst_margin), f"the least margin so far: {worst}"),
        ("rounds", f"{status.rounds:,}", f"{status.learner_rounds:,} learner, {status.baseline_rounds:,} baseline"),
        ("learner's share", f"{status.learner_share:.1%}", "of all rounds"),
        ("rewards learned", f"{status.learned:,}", f"{status.defaults:,} of them by default"),
        ("rewards pending", f"{status.pending:,}", f"{status.waiting:,} have come and wait for an earlier one"),
        ("rounds voided", f"{status.voided:,}", "not played as decided"),
        ("rewards abandoned", f"{status.abandoned:,}", "settled without their reward"),
        ("rewards refused", f"{sum(status.refused.values()):,}", refused),
        *_restarts(status),
        ("policy", status.policy, f"{status.events:,} events, the newest at {when(status.time)}"),
    ]


def _lift(status: Status) -> tuple[str, str]:
    lift, is_guard = status.lift, status.guard is not None
    if lift is None:
        who = "a proposal" if is_guard else "a decision of the learner"
        return "-", f"what {who} earns beyond the baseline; not known"
    pays = "it is paying" if lift.is_paying else "it is not paying" if lift.is_costing else "not known yet if it pays"
    # A guard's interval is about proposals, played or not.
    of = f"in the {lift.metric} of a proposal" if is_guard else "a decision of the learner"
    ends = f"{number_text(lift.low)} to {number_text(lift.high)} {of}"
    sure = f"{pays}: {ends}, {precisely(lift.confidence)} sure at all times"
    if math.isfinite(lift.estimate):
        return f"{lift.estimate:+,.4g}", sure
    return "-", f"{sure}. No single number: both sides' means mislead where shares and rewards change"


def _restarts(status: Status) -> list[tuple[str, str, str]]:
    if not status.restarts:
        return []
    since = f"the promise counts from round {status.promise_round:,} on; a debt of {number_text(status.debt)}"
    return [("restarts", f"{status.restarts:,}", since)]


_MODES = {
    "shadow": "the baseline plays, the learner is only scored",
    "guarded": "the learner plays where the proof allows it",
    "paused": "the learner is stopped, the baseline plays",
}


def _alarm(status: Status | HubStatus) -> str:
    return "none" if status.alarm is None else "ALARM"


def _plain(status: Status | HubStatus) -> dict[str, Any]:
    return {key: _finite(value) for key, value in asdict(status).items()}


def _finite(value: Any) -> Any:
    """JSON has no nan: it is None, in maps and intervals as well."""
    if isinstance(value, dict):
        return {key: _finite(entry) for key, entry in value.items()}
    if isinstance(value, tuple | list):
        return [_finite(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
