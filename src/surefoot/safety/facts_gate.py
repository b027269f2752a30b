"""SafeLUCB's gates by name, and what they found as a proof. How they find it stands in `core/facts_gate.hpp`, and
how a split becomes a proof in `core/proof.hpp`.

joint   the question whole, by the newest set: one piece where the paper's gate has three.
ledger  the question as it was last proved, and the change since; each piece by its own round's set.
facts   the best split found over the set, the ball and every linear fact; joint if that suffices.
"""

from typing import Any

from surefoot.core import native
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.facts import Linear
from surefoot.safety.likelihood import LIKELIHOOD, Tangent
from surefoot.safety.proof import Piece, Proof

# In the order of the core's `Gate` and `Optimism`.
GATES = {"joint": 0, "ledger": 1, "facts": 2}
OPTIMISMS = {"set": 0, "facts": 1}


def safe_proof(promise: Any, evidence: Any, known: Ball | Ellipsoid) -> Proof:
    """The split that the gate found: linear facts by their weights, tangents by the ball, the rest by the set."""
    question, split, ball = evidence.question, evidence.split, Ball(promise.theta_bound)
    center, whitener, radius = None, None, 0.0
    if isinstance(known, Ellipsoid):
        center, whitener, radius = known.center, known.whitener, known.radius
    value, found = native.pieces_of_split(question, split, center, whitener, radius, promise.theta_bound)
    if not split:  # the usual case, in which nothing is left of the question
        return Proof(question, (Piece(known, question, found[0][2]),), value)
    facts = {native.BY_SET: known, native.BY_BALL: ball, **_linear_facts(split, evidence.points)}
    return Proof(question, tuple(Piece(facts[place], vector, bound) for place, vector, bound in found), value, ball)


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
