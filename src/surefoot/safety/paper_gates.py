"""The paper's gates: may the optimistic action be played? Each turns the ledger and that action into a verdict.

The question behind both is <theta, q> >= 0 for q = z + phi_a + alpha w - (1 - alpha)(v + phi_b): after this round the
learner has earned at least (1 - alpha) of what the baseline would have. The paper's gates split it in their own
ways. A gate passes only if its margin exceeds a bound on its own rounding error, and never changes the ledger.

What a gate saw goes into a flat `record`: the numbers named below, then four rows: z + phi_a, w, v + phi_b, and the
features that were played.
"""

import math

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled
from surefoot.linear.dual import choose_dual
from surefoot.linear.ellipsoid import UNKNOWN, Ball, Ellipsoid, ball_spread, ellipsoid_support, guarded_radius
from surefoot.linear.radius import ALPHA, DUAL, FEATURE_BOUND, RADIUS_KIND, REWARD_FLOOR, THETA_BOUND
from surefoot.linear.ridge_layout import COUNT, EPS
from surefoot.linear.ridge_layout import HEAD as STATE_HEAD
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.ledger import (
    BASELINE_ROUNDS,
    CONSERVED_CARRY,
    CONSERVED_REWARD,
    DISPLACED_CARRY,
    DISPLACED_REWARD,
    book_baseline,
    book_learner,
)
from surefoot.safety.ledger import HEAD as LEDGER_HEAD
from surefoot.safety.proof import Proof, assemble
from surefoot.safety.safe_state import REFUTED, set_at

GUARANTEED, REQUIRED, OPTIMISM, BETA, RADIUS, KEPT, OWED, FACTS, RECORD_HEAD = range(9)


@compiled
def part_at(part: int, d: int) -> int:
    """Where a part of a record starts. 0: z + phi_a, 1: w, 2: v + phi_b, 3: the features that were played."""
    return RECORD_HEAD + part * d


def vectors_of(record: Vector, dim: int) -> Matrix:
    """The four parts, as rows."""
    return record[RECORD_HEAD : RECORD_HEAD + 4 * dim].reshape(4, dim)


@compiled
def pose(state: Vector, ledger: Vector, proposal: Vector, displaced: Vector, record: Vector, d: int) -> None:
    """Write the question's three vectors, and widen the radius beta of the set by what rounding may have done."""
    for i in range(d):
        at, to = LEDGER_HEAD + i, RECORD_HEAD + i
        # Carry and new term first: both are small beside the sum.
        record[to] = ledger[at] + (ledger[at + d] + proposal[i])
        record[to + d] = ledger[at + 4 * d] + ledger[at + 5 * d]
        record[to + 2 * d] = ledger[at + 2 * d] + (ledger[at + 3 * d] + displaced[i])
    record[RADIUS] = guarded_radius(state, record[BETA])


@compiled
def choose_set(settings: Vector, state: Vector, memory: Vector, q: Vector, at: int, record: Vector, d: int) -> None:
    """With the `dual` radius, choose the set that bounds <theta, q> best; every other radius has one set only."""
    if settings[RADIUS_KIND] == DUAL and state[COUNT] > 0.0:
        radius = choose_dual(settings, state, q, at, d, memory, set_at(d))
        if radius < 0.0:
            memory[REFUTED] = 1.0
        record[RADIUS] = radius if radius >= 0.0 else UNKNOWN


@compiled
def support(
    settings: Vector, state: Vector, memory: Vector, radius: float, q: Vector, at: int, d: int
) -> tuple[float, float]:
    """Mean and spread of <theta, q> over the set in use: the ball while there are no data, then the ellipsoid."""
    if state[COUNT] == 0.0:
        return 0.0, ball_spread(settings[THETA_BOUND], q, at, d)
    if settings[RADIUS_KIND] == DUAL:
        return ellipsoid_support(memory, set_at(d), radius, q, at, d)
    return ellipsoid_support(state, STATE_HEAD, radius, q, at, d)


@compiled
def settle(settings: Vector, record: Vector, guaranteed: float, required: float, size: float, d: int) -> bool:
    """Subtract the rounding error of the sums, and judge."""
    total = 0.0
    for i in range(3 * d):
        total += record[RECORD_HEAD + i] * record[RECORD_HEAD + i]
    length = math.sqrt(total)
    rounding = 4.0 * EPS * (settings[THETA_BOUND] * (2.0 * length + settings[FEATURE_BOUND]) + 2.0 * size)
    record[GUARANTEED] = guaranteed - rounding
    record[REQUIRED] = required
    return bool(record[GUARANTEED] >= required)


