"""What an audit says, as data and in plain words, for whoever answers for the experiment and did not build it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from surefoot.audit.coins import LEVEL, LIMIT, CoinFairness
from surefoot.audit.constraints import CONSTRAINTS, plain_constraint
from surefoot.audit.declarations import GUARDS, plain_metrics
from surefoot.audit.findings import AuditCounts, Findings
from surefoot.journal.events import Head
from surefoot.rounds import events

LISTED = 10
GUARD_CANNOT_SHOW = (
    "That rewards were true when they came in. The audit checks what was done with them.",
    "That rewards which were never sent in keep to their declared bounds; those that were, do.",
    "That nobody who had a secret foresaw its coins, or dropped a request whose coin did not suit. Each coin follows "
    "from a secret that the chain commits to before, and is computed again once that is revealed. Every process begins "
    "blocks of its own: many for few coins, or more at once than there are processes, would let somebody choose. The "
    "test of fairness finds coins that lean, repeat or follow earlier rewards, but not one chosen now and then by "
    "somebody who knew the next reward.",
    "That predictions of the baseline were made before the coin fell: they are recorded with it.",
)
SHOWN = 20
ANSWERS = {
    "stay": "stays on the baseline",
    "relearn": "learns from scratch under the same promise, with the rounds spent charged at their worst,",
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


@dataclass(frozen=True)
class Report:
    """The result of an audit.

    findings: everything that does not fit; empty for an honest journal
    head:     where the chain ended; keep it elsewhere, and give it to the next audit as `expect`
    coins:    of a guard, how fair its coins look
    heads:    heads that are part of the chain, of those that the journal's own chain or others have noted
    """

    name: str
    created: events.Created | None
    tally: AuditCounts
    findings: Findings
    head: Head
    coins: CoinFairness | None = None
    heads: int = 0

    @property
    def is_clean(self) -> bool:
        """Whether everything fits."""
        return len(self.findings) == 0

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON; a number that is not finite is None."""
        tally, created = self.tally, self.created
        coins = {} if self.coins is None else {"coins": self._coins(self.coins), "visits": tally.visits}
        return {
            "experiment": self.name,
            "is_clean": self.is_clean,
            "head": {"number": self.head.number, "hash": self.head.hash},
            "policy": None if created is None else created.policy,
            "settings": None if created is None else created.settings,
            "events": tally.events,
            "heads_found": self.heads,
            "decisions": tally.decisions,
            "learner_rounds": tally.learner,
            "baseline_rounds": tally.baseline,
            "held_rounds": tally.held,
            "learner_share": tally.learner_share,
            "rewards_learned": tally.learned,
            "default_rewards": tally.defaults,
            "pending_rewards": tally.pending,
            "refused_rewards": dict(tally.refused),
            "proofs_checked": tally.proofs,
            "pieces_checked": tally.pieces,
            "abandoned_rewards": tally.abandoned,
            "voided_rounds": tally.voided,
            "unproved_rounds": tally.unproved,
            "is_refuted": tally.is_refuted,
            "alarms": [{"event": event, "text": text} for event, text in tally.alarms],
            "answers": [
                {
                    "event": event,
                    "after_round": round_,
                    "response": answer.response,
                    "reason": answer.reason,
                    "by": answer.by,
                }
                for event, round_, answer in tally.answers
            ],
            "private_texts": tally.texts,
            "erasures": [
                {"event": event, "texts": len(erased.events), "by": erased.by, "reason": erased.reason}
                for event, erased in tally.erasures
            ],
            "corrections": [
                {
                    "event": event,
                    "values": {name: _finite(float(value)) for name, value in one.values.items()},
                    "by": one.by,
                    "reason": one.reason,
                }
                for event, one in tally.corrections
            ],
            "promise_from_round": tally.promise_round,
            "closest": {
                "margin": _finite(tally.closest.margin),
                "round": tally.closest.round,
                "event": tally.closest.event,
                "time": tally.closest.time,
            }
            if tally.closest.round
            else None,
            "findings": len(self.findings),
            "findings_by_check": dict(self.findings.counts),
            "listed": [{"event": one.event, "check": one.what, "text": one.text} for one in self.findings],
            **coins,
        }

    def _coins(self, coins: CoinFairness) -> dict[str, Any]:
        return {
            "drawn": coins.coins,
            "learner": coins.learner,
            "expected_learner": coins.expected,
            "most_evidence": _finite(coins.most),
            "are_fair": self.findings.counts["coins"] == 0,
            "blocks": self.tally.coin_blocks,
            "blocks_at_once": self.tally.coin_blocks_at_once,
            "missing": self.tally.coins_missing,
            "recomputed": self.tally.coins_recomputed,
            "not_revealed": self.tally.coins_hidden.total(),
        }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


@dataclass(frozen=True)
class SharedReport:
    """The result of an audit over shards.

    Attributes
    ----------
    hub : Report
        Of the chain where they meet.
    shards : dict of str to Report
        Of the chain of each, as far as its journal was given.
    missing : tuple of str
        Shards whose journal was not given: their rounds are taken as they were handed in.

    Examples
    --------
    >>> SharedReport.__name__
    'SharedReport'
    """

    hub: Report
    shards: dict[str, Report]
    missing: tuple[str, ...]

    @property
    def is_clean(self) -> bool:
        """Whether everything fits, and no journal is missing."""
        return not self.missing and all(report.is_clean for report in (self.hub, *self.shards.values()))


