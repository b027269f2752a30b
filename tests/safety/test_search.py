"""The search for a split against Clarabel: never above the optimum, within a percent of it, alarms only when due."""

from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import surefoot
from surefoot.arrays import Matrix, Vector
from surefoot.errors import ProofError
from surefoot.linear.ellipsoid import Ball, Ellipsoid
from surefoot.safety.check import check
from surefoot.safety.facts import Fact, Linear
from surefoot.safety.prove import prove
from surefoot.safety.split_search import GIVEN, TANGENT, SplitFound, WorkingFact, search
from tests.safe_reference import Ellipse, least

LIMIT = 1000  # joining facts, where the search may take its time


@dataclass
class Problem:
    """An ellipsoid, a ball, range rows and given facts, which theta satisfies."""

    theta: Vector
    center: Vector
    whitener: Matrix
    radius: float
    bound: float
    rows: Matrix
    low: float
    high: float
    given: Matrix
    levels: Vector
    q: Vector

    @property
    def joint(self) -> float:
        """What the ellipsoid alone says."""
        return float(self.center @ self.q - self.radius * np.linalg.norm(self.whitener @ self.q))

    def search(self, *, budget: int = LIMIT, start: Sequence[WorkingFact] = (), target: float = np.inf) -> SplitFound:
        return search(
            self.center, self.whitener, self.radius, self.bound, self.q, self.given, self.levels, rows=self.rows,
            low=self.low, high=self.high, start=start, target=target, budget=budget,
        )  # fmt: skip

    def exact(self) -> float | None:
        dim = self.q.size
        factor: Matrix = np.asarray(np.linalg.inv(self.whitener).T / self.radius)
        sets = [Ellipse(self.center, factor), Ellipse(np.zeros(dim), np.eye(dim) / self.bound)]
        normals = np.vstack([self.rows, -self.rows, self.given])
        levels = np.concatenate([np.full(len(self.rows), self.low), np.full(len(self.rows), -self.high), self.levels])
        return least(self.q, sets, normals, levels)


def problem(rng: np.random.Generator, dim: int, kind: str = "plain") -> Problem:
    """A random feasible problem; the kinds put theta on the boundary of what is known in different ways."""
    theta = rng.normal(size=dim)
    theta /= np.linalg.norm(theta)
    seen = rng.normal(size=(int(rng.choice([0, 1, dim, 10 * dim])), dim)) / np.sqrt(dim)
    gram = seen.T @ seen + float(rng.choice([0.1, 1.0])) * np.eye(dim)
    whitener = np.tril(np.linalg.inv(np.linalg.cholesky(gram)))
    radius = float(rng.choice([0.5, 2.0]))
    away = rng.normal(size=dim)
    away /= np.linalg.norm(away)
    inside = 1.0 if kind == "tight" else float(rng.uniform(0, 1))
    center = theta - inside * radius * whitener.T @ away  # ||theta - center||_V = inside radius
    rows = np.zeros((0, dim)) if kind == "no rows" else rng.normal(size=(int(rng.integers(1, 40)), dim)) / np.sqrt(dim)
    means = rows @ theta if len(rows) else np.zeros(1)
    slack = 0.0 if kind == "tight" else float(rng.uniform(0, 0.5))
    given, levels = rng.normal(size=(GIVEN, dim)), np.full(GIVEN, -np.inf)
    for i in range(0, GIVEN, 2):
        choice = rng.random()
        if choice < 0.3:  # known exactly: a fact and its opposite
            given[i + 1] = -given[i]
            levels[i], levels[i + 1] = given[i] @ theta, -float(given[i] @ theta)
        elif choice < 0.7:
            levels[i] = given[i] @ theta - rng.uniform(0, 0.3) * (kind != "tight")
    if kind == "degenerate":  # repeated, scaled and combined normals: corners where many facts meet
        rows = np.vstack([rows, rows[:3], 2.0 * rows[:1], rows[:1] + rows[-1:]]) if len(rows) else rows
        given[1], levels[1] = 3.0 * given[0], 3.0 * float(given[0] @ theta)
        given[3], levels[3] = given[0] + given[2], float((given[0] + given[2]) @ theta)
        levels[0], levels[2] = given[0] @ theta, given[2] @ theta
        means = rows @ theta
    q = 10.0 ** rng.uniform(-1, 3) * rng.normal(size=dim)
    if rng.random() < 0.3 and len(rows):
        q = rng.uniform(0, 50, size=len(rows)) @ rows  # like a ledger: a sum of rows
    bound = 1.0 if kind == "tight" else 1.0 + float(rng.uniform(0, 1))
    low, high = float(means.min()) - slack, float(means.max()) + slack
    return Problem(theta, center, whitener, radius, bound, rows, low, high, given, levels, q)


