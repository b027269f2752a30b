"""SafeLUCB's gate: is <theta, q> at least what the constraint asks, by everything that is known?

joint   q whole, by the newest set: one piece where the paper's gate has three.  (contrast certificates, Cheng 2026)
ledger  q as the last proved question and the change since; each piece by its own round's set.  (ibid.)
facts   the best split found over the set, the ball and every linear fact; joint if that suffices.

All of them rest on one event, the confidence set's. Only the realised sum is another, and has its own share of delta.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled, compiled_apart, compiled_large
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.linear.radius import (
    ALPHA,
    CONSTRAINT,
    DUAL,
    GATE,
    MISFIT,
    RADIUS_KIND,
    RANGE_HIGH,
    RANGE_LOW,
    RIDGE,
    SUM_DELTA,
    THETA_BOUND,
)
from surefoot.linear.ridge_layout import COUNT, EPS
from surefoot.linear.ridge_layout import HEAD as STATE_HEAD
from surefoot.safety.ascent import FOUND
from surefoot.safety.ascent import REFUTED as SEARCH_REFUTED
from surefoot.safety.constraints import QUESTION, RESERVE, STAGEWISE, ask
from surefoot.safety.facts import Linear
from surefoot.safety.ledger import BASELINE_ROUNDS, LEARNER_ROUNDS
from surefoot.safety.paper_gates import (
    FACTS,
    GUARANTEED,
    RADIUS,
    RECORD_HEAD,
    REQUIRED,
    choose_set,
    part_at,
    pose,
    settle,
    support,
)
from surefoot.safety.proof import Piece, Proof, bounded, summed
from surefoot.safety.safe_state import (
    EARNED_ROUNDS,
    HIGH,
    KEPT_HIGH,
    KEPT_HIGH_CARRY,
    KEPT_LOW,
    KEPT_LOW_CARRY,
    LOW,
    OWED_HIGH,
    OWED_HIGH_CARRY,
    OWED_LOW,
    OWED_LOW_CARRY,
    PAUSE,
    PROVED,
    PROVED_ROUND,
    REFUSED,
    REFUTED,
    WORKING,
    earned_at,
    proved_at,
    realised_level,
    remember_baseline,
    room,
    set_at,
    working_at,
)
from surefoot.safety.split import (
    BASELINE_LEAST,
    BASELINE_MOST,
    GIVEN,
    KEPT_LEAST,
    KEPT_MOST,
    KIND,
    LEVEL,
    NORMAL,
    OWED_LEAST,
    OWED_MOST,
    PLAYED_LEAST,
    PLAYED_MOST,
    PROVED_BEFORE,
    RANGE_LEAST,
    RANGE_MOST,
    REALISED,
    TANGENT,
    WEIGHT,
    rounding_of,
    weigh,
)
from surefoot.safety.split_search import refresh_working, search

JOINT, LEDGER, ALL_FACTS = range(3)
GATES = {"joint": JOINT, "ledger": LEDGER, "facts": ALL_FACTS}
BUDGET = 32  # facts that may join in one search
PATIENCE = 50  # refusals in a row for which one round may pass without a search
CHECK_EVERY = 64  # observations between two checks whether any theta still satisfies all facts

NAMES = {
    KEPT_LEAST: "least reward of the rounds that kept the baseline",
    KEPT_MOST: "largest reward of the rounds that kept the baseline",
    OWED_LEAST: "least reward of the baseline where the learner played",
    OWED_MOST: "largest reward of the baseline where the learner played",
    PLAYED_LEAST: "declared range, over the learner's rounds",
    PLAYED_MOST: "declared range, over the learner's rounds",
    REALISED: "rewards that the learner received",
    PROVED_BEFORE: "proof of an earlier round",
    BASELINE_LEAST: "least reward of the baseline",
    BASELINE_MOST: "largest reward of the baseline",
    RANGE_LEAST: "declared range of an action",
    RANGE_MOST: "declared range of an action",
}


@compiled_large
def gather(
    settings: Vector,
    ledger: Vector,
    memory: Vector,
    displaced: Vector,
    record: Vector,
    given: Matrix,
    levels: Vector,
) -> None:
    """Fill in the facts that change with the ledger; a level of -inf says nothing."""
    d = displaced.size
    for i in range(d):
        given[KEPT_LEAST, i] = record[part_at(1, d) + i]
        given[KEPT_MOST, i] = -record[part_at(1, d) + i]
        given[OWED_LEAST, i] = record[part_at(2, d) + i]
        given[OWED_MOST, i] = -record[part_at(2, d) + i]
        given[PLAYED_LEAST, i] = record[part_at(0, d) + i]
        given[PLAYED_MOST, i] = -record[part_at(0, d) + i]
        given[BASELINE_LEAST, i] = displaced[i]
        given[BASELINE_MOST, i] = -displaced[i]
        given[REALISED, i] = memory[earned_at(d) + i] + memory[earned_at(d) + d + i]
        given[PROVED_BEFORE, i] = memory[proved_at(d) + i]
    for k in range(GIVEN):
        levels[k] = -np.inf
    misfit = settings[MISFIT]
    learner, baseline = ledger[LEARNER_ROUNDS] + 1.0, ledger[BASELINE_ROUNDS]
    if baseline > 0.0:
        levels[KEPT_LEAST] = memory[KEPT_LOW] + memory[KEPT_LOW_CARRY] - misfit * baseline
        levels[KEPT_MOST] = -(memory[KEPT_HIGH] + memory[KEPT_HIGH_CARRY]) - misfit * baseline
    levels[OWED_LEAST] = memory[OWED_LOW] + (memory[OWED_LOW_CARRY] + memory[LOW]) - misfit * learner
    levels[OWED_MOST] = -(memory[OWED_HIGH] + (memory[OWED_HIGH_CARRY] + memory[HIGH])) - misfit * learner
    levels[PLAYED_LEAST] = learner * (settings[RANGE_LOW] - misfit)
    levels[PLAYED_MOST] = learner * (-settings[RANGE_HIGH] - misfit)
    levels[BASELINE_LEAST], levels[BASELINE_MOST] = memory[LOW] - misfit, -memory[HIGH] - misfit
    if settings[SUM_DELTA] > 0.0 and memory[EARNED_ROUNDS] > 0.0:
        levels[REALISED] = realised_level(settings, memory)
    if memory[PROVED_ROUND] > 0.0:
        levels[PROVED_BEFORE] = memory[PROVED]


@compiled_large
def closed_form(
    settings: Vector, flat: Vector, start: int, radius: float, given: Matrix, levels: Vector, record: Vector, d: int
) -> tuple[float, float]:
    """The better of two splits that need no search: w by its floor, or the question as it was last proved by that
    proof, and the rest of q by the set. Leaves it in the record; returns its value and error.
    """
    split = _split_of(record, d)
    question = record[part_at(QUESTION, d) : part_at(QUESTION, d) + d]
    best, error, chosen = -np.inf, 0.0, -1
    for fact in (KEPT_LEAST, PROVED_BEFORE):
        if levels[fact] == -np.inf or (fact == PROVED_BEFORE and settings[GATE] == JOINT):
            continue
        split[0, KIND], split[0, LEVEL] = fact, levels[fact]
        split[0, WEIGHT] = settings[ALPHA] if fact == KEPT_LEAST else 1.0
        for j in range(d):
            split[0, NORMAL + j] = given[fact, j]
        value, size = weigh(flat, start, radius, settings[THETA_BOUND], question, split, 1)
        if value > best:
            best, error, chosen = value, rounding_of(d, 1, size), fact
            copy_row(split, 0, 1)
    if chosen >= 0:
        copy_row(split, 1, 0)
        record[FACTS] = 1.0
    return best, error


@compiled
def copy_row(split: Matrix, source: int, target: int) -> None:
    """Copy one entry of a split onto another."""
    for j in range(split.shape[1]):
        split[target, j] = split[source, j]


@compiled_large
def _split_of(record: Vector, d: int) -> Matrix:
    at = part_at(QUESTION + 1, d)
    return record[at : at + room(d) * (3 + d)].reshape(room(d), 3 + d)


@compiled_large
def _working_of(memory: Vector, d: int) -> Matrix:
    return memory[working_at(d) : working_at(d) + room(d) * (3 + d)].reshape(room(d), 3 + d)


@compiled_large
def improve(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    rows: Matrix,
    displaced: Vector,
    required: float,
    value: float,
    record: Vector,
) -> tuple[float, float]:
    """Look for a better split than q whole, which proves `value`; leaves it in the record. Returns value and error."""
    d = displaced.size
    flat, start, radius = state, STATE_HEAD, record[RADIUS]
    if state[COUNT] == 0.0:
        radius = math.sqrt(settings[RIDGE]) * settings[THETA_BOUND] * (1.0 + 8.0 * EPS)  # M is I / sqrt(ridge)
    elif settings[RADIUS_KIND] == DUAL:
        flat, start = memory, set_at(d)
    given, levels = np.zeros((GIVEN, d)), np.zeros(GIVEN)
    gather(settings, ledger, memory, displaced, record, given, levels)
    if settings[GATE] != ALL_FACTS or memory[PAUSE] > 0.0:
        memory[PAUSE] = max(0.0, memory[PAUSE] - 1.0)
        return closed_form(settings, flat, start, radius, given, levels, record, d)
    question = record[part_at(QUESTION, d) : part_at(QUESTION, d) + d]
    low, high = settings[RANGE_LOW] - settings[MISFIT], settings[RANGE_HIGH] + settings[MISFIT]
    work = _working_of(memory, d)
    count = refresh_working(work, int(memory[WORKING]), given, levels)
    found, size = weigh(flat, start, radius, settings[THETA_BOUND], question, work, count)
    error = rounding_of(d, count, size)
    status = FOUND
    if not found - error > required:  # the weights of the round before no longer suffice
        found, error, count, status = search(
            flat, start, radius, settings[THETA_BOUND], question, rows, low, high, given, levels, work, count,
            # A little beyond what is required, so that the rounding error taken off afterwards does not undo it.
            required + 1e-9 * abs(value - required), BUDGET, np.zeros(d),
        )  # fmt: skip
    if status == SEARCH_REFUTED:
        memory[REFUTED] = 1.0
        return -np.inf, 0.0
    memory[WORKING] = record[FACTS] = count
    split = _split_of(record, d)
    for k in range(count):
        for j in range(3 + d):
            split[k, j] = work[k, j]
    return found, error


@compiled_large
def is_consistent(
    settings: Vector, state: Vector, ledger: Vector, memory: Vector, rows: Matrix, displaced: Vector, record: Vector
) -> bool:
    """Whether some theta satisfies the confidence set, the ball and every linear fact."""
    d = displaced.size
    given, levels = np.zeros((GIVEN, d)), np.zeros(GIVEN)
    gather(settings, ledger, memory, displaced, record, given, levels)
    low, high = settings[RANGE_LOW] - settings[MISFIT], settings[RANGE_HIGH] + settings[MISFIT]
    work = np.zeros((room(d), 3 + d))
    _, _, _, status = search(
        state, STATE_HEAD, record[RADIUS], settings[THETA_BOUND], np.zeros(d), rows, low, high, given, levels, work, 0,
        np.inf, 2 * BUDGET, np.zeros(d),
    )  # fmt: skip
    return bool(status != SEARCH_REFUTED)


@compiled_apart
def safe_judge(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    rows: Matrix,
    proposal: Vector,
    displaced: Vector,
    baseline_reward: float,
    record: Vector,
    d: int,
) -> bool:
    """Ask whether the proposal keeps the constraint for every possible theta."""
    pose(state, ledger, proposal, displaced, record, d)
    required = ask(settings, ledger, memory, proposal, displaced, record, d)
    seen = int(state[COUNT])
    is_due = seen > 0 and (seen % CHECK_EVERY == 0 or seen & (seen - 1) == 0)
    if is_due and not is_consistent(settings, state, ledger, memory, rows, displaced, record):
        memory[REFUTED] = 1.0
    at = part_at(QUESTION, d)
    choose_set(settings, state, memory, record, at, record, d)
    record[FACTS] = 0.0
    if memory[REFUTED] > 0.0:
        record[GUARANTEED], record[REQUIRED] = -np.inf, required
        return False
    mean, spread = support(settings, state, memory, record[RADIUS], record, at, d)
    value = mean - spread
    if settle(settings, record, value, required, abs(mean) + spread, d):
        return True
    is_searching = settings[GATE] == ALL_FACTS and memory[PAUSE] == 0.0
    found, error = improve(settings, state, ledger, memory, rows, displaced, required, value, record)
    if memory[REFUTED] > 0.0:
        record[GUARANTEED] = -np.inf
        return False
    is_safe = False
    if found - error > value:
        is_safe = settle(settings, record, found - error, required, 0.0, d)  # `error` has covered the sizes
    else:
        record[FACTS] = 0.0
    # After many refusals in a row the next answer is likely the same: waiting a fiftieth longer costs a fiftieth more.
    if is_safe:
        memory[REFUSED] = memory[PAUSE] = 0.0
    elif is_searching:
        memory[REFUSED] += 1.0
        memory[PAUSE] = memory[REFUSED] // PATIENCE
    return is_safe


@compiled_apart
def safe_note(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    displaced: Vector,
    is_learner: bool,
    record: Vector,
    d: int,
) -> None:
    """Remember what is known of this round's baseline, and what has been proved once the round is played."""
    is_first = ledger[LEARNER_ROUNDS] + ledger[BASELINE_ROUNDS] == 1.0
    remember_baseline(memory, displaced, is_first, is_learner, d)
    # Stagewise and realised path ask other questions, which do not carry over to the next round.
    if settings[CONSTRAINT] > RESERVE or settings[CONSTRAINT] == STAGEWISE or memory[REFUTED] > 0.0:
        return
    at, question = proved_at(d), part_at(QUESTION, d)
    if is_learner:
        for i in range(d):
            memory[at + i] = record[question + i]
        memory[PROVED] = record[GUARANTEED]
    else:
        mean, spread = support(settings, state, memory, record[RADIUS], displaced, 0, d)
        size = 0.0
        for i in range(d):
            memory[at + i] += settings[ALPHA] * displaced[i]
            size += abs(memory[at + i]) + abs(displaced[i])
        # The proof carried on grows by what this baseline round earns at least (docs, "Gates").
        gain = settings[ALPHA] * max(mean - spread, memory[LOW] - settings[MISFIT])
        memory[PROVED] += gain - 8.0 * EPS * (settings[THETA_BOUND] * size + abs(memory[PROVED]) + abs(mean) + spread)
    memory[PROVED_ROUND] = ledger[LEARNER_ROUNDS] + ledger[BASELINE_ROUNDS]


