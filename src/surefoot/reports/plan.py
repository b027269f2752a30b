"""A rollout plan: its rows and notes for the terminal and the page, its picture, and the page itself."""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from surefoot.atomic_files import whole_file
from surefoot.reports.figures import DARK_GREY, FLOOR, LINES, PAPER, STYLE, SVG_STYLE, inline_svg, legend_below
from surefoot.reports.html_page import Html
from surefoot.simulation.guard_simulation import GuardRollout
from surefoot.simulation.rollout_plan import Plan, Rollout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
from surefoot.reports.html_page import Badge, figure, nested_row, page, row, section, settings_table, table, tag


def heading(plan: Plan) -> str:
    """What was simulated."""
    settings = plan.settings
    return f"{plan.days:g} days, {settings['per_day']:g} decisions a day, {settings['runs']} simulated worlds"


def policy_title(policy: str) -> str:
    """A policy, and whose it is."""
    return f"{policy}, recommended" if policy == "SafeLUCB" else f"{policy}, the paper's"


def notes(plan: Plan) -> Iterator[str]:
    """How to read the rows."""
    settings = plan.settings
    if settings["simulated_rounds"] < plan.rounds:
        yield f"Simulated {settings['simulated_rounds']:,} of {plan.rounds:,} rounds; the rest is extrapolated."
    yield "±: a 95% interval, over the simulated worlds."
    yield "Free: the learner acts as it likes, no baseline round in the last fifth of what was simulated."
    if "CLUCB" in plan.policies:
        yield "The theorem's bound holds wherever its assumptions do, and lies far above what is seen."
    if settings["clicks"]:
        yield from _needed(plan)
    elif "SafeLUCB" in plan.policies and settings["reward_range"] is None:
        yield "If every mean reward lies in a known range, declare it (--reward-range 0,1): SafeLUCB is free sooner."


def _needed(plan: Plan) -> Iterator[str]:
    """How many rewards are needed, and what to do where there are too few."""
    needs = [plan.needed(alpha) for alpha in dict.fromkeys(answer.alpha for answer in plan.answers)]
    rewards = ", ".join(f"{need.rewards(need.alpha):.0f} at {need.alpha:g}" for need in needs)
    days = ", ".join(f"{needed_days(plan, need.alpha, need.alpha):.3g}" for need in needs)
    yield (
        f"Needed by bounds that hold at all times, by alpha: {rewards} rewards of a better arm with no shared "
        f"information. At a share alpha of the rounds that takes {days} days; it is sooner where the share grows with "
        "what is proved, or where rounds of the baseline teach, too."
    )
    if all(needed_days(plan, need.alpha, 1.0) > plan.days for need in needs):
        yield (
            f"{plan.days:g} days are hopeless at this traffic. What would help: a larger alpha, a reward that comes "
            "more often (a proxy), a log to start warm from, or the guard (--policy guard), which needs no proof to "
            "begin."
        )


def needed_days(plan: Plan, alpha: float, share: float) -> float:
    """Days until enough rewards have come at this share for the better arm; at 1 its own rewards alone count."""
    settings = plan.settings
    needed = replace(plan.needed(alpha), is_known=True) if share == 1.0 else plan.needed(alpha)
    return needed.rounds(settings["baseline_reward"], share) / float(settings["per_day"])


def rows(plan: Plan, policy: str) -> Iterator[tuple[str, list[str]]]:
    """What is told of a policy: a name, and a cell for each alpha. Names that begin with blanks are nested."""
    answers = plan.of(policy)
    for name, cell in _ROWS:
        if name not in _WHERE_FINITE or any(math.isfinite(_WHERE_FINITE[name](answer)) for answer in answers):
            yield name, [cell(answer) for answer in answers]


def guard_heading(answers: Sequence[GuardRollout], days: float) -> str:
    """What was simulated of a guard."""
    simulated = min(answer.simulated_days for answer in answers)
    beyond = "" if simulated >= days else f", {simulated:.3g} of them simulated"
    return f"Guard, any learner, rewards of 0 or 1: {days:g} days{beyond}"


def guard_rows(answers: Sequence[GuardRollout], days: float) -> Iterator[tuple[str, list[str]]]:
    """What is told of a guard: a name, and a cell for each alpha."""

    def shown(answer: GuardRollout, day: float) -> str:
        is_open = math.isinf(day) and answer.simulated_days < days
        return f"more than {answer.simulated_days:.3g}" if is_open else _days(day)

    cells: tuple[tuple[str, Callable[[GuardRollout], str]], ...] = (
        ("days until half of the rounds, for good (median)", lambda a: shown(a, a.half_day)),
        ("days until nine tenths of them (median)", lambda a: shown(a, a.most_day)),
        ("  in nine worlds of ten", lambda a: shown(a, a.most_day_slow)),
        ("the learner's share at the end", lambda a: f"{a.share:.0%}"),
        ("rounds of the baseline, expected here (mean)", lambda a: _number(a.baseline_rounds)),
        ("  computed limit for a fixed schedule", lambda a: _number(a.limit_rounds)),
        ("  proved of every guard: at least (theorem)", lambda a: _number(a.proved_rounds) if a.proved_rounds else "-"),
        ("lift over the baseline", lambda a: f"{a.gained:+,.0f}"),
        ("  as a share", lambda a: f"{a.gained_share:+.1%}"),
        ("worlds ever below the floor", lambda a: f"{a.broken}"),
    )
    for name, cell in cells:
        yield name, [cell(answer) for answer in answers]