def assert_near(found: float, exact: float, alone: float, case: Any) -> None:
    """Within one percent of the optimum, measured against what there was to gain; never above it."""
    size = max(abs(exact), abs(exact - alone))
    assert found <= exact + 1e-6 * (size + abs(alone)), case
    assert found >= exact - 0.01 * size - 1e-7 * abs(alone), case


@pytest.mark.parametrize("dim", [1, 2, 4, 8, 20, 50])
@pytest.mark.parametrize("kind", ["plain", "no rows", "degenerate", "tight"])
def test_the_search_comes_within_a_percent_of_the_exact_optimum_and_never_above(dim: int, kind: str) -> None:
    rng = np.random.default_rng([dim, len(kind)])
    gained = 0
    for number in range(12 if dim > 10 else 40):
        made = problem(rng, dim, kind)
        exact = made.exact()
        if exact is None:
            assert kind == "tight"  # feasible in one point only: the solver may call that empty
            continue
        value, error, is_refuted, facts, _ = made.search()
        assert not is_refuted
        assert 0 <= error <= 1e-9 * (1 + abs(value) + np.linalg.norm(made.q))
        assert value - error <= float(made.theta @ made.q) + 1e-9 * np.linalg.norm(made.q)
        assert all(fact.weight >= 0 for fact in facts)
        if kind != "tight":
            assert_near(value, exact, made.joint, (dim, kind, number))
        gained += exact > made.joint + 0.1 * abs(made.joint)
    assert gained > 2, "the ellipsoid alone must often have been far from the optimum"


@pytest.mark.parametrize("dim", [1, 2, 4, 8])
def test_a_warm_start_from_another_question_ends_where_a_cold_one_does(dim: int) -> None:
    rng = np.random.default_rng([3, dim])
    for number in range(40):
        made = problem(rng, dim)
        first = made.search()
        made.q = made.q + 0.3 * np.linalg.norm(made.q) * rng.normal(size=dim)
        exact = made.exact()
        assert exact is not None
        found = made.search(start=first.facts)
        assert not found.is_refuted
        assert_near(found.value, exact, made.joint, number)


@pytest.mark.parametrize("dim", [2, 4, 8])
def test_a_small_budget_gives_less_and_is_still_a_bound(dim: int) -> None:
    rng = np.random.default_rng([4, dim])
    for _ in range(40):
        made = problem(rng, dim)
        values = []
        for budget in (0, 1, 2, 4, 32):
            value, error, is_refuted, _, _ = made.search(budget=budget)
            assert not is_refuted
            assert value - error <= float(made.theta @ made.q) + 1e-9 * np.linalg.norm(made.q)
            values.append(value)
        size = 1e-9 * (abs(made.joint) + np.linalg.norm(made.q))
        assert values[0] >= made.joint - size
        assert all(a <= b + size for a, b in pairwise(values))


def test_a_search_stops_once_the_target_is_proved() -> None:
    rng = np.random.default_rng(5)
    stopped = 0
    for _ in range(100):
        made = problem(rng, 4)
        best = made.search().value
        target = made.joint + 0.5 * (best - made.joint)
        value = made.search(target=target).value
        assert target - 1e-9 * (1 + abs(target)) <= value <= best + 1e-9 * (1 + abs(best))
        stopped += value < best - 1e-6 * abs(best)
    assert stopped > 10


@pytest.mark.parametrize("dim", [1, 2, 3, 5, 12])
@pytest.mark.parametrize("kind", ["plain", "degenerate", "tight", "no rows"])
def test_facts_that_some_theta_satisfies_are_never_called_a_contradiction(dim: int, kind: str) -> None:
    """Also where theta is the only one: on the boundary of the ellipsoid, the ball and every linear fact."""
    rng = np.random.default_rng([6, dim, len(kind)])
    for number in range(150):
        made = problem(rng, dim, kind)
        for q in (made.q, np.zeros(dim)):
            made.q = q
            for budget in (64, LIMIT):
                value, error, is_refuted, _, _ = made.search(budget=budget)
                assert not is_refuted, (number, budget)
                assert value - error <= float(made.theta @ q) + 1e-9 * (1 + np.linalg.norm(q))


@pytest.mark.parametrize("dim", [1, 2, 4, 8])
@pytest.mark.parametrize("how", ["opposite", "beyond the ellipsoid", "beyond the ball", "two rows"])
def test_facts_that_contradict_each_other_are_refuted(dim: int, how: str) -> None:
    rng = np.random.default_rng([7, dim, len(how)])
    for _ in range(40):
        made = problem(rng, dim)
        g = rng.normal(size=dim)
        made.levels[:] = -np.inf
        if how == "opposite":
            made.given[0], made.levels[0] = g, g @ made.theta
            made.given[1], made.levels[1] = -g, -float(g @ made.theta) + 0.01 * np.linalg.norm(g)
        elif how == "beyond the ellipsoid":
            reach = float(made.center @ g + made.radius * np.linalg.norm(made.whitener @ g))
            made.given[0], made.levels[0] = g, reach + 0.01 * np.linalg.norm(g)
        elif how == "beyond the ball":
            made.given[0], made.levels[0] = g, 1.01 * made.bound * np.linalg.norm(g)
        else:
            made.rows, made.low, made.high = np.vstack([g, 3.0 * g]), 0.5, 1.0
        assert made.exact() is None
        for q in (made.q, np.zeros(dim)):
            made.q = q
            assert made.search().is_refuted


