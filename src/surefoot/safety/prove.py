"""Find a proof: the best split of a question over a list of facts.

Any split is valid, so the search may stop at any time; `surefoot.check` verifies the result and shares no code with the
search. `method="ascent"` is the compiled search that SafeLUCB uses, `method="exact"` a cone program solved by Clarabel.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, finite_array
from surefoot.errors import InputError, ProofError, SolverError
from surefoot.linear.cone import minimise
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.ascent import REFUTED
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.proof import Proof, assemble
from surefoot.safety.split import GIVEN, KIND, LEVEL, NORMAL, OTHER, TANGENT, WEIGHT
from surefoot.safety.split_search import search

CUTS = 60  # tangents of further sets that may join
OUTSIDE = 1e-7  # how far outside a set, relative to its size, the minimiser may lie


def prove(
    question: ArrayLike,
    facts: Sequence[Fact],
    *,
    method: Literal["ascent", "exact"] = "ascent",
    budget: int = 200,
    start: Proof | None = None,
) -> Proof:
    """The best proof found that <theta, question> is at least some value.

    If a single fact does best, that is the proof.

    Parameters
    ----------
    question : array_like of shape (dim,)
        q, the vector asked about.
    facts : sequence of Fact
        Balls, ellipsoids and linear facts, with at least one ball or ellipsoid.
    method : {"ascent", "exact"}
        The compiled search, or the cone program.
    budget : int
        How many facts may join in the ascent.
    start : Proof, optional
        An earlier proof to start the ascent from.

    Returns
    -------
    Proof
        The proof with the largest value found.

    Raises
    ------
    InputError
        If the question is not finite, the facts are of other kinds, or the method is unknown.
    ProofError
        If no theta satisfies all facts.
    SolverError
        If the cone program ends without a usable answer.

    Examples
    --------
    >>> facts = [Ball(1.0), Linear(np.array([1.0, 0.0]), 0.5, "floor")]
    >>> proof = prove([2.0, 0.0], facts)
    >>> round(proof.value, 9), [piece.fact.name for piece in proof.pieces]
    (1.0, ['floor'])
    """
    q = finite_array("question", question, ndim=1)
    sets = [fact for fact in facts if isinstance(fact, (Ball, Ellipsoid))]
    linear = [fact for fact in facts if isinstance(fact, Linear)]
    if not sets or len(sets) + len(linear) < len(facts):
        raise InputError(
            "`facts` must be balls, ellipsoids and linear facts, with at least one ball or ellipsoid among them: "
            "linear facts alone may leave theta unbounded."
        )
    best = max((assemble(q, [(known, q)]) for known in sets), key=lambda proof: proof.value)
    if not q.any():
        return best
    if method == "exact":
        found = _exact(q, sets, linear)
    elif method == "ascent":
        found = _ascent(q, sets, linear, budget, start)
    else:
        raise InputError(f"`method` must be 'ascent' or 'exact', but got {method!r}.")
    return max(best, found, key=lambda proof: proof.value)


def _ascent(q: Vector, sets: list[Ball | Ellipsoid], linear: list[Linear], budget: int, start: Proof | None) -> Proof:
    """Every set but one joins through its tangents; that one is whichever alone bounds the question best."""
    main = max(sets, key=lambda known: known.lower(q))
    others = [known for known in sets if known is not main]
    flat, radius, bound = _flat(main, q.size)
    normals, levels = [fact.normal for fact in linear], [fact.level for fact in linear]
    owners: list[Fact] = list(linear)
    work = _start(q.size, linear, start)
    count = int((work[:, WEIGHT] > 0).sum())
    theta = np.zeros(q.size)
    for _ in range(CUTS if others else 1):
        given = np.array(normals).reshape(-1, q.size)
        _, _, count, status = search(
            flat, 0, radius, bound, q, np.zeros((0, q.size)), -np.inf, np.inf, given, np.array(levels), work, count,
            np.inf, budget, theta,
        )  # fmt: skip
        if status == REFUTED:
            raise ProofError(
                "No theta satisfies all facts: they contradict each other, and a contradiction proves anything."
            )
        cuts = [cut for known in others if (cut := _cut(known, theta))]
        if not cuts:
            break
        for owner, normal, level in cuts:
            owners.append(owner)
            normals.append(normal)
            levels.append(level)
    return _collect(q, main, owners, work[:count])


def _flat(main: Ball | Ellipsoid, dim: int) -> tuple[Vector, float, float]:
    """Center and whitener of the main set in one array, its radius, and a bound on ||theta|| that it implies."""
    if isinstance(main, Ball):
        return np.concatenate([np.zeros(dim), np.eye(dim).ravel()]), main.radius, main.radius * (1 + 1e-9)
    bound = float(np.linalg.norm(main.center) + main.radius * np.linalg.norm(main.whitener))
    return np.concatenate([main.center, main.whitener.ravel()]), main.radius, bound * (1 + 1e-9)


def _start(dim: int, linear: list[Linear], start: Proof | None) -> Matrix:
    work = np.zeros((2 * dim + 40, 3 + dim))
    known = [] if start is None else [piece for piece in start.pieces if any(piece.fact is fact for fact in linear)]
    # Pieces beyond the room are left out: a start is only a hint.
    for row, piece in zip(work, known, strict=False):
        assert isinstance(piece.fact, Linear)
        place = next(i for i, fact in enumerate(linear) if fact is piece.fact)
        # Kinds from GIVEN on mean something of their own (`surefoot.safety.split`): later places go past them.
        row[KIND], row[LEVEL] = (place if place < GIVEN else OTHER + place), piece.fact.level
        row[WEIGHT] = float(piece.vector @ piece.fact.normal / (piece.fact.normal @ piece.fact.normal))
        row[NORMAL:] = piece.fact.normal
    return work


def _cut(known: Ball | Ellipsoid, theta: Vector) -> tuple[Fact, Vector, float] | None:
    """A tangent of a set that theta violates, as a linear fact; None where theta lies within."""
    if isinstance(known, Ball):
        length = float(np.linalg.norm(theta))
        normal = -theta / length if length > 0 else theta
        return (known, normal, known.lower(normal)) if length > known.radius * (1 + OUTSIDE) else None
    inverse = np.linalg.inv(known.whitener)
    moved = inverse.T @ (theta - known.center)
    length = float(np.linalg.norm(moved))
    if length <= known.radius * (1 + OUTSIDE):
        return None
    normal = -inverse @ moved / length
    # Of length 1: the normals of a flat ellipsoid may have any size.
    normal /= np.linalg.norm(normal)
    return known, normal, known.lower(normal)


def _collect(q: Vector, main: Ball | Ellipsoid, owners: Sequence[Fact], work: Matrix) -> Proof:
    """The split as a proof: tangents of one set become one piece, and the main set takes the rest.

    Where the facts alone may make up the question, a last step gives them all of it.
    """
    used = work[work[:, WEIGHT] > 0]
    best = _as_proof(q, main, owners, used)
    if 0 < len(used) <= q.size:
        whole = used.copy()
        whole[:, WEIGHT] = np.linalg.lstsq(used[:, NORMAL:].T, q, rcond=None)[0]
        if (whole[:, WEIGHT] > 0).all():
            best = max(best, _as_proof(q, main, owners, whole), key=lambda proof: proof.value)
    return best


def _as_proof(q: Vector, main: Ball | Ellipsoid, owners: Sequence[Fact], work: Matrix) -> Proof:
    pieces: dict[int, tuple[Fact, Vector]] = {}
    rest = q.copy()
    for row in work:
        if row[KIND] != TANGENT:  # the main set's own bound on ||theta|| never helps it
            kind = int(row[KIND])
            owner = owners[kind if kind < GIVEN else kind - OTHER]
            piece = row[WEIGHT] * row[NORMAL:]
            pieces[id(owner)] = (owner, pieces.get(id(owner), (owner, np.zeros(q.size)))[1] + piece)
            rest -= piece
    if rest @ rest <= 1e-28 * (q @ q):
        rest = np.zeros(q.size)  # only rounding is left, which `rest` bounds
    return assemble(q, [(main, rest), *pieces.values()], main)


def _exact(q: Vector, sets: list[Ball | Ellipsoid], linear: list[Linear]) -> Proof:
    """The cone program over all facts; its dual variables are the split, and the first set takes what they miss."""
    scale = float(np.linalg.norm(q))
    centers = [np.zeros(q.size) if isinstance(known, Ball) else known.center for known in sets]
    factors = [_factor(known, q.size) for known in sets]
    normals, levels = [fact.normal for fact in linear], [fact.level for fact in linear]
    found = minimise(q / scale, factors, centers, normals, levels)
    if found.is_empty:
        raise ProofError(
            "No theta satisfies all facts: they contradict each other, and a contradiction proves anything."
        )
    if not all(np.isfinite(part).all() for part in (*found.pieces, found.weights)):
        raise SolverError(f"The solver must give finite multipliers, but it ended with {found.status}.")
    parts: list[tuple[Fact, Vector]] = [(known, scale * x) for known, x in zip(sets, found.pieces, strict=True)]
    # The solver's weights are negative up to its tolerance, a proof's never.
    weights = scale * np.maximum(found.weights, 0.0)
    parts += [(fact, weight * fact.normal) for fact, weight in zip(linear, weights, strict=True) if weight > 0]
    missing = q - np.sum([piece for _, piece in parts], axis=0)
    parts[0] = (parts[0][0], parts[0][1] + missing)
    return assemble(q, parts, sets[0])


def _factor(known: Ball | Ellipsoid, dim: int) -> Matrix:
    """F with ||F (theta - center)|| <= 1 exactly inside the set."""
    unit = np.eye(dim) if isinstance(known, Ball) else np.linalg.inv(known.whitener).T
    return np.asarray(unit / known.radius, dtype=np.float64)
