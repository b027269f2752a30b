"""The audit in plain words, for whoever answers for the experiment and did not build it."""

import math
from collections.abc import Iterator
from datetime import UTC, datetime

from surefoot.audit.audit_report import Report
from surefoot.audit.findings import Findings
from surefoot.audit.guard_declarations import GUARDS
from surefoot.audit.guard_text import CANNOT_SHOW as GUARD_CANNOT_SHOW
from surefoot.audit.guard_text import guard_promise, guard_rows, guard_verdict

SHOWN = 20
ANSWERS = {
    "stay": "stays on the baseline",
    "relearn": "learns anew under the same promise, with the rounds spent charged at their worst,",
    "renew": "begins a new promise",
}

CANNOT_SHOW = (
    "That rewards and features were true when they came in. The audit checks what was done with them.",
    "That the declared assumptions hold: the bounds on theta, features and noise, the range and the floor of rewards, "
    "a known baseline reward. The guarantee rests on them.",
    "That decisions were carried out as recorded, and that none was made outside of this journal.",
    "What was never written: events cut off the end together with the journal's own note of its end leave a shorter, "
    "valid chain. Keep the head of this report in another place; `surefoot audit --expect HASH` then proves that it is "
    "still part of the chain.",
    "A journal that was forged as a whole, rewards included, by somebody who ran an honest experiment on invented "
    "data. A head that was kept elsewhere in time rules this out, too.",
    "More than the chance that was declared: with probability delta the guarantee may fail though all is in order.",
)
ENCODED = (
    "That the rows with which this fork began are what its feature map makes of the old rounds: only their number, "
    "their order and their rewards were compared."
)


def cannot_show(report: Report) -> tuple[str, ...]:
    """What no audit can show of this experiment, a sentence each."""
    if report.coins is not None:
        return (*GUARD_CANNOT_SHOW, *CANNOT_SHOW[2:])
    origin = None if report.created is None else report.created.origin
    return (*CANNOT_SHOW, ENCODED) if origin is not None and origin.is_encoded else CANNOT_SHOW


def promise(report: Report) -> str:
    """What was promised, in a sentence."""
    created = report.created
    if created is None:
        return "Unknown: the event that created the experiment cannot be read."
    if report.findings.counts["settings"]:
        return "Nothing that could be kept: no policy takes the settings that were written down."
    settings = created.settings
    if created.policy in GUARDS:
        return guard_promise(settings)
    alpha, delta = settings.get("alpha"), settings.get("delta")
    if alpha is None:
        return f"Nothing: {created.policy} keeps no floor, it is the learner alone."
    constraint = settings.get("constraint") or "cumulative"
    plain = {"name": constraint} if isinstance(constraint, str) else constraint
    share = f"at least {100 * (1 - float(alpha)):.4g}% of what the baseline would have earned"
    sentences = {
        "cumulative": f"At every round, everything earned so far makes {share}.",
        "checkpoints": f"At every {plain.get('every')}th round, everything earned so far makes {share}.",
        "stagewise": f"In every single round, the action played is worth {share} in that round.",
        "reserve": f"At every round, everything earned so far, plus {plain.get('granted')} in reserve, makes {share}.",
        "realised_path": f"At every round, the learner's received rewards and the baseline's means make {share}.",
    }
    chance = f"{100 * float(delta or 0):g}%"
    start = report.tally.promise_round
    renewed = f" A new promise was begun: it counts from round {start:,} on." if start > 1 else ""
    return (
        f"{sentences[plain['name']]} If what was declared is true, this holds for all rounds at once, except with "
        f"probability {chance}.{renewed}"
    )


def findings_text(findings: Findings) -> str:
    """How many there are, in words."""
    return "1 finding" if len(findings) == 1 else f"{len(findings):,} findings"


def verdict(report: Report) -> str:
    """Whether it was kept, in a sentence."""
    tally = report.tally
    if not report.is_clean:
        first = next(iter(report.findings))
        where = f"event {first.event}" if first.event else "the journal itself"
        return (
            f"This record cannot be relied on: {findings_text(report.findings)}, the first at {where}. "
            "Decisions before it were checked and fit."
        )
    is_guard = report.created is not None and report.created.policy in GUARDS
    if report.created is not None and report.created.settings.get("alpha") is None and not is_guard:
        return "The record is consistent. No floor was promised."
    if tally.learner == 0:
        return "Yes. Only the baseline has played so far, and the record is consistent."
    if report.created is not None and is_guard:
        return guard_verdict(report.created.settings, tally)
    if tally.alarms:
        return (
            f"That is open. Each of the learner's {tally.learner:,} decisions was proved admissible before it was "
            "played, but the data have contradicted what was declared, and the proofs rest on that."
        )
    return (
        f"Yes. Each of the learner's {tally.learner:,} decisions was proved admissible before it was played, and the "
        "proofs hold when they are computed again from the raw events."
    )


