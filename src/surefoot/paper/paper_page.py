"""What the paper's page says: its lead, the cards at a glance, and a section for each instance."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import polars as pl

from surefoot.paper.claims import FIRST, Claim
from surefoot.paper.report_tables import claim_table, most, number_table, ratio_table, times
from surefoot.paper.sweep_rows import (
    all_alphas,
    at_round,
    fewer,
    horizon_of,
    instance_title,
    last_checkpoint,
    of_world,
    percent,
    policies_of,
    runs_of,
)
from surefoot.reports.frame import Verdict, figure, section
from surefoot.reports.markup import Html, tag
from surefoot.reports.plotly_charts import chart_place


class Frame(NamedTuple):
    """What a page is called, and what it says it is."""

    title: str
    heading: str
    lead: str


SETTING = (
    "A company has a strategy that works, the baseline, and wants software to find a better one while it is in use. "
    "An ordinary learner (LUCB) tries poor choices at first and can earn less than the baseline would have; a "
    "conservative learner (CLUCB) tries only what it can show to be affordable, so that with high probability it "
    "never falls below a floor: the share 1 − α of what the baseline would have earned."
)
REPRODUCTION = Frame(
    "Section 5, reproduced: conservative bandits against their claims",
    "Can a program learn a better strategy without ever losing ground?",
    f"{SETTING} This page repeats the experiment of the paper that proposed it (“Conservative Contextual Linear "
    "Bandits”, Section 5) and says, claim by claim, whether our numbers agree.",
)
SWEEP = Frame(
    "Simulation: policies side by side",
    "Policies side by side, in simulated worlds",
    f"{SETTING} This page compares policies in worlds of your own choice. It is not the paper's experiment, and says "
    "nothing of its claims.",
)
GLANCE = (
    "Regret is what was missed against always playing the best action. LUCB is the learner without a floor; CLUCB "
    "knows what the baseline earns; CLUCB2, where shown, has to learn that too; SafeLUCB, where shown, keeps the same "
    "promise by sharper proofs, and is ours."
)
FOOTER = "± is a 95% interval everywhere: 1.96 standard errors over runs."
INSTANCES = {
    "as-written": "Features and θ as the paper draws them. Mean rewards are then larger than 1, which the paper's own "
    "assumptions exclude; signals are strong, and everything is learned quickly.",
    "normalized": "The same draws, with θ divided by the best mean reward, so that the best action pays 1 and the "
    "paper's assumptions hold; signals are weaker, and learning takes longer.",
}
USUAL = 0.1  # the alpha that is shown first
SAFE = (
    "SafeLUCB is not in the paper. It makes the same promise with the same α, but proves each move by everything that "
    "is known at once: the data, the bounds on noise and θ, a floor under the baseline's reward and, where it is told "
    "so, that every mean lies in [0, 1] or what the baseline earns. So it needs the baseline for fewer rounds. "
    "Where the paper's policy is still conservative at the horizon, the ratio is cut short."
)


def is_of_paper(world: str) -> bool:
    """Whether a world is one of Section 5's."""
    return world.startswith("paper/")


def verdict(table: pl.DataFrame, judged: Mapping[str, list[Claim]]) -> Verdict:
    """How many claims hold; where there are none, whether every policy with a floor stayed above it."""
    claims = [claim for found in judged.values() for claim in found]
    if claims:
        held = sum(claim.holds for claim in claims)
        return Verdict(f"{held} of {len(claims)} claims of Section 5 hold", is_good=held == len(claims))
    rows = table.filter((pl.col("measure") == "violated_share") & pl.col("alpha").is_not_null())
    if rows.is_empty():
        return Verdict("No policy that was run keeps a floor", is_good=True)
    share, policy, alpha = max(rows.select("mean", "policy", "alpha").iter_rows(), key=lambda row: row[0])
    if share == 0.0:
        return Verdict("No policy with a floor ever fell below it", is_good=True)
    return Verdict(f"{policy} with α = {alpha:g} was below its floor in up to {share:.2%} of rounds", is_good=False)


def cards(table: pl.DataFrame, judged: Mapping[str, list[Claim]], rivals: Mapping[str, str]) -> Html:
    """A card for each instance: how many claims hold, and what safety cost."""
    return tag(
        "ul",
        *(_card(of_world(table, world), world, claims, rivals) for world, claims in judged.items()),
        class_="cards",
    )