def verdict(plan: Plan) -> tuple[str, bool]:
    """Whether it would pay, how soon, and whether every floor held; and whether all of that is good news."""
    first = plan.of(plan.policies[0])
    best = max(first, key=lambda answer: answer.gained)
    reach, below = 1.96 * best.gained_stderr, sum(answer.violations for answer in plan.answers)
    pays = best.gained > reach
    soon = f"free after {best.free_day:.2g} days" if math.isfinite(best.free_day) else "not free in time"
    answer = "It would pay" if pays else "It would not pay in this time"
    said = (
        f"{answer}: {best.policy} with α = {best.alpha:g} earns {best.gained_share:+.1%} in {plan.days:g} days "
        f"({best.gained:+,.0f} ± {reach:,.0f}), and is {soon}."
    )
    kept = "No policy fell below its floor." if not below else f"Below the floor in {below:,} simulated rounds."
    return f"{said} {kept}", pays and not below


def at_stake(plan: Plan) -> list[str]:
    """The share of the baseline's reward that each alpha puts at risk."""
    return [f"{answer.at_stake_share:.1%}" for answer in plan.of(plan.policies[0])]


def _number(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.0f}"


def _days(value: float) -> str:
    return "not in time" if not math.isfinite(value) else f"{value:,.1f}"


def _millions(value: float) -> str:
    """Two digits and no exponent."""
    rounded = float(f"{value:.2g}")
    return f"{rounded / 1e6:,.0f} million" if rounded >= 1e7 else f"{rounded:,.0f}"


_BOUND, _TIMES = "  the theorem's bound on them", "rewards seen until free"
_NEEDED = "  until enough rewards have come, at a share alpha"
_WHERE_FINITE: dict[str, Callable[[Rollout], float]] = {
    _BOUND: lambda a: a.bound_rounds,
    _NEEDED: lambda a: a.needed_day,
    _TIMES: lambda a: a.needed_times,
}
_ROWS: tuple[tuple[str, Callable[[Rollout], str]], ...] = (
    ("days until free (median)", lambda a: _days(a.free_day)),
    ("  in nine worlds of ten", lambda a: _days(a.free_day_slow)),
    (_NEEDED, lambda a: _days(a.needed_day)),
    (_TIMES, lambda a: f"{a.needed_times:.1f} x what is needed" if math.isfinite(a.needed_times) else "not in time"),
    ("rounds until free (median)", lambda a: _number(a.free_round)),
    ("  in nine worlds of ten", lambda a: _number(a.free_round_slow)),
    ("worlds in which it is free in time", lambda a: f"{a.free_share:.0%}"),
    ("rounds of the baseline (median)", lambda a: _number(a.baseline_rounds)),
    (_BOUND, lambda a: _millions(a.bound_rounds)),
    ("furthest behind the baseline, ever", lambda a: f"{a.worst_seen_share:.1%}"),
    ("rounds below the floor, all worlds", lambda a: f"{a.violations}"),
    ("lift over the baseline", lambda a: f"{a.gained:+,.0f} ± {1.96 * a.gained_stderr:,.0f}"),
    ("  as a share", lambda a: f"{a.gained_share:+.1%}"),
)


MARKERS = "osD^vp"  # by alpha
FURTHEST = 3.0  # times the days of a plan: beyond that a mark would squeeze all else


