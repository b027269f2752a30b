"""Which action promises the most: by the confidence set alone, or by everything that is known.

The same facts that prove lower bounds give upper ones, UCB(phi) = -lower(-phi). Rows are looked at in the order of the
set's own bound, which is never lower, until none can still win.
"""

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_large
from surefoot.linear.ellipsoid import guarded_radius
from surefoot.linear.radius import MISFIT, OPTIMISM_KIND, RANGE_HIGH, RANGE_LOW, THETA_BOUND
from surefoot.linear.ridge import COUNT
from surefoot.linear.ridge import HEAD as STATE_HEAD
from surefoot.linear.scores import propose, score_rows
from surefoot.safety.gates import BETA
from surefoot.safety.memory import room
from surefoot.safety.search import GIVEN, REFUTED, search

SET, FACTS = range(2)
OPTIMISMS = {"set": SET, "facts": FACTS}
BUDGET = 16  # facts that may join in the search for one action's bound


@compiled_large
def most_promising(
    settings: Vector, state: Vector, memory: Vector, rows: Matrix, scores: Matrix, beta: float
) -> tuple[int, float]:
    """The row whose mean may be largest over all facts, the first one on a tie, and that bound."""
    n, d = rows.shape
    radius = guarded_radius(state, beta)
    cheap = np.minimum(scores[0] + radius * np.sqrt(scores[1]), settings[RANGE_HIGH])
    order = np.argsort(-(scores[0] + radius * np.sqrt(scores[1])), kind="mergesort")
    low, high = settings[RANGE_LOW] - settings[MISFIT], settings[RANGE_HIGH] + settings[MISFIT]
    given, levels = np.zeros((GIVEN, d)), np.full(GIVEN, -np.inf)
    best, highest = order[0], -np.inf
    for place in range(n):
        i = order[place]
        if cheap[i] <= highest:
            break
        work = np.zeros((room(d), 3 + d))
        value, error, _, status = search(
            state, STATE_HEAD, radius, settings[THETA_BOUND], -rows[i], rows, low, high, given, levels, work, 0,
            np.inf, BUDGET, np.zeros(d),
        )  # fmt: skip
        if status == REFUTED:
            return order[0], cheap[order[0]]
        upper = min(cheap[i], -(value - error))
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
        if not cached:
            score_rows(state, rows, scores)
        return most_promising(settings, state, memory, rows, scores, record[BETA])
    return action, upper
