"""Find a proof: the best split of a question over a list of facts.

Any split is valid, so the search may stop at any time; `surefoot.check` verifies the result and shares no code with the
search. `method="ascent"` is the compiled search that SafeLUCB uses, `method="exact"` a cone program solved by Clarabel.
"""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from surefoot.arrays import Matrix, Vector, finite_array
from surefoot.errors import InputError, ProofError, SolverError
from surefoot.linear.cone import minimise
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.ascent import REFUTED
from surefoot.safety.cuts import Cut, Separable, cut_at
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.proof import Proof, assemble
from surefoot.safety.split import GIVEN, KIND, LEVEL, NORMAL, OTHER, TANGENT, WEIGHT
from surefoot.safety.split_search import search

CUTS = 60  # how often sets and facts of one's own may add half-spaces; a box of many dimensions needs more


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
        What is known, with at least one ball or ellipsoid. A fact of your own takes part by its bound of the question
        and, if it has `separate` (see `Fact`), by as many half-spaces as help.
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
        If the question is not finite, no fact is a ball or an ellipsoid, one is not a fact or its `separate` returns
        no direction, or the method is unknown.
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
    own = [fact for fact in facts if not isinstance(fact, (Ball, Ellipsoid, Linear))]
    if not sets or not all(hasattr(fact, "name") and callable(getattr(fact, "lower", None)) for fact in own):
        raise InputError(
            "`facts` must be balls, ellipsoids, linear facts, or have a `name` and `lower`, with at least one ball or "
            "ellipsoid among them: the others may leave theta unbounded."
        )
    best = max((assemble(q, [(known, q)]) for known in (*sets, *own)), key=lambda proof: proof.value)
    cutting = [fact for fact in own if isinstance(fact, Separable)]
    if not q.any():
        return best
    if method == "exact":
        found = _exact(q, sets, linear, cutting)
    elif method == "ascent":
        found = _ascent(q, sets, linear, cutting, budget, start)
    else:
        raise InputError(f"`method` must be 'ascent' or 'exact', but got {method!r}.")
    return max(best, found, key=lambda proof: proof.value)


def _ascent(
    q: Vector,
    sets: list[Ball | Ellipsoid],
    linear: list[Linear],
    own: Sequence[Any],
    budget: int,
    start: Proof | None,
) -> Proof:
    """Every set but one joins through its tangents; that one is whichever alone bounds the question best."""
    main = max(sets, key=lambda known: known.lower(q))
    others = [*(known for known in sets if known is not main), *own]
    flat, radius, bound = _flat(main, q.size)
    normals, levels = [fact.normal for fact in linear], [fact.level for fact in linear]
    owners: list[Fact] = list(linear)
    work = _start(q.size, linear, start)
    count = int((work[:, WEIGHT] > 0).sum())
    theta = np.zeros(q.size)
    for _ in range(CUTS + 2 * q.size if others else 1):
        given = np.array(normals).reshape(-1, q.size)
        _, _, count, status = search(
            flat, 0, radius, bound, q, np.zeros((0, q.size)), -np.inf, np.inf, given, np.array(levels), work, count,
            np.inf, budget, theta,
        )  # fmt: skip
        if status == REFUTED:
            raise ProofError(
                "No theta satisfies all facts: they contradict each other, and a contradiction proves anything."
            )
        cuts = [cut for known in others if (cut := cut_at(known, theta))]
        if not cuts:
            break
        for owner, normal, level in cuts:
            owners.append(owner)
            normals.append(normal)
            levels.append(level)
    return _collect(q, main, owners, work[:count], own)


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


def _collect(
    q: Vector, main: Ball | Ellipsoid, owners: Sequence[Fact], work: Matrix, own: Sequence[Fact] = ()
) -> Proof:
    """The split as a proof: tangents of one set become one piece, and the main set takes the rest.

    Where the facts alone may make up the question, a last step gives them all of it.
    """
    used = work[work[:, WEIGHT] > 0]
    best = _as_proof(q, main, owners, used, own)
    if 0 < len(used) <= q.size:
        whole = used.copy()
        whole[:, WEIGHT] = np.linalg.lstsq(used[:, NORMAL:].T, q, rcond=None)[0]
        if (whole[:, WEIGHT] > 0).all():
            best = max(best, _as_proof(q, main, owners, whole, own), key=lambda proof: proof.value)
    return best


