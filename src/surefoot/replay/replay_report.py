"""The replay as one HTML file that needs no network: verdict, table, pictures, estimates, and what they assume."""

from collections.abc import Iterable, Mapping, Sequence

from surefoot.replay.batch import Log
from surefoot.replay.diagnostics import Doubt
from surefoot.replay.replay_outcome import ReplayOutcome
from surefoot.replay.replay_page import (
    action_table,
    assumptions,
    doubts_table,
    estimate_table,
    lead,
    pictures,
    shown_verdict,
    side_by_side,
)
from surefoot.replay.replay_text import below, once, shown, table_rows, verdict_of
from surefoot.reports.html_page import page, section, settings_table, tag

__all__ = ["below", "report_html", "shown", "table_rows"]


def report_html(
    log: Log,
    outcomes: Sequence[ReplayOutcome],
    *,
    settings: Mapping[str, object],
    doubts: Iterable[Doubt] = (),
    verdict: tuple[str, bool] | None = None,
) -> str:
    """The page; the verdict is that of the outcomes unless another is given."""
    looked_at = once([*doubts, *(doubt for outcome in outcomes for doubt in outcome.doubts)])
    return page(
        f"Replay of {log.name}",
        section("Side by side", *side_by_side(outcomes)),
        section("Along the rounds", *pictures(outcomes)),
        section("What each action earned", action_table(outcomes)),
        section("Every estimate", estimate_table(outcomes)),
        section(
            "What this assumes",
            assumptions(outcomes),
            tag("h3", "What the log itself says of the model"),
            doubts_table(looked_at),
        ),
        section("Settings", settings_table(settings)),
        verdict=shown_verdict(verdict or verdict_of(outcomes, doubts=looked_at)),
        lead=lead(log, outcomes),
    )
