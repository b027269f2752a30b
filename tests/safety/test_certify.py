"""SafeLUCB's gates against each other and against the paper's, on any state that play can reach."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefoot
from surefoot.arrays import Matrix
from surefoot.linear.ridge import sized
from surefoot.safety.gates import GATES

SEEDS = st.integers(min_value=0, max_value=2**32 - 1)
RADII = ("paper", "logdet", "amm", "residual")


def some_state(seed: int, radius: str, **extra: Any) -> tuple[Any, Matrix, int]:
    """A policy after some rounds of anybody's choice, and the rows and the baseline of the next one."""
    rng = np.random.default_rng(seed)
    dim, actions = int(rng.integers(2, 6)), int(rng.integers(2, 7))
    theta = np.abs(rng.normal(size=dim))
    theta /= np.linalg.norm(theta)
    floor = float(rng.choice([0.0, 0.05, 0.2]))
    noise = float(rng.choice([0.01, 0.1, 1.0]))
    policy = surefoot.SafeLUCB(
        dim=dim, alpha=float(rng.choice([0.02, 0.1, 0.4])), delta=0.1, noise=noise, theta_bound=1.1, feature_bound=1.0,
        ridge=float(rng.choice([0.3, 1.0, 2.5])), radius=radius, realised_share=0.0, reward_floor=floor, **extra,
    )  # fmt: skip

    def draw() -> tuple[Matrix, int]:
        rows = np.abs(rng.normal(size=(actions, dim)))
        rows *= rng.uniform(0.3, 1.0, size=(actions, 1)) / np.linalg.norm(rows, axis=1, keepdims=True)
        best = int(np.argmax(rows @ theta))
        return rows, best

    for _ in range(int(rng.choice([0, 1, 5, 30, 120]))):
        rows, baseline = draw()
        learner = rng.random() < 0.4
        action = int(rng.integers(actions)) if learner else baseline
        decision = policy.recall(rows, baseline=baseline, action=action, source="learner" if learner else "baseline")
        if rng.random() < 0.9:
            policy.observe(decision, float(theta @ rows[action] + noise * rng.normal()))
    return policy, *draw()


def judged(policy: Any, gate: str, rows: Matrix, proposal: int, baseline: int) -> tuple[bool, Any]:
    """The verdict of one of SafeLUCB's gates on a copy of everything."""
    copy = policy.core.copy()
    copy.settings.gate = GATES[gate]
    copy.settings.watchful = False  # the gate alone
    evidence = copy.judge(rows, proposal, baseline)
    return evidence.is_learner, evidence


def paper_margin(policy: Any, rows: Matrix, proposal: int, baseline: int) -> float:
    """LCB(z + phi_a) + alpha max{LCB(w), n r_l} - (1 - alpha) UCB(v + phi_b), over the same set."""
    paper = sized("CLUCB2", policy.dim)(policy.dim, policy.core.settings)
    paper.assign_ridge(policy.core.ridge)
    paper.ledger.assign(policy.core.ledger)
    return margin(paper.judge(rows, proposal, baseline))


def margin(evidence: Any) -> float:
    return float(evidence.guaranteed - evidence.required)


@pytest.mark.parametrize("radius", [*RADII, "dual"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS)
def test_joint_is_never_weaker_than_the_papers_three_pieces(radius: str, seed: int) -> None:
    policy, rows, baseline = some_state(seed, radius)
    for proposal in range(len(rows)):
        old = paper_margin(policy, rows, proposal, baseline)
        _, record = judged(policy, "joint", rows, proposal, baseline)
        assert margin(record) >= old - 1e-9 * (1 + abs(old))


@pytest.mark.parametrize("radius", [*RADII, "dual"])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=SEEDS, ranged=st.booleans())
def test_facts_are_never_weaker_than_joint_and_ledger(radius: str, seed: int, ranged: bool) -> None:
    policy, rows, baseline = some_state(seed, radius, reward_range=(0.0, 1.0) if ranged else None)
    if policy.is_refuted:
        return
    for proposal in range(len(rows)):
        allowed, record = judged(policy, "facts", rows, proposal, baseline)
        if record.guaranteed == -math.inf:  # the assumptions are refuted: nothing may be claimed
            continue
        for gate in ("joint", "ledger"):
            weaker, other = judged(policy, gate, rows, proposal, baseline)
            assert allowed >= weaker
            if not allowed:
                assert margin(record) >= margin(other) - 1e-9 * (1 + abs(margin(other)))


def test_joint_lets_the_learner_in_no_later_than_the_paper_after_many_refusals() -> None:
    """However often it was refused before: closed forms are asked anew in every round."""
    rows = np.array([[0.5, 0.5], [0.1, 0.9]])
    policy = surefoot.SafeLUCB(
        dim=2, alpha=0.02, delta=0.01, noise=1.0, theta_bound=1.0, feature_bound=1.0, radius="paper", gate="joint",
        reward_floor=0.3, realised_share=0.0,
    )  # fmt: skip
    for _ in range(1500):
        old = paper_margin(policy, rows, 1, 0)
        joint, record = judged(policy, "joint", rows, 1, 0)
        assert margin(record) >= old - 1e-9 * (1 + abs(old))
        if old >= 0:
            assert joint
            return
        policy.decide(rows, baseline=0, hold=True)  # its reward stays out: only the floor can help
    raise AssertionError("the paper's gate must have passed at last")


def test_facts_do_win_over_joint_and_joint_over_the_paper() -> None:
    """The comparison above is not one of equals."""
    wins = {"joint": 0, "facts": 0}
    for seed in range(150):
        policy, rows, baseline = some_state(seed, "amm", reward_range=(0.0, 1.0))
        for proposal in range(len(rows)):
            joint, record = judged(policy, "joint", rows, proposal, baseline)
            wins["joint"] += margin(record) > paper_margin(policy, rows, proposal, baseline) + 1e-6
            wins["facts"] += judged(policy, "facts", rows, proposal, baseline)[0] > joint
    assert wins["joint"] > 100
    assert wins["facts"] > 10