# ---------------------------------------------------------------------------------- proofs


def facts_of(made: Problem) -> list[Fact]:
    known = Ellipsoid(made.center, made.whitener, made.radius, 3)
    found: list[Fact] = [known, Ball(made.bound)]
    for row in made.rows:
        found += [Linear(row, made.low, "range"), Linear(-row, -made.high, "range")]
    found += [
        Linear(normal, float(level), "given")
        for normal, level in zip(made.given, made.levels, strict=True)
        if np.isfinite(level)
    ]
    return found


@pytest.mark.parametrize("method", ["ascent", "exact"])
@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_every_proof_that_is_found_holds_and_is_nearly_the_best(dim: int, method: Any) -> None:
    rng = np.random.default_rng([8, dim])
    for number in range(25):
        made = problem(rng, dim, ("plain", "degenerate", "no rows")[number % 3])
        exact = made.exact()
        assert exact is not None
        proof = prove(made.q, facts_of(made), method=method)
        check(proof)
        assert_near(proof.value, exact, made.joint, number)


@pytest.mark.parametrize("amount", [1e-3, -1e-3, 0.3, -0.3])
def test_a_proof_altered_in_any_number_passes_only_if_it_is_still_true(amount: float) -> None:
    """By Clarabel: a claim that was lowered holds, and so may one whose question moved to where more is known."""
    rng = np.random.default_rng(9)
    refused = 0
    for _ in range(10):
        made = problem(rng, 3)
        proof = prove(made.q, facts_of(made))
        assert len(proof.pieces) > 1
        scale = amount * (1 + max(abs(piece.bound) for piece in proof.pieces))
        for forgery in altered(proof, scale):
            try:
                check(forgery)
            except ProofError:
                refused += 1
                continue
            exact = replace_dataclass(made, q=forgery.question).exact()
            assert exact is not None
            assert forgery.value <= exact + 1e-6 * (1 + abs(exact))
    assert refused > 50


def altered(proof: surefoot.Proof, scale: float) -> list[surefoot.Proof]:
    """The proof with one number changed, for every number in it."""
    found = [replace(proof, value=proof.value + scale)]
    found += [replace(proof, question=proof.question + scale * np.eye(3)[i]) for i in range(3)]
    for number, piece in enumerate(proof.pieces):
        others = list(proof.pieces)
        for changed in (
            replace(piece, bound=piece.bound + scale),
            *(replace(piece, vector=piece.vector + scale * np.eye(3)[i]) for i in range(3)),
        ):
            others[number] = changed
            found.append(replace(proof, pieces=tuple(others)))
    return found


def test_a_proof_over_contradictory_facts_is_refused() -> None:
    g = np.array([1.0, 2.0])
    facts: list[Fact] = [Ball(1.0), Linear(g, 0.5, "floor"), Linear(-g, -0.2, "ceiling")]
    for method in ("ascent", "exact"):
        with pytest.raises(ProofError, match="No theta satisfies all facts"):
            prove([1.0, 0.0], facts, method=method)


def test_a_warm_started_proof_is_as_good_as_a_cold_one() -> None:
    rng = np.random.default_rng(10)
    for _ in range(25):
        made = problem(rng, 4)
        facts = facts_of(made)
        first = prove(made.q, facts)
        question = made.q + 0.1 * np.linalg.norm(made.q) * rng.normal(size=4)
        cold, warm = prove(question, facts), prove(question, facts, start=first)
        check(warm)
        assert warm.value == pytest.approx(cold.value, rel=1e-5, abs=1e-5 * float(np.linalg.norm(question)))


def test_tangents_of_the_ball_are_levels_of_the_ball() -> None:
    made = problem(np.random.default_rng(11), 3, "no rows")
    made.levels[:] = -np.inf
    made.bound = 1.0000001
    made.radius = 50.0
    made.q = -np.linalg.norm(made.q) * made.theta
    found = made.search()
    assert not found.is_refuted
    assert found.facts
    for fact in found.facts:
        assert fact.kind == TANGENT
        assert fact.level == pytest.approx(-made.bound)
        assert np.linalg.norm(fact.normal) == pytest.approx(1.0)
    assert surefoot.check is check
