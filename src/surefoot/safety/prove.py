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
from surefoot.linear.convex import minimise
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.cuts import Cut, Separable, cut_at
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.proof import Proof, assemble
from surefoot.safety.split_search import TANGENT, WorkingFact, kind_of, place_of, search

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
        proof = _exact(q, sets, linear, cutting)
    elif method == "ascent":
        proof = _ascent(q, sets, linear, cutting, budget, start)
    else:
        raise InputError(f"`method` must be 'ascent' or 'exact', but got {method!r}.")
    return max(best, proof, key=lambda proof: proof.value)


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
    center, whitener, radius, bound = _ellipsoid(main, q.size)
    half_spaces = [Cut(fact, fact.normal, fact.level) for fact in linear]
    work = _start(linear, start)
    for _ in range(CUTS + 2 * q.size if others else 1):
        normals, levels = np.array([cut.normal for cut in half_spaces]), np.array([cut.level for cut in half_spaces])
        room = 2 * q.size + 40
        step = search(center, whitener, radius, bound, q, normals, levels, start=work[:room], room=room, budget=budget)
        if step.is_refuted:
            raise ProofError(
                "No theta satisfies all facts: they contradict each other, and a contradiction proves anything."
            )
        work = step.facts
        cuts = [cut for known in others if (cut := cut_at(known, step.theta))]
        if not cuts:
            break
        half_spaces += cuts
    return _collect(q, main, [cut.owner for cut in half_spaces], work, own)


def _ellipsoid(main: Ball | Ellipsoid, dim: int) -> tuple[Vector, Matrix, float, float]:
    """Center, whitener and radius of the main set, and a bound on ||theta|| that it implies."""
    if isinstance(main, Ball):
        return np.zeros(dim), np.eye(dim), main.radius, main.radius * (1 + 1e-9)
    bound = float(np.linalg.norm(main.center) + main.radius * np.linalg.norm(main.whitener))
    center, whitener = np.ascontiguousarray(main.center), np.ascontiguousarray(main.whitener)
    return center, whitener, main.radius, bound * (1 + 1e-9)


def _start(linear: list[Linear], start: Proof | None) -> list[WorkingFact]:
    """The linear pieces of an earlier proof; where there is no room for all of them, the others are left out."""
    work = []
    for piece in () if start is None else start.pieces:
        place = next((i for i, fact in enumerate(linear) if fact is piece.fact), None)
        if place is not None:
            normal = np.ascontiguousarray(linear[place].normal, dtype=np.float64)
            weight = float(piece.vector @ normal / (normal @ normal))
            work.append(WorkingFact(kind_of(place), float(linear[place].level), weight, normal))
    return work


def _collect(
    q: Vector, main: Ball | Ellipsoid, owners: Sequence[Fact], work: list[WorkingFact], own: Sequence[Fact] = ()
) -> Proof:
    """The split as a proof: tangents of one set become one piece, and the main set takes the rest.

    Where the facts alone may make up the question, a last step gives them all of it.
    """
    used = [fact for fact in work if fact.weight > 0]
    best = _as_proof(q, main, owners, used, own)
    if 0 < len(used) <= q.size:
        weights = np.linalg.lstsq(np.array([fact.normal for fact in used]).T, q, rcond=None)[0]
        if (weights > 0).all():
            whole = [fact._replace(weight=float(weight)) for fact, weight in zip(used, weights, strict=True)]
            best = max(best, _as_proof(q, main, owners, whole, own), key=lambda proof: proof.value)
    return best


def _as_proof(
    q: Vector, main: Ball | Ellipsoid, owners: Sequence[Fact], work: list[WorkingFact], own: Sequence[Fact] = ()
) -> Proof:
    # The main set's own bound on ||theta|| never helps it.
    parts = [(owners[place_of(fact.kind)], fact.weight * fact.normal) for fact in work if fact.kind != TANGENT]
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
        solution = minimise(q / scale, factors, centers, [cut.normal for cut in flat], [cut.level for cut in flat])
        if solution.is_empty:
            raise ProofError(
                "No theta satisfies all facts: they contradict each other, and a contradiction proves anything."
            )
        if not all(np.isfinite(part).all() for part in (solution.theta, *solution.pieces, solution.weights)):
            raise SolverError(f"The solver must give finite multipliers, but it ended with {solution.status}.")
        cuts = [cut for known in own if (cut := cut_at(known, solution.theta))]
        if not cuts:
            break
        flat += cuts
    of_sets: list[tuple[Fact, Vector]] = [(known, scale * x) for known, x in zip(sets, solution.pieces, strict=True)]
    # The solver's weights are negative up to its tolerance, a proof's never; cuts of the last pass have none.
    weights = scale * np.maximum(solution.weights, 0.0)
    parts = [(cut.owner, weight * cut.normal) for cut, weight in zip(flat, weights, strict=False) if weight > 0]
    missing = q - np.sum([piece for _, piece in (*of_sets, *parts)], axis=0)
    of_sets[0] = (of_sets[0][0], of_sets[0][1] + missing)
    return _best_of_own(of_sets, parts, own, q, sets[0])


def _factor(known: Ball | Ellipsoid, dim: int) -> Matrix:
    """F with ||F (theta - center)|| <= 1 exactly inside the set."""
    unit = np.eye(dim) if isinstance(known, Ball) else np.linalg.inv(known.whitener).T
    return np.asarray(unit / known.radius, dtype=np.float64)
