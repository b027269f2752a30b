"""Which action to propose: the one with the largest upper bound, by the confidence set alone or by everything known.

The facts that prove lower bounds give upper ones, too: UCB(phi) = -lower(-phi). Rows are tried in the order of the
set's own bound, which is never lower, until no other can win.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_large
from surefoot.linear.catalogue import LISTED, propose
from surefoot.linear.ellipsoid import guarded_radius
from surefoot.linear.radius import MISFIT, OPTIMISM_KIND, RANGE_HIGH, RANGE_LOW, THETA_BOUND
from surefoot.linear.ridge_layout import COUNT
from surefoot.linear.ridge_layout import HEAD as STATE_HEAD
from surefoot.linear.scores import LIST, score_rows
from surefoot.safety.ascent import REFUTED
from surefoot.safety.paper_gates import BETA
from surefoot.safety.safe_state import room
from surefoot.safety.split_search import search

SET, FACTS = range(2)
OPTIMISMS = {"set": SET, "facts": FACTS}
BUDGET = 16  # facts that may join in the search for one action's bound


@compiled
def most_open(uppers: Vector, is_open: Vector) -> int:
    """The row with the largest bound among those not looked at yet, the first one on a tie."""
    best = -1
    for i in range(uppers.size):
        if is_open[i] > 0.0 and (best < 0 or uppers[i] > uppers[best]):
            best = i
    return best


@compiled_large
def most_promising(
    settings: Vector, state: Vector, memory: Vector, rows: Matrix, scores: Matrix, beta: float
) -> tuple[int, float]:
    """The row whose mean may be largest over all facts, the first one on a tie, and that bound."""
    n, d = rows.shape
    radius = guarded_radius(state, beta)
    uppers, is_open = np.zeros(n), np.ones(n)
    for i in range(n):
        uppers[i] = scores[0, i] + radius * math.sqrt(scores[1, i])
    low, high = settings[RANGE_LOW] - settings[MISFIT], settings[RANGE_HIGH] + settings[MISFIT]
    given, levels, negative = np.zeros((0, d)), np.zeros(0), np.zeros(d)
    best, highest = 0, -np.inf
    for place in range(n):
        i = most_open(uppers, is_open)
        is_open[i] = 0.0
        cheap = min(uppers[i], settings[RANGE_HIGH])
        best = i if place == 0 else best  # some row must be returned, even if the facts are refuted at once
        if cheap <= highest:
            break
        for j in range(d):
            negative[j] = -rows[i, j]
        work = np.zeros((room(d), 3 + d))
        value, error, _, status = search(
            state, STATE_HEAD, radius, settings[THETA_BOUND], negative, rows, low, high, given, levels, work, 0,
            np.inf, BUDGET, np.zeros(d),
        )  # fmt: skip
        if status == REFUTED:
            return best, cheap
        upper = min(cheap, -(value - error))
        if upper > highest:
            best, highest = i, upper
    return best, highest


@compiled
def safe_choice(
    settings: Vector, state: Vector, memory: Vector, rows: Matrix, cached: bool, scores: Matrix, record: Vector
) -> tuple[int, float]:
    """SafeLUCB's proposal."""
    action, upper = propose(settings, state, rows, cached, scores, record[BETA])
    if action >= 0 and settings[OPTIMISM_KIND] == FACTS and state[COUNT] > 0.0:
        # Rows off a short list have old scores, and a screened choice fills in none.
        if not cached or scores[LIST, LISTED] > 0.0:
            score_rows(state, rows, scores)
        return most_promising(settings, state, memory, rows, scores, record[BETA])
    return action, upper