@compiled
def known_gate(
    settings: Vector,
    state: Vector,
    ledger: Vector,
    memory: Vector,
    baseline_reward: float,
    record: Vector,
    d: int,
) -> bool:
    """LCB(z + phi_a) + sum over S^c of r_b >= (1 - alpha) sum over all rounds of r_b.  (paper, Algorithm 1)"""
    choose_set(settings, state, memory, record, part_at(0, d), record, d)
    mean, spread = support(settings, state, memory, record[RADIUS], record, part_at(0, d), d)
    record[KEPT] = ledger[CONSERVED_REWARD] + ledger[CONSERVED_CARRY]
    record[OWED] = ledger[DISPLACED_REWARD] + (ledger[DISPLACED_CARRY] + baseline_reward)
    required = (1.0 - settings[ALPHA]) * (record[KEPT] + record[OWED])
    size = abs(mean) + spread + record[KEPT] + record[OWED]
    return settle(settings, record, (mean - spread) + record[KEPT], required, size, d)


@compiled
def unknown_verdict(
    settings: Vector,
    ledger: Vector,
    lower_played: float,
    lower_conserved: float,
    upper_displaced: float,
    record: Vector,
    d: int,
) -> bool:
    """LCB(z + phi_a) + alpha max{LCB(w), n r_l} >= (1 - alpha) UCB(v + phi_b).  (paper, Algorithm 2)"""
    floor = ledger[BASELINE_ROUNDS] * settings[REWARD_FLOOR]
    # Here these two are the bounds of w, from which `unknown_proof` takes the better one.
    record[KEPT] = floor
    record[OWED] = lower_conserved
    guaranteed = lower_played + settings[ALPHA] * max(lower_conserved, floor)
    required = (1.0 - settings[ALPHA]) * upper_displaced
    size = abs(lower_played) + abs(lower_conserved) + floor + abs(upper_displaced)
    return settle(settings, record, guaranteed, required, size, d)


@compiled
def unknown_gate(settings: Vector, state: Vector, ledger: Vector, memory: Vector, record: Vector, d: int) -> bool:
    """Algorithm 2's condition over one set, the ball or the newest ellipsoid."""
    # One set for all three pieces, chosen for the first: any choice is valid (docs, "Radius dual").
    choose_set(settings, state, memory, record, part_at(0, d), record, d)
    radius = record[RADIUS]
    mean, spread = support(settings, state, memory, radius, record, part_at(0, d), d)
    mean_kept, spread_kept = support(settings, state, memory, radius, record, part_at(1, d), d)
    mean_owed, spread_owed = support(settings, state, memory, radius, record, part_at(2, d), d)
    return unknown_verdict(settings, ledger, mean - spread, mean_kept - spread_kept, mean_owed + spread_owed, record, d)


@compiled
def book(
    ledger: Vector,
    proposal: Vector,
    displaced: Vector,
    baseline_reward: float,
    is_learner: bool,
    record: Vector,
    d: int,
) -> None:
    """Count the round: z and v if the learner plays, w if the baseline does.  (paper, Algorithms 1 and 2)"""
    if is_learner:
        book_learner(ledger, proposal, displaced, baseline_reward, d)
    else:
        book_baseline(ledger, displaced, baseline_reward, d)
    for i in range(d):
        record[RECORD_HEAD + 3 * d + i] = proposal[i] if is_learner else displaced[i]


def question_of(settings: Vector, record: Vector, dim: int) -> Vector:
    """q = z + phi_a + alpha w - (1 - alpha)(v + phi_b).  (docs/mathematics.md, "The promise and the question")"""
    played, conserved, displaced, _ = vectors_of(record, dim)
    question: Vector = played + settings[ALPHA] * conserved - (1 - settings[ALPHA]) * displaced
    return question


def known_proof(settings: Vector, record: Vector, known: Ball | Ellipsoid, dim: int) -> Proof:
    """Algorithm 1 as a split: the learner's rounds by the confidence set, the baseline's by their known rewards."""
    played, conserved, displaced, _ = vectors_of(record, dim)
    kept = Linear(conserved, float(record[KEPT]), "known reward of the rounds that kept the baseline")
    owed = Linear(-displaced, -float(record[OWED]), "known reward of the baseline where the learner played")
    parts = [(known, played), (kept, settings[ALPHA] * conserved), (owed, (1 - settings[ALPHA]) * -displaced)]
    return assemble(question_of(settings, record, dim), parts, Ball(float(settings[THETA_BOUND])))


def unknown_proof(settings: Vector, record: Vector, known: Ball | Ellipsoid, dim: int) -> Proof:
    """Algorithm 2 as a split: three pieces, each by the same set; the second by the floor where that is better."""
    played, conserved, displaced, _ = vectors_of(record, dim)
    kept: Fact = known
    if record[KEPT] >= record[OWED]:
        kept = Linear(conserved, float(record[KEPT]), "floor of the baseline's reward")
    parts = [(known, played), (kept, settings[ALPHA] * conserved), (known, (1 - settings[ALPHA]) * -displaced)]
    return assemble(question_of(settings, record, dim), parts, Ball(float(settings[THETA_BOUND])))


def new_record(dim: int) -> Vector:
    """An empty record."""
    return np.zeros(RECORD_HEAD + 4 * dim)
