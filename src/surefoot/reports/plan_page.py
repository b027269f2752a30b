"""The rollout plan as one HTML page, for whoever has to say yes to it: verdict, picture, table, settings."""

from collections.abc import Iterator
from pathlib import Path

from surefoot.reports.frame import Verdict, figure, page, section
from surefoot.reports.markup import Html, tag
from surefoot.reports.plan_figure import plan_picture
from surefoot.reports.plan_text import at_stake, heading, notes, policy_title, rows, verdict
from surefoot.reports.tables import nested_row, row, settings_table, table
from surefoot.simulation.atomic_files import whole_file
from surefoot.simulation.rollout_plan import Plan

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
        verdict=Verdict(*verdict(plan)),
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
