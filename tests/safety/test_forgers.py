"""Forgers against `check`: each claims something that is false at a theta that satisfies every fact, and is refused."""

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pytest
from msgspec.structs import replace

from surefoot.arrays import Vector
from surefoot.errors import ProofError
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.check import check
from surefoot.safety.facts import Box, Fact, Linear
from surefoot.safety.proof import Piece, Proof, assemble


class Forgery(NamedTuple):
    """A proof, the facts that are true, and a theta that satisfies them and at which the proof's claim is false."""

    proof: Proof
    facts: Sequence[Fact]
    theta: Vector
    question: Vector | None = None


FORGERIES: dict[str, Callable[[], Forgery]] = {}


def way(make: Callable[[], Forgery]) -> Callable[[], Forgery]:
    FORGERIES[make.__name__] = make
    return make


def ways(name: str, values: Sequence[Any]) -> Callable[[Callable[[Any], Forgery]], Callable[[Any], Forgery]]:
    """The same way several times over."""

    def register(make: Callable[[Any], Forgery]) -> Callable[[Any], Forgery]:
        for value in values:
            text = f"{value:g}" if isinstance(value, float) else str(value)
            FORGERIES[f"{make.__name__}-{name}={text}"] = partial(make, value)
        return make

    return register


def exactly(x: Any, y: Any) -> Fraction:
    """The inner product without any rounding."""
    pairs = zip(np.asarray(x, dtype=np.float64).tolist(), np.asarray(y, dtype=np.float64).tolist(), strict=True)
    return sum((Fraction(a) * Fraction(b) for a, b in pairs), Fraction(0))


def holds(fact: Any, theta: Vector) -> bool:
    """Whether theta satisfies a fact; exactly, but for ellipsoids."""
    if isinstance(fact, Linear):
        return exactly(fact.normal, theta) >= Fraction(fact.level)
    if isinstance(fact, Ball):
        return exactly(theta, theta) <= Fraction(fact.radius) ** 2
    if isinstance(fact, Box):
        return all(fact.low <= entry <= fact.high for entry in theta)
    moved = np.linalg.solve(np.asarray(fact.whitener).T, theta - fact.center)
    return bool(np.linalg.norm(moved) <= fact.radius * (1 + 1e-9))


E1, E2, BOTH = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([1.0, 1.0])
LOW = -E2  # the least <theta, E2> in the unit ball, where <theta, BOTH> is -1
KNOWN = Linear(BOTH, -1.0, "known reward"), Linear(-BOTH, 1.0, "known reward")
BALL = Ball(1.0)
TRUE: tuple[Fact, ...] = (*KNOWN, BALL)
SET = Ellipsoid(np.array([0.5, 0.25]), np.array([[0.5, 0.0], [0.25, 1.0]]), 1.0, 7)
EDGE = SET.center + SET.whitener.T @ (-SET.whitener @ E2 / np.linalg.norm(SET.whitener @ E2))  # least <theta, E2>


def padding(weight: float) -> tuple[Piece, Piece]:
    """Two pieces that cancel each other, and prove nothing."""
    return Piece(KNOWN[0], weight * BOTH, -weight), Piece(KNOWN[1], -weight * BOTH, weight)


# ---------------------------------------------------------------------------------- pieces that cancel

WEIGHTS = (1e6, 1e9, 1e12, 1e15, 1e60, 1e200)


@ways("weight", WEIGHTS)
def pieces_that_cancel_hide_that_the_question_is_missed(weight: float) -> Forgery:
    return Forgery(Proof(E2 * min(1.0, 1e-12 * weight), padding(weight), 0.0, BALL), TRUE, LOW)


@ways("weight", WEIGHTS)
def pieces_that_cancel_hide_that_there_is_no_fact_for_what_is_missed(weight: float) -> Forgery:
    return Forgery(Proof(E2 * min(1.0, 1e-12 * weight), padding(weight), 0.0), TRUE, LOW)


@ways("weight", WEIGHTS)
def pieces_that_cancel_hide_a_bound_that_is_raised(weight: float) -> Forgery:
    raised = Piece(BALL, E2, -1.0 + min(0.5, 1e-12 * weight))
    return Forgery(Proof(E2, (raised, *padding(weight)), raised.bound, BALL), TRUE, LOW)


