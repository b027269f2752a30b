"""Facts of one's own take part in proofs: as well as an exact solver could use them, and checked as the same object."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq, linprog

from surefoot import check, prove
from surefoot.arrays import Vector
from surefoot.errors import InputError, ProofError
from surefoot.linear.ellipsoid import Ball
from surefoot.safety import Box, Linear, assemble

METHODS: list[Any] = ["ascent", "exact"]
methods = pytest.mark.parametrize("method", METHODS)


class Sparse:
    """||theta||_1 <= size: few features matter."""

    name = "sparsity"

    def __init__(self, size: float) -> None:
        self.size = size

    def lower(self, q: Any, /) -> float:
        return -self.size * float(np.abs(q).max()) * (1 + 1e-15)

    def separate(self, theta: Vector) -> Vector | None:
        return -np.sign(theta) if np.abs(theta).sum() > self.size else None


class Rays:
    """<theta, axis> >= level for some axes, and not a word of any other direction."""

    name = "rays"

    def __init__(self, axes: Vector, level: float) -> None:
        self.axes, self.level = axes, level

    def lower(self, q: Any, /) -> float:
        for axis in self.axes:
            weight = float(np.asarray(q) @ axis / (axis @ axis))
            if weight > 0 and np.allclose(q, weight * axis, rtol=1e-13, atol=0):
                return weight * self.level - 1e-15 * abs(weight * self.level)
        return -math.inf

    def separate(self, theta: Vector) -> Vector | None:
        worst = self.axes[int((self.axes @ theta).argmin())]
        return worst if worst @ theta < self.level else None


def least_over_box_and_ball(q: Vector, low: float, high: float, radius: float) -> float:
    """By its multiplier mu: theta = clip(-q / mu), with the mu that puts it on the sphere."""

    def at(mu: float) -> Vector:
        return np.clip(-q / mu, low, high)

    if np.linalg.norm(at(1e-12)) <= radius:
        return float(q @ at(1e-12))
    mu = brentq(lambda mu: float(np.linalg.norm(at(mu))) - radius, 1e-12, 1e12, xtol=1e-14, rtol=1e-14)
    return float(q @ at(mu))


@methods
@pytest.mark.parametrize("dim", [4, 7, 30])
def test_a_box_joins_a_ball_and_the_proof_is_nearly_the_best(dim: int, method: Any) -> None:
    rng = np.random.default_rng([1, dim])
    gained = 0
    for _ in range(15):
        q, box, ball = rng.normal(size=dim), Box(-0.1, float(rng.uniform(0.1, 0.6))), Ball(float(rng.uniform(0.2, 1)))
        proof = prove(q, [ball, box], method=method)
        check(proof, question=q, facts=[ball, box])
        best = least_over_box_and_ball(q, box.low, box.high, ball.radius)
        assert proof.value <= best + 1e-9
        assert proof.value == pytest.approx(best, abs=1e-4 * float(np.linalg.norm(q)))
        gained += proof.value > max(ball.lower(q), box.lower(q)) + 1e-3
    assert gained > 0


@methods
@pytest.mark.parametrize("dim", [3, 8])
def test_a_fact_of_ones_own_beside_linear_ones_is_used_as_well_as_a_linear_program_can(dim: int, method: Any) -> None:
    rng = np.random.default_rng([2, dim])
    gained = 0
    for _ in range(10):
        q, normals, inside = rng.normal(size=dim), rng.normal(size=(4, dim)), rng.normal(size=dim)
        inside *= 0.5 / np.abs(inside).sum()
        levels = normals @ inside - rng.uniform(0, 0.2, size=4)
        sparse, ball = Sparse(1.0), Ball(1.01)  # contains the whole of it, so that a linear program is exact
        linear = [
            Linear(g, float(level), f"floor {i}") for i, (g, level) in enumerate(zip(normals, levels, strict=True))
        ]
        proof = prove(q, [ball, sparse, *linear], method=method)
        check(proof, question=q, facts=[ball, sparse, *linear])
        # theta = up - down with up, down >= 0.
        solved = linprog(
            np.r_[q, -q],
            A_ub=np.vstack([np.ones(2 * dim), np.hstack([-normals, normals])]),
            b_ub=np.r_[1.0, -levels],
            bounds=(0, None),
        )
        assert proof.value <= solved.fun + 1e-9
        assert proof.value == pytest.approx(solved.fun, abs=1e-4 * float(np.linalg.norm(q)))
        alone = max(prove(q, [ball, *linear], method=method).value, sparse.lower(q))
        gained += proof.value > alone + 1e-3
    assert gained > 3


@methods
def test_what_a_fact_says_of_few_directions_is_used_piece_by_piece(method: Any) -> None:
    rays, ball = Rays(np.eye(3), 0.2), Ball(1.0)
    proof = prove([1.0, 2.0, 0.5], [ball, rays], method=method)
    assert proof.value == pytest.approx(0.2 * 3.5, abs=1e-6)
    assert [piece.fact for piece in proof.pieces].count(rays) == 3
    check(proof, facts=[ball, rays])


def test_pieces_of_one_fact_are_one_piece_and_check_grants_the_same_object_only() -> None:
    sparse, ball = Sparse(0.5), Ball(1.0)
    floor = Linear(np.array([1.0, 1.0, 0.0]), 0.3, "floor")
    proof = prove([1.0, 0.6, -0.4], [ball, sparse, floor])
    assert [piece.fact for piece in proof.pieces].count(sparse) == 1
    check(proof, facts=[ball, sparse, floor])
    with pytest.raises(ProofError, match="rests on the sparsity, which is not among the facts"):
        check(proof, facts=[ball, Sparse(0.5), floor])


@methods
def test_a_fact_without_separate_bounds_the_question_as_a_whole(method: Any) -> None:
    class Sign:
        name = "sign of theta"

        def lower(self, q: Any, /) -> float:
            return 0.0 if np.min(q) >= 0 else -math.inf

    sign, ball = Sign(), Ball(1.0)
    proof = prove([1.0, 0.5], [ball, sign], method=method)
    assert (proof.value, proof.reason()) == (0.0, "the sign of theta")
    check(proof, facts=[ball, sign])
    assert prove([1.0, -0.5], [ball, sign], method=method).value == pytest.approx(-math.hypot(1.0, 0.5))


@methods
def test_facts_that_contradict_each_other_are_found_out(method: Any) -> None:
    floor = Linear(np.array([1.0, 0.0]), 0.6, "floor")
    with pytest.raises(ProofError, match="No theta satisfies all facts"):
        prove([1.0, 1.0], [Ball(1.0), Sparse(0.5), floor], method=method)


@methods
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([1.0], "must return 2 finite numbers"),
        ([0.0, 0.0], "not all 0"),
        ([math.nan, 1.0], "finite numbers"),
        ([1.0, -1.0], "must bound the direction"),
    ],
)
def test_a_direction_that_says_nothing_is_refused(given: Any, words: str, method: Any) -> None:
    class Odd:
        name = "odd fact"

        def lower(self, q: Any, /) -> float:
            return -math.inf

        def separate(self, theta: Vector) -> Any:
            return given

    with pytest.raises(InputError, match=f"odd fact must .*{words}|{words}"):
        prove([1.0, 0.3], [Ball(1.0), Odd()], method=method)


@methods
def test_a_direction_that_does_not_separate_ends_the_search(method: Any) -> None:
    class Idle(Sparse):
        asked = 0

        def separate(self, theta: Vector) -> Vector:
            self.asked += 1
            return np.array([1.0, 0.0])

    idle = Idle(5.0)
    proof = prove([1.0, 0.3], [Ball(1.0), idle], method=method)
    assert proof.value == pytest.approx(-math.hypot(1.0, 0.3))
    assert idle.asked < 5


@pytest.mark.parametrize("facts", [[Box(0.0, 1.0)], [Sparse(1.0)], [Ball(1.0), "a text"], []])
def test_a_set_must_be_there_and_all_must_be_facts(facts: Any) -> None:
    with pytest.raises(InputError, match="`facts` must be"):
        prove([1.0, 0.3], facts)


def test_a_claim_that_its_fact_does_not_give_is_refused() -> None:
    sparse = Sparse(0.5)
    q = np.array([1.0, 0.2])
    honest = assemble(q, [(sparse, q)])
    check(honest)
    sparse.size = 0.6
    with pytest.raises(ProofError, match="sparsity gives less"):
        check(honest)
