"""The replay as one HTML file that needs no network: verdict, tables, pictures, estimates, and what they assume.

The pictures are the lift, reward against the floor, the learner's share, and the gate's margin. Each takes the outcomes
and an Axes, and returns the Axes. Policies differ in dashes, alphas in colour; dots are floors.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import BytesIO
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, PercentFormatter

from surefoot.replay.doubts import Doubt
from surefoot.replay.evaluation import ASSUMES, ReplayOutcome
from surefoot.replay.log import BadRows, Log
from surefoot.replay.verdict import HEADS, lift_text, once, shown, table_rows, verdict_of
from surefoot.reports.figures import FLOOR, GREY, INK, LINES, STYLE, SVG_STYLE, inline_svg, legend_below, series_colour
from surefoot.reports.html_page import Badge, Html, bullets, figure, page, row, section, settings_table, table, tag
from surefoot.scalars import precisely

SETTLED = 0.1  # of the rounds: averages over fewer swing too wide to set a scale
# With a fixed salt the same figure is the same file.
REPLAY_STYLE = STYLE | {"svg.fonttype": "path", "svg.hashsalt": "surefoot"}


def lift_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """The lift over the baseline a round, by policy, with its interval."""
    for place, (outcome, look) in enumerate(_looks(outcomes)):
        lift = outcome.main["gain"]
        if np.isfinite(lift.value):
            ax.plot([lift.low, lift.high], [place, place], color=look["color"], lw=2.0, solid_capstyle="butt")
            ax.plot([lift.value], [place], "o", color=look["color"], ms=6)
    ax.axvline(0.0, color=GREY, lw=1.0, zorder=1)
    ax.set_yticks(range(len(outcomes)), [outcome.spec.label for outcome in outcomes])
    ax.set_ylim(max(len(outcomes), 1) - 0.5, -0.5)
    ax.set_xlabel("Lift over the baseline, reward a round")
    return ax


def reward_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """Earned as a share of what the baseline would have earned, over rounds; each alpha's floor as a dotted line.

    Parameters
    ----------
    outcomes : sequence of ReplayOutcome
        What `replay` returned.
    ax : matplotlib.axes.Axes
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The same.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> ax = Figure().add_subplot()
    >>> reward_figure([], ax) is ax
    True
    """
    reached = [1.0]
    for outcome, look in _looks(outcomes):
        rounds, owed = outcome.curves["round"], np.where(outcome.curves["owed"] > 0, outcome.curves["owed"], np.nan)
        share = outcome.curves["earned"] / owed
        known = np.isfinite(share)
        settled = share[(rounds >= SETTLED * rounds.max()) & known]
        # What lies below a floor is shown early or late; what shoots above in a few rounds says nothing.
        reached += [float(np.quantile(share[known], 0.02))] if known.any() else []
        reached += [float(settled.max())] if settled.size else []
        ax.plot(rounds, share, label=outcome.spec.label, **look)
    if outcomes and len(reached) == 1:
        ax.text(0.5, 0.5, "The baseline earned nothing: no share of it to show", transform=ax.transAxes, ha="center",
                fontsize=8, color=INK)  # fmt: skip
    alphas = _alphas(outcomes)
    low, high = min([*reached, *(1 - alpha for alpha in alphas)]), max(reached)
    room = 0.12 * (high - low or 1.0)
    for alpha, colour in alphas.items():
        ax.axhline(1 - alpha, color=colour, lw=1.6, ls=FLOOR, zorder=1)
        ax.annotate(f"floor, α = {alpha:g}", (0.01, 1 - alpha), (0, -2), xycoords=("axes fraction", "data"),
                    textcoords="offset points", ha="left", va="top", fontsize=8, color=INK)  # fmt: skip
    ax.axhline(1.0, color=GREY, lw=1.0, zorder=1)
    ax.set_ylim(max(0.0, low - room), high + room)
    ax.set_ylabel("Earned, of what the baseline would have")
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    return _finish(ax)


def share_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """Share of the rounds so far that the learner played."""
    for outcome, look in _looks(outcomes):
        ax.plot(outcome.curves["round"], outcome.curves["learner_share"], label=outcome.spec.label, **look)
    ax.set_ylim(-0.02, 1.02)
    ax.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    ax.set_ylabel("Rounds played by the learner")
    return _finish(ax)


def margin_figure(outcomes: Sequence[ReplayOutcome], ax: Axes) -> Axes:
    """What the gate could prove beyond what it had to; below 0 the baseline played. Policies with a floor only."""
    largest = 1.0
    for outcome, look in _looks(outcomes):
        margins = outcome.curves["margin"]
        if np.isfinite(margins).any():
            largest = max(largest, float(np.nanmin(np.abs(margins[np.isfinite(margins)]))))
            ax.plot(outcome.curves["round"], margins, label=outcome.spec.label, **look)
    ax.axhline(0.0, color=GREY, lw=1.0, zorder=1)
    ax.set_yscale("symlog", linthresh=largest)
    ax.set_ylabel("Proved above the floor (rewards)")
    return _finish(ax)


FIGURES: dict[str, tuple[Callable[[Sequence[ReplayOutcome], Axes], Axes], str]] = {
    "lift": (lift_figure, "Lift over the baseline"),
    "reward": (reward_figure, "Reward against the floor"),
    "share": (share_figure, "How often the learner was allowed to act"),
    "margin": (margin_figure, "Margin of the gate"),
}


def draw(name: str, outcomes: Sequence[ReplayOutcome], kind: str = "png") -> bytes:
    """One of the figures as a file: png, svg or pdf."""
    with mpl.rc_context(REPLAY_STYLE):
        written = BytesIO()
        metadata: dict[str, Any] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind, {})
        _drawn(name, outcomes).savefig(written, format=kind, dpi=160, metadata=metadata)
    return written.getvalue()


def picture(name: str, outcomes: Sequence[ReplayOutcome]) -> Html:
    """One of the figures for a page, whose colours it follows."""
    with mpl.rc_context(STYLE | SVG_STYLE):
        label = f"{FIGURES[name][1]}; the last values are in the table above"
        return inline_svg(_drawn(name, outcomes), name, label)


def _drawn(name: str, outcomes: Sequence[ReplayOutcome]) -> Figure:
    # As wide as a phone shows it: on a wide screen it grows, and its letters with it.
    height = 0.9 + 0.3 * len(outcomes) if name == "lift" else 3.2 + 0.1 * len(outcomes)
    figure = Figure(figsize=(3.9, height), layout="constrained")
    # Without pyplot, which keeps every figure in memory and may look for a display.
    FigureCanvasAgg(figure)
    legend_below(FIGURES[name][0](outcomes, figure.add_subplot()), figure)
    return figure


def _alphas(outcomes: Sequence[ReplayOutcome]) -> dict[float, str]:
    alphas = sorted({outcome.spec.alpha for outcome in outcomes if outcome.spec.alpha is not None})
    return {alpha: series_colour(place) for place, alpha in enumerate(alphas)}


def _looks(outcomes: Sequence[ReplayOutcome]) -> list[tuple[ReplayOutcome, dict[str, Any]]]:
    alphas = _alphas(outcomes)
    kept, free = [
        list(dict.fromkeys(_name(outcome) for outcome in outcomes if (outcome.spec.alpha is None) is is_free))
        for is_free in (False, True)
    ]
    looks = []
    for outcome in outcomes:
        alpha = outcome.spec.alpha
        dashes = LINES[(free if alpha is None else kept).index(_name(outcome)) % len(LINES)]
        colour = alphas[alpha] if alpha is not None else INK
        looks.append((outcome, {"color": colour, "ls": dashes, "lw": 1.6 if alpha is not None else 2.0}))
    return looks


def _name(outcome: ReplayOutcome) -> str:
    """Of a policy, whatever its floor; without one, by what else it was told."""
    return outcome.spec.label if outcome.spec.alpha is None else outcome.spec.name


def _finish(ax: Axes) -> Axes:
    if not 0 < ax.dataLim.x1 < np.inf:  # a logarithm needs something to scale
        ax.set_xlim(1, 10)
    ax.set_xscale("log")
    ax.margins(x=0.01)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else ""))
    ax.set_xlabel("Round")
    if ax.get_legend_handles_labels()[0]:
        ax.legend()
    return ax


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


def shown_verdict(found: tuple[str, bool] | None) -> Badge | None:
    """Whether it pays and every floor was kept; None where no policy has one."""
    return None if found is None else Badge(found[0], is_good=found[1])


def lead(log: Log, outcomes: Sequence[ReplayOutcome]) -> tuple[str | Html, ...]:
    """What this is about, what was read, and what could not be."""
    first = outcomes[0]
    read = tag("p", f"{first.rows:,} logged rows, read by ", tag("em", first.evaluator),
               f". The baseline earns {shown(first.main['baseline'])} a round.")  # fmt: skip
    return INTRODUCTION, read, _left_out(log.bad)


def side_by_side(outcomes: Sequence[ReplayOutcome], doubts: Sequence[Doubt]) -> Iterator[Html]:
    """The main table, and how to read it."""
    yield _table("Policies side by side", HEADS, table_rows(outcomes, doubts))
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


def estimate_table(outcomes: Sequence[ReplayOutcome], doubts: Sequence[Doubt]) -> Html:
    """Every estimator's numbers, policy by policy."""
    rows = [
        (
            outcome.spec.label,
            name,
            *(shown(estimates[what]) for what in ("reward", "baseline")),
            lift_text(outcome, estimates["gain"], doubts),
        )
        for outcome in outcomes
        for name, estimates in outcome.estimates.items()
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
    return tag("td", kept, class_="interval" if "]" in text else None)


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
        section("Side by side", *side_by_side(outcomes, looked_at)),
        section("Along the rounds", *pictures(outcomes)),
        section("What each action earned", action_table(outcomes)),
        section("Every estimate", estimate_table(outcomes, looked_at)),
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
