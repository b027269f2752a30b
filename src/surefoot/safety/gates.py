"""The proofs that go with the gates. The gates' conditions stand in `core/clucb.hpp`, `core/clucb2.hpp` and
`core/facts_gate.hpp`, and how a split becomes a proof in `core/proof.hpp`.

The question behind all is <theta, q> >= 0 for q = z + phi_a + alpha w - (1 - alpha)(v + phi_b): after this round the
learner has earned at least (1 - alpha) of what the baseline would have. The paper's gates split it in their own ways.
SafeLUCB's have names:

joint   the question whole, by the newest set: one piece where the paper's gate has three.
ledger  the question as it was last proved, and the change since; each piece by its own round's set.
facts   the best split found over the set, the ball and every linear fact; joint if that suffices.
"""

from typing import Any

from surefoot.arrays import Vector
from surefoot.core import native
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.likelihood import LIKELIHOOD, Tangent
from surefoot.safety.proof import Piece, Proof, assemble

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


# In the order of the core's `Gate` and `Optimism`.
GATES = {"joint": 0, "ledger": 1, "facts": 2}
OPTIMISMS = {"set": 0, "facts": 1}


def safe_proof(promise: Any, evidence: Any, known: Ball | Ellipsoid) -> Proof:
    """The split that the gate found: linear facts by their weights, tangents by the ball, the rest by the set."""
    question, split, ball = evidence.question, evidence.split, Ball(promise.theta_bound)
    center, whitener, radius = None, None, 0.0
    if isinstance(known, Ellipsoid):
        center, whitener, radius = known.center, known.whitener, known.radius
    value, pieces = native.pieces_of_split(question, split, center, whitener, radius, promise.theta_bound)
    if not split:  # the usual case, in which nothing is left of the question
        return Proof(question, (Piece(known, question, pieces[0][2]),), value)
    facts = {native.BY_SET: known, native.BY_BALL: ball, **_linear_facts(split, evidence.points)}
    return Proof(question, tuple(Piece(facts[place], vector, bound) for place, vector, bound in pieces), value, ball)


def _linear_facts(split: Any, points: Any) -> dict[int, Linear]:
    """The facts of a split by their place in it, without those of the ball."""
    touched = iter(points)
    facts = dict[int, Linear]()
    for place, (kind, level, _, normal) in enumerate(split):
        if kind >= native.LIKELIHOOD:
            facts[place] = Tangent(normal, level, LIKELIHOOD, next(touched))
        elif kind != native.TANGENT:
            facts[place] = Linear(normal, level, native.FACT_WORDS[kind])
    return facts
