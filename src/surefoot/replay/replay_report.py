"""The replay as one HTML file that needs no network: verdict, table, pictures, estimates, and what they assume."""

import base64
import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from string import Template

from surefoot.replay.batch import BadRows, Log
from surefoot.replay.diagnostics import Doubt
from surefoot.replay.estimators import ASSUMES
from surefoot.replay.intervals import BERNSTEIN, Estimate
from surefoot.replay.replay_figures import FIGURES, draw
from surefoot.replay.replay_outcome import ReplayOutcome
from surefoot.replay.replay_page import PAGE

CAPTIONS = {
    "reward": "What was earned so far, as a share of what the baseline would have earned in the same rounds. Dotted: "
    "the floor that each α promises to keep. Rounds that the baseline played count alike on both sides.",
    "share": "Rounds so far in which the learner, not the baseline, chose.",
    "margin": "Guaranteed minus required reward, as the certificate states it: at or above 0 the learner may act.",
}
HEADS = (
    "Policy",
    "Rounds",
    "Learner",
    "Free from round",
    "Below the floor",
    "Least earned / owed",
    "Mean reward",
    "Gain",
)


def table_rows(outcomes: Sequence[ReplayOutcome]) -> list[tuple[str, ...]]:
    """The main table, as text: the same cells on the page and in the terminal."""
    return [
        (
            outcome.spec.label,
            f"{outcome.rounds:,}",
            f"{outcome.learner_share:.0%}" if outcome.rounds else "–",
            "not yet" if outcome.free_from is None else f"{outcome.free_from:,}",
            below(outcome),
            f"{outcome.worst_share:.1%}" if math.isfinite(outcome.worst_share) else "–",
            shown(outcome.main["reward"]),
            shown(outcome.main["gain"], signed=True),
        )
        for outcome in outcomes
    ]


def below(outcome: ReplayOutcome) -> str:
    """Rounds below the floor; for a policy without one, by each alpha that was watched."""
    if outcome.spec.alpha is not None:
        return f"{outcome.below[outcome.spec.alpha]:,}"
    return ", ".join(f"{number:,} (α = {alpha:g})" for alpha, number in outcome.below.items()) or "–"


def shown(estimate: Estimate, *, signed: bool = False) -> str:
    """A number with its interval."""
    if not math.isfinite(estimate.value):
        return "–"
    sign = "+" if signed else ""
    return f"{estimate.value:{sign}.4f} [{estimate.low:{sign}.4f}, {estimate.high:{sign}.4f}]"


def report_html(
    log: Log,
    outcomes: Sequence[ReplayOutcome],
    *,
    settings: Mapping[str, object],
    doubts: Iterable[Doubt] = (),
) -> str:
    """The page."""
    evaluator, level = outcomes[0].evaluator, outcomes[0].main["reward"].level
    return Template(PAGE).substitute(
        title=f"Replay of {escape(log.name)}",
        lead=_lead(log, outcomes),
        bad=_bad(log.bad),
        table=_table(HEADS, table_rows(outcomes), "Policies side by side"),
        level=f"{level:.0%}",
        figures="".join(_figure(name, outcomes) for name in FIGURES),
        estimates=_estimates(outcomes),
        assumes="".join(f"<li>{escape(text)}</li>" for text in _assumed(outcomes, evaluator)),
        doubts=_doubts(list(doubts)),
        settings="".join(f"<dt>{escape(str(k))}</dt><dd>{escape(str(v))}</dd>" for k, v in settings.items()),
    )


def _lead(log: Log, outcomes: Sequence[ReplayOutcome]) -> str:
    kept = [outcome for outcome in outcomes if outcome.spec.alpha is not None]
    broken = [outcome for outcome in kept if any(outcome.below.values())]
    baseline = shown(outcomes[0].main["baseline"])
    read = f"{outcomes[0].rows:,} logged rows, read by <em>{escape(outcomes[0].evaluator)}</em>."
    first = f"{read} The baseline earns {baseline} a round."
    if not kept:
        return f"<p>{first}</p>"
    if broken:
        names = ", ".join(escape(outcome.spec.label) for outcome in broken)
        verdict = f'<span class="no">below the floor at times: {names}</span>'
    else:
        verdict = '<span class="yes">every policy with a floor stayed above it in every round</span>'
    return f"<p>{first}</p><p>{verdict}</p>"


def _bad(bad: BadRows) -> str:
    if bad.count == 0:
        return "<p>No row was left out.</p>"
    rows = "".join(f"<li>line {line:,}: {escape(reason)}</li>" for line, reason in bad.shown)
    more = f"<li>and {bad.count - len(bad.shown):,} more</li>" if bad.count > len(bad.shown) else ""
    return f"<details><summary>{bad.count:,} rows could not be used</summary><ul>{rows}{more}</ul></details>"


def _figure(name: str, outcomes: Sequence[ReplayOutcome]) -> str:
    if name == "margin" and all(outcome.spec.alpha is None for outcome in outcomes):
        return ""
    title = FIGURES[name][1]
    data = base64.b64encode(draw(name, outcomes, "svg")).decode()
    return (
        f'<figure><h3>{title}</h3><img src="data:image/svg+xml;base64,{data}" alt="{title}; the last values are in the '
        f'table above"><figcaption>{CAPTIONS[name]}</figcaption></figure>'
    )


def _estimates(outcomes: Sequence[ReplayOutcome]) -> str:
    rows = [
        (
            outcome.spec.label,
            name,
            *(shown(found[what], signed=what == "gain") for what in ("reward", "baseline", "gain")),
        )
        for outcome in outcomes
        for name, found in outcome.estimates.items()
    ]
    return _table(("Policy", "Estimator", "Reward", "Baseline", "Gain"), rows, "All estimates")


def _assumed(outcomes: Sequence[ReplayOutcome], evaluator: str) -> list[str]:
    exact = any("exact" in name for outcome in outcomes for name in outcome.estimates)
    return [*ASSUMES[evaluator], *([BERNSTEIN] if exact else [])]


def _doubts(doubts: Sequence[Doubt]) -> str:
    if not doubts:
        return "<p>Not looked at: the settings were declared, not fitted.</p>"
    rows = [("doubtful" if d.is_doubtful else "no doubt", d.assumption, d.seen) for d in doubts]
    return _table(("", "Assumption", "Seen in the log"), rows, "Assumptions")


def _table(heads: Sequence[str], rows: Iterable[Sequence[str]], label: str) -> str:
    head = "".join(f'<th scope="col">{escape(text)}</th>' for text in heads)
    body = "".join("<tr>" + "".join(f"<td{_mark(cell)}>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll" role="region" tabindex="0" aria-label="{label}"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def _mark(cell: str) -> str:
    if cell == "doubtful":
        return ' class="no"'
    return ' class="interval"' if cell.endswith("]") else ""
