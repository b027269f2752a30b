"""The claims of Section 5 of the paper, each beside what was measured.

A claim is judged from the table of a sweep, one world at a time. Comparisons between means use their standard errors:
a difference counts when it is larger than 1.96 times the root of the summed squares. Policies play the same
realisations, so that their errors are correlated and this test is, if anything, too strict.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from surefoot.paper.sweep_rows import (
    alphas_of,
    at_round,
    curve,
    horizon_of,
    last_checkpoint,
    number,
    of_world,
    runs_of,
    section5_worlds,
)

SURE = 1.96  # standard errors that a difference must exceed
SAME = 1e-9  # means closer than this are equal up to rounding
EARLY = 10  # the last of the rounds among which "the first few periods" are looked for
FEW = 2  # rounds that "the first few periods" are at least
FIRST = 1_000  # the rounds that Figure 2 looks at
OVER = 0.05  # the conservative phase is over when the baseline plays less than this share of the rounds


@dataclass(frozen=True, slots=True)
class Claim:
    """One sentence of the paper (paraphrased, with its place), what was measured, and whether it holds."""

    text: str
    measured: str
    holds: bool
    detail: str


def phase_end(table: pl.DataFrame, alpha: float) -> int | None:
    """The round after which the baseline plays less than 5% of CLUCB's rounds; None if that is not reached."""
    rows = curve(table, "CLUCB", alpha, "baseline_rounds")
    # The first checkpoint has none before it, and every run begins with the baseline.
    share = (rows["mean"].diff() / rows["round"].diff()).fill_null(1.0).to_list()
    busy = [place for place, part in enumerate(share) if part >= OVER]
    return None if busy[-1] == len(share) - 1 else int(rows["round"][busy[-1]])


def judge(table: pl.DataFrame, world: str) -> list[Claim]:
    """Every claim of Section 5, in the order of the text, for one world of a sweep's table."""
    rows = of_world(table, world)
    section5_worlds(rows)  # raises where LUCB or CLUCB was not run
    judges = (_flat_start, _shorter_phase, _converges, _lower_early, _never_violates, _lucb_violates, _gap_shrinks)
    return [judge_one(rows) for judge_one in judges]


def _flat_start(table: pl.DataFrame) -> Claim:
    flat, constant = [], True
    for alpha in alphas_of(table, "CLUCB"):
        played = curve(table, "CLUCB", alpha, "baseline_rounds").filter(pl.col("mean") >= pl.col("round") - SAME)
        last = int(played["round"].max() or 0)  # type: ignore[arg-type]
        regret = curve(table, "CLUCB", alpha, "regret_per_round").filter(pl.col("round") <= last)["mean"].to_list()
        constant = constant and bool(regret) and max(regret) - min(regret) <= SAME * max(1.0, abs(regret[0]))
        flat.append((alpha, last))
    short = [f"α = {alpha:g} after round {last}" for alpha, last in flat if last < EARLY]
    shortest = min(last for _, last in flat)
    return Claim(
        text="Figure 1, first observation: CLUCB's per-step regret is constant at the beginning, "
        "because it then follows the baseline.",
        measured=f"Every run plays only the baseline up to round {shortest:,} at least; the per-step regret up to "
        f"there {'is constant' if constant else 'is not constant'}.",
        holds=constant and shortest >= 2,
        detail="Flat start, by α: " + "; ".join(f"{alpha:g}: {last:,} rounds" for alpha, last in flat) + ". "
        f"Constant means equal to the regret of round 1 up to rounding ({SAME:g}). "
        + (f"Some run leaves the baseline within the first {EARLY} rounds: {', '.join(short)}." if short else ""),
    )


def _shorter_phase(table: pl.DataFrame) -> Claim:
    rows = at_round(table, "CLUCB", "baseline_rounds", horizon_of(table))
    falls, how = _falls(rows)
    open_ = [alpha for alpha in alphas_of(table, "CLUCB") if phase_end(table, alpha) is None]
    return Claim(
        text="Figure 1, second observation: the conservative phase is shorter for larger α.",
        measured=f"Mean rounds played by the baseline: {_ends(rows)}.",
        holds=falls,
        detail=f"{_by_alpha(rows)}. {how}" + _still_open(table, open_),
    )


