"""Told wrong assumptions, SafeLUCB rings its alarm or breaks its promise: so the tests of the promise can fail."""

import numpy as np
import pytest

import surefoot
from tests.policies.safe_runs import DELTA, RADII, Place, most_allowed, new_policy, play


def failures(runs: int, *, radius: str, shrunk: float) -> int:
    """Runs in which a bound exceeds the truth or the alarm rings, if the noise is told `shrunk` times what it is."""
    rng = np.random.default_rng([25, RADII.index(radius)])
    rows, truth, failed = np.array([[1.0], [0.5]]), 0.02, 0
    for _ in range(runs):
        policy = surefoot.SafeLUCB(
            dim=1, alpha=0.5, delta=DELTA, noise=shrunk, theta_bound=0.03, feature_bound=1.0, radius=radius,
            ridge=1.0, gate="joint", realised_share=0.0, restart_share=0.0,
        )  # fmt: skip
        wrong = False
        for _ in range(40):
            decision = policy.decide(rows, baseline=0, hold=True)
            certificate = decision.certificate
            question = rows[certificate.proposal, 0] + 0.5 * (decision.round - 1) - 0.5
            wrong |= certificate.guaranteed > truth * question + 1e-9
            policy.observe(decision, truth + rng.normal())
        failed += wrong or policy.is_refuted
    return failed


@pytest.mark.parametrize("radius", ["logdet", "amm", "dual"])
def test_a_radius_a_third_too_small_is_seen(radius: str) -> None:
    assert failures(400, radius=radius, shrunk=1.0) <= most_allowed(400)
    assert failures(400, radius=radius, shrunk=0.7) > most_allowed(400)


def test_a_range_declared_too_narrow_rings_the_alarm_or_breaks_the_promise() -> None:
    rng = np.random.default_rng(26)
    seen = {"refuted": 0, "overclaimed": 0, "violated": 0}
    for index in range(60):
        place = Place(rng, kind=("plain", "arms")[index % 2], noise=0.05)
        means = np.sort(place.rows @ place.theta)
        narrow = (float(means[-2]) * 0.98, float(means[-2]) * 1.02)  # every arm is said to pay what the baseline pays
        policy = new_policy(
            place, radius="amm", gate="facts", facts="none", constraint="cumulative", reward_range=narrow
        )
        outcome = play(policy, place, rounds=150)
        for key in seen:
            seen[key] += getattr(outcome, key)
        if outcome.refuted:
            decision = policy.decide(place.rows, baseline=0)
            assert decision.source == "baseline"
            assert decision.certificate.guaranteed == -np.inf
            assert "the alarm is on" in decision.certificate.explain()
            surefoot.check(decision.certificate.proof)
            assert surefoot.SafeLUCB.from_state(policy.state()).is_refuted
    assert seen["refuted"] > most_allowed(60)
    assert seen["violated"] + seen["overclaimed"] > 0


def test_a_misspecification_that_is_not_declared_is_seen() -> None:
    rng = np.random.default_rng(27)
    failed = 0
    for _ in range(60):
        place = Place(rng, actions=8, noise=0.01, misfit=0.3)
        policy = new_policy(
            place, radius="amm", gate="facts", facts="range", constraint="cumulative", misspecification=0.0
        )
        outcome = play(policy, place, rounds=80)
        failed += outcome.overclaimed or outcome.refuted or outcome.violated
    assert failed > most_allowed(60)
