"""Worlds that break the model do what they say, and show what a promise rests on."""

import math
from typing import Any, Literal

import numpy as np
import pytest
from scipy import stats

import surefoot
from surefoot.errors import ConfigError
from surefoot.simulation import (
    Baseline,
    Bounded,
    DriftingWorld,
    MisspecifiedWorld,
    Outcome,
    Problem,
    Spec,
    read_sweep,
    simulate,
)

DELTA, FLUKE = 0.01, 1e-6


def broken(outcome: Outcome) -> int:
    return int((outcome.violations[:, -1, 0] > 0).sum())


def allowed(runs: int) -> int:
    """More broken runs than this have a chance below FLUKE if each breaks with probability DELTA."""
    return int(stats.binom.isf(FLUKE, runs, DELTA))


def test_theta_goes_to_the_other_end_and_back() -> None:
    drifts: list[Literal["wave", "jump"]] = ["wave", "jump"]
    for drift in drifts:
        world = DriftingWorld(dim=3, actions=4, period=40, drift=drift, baseline=Baseline(rank=1))
        run = world.realise(np.random.SeedSequence(1))
        block = run.take(81)
        thetas = [
            np.linalg.lstsq(rows, means, rcond=None)[0] for rows, means in zip(block.features, block.means, strict=True)
        ]
        assert thetas[0] == pytest.approx(run.theta)
        other = thetas[20]
        assert np.linalg.norm(other) == pytest.approx(1.0)
        assert np.linalg.norm(other - run.theta) > 0.1
        assert thetas[60] == pytest.approx(other)
        assert thetas[40] == pytest.approx(run.theta)
        assert thetas[80] == pytest.approx(run.theta)
        halfway = run.theta if drift == "jump" else (run.theta + other) / 2
        assert thetas[10] == pytest.approx(halfway)
        assert max(np.linalg.norm(theta) for theta in thetas) <= run.theta_bound
        assert 0 <= block.means.min() <= block.means.max() <= 1


@pytest.mark.parametrize("declared", [True, False])
def test_no_mean_is_further_from_the_linear_one_than_epsilon(declared: bool) -> None:
    world = MisspecifiedWorld(dim=5, actions=30, epsilon=0.07, declared=declared)
    for run in world.realisations(3, range(5)):
        block = run.take(200)
        errors = block.means - block.features @ run.theta
        assert 0.069 < np.abs(errors).max() <= 0.07
        assert 0 <= block.means.min() <= block.means.max() <= 1
        assert run.problem(block).misspecification == (0.07 if declared else 0.0)
        # No other theta would do: what the best fit leaves is of the size of the error.
        rows, means = block.features.reshape(-1, 5), block.means.ravel()
        left = means - rows @ np.linalg.lstsq(rows, means, rcond=None)[0]
        assert np.abs(left).max() > 0.03


def test_a_declared_error_is_allowed_for_and_one_that_is_not_breaks_the_floor() -> None:
    settings: dict[str, Any] = {"dim": 3, "actions": 20, "epsilon": 0.02, "waves": 8.0, "baseline": Baseline(rank=1)}
    runs, spec = 60, Spec("SafeLUCB", alpha=0.02, delta=DELTA, reward_range=(0.0, 1.0))
    kept, lost = (
        simulate(MisspecifiedWorld(**settings, rewards=Bounded(0.3), declared=known), [spec], runs=runs, horizon=2500)[
            0
        ]
        for known in (True, False)
    )
    assert broken(kept) <= allowed(runs)
    assert kept.measures["baseline_rounds"][:, -1].mean() < 0.9 * 2500
    assert broken(lost) > allowed(runs)


class Guarded:
    """LUCB proposes, a guard decides, and LUCB learns what was played."""

    def __init__(self, problem: Problem) -> None:
        settings: dict[str, Any] = problem.settings(ridge=0.3, delta=0.05)
        self.learner = surefoot.LUCB(dim=problem.dim, **settings)
        self.guard = surefoot.Guard(alpha=0.05, delta=DELTA, promise="played", seed=problem.seed)
        self.rows: dict[int, Any] = {}

    def decide(self, features: Any, *, baseline: int, baseline_reward: float | None) -> Any:
        proposal = self.learner.decide(features)
        self.learner.abandon(proposal)
        decision = self.guard.decide(baseline=baseline, proposal=proposal.action)
        self.rows[decision.round] = features[decision.action]
        return decision

    def observe(self, decision: Any, reward: float) -> None:
        self.guard.observe(decision, reward)
        self.learner.learn_logged(self.rows.pop(decision.round), reward)


def test_drift_breaks_the_floor_of_a_linear_model_and_a_guard_keeps_it() -> None:
    runs, horizon = 20, 2400
    world = DriftingWorld(
        dim=4, actions=10, period=horizon, drift="jump", baseline=Baseline(rank=2), rewards=Bounded(0.1)
    )
    policies: list[Any] = [Spec("SafeLUCB", alpha=0.05, delta=DELTA), Spec(Guarded, alpha=0.05)]
    linear, guarded = simulate(world, policies, runs=runs, horizon=horizon)
    assert broken(linear) > allowed(runs)
    assert broken(guarded) <= allowed(runs)
    assert guarded.measures["baseline_rounds"][:, -1].mean() < 0.8 * horizon


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: DriftingWorld(period=0.0), "period"),
        (lambda: DriftingWorld(drift="sideways"), "'wave' or 'jump'"),  # type: ignore[arg-type]
        (lambda: MisspecifiedWorld(epsilon=0.5), "epsilon < 0.5"),
        (lambda: MisspecifiedWorld(epsilon=-0.1), "epsilon"),
        (lambda: MisspecifiedWorld(waves=math.nan), "waves"),
        (lambda: MisspecifiedWorld(declared=1), "true or false"),  # type: ignore[arg-type]
    ],
)
def test_settings_out_of_range_are_refused(make: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        make()


def test_a_sweep_knows_them_by_name(tmp_path: Any) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(
        """
        runs = 2
        horizon = 20
        worlds.moves = {kind = "drifting", period = 10.0, drift = "jump"}
        worlds.bent = {kind = "misspecified", epsilon = 0.1, declared = false}
        policies = [{policy = "LUCB"}]
        """
    )
    moves, bent = (part.world for part in read_sweep(file).parts)
    assert moves == DriftingWorld(period=10.0, drift="jump")
    assert bent == MisspecifiedWorld(epsilon=0.1, declared=False)
