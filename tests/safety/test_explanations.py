"""Certificates and proofs say in a sentence which facts won."""

import numpy as np
import pytest

import surefoot
from surefoot.safety.facts import Linear

ROWS = np.array([[1.0, 0.0], [0.6, 0.0]])
OTHER = np.array([[1.0, 0.0], [0.6, 0.6]])


def policy_with(**extra: object) -> surefoot.SafeLUCB:
    settings = {"dim": 2, "alpha": 0.1, "delta": 0.01, "noise": 0.1, "theta_bound": 1.0, "feature_bound": 1.0}
    return surefoot.SafeLUCB(**{**settings, **extra})  # type: ignore[arg-type]


def test_a_decision_by_the_declared_range_says_so() -> None:
    decision = policy_with(reward_range=(0.05, 1.0)).decide(ROWS, baseline=1)
    assert decision.source == "learner"
    proof = decision.certificate.proof
    assert "range" in proof.reason()
    names = [piece.fact.name for piece in proof.pieces]
    assert any("declared range" in name or "baseline" in name for name in names)
    lines = proof.explain().splitlines()
    assert lines[0].startswith(f"<theta, q> >= {proof.value:.6g}, because q is the sum of {len(names)} piece(s)")
    assert [line.split(" by the ")[1] for line in lines[1:]] == names


def test_a_decision_by_a_known_baseline_names_the_known_rewards() -> None:
    policy = policy_with(gate="facts")
    named: set[str] = set()
    for _ in range(40):
        decision = policy.decide(ROWS[::-1], baseline=0, baseline_reward=0.3)
        if decision.source == "learner":
            sentence = decision.certificate.proof.reason()
            named |= {piece.fact.name for piece in decision.certificate.proof.pieces}
            assert all(f"the {piece.fact.name}" in sentence for piece in decision.certificate.proof.pieces)
        policy.observe(decision, 0.3)
    assert any("reward of the" in name for name in named)


def test_a_decision_by_the_set_alone_names_the_ellipsoid() -> None:
    policy = policy_with(gate="joint", alpha=0.5)
    rng = np.random.default_rng(1)
    for _ in range(60):
        decision = policy.decide(OTHER, baseline=1)
        policy.observe(decision, float(decision.features @ [0.6, 0.3] + 0.1 * rng.normal()))
    assert decision.source == "learner"
    assert [piece.fact.name for piece in decision.certificate.proof.pieces] == ["ellipsoid"]
    assert decision.certificate.proof.reason() == "the ellipsoid"
    assert decision.certificate.explain().endswith(
        "above the floor; true with probability 1 - delta if what was declared is true."
    )


def test_a_refusal_says_how_far_below_the_floor_it_could_have_gone() -> None:
    certificate = policy_with().decide(np.array([[0.0, 1.0], [0.6, 0.0]]), baseline=1).certificate
    assert not certificate.is_safe
    assert certificate.explain() == (
        f"Played the baseline: playing action 0 could have left us {-certificate.margin:.4g} below the floor."
    )


def test_the_alarm_is_a_sentence_and_stays() -> None:
    policy = policy_with(noise=0.001, ridge=0.01)
    rng = np.random.default_rng(0)
    for _ in range(40):
        decision = policy.decide(OTHER, baseline=1)
        policy.observe(decision, float(rng.integers(2)))
    assert policy.is_refuted
    for _ in range(3):
        decision = policy.decide(ROWS, baseline=1)
        assert decision.source == "baseline"
        assert decision.certificate.explain() == (
            "Played the baseline: the alarm is on, because the data contradict the declarations."
        )
        assert decision.certificate.margin == -np.inf
        surefoot.check(decision.certificate.proof)
        policy.observe(decision, 0.5)
    held = policy.decide(ROWS, baseline=1, hold=True).certificate.explain()
    assert held == "Played the baseline, as asked: the alarm is on, so nothing else would have been allowed."


@pytest.mark.parametrize("gate", ["facts", "joint", "ledger"])
def test_a_held_certificate_tells_the_verdict_of_every_gate(gate: str) -> None:
    certificate = policy_with(gate=gate).decide(ROWS, baseline=1, hold=True).certificate
    assert certificate.is_held
    assert certificate.explain().startswith("Played the baseline, as asked: action 0 would")


def test_whoever_changes_a_proof_changes_his_own_copy() -> None:
    policy = policy_with()
    for _ in range(30):
        decision = policy.decide(ROWS, baseline=1)
        proof, again = decision.certificate.proof, decision.certificate.proof
        kept = again.question.copy(), [piece.vector.copy() for piece in again.pieces]
        proof.question[:] = 7.0
        for piece in proof.pieces:
            piece.vector[:] = 7.0
            if isinstance(piece.fact, Linear):
                piece.fact.normal[:] = 7.0
        again = decision.certificate.proof
        surefoot.check(again)
        assert np.array_equal(again.question, kept[0])
        assert all(np.array_equal(piece.vector, x) for piece, x in zip(again.pieces, kept[1], strict=True))
        policy.observe(decision, 0.5)
