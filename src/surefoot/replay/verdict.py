"""What a replay says, as text: the verdict and the cells, the same on the page and in the terminal."""

import math
from collections.abc import Sequence

import numpy as np

from surefoot.replay.doubts import Doubt
from surefoot.replay.estimates import Estimate
from surefoot.replay.evaluation import ReplayOutcome
from surefoot.replay.replayed_policy import GUARD
from surefoot.scalars import precisely

MOST_DECIMALS, FEWEST_DECIMALS = 9, 3
UNKNOWN = "–"
HEADS = (
    "Policy",
    "Lift",
    "Mean reward",
    "Learner",
    "Of rounds that differ",
    "Free from round",
    "Below the floor",
    "Least earned / owed",
    "Rounds",
)


def table_rows(outcomes: Sequence[ReplayOutcome], doubts: Sequence[Doubt]) -> list[tuple[str, ...]]:
    """The main table, under `HEADS`."""
    return [
        (
            outcome.spec.label,
            lift_text(outcome, outcome.main["gain"], doubts),
            shown(outcome.main["reward"]),
            f"{outcome.learner_share:.0%}" if outcome.rounds else "–",
            of_differing(outcome),
            "not yet" if outcome.free_from is None else f"{outcome.free_from:,}",
            below(outcome),
            f"{outcome.worst_share:.1%}" if math.isfinite(outcome.worst_share) else "–",
            f"{outcome.rounds:,}",
        )
        for outcome in outcomes
    ]


def lift_text(outcome: ReplayOutcome, gain: Estimate, doubts: Sequence[Doubt]) -> str:
    """A lift with its interval, marked where the log speaks against what it rests on."""
    text = shown(gain, signed=True)
    return f"{text} (doubtful)" if text not in (UNKNOWN, "0") and reasons_of([*doubts, *outcome.doubts]) else text


def of_differing(outcome: ReplayOutcome) -> str:
    """The learner's share of the rounds that it would change, which alone can earn or lose anything."""
    if not outcome.differing_rounds:
        return "–"
    return f"{(outcome.differing_learner_rounds or 0) / outcome.differing_rounds:.0%} of {outcome.differing_rounds:,}"


def verdict_of(
    outcomes: Sequence[ReplayOutcome], *, per_day: float | None = None, doubts: Sequence[Doubt] = ()
) -> tuple[str, bool] | None:
    """Whether it pays and the floors held, and whether that is good news; None without a floor or a doubt to speak of.

    Parameters
    ----------
    outcomes : sequence of ReplayOutcome
        What `replay` returned.
    per_day : float, optional
        Rounds of your traffic a day, by which the wait is told in days.
    doubts : sequence of Doubt
        What else speaks against the log, such as the doubts of `fit_baseline`. One that bears on the estimates, here or
        in the outcomes, is in the verdict's first sentence, which then does not say whether it pays.

    Returns
    -------
    tuple of str and bool, or None
        The sentences, and whether they are good news.

    Examples
    --------
    >>> verdict_of([]) is None
    True
    """
    kept = [outcome for outcome in outcomes if outcome.spec.alpha is not None]
    active = [outcome for outcome in kept if outcome.learner_rounds]
    best = max(active or outcomes, key=_promise, default=None)
    reasons = [] if best is None else reasons_of([*doubts, *best.doubts])
    if best is None or not (kept or reasons):
        return None
    alarms = [alarm(outcome) for outcome in kept if outcome.alarm is not None]
    if not active:
        idle = "The learner never played: no lift, and nothing at risk."
        doubted = [pays(best, per_day, reasons)] if reasons else []
        return " ".join([*doubted, *([idle] if kept else []), *alarms]), False
    idle = ", ".join(outcome.spec.label for outcome in kept if not outcome.learner_rounds)
    said = [pays(best, per_day, reasons), *_floors(kept), *([f"Never played: {idle}."] if idle else []), *alarms]
    is_broken = any(_is_broken(outcome) for outcome in kept)
    return " ".join(said), best.main["gain"].low > 0 and not is_broken and not alarms and not reasons


def reasons_of(doubts: Sequence[Doubt]) -> list[str]:
    """Why the estimates cannot be relied on."""
    return [doubt.consequence for doubt in once(doubts) if doubt.is_doubtful and doubt.consequence]


def once(doubts: Sequence[Doubt]) -> list[Doubt]:
    """Each assumption once, doubtful if any of these is: several passes and policies may have looked at the same."""
    strongest: dict[str, Doubt] = {}
    for doubt in doubts:
        if doubt.assumption not in strongest or doubt.is_doubtful > strongest[doubt.assumption].is_doubtful:
            strongest[doubt.assumption] = doubt
    return list(strongest.values())


