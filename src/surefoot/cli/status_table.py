"""Where an experiment stands, as `surefoot experiment status` prints it."""

import math

from rich.console import Console
from rich.table import Table
from rich.text import Text

from surefoot.audit.report import when
from surefoot.cli.number_lists import number_text
from surefoot.experiment import GuardStatus, HubStatus, Status
from surefoot.scalars import precisely


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
        ("learner's share", f"{status.learner_share:.1%}", "of all rounds"),
        ("rewards learned", f"{status.learned:,}", f"{status.defaults:,} of them by default"),
        ("rewards pending", f"{status.pending:,}", f"{status.waiting:,} have come and wait for an earlier one"),
        ("rounds voided", f"{status.voided:,}", "not played as decided"),
        ("rewards abandoned", f"{status.abandoned:,}", "settled without their reward"),
        ("rewards refused", f"{sum(status.refused.values()):,}", refused),
        *_restarts(status),
        ("policy", status.policy, f"{_events(status.events)}, the newest at {when(status.time)}"),
    ]


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
        ("share", f"{guard.share:.1%}", "the chance of the next proposal, were the baseline not held"),
        ("proved safe up to", f"{min(guard.allowed, 1.0):.1%}", limit),
        *(
            (f"bank of {name}", number_text(metric.bank), "what may still be spent of it, in its own units")
            for name, metric in guard.metrics.items()
        ),
    ]


def lift_of(status: Status) -> tuple[str, str]:
    """The lift as it is estimated, and what is known of it."""
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