def plan_figure(plan: Plan, ax: "Axes") -> "Axes":
    """Draw the reward above the baseline's, as a share of it: medians, and each floor.

    The first policy is drawn with the middle 80% of worlds. A policy has a line style, an alpha a colour and a marker.
    """
    from surefoot.reports.figures import colour_of

    per_day, alphas = float(plan.settings["per_day"]), sorted({answer.alpha for answer in plan.answers})
    for outcome in plan.outcomes:
        alpha, policy = outcome.spec.alpha or 0.0, plan.policies.index(outcome.spec.policy)
        days = outcome.checkpoints / per_day
        ahead = 100 * (outcome.measures["earned"] / outcome.measures["owed"] - 1)
        low, middle, high = np.quantile(ahead, [0.1, 0.5, 0.9], axis=0)
        colour, place = colour_of(alpha, alphas), alphas.index(alpha)
        ax.plot(
            days,
            middle,
            linestyle=LINES[policy % len(LINES)],
            color=colour,
            label=outcome.spec.label,
            linewidth=1.8 if policy == 0 else 1.2,
            marker=MARKERS[place % len(MARKERS)],
            markevery=(0.04 * place, 0.12),
            markersize=4.5,
            markerfacecolor=colour if policy == 0 else PAPER,
        )
        if policy == 0:
            ax.fill_between(days, low, high, color=colour, alpha=0.13, linewidth=0)
    for alpha in alphas:
        ax.axhline(-100 * alpha, linestyle=FLOOR, color=colour_of(alpha, alphas), linewidth=1.6)
        ax.annotate(f"floor for α = {alpha:g}", (1, -100 * alpha), (-2, 2), xycoords=("axes fraction", "data"),
                    textcoords="offset points", ha="right", va="bottom", fontsize=8)  # fmt: skip
    ax.axhline(0, color=DARK_GREY, linewidth=0.8)
    _mark_freedom(plan, ax)
    ax.set_xscale("log")
    ax.xaxis.set_major_formatter(lambda day, _: f"{day:g}")
    ax.set_xlabel("days since the start")
    ax.set_ylabel("total reward, % above the baseline's")
    ax.legend(frameon=False, loc="upper left", ncols=len(plan.policies), fontsize=8)
    return ax


def _mark_freedom(plan: Plan, ax: "Axes") -> None:
    """Of clicks: on which day the first policy is free, and on which enough rewards have come."""
    from surefoot.reports.figures import colour_of

    alphas, named = sorted({answer.alpha for answer in plan.answers}), set()
    for answer in plan.of(plan.policies[0]):
        colour = colour_of(answer.alpha, alphas)
        for day, face, label in (
            (answer.needed_day, PAPER, "enough rewards"),
            (answer.free_day, colour, "free (median)"),
        ):
            if math.isinf(answer.needed_day) or day > FURTHEST * plan.days:
                continue
            shown = None if label in named else label  # once in the legend
            named.add(label)
            ax.plot([day], [0.0], "v", color=colour, markerfacecolor=face, markersize=8, zorder=5, label=shown)


def save_plan(plan: Plan, path: Path) -> None:
    """Write the picture, whole or not at all."""
    figure = _drawn(plan)
    with whole_file(path) as file:
        figure.savefig(file, format=path.suffix[1:], dpi=200)


def plan_picture(plan: Plan) -> Html:
    """The picture for a page, whose colours it follows."""
    import matplotlib as mpl

    from surefoot.reports.figures import colour_of

    alphas = sorted({answer.alpha for answer in plan.answers})
    tones = {colour_of(alpha, alphas): colour_of(alpha, alphas, dark=True) for alpha in alphas}
    with mpl.rc_context(STYLE | SVG_STYLE):
        return inline_svg(_drawn(plan), "plan", "Reward against the floor, day by day", tones=tones)


def _drawn(plan: Plan) -> "Figure":
    # Imported here, so that a plan without a picture needs no matplotlib.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3.9, 4.0), layout="constrained")
    legend_below(plan_figure(plan, figure.subplots()), figure)
    return figure


INTRODUCTION = (
    "How long until the learner acts freely, what is at stake, and what lift to expect: simulated in worlds that fit "
    "what is known of today's strategy, the baseline. α is the share of the baseline's reward that a policy may put at "
    "risk."
)
CAPTION = (
    "What was earned so far, beside what the baseline would have earned: the median over worlds, and for the first "
    "policy the middle 80% of them. Dotted: the floor that each α promises to keep."
)
MARKS = " Triangles: when the learner is free, and, open, when enough rewards have come at a share α."


def save_page(plan: Plan, path: Path) -> None:
    """Write the page, whole or not at all."""
    with whole_file(path) as file:
        file.write(plan_html(plan).encode())


def plan_html(plan: Plan) -> str:
    """The page."""
    return page(
        "Rollout plan",
        section("What to expect, by α", _answers(plan), *(tag("p", note) for note in notes(plan))),
        section(
            "Day by day",
            figure(
                "Reward against the floor", plan_picture(plan), CAPTION + (MARKS if plan.settings["clicks"] else "")
            ),
        ),
        section("Settings", settings_table(plan.settings)),
        verdict=Badge(*verdict(plan)),
        lead=(INTRODUCTION, f"{heading(plan)}."),
    )


def _answers(plan: Plan) -> Html:
    heads = ("", *(f"α = {answer.alpha:g}" for answer in plan.of(plan.policies[0])))
    return table("The plan, by alpha", heads, _rows(plan), "facts")


def _rows(plan: Plan) -> Iterator[Html]:
    yield row(*at_stake(plan), head="at stake at worst")
    for policy in plan.policies:
        title = tag("th", policy_title(policy), scope="rowgroup", colspan=len(at_stake(plan)) + 1)
        yield tag("tr", title, class_="group")
        for name, cells in rows(plan, policy):
            yield nested_row(*cells, head=name)