@ways("weight", WEIGHTS)
def pieces_that_cancel_hide_a_value_above_their_sum(weight: float) -> Forgery:
    honest = Piece(BALL, E2, BALL.lower(E2))
    value = honest.bound + min(0.5, 1e-12 * weight)
    return Forgery(Proof(E2, (honest, *padding(weight)), value, BALL), TRUE, LOW)


@way
def a_thousand_pieces_each_claim_half_an_ulp_too_much() -> Forgery:
    share = 2.0**-10
    pieces = (Piece(KNOWN[0], share * BOTH, math.nextafter(-share, 0.0)),) * 1024
    return Forgery(Proof(BOTH, pieces, math.fsum(piece.bound for piece in pieces), BALL), TRUE, LOW)


@way
def two_sets_that_cancel_hide_what_is_missed() -> Forgery:
    far = 1e15 * E1
    pieces = Piece(SET, far, SET.lower(far)), Piece(SET, -far, SET.lower(-far))
    return Forgery(Proof(E2, pieces, 0.0, BALL), (SET,), EDGE)


# ---------------------------------------------------------------------------------- directions


@ways("weight", WEIGHTS)
def a_piece_is_tilted_away_from_its_fact(weight: float) -> Forgery:
    """What is known of BOTH is said to hold of a direction close by, and is used often enough for that to matter."""
    little = min(1.0, 1e-13 * weight)
    tilted = Piece(KNOWN[0], weight * BOTH + little * E2, -weight)
    return Forgery(Proof(little * E2, (tilted, padding(weight)[1]), 0.0, BALL), TRUE, LOW)


@way
def a_fact_bounds_the_opposite_of_its_direction() -> Forgery:
    floor = Linear(E2, -1.0, "floor")
    return Forgery(Proof(-E2, (Piece(floor, -E2, 1.0),), 1.0, BALL), (floor, BALL), np.array([0.0, 0.5]))


@way
def a_fact_bounds_another_direction_altogether() -> Forgery:
    return Forgery(Proof(E2, (Piece(KNOWN[0], E2, -0.5),), -0.5, BALL), TRUE, LOW)


@way
def a_fact_without_a_direction_bounds_something() -> Forgery:
    empty = Linear(np.zeros(2), 0.0, "nothing")
    return Forgery(Proof(E2, (Piece(empty, E2, 0.0),), 0.0), (empty,), -E2)


@way
def a_direction_of_subnormal_length_is_blown_up() -> Forgery:
    tiny = Linear(5e-324 * E2, -5e-324, "tiny")  # theta_2 >= -1
    return Forgery(Proof(E2, (Piece(tiny, E2, 0.0),), 0.0, BALL), (tiny, BALL), -E2)


# ---------------------------------------------------------------------------------- sets


@way
def a_whitener_has_entries_above_its_diagonal() -> Forgery:
    """Whoever reads the lower triangle alone sees a set that is far narrower than the one that is written down."""
    wide = Ellipsoid(np.zeros(2), np.array([[0.5, 10.0], [0.0, 0.5]]), 1.0, 7)
    narrow = wide.lower(E2)
    return Forgery(Proof(E2, (Piece(wide, E2, narrow),), narrow), (wide,), -wide.whitener[0])


@way
def a_whitener_is_smaller_than_the_data_make_it() -> Forgery:
    return from_another_set(replace(SET, whitener=0.5 * SET.whitener))


@way
def a_whitener_is_that_of_a_single_point() -> Forgery:
    return from_another_set(replace(SET, whitener=np.zeros((2, 2))))


@way
def a_whitener_has_no_rows() -> Forgery:
    return from_another_set(replace(SET, whitener=np.zeros((0, 2))))


@way
def a_center_is_moved() -> Forgery:
    return from_another_set(replace(SET, center=SET.center + np.array([0.0, 1.0])))


@way
def a_center_has_one_entry_for_all() -> Forgery:
    return from_another_set(replace(SET, center=np.array([9.0])))


@ways("radius", (0.0, -1.0, 0.5, math.nan, -math.inf))
def a_set_has_another_radius(radius: float) -> Forgery:
    return from_another_set(replace(SET, radius=radius))


def from_another_set(forged: Ellipsoid) -> Forgery:
    """As much as that set would prove, and more than the true one does."""
    value = max(float(EDGE[1]) + 1e-9, 0.0)
    return Forgery(Proof(E2, (Piece(forged, E2, value),), value, BALL), (SET, Ball(9.0)), EDGE)


