"""What late rewards cost: decide and observe with 10,000 rounds pending, against none, in one run."""

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

import surefoot
from bench.timing import HEADER, Ratio, compare, seconds_per_round

PENDING, ROUNDS = 10_000, 2000
MOST = 1.2  # times what it takes without any pending


def playing(pending: int, *, newest_first: bool = False) -> Callable[[], float]:
    """A measurement of SafeLUCB in seconds per round, with so many rounds between a decision and its reward.

    With `newest_first` rewards come as from a stack, two at a time: every one but the last of a pair waits.
    """
    rng = np.random.default_rng(0)
    draws = [np.abs(rng.normal(size=(100, 4))) for _ in range(8)]
    bound = float(max(np.linalg.norm(rows, axis=1).max() for rows in draws))
    policy = surefoot.SafeLUCB(dim=4, alpha=0.1, delta=0.01, noise=0.5, theta_bound=1.0, feature_bound=bound)
    waiting: deque[Any] = deque()
    place = 0

    def play(count: int) -> None:
        nonlocal place
        for _ in range(count):
            place += 1
            waiting.append(policy.decide(draws[place % 8], baseline=3))
            if len(waiting) > pending + newest_first:
                taken = [waiting.popleft() for _ in range(1 + newest_first)]
                for decision in reversed(taken):
                    policy.observe(decision, 0.5)

    play(pending)
    return lambda: seconds_per_round(play, ROUNDS)


def ratios() -> list[Ratio]:
    """None pending over many pending: at least 1 / 1.2."""
    none = playing(0)
    return [
        compare(f"{PENDING:,} pending, oldest first, against none", playing(PENDING), none, bar=1 / MOST, turns=15),
        compare(
            f"{PENDING:,} pending, pairs newest first, against none",
            playing(PENDING, newest_first=True),
            none,
            bar=1 / MOST,
            turns=15,
        ),
    ]


def main() -> bool:
    """Print everything; true where every bar holds."""
    found = ratios()
    print(HEADER)
    for ratio in found:
        print(ratio.row())
    print(f"(the bar says: at most {MOST} times the time)")
    return all(ratio.holds for ratio in found)