def guard_promise(settings: Mapping[str, Any]) -> str:
    """What was promised, in a sentence or two."""
    parts = [_of_metric(name, one) for name, one in plain_metrics(settings).items()]
    if settings.get("promise", "mean") == "played":
        what = "of the actions played: the mean rewards of what was played, with the coins as they fell, add up to"
    else:
        what = "of the mean, coins averaged: the expected reward over the guard's coins is"
    defaults = [
        f"{name!r} counts {one['default']:g}"
        for name, one in plain_metrics(settings).items()
        if one.get("default") is not None
    ]
    late = f" Where none came in time, {' and '.join(defaults)}, by definition." if defaults else ""
    return (
        f"At every round, {what} {' and '.join(parts)}. If rewards keep to their bounds and nobody foresees the coin, "
        f"this holds for all rounds at once, except with probability {100 * float(settings['delta']):g}%.{late}"
    )


def guard_verdict(settings: Mapping[str, Any], tally: AuditCounts) -> str:
    """That it was kept, in a sentence."""
    if settings.get("seed") is not None:
        return (
            f"That is open. The coins follow from a seed of {settings['seed']}, which was declared: whoever knew it "
            "could choose requests by them. The banks could pay for every share at its worst."
        )
    word = "of the actions played" if settings.get("promise", "mean") == "played" else "of the mean, coins averaged"
    hidden = tally.coins_hidden.total()
    open_ = f" The secrets of {hidden:,} coins have not been revealed yet." if hidden else ""
    return (
        f"Yes, the promise {word} was kept. In each of {tally.decisions:,} rounds the banks, added up again from the "
        f"raw events, could pay for the share that the proposal had, at its worst; the coins look fair, and chose the "
        f"learner {tally.learner:,} times.{open_}"
    )


def guard_rows(coins: CoinFairness, tally: AuditCounts) -> Iterator[tuple[str, str]]:
    """What was counted of coins and units, line by line."""
    yield "visits of units that were open", f"{tally.visits:,}"
    yield "coins drawn", f"{coins.coins:,}"
    yield "  for the learner", f"{coins.learner:,}, where {coins.expected:,.1f} were to be expected"
    verdict = "as fair ones do" if coins.most < LIMIT else "UNFAIR"
    yield "  they fall", f"{verdict} (a test that fair coins fail with a chance of {LEVEL:g} at most, at any time)"
    if tally.coin_blocks:
        yield "  computed again from their secrets", f"{tally.coins_recomputed:,}"
        at_once = f"{tally.coin_blocks_at_once:,} for one coin at most; more than folders of secrets need a reason"
        yield "  blocks that secrets were committed to for", f"{tally.coin_blocks:,}, {at_once}"
        missing = "more than processes without their secrets and restores need a reason"
        yield "  rounds without a coin, where a block had to begin", f"{tally.coins_missing:,}; {missing}"
        hidden = tally.coins_hidden
        where = f", of the blocks that begin with event {listed(sorted(hidden))}" if hidden else ""
        yield "coins not yet revealed", f"{hidden.total():,}{where}"


def listed(numbers: Sequence[int]) -> str:
    """The first of some numbers, and how many more there are."""
    more = f" and {len(numbers) - LISTED:,} more" if len(numbers) > LISTED else ""
    return ", ".join(f"{number:,}" for number in numbers[:LISTED]) + more


def _of_metric(name: str, one: Mapping[str, Any]) -> str:
    alpha, reserve = float(one["alpha"]), float(one.get("reserve") or 0.0)
    of = "what the baseline would have earned" if name == "reward" else f"the baseline's {name!r}"
    if one["kind"] == "floor":
        return f"at least {100 * (1 - alpha):.4g}% of {of}" + (f", less {reserve:g} in all" if reserve else "")
    return f"at most {100 * (1 + alpha):.4g}% of {of}" + (f", plus {reserve:g} in all" if reserve else "")


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
    if any(finding.event == 1 and finding.what in ("settings", "numbers") for finding in report.findings):
        return "Nothing that could be kept: no policy takes the settings that were written down."
    settings = created.settings
    if created.policy in GUARDS:
        return guard_promise(settings)
    alpha, delta = settings.get("alpha"), settings.get("delta")
    if alpha is None:
        return f"Nothing: {created.policy} keeps no floor, it is the learner alone."
    plain = plain_constraint(settings)
    constraint = CONSTRAINTS[plain["name"]]
    share = f"at least {100 * (1 - float(alpha)):.4g}% of what the baseline would have earned"
    number = None if constraint.number is None else plain[constraint.number[0]]
    chance = f"{100 * float(delta or 0):g}%"
    start = report.tally.promise_round
    renewed = f" A new promise was begun: it counts from round {start:,} on." if start > 1 else ""
    return (
        f"{constraint.says.format(share=share, number=number)} If what was declared is true, this holds for all rounds "
        f"at once, except with probability {chance}.{renewed}"
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
    if tally.unproved:
        return (
            f"That is open. By the callers' word, another action than was proved was played in {tally.unproved:,} of "
            f"the learner's {tally.learner:,} rounds. The others were proved admissible, with these counted as they "
            "were played, and the proofs hold when they are computed again from the raw events."
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
        origin_text = f"event {origin.number:,}, with {origin.rounds:,} of its rounds{mended}: {origin.reason}"
        yield f"forked from {origin.experiment!r}", origin_text
    yield "from", when(tally.first_time)
    yield "to", when(tally.last_time)
    yield "decisions", f"{tally.decisions:,}"
    yield "  played by the learner", f"{tally.learner:,} ({tally.learner_share:.1%})"
    yield "  played by the baseline", f"{tally.baseline:,}"
    yield "  of these, held there", f"{tally.held:,}, by mode or fallback"
    if report.coins is not None:
        yield from guard_rows(report.coins, tally)
    if tally.voided:
        word = f"{tally.voided:,}, by the callers' word before any reward of them had come"
        yield "  not played as decided", word + (f"; {tally.unproved:,} the learner's" if tally.unproved else "")
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
