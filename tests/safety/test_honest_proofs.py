"""Honest proofs pass: what SafeLUCB proves is accepted by `check` proof by proof, and by the audit as a whole.

Nothing is forgiven there, so all rounding must have been given away where the proof was made: with every gate, radius
and kind of fact, with a tiny ridge beside features of very different scale, and after very many rounds.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.safety.check import check
from tests.policies.safe_runs import FACTS, GATES, RADII, Place, new_policy, told
from tests.worlds import Array

KINDS = ("plain", "changing", "moving", "adversarial", "arms", "clicks")


@dataclass
class Skewed(Place):
    """A world whose features have very different scales, the same in every row, or (`is_turned`) along other axes.

    `is_seen` makes theta as large as its feature is small, so that each of them matters.
    """

    most: float = 1.0
    least: float = 1e-5
    is_seen: bool = False
    is_turned: bool = False

    def __post_init__(self) -> None:
        turn = np.linalg.qr(np.random.default_rng(7).normal(size=(self.dim, self.dim)))[0]
        self.turn = turn if self.is_turned else np.eye(self.dim)
        super().__post_init__()
        self.theta = self.turn.T @ (self.theta / (self.scales if self.is_seen else self.most))
        self.theta_bound = 1.05 * float(np.linalg.norm(self.theta))

    @property
    def scales(self) -> Array:
        return np.geomspace(self.most, self.least, self.dim)

    def draw(self, count: int) -> Array:
        drawn: Array = super().draw(count) * self.scales @ self.turn
        return drawn


def ordinary(dim: int, seed: int) -> Place:
    return Place(np.random.default_rng(seed), dim=dim, kind=KINDS[seed % len(KINDS)])


SKEWED: tuple[dict[str, Any], ...] = (
    {},
    {"least": 1e-3, "is_seen": True},
    {"most": 1e3, "least": 1e-3},
    {"most": 1e3, "least": 1e-3, "is_turned": True},
)


def prove(place: Place, rounds: int, facts: str, **settings: Any) -> int:
    """Check every proof of a run, and audit the experiment that decides the same; returns the learner's rounds."""
    policy = new_policy(place, facts=facts, constraint="cumulative", **settings)
    journal = open_journal("memory:")
    twin = new_policy(place, facts=facts, constraint="cumulative", **settings)
    experiment = Experiment.create(journal, "shop", twin, mode="guarded")
    for _ in range(rounds):
        rows, baseline, means = place.show(policy)
        known = told(facts, float(means[baseline]), place.rng)
        decision = policy.decide(rows, baseline=baseline, baseline_reward=known)
        proof = decision.certificate.proof
        check(proof, question=proof.question)
        answer = experiment.decide(
            rows, baseline=baseline, baseline_reward=list(known) if isinstance(known, tuple) else known
        )
        assert answer.action == decision.action
        reward = place.reward(float(means[decision.action]), bounded=False)
        policy.observe(decision, reward)
        experiment.reward(answer.decision_id, reward)
    report = audit(journal, "shop")
    assert [str(finding) for finding in report.findings] == []
    assert report.tally.proofs == rounds
    return report.tally.learner


def runs(dim: int, gate: str, radius: str) -> Iterator[tuple[Place, str, dict[str, Any]]]:
    """Worlds, what is known of them, and settings: six ordinary worlds, then four that are ill-conditioned."""
    seed = 100 * GATES.index(gate) + 10 * RADII.index(radius)
    for number, facts in enumerate(FACTS):
        yield ordinary(dim, seed + number), facts, {}
    for number, told_of in enumerate(SKEWED):
        place = Skewed(np.random.default_rng(seed + number), dim=dim, kind="changing", **told_of)
        yield place, ("none", "all")[number % 2], {"ridge": 1e-3, "feature_bound": place.most}


def prove_all(dim: int, gate: str, radius: str, *, rounds: int, skewed_rounds: int) -> None:
    learner = [
        prove(place, skewed_rounds if settings else rounds, facts, radius=radius, gate=gate, **settings)
        for place, facts, settings in runs(dim, gate, radius)
    ]
    assert sum(learner) > 0 or rounds < 20


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("gate", GATES)
def test_fifteen_thousand_honest_proofs_are_accepted(gate: str, radius: str) -> None:
    prove_all(4, gate, radius, rounds=120, skewed_rounds=70)


@pytest.mark.parametrize("radius", RADII)
def test_two_hundred_honest_proofs_in_fifty_dimensions_are_accepted(radius: str) -> None:
    """Each by another gate than its neighbour."""
    prove_all(50, GATES[RADII.index(radius) % 3], radius, rounds=4, skewed_rounds=4)


@pytest.mark.long
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("gate", GATES)
def test_a_million_honest_proofs_are_accepted(gate: str, radius: str) -> None:
    prove_all(4, gate, radius, rounds=4_500, skewed_rounds=10_000)


@pytest.mark.long
@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("gate", GATES)
def test_ten_thousand_honest_proofs_in_fifty_dimensions_are_accepted(gate: str, radius: str) -> None:
    prove_all(50, gate, radius, rounds=60, skewed_rounds=80)