@compiled_apart
def split_up(record: Vector, vectors: Matrix, d: int) -> None:
    """What each fact carries of the question, by its weight; before them the rest, and what the tangents carry."""
    question = part_at(QUESTION, d)
    for i in range(d):
        vectors[0, i], vectors[1, i] = record[question + i], 0.0
    fact = question + d
    for k in range(2, 2 + int(record[FACTS])):
        weight, is_tangent = record[fact + WEIGHT], record[fact + KIND] == TANGENT
        for i in range(d):
            vectors[k, i] = weight * record[fact + NORMAL + i] if weight > 0.0 else 0.0
            vectors[0, i] -= vectors[k, i]
            if is_tangent:
                vectors[1, i] += vectors[k, i]
        fact += NORMAL + d


def safe_proof(settings: Vector, record: Vector, known: Ball | Ellipsoid, dim: int) -> Proof:
    """The split that the gate found: linear facts by their weights, tangents by the ball, the rest by the set."""
    at, width = RECORD_HEAD + QUESTION * dim, NORMAL + dim
    question, count = record[at : at + dim].copy(), int(record[FACTS])
    if count == 0:  # the usual case, kept fast since a service writes a proof for every decision
        return summed(question, [Piece(known, question, known.lower(question))])
    vectors, ball = np.empty((2 + count, dim)), Ball(float(settings[THETA_BOUND]))
    split_up.dispatcher(record, vectors, dim)
    pieces = bounded([(known, vectors[0]), (ball, vectors[1])])
    facts = record[at + dim : at + dim + count * width].reshape(count, width)
    for row, (kind, level, weight) in enumerate(facts[:, :NORMAL].tolist()):
        if weight > 0.0 and kind != TANGENT:
            fact = Linear(facts[row, NORMAL:].copy(), level, NAMES[int(kind)])
            pieces.append(Piece(fact, vectors[2 + row], fact.times(weight)))
    return summed(question, pieces, ball)


def new_safe_record(dim: int) -> Vector:
    """An empty record with room for a question and its split."""
    return np.zeros(RECORD_HEAD + 5 * dim + room.function(dim) * (3 + dim))