def _floors(kept: Sequence[ReplayOutcome]) -> list[str]:
    """What is said of the floors; as the table counts them."""
    left = [outcome for outcome in kept if any(outcome.below.values())]
    if not left:
        return ["Every policy with a floor stayed above it."]
    counted = ", ".join(
        f"{outcome.spec.label} ({below(outcome)} of {outcome.rounds:,} rounds"
        f"{'' if _is_broken(outcome) else ', and above it in the end'})"
        for outcome in left
    )
    return [f"By the rewards received, which scatter around their means, below the floor at times: {counted}."]


def _promise(outcome: ReplayOutcome) -> tuple[float, float]:
    """By what the best policy is chosen: a gain that is certain, and among others the largest."""
    # A gain that the log cannot tell is NaN, which no order places.
    low, value = np.nan_to_num((outcome.main["gain"].low, outcome.main["gain"].value), nan=-np.inf)
    return max(0.0, float(low)), float(value)


def _is_broken(outcome: ReplayOutcome) -> bool:
    """Whether a floor was left: in any round, or by the last one where the promise is an average over coins."""
    if outcome.spec.name != GUARD or outcome.spec.alpha is None:
        return any(outcome.below.values())
    return bool(outcome.curves["earned"][-1] < (1 - outcome.spec.alpha) * outcome.curves["owed"][-1])


def pays(outcome: ReplayOutcome, per_day: float | None = None, reasons: Sequence[str] = ()) -> str:
    """Whether a policy earns more than the baseline, how sure that is, and from when on it plays alone."""
    gain, baseline = outcome.main["gain"], outcome.main["baseline"]
    if not math.isfinite(gain.value):
        return f"The log cannot say whether {outcome.spec.label} pays: too few rows were played as it would have."
    share = f", {gain.value / baseline.value:+.1%} of the baseline's" if baseline.value > 0 else ""
    value, low, high = digits(gain, signed=True)
    lift = f"{value} a round{share} ({low} to {high})"
    if reasons:
        return f"Doubtful: {outcome.spec.label} shows a lift of {lift}, but {'; and '.join(reasons)}."
    answer = "It pays" if gain.low > 0 else "It does not pay" if gain.high < 0 else "Whether it pays is open"
    free = "" if outcome.free_from is None else f"; unrestricted from round {outcome.free_from:,}"
    if free and per_day is not None and outcome.free_from is not None:
        free += f", after {outcome.free_from / per_day:.3g} days of your traffic"
    return f"{answer}: {outcome.spec.label} has a lift of {lift}, {precisely(gain.level)} sure{free}."


def alarm(outcome: ReplayOutcome) -> str:
    """When data contradicted what was declared, and what followed."""
    assert outcome.alarm is not None
    round_, line = outcome.alarm
    return (
        f"Alarm of {outcome.spec.label} in round {round_:,} (line {line:,}): no theta is left that satisfies both the "
        f"data and everything declared. The baseline played the {outcome.rounds - round_ + 1:,} rounds from there on."
    )


def below(outcome: ReplayOutcome) -> str:
    """Rounds below the floor; for a policy without one, by each alpha that was watched."""
    if outcome.spec.alpha is not None:
        return f"{outcome.below[outcome.spec.alpha]:,}"
    return ", ".join(f"{number:,} (α = {alpha:g})" for alpha, number in outcome.below.items()) or "–"


def digits(estimate: Estimate, *, signed: bool = False) -> tuple[str, str, str]:
    """A number and the ends of its interval, with as many decimals as show two digits of how wide that is."""
    width = (estimate.high - estimate.low) / 2
    size = width if math.isfinite(width) and width > 0 else abs(estimate.value) / 100
    decimals = min(max(1 - math.floor(math.log10(size)), 0), MOST_DECIMALS) if size > 0 else FEWEST_DECIMALS
    form = f"{'+' if signed else ''}.{decimals}f"
    return format(estimate.value, form), format(estimate.low, form), format(estimate.high, form)


def shown(estimate: Estimate, *, signed: bool = False) -> str:
    """A number with its interval."""
    if not math.isfinite(estimate.value):
        return UNKNOWN
    if estimate.low == estimate.value == estimate.high == 0:  # of a policy that only played the baseline
        return "0"
    value, low, high = digits(estimate, signed=signed)
    return f"{value} [{low}, {high}]" if math.isfinite(estimate.low) else f"{value} (no interval)"
