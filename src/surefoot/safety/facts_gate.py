"""SafeLUCB's gates by name, and what they found as a proof. How they find it stands in `core/facts_gate.hpp`.

joint   the question whole, by the newest set: one piece where the paper's gate has three.
ledger  the question as it was last proved, and the change since; each piece by its own round's set.
facts   the best split found over the set, the ball and every linear fact; joint if that suffices.
"""

from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.core import native
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.facts import Linear
from surefoot.safety.likelihood import LIKELIHOOD, Tangent
from surefoot.safety.proof import Piece, Proof, bounded, summed

# In the order of the core's `Gate` and `Optimism`.
GATES = {"joint": 0, "ledger": 1, "facts": 2}
OPTIMISMS = {"set": 0, "facts": 1}


def safe_proof(promise: Any, evidence: Any, known: Ball | Ellipsoid) -> Proof:
    """The split that the gate found: linear facts by their weights, tangents by the ball, the rest by the set."""
    question, facts = evidence.question, evidence.split
    if not facts:  # the usual case, kept fast since a service writes a proof for every decision
        return summed(question, [Piece(known, question, known.lower(question))])
    rest, ball = question.copy(), Ball(promise.theta_bound)
    carried, tangents, points = list[Piece](), list[Vector](), iter(evidence.points)
    for kind, level, weight, normal in facts:
        point = next(points) if kind >= native.LIKELIHOOD else None
        if weight <= 0.0:
            continue
        piece = weight * normal
        rest -= piece
        if kind == native.TANGENT:
            tangents.append(piece)
        else:
            fact = (
                Linear(normal, level, native.FACT_WORDS[kind])
                if point is None
                else Tangent(normal, level, LIKELIHOOD, point)
            )
            carried.append(Piece(fact, piece, fact.times(weight)))
    parts = [(known, rest), (ball, np.sum(tangents, axis=0))] if tangents else [(known, rest)]
    return summed(question, [*bounded(parts), *carried], ball)
