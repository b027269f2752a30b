"""Proofs: a question q written as a sum of pieces, each bounded by one fact.

Whatever the split, <theta, q> = sum <theta, piece> >= sum of the bounds: checking needs no solver and no trust in
whoever found it. Nothing here searches; `check` shares no code with what does.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.arrays import Vector
from surefoot.errors import ProofError
from surefoot.safety.facts import Fact
from surefoot.values import Value

TOLERANCE = 1e-12  # rounding, relative to the size of the numbers added up


class Piece(Value, frozen=True):
    """A part of the question, the fact that bounds it, and the bound: <theta, vector> >= bound."""

    fact: Fact
    vector: Vector
    bound: float


class Proof(Value, frozen=True):
    """That <theta, question> >= value for every theta that satisfies the facts."""

    question: Vector
    pieces: tuple[Piece, ...]
    value: float

    def reason(self) -> str:
        """The facts that it rests on, in a few words, those that carry most of the question first."""
        weights: dict[str, float] = {}
        for piece in self.pieces:
            weights[piece.fact.name] = weights.get(piece.fact.name, 0.0) + float(np.linalg.norm(piece.vector))
        names = [f"the {name}" for name in sorted(weights, key=lambda name: -weights[name])]
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "nothing"

    def explain(self) -> str:
        """One line per piece, for people."""
        lines = [f"<theta, q> >= {self.value:.6g}, because q is the sum of {len(self.pieces)} piece(s):"]
        lines += [f"  {piece.bound:+.6g} by the {piece.fact.name}" for piece in self.pieces]
        return "\n".join(lines)


def assemble(question: Vector, parts: Sequence[tuple[Fact, Vector]]) -> Proof:
    """The proof that a given split amounts to; empty pieces are left out."""
    return summed(question, bounded(parts))


def bounded(parts: Sequence[tuple[Fact, Vector]]) -> list[Piece]:
    """Each part with the bound that its fact gives; empty ones are left out."""
    return [Piece(fact, vector, fact.lower(vector)) for fact, vector in parts if np.count_nonzero(vector)]


def summed(question: Vector, pieces: Sequence[Piece]) -> Proof:
    """The proof that these pieces amount to."""
    return Proof(question, tuple(pieces), math.fsum([piece.bound for piece in pieces]))


def check(proof: Proof) -> None:
    """Verify a proof: the pieces add up to the question, each fact gives its bound, the bounds add up to the value.

    Raises ProofError where one of these fails. A proof that claims nothing, a value of -inf, holds.
    """
    if proof.value == -math.inf:
        return
    if not all(piece.vector.shape == proof.question.shape for piece in proof.pieces):
        raise ProofError(f"Every piece must have the shape of the question, {proof.question.shape}.")
    numbers: list[Any] = [proof.question, [proof.value], *([*piece.vector, piece.bound] for piece in proof.pieces)]
    if not all(np.isfinite(part).all() for part in numbers):
        raise ProofError("Every number of a proof must be finite, but one is not.")
    total = np.array([math.fsum(column) for column in zip(*(piece.vector for piece in proof.pieces), strict=True)])
    length = math.fsum(float(np.linalg.norm(piece.vector)) for piece in proof.pieces)
    gap = float(np.linalg.norm(proof.question - total)) if proof.pieces else float(np.linalg.norm(proof.question))
    if not gap <= TOLERANCE * length:
        raise ProofError(f"The pieces must add up to the question, but they miss it by {gap:.3g}.")
    size = math.fsum(abs(piece.bound) for piece in proof.pieces)
    for number, piece in enumerate(proof.pieces):
        given = piece.fact.lower(piece.vector)
        if not abs(piece.bound - given) <= TOLERANCE * size:  # a fact that gives more is another fact than was used
            raise ProofError(
                f"Piece {number} claims {piece.bound!r}, but the {piece.fact.name} gives {given!r} for it."
            )
    added = math.fsum(piece.bound for piece in proof.pieces)
    if not abs(proof.value - added) <= TOLERANCE * size:
        raise ProofError(f"The bounds add up to {added!r}, but the proof claims {proof.value!r}.")
