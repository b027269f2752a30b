"""No false alarm: the audit finds nothing in honest journals, whatever the policy, the constraint and the delays."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import Report, audit, constraints
from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal
from surefoot.safety.constraints import Constraint
from tests.experiment.honest import CONSTRAINTS, Make, new_world, played, safe

RADII = ["paper", "logdet", "amm", "dual", "residual"]


def clean(journal: Journal) -> Report:
    report = audit(journal, "shop")
    assert [str(finding) for finding in report.findings] == []
    return report


POLICIES: dict[str, tuple[Make, int, dict[str, Any]]] = {
    "CLUCB2 exact": (lambda told: surefoot.CLUCB2(alpha=0.3, **told), 40, {}),
    "SafeLUCB by facts": (safe(optimism="facts"), 150, {}),
    "SafeLUCB joint": (safe(gate="joint"), 150, {}),
    "SafeLUCB ledger": (safe(gate="ledger"), 150, {}),
    "SafeLUCB without a range": (safe(reward_range=None, reward_floor=0.01, realised_share=0.0), 150, {}),
    "SafeLUCB watched": (safe(holdout=0.1, seed=3), 150, {}),
    "SafeLUCB watched, residual": (safe(holdout=0.1, seed=3, radius="residual", watch_share=0.4), 150, {}),
    "CLUCB watched": (lambda told: surefoot.CLUCB(alpha=0.3, holdout=0.1, seed=3, **told), 150, {}),
    "CLUCB2 watched": (lambda told: surefoot.CLUCB2(alpha=0.3, holdout=0.1, seed=3, nesting="latest", **told), 150, {}),
    "UCB": (lambda told: surefoot.UCB(arms=5), 150, {"changing": False}),
    "ConservativeUCB": (
        lambda told: surefoot.ConservativeUCB(arms=5, alpha=0.5, delta=0.1, noise=0.05),
        150,
        {"changing": False},
    ),
    "ConservativeUCB, known": (
        lambda told: surefoot.ConservativeUCB(arms=5, alpha=0.5, delta=0.1, noise=0.05, baseline_reward=0.1),
        150,
        {"changing": False},
    ),
}


@pytest.mark.parametrize("radius", RADII)
@pytest.mark.parametrize("policy", ["LUCB", "CLUCB", "CLUCB2", "SafeLUCB"])
def test_every_radius_of_every_linear_policy_is_rebuilt(policy: str, radius: str) -> None:
    extras: dict[str, dict[str, Any]] = {
        "LUCB": {},
        "CLUCB": {"alpha": 0.3},
        "CLUCB2": {"alpha": 0.3, "nesting": "latest"},
        "SafeLUCB": {"alpha": 0.1, "reward_range": (0.0, 1.0)},
    }

    def make(told: dict[str, Any]) -> Any:
        return getattr(surefoot, policy)(**told, **extras[policy], radius=radius)

    report = clean(played(make, 150, lag=4, held=policy != "LUCB"))  # LUCB knows no baseline
    assert report.tally.learner > 50


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("window", [None, 9.0])
def test_every_policy_passes_with_late_rewards_and_with_windows(name: str, window: float | None) -> None:
    make, rounds, extra = POLICIES[name]
    report = clean(played(make, rounds, window=window, lag=3, **extra))
    assert report.tally.decisions == rounds
    assert report.tally.learner > 0
    assert report.tally.refused["unknown"] == 1
    assert (report.tally.defaults > 0) == (window is not None)


def test_every_constraint_is_known_to_the_audit_and_tried_here() -> None:
    known = [kind.name for kind in Constraint.known.values() if kind.__module__ == Constraint.__module__]
    assert list(constraints.CONSTRAINTS) == list(CONSTRAINTS) == known


@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("misspecification", [0.0, 0.001])
def test_every_constraint_passes(constraint: str, misspecification: float) -> None:
    make = safe(constraint=CONSTRAINTS[constraint], misspecification=misspecification)
    report = clean(played(make, 150, window=6.0, lost=0.0))
    assert report.tally.learner > 20


@pytest.mark.parametrize("dim", [2, 6, 14])
def test_catalogues_history_and_dimensions_pass(dim: int) -> None:
    clean(played(safe(), 150, dim=dim, changing=False, history=30))
    clean(played(safe(), 150, dim=dim, history=30))


def test_nearly_collinear_features_raise_no_alarm() -> None:
    """V is ill-conditioned: what rounding may do there is allowed for, on both sides."""
    journal, rng = open_journal("memory:"), np.random.default_rng(3)
    told: dict[str, Any] = {"dim": 3, "delta": 0.05, "noise": 0.05, "theta_bound": 1.0, "feature_bound": 100.0}
    experiment = Experiment.create(
        journal, "shop", surefoot.CLUCB2(alpha=0.3, nesting="latest", ridge=1e-3, **told), mode="guarded"
    )
    for _ in range(200):
        base = np.outer(rng.uniform(10, 30, size=4), [0.6, 0.5, 0.4])
        answer = experiment.decide(base + 1e-7 * rng.normal(size=(4, 3)), baseline=0)
        experiment.reward(answer.decision_id, float(base[answer.action] @ [0.01, 0.01, 0.01] + 0.05 * rng.normal()))
    assert clean(journal).tally.learner > 0


@pytest.mark.parametrize("seed", [2, 3])
def test_the_guard_of_a_dual_radius_against_rounding_raises_no_alarm(seed: int) -> None:
    """It stands inside the root, where it is a share of energies that are far larger than their difference."""
    make: Make = lambda told: surefoot.CLUCB2(alpha=0.3, nesting="latest", radius="dual", **told)  # noqa: E731
    clean(played(make, 260, seed=seed, lost=0.05, lag=seed, dim=2 + seed))


def test_a_journal_that_contradicts_its_assumptions_is_honest_all_the_same() -> None:
    """Rewards far outside of what theta allows: the alarm is raised, the baseline played, the audit content."""
    journal, rng = open_journal("memory:"), np.random.default_rng(4)
    told: dict[str, Any] = {"dim": 2, "delta": 0.05, "noise": 0.05, "theta_bound": 1.0, "feature_bound": 1.0}
    experiment = Experiment.create(
        journal, "shop", surefoot.SafeLUCB(alpha=0.2, reward_range=(0.0, 1.0), **told), mode="guarded"
    )
    for _ in range(200):
        answer = experiment.decide(rng.uniform(0, 0.7, size=(3, 2)), baseline=0)
        experiment.reward(answer.decision_id, 5.0)
    assert clean(journal).tally.is_refuted


def test_a_live_journal_may_grow_while_it_is_audited(tmp_path: Path) -> None:
    with open_journal(tmp_path / "live.db") as journal:
        played(safe(), 60, journal=journal)
        experiment = Experiment.open(journal, "shop")
        rows = new_world(5).round()[0]

        def grow(done: int, total: int) -> None:
            experiment.decide(rows, baseline=0)

        report = audit(journal, "shop", progress=grow)
        assert [str(finding) for finding in report.findings] == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["SafeLUCB", "SafeLUCB ledger", "CLUCB2", "ConservativeUCB"])
def test_a_hundred_thousand_honest_decisions_raise_no_alarm(name: str, tmp_path: Path) -> None:
    make: Make = {
        "SafeLUCB": safe(),
        "SafeLUCB ledger": safe(gate="ledger"),
        "CLUCB2": lambda told: surefoot.CLUCB2(alpha=0.3, nesting="latest", **told),
        "ConservativeUCB": POLICIES["ConservativeUCB"][0],
    }[name]
    journal = played(make, 100_000, window=200.0, lag=5, lost=0.0, changing=name != "ConservativeUCB")
    assert clean(journal).tally.decisions == 100_000