@ways("radius", (0.0, -1.0, 0.5, math.nan, math.inf, -math.inf))
def a_ball_has_another_radius(radius: float) -> Forgery:
    value = math.nextafter(-1.0, 0.0)
    return Forgery(Proof(E2, (Piece(Ball(radius), E2, value),), value), (BALL,), -E2)


@way
def a_ball_is_an_ulp_smaller() -> Forgery:
    return a_ball_has_another_radius(math.nextafter(1.0, 0.0))


@way
def a_set_is_an_ulp_smaller() -> Forgery:
    return a_set_has_another_radius(math.nextafter(1.0, 0.0))


# ---------------------------------------------------------------------------------- facts that were never granted


@way
def a_level_is_raised_by_an_ulp() -> Forgery:
    raised = Linear(BOTH, math.nextafter(-1.0, 0.0), "known reward")
    return Forgery(Proof(BOTH, (Piece(raised, BOTH, raised.level),), raised.level, BALL), TRUE, LOW)


@way
def a_fact_is_invented() -> Forgery:
    invented = Linear(E2, 0.5, "known reward")
    return Forgery(Proof(E2, (Piece(invented, E2, 0.5),), 0.5, BALL), TRUE, LOW)


@way
def a_fact_says_of_itself_what_it_gives() -> Forgery:
    class Boastful(Linear, frozen=True):
        def lower(self, q: Any, /) -> float:
            return 9.0

    boastful = Boastful(BOTH, -1.0, "known reward")
    return Forgery(Proof(E2, (Piece(boastful, E2, 9.0),), 9.0, BALL), TRUE, LOW)


@way
def a_box_is_narrower_than_declared() -> Forgery:
    narrow = Box(0.5, 1.0)
    return Forgery(Proof(E2, (), 0.5, narrow), (Box(0.0, 1.0),), np.array([0.0, 0.0]))


# ---------------------------------------------------------------------------------- what the pieces miss


@way
def nothing_proves_everything() -> Forgery:
    return Forgery(Proof(E2, (), 0.0), TRUE, LOW)


@way
def what_is_missed_is_bounded_by_a_smaller_ball() -> Forgery:
    return Forgery(Proof(E2, (), -1e-9, Ball(1e-9)), TRUE, LOW)


@way
def what_is_missed_is_bounded_by_a_set_that_nobody_granted() -> Forgery:
    point = replace(SET, whitener=np.zeros((2, 2)))
    return Forgery(Proof(E2, (), 0.25, point), (SET,), EDGE)


@way
def what_is_missed_is_bounded_by_a_line() -> Forgery:
    rest: Any = KNOWN[0]
    return Forgery(Proof(E2, (), 0.0, rest), TRUE, LOW)


@way
def too_little_to_be_seen_is_missed() -> Forgery:
    question = np.array([0.0, 1e-300])
    return Forgery(Proof(question, padding(1.0), 0.0), TRUE, LOW)


@way
def a_piece_is_counted_twice() -> Forgery:
    floor = Linear(E1, 0.5, "floor")
    piece = Piece(floor, E1, 0.5)
    return Forgery(Proof(E1, (piece, piece), 1.0, BALL), (floor, BALL), 0.5 * E1)


# ---------------------------------------------------------------------------------- another question, another number


@way
def an_easier_question_is_answered() -> Forgery:
    return Forgery(assemble(-BOTH, [(KNOWN[1], -BOTH)]), TRUE, LOW, question=E2)


@way
def a_question_has_another_shape() -> Forgery:
    square: Any = np.zeros((2, 2))
    return Forgery(Proof(square, (), 0.0, BALL), TRUE, LOW, question=E2)


@way
def a_piece_is_stretched_to_fit() -> Forgery:
    short = np.array([1.0])
    return Forgery(Proof(np.ones(2), (Piece(BALL, short, -1.0),), -1.0, BALL), (BALL,), np.array([-0.75, -0.625]))


@way
def a_normal_is_stretched_to_fit() -> Forgery:
    short: Any = Linear(np.array([1.0]), 0.5, "known reward")
    return Forgery(Proof(BOTH, (Piece(short, BOTH, 1.0),), 1.0, BALL), TRUE, LOW)


@way
def a_value_is_an_ulp_too_high() -> Forgery:
    value = math.nextafter(-1.0, 0.0)
    return Forgery(Proof(E2, (Piece(BALL, E2, -1.0 - 1e-12),), value, BALL), (BALL,), -E2)


