"""Check a proof in whole numbers: plain Python that shares no function with the prover and rounds nothing away.

Every float is a whole multiple of 2^-1074, so sums and products are exact as whole numbers, and roots are rounded up:
vectors count in units of 2^-2148, bounds in 2^-4296. Whatever the pieces are, they prove *something*: each is bounded
by its fact; what they leave of the question, and what of a piece lies beside its fact's direction, is bounded by the
fact for the rest (over the ball, -B times its length). So no tolerance is needed, and a prover cannot exploit one.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from surefoot.errors import ProofError
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.bank_proof import GuardProof
from surefoot.safety.facts import Box, Fact, Linear
from surefoot.safety.likelihood import Likelihood, Tangent
from surefoot.safety.proof import Piece, Proof

UNIT = 1074


def check(proof: Any, *, question: Any = None, facts: Sequence[Fact] | None = None) -> None:
    """Verify that <theta, question> is at least what the proof claims, for every theta that satisfies its facts.

    Exact: no tolerance and no solver. A proof that claims nothing, with a value of -inf, holds.

    Parameters
    ----------
    proof : Proof, GuardProof, or a decision or certificate that carries one
        What to check, such as a decision. A guard's proof rests on its banks alone, without question or facts.
    question : array_like, optional
        What must have been asked; by default the proof's own question.
    facts : sequence of Fact, optional
        All that may be relied on; by default the proof's own facts.

    Raises
    ------
    ProofError
        If there is no proof, it answers another question, relies on other facts, or proves less than it claims.

    Examples
    --------
    >>> from surefoot.safety import assemble
    >>> q = np.array([3.0, 4.0])
    >>> check(assemble(q, [(Ball(1.0), q)]))
    >>> check(Proof(q, (), value=0.0))
    Traceback (most recent call last):
    surefoot.errors.ProofError: The pieces must add up to the question exactly: ...
    """
    argument = proof
    proof = getattr(getattr(argument, "certificate", argument), "proof", argument)
    if not isinstance(proof, Proof | GuardProof):
        # An experiment's answer: its proof is what the journal holds of it.
        is_answer = hasattr(argument, "decision_id")
        advice = " An experiment keeps its proofs in the journal: check them by `surefoot audit`." if is_answer else ""
        raise ProofError(f"`proof` must be a proof, or a decision that carries one, but got {argument!r:.80}.{advice}")
    if isinstance(proof, GuardProof):
        if question is not None or facts is not None:
            raise ProofError(
                "A guard's proof rests on its banks alone, so it has no `question` and no `facts` to compare with, but "
                "got one. Leave both out; an audit adds the banks up again from the rewards."
            )
        proof.check()
        return
    if question is not None and not np.array_equal(np.asarray(question, dtype=np.float64), proof.question):
        raise ProofError("The proof must answer the question that was asked, but it answers another one.")
    if proof.value == -math.inf:
        return
    for fact in (*(piece.fact for piece in proof.pieces), proof.rest):
        if not (facts is None or fact is None or any(_grants(known, fact) for known in facts)):
            raise ProofError(f"The proof rests on the {fact.name}, which is not among the facts granted.")
    proved, rest = 0, _whole(proof.question, np.size(proof.question))
    for number, piece in enumerate(proof.pieces):
        bound, covered = _bound(piece, _whole(piece.vector, len(rest)))
        if _whole([piece.bound])[0] << 2 * UNIT > bound:
            raise ProofError(f"Piece {number} claims {piece.bound!r}, but the {piece.fact.name} gives less.")
        proved += bound
        rest = [left - part for left, part in zip(rest, covered, strict=True)]
    proved += _least(proof.rest, rest, None) if any(rest) else 0
    if _whole([proof.value])[0] << 2 * UNIT > proved:
        raise ProofError(f"The pieces must prove what is claimed, {proof.value!r}, but they prove less.")


def _bound(piece: Piece, x: list[int]) -> tuple[int, list[int]]:
    """What the fact gives for a piece, and the part of the piece that it covers."""
    if not isinstance(piece.fact, Linear):
        return _least(piece.fact, x, piece), x
    normal, level = _whole(piece.fact.normal, len(x)), _whole([piece.fact.level])[0]
    square = sum(g * g for g in normal)
    along = sum(p * g for p, g in zip(x, normal, strict=True))
    # Python divides whole numbers of any size, as long as the quotient is a float: hence the 1000.
    weight = _whole([along / square if 0 < along < square << 1000 else 0.0])[0]  # any weight >= 0 is valid
    return weight * level, [weight * g >> 2 * UNIT for g in normal]  # exact: floats are multiples of 2^-1074


def _least(fact: Fact | None, x: list[int], piece: Piece | None) -> int:
    """The least <theta, x> over a fact, rounded down."""
    if isinstance(fact, Box):
        low, high = _whole([fact.low, fact.high], 2)
        return sum(entry * (high if entry < 0 else low) for entry in x)
    if isinstance(fact, (Ball, Ellipsoid)):
        radius = _whole([fact.radius])[0]
        if isinstance(fact, Ball):
            return -abs(radius) * (math.isqrt(sum(entry * entry for entry in x)) + 1)
        rows = [_whole(row, len(x)) for row in fact.whitener]
        if len(rows) != len(x) or any(any(row[i + 1 :]) for i, row in enumerate(rows)):
            raise ProofError("A whitener must be a square lower triangular matrix, but this one is not.")
        widths = [sum(m * entry for m, entry in zip(row, x, strict=True)) >> 2 * UNIT for row in rows]
        mean = sum(c * entry for c, entry in zip(_whole(fact.center, len(x)), x, strict=True))
        # isqrt rounds down by less than 1, and so does each shift of a width.
        return mean - abs(radius) * (math.isqrt(sum(width * width for width in widths)) + 1 + len(x))
    if fact is not None and piece is not None:  # one of your own: its word is taken
        return _whole([fact.lower(piece.vector)])[0] << 2 * UNIT
    raise ProofError("The pieces must add up to the question exactly: no ball, box or ellipsoid bounds what they miss.")


def _grants(known: Any, fact: Any) -> bool:
    """Whether a fact is the known one, or says less."""
    if isinstance(known, Likelihood) and isinstance(fact, Tangent):
        return known.grants(fact)
    if known is fact or type(known) is not type(fact) or type(fact) not in (Linear, Ball, Ellipsoid, Box):
        return known is fact
    names = ("normal", "center", "whitener", "low", "high")
    is_same = all(np.array_equal(getattr(known, name, 0), getattr(fact, name, 0)) for name in names)
    # A higher level says more, a larger radius less.
    size, more, less = ("level", known, fact) if isinstance(fact, Linear) else ("radius", fact, known)
    return is_same and bool(getattr(more, size, 0) >= getattr(less, size, 0))


def _whole(numbers: Any, size: int = 1) -> list[int]:
    """So many floats in units of 2^-2148; a number that is not exactly a float is refused."""
    try:
        original, floats = np.asarray(numbers), np.asarray(numbers, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise ProofError(f"Every number of a proof must be a float, but one is not: {error}.") from None
    if floats.shape != (size,) or not np.isfinite(floats).all():
        raise ProofError(f"This proof needs {size} finite numbers here, but got {floats}.")
    # A large int or a longdouble may lie between two floats: what is checked must be what was claimed.
    if original.dtype != np.float64 and floats.tolist() != original.tolist():
        raise ProofError("Every number of a proof must be a float, but one would have to be rounded to be one.")
    return [top * ((1 << 2 * UNIT) // bottom) for top, bottom in map(float.as_integer_ratio, floats.tolist())]
