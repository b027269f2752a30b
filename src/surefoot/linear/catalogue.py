"""The scores of a catalogue, rows that stay the same from round to round: kept up to date instead of computed again.

In the long run few rows can still be best. Where theta moves by e_s V_s^-1 x_s, the mean of row i moves by at most
|e_s| ||x_s||_{V_s^-1} times its width, and its width never grows. So with all widths taken at one moment,

    UCB_i  <=  mean_i + (beta + travel) width_i,      travel = sum of |e_s| ||x_s||_{V_s^-1} since then,

and rows for which this stays below `bar` for every travel up to `reach` - beta are out of the contest until a bound
breaks. Only the others, the short list, follow each observation. Then all are scored again and a new list is made.
Without a list, its length being 0, all rows follow.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart
from surefoot.errors import StateError
from surefoot.linear.ridge import REFRESH_EVERY, absorb
from surefoot.linear.ridge_layout import COUNT, EPS, step_at
from surefoot.linear.scores import LIST, MEANS, SCRATCH, SQUARES, new_scores, optimistic, propose_new, score_rows

# The row LIST of the scores: how many rows are on the short list, the bounds that hold while it does, and the rows.
LISTED, TRAVEL, REACH, BAR, FIRST = range(5)
LIST_FROM = 48  # actions from which a short list pays, and it may hold at most an eighth of them
LIST_SHARE = 8
LIST_EVERY = 16  # observations between two attempts to make one
TRAVEL_ROOM, FALL_ROOM = 0.15, 0.1  # how far theta may move and the best UCB fall meanwhile, in widths times beta
GUARD = 1e-6  # relative rounding errors stay far below


@compiled
def propose(
    settings: Vector, state: Vector, rows: Matrix, cached: bool, scores: Matrix, beta: float
) -> tuple[int, float]:
    """The optimistic row and its UCB; for row r that breaks the bound D or is not finite, (-1 - r, 0).

    With `cached`, rows are a catalogue that was checked before and whose scores are up to date.
    """
    if not cached:
        return propose_new(settings, state, rows, scores, beta)
    is_due = int(state[COUNT]) % LIST_EVERY == 0
    if scores[LIST, LISTED] > 0.0:
        best, highest = best_listed(scores, beta)
        if best >= 0:
            return best, highest
        score_rows(state, rows, scores)
        is_due = True
    best, highest = optimistic(settings, state, scores, beta)
    if is_due and state[COUNT] > 0.0 and rows.shape[0] >= LIST_FROM:
        make_list(scores, beta, best, highest)
    return best, highest


@compiled
def best_listed(scores: Matrix, beta: float) -> tuple[int, float]:
    """The best row of the short list and its UCB; row -1 where one that is not on it might be better."""
    best, highest = -1, scores[LIST, BAR]
    # Beyond the reach a row that is not listed may have overtaken: -1 asks for all scores again.
    if beta + scores[LIST, TRAVEL] <= scores[LIST, REACH]:
        for k in range(FIRST, FIRST + int(scores[LIST, LISTED])):
            i = int(scores[LIST, k])
            upper = scores[MEANS, i] + beta * math.sqrt(scores[SQUARES, i])
            if upper > highest:
                best, highest = i, upper
    return best, highest


@compiled_apart
def make_list(scores: Matrix, beta: float, best: int, highest: float) -> None:
    """List the rows that might become best while theta moves a little; if there are too many, list none."""
    reach = (1.0 + TRAVEL_ROOM) * beta
    bar = highest - FALL_ROOM * beta * math.sqrt(scores[SQUARES, best])
    most, listed = scores.shape[1] // LIST_SHARE, 0
    for i in range(scores.shape[1]):
        spread = reach * math.sqrt(scores[SQUARES, i])
        if scores[MEANS, i] + spread + GUARD * (abs(scores[MEANS, i]) + spread) >= bar:
            # LISTED is 0 whenever a list is made, so returning here leaves none.
            if listed == most:
                return
            scores[LIST, FIRST + listed] = i
            listed += 1
    scores[LIST, LISTED], scores[LIST, TRAVEL], scores[LIST, REACH], scores[LIST, BAR] = listed, 0.0, reach, bar


@compiled
def learn_catalogue(state: Vector, x: Vector, reward: float, rows: Matrix, columns: Matrix, scores: Matrix) -> None:
    """Learn one observation, and update the scores of the catalogue.

    They are computed again at the first observation, where the ball becomes an ellipsoid, then whenever the count has
    doubled, and in the long run every REFRESH_EVERY observations.
    """
    gain, error = absorb(state, x, reward)
    count = int(state[COUNT])
    if count % REFRESH_EVERY == 0 or count & (count - 1) == 0:
        score_rows(state, rows, scores)
    # Rows off the list fall behind; `propose` scores all again before it looks at them.
    elif scores[LIST, LISTED] > 0.0:
        follow_listed(state, rows, gain, error, scores)
        # 1 / gain - 1 is the leverage; rounding alone could take it below 0.
        scores[LIST, TRAVEL] += abs(error) * math.sqrt(1.0 / gain - 1.0 + 4.0 * EPS)
    else:
        follow(state, columns, gain, error, scores)


@compiled
def follow(state: Vector, columns: Matrix, gain: float, error: float, scores: Matrix) -> None:
    """Update the scores of all rows by one observation: (gain, error) as `absorb` returned."""
    step = step_at(columns.shape[0])
    if columns.shape[0] == 4:  # the paper's dimension, in one pass and in the same order
        a, b, c, d = state[step], state[step + 1], state[step + 2], state[step + 3]
        for i in range(columns.shape[1]):
            scores[SCRATCH, i] = columns[0, i] * a + columns[1, i] * b + columns[2, i] * c + columns[3, i] * d
    else:
        for i in range(columns.shape[1]):
            scores[SCRATCH, i] = columns[0, i] * state[step]
        for j in range(1, columns.shape[0]):
            weight = state[step + j]
            for i in range(columns.shape[1]):
                scores[SCRATCH, i] += columns[j, i] * weight
    for i in range(columns.shape[1]):
        move(scores, i, scores[SCRATCH, i], gain, error)


@compiled
def follow_listed(state: Vector, rows: Matrix, gain: float, error: float, scores: Matrix) -> None:
    """The same for the rows of the short list alone."""
    step, last = step_at(rows.shape[1]), FIRST + int(scores[LIST, LISTED])
    if rows.shape[1] == 4:
        a, b, c, d = state[step], state[step + 1], state[step + 2], state[step + 3]
        for k in range(FIRST, last):
            i = int(scores[LIST, k])
            move(scores, i, rows[i, 0] * a + rows[i, 1] * b + rows[i, 2] * c + rows[i, 3] * d, gain, error)
        return
    for k in range(FIRST, last):
        i = int(scores[LIST, k])
        along = rows[i, 0] * state[step]
        for j in range(1, rows.shape[1]):
            along += rows[i, j] * state[step + j]
        move(scores, i, along, gain, error)


@compiled
def move(scores: Matrix, i: int, along: float, gain: float, error: float) -> None:
    """Update the scores of one row, given <V^-1 x, phi> for the new observation x."""
    scores[MEANS, i] += error * along
    scores[SQUARES, i] = max(0.0, scores[SQUARES, i] - gain * along * along)


def restored_scores(saved: Matrix, actions: int) -> Matrix:
    """Saved scores, if they can be those of a catalogue of so many actions: compiled code does not check them."""
    scores = new_scores(actions)
    if saved.shape not in (scores.shape, scores[:LIST].shape):  # older states have no short list
        raise StateError(f"`catalogue_scores` must have shape {scores.shape}, but got {saved.shape}.")
    scores[: len(saved)] = saved
    listed = scores[LIST, LISTED]
    is_length = 0 <= listed <= actions // LIST_SHARE and listed == int(listed)
    rows = scores[LIST, FIRST : FIRST + int(listed)] if is_length else scores[LIST, :0]
    if not (is_length and (rows >= 0).all() and (rows < actions).all() and (rows == np.floor(rows)).all()):
        raise StateError("`catalogue_scores` must end with a short list of rows, but it does not.")
    return scores
