"""`surefoot experiment ...` and `surefoot reward`: what a journal's experiments are, and what is said of them."""

import json
import math
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, cast, get_args

import msgspec
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.audit.report import when
from surefoot.cli.options import JournalArgument, number_text, open_existing, parse_numbers, read_pairs
from surefoot.errors import ConfigError
from surefoot.experiment import (
    Experiment,
    GuardStatus,
    HubStatus,
    ShardStatus,
    Status,
    read_configuration,
    read_status,
)
from surefoot.experiment import fork as begin
from surefoot.experiment.export import export as write_export
from surefoot.experiment.removal import archive as write_archive
from surefoot.experiment.removal import delete as remove
from surefoot.journal import open_journal
from surefoot.journal.address import without_password
from surefoot.policies.by_name import POLICIES, make_policy
from surefoot.rounds.events import ModeName, Response, RowsRound
from surefoot.scalars import precisely

experiment = typer.Typer(help="Create and inspect experiments in a journal.", no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The experiment's name.")]
MODES = get_args(ModeName)
PLAYS_NEARLY_ALL = 0.9  # a learner whose guard sees little of the baseline
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
        typer.Option(help="For a Guard used as a flag: baseline and proposal as JSON, such as [false, true]."),
    ] = None,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(MODES)}.")] = "shadow",
    reward_window: Annotated[float | None, typer.Option(help="Seconds until a reward is learned.")] = None,
    default_reward: Annotated[
        float | None, typer.Option(help="Reward assumed when none arrives within the window.")
    ] = None,
    reward_bounds: Annotated[str | None, typer.Option(help="LOW,HIGH: a reward outside raises the alarm.")] = None,
    confirm_within: Annotated[
        float | None,
        typer.Option(help="Seconds until an unconfirmed learner round counts at its worst; not with a window."),
    ] = None,
    description: Annotated[str, typer.Option(help="What the experiment is about.")] = "",
    despite_doubt: DespiteDoubt = False,
    feature_names: Annotated[
        str | None, typer.Option(help="What the page calls the features or arms: NAME,NAME,...")
    ] = None,
    reward_unit: Annotated[
        str, typer.Option(help="What rewards are counted in: clicks, or a currency, EUR; of metrics cost=EUR,...")
    ] = "",
    sealed: Annotated[
        bool, typer.Option(help="Keep ids, names and contexts outside the chain, so that they can be erased.")
    ] = True,
) -> None:
    """Create an experiment, and the journal if there is none.

    One of the same name and settings stays as it is.
    """
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
        "reward_unit": _units(reward_unit),
    }
    # First in memory, so that what is refused leaves no new file.
    for place in ("memory:", journal):
        with open_journal(place) as opened:
            is_new = name not in opened.names()
            now = Experiment.create(opened, name, played, or_open=True, **options).status()
    what = f"Created {name!r} with {now.policy} in" if is_new else f"{name!r} exists, with the same settings, and is in"
    typer.echo(f"{what} mode {now.mode!r} in {without_password(journal)}.")


def _units(text: str) -> str | dict[str, str]:
    """A unit, or one for each metric between commas."""
    if "=" not in text:
        return text
    return dict(part.partition("=")[::2] for part in text.split(","))


def _actions(text: str) -> Any:
    try:
        actions = json.loads(text)
    except ValueError:
        actions = None
    if not isinstance(actions, list):
        raise ConfigError(f"`--actions` must be a list of two as JSON, such as '[false, true]', but got {text!r:.80}.")
    return actions