def closest(report: Report) -> str:
    """How close it got, in a sentence."""
    near = report.tally.closest
    unit = "reward" if report.coins is None else "the highest reward"
    if report.created is not None and report.created.is_hub:
        return "Each shard had its own lease to keep to: their reports tell."
    if not near.round or not math.isfinite(near.margin):
        return "The learner has not played under a floor."
    return (
        f"At its closest, in round {near.round:,} (event {near.event:,}, {when(near.time)}), the learner was proved to "
        f"stay {near.margin:.4g} above the floor, in units of {unit} summed over all rounds so far."
    )


def when(time: float) -> str:
    """A time that people can read."""
    try:
        return datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return "time unknown"


def rows(report: Report) -> Iterator[tuple[str, str]]:
    """What was counted and checked, line by line."""
    tally, created = report.tally, report.created
    yield "policy", created.policy if created is not None else "unknown"
    origin = None if created is None else created.origin
    if origin is not None:
        mended = f", {len(origin.corrections):,} of their rewards corrected" if origin.corrections else ""
        said = f"event {origin.number:,}, with {origin.rounds:,} of its rounds{mended}: {origin.reason}"
        yield f"forked from {origin.experiment!r}", said
    yield "from", when(tally.first_time)
    yield "to", when(tally.last_time)
    yield "decisions", f"{tally.decisions:,}"
    yield "  played by the learner", f"{tally.learner:,} ({tally.learner_share:.1%})"
    yield "  played by the baseline", f"{tally.baseline:,}"
    yield "  of these, held there", f"{tally.held:,}, by mode or fallback"
    if report.coins is not None:
        yield from guard_rows(report.coins, tally)
    if tally.voided:
        yield "  not played as decided", f"{tally.voided:,}, by the callers' word before any reward of them had come"
    yield "modes", " -> ".join(f"{mode} (event {event:,})" for event, mode in tally.modes[-5:])
    yield "rewards learned", f"{tally.learned:,}, of which {tally.defaults:,} by default"
    yield "rewards pending", f"{tally.pending:,}"
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in tally.refused.items())
    yield "rewards refused", f"{tally.refused.total():,}" + (f" ({reasons})" if reasons else "")
    yield "rewards given up", f"{tally.abandoned:,}"
    yield "alarms", "; ".join(f"event {event:,}: {text}" for event, text in tally.alarms) or "none"
    for event, round_, answer in tally.answers:
        by = f" by {answer.by}" if answer.by else ""
        yield (
            f"  answered at event {event:,}{by}",
            f"{ANSWERS[answer.response]} after round {round_:,}: {answer.reason}",
        )
    if tally.texts or tally.erasures:
        yield "private texts", f"{tally.texts:,}, each what its event commits to"
    for event, corrected in tally.corrections[-SHOWN:]:
        by = f" by {corrected.by}" if corrected.by else ""
        yield f"  reward corrected at event {event:,}{by}", f"{corrected.values}: {corrected.reason}"
    for event, erased in tally.erasures[-SHOWN:]:
        by = f" by {erased.by}" if erased.by else ""
        yield f"  erased at event {event:,}{by}", f"{len(erased.events):,}: {erased.reason or 'no reason was given'}"
    yield "alarm is on", "YES: only the baseline is played" if tally.is_refuted else "no"
    yield "events checked", f"{tally.events:,}, each by its hash and the one before"
    yield "proofs checked", f"{tally.proofs:,}, in {tally.pieces:,} pieces"
    if report.heads:
        yield "heads noted", f"{report.heads:,} found in the chain, by the journal's own chain or by --expect"
    yield "head", f"{report.head.number:,} {report.head.hash}"


def as_markdown(report: Report) -> str:
    """The whole report as a page."""
    lines = [f"# Audit of experiment {report.name!r}", "", f"**{'Clean' if report.is_clean else 'FINDINGS'}.**", ""]
    lines += ["## What was promised", "", promise(report), ""]
    lines += ["## Was it kept?", "", verdict(report), "", closest(report), ""]
    if not report.is_clean:
        lines += ["## Findings", "", *(f"- {finding}" for finding in list(report.findings)[:SHOWN])]
        lines += [f"- and {len(report.findings) - SHOWN:,} more"] if len(report.findings) > SHOWN else []
        lines += [""]
    lines += ["## What was checked", "", "| | |", "|---|---|"]
    lines += [f"| {name.strip()} | {value} |" for name, value in rows(report)]
    lines += ["", "## What an audit cannot show", "", *(f"- {text}" for text in cannot_show(report)), ""]
    return "\n".join(lines)