def _as_proof(
    q: Vector, main: Ball | Ellipsoid, owners: Sequence[Fact], work: Matrix, own: Sequence[Fact] = ()
) -> Proof:
    parts: list[tuple[Fact, Vector]] = []
    for row in work:
        if row[KIND] != TANGENT:  # the main set's own bound on ||theta|| never helps it
            kind = int(row[KIND])
            parts.append((owners[kind if kind < GIVEN else kind - OTHER], row[WEIGHT] * row[NORMAL:]))
    rest = q - sum((piece for _, piece in parts), np.zeros(q.size))
    if rest @ rest <= 1e-28 * (q @ q):
        rest = np.zeros(q.size)  # only rounding is left, which `rest` bounds
    return _best_of_own([(main, rest)], parts, own, q, main)


def _best_of_own(
    first: list[tuple[Fact, Vector]],
    parts: list[tuple[Fact, Vector]],
    own: Sequence[Fact],
    q: Vector,
    rest: Ball | Ellipsoid,
) -> Proof:
    """Parts of one fact as one piece; those of one's own also apart, for their `lower` may speak of few directions."""
    together = assemble(q, [*first, *_merged(parts, ())], rest)
    if not any(fact is one for fact, _ in parts for one in own):
        return together
    apart = assemble(q, [*first, *_merged(parts, own)], rest)
    return max(together, apart, key=lambda proof: proof.value)


def _merged(parts: list[tuple[Fact, Vector]], apart: Sequence[Fact]) -> list[tuple[Fact, Vector]]:
    pieces: dict[int, tuple[Fact, Vector]] = {}
    for place, (fact, vector) in enumerate(parts):
        key = -1 - place if any(fact is one for one in apart) else id(fact)
        pieces[key] = (fact, pieces[key][1] + vector if key in pieces else vector)
    return list(pieces.values())


def _exact(q: Vector, sets: list[Ball | Ellipsoid], linear: list[Linear], own: Sequence[Any] = ()) -> Proof:
    """The cone program over all facts; its dual variables are the split, and the first set takes what they miss."""
    scale = float(np.linalg.norm(q))
    centers = [np.zeros(q.size) if isinstance(known, Ball) else known.center for known in sets]
    factors = [_factor(known, q.size) for known in sets]
    flat = [Cut(fact, fact.normal, fact.level) for fact in linear]
    for _ in range(CUTS + 2 * q.size):
        found = minimise(q / scale, factors, centers, [cut.normal for cut in flat], [cut.level for cut in flat])
        if found.is_empty:
            raise ProofError(
                "No theta satisfies all facts: they contradict each other, and a contradiction proves anything."
            )
        if not all(np.isfinite(part).all() for part in (found.theta, *found.pieces, found.weights)):
            raise SolverError(f"The solver must give finite multipliers, but it ended with {found.status}.")
        cuts = [cut for known in own if (cut := cut_at(known, found.theta))]
        if not cuts:
            break
        flat += cuts
    of_sets: list[tuple[Fact, Vector]] = [(known, scale * x) for known, x in zip(sets, found.pieces, strict=True)]
    # The solver's weights are negative up to its tolerance, a proof's never; cuts of the last pass have none.
    weights = scale * np.maximum(found.weights, 0.0)
    parts = [(cut.owner, weight * cut.normal) for cut, weight in zip(flat, weights, strict=False) if weight > 0]
    missing = q - np.sum([piece for _, piece in (*of_sets, *parts)], axis=0)
    of_sets[0] = (of_sets[0][0], of_sets[0][1] + missing)
    return _best_of_own(of_sets, parts, own, q, sets[0])


def _factor(known: Ball | Ellipsoid, dim: int) -> Matrix:
    """F with ||F (theta - center)|| <= 1 exactly inside the set."""
    unit = np.eye(dim) if isinstance(known, Ball) else np.linalg.inv(known.whitener).T
    return np.asarray(unit / known.radius, dtype=np.float64)