@experiment.command(name="list")
def list_(journal: JournalArgument, as_json: AsJson = False) -> None:
    """List the experiments of a journal. For one that shards share, the margin is what is not leased."""
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
    for column in ("rounds", "learner", "pays", "margin", "pending"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("alarm")
    for status in statuses:
        if isinstance(status, HubStatus):
            policy, share, pays, margin = f"{status.policy} (shared)", "-", "-", left_of(status)
        else:
            policy, share, pays, margin = status.policy, f"{status.learner_share:.1%}", pays_of(status), status.margin
        rounds, pending = f"{status.rounds:,}", f"{status.pending:,}"
        table.add_row(
            status.name, policy, status.mode, rounds, share, pays, number_text(margin), pending, alarm_of(status)
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
    """Change who may play: shadow, guarded or paused. If a server has the SQLite file open, ask the server."""
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
        raise ConfigError("Name what to erase: `--decision-id`, `--person` or `--older-than`.")
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
        raise ConfigError("Deleting cannot be undone: pass `--yes`, or `surefoot experiment archive` it.")
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
    """Report that a round was not played as decided.

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
        str | None, typer.Option(help="For a guard with several metrics: the one to export as DSJSON's reward.")
    ] = None,
) -> None:
    """Write every decision with its reward to a file. Parquet, CSV, or Vowpal Wabbit's DSJSON, by its name."""
    with open_journal(journal, read_only=True) as opened:
        count = write_export(opened, name, out, format=format, metric=metric)
        is_drawn = Experiment.open(opened, name).kind.draws
    marked = "with the probability of its coin" if is_drawn else "marked as deterministic"
    typer.echo(f"Wrote {count:,} decisions to {out}, each {marked}.")


def _json(standing: Any) -> str:
    """JSON has no nan: msgspec writes null."""
    return msgspec.json.format(msgspec.json.encode(standing), indent=2).decode()


@experiment.command()
def fork(
    journal: JournalArgument,
    source: Annotated[str, typer.Argument(help="The experiment whose settled rounds are carried over.")],
    name: Annotated[str, typer.Argument(help="The new experiment's name.")],
    by: By,
    reason: Why,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A setting that differs, such as alpha=0.2; repeat for several.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option(help="experiment.toml instead of the old settings; rows are recomputed from the contexts."),
    ] = None,
    correct: Annotated[
        list[str] | None,
        typer.Option(help="DECISION=VALUE: the corrected value of a reward; repeat for several."),
    ] = None,
    mode: Annotated[str, typer.Option(help=f"One of {', '.join(get_args(ModeName))}.")] = "shadow",
    reward_window: Annotated[float | None, typer.Option(help="Seconds until a reward is learned; as before.")] = None,
) -> None:
    """Start a new experiment from what another has learned. Says what is lost. The old one stays: pause it."""
    if config is not None and set_:
        raise ConfigError("`--config` must not be given beside --set: the file has the settings.")
    options: dict[str, Any] = {} if reward_window is None else {"reward_window": reward_window}
    with open_existing(journal) as opened:
        new = begin(
            opened,
            source,
            name,
            policy=None if config is None else read_configuration(config),
            changes=read_pairs(None, set_ or []) or None,
            corrections=_numbers(correct or [], "`--correct` must be DECISION=VALUE, once for each decision"),
            mode=cast("ModeName", mode),
            reason=reason,
            by=by,
            **options,
        )
    typer.echo(f"{name!r} begins with {new.carried:,} rows of {source!r}. Not carried over:")
    for sentence in new.lost:
        typer.echo(f"- {sentence}")


def _numbers(texts: list[str], rule: str) -> dict[str, float]:
    """Numbers by name from NAME=NUMBER; a number alone has the name ""."""
    numbers: dict[str, float] = {}
    for text in texts:
        name, _, number = text.rpartition("=")  # a name may hold the sign, a number cannot
        try:
            value = float(number)
        except ValueError:
            raise ConfigError(f"{rule}, but got {text!r:.80}.") from None
        if name in numbers:
            raise ConfigError(f"{rule}, but got {text!r:.80} after {numbers[name]:g}.")
        numbers[name] = value
    return numbers


@experiment.command()
def correct(
    journal: JournalArgument,
    name: Annotated[str, typer.Argument(help="The experiment's name.")],
    decision_id: Annotated[str, typer.Argument(help="The decision whose reward was wrong.")],
    value: Annotated[
        list[str],
        typer.Argument(help="The reward as it should have been sent; of several metrics METRIC=NUMBER for each."),
    ],
    by: By,
    reason: Why,
) -> None:
    """Replace a reward that was measured wrongly. Possible as long as nothing was learned from it."""
    numbers = _numbers(value, "VALUE must be a number, or METRIC=NUMBER once for each metric")
    right = numbers[""] if list(numbers) == [""] else numbers
    with open_existing(journal) as opened:
        is_new = Experiment.open(opened, name).correct(decision_id, right, reason=reason, by=by)
    typer.echo(f"The reward of {decision_id!r} is {', '.join(value)}{'' if is_new else ', as it was before'}.")


def print_status(status: Status) -> None:
    """A table of it, and what to do where somebody has to do something."""
    table = Table(title=f"Experiment {status.name!r}", show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for name, value, meaning in _rows(status):
        # As texts: a metric may be called as rich calls a colour.
        table.add_row(Text(name), Text(value), Text(meaning))
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
    return [
        ("lift", *lift_of(status)),
        ("mode", status.mode, MODE_WORDS[status.mode]),
        ("alarm", alarm_of(status), "whether the data contradict what was declared"),
        *(_floor(status) if status.guard is None else _banks(status.guard)),
        ("rounds", f"{status.rounds:,}", f"{status.learner_rounds:,} learner, {status.baseline_rounds:,} baseline"),
        ("learner's share", f"{status.learner_share:.1%}", _of_which(status)),
        ("rewards learned", f"{status.learned:,}", f"{status.defaults:,} of them by default"),
        ("rewards pending", f"{status.pending:,}", _pending(status)),
        ("rounds voided", f"{status.voided:,}", "not played as decided"),
        ("rewards abandoned", f"{status.abandoned:,}", "settled without their reward"),
        ("rewards refused", f"{sum(status.refused.values()):,}", refused),
        *_restarts(status),
        ("policy", status.policy, f"{_events(status.events)}, the newest at {when(status.time)}"),
    ]


def _pending(status: Status) -> str:
    if status.guard is not None and status.guard.late_rounds:
        return f"{status.guard.late_rounds:,} of them late: they count at their worst until they come"
    return f"{status.waiting:,} have come and wait for an earlier one"


def _of_which(status: Status) -> str:
    share = status.differing_share
    part = "" if math.isnan(share) else f", {share:.1%} of where both differ"
    return f"of all rounds{part}"


def _floor(status: Status) -> list[tuple[str, str, str]]:
    worst = f"round {status.worst_round:,}" if status.worst_round else "the learner has not played"
    return [
        (
            "floor",
            number_text(status.floor),
            "what must have been earned by now, by the newest estimate of the baseline",
        ),
        ("guaranteed", number_text(status.guaranteed), "what has been earned at least, if the declarations are true"),
        ("margin", number_text(status.margin), "guaranteed above the floor, at the learner's newest round"),
        ("worst moment", number_text(status.worst_margin), f"the least margin so far: {worst}"),
    ]


def _banks(guard: GuardStatus) -> list[tuple[str, str, str]]:
    limit = f"{guard.binds} allows least" if guard.allowed < 1.0 else "by every metric"
    return [
        ("share", f"{guard.share:.1%}", "the chance of the next proposal, if the learner were allowed to play"),
        ("proved safe up to", f"{min(guard.allowed, 1.0):.1%}", limit),
        *(
            (f"bank of {name}", number_text(metric.bank), "what may still be spent of it, in its own units")
            for name, metric in guard.metrics.items()
        ),
    ]


def pays_of(status: Status) -> str:
    """Whether it is proved that the learner pays, in a word."""
    if status.lift is None:
        return "-"
    return "open" if status.proof is None else "yes" if status.proof.lift.is_paying else "no"


def lift_of(status: Status) -> tuple[str, str]:
    """The lift as it is estimated, and what is known of it."""
    lift, is_guard = status.lift, status.guard is not None
    if lift is None:
        who = "a proposal" if is_guard else "a decision of the learner"
        return "-", f"what {who} earns beyond the baseline; not known"
    words = {"yes": "it pays", "no": "it does not pay"}
    proof = "" if status.proof is None else f"{words[pays_of(status)]}: proved at decision {status.proof.round:,}; now "
    # A guard's interval is about proposals, played or not.
    of = f"in the {lift.metric} of a proposal" if is_guard else "a decision of the learner"
    ends = f"{number_text(lift.low)} to {number_text(lift.high)} {of}"
    sure = f"{proof or 'not proved yet that it pays: '}{ends}, {precisely(lift.confidence)} sure at all times"
    if is_guard and status.proof is None and status.learner_share > PLAYS_NEARLY_ALL:
        sure += "; with min_holdout=0.1 the interval would be about half as wide"
    if math.isfinite(lift.estimate):
        return f"{lift.estimate:+,.4g}", sure
    return "-", f"{sure}. No single number: both sides' means mislead where shares and rewards change"


def _restarts(status: Status) -> list[tuple[str, str, str]]:
    if not status.restarts:
        return []
    since = f"the promise counts from round {status.promise_round:,} on; a debt of {number_text(status.debt)}"
    return [("restarts", f"{status.restarts:,}", since)]


MODE_WORDS = {
    "shadow": "the baseline plays, the learner is only scored",
    "guarded": "the learner plays where the proof allows it",
    "paused": "the learner is stopped, the baseline plays",
}


def alarm_of(status: Status | HubStatus) -> str:
    """Whether the alarm is on, in a word."""
    return "none" if status.alarm is None else "ALARM"


def _events(count: int) -> str:
    return "1 event" if count == 1 else f"{count:,} events"


def print_shared(status: HubStatus, modes: Mapping[str, str]) -> None:
    """Print the status of a hub; `modes` says what each mode means."""
    table = Table(title=f"Experiment {status.name!r}, shared by shards", show_header=False, title_justify="left")
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column(style="dim")
    for row in _shared_rows(status, modes):
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


def _shared_rows(status: HubStatus, modes: Mapping[str, str]) -> list[tuple[str, str, str]]:
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


def reward(
    journal: Annotated[str, typer.Argument(help="A SQLite file, postgresql://..., or the service's http://...")],
    name: Annotated[str, typer.Argument(help="The experiment's name.")],
    file: Annotated[
        Path, typer.Option("--from", help="A .parquet, .csv or .jsonl file with decision_id and a column per metric.")
    ],
) -> None:
    """Send the rewards of a file.

    Running it again sends nothing twice, so an interrupted run is continued by the same command. Rows that are refused
    are written beside the file, with the reason.
    """
    from surefoot.cli.options import progress_bar
    from surefoot.experiment.reward_file import refusals_of, send_rewards

    with ExitStack() as stack:
        is_service = journal.startswith(("http://", "https://"))
        send = _to_service(journal, name, stack) if is_service else _to_journal(journal, name, stack)
        report = stack.enter_context(progress_bar("sending", "rewards"))
        sent = send_rewards(file, send, progress=report)
    duplicates = f", {sent.repeats:,} of them duplicates" if sent.repeats else ""
    typer.echo(f"Accepted {sent.accepted:,} reward{'s' if sent.accepted != 1 else ''}{duplicates}.")
    if sent.refused:
        typer.echo(f"Refused {sent.refused:,}: {refusals_of(file)} says why.", err=True)


def _to_journal(journal: str, name: str, stack: ExitStack) -> Any:
    from surefoot.cli.options import open_existing
    from surefoot.errors import InputError
    from surefoot.experiment import Experiment
    from surefoot.experiment.reward_file import Row, Verdict
    from surefoot.rounds.events import METRIC

    experiment = Experiment.open(stack.enter_context(open_existing(journal)), name)
    is_single = not hasattr(experiment.kind, "metrics")

    def send(rows: Sequence[Row]) -> list[Verdict]:
        verdicts = dict[int, Verdict]()
        sound = list[tuple[int, tuple[str, Any]]]()
        for at, (decision_id, values) in enumerate(rows):
            value: Any = values[METRIC] if is_single and list(values) == [METRIC] else values
            try:
                experiment.read_rewards(decision_id, value)
                sound.append((at, (decision_id, value)))
            except InputError as error:
                verdicts[at] = Verdict(str(error))
        receipts = experiment.reward_all([one for _, one in sound])
        for (at, _), receipt in zip(sound, receipts, strict=True):
            verdicts[at] = Verdict(receipt.refused, receipt.is_repeat)
        return [verdicts[at] for at in range(len(rows))]

    return send


def _to_service(url: str, name: str, stack: ExitStack) -> Any:
    import os

    from surefoot.client import ServiceError, httpx  # by the client, which names its extra where it is missing
    from surefoot.experiment.reward_file import Row, Verdict
    from surefoot.rounds.events import METRIC

    token = os.environ.get("SUREFOOT_TOKEN")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    http = stack.enter_context(httpx.Client(base_url=url, headers=headers, timeout=60.0, trust_env=False))

    def send(rows: Sequence[Row]) -> list[Verdict]:
        if not rows:
            return []
        body = [
            {"decision_id": decision_id, "value": values[METRIC] if list(values) == [METRIC] else values}
            for decision_id, values in rows
        ]
        try:
            answer = http.post(f"/v1/experiments/{name}/reward-batches", json={"rewards": body})
        except httpx.HTTPError as error:
            raise ServiceError(
                f"The service must answer, but {url} does not: {error}. Run the command again."
            ) from None
        if answer.status_code != 200:
            raise ServiceError(f"The service refused the rewards: {answer.text:.500}", status=answer.status_code)
        return [_verdict(one) for one in answer.json()["results"]]

    return send


def _verdict(outcome: dict[str, Any]) -> Any:
    from surefoot.experiment.reward_file import Verdict

    problem = outcome.get("problem")
    if problem is not None:
        word = problem["type"].rsplit("/", 1)[-1]
        words = {"unknown-decision": "unknown", "invalid": problem.get("detail") or word}
        return Verdict(words.get(word, word.removeprefix("reward-").replace("-", "_")))
    return Verdict(is_repeat=outcome["receipt"].get("is_repeat", False))