def world_section(table: pl.DataFrame, world: str, claims: list[Claim], place: int, rivals: Mapping[str, str]) -> Html:
    """An instance: charts, SafeLUCB beside the paper's, claims, numbers."""
    rows, title = of_world(table, world), instance_title(world)
    told = [tag("p", INSTANCES.get(world.rsplit("/", 1)[-1], ""))] if is_of_paper(world) else []
    parts = [*told, *_charts(rows, title, place)]
    if any(name in rivals for name in policies_of(rows)):
        beyond = "Beyond the paper: SafeLUCB" if is_of_paper(world) else "SafeLUCB beside the paper's policies"
        parts += [tag("h3", beyond), tag("p", SAFE), ratio_table(rows, title, rivals)]
    if claims:
        parts += [tag("h3", "What the paper says, and what we measured"), claim_table(claims, title)]
    parts += [tag("h3", "Key numbers"), number_table(rows, title)]
    return section(f"{'Instance' if is_of_paper(world) else 'World'}: {title}", *parts, anchor=f"world-{place}")


def other_runs(table: pl.DataFrame, names: list[str]) -> Html:
    """Worlds that have no section of their own, as numbers alone."""
    parts: list[Html] = []
    for world in names:
        rows = of_world(table, world)
        told = tag("p", f"{most(rows, 'runs'):,} runs of {horizon_of(rows):,} rounds.")
        parts += [tag("h3", world), told, number_table(rows, world)]
    return section("Other runs", *parts) if parts else Html()


def _card(rows: pl.DataFrame, world: str, claims: list[Claim], rivals: Mapping[str, str]) -> Html:
    title, held = instance_title(world), sum(claim.holds for claim in claims)
    count = tag("strong", f"{held} of {len(claims)}" if claims else title)
    said = f" claims hold on the instance “{title}”. " if claims else " "
    return tag("li", count, said, _worst(rows, rivals), _ratios(rows, rivals))


def _worst(rows: pl.DataFrame, rivals: Mapping[str, str]) -> str:
    """The largest share of rounds below the floor of LUCB, CLUCB and ours; of all where CLUCB was not run."""
    first, names = last_checkpoint(rows, FIRST), policies_of(rows)
    if "CLUCB" in names:
        names = [name for name in names if name in ("LUCB", "CLUCB") or name in rivals]
    shares = {name: at_round(rows, name, "violated_share", first)["mean"].to_list() for name in names}
    said = [f"{name} {percent(100 * max(found))}%" for name, found in shares.items() if found]
    return f"Below the floor in the first {first:,} rounds, at worst: {'; '.join(said)} of them."


def _ratios(rows: pl.DataFrame, rivals: Mapping[str, str]) -> str:
    """How many times fewer rounds of the baseline ours need, at the alpha nearest to 0.1."""
    ours = [name for name in policies_of(rows) if name in rivals]
    alpha = min(all_alphas(rows, ours), key=lambda alpha: abs(math.log(alpha / USUAL)), default=USUAL)
    ratios = {name: fewer(rows, name, rivals[name], alpha) for name in ours}
    said = [f"{times(ratio)} with {name}, against {rivals[name]}" for name, ratio in ratios.items() if ratio]
    return f" Times fewer rounds of the baseline at α = {alpha:g}: {'; '.join(said)}." if said else ""


def _charts(rows: pl.DataFrame, title: str, place: int) -> Iterator[Html]:
    runs = _runs(rows)
    for kind, (heading, text) in _captions(rows).items():
        label = f"{heading}, {title}; the numbers are in the table below"
        yield figure(heading, chart_place(f"{kind}-{place}", label), f"{text} {runs}")


def _runs(rows: pl.DataFrame) -> str:
    """How many runs; a legend names the policies that had fewer."""
    whole = most(rows, "runs")
    fewer_runs = any(runs_of(rows, name) < whole for name in policies_of(rows))
    return f"{whole:,} runs{', fewer where the legend says so' if fewer_runs else ''}."


def _captions(rows: pl.DataFrame) -> dict[str, tuple[str, str]]:
    horizon, first = horizon_of(rows), last_checkpoint(rows, FIRST)
    return {
        "regret": ("Regret per round over time", "Bands: 95% intervals of the mean. Lower is better. Flat starts are "
                   "the conservative phase, in which the baseline plays. Drag to zoom, double-click to go back; "
                   "a click in the legend hides a line."),
        "violations": (f"Rounds below the floor, among the first {first:,}",
                       "A round counts when all that was earned so far is less than 1 − α of what the baseline would "
                       "have earned. Zero is shown as 0."),
        "horizon": (f"Regret per round after {horizon:,} rounds", "Bars: 95% intervals. A smaller α promises "
                    "more and learns later."),
        "conservative": (f"Rounds played by the baseline, of {horizon:,}", "What safety costs. Lower is better; a grid "
                         "line is a factor of ten. Filled markers know the baseline's reward, open ones do not. "
                         "Bars: 95% intervals."),
    }  # fmt: skip
