"""What a guard promised, in plain words: of the mean with its coins averaged, or of the actions played."""

from collections.abc import Iterator, Mapping
from typing import Any

from surefoot.audit.coin_fairness import LEVEL, LIMIT, CoinFairness
from surefoot.audit.guard_declarations import plain_metrics

CANNOT_SHOW = (
    "That rewards were true when they came in. The audit checks what was done with them.",
    "That rewards which were never sent in keep to their declared bounds; those that were, do.",
    "That nobody foresaw a coin, or drew it again before it was written. The test of fairness finds coins that lean, "
    "repeat or follow earlier rewards, but not one chosen now and then by somebody who knew the next reward.",
    "That predictions of the baseline were made before the coin fell: they are recorded with it.",
)


def guard_promise(settings: Mapping[str, Any]) -> str:
    """What was promised, in a sentence or two."""
    parts = [_of_metric(name, one) for name, one in plain_metrics(settings).items()]
    if settings.get("promise", "mean") == "played":
        what = "of the actions played: the mean rewards of what was played, with the coins as they fell, add up to"
    else:
        what = "of the mean, coins averaged: what each round earns on average over its coin adds up to"
    return (
        f"At every round, {what} {' and '.join(parts)}. If rewards keep to their bounds and nobody foresees the coin, "
        f"this holds for all rounds at once, except with probability {100 * float(settings['delta']):g}%."
    )


def guard_verdict(settings: Mapping[str, Any], learner: int, rounds: int) -> str:
    """That it was kept, in a sentence."""
    word = "of the actions played" if settings.get("promise", "mean") == "played" else "of the mean, coins averaged"
    return (
        f"Yes, the promise {word} was kept. In each of {rounds:,} rounds the banks, added up again from the raw "
        f"events, could pay for the share that the proposal had, at its worst; the coins look fair, and chose the "
        f"learner {learner:,} times."
    )


def guard_rows(coins: CoinFairness, visits: int) -> Iterator[tuple[str, str]]:
    """What was counted of coins and units, line by line."""
    yield "visits of units that were open", f"{visits:,}"
    yield "coins drawn", f"{coins.coins:,}"
    yield "  for the learner", f"{coins.learner:,}, where {coins.expected:,.1f} were to be expected"
    verdict = "as fair ones do" if coins.most < LIMIT else "UNFAIR"
    yield "  they fall", f"{verdict} (a test that fair coins fail with a chance of {LEVEL:g} at most, at any time)"


def _of_metric(name: str, one: Mapping[str, Any]) -> str:
    alpha, reserve = float(one["alpha"]), float(one.get("reserve") or 0.0)
    of = "what the baseline would have earned" if name == "reward" else f"the baseline's {name!r}"
    if one["kind"] == "floor":
        return f"at least {100 * (1 - alpha):.4g}% of {of}" + (f", less {reserve:g} in all" if reserve else "")
    return f"at most {100 * (1 + alpha):.4g}% of {of}" + (f", plus {reserve:g} in all" if reserve else "")
