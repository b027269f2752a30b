"""The parts of the replay's page: its lead, tables and pictures."""

from collections.abc import Iterator, Sequence

from surefoot.replay.batch import BadRows, Log
from surefoot.replay.diagnostics import Doubt
from surefoot.replay.estimators import ASSUMES
from surefoot.replay.replay_figures import FIGURES, picture
from surefoot.replay.replay_outcome import ReplayOutcome
from surefoot.replay.replay_text import HEADS, shown, table_rows
from surefoot.reports.html_page import Html, Verdict, bullets, figure, row, table, tag
from surefoot.scalars import precisely

CAPTIONS = {
    "lift": "What each policy earns beyond the baseline, a round: the estimate, and its interval. Right of 0 it pays.",
    "reward": "What was earned so far, as a share of what the baseline would have earned in the same rounds. Dotted: "
    "the floor that each α promises to keep. Rounds that the baseline played count alike on both sides.",
    "share": "Rounds so far in which the learner, not the baseline, chose.",
    "margin": "Guaranteed minus required reward, as the certificate states it: at or above 0 the learner may act.",
}
INTRODUCTION = (
    "What each policy would have done on these logged rounds, and what it would have earned beside the baseline, the "
    "strategy of today. α is the share of the baseline's reward that a policy may put at risk."
)


def shown_verdict(found: tuple[str, bool] | None) -> Verdict | None:
    """Whether it pays and every floor was kept; None where no policy has one."""
    return None if found is None else Verdict(found[0], is_good=found[1])


def lead(log: Log, outcomes: Sequence[ReplayOutcome]) -> tuple[str | Html, ...]:
    """What this is about, what was read, and what could not be."""
    first = outcomes[0]
    read = tag("p", f"{first.rows:,} logged rows, read by ", tag("em", first.evaluator),
               f". The baseline earns {shown(first.main['baseline'])} a round.")  # fmt: skip
    return INTRODUCTION, read, _left_out(log.bad)


def side_by_side(outcomes: Sequence[ReplayOutcome]) -> Iterator[Html]:
    """The main table, and how to read it."""
    yield _table("Policies side by side", HEADS, table_rows(outcomes))
    yield tag(
        "p",
        f"Numbers in brackets are {precisely(outcomes[0].main['reward'].level)} intervals. “Free from round”: no "
        "baseline round after it, if that leaves at least a fifth of the rounds. “Below the floor”: rounds after which "
        "less than (1 − α) of the baseline's reward had been earned.",
    )


def pictures(outcomes: Sequence[ReplayOutcome]) -> Iterator[Html]:
    """The figures; the gate's margin only where a policy has a gate."""
    has_gate = any(outcome.spec.alpha is not None for outcome in outcomes)
    for name, (_, title) in FIGURES.items():
        if name != "margin" or has_gate:
            yield figure(title, picture(name, outcomes), CAPTIONS[name])


def estimate_table(outcomes: Sequence[ReplayOutcome]) -> Html:
    """Every estimator's numbers, policy by policy."""
    rows = [
        (
            outcome.spec.label,
            name,
            *(shown(found[what], signed=what == "gain") for what in ("reward", "baseline", "gain")),
        )
        for outcome in outcomes
        for name, found in outcome.estimates.items()
    ]
    return _table("All estimates", ("Policy", "Estimator", "Reward", "Baseline", "Lift"), rows)


def action_table(outcomes: Sequence[ReplayOutcome]) -> Html:
    """What each action earned."""
    rows = [(name, shown(earned), f"{earned.rows:,}") for name, earned in outcomes[0].actions.items()]
    return _table("Actions", ("Action", "Earned on average", "Rows"), rows)


def assumptions(outcomes: Sequence[ReplayOutcome]) -> Html:
    """What the numbers rest on."""
    return bullets(ASSUMES[outcomes[0].evaluator])


def doubts_table(doubts: Sequence[Doubt]) -> Html:
    """What the log says against the assumptions."""
    rows = [row(_doubt(doubt), doubt.assumption, doubt.seen) for doubt in doubts]
    return table("Assumptions", ("", "Assumption", "Seen in the log"), rows)


def _doubt(doubt: Doubt) -> Html:
    return tag("td", tag("span", "doubtful", class_="no") if doubt.is_doubtful else "no doubt", class_="short")


def _left_out(bad: BadRows) -> Html:
    if bad.count == 0:
        return tag("p", "No row was left out.")
    lines = [f"line {line:,}: {reason}" for line, reason in bad.shown]
    lines += [f"and {bad.count - len(bad.shown):,} more"] if bad.count > len(bad.shown) else []
    return tag("details", tag("summary", f"{bad.count:,} rows could not be used"), bullets(lines))


def _table(label: str, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Html:
    return table(label, heads, [row(*map(_cell, cells), head=policy) for policy, *cells in rows])


def _cell(text: str) -> Html:
    """An interval stays on one line, and so does a number with its alpha."""
    kept = text.replace(" (α = ", "\N{NO-BREAK SPACE}(α\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}")
    return tag("td", kept, class_="interval" if text.endswith("]") else None)
