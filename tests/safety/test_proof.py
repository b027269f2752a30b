"""Proofs: what a linear fact says, that honest splits pass the check, and that nothing forged does."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from msgspec.structs import replace

from surefoot.arrays import Vector
from surefoot.errors import ProofError
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.check import check
from surefoot.safety.facts import Box, Fact, Linear
from surefoot.safety.proof import Piece, Proof, assemble

# ---------------------------------------------------------------------------------- linear facts


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_a_linear_fact_bounds_nonnegative_multiples_of_its_normal(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for level in (-0.7, 0.0, 1.3):
        fact = Linear(rng.normal(size=dim), level, "fact")
        for weight in (1e-9, 0.3, 1.0, 7.0, 1e9):
            assert fact.lower(weight * fact.normal) == pytest.approx(weight * level, rel=1e-12)
        assert fact.lower(np.zeros(dim)) == 0.0
        assert fact.lower(-0.3 * fact.normal) == -math.inf


@pytest.mark.parametrize("dim", [2, 5, 50])
def test_a_linear_fact_says_nothing_of_other_directions(dim: int) -> None:
    rng = np.random.default_rng(dim)
    fact = Linear(rng.normal(size=dim), 1.3, "fact")
    for off in (1e-9, 1e-3, 1.0):
        aside = rng.normal(size=dim)
        assert fact.lower(fact.normal + off * aside) == -math.inf
    assert fact.lower(rng.normal(size=dim)) == -math.inf


def test_what_a_linear_fact_says_holds_for_every_theta_that_satisfies_it() -> None:
    rng = np.random.default_rng(1)
    fact = Linear(np.array([0.6, -0.8, 2.0]), 0.4, "fact")
    thetas = rng.normal(size=(5000, 3)) * 3
    thetas = thetas[thetas @ fact.normal >= 0.4]
    for weight in (0.0, 0.3, 2.5):
        assert (thetas @ (weight * fact.normal)).min() >= fact.lower(weight * fact.normal) - 1e-12


def test_a_linear_fact_without_a_direction_bounds_only_nothing() -> None:
    fact = Linear(np.zeros(2), 0.0, "nothing")
    assert fact.lower([0.0, 0.0]) == 0.0
    assert fact.lower([1.0, 0.0]) == -math.inf


@pytest.mark.parametrize("scale", [1e-100, 1e-9, 1e9, 1e100])
def test_a_linear_fact_of_any_scale_bounds_its_own_normal(scale: float) -> None:
    fact = Linear(scale * np.array([3.0, 4.0]), 0.5, "fact")
    assert fact.lower(fact.normal) == pytest.approx(0.5, rel=1e-12)
    assert fact.lower(-fact.normal) == -math.inf


def test_a_linear_fact_gives_no_bound_for_what_is_not_a_number() -> None:
    assert not Linear(np.array([1.0, 0.0]), 0.5, "fact").lower([math.nan, 0.0]) > -math.inf


# ---------------------------------------------------------------------------------- honest proofs


def facts(dim: int, rng: np.random.Generator) -> list[Fact]:
    root = np.linalg.cholesky(np.cov(rng.normal(size=(dim, dim + 20))).reshape(dim, dim) + 0.1 * np.eye(dim))
    return [
        Ball(1.3),
        Ellipsoid(center=rng.normal(size=dim), whitener=np.asarray(root), radius=0.4, observations=7),
        Linear(rng.normal(size=dim), 0.6, "floor"),
        Linear(rng.normal(size=dim), -2.0, "range"),
    ]


def honest(dim: int, rng: np.random.Generator) -> Proof:
    """A random split over a ball, an ellipsoid and two linear facts."""
    ball, ellipsoid, floor, reach = facts(dim, rng)
    assert isinstance(ball, Ball)
    assert isinstance(floor, Linear)
    assert isinstance(reach, Linear)
    parts: list[tuple[Fact, Vector]] = [
        (ball, rng.normal(size=dim)),
        (ellipsoid, rng.normal(size=dim)),
        (floor, 0.3 * floor.normal),
        (reach, 2.5 * reach.normal),
    ]
    return assemble(sum((vector for _, vector in parts), np.zeros(dim)), parts, ball)


@pytest.mark.parametrize("dim", [1, 2, 5, 50])
def test_an_honest_split_is_proved_and_passes_the_check(dim: int) -> None:
    rng = np.random.default_rng(dim)
    for _ in range(20):
        proof = honest(dim, rng)
        check(proof)
        bounds = [piece.fact.lower(piece.vector) for piece in proof.pieces]
        assert [piece.bound for piece in proof.pieces] == bounds
        assert math.fsum(bounds) - 1e-13 * math.fsum(map(abs, bounds)) <= proof.value <= math.fsum(bounds)
        scaled = replace(
            proof,
            question=2.0**30 * proof.question,
            pieces=tuple(replace(p, vector=2.0**30 * p.vector, bound=2.0**30 * p.bound) for p in proof.pieces),
            value=2.0**30 * proof.value,
        )
        check(scaled)


def test_a_proved_value_is_below_the_question_for_every_theta_that_satisfies_the_facts() -> None:
    rng = np.random.default_rng(3)
    for _ in range(10):
        proof = honest(2, rng)
        ball, ellipsoid, floor, reach = (piece.fact for piece in proof.pieces)
        assert isinstance(ball, Ball)
        assert isinstance(ellipsoid, Ellipsoid)
        assert isinstance(floor, Linear)
        assert isinstance(reach, Linear)
        units = rng.normal(size=(20_000, 2))
        units *= np.sqrt(rng.random(size=(20_000, 1))) / np.linalg.norm(units, axis=1, keepdims=True)
        thetas = ellipsoid.center + ellipsoid.radius * units @ ellipsoid.whitener
        thetas = thetas[np.linalg.norm(thetas, axis=1) <= ball.radius]
        thetas = thetas[(thetas @ floor.normal >= floor.level) & (thetas @ reach.normal >= reach.level)]
        assert (thetas @ proof.question >= proof.value - 1e-12).all()


def test_empty_pieces_are_left_out() -> None:
    proof = assemble(np.array([1.0, 0.0]), [(Ball(1.0), np.array([1.0, 0.0])), (Ball(9.0), np.zeros(2))])
    assert len(proof.pieces) == 1
    check(proof)


def test_the_empty_question_is_worth_nothing_and_proved_by_nothing() -> None:
    proof = assemble(np.zeros(2), [])
    assert proof.value == 0.0
    check(proof)
    with pytest.raises(ProofError, match="add up to the question"):
        check(replace(proof, question=np.array([1e-150, 0.0])))
    with pytest.raises(ProofError, match="must prove what is claimed"):
        check(replace(proof, value=5e-324))


def test_a_claim_of_nothing_holds() -> None:
    fact = Linear(np.array([1.0, 0.0]), 0.5, "floor")
    proof = assemble(np.array([0.0, 1.0]), [(fact, np.array([0.0, 1.0]))])
    assert proof.value == -math.inf
    check(proof)


def test_a_proof_tells_its_pieces_to_people() -> None:
    fact = Linear(np.array([1.0, 2.0]), 0.5, "floor of the baseline's reward")
    proof = assemble(np.array([3.0, 5.0]), [(fact, np.array([2.0, 4.0])), (Ball(2.0), np.array([1.0, 1.0]))])
    assert proof.explain().splitlines() == [
        "<theta, q> >= -1.82843, because q is the sum of 2 piece(s):",
        "  +1 by the floor of the baseline's reward",
        "  -2.82843 by the ball",
    ]


# ---------------------------------------------------------------------------------- forged proofs


def passes(proof: Proof) -> bool:
    try:
        check(proof)
    except ProofError:
        return False
    return True


def altered(proof: Proof, amount: float) -> Iterator[tuple[str, Proof]]:
    """The proof with one number changed, for every number in it."""

    def moved(vector: Vector, entry: int) -> Vector:
        copy = vector.copy()
        copy[entry] += amount
        return copy

    def with_piece(number: int, piece: Piece) -> Proof:
        return replace(proof, pieces=(*proof.pieces[:number], piece, *proof.pieces[number + 1 :]))

    yield "value", replace(proof, value=proof.value + amount)
    for entry in range(proof.question.size):
        yield f"question[{entry}]", replace(proof, question=moved(proof.question, entry))
    for number, piece in enumerate(proof.pieces):
        yield f"bound {number}", with_piece(number, replace(piece, bound=piece.bound + amount))
        for entry in range(piece.vector.size):
            yield f"piece {number}[{entry}]", with_piece(number, replace(piece, vector=moved(piece.vector, entry)))


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize("amount", [1e-6, -1e-6, 0.1, -0.1, 1e3, -1e3, math.nan, math.inf])
def test_a_proof_altered_in_any_number_fails_unless_less_is_claimed(dim: int, amount: float) -> None:
    """Every change of a vector costs what it moves, by the ball."""
    proof = honest(dim, np.random.default_rng(dim))
    changes = list(altered(proof, amount))
    assert len(changes) == 1 + dim + 4 * (1 + dim)
    passed = [what for what, forged in changes if passes(forged)]
    lowered = ["value", "bound 0", "bound 1", "bound 2", "bound 3"] if amount < 0 else []
    assert [what for what in passed if what not in lowered and "piece 1" not in what] == []


def test_a_piece_moved_to_another_fact_passes_only_if_the_claim_is_still_true() -> None:
    """The ellipsoid may know more of a direction than the ball that is charged for it, and less of the opposite one."""
    proof = honest(3, np.random.default_rng(2))
    for what, forged in altered(proof, 0.1):
        if what.startswith("piece 1") and passes(forged):
            moved = forged.pieces[1].vector - proof.pieces[1].vector
            gained = forged.pieces[1].fact.lower(forged.pieces[1].vector) - proof.pieces[1].bound
            assert gained >= 1.3 * float(np.linalg.norm(moved)) - 1e-12


@pytest.mark.parametrize("amount", [1e-6, 0.1, 1e3])
@pytest.mark.parametrize("number", [0, 1, 2, 3])
def test_a_proof_from_weaker_facts_fails(number: int, amount: float) -> None:
    proof = honest(3, np.random.default_rng(9))
    fact = proof.pieces[number].fact
    weaker: Fact
    if isinstance(fact, Linear):
        weaker = replace(fact, level=fact.level - amount)
    elif isinstance(fact, Ball):
        weaker = replace(fact, radius=fact.radius + amount)
    else:
        assert isinstance(fact, Ellipsoid)
        weaker = replace(fact, radius=fact.radius + amount)
    pieces = list(proof.pieces)
    pieces[number] = replace(pieces[number], fact=weaker)
    with pytest.raises(ProofError, match=f"Piece {number} claims"):
        check(replace(proof, pieces=tuple(pieces)))


def test_a_proof_from_another_center_or_direction_fails() -> None:
    proof = honest(3, np.random.default_rng(10))
    vector, granted = proof.pieces[1].vector, [piece.fact for piece in proof.pieces]
    ellipsoid, floor = proof.pieces[1].fact, proof.pieces[2].fact
    assert isinstance(ellipsoid, Ellipsoid)
    assert isinstance(floor, Linear)
    forged: dict[int, Fact] = {
        1: replace(ellipsoid, center=ellipsoid.center - 1e-6 * vector),
        2: replace(floor, normal=floor.normal + np.array([1e-6, 0.0, 0.0])),
    }
    for number, fact in forged.items():
        pieces = list(proof.pieces)
        pieces[number] = replace(pieces[number], fact=fact)
        with pytest.raises(ProofError):
            check(replace(proof, pieces=tuple(pieces)))
        with pytest.raises(ProofError, match="not among the facts granted"):
            check(replace(proof, pieces=tuple(pieces)), facts=granted)


def test_a_proof_with_a_piece_left_out_or_counted_twice_must_do_without_it() -> None:
    proof = replace(honest(3, np.random.default_rng(11)), rest=None)
    for number in range(len(proof.pieces)):
        with pytest.raises(ProofError, match="must add up to the question"):
            check(replace(proof, pieces=(*proof.pieces[:number], *proof.pieces[number + 1 :])))
        with pytest.raises(ProofError, match="must add up to the question"):
            check(replace(proof, pieces=(*proof.pieces, proof.pieces[number])))


@pytest.mark.parametrize("value", [0.0, 1e9, math.nan, math.inf])
def test_a_piece_that_claims_nothing_proves_nothing(value: float) -> None:
    question = np.array([1.0, 0.0])
    forged = Proof(question, (Piece(Ball(1.0), question, -math.inf),), value)
    with pytest.raises(ProofError):
        check(forged)


def test_a_piece_for_which_its_fact_says_nothing_proves_nothing() -> None:
    question = np.array([1.0, 0.0])
    floor = Linear(np.array([0.0, 1.0]), 0.5, "floor")
    for bound in (-1e300, 0.0, 0.5):
        with pytest.raises(ProofError, match=r"must add up to the question|Piece 0 claims"):
            check(Proof(question, (Piece(floor, question, bound),), bound))


def test_a_piece_of_another_length_than_the_question_proves_nothing() -> None:
    short = np.array([1.0])  # numpy would stretch it to (1, 1, 1, 1), whose least value over the ball is -2
    with pytest.raises(ProofError):
        check(Proof(np.ones(4), (Piece(Ball(1.0), short, -1.0 - 1e-12),), -1.0 - 1e-12))


@pytest.mark.parametrize(("weight", "gain"), [(1e6, 1e-4), (1e9, 0.1), (1e12, 100.0)])
def test_large_pieces_that_cancel_do_not_buy_tolerance(weight: float, gain: float) -> None:
    """<theta, g> is known to be 0.5, from both sides; the pieces weight g and -weight g add nothing but their size."""
    g, question = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    above, below = Linear(g, 0.5, "known reward"), Linear(-g, -0.5, "known reward")
    padding = (Piece(above, weight * g, 0.5 * weight), Piece(below, -weight * g, -0.5 * weight))
    least = Ball(1.0).lower(question)
    check(Proof(question, (Piece(Ball(1.0), question, least), *padding), least, Ball(1.0)))
    forgeries = {
        "value": Proof(question, (Piece(Ball(1.0), question, least), *padding), least + gain),
        "bound": Proof(question, (Piece(Ball(1.0), question, least + gain), *padding), least + gain),
        "question": Proof(question * (1 + gain), (Piece(Ball(1.0), question, least), *padding), least),
    }
    assert [what for what, forged in forgeries.items() if passes(forged)] == []


@pytest.mark.parametrize("factor", [0.99, 1.01])
def test_a_proof_by_an_altered_fact_fails_where_only_the_true_one_is_granted(factor: float) -> None:
    question = np.array([2.0, 1.0])
    floor, ball = Linear(np.array([1.0, 1.0]), 0.5, "floor"), Ball(2.0)
    proof = assemble(question, [(floor, np.array([1.0, 1.0])), (ball, np.array([1.0, 0.0]))], ball)
    check(proof, question=question, facts=[floor, ball])
    altered: Linear | Ball
    for place, altered in ((0, Linear(np.array([1.0, 1.0]), 0.5 * factor, "floor")), (1, Ball(2.0 * factor))):
        pieces = list(proof.pieces)
        pieces[place] = Piece(altered, pieces[place].vector, altered.lower(pieces[place].vector))
        forged = replace(proof, pieces=tuple(pieces), value=math.fsum(piece.bound for piece in pieces) - 1e-9)
        is_stronger = (factor > 1) == (place == 0)
        check(forged)  # it follows from the facts that it names
        if is_stronger:
            with pytest.raises(ProofError, match="not among the facts granted"):
                check(forged, facts=[floor, ball])
        else:
            check(forged, facts=[floor, ball])


def test_a_proof_of_another_question_is_no_answer() -> None:
    proof = honest(3, np.random.default_rng(4))
    check(proof, question=proof.question.copy())
    with pytest.raises(ProofError, match="answers another one"):
        check(proof, question=np.nextafter(proof.question, 9.0))


def test_what_is_missing_is_bounded_by_the_range_of_plain_arms_where_no_ball_is_declared() -> None:
    question, box = np.array([0.5, -0.3, 0.2]), Box(0.1, 0.9)
    arm = Linear(np.array([1.0, 0.0, 0.0]), 0.4, "interval of arm 0")
    pieces = (Piece(arm, np.array([0.5, 0.0, 0.0]), 0.5 * 0.4 - 1e-12),)
    most = 0.2 - 0.27 + 0.02
    check(Proof(question, pieces, most - 1e-9, box))
    for forged in (Proof(question, pieces, most + 1e-9, box), Proof(question, pieces, most - 1e-9)):
        with pytest.raises(ProofError):
            check(forged)