@ways("value", (2**53 + 1, Fraction(2**53 + 1)))
def a_value_is_rounded_down_by_being_read(value: Any) -> Forgery:
    large = Linear(E1, 2.0**53, "large")
    return Forgery(Proof(E1, (Piece(large, E1, 2.0**53),), value), (large,), 2.0**53 * E1)


@way
def a_level_is_rounded_up_by_being_read() -> Forgery:
    value, theta = math.nextafter(0.5, 1.0), np.array([0.5, 2.0**-53 - 2.0**-60])
    level: Any = exactly(BOTH, theta)  # the nearest float is `value`, which is more
    between = Linear(BOTH, level, "known reward")
    return Forgery(Proof(BOTH, (Piece(between, BOTH, value),), value), (between,), theta)


# ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FORGERIES)
def test_what_is_false_is_refused(name: str) -> None:
    forgery = FORGERIES[name]()
    asked = forgery.proof.question if forgery.question is None else forgery.question
    assert all(holds(fact, forgery.theta) for fact in forgery.facts)
    if forgery.question is None:
        assert exactly(asked, forgery.theta) < Fraction(forgery.proof.value)
    with pytest.raises(ProofError):
        check(forgery.proof, question=asked, facts=forgery.facts)


SELF_CONTAINED = [
    name
    for name in FORGERIES
    if name.startswith(("pieces_that", "a_thousand", "two_sets", "a_piece_is", "a_fact_bounds", "a_fact_without"))
    or name in ("a_whitener_has_entries_above_its_diagonal", "a_value_is_an_ulp_too_high", "nothing_proves_everything")
]


@pytest.mark.parametrize("name", SELF_CONTAINED)
def test_what_does_not_follow_is_refused_though_every_fact_is_believed(name: str) -> None:
    with pytest.raises(ProofError):
        check(FORGERIES[name]().proof)


# ---------------------------------------------------------------------------------- numbers that are none


def with_number(proof: Proof, place: str, number: float) -> Proof:
    """The proof with a number in one place."""
    vector = np.array([number, 0.0])
    line, whole = proof.pieces[0], proof.pieces[1]
    changed: dict[str, Callable[[], Proof]] = {
        "question": lambda: replace(proof, question=vector),
        "value": lambda: replace(proof, value=number),
        "vector": lambda: replace(proof, pieces=(replace(line, vector=vector), whole)),
        "bound": lambda: replace(proof, pieces=(replace(line, bound=number), whole)),
        "level": lambda: replace(proof, pieces=(replace(line, fact=Linear(BOTH, number, "floor")), whole)),
        "normal": lambda: replace(proof, pieces=(replace(line, fact=Linear(vector, 0.5, "floor")), whole)),
        "center": lambda: replace(proof, pieces=(line, replace(whole, fact=replace(SET, center=vector)))),
        "whitener": lambda: replace(
            proof, pieces=(line, replace(whole, fact=replace(SET, whitener=np.array([[number, 0.0], [0.0, 1.0]]))))
        ),
        "radius": lambda: replace(proof, pieces=(line, replace(whole, fact=replace(SET, radius=number)))),
        "rest": lambda: replace(proof, pieces=(line,), rest=Ball(number)),
    }
    return changed[place]()


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize(
    "place",
    ["question", "value", "vector", "bound", "level", "normal", "center", "whitener", "radius", "rest"],
)
def test_a_number_that_is_none_proves_nothing_wherever_it_stands(place: str, number: float) -> None:
    honest = assemble(BOTH + E2, [(KNOWN[0], BOTH), (SET, E2)], BALL)
    check(honest)
    forged = with_number(honest, place, number)
    if (place, number) == ("value", -math.inf):
        check(forged)  # it claims nothing
        return
    with pytest.raises(ProofError):
        check(forged)


@pytest.mark.parametrize("zero", [0.0, -0.0])
def test_minus_zero_is_zero(zero: float) -> None:
    floor = Linear(np.array([1.0, zero]), zero, "floor")
    proof = Proof(np.array([1.0, -zero]), (Piece(floor, np.array([1.0, zero]), -zero),), -zero)
    check(proof, question=E1, facts=[Linear(E1, 0.0, "floor")])
    with pytest.raises(ProofError):
        check(replace(proof, value=5e-324), question=E1)
