"""Proofs: a question q written as a sum of pieces, each bounded by one fact.

Whatever the split, <theta, q> = sum <theta, piece> >= sum of the bounds, so checking needs no solver and no trust in
the prover (`surefoot.safety.check`). Bounds are rounded down: a proof never claims more than it shows.
"""

from collections.abc import Sequence

import numpy as np

from surefoot.arrays import Vector
from surefoot.core import native
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.facts import Box, Fact
from surefoot.values import Value

Rest = Ball | Ellipsoid | Box


class Piece(Value, frozen=True):
    """A part of the question with the fact that bounds it: <theta, vector> >= bound.

    Attributes
    ----------
    fact : Fact
        What is known of theta.
    vector : ndarray
        The part of the question.
    bound : float
        What the fact gives for it.

    Examples
    --------
    >>> proof = assemble(np.array([3.0, 4.0]), [(Ball(1.0), np.array([3.0, 4.0]))])
    >>> proof.pieces[0].fact.name, round(proof.pieces[0].bound, 9)
    ('ball', -5.0)
    """

    fact: Fact
    vector: Vector
    bound: float


class Proof(Value, frozen=True):
    """That <theta, question> >= value for every theta that satisfies the facts.

    `surefoot.prove` finds proofs, and `surefoot.check` verifies them.

    Attributes
    ----------
    question : ndarray
        q, the vector asked about.
    pieces : tuple of Piece
        The split of q.
    value : float
        The bound that the pieces prove.
    rest : Ball, Ellipsoid or Box, optional
        Bounds what the pieces miss of the question; without it they must add up to the question exactly.

    Examples
    --------
    >>> proof = assemble(np.array([3.0, 4.0]), [(Ball(1.0), np.array([3.0, 4.0]))])
    >>> round(proof.value, 9), proof.reason()
    (-5.0, 'the ball')
    """

    question: Vector
    pieces: tuple[Piece, ...]
    value: float
    rest: Rest | None = None

    def reason(self) -> str:
        """The facts that it rests on in a few words, those that carry most of the question first."""
        weights: dict[str, float] = {}
        for piece in self.pieces:
            weights[piece.fact.name] = weights.get(piece.fact.name, 0.0) + float(np.linalg.norm(piece.vector))
        names = [f"the {name}" for name in sorted(weights, key=lambda name: -weights[name])]
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names) or "nothing"

    def explain(self) -> str:
        """The proof for people, one line per piece."""
        lines = [f"<theta, q> >= {self.value:.6g}, because q is the sum of {len(self.pieces)} piece(s):"]
        lines += [f"  {piece.bound:+.6g} by the {piece.fact.name}" for piece in self.pieces]
        return "\n".join(lines)


def assemble(question: Vector, parts: Sequence[tuple[Fact, Vector]], rest: Rest | None = None) -> Proof:
    """The proof that a given split amounts to.

    Use it to write a proof by hand; `surefoot.prove` searches for the best split.

    Parameters
    ----------
    question : ndarray of shape (dim,)
        q, the vector asked about.
    parts : sequence of (Fact, ndarray)
        Parts of q, each with the fact that is to bound it; empty ones are left out.
    rest : Ball, Ellipsoid or Box, optional
        Bounds what rounding leaves over between the parts and q.

    Returns
    -------
    Proof
        Its value is the sum of the bounds, rounded down.

    Examples
    --------
    >>> ball = Ball(1.0)
    >>> q = np.array([2.0, 0.0])
    >>> round(assemble(q, [(ball, q / 2), (ball, q / 2)], ball).value, 9)
    -2.0
    """
    return summed(question, bounded(parts), rest)


def bounded(parts: Sequence[tuple[Fact, Vector]]) -> list[Piece]:
    """Each part with the bound that its fact gives; empty ones are left out."""
    return [Piece(fact, vector, fact.lower(vector)) for fact, vector in parts if np.count_nonzero(vector)]


def summed(question: Vector, pieces: Sequence[Piece], rest: Rest | None = None) -> Proof:
    """The proof that these pieces amount to; what rounding has left of the question is bounded by `rest`."""
    bounds = [piece.bound for piece in pieces]
    if len(pieces) == 1 and pieces[0].vector is question:  # the usual case, in which nothing is left
        return Proof(question, tuple(pieces), bounds[0], rest)
    if rest is not None:
        vectors = np.array([piece.vector for piece in pieces]).reshape(len(pieces), question.size)
        bounds.append(native.given_away(question, vectors, rest.reach(question.size)))
    return Proof(question, tuple(pieces), native.sum_below(bounds), rest)
