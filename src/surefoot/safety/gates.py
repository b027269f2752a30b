"""Gates: may the optimistic action be played? Each turns the ledger and that action into numbers and a verdict.

The question behind both is <theta, q> >= 0 for q = z + phi_a + alpha w - (1 - alpha)(v + phi_b): after this round the
learner has earned at least (1 - alpha) of what the baseline would have. The paper's gates split it in their own
ways. A gate passes only if its margin exceeds a bound on its own rounding error, and never changes the ledger.

What a gate saw goes into a flat `record`: the numbers named below, then four rows: z + phi_a, w, v + phi_b, and the
features that were played.
"""

import numpy as np

from surefoot.arrays import Matrix, Vector
from surefoot.compiled import compiled
from surefoot.linear.ellipsoid import Ball, Ellipsoid, guarded_radius, support
from surefoot.linear.radius import ALPHA, FEATURE_BOUND, REWARD_FLOOR, THETA_BOUND
from surefoot.linear.ridge import EPS, norm
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.ledger import (
    BASELINE_ROUNDS,
    CONSERVED_CARRY,
    CONSERVED_REWARD,
    DISPLACED_CARRY,
    DISPLACED_REWARD,
)
from surefoot.safety.ledger import HEAD as LEDGER_HEAD
from surefoot.safety.proof import Proof, prove

GUARANTEED, REQUIRED, OPTIMISM, BETA, RADIUS, KEPT, OWED, RECORD_HEAD = range(8)


@compiled
def part_of(record: Vector, part: int) -> Vector:
    """0: z + phi_a, 1: w, 2: v + phi_b, 3: the features that were played."""
    d = (record.size - RECORD_HEAD) // 4
    return record[RECORD_HEAD + part * d : RECORD_HEAD + (part + 1) * d]


@compiled
def note_played(record: Vector, features: Vector) -> None:
    """Write down the features that are played."""
    for i in range(features.size):
        record[record.size - features.size + i] = features[i]


def vectors_of(record: Vector) -> Matrix:
    """All four parts, as rows."""
    return record[RECORD_HEAD:].reshape(4, -1)


@compiled
def pose(settings: Vector, state: Vector, ledger: Vector, proposal: Vector, displaced: Vector, record: Vector) -> None:
    """Write the question's three vectors, and widen the radius beta of the set by what rounding may have done."""
    d = proposal.size
    for i in range(d):
        at, to = LEDGER_HEAD + i, RECORD_HEAD + i
        record[to] = ledger[at] + (ledger[at + d] + proposal[i])
        record[to + d] = ledger[at + 4 * d] + ledger[at + 5 * d]
        record[to + 2 * d] = ledger[at + 2 * d] + (ledger[at + 3 * d] + displaced[i])
    record[RADIUS] = guarded_radius(state, record[BETA])


@compiled
def settle(settings: Vector, record: Vector, guaranteed: float, required: float, size: float) -> bool:
    """Give away the rounding error of the sums, and judge."""
    d = (record.size - RECORD_HEAD) // 4
    length = norm(record[RECORD_HEAD : RECORD_HEAD + 3 * d])
    rounding = 4.0 * EPS * (settings[THETA_BOUND] * (2.0 * length + settings[FEATURE_BOUND]) + 2.0 * size)
    record[GUARANTEED] = guaranteed - rounding
    record[REQUIRED] = required
    return bool(record[GUARANTEED] >= required)


@compiled
def known_gate(settings: Vector, state: Vector, ledger: Vector, baseline_reward: float, record: Vector) -> bool:
    """LCB(z + phi_a) + sum over S^c of r_b >= (1 - alpha) sum over all rounds of r_b.  (paper, Algorithm 1)"""
    mean, spread = support(settings, state, record[RADIUS], part_of(record, 0))
    record[KEPT] = ledger[CONSERVED_REWARD] + ledger[CONSERVED_CARRY]
    record[OWED] = ledger[DISPLACED_REWARD] + (ledger[DISPLACED_CARRY] + baseline_reward)
    required = (1.0 - settings[ALPHA]) * (record[KEPT] + record[OWED])
    size = abs(mean) + spread + record[KEPT] + record[OWED]
    return settle(settings, record, (mean - spread) + record[KEPT], required, size)


@compiled
def unknown_verdict(
    settings: Vector,
    ledger: Vector,
    lower_played: float,
    lower_conserved: float,
    upper_displaced: float,
    record: Vector,
) -> bool:
    """LCB(z + phi_a) + alpha max{LCB(w), n r_l} >= (1 - alpha) UCB(v + phi_b).  (paper, Algorithm 2)"""
    floor = ledger[BASELINE_ROUNDS] * settings[REWARD_FLOOR]
    record[KEPT] = floor
    record[OWED] = lower_conserved
    guaranteed = lower_played + settings[ALPHA] * max(lower_conserved, floor)
    required = (1.0 - settings[ALPHA]) * upper_displaced
    size = abs(lower_played) + abs(lower_conserved) + floor + abs(upper_displaced)
    return settle(settings, record, guaranteed, required, size)


@compiled
def unknown_gate(settings: Vector, state: Vector, ledger: Vector, record: Vector) -> bool:
    """Algorithm 2's condition over one set, the ball or the newest ellipsoid."""
    mean, spread = support(settings, state, record[RADIUS], part_of(record, 0))
    mean_kept, spread_kept = support(settings, state, record[RADIUS], part_of(record, 1))
    mean_owed, spread_owed = support(settings, state, record[RADIUS], part_of(record, 2))
    return unknown_verdict(settings, ledger, mean - spread, mean_kept - spread_kept, mean_owed + spread_owed, record)


def question_of(settings: Vector, record: Vector) -> Vector:
    """q = z + phi_a + alpha w - (1 - alpha)(v + phi_b).  (MATH: facts and splits)"""
    played, conserved, displaced, _ = vectors_of(record)
    question: Vector = played + settings[ALPHA] * conserved - (1 - settings[ALPHA]) * displaced
    return question


def known_proof(settings: Vector, record: Vector, known: Ball | Ellipsoid) -> Proof:
    """Algorithm 1 as a split: the learner's rounds by the confidence set, the baseline's by their known rewards."""
    played, conserved, displaced, _ = vectors_of(record)
    kept = Linear(conserved, float(record[KEPT]), "known reward of the rounds that kept the baseline")
    owed = Linear(-displaced, -float(record[OWED]), "known reward of the baseline where the learner played")
    parts = [(known, played), (kept, settings[ALPHA] * conserved), (owed, (1 - settings[ALPHA]) * -displaced)]
    return prove(question_of(settings, record), parts)


def unknown_proof(settings: Vector, record: Vector, known: Ball | Ellipsoid) -> Proof:
    """Algorithm 2 as a split: three pieces, each by the same set; the second by the floor where that is better."""
    played, conserved, displaced, _ = vectors_of(record)
    kept: Fact = known
    if record[KEPT] >= record[OWED]:
        kept = Linear(conserved, float(record[KEPT]), "floor of the baseline's reward")
    parts = [(known, played), (kept, settings[ALPHA] * conserved), (known, (1 - settings[ALPHA]) * -displaced)]
    return prove(question_of(settings, record), parts)


def new_record(dim: int) -> Vector:
    """An empty record."""
    return np.zeros(RECORD_HEAD + 4 * dim)
