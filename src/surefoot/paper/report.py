"""What is written about a sweep: its figures, and one HTML page with claims, figures, numbers and settings."""

import math
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from surefoot.atomic_files import whole_file
from surefoot.paper.claims import FIRST, SURE, Claim, judge
from surefoot.paper.figures import picture, save_figures
from surefoot.paper.sweep_rows import (
    all_alphas,
    at_round,
    curve,
    curves_of,
    fewer,
    horizon_of,
    instance_title,
    last_checkpoint,
    number,
    of_world,
    panel_worlds,
    percent,
    policies_of,
    pooled,
    runs_of,
    times,
    worlds,
)
from surefoot.reports.html_page import (
    Badge,
    Html,
    badge,
    figure,
    join,
    page,
    row,
    section,
    settings_table,
    table,
    tag,
)


class Wording(NamedTuple):
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
REPRODUCTION = Wording(
    "Section 5, reproduced: conservative bandits against their claims",
    "Can a program learn a better strategy without ever losing ground?",
    f"{SETTING} This page repeats the experiment of the paper that proposed it (“Conservative Contextual Linear "
    "Bandits”, Section 5) and says, claim by claim, whether our numbers agree.",
)
SWEEP = Wording(
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
PAPER_FIGURES = 3  # our fourth is not the paper's
USUAL = 0.1  # the alpha that is shown first
SAFE = (
    "SafeLUCB is not in the paper. It makes the same promise with the same α, but proves each move by everything that "
    "is known at once: the data, the bounds on noise and θ, a floor under the baseline's reward and, where it is "
    "declared, that every mean lies in [0, 1] or what the baseline earns. So it needs the baseline for fewer rounds. "
    "Where the paper's policy is still conservative at the horizon, the ratio is cut short."
)


def write_results(
    table: pl.DataFrame,
    folder: Path,
    *,
    settings: Mapping[str, object],
    rivals: Mapping[str, str],
    note: str | None = None,
) -> None:
    """Write the figures and report.html of a sweep into a folder."""
    save_figures(table, folder, note=note)
    write_report(table, folder / "report.html", settings=settings, note=note, rivals=rivals)


def write_report(
    table: pl.DataFrame,
    path: str | os.PathLike[str],
    *,
    settings: Mapping[str, object],
    note: str | None = None,
    rivals: Mapping[str, str] | None = None,
) -> Path:
    """Write the page; the file appears whole or not at all.

    `rivals` names for a policy of ours the one of the paper that its conservative rounds are held against.
    """
    text = report_html(pooled(table), settings=settings, note=note, rivals=rivals or {})
    with whole_file(Path(path)) as file:
        file.write(text.encode())
    return Path(path)


def report_html(
    table: pl.DataFrame, *, settings: Mapping[str, object], note: str | None, rivals: Mapping[str, str]
) -> str:
    """The page, from a table in which seeds are pooled."""
    names = panel_worlds(table)
    claims = {world: _claims(table, world) for world in names}
    frame = REPRODUCTION if any(map(is_of_paper, names)) else SWEEP
    return page(
        frame.title,
        section("At a glance", cards(table, claims, rivals), tag("p", GLANCE), anchor="glance"),
        join(world_section(table, world, claims[world], i, rivals) for i, world in enumerate(names)),
        other_runs(table, [world for world in worlds(table) if world not in names]),
        section("What was run", scale_table(table), _settings(settings), anchor="run"),
        heading=frame.heading,
        verdict=verdict(table, claims),
        lead=[tag("p", frame.lead, class_="lead")],
        note=note,
        footer=FOOTER,
    )


def _settings(settings: Mapping[str, object]) -> Html:
    return tag("details", tag("summary", "Settings"), settings_table(settings))


def _claims(table: pl.DataFrame, world: str) -> list[Claim]:
    """Section 5's claims, in its own worlds and where LUCB and CLUCB were both run; none elsewhere."""
    has_both = {"LUCB", "CLUCB"} <= set(policies_of(of_world(table, world)))
    return judge(table, world) if has_both and is_of_paper(world) else []


def is_of_paper(world: str) -> bool:
    """Whether a world is one of Section 5's."""
    return world.startswith("paper/")


def verdict(table: pl.DataFrame, by_world: Mapping[str, list[Claim]]) -> Badge:
    """How many claims hold; where there are none, whether every policy with a floor stayed above it."""
    claims = [claim for claims in by_world.values() for claim in claims]
    if claims:
        held = sum(claim.holds for claim in claims)
        return Badge(f"{held} of {len(claims)} claims of Section 5 hold", is_good=held == len(claims))
    rows = table.filter((pl.col("measure") == "violated_share") & pl.col("alpha").is_not_null())
    if rows.is_empty():
        return Badge("No policy that was run keeps a floor", is_good=True)
    share, policy, alpha = max(rows.select("mean", "policy", "alpha").iter_rows(), key=lambda row: row[0])
    if share == 0.0:
        return Badge("No policy with a floor ever fell below it", is_good=True)
    return Badge(f"{policy} with α = {alpha:g} was below its floor in up to {share:.2%} of rounds", is_good=False)


def cards(table: pl.DataFrame, by_world: Mapping[str, list[Claim]], rivals: Mapping[str, str]) -> Html:
    """A card for each instance: how many claims hold, and what safety cost."""
    items = (_card(of_world(table, world), world, claims, rivals) for world, claims in by_world.items())
    return tag("ul", *items, class_="cards")


def world_section(table: pl.DataFrame, world: str, claims: list[Claim], place: int, rivals: Mapping[str, str]) -> Html:
    """An instance: claims, charts, SafeLUCB beside the paper's, numbers."""
    rows, title = of_world(table, world), instance_title(world)
    intro = [tag("p", INSTANCES.get(world.rsplit("/", 1)[-1], ""))] if is_of_paper(world) else []
    parts = list(intro)
    if claims:
        parts += [tag("h3", "What the paper says, and what we measured"), claim_table(claims, title)]
    parts += _figures(rows, title, place, is_of_paper(world))
    if any(name in rivals for name in policies_of(rows)):
        beyond = "Beyond the paper: SafeLUCB" if is_of_paper(world) else "SafeLUCB beside the paper's policies"
        parts += [tag("h3", beyond), tag("p", SAFE), ratio_table(rows, title, rivals)]
    parts += [tag("h3", "Key numbers"), number_table(rows, title)]
    return section(f"{'Instance' if is_of_paper(world) else 'World'}: {title}", *parts, anchor=f"world-{place}")


def other_runs(table: pl.DataFrame, names: list[str]) -> Html:
    """Worlds that have no section of their own, as numbers alone."""
    parts: list[Html] = []
    for world in names:
        rows = of_world(table, world)
        scale = tag("p", f"{runs_of(rows):,} runs of {horizon_of(rows):,} rounds.")
        parts += [tag("h3", world), scale, number_table(rows, world)]
    return section("Other runs", *parts) if parts else Html()


def _card(rows: pl.DataFrame, world: str, claims: list[Claim], rivals: Mapping[str, str]) -> Html:
    title, held = instance_title(world), sum(claim.holds for claim in claims)
    count = tag("strong", f"{held} of {len(claims)}" if claims else title)
    text = f" claims hold on the instance “{title}”. " if claims else " "
    return tag("li", count, text, _worst(rows, rivals), _ratios(rows, rivals))


def _worst(rows: pl.DataFrame, rivals: Mapping[str, str]) -> str:
    """The largest share of rounds below the floor of LUCB, CLUCB and ours; of all where CLUCB was not run."""
    first, names = last_checkpoint(rows, FIRST), policies_of(rows)
    if "CLUCB" in names:
        names = [name for name in names if name in ("LUCB", "CLUCB") or name in rivals]
    shares = {name: at_round(rows, name, "violated_share", first)["mean"].to_list() for name in names}
    texts = [f"{name} {percent(100 * max(values))}%" for name, values in shares.items() if values]
    return f"Below the floor in the first {first:,} rounds, at worst: {'; '.join(texts)} of them."


def _ratios(rows: pl.DataFrame, rivals: Mapping[str, str]) -> str:
    """How many times fewer rounds of the baseline ours need, at the alpha nearest to 0.1."""
    ours = [name for name in policies_of(rows) if name in rivals]
    alpha = min(all_alphas(rows, ours), key=lambda alpha: abs(math.log(alpha / USUAL)), default=USUAL)
    ratios = {name: fewer(rows, name, rivals[name], alpha) for name in ours}
    texts = [f"{times(ratio)} with {name}, against {rivals[name]}" for name, ratio in ratios.items() if ratio]
    return f" Times fewer rounds of the baseline at α = {alpha:g}: {'; '.join(texts)}." if texts else ""


def _figures(rows: pl.DataFrame, title: str, place: int, is_numbered: bool) -> Iterator[Html]:
    """The figures; of the paper's worlds with the numbers of its own."""
    runs = _runs(rows)
    for number_, (name, (heading, text)) in enumerate(_captions(rows).items(), 1):
        if is_numbered:
            heading = f"Figure {number_}: {heading}" if number_ <= PAPER_FIGURES else f"Not in the paper: {heading}"
        label = f"{heading}, {title}; the numbers are in the table below"
        yield figure(heading, picture(rows, name, label, place=place), f"{text} {runs}")


def _runs(rows: pl.DataFrame) -> str:
    """How many runs; a legend names the policies that had fewer."""
    whole = runs_of(rows)
    fewer_runs = any(runs_of(rows, name) < whole for name in policies_of(rows))
    return f"{whole:,} runs{', fewer where the legend says so' if fewer_runs else ''}."


def _captions(rows: pl.DataFrame) -> dict[str, tuple[str, str]]:
    horizon, first = horizon_of(rows), last_checkpoint(rows, FIRST)
    return {
        "figure1": ("Regret per round over time", "Bands: 95% intervals of the mean. Lower is better. Flat starts are "
                    "the conservative phase, in which the baseline plays."),
        "figure2": (f"Rounds below the floor, among the first {first:,}",
                    "A round counts when all that was earned so far is less than 1 − α of what the baseline would "
                    "have earned. Zero is shown as 0."),
        "figure3": (f"Regret per round after {horizon:,} rounds", "Bars: 95% intervals. A smaller α promises more and "
                    "learns later."),
        "figure4": (f"Rounds played by the baseline, of {horizon:,}", "What safety costs. Lower is better; a grid line "
                    "is a factor of ten. Filled markers know the baseline's reward, open ones do not. Bars: 95% "
                    "intervals."),
    }  # fmt: skip


def claim_table(claims: Iterable[Claim], title: str) -> Html:
    """Each sentence of the paper, what was measured, and the verdict."""
    return table(f"Claims, {title}", ("Verdict", "The paper", "Measured"), [_claim(c) for c in claims], "claims")


def _claim(claim: Claim) -> Html:
    held = badge(Badge("✓ holds" if claim.holds else "✗ does not hold", is_good=claim.holds))
    judged = tag("details", tag("summary", "How it was judged"), claim.detail)
    return row(tag("td", held), claim.text, tag("td", claim.measured, judged))


def ratio_table(rows: pl.DataFrame, title: str, rivals: Mapping[str, str]) -> Html:
    """How many times fewer rounds of the baseline each policy of ours needs than the paper's, by alpha."""
    ours = [name for name in policies_of(rows) if name in rivals]
    alphas, body = all_alphas(rows, ours), []
    for name in ours:
        ratios = [fewer(rows, name, rivals[name], alpha) for alpha in alphas]
        body.append(row(rivals[name], *("–" if ratio is None else times(ratio) for ratio in ratios), head=name))
    heads = ("Rounds of the baseline, times fewer", "than the paper's", *(f"α = {alpha:g}" for alpha in alphas))
    return table(f"Ratios, {title}", heads, body, "numbers")


def number_table(rows: pl.DataFrame, title: str) -> Html:
    """Every policy and alpha: rounds of the baseline, regret, and rounds below the floor."""
    horizon, first = horizon_of(rows), last_checkpoint(rows, FIRST)
    heads = ("Policy", "α", "Runs", f"Baseline rounds of {horizon:,}", f"Regret per round at {horizon:,}",
             f"Below the floor, % of first {first:,}", f"% of all {horizon:,}")  # fmt: skip
    body = []
    for policy, alpha in curves_of(rows):
        played, regret = (
            curve(rows, policy, alpha, measure).row(-1, named=True)
            for measure in ("baseline_rounds", "regret_per_round")
        )
        below = [_below(rows, policy, alpha, round_) for round_ in (first, horizon)]
        head = ("–" if alpha is None else f"{alpha:g}", f"{played['runs']:,}")
        body.append(row(*head, _plus_minus(played), _plus_minus(regret), *below, head=policy))
    return table(f"Key numbers, {title}", heads, body, "numbers")


def _below(rows: pl.DataFrame, policy: str, alpha: float | None, round_: int) -> str:
    """The share of rounds below the floor; for a policy without one, over all alphas that were watched."""
    broken = curve(rows, policy, alpha, "violated_share").filter(pl.col("round") == round_).sort("watched")
    shares = [percent(100 * row["mean"]) for row in broken.iter_rows(named=True)]
    return shares[0] if len(shares) == 1 else f"{shares[0]} to {shares[-1]} (by α)" if shares else "–"


def scale_table(table_: pl.DataFrame) -> Html:
    """How much was run in every world."""
    body = []
    for world in worlds(table_):
        rows = of_world(table_, world)
        body.append(row(_several(rows), f"{horizon_of(rows):,}", str(len(curves_of(rows))), head=world))
    return table("What was run", ("World", "Runs", "Rounds", "Policies"), body, "numbers")


def _several(rows: pl.DataFrame) -> str:
    """The numbers of runs, largest first."""
    return " and ".join(f"{runs:,}" for runs in rows["runs"].unique().sort(descending=True))


def _plus_minus(row: dict[str, Any]) -> str:
    known = row["stderr"] is not None and math.isfinite(row["stderr"])
    return f"{number(row['mean'])} ± {number(SURE * row['stderr'], 2)}" if known else number(row["mean"])