def _converges(table: pl.DataFrame) -> Claim:
    horizon, shrunk, judged, open_, parts = horizon_of(table), 0, 0, [], []
    for alpha in alphas_of(table, "CLUCB"):
        end = phase_end(table, alpha)
        if end is None or 2 * end > horizon:
            open_.append(alpha)
            continue
        (before, error_before), (after, error_after) = _gap(table, alpha, end), _gap(table, alpha, horizon)
        judged += 1
        shrunk += before - after > SURE * math.hypot(error_before, error_after)
        parts.append(f"{alpha:g}: {before:.3g} at round {end:,}, {after:.3g} at {horizon:,}")
    left = f" Not judged: α = {_listed(open_)}, whose phase takes more than half of the rounds." if open_ else ""
    return Claim(
        text="Figure 1, third observation: after the conservative phase, CLUCB's per-step regret converges to LUCB's.",
        measured=f"The gap to LUCB shrinks for {shrunk} of {judged} values of α.{left}",
        holds=0 < judged == shrunk,
        detail=f"Gap, by α: {'; '.join(parts) or 'none could be judged'}. A phase is over when the baseline plays less "
        f"than {OVER:.0%} of the rounds; the gap must be smaller at the horizon, by more than {SURE} standard errors.",
    )


def _lower_early(table: pl.DataFrame) -> Claim:
    # In round 1 nobody has learned anything.
    rounds = [each for each in table["round"].unique().sort() if 1 < each <= EARLY] or [last_checkpoint(table, EARLY)]
    gaps = {each: [_gap(table, alpha, each) for alpha in alphas_of(table, "CLUCB")] for each in rounds}
    lower = [each for each in rounds if all(-gap > SURE * error for gap, error in gaps[each])]
    turned = next((each for each in rounds if any(gap > SURE * error for gap, error in gaps[each])), None)
    few = [each for each in lower if turned is None or each < turned]
    shown = [max(few, key=lambda each: min(-gap for gap, _ in gaps[each]))] if few else []
    if rounds[-1] not in shown:
        shown.append(rounds[-1])
    span = f"rounds {rounds[0]} to {rounds[-1]}" if len(rounds) > 1 else f"round {rounds[0]}"
    return Claim(
        text="Figure 1, last observation: in the first few rounds, CLUCB's per-step regret is much lower than LUCB's.",
        measured=f"Of {span}, lower beyond the errors for every α in {_rounds(few)}"
        + (f"; from round {turned} on LUCB is lower, for some α at least. " if turned else ". ")
        + " ".join(_both_at(table, each) for each in shown),
        holds=len(few) >= min(FEW, len(rounds)),
        detail=f"Each of these rounds is judged. The paper does not say how many “the first few” are: here at least "
        f"{FEW}, before LUCB is lower for any α, a number chosen after seeing ours; lower means by more than {SURE} "
        f"standard errors of the difference. "
        f"Whether that is “much” is left to the reader. {_crossing(table)}",
    )


def _rounds(rounds: Sequence[int]) -> str:
    """Rounds by number, neighbours as one: 3 to 5, 7."""
    if not rounds:
        return "none"
    starts = [each for each in rounds if each - 1 not in rounds]
    ends = [each for each in rounds if each + 1 not in rounds]
    spans = [f"{first}" if first == last else f"{first} to {last}" for first, last in zip(starts, ends, strict=True)]
    return f"round{'s' * (len(rounds) > 1)} {', '.join(spans)}"


def _both_at(table: pl.DataFrame, round_: int) -> str:
    largest = _largest(at_round(table, "CLUCB", "regret_per_round", round_))
    lucb = at_round(table, "LUCB", "regret_per_round", round_).row(0, named=True)
    part = 1 - largest / lucb["mean"] if lucb["mean"] else 0.0
    return (
        f"Round {round_}: LUCB {number(lucb['mean'])} ± {_plus_minus(lucb)}, CLUCB at most {number(largest)}, "
        f"{abs(part):.0%} {'lower' if part >= 0 else 'higher'}."
    )


def _never_violates(table: pl.DataFrame) -> Claim:
    first = last_checkpoint(table, FIRST)
    rows = at_round(table, "CLUCB", "violated_share", first)
    broken = rows.filter(pl.col("mean") > 0)
    return Claim(
        text="Figure 2: CLUCB satisfies the constraint in every one of the first 1,000 rounds, for every α.",
        measured=f"{_largest(rows):.3%} of the first {first:,} rounds in violation at worst, over "
        f"{runs_of(table):,} runs.",
        holds=broken.is_empty() and not rows.is_empty(),
        detail="No round of any run, for any α." if broken.is_empty() else f"Violated: {_by_alpha(broken, 'watched')}.",
    )


def _lucb_violates(table: pl.DataFrame) -> Claim:
    first = last_checkpoint(table, FIRST)
    rows = at_round(table, "LUCB", "violated_share", first)
    falls, how = _falls(rows)
    top = rows.row(0, named=True)
    return Claim(
        text="Figure 2: LUCB violates the constraint in a significant number of rounds, most for small α.",
        measured=f"Of the first {first:,} rounds, {top['mean']:.2%} ± {_plus_minus(top, '.2%')} in violation for "
        f"α = {top['watched']:g} (about {top['mean'] * first:.3g} rounds), {rows['mean'][-1]:.2%} for "
        f"α = {rows['watched'][-1]:g}.",
        holds=falls and top["mean"] > SURE * _error(top),
        detail=f"{_by_alpha(rows, 'watched')}. {how} “Significant” is judged as more than {SURE} standard errors "
        "above zero; that a tighter constraint is violated more often follows from its definition.",
    )


