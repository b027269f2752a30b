"""The paper's gates as proofs. The conditions themselves stand in `core/clucb.hpp` and `core/clucb2.hpp`.

The question behind both is <theta, q> >= 0 for q = z + phi_a + alpha w - (1 - alpha)(v + phi_b): after this round the
learner has earned at least (1 - alpha) of what the baseline would have. The paper's gates split it in their own ways.
"""

from typing import Any

from surefoot.arrays import Vector
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.proof import Proof, assemble

FLOOR = "floor of the baseline's reward"


def question_of(promise: Any, evidence: Any) -> Vector:
    """q = z + phi_a + alpha w - (1 - alpha)(v + phi_b).  (docs/mathematics.md, "The promise and the question")"""
    alpha = promise.alpha
    question: Vector = evidence.played + alpha * evidence.conserved - (1 - alpha) * evidence.displaced
    return question


def known_proof(promise: Any, evidence: Any, known: Ball | Ellipsoid) -> Proof:
    """Algorithm 1 as a split: the learner's rounds by the confidence set, the baseline's by their known rewards."""
    alpha, conserved, displaced = promise.alpha, evidence.conserved, evidence.displaced
    kept = Linear(conserved, evidence.kept, "known reward of the rounds that kept the baseline")
    owed = Linear(-displaced, -evidence.owed, "known reward of the baseline where the learner played")
    parts = [(known, evidence.played), (kept, alpha * conserved), (owed, (1 - alpha) * -displaced)]
    return assemble(question_of(promise, evidence), parts, Ball(promise.theta_bound))


def unknown_proof(promise: Any, evidence: Any, known: Ball | Ellipsoid) -> Proof:
    """Algorithm 2 as a split: three pieces, each by the same set; the second by the floor where that is better."""
    alpha, conserved = promise.alpha, evidence.conserved
    kept: Fact = Linear(conserved, evidence.kept, FLOOR) if evidence.kept >= evidence.owed else known
    parts = [(known, evidence.played), (kept, alpha * conserved), (known, (1 - alpha) * -evidence.displaced)]
    return assemble(question_of(promise, evidence), parts, Ball(promise.theta_bound))
