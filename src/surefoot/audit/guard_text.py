"""What a guard promised, in plain words: of the mean with its coins averaged, or of the actions played."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from surefoot.audit.audit_counts import AuditCounts
from surefoot.audit.coins import LEVEL, LIMIT, CoinFairness
from surefoot.audit.guard_declarations import plain_metrics

LISTED = 10
CANNOT_SHOW = (
    "That rewards were true when they came in. The audit checks what was done with them.",
    "That rewards which were never sent in keep to their declared bounds; those that were, do.",
    "That nobody who had a secret foresaw its coins, or dropped a request whose coin did not suit. Each coin follows "
    "from a secret that the chain commits to before, and is computed again once that is revealed; every process begins "
    "blocks of its own, but many blocks for few coins need a reason. The test of fairness finds coins that lean, "
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


def guard_verdict(settings: Mapping[str, Any], tally: AuditCounts) -> str:
    """That it was kept, in a sentence."""
    word = "of the actions played" if settings.get("promise", "mean") == "played" else "of the mean, coins averaged"
    hidden = tally.coins_hidden.total()
    open_ = f" Of {hidden:,} coins it is not revealed yet what they follow from." if hidden else ""
    return (
        f"Yes, the promise {word} was kept. In each of {tally.decisions:,} rounds the banks, added up again from the "
        f"raw events, could pay for the share that the proposal had, at its worst; the coins look fair, and chose the "
        f"learner {tally.learner:,} times.{open_}"
    )


def guard_rows(coins: CoinFairness, tally: AuditCounts) -> Iterator[tuple[str, str]]:
    """What was counted of coins and units, line by line."""
    yield "visits of units that were open", f"{tally.visits:,}"
    yield "coins drawn", f"{coins.coins:,}"
    yield "  for the learner", f"{coins.learner:,}, where {coins.expected:,.1f} were to be expected"
    verdict = "as fair ones do" if coins.most < LIMIT else "UNFAIR"
    yield "  they fall", f"{verdict} (a test that fair coins fail with a chance of {LEVEL:g} at most, at any time)"
    if tally.coin_blocks:
        text = f"{tally.coins_recomputed:,}; there are {tally.coin_blocks:,} blocks, each committed to before its coins"
        yield "  computed again from their secrets", text
        hidden = tally.coins_hidden
        where = f", of the blocks that begin with event {listed(sorted(hidden))}" if hidden else ""
        yield "coins not yet revealed", f"{hidden.total():,}{where}"


def listed(numbers: Sequence[int]) -> str:
    """The first of some numbers, and how many more there are."""
    more = f" and {len(numbers) - LISTED:,} more" if len(numbers) > LISTED else ""
    return ", ".join(f"{number:,}" for number in numbers[:LISTED]) + more


def _of_metric(name: str, one: Mapping[str, Any]) -> str:
    alpha, reserve = float(one["alpha"]), float(one.get("reserve") or 0.0)
    of = "what the baseline would have earned" if name == "reward" else f"the baseline's {name!r}"
    if one["kind"] == "floor":
        return f"at least {100 * (1 - alpha):.4g}% of {of}" + (f", less {reserve:g} in all" if reserve else "")
    return f"at most {100 * (1 + alpha):.4g}% of {of}" + (f", plus {reserve:g} in all" if reserve else "")