def _gap_shrinks(table: pl.DataFrame) -> Claim:
    horizon = horizon_of(table)
    rows = at_round(table, "CLUCB", "regret_per_round", horizon)
    lucb = at_round(table, "LUCB", "regret_per_round", horizon).row(0, named=True)
    falls, how = _falls(rows)
    gaps = rows.with_columns(mean=pl.col("mean") - lucb["mean"])
    return Claim(
        text="Figure 3: at the horizon, CLUCB is closer to LUCB for larger α: it converges more quickly.",
        measured=f"Gap in per-step regret at round {horizon:,}: {_ends(gaps)} (LUCB: {lucb['mean']:.3g}).",
        holds=falls,
        detail=f"Gap, by α: {_by_alpha(gaps)}. LUCB is the same for all, so the errors are CLUCB's own. {how}",
    )


def _falls(rows: pl.DataFrame) -> tuple[bool, str]:
    """Whether means fall with alpha: from first to last for sure, and no step up beyond the errors."""
    means, errors = rows["mean"].to_list(), [_error(row) for row in rows.iter_rows(named=True)]
    if len(means) < 2:
        return False, "Two values of α are needed to see a trend."
    rises = [
        later - sooner > SURE * math.hypot(a, b) + SAME * abs(sooner)
        for (sooner, later), (a, b) in zip(pairwise(means), pairwise(errors), strict=True)
    ]
    fallen = means[0] - means[-1] > SURE * math.hypot(errors[0], errors[-1])
    strict = all(later < sooner for sooner, later in pairwise(means))
    return fallen and not any(rises), (
        f"From smallest to largest α it {'falls' if fallen else 'does not fall'} by more than {SURE} standard errors; "
        f"{sum(rises)} of {len(rises)} steps rise by more than that"
        + ("; it falls at every step." if strict else "; not every step falls.")
    )


def _gap(table: pl.DataFrame, alpha: float, round_: int) -> tuple[float, float]:
    rows = at_round(table, "CLUCB", "regret_per_round", round_).filter(pl.col("alpha") == alpha)
    mine, lucb = rows.row(0, named=True), at_round(table, "LUCB", "regret_per_round", round_).row(0, named=True)
    return mine["mean"] - lucb["mean"], math.hypot(_error(mine), _error(lucb))


def _crossing(table: pl.DataFrame) -> str:
    tightest = alphas_of(table, "CLUCB")[0]
    mine = curve(table, "CLUCB", tightest, "regret_per_round").select("round", "mean")
    both = curve(table, "LUCB", None, "regret_per_round").join(mine, on="round", suffix="_clucb")
    below = both.filter(pl.col("mean") < pl.col("mean_clucb"))["round"].to_list()
    if not below:
        return f"LUCB is never below CLUCB with α = {tightest:g}."
    return f"LUCB is first below CLUCB with α = {tightest:g} at round {min(below):,}."


def _still_open(table: pl.DataFrame, alphas: Sequence[float]) -> str:
    if not alphas:
        return ""
    share = at_round(table, "CLUCB", "baseline_share", horizon_of(table)).filter(pl.col("alpha").is_in(alphas))
    return f" The phase is not over at the horizon for α = {_listed(alphas)}: baseline share {_by_alpha(share)}."


def _error(row: dict[str, float | None]) -> float:
    error = row["stderr"]
    return math.nan if error is None else error


def _plus_minus(row: dict[str, float | None], form: str = "") -> str:
    error = _error(row)
    if math.isnan(error):
        return "unknown"
    return format(SURE * error, form) if form else number(SURE * error, 2)


def _by_alpha(rows: pl.DataFrame, key: str = "alpha") -> str:
    return "; ".join(f"{row[key]:g}: {number(row['mean'])} ± {_plus_minus(row)}" for row in rows.iter_rows(named=True))


def _ends(rows: pl.DataFrame) -> str:
    tight, loose = rows.row(0, named=True), rows.row(-1, named=True)
    return (
        f"{number(tight['mean'])} ± {_plus_minus(tight)} for α = {tight['alpha']:g}, "
        f"{number(loose['mean'])} ± {_plus_minus(loose)} for α = {loose['alpha']:g}"
    )


def _listed(alphas: Sequence[float]) -> str:
    return ", ".join(f"{alpha:g}" for alpha in alphas)


def _largest(rows: pl.DataFrame) -> float:
    return max(rows["mean"].to_list(), default=math.nan)
