"""`plan`: the worlds it draws, the answers it gives."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import surefoot
from surefoot.errors import ConfigError
from surefoot.reports.plan import notes, rows
from surefoot.simulation import guard_simulation, simulate_guard
from surefoot.simulation.rollout_plan import PlanWorld, Rollout, plan, rewards_until

COMMON = {"dim": 3, "actions": 8, "noise": 0.1, "baseline_reward": 0.4, "lift": 0.25, "per_day": 300.0}


def test_planned_worlds_have_the_baseline_and_the_gain_asked_for() -> None:
    world = PlanWorld(dim=3, actions=8, baseline_reward=0.4, lift=0.25)
    for realisation in world.realisations(0, range(50)):
        block = realisation.take(1)
        assert block.baselines[0] == 0
        assert block.means[0, 0] == pytest.approx(0.4)
        assert block.means[0].max() == pytest.approx(0.5)
        assert block.means[0].min() >= 0
        assert np.linalg.norm(block.features[0], axis=1).max() <= realisation.feature_bound * (1 + 1e-12)
        assert np.linalg.norm(realisation.theta) <= realisation.theta_bound * (1 + 1e-12)


@pytest.mark.parametrize("known", [True, False])
def test_a_larger_alpha_frees_the_learner_sooner_and_gains_more(known: bool) -> None:
    found = plan(**COMMON, alphas=[0.05, 0.4], days=20, runs=30, known=known)  # type: ignore[arg-type]
    assert found.policies == ["SafeLUCB", "CLUCB" if known else "CLUCB2"]
    for policy in found.policies:
        careful, bold = found.of(policy)
        _is_sooner_and_gains_more(careful, bold)
    for safe, paper in zip(*(found.of(policy) for policy in found.policies), strict=True):
        assert safe.baseline_rounds < paper.baseline_rounds
        assert math.isinf(safe.bound_rounds)
        assert math.isfinite(paper.bound_rounds) == known


def _is_sooner_and_gains_more(careful: Rollout, bold: Rollout) -> None:
    assert bold.free_round < careful.free_round
    assert bold.free_day == pytest.approx(bold.free_round / 300)
    assert bold.gained > careful.gained
    assert careful.violations == bold.violations == 0
    for answer in (careful, bold):
        assert answer.worst_seen_share <= answer.alpha == answer.at_stake_share
        assert answer.baseline_rounds <= answer.bound_rounds
        assert 0 < answer.gained_share < 0.25


def test_a_learner_that_is_not_free_in_time_is_said_to_be_so() -> None:
    found = plan(**{**COMMON, "noise": 2.0}, alphas=[0.01], days=1, runs=5)  # type: ignore[arg-type]
    answer = found.of("CLUCB")[0]
    assert answer.free_share == 0.0
    assert math.isinf(answer.free_round)
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert data["answers"][1]["free_round"] is None


def test_safelucb_is_free_sooner_when_it_is_told_the_range_of_rewards() -> None:
    free = [
        plan(**COMMON, alphas=[0.05], days=20, runs=30, known=False, reward_range=args, policies=["safe"])  # type: ignore[arg-type]
        for args in (None, (0.0, 1.0))
    ]
    without, ranged = (found.answers[0] for found in free)
    assert ranged.baseline_rounds < without.baseline_rounds
    assert ranged.violations == without.violations == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"per_day": 0.0}, "`per_day > 0` must hold"),
        ({"lift": -0.1}, "`lift > 0` must hold"),
        ({"baseline_reward": 0.0}, "`baseline_reward > 0` must hold"),
        ({"alphas": []}, "`alphas` must hold at least one alpha"),
        ({"alphas": [1.5]}, "`0 < alpha < 1` must hold"),
        ({"policies": ["papre"]}, r"but got 'papre'. Did you mean 'paper'\?"),
        ({"policies": []}, "must hold safe, paper or both"),
        ({"reward_range": (0.1, 1.0)}, "must hold every mean reward of the worlds that are drawn, 0 to 0.5"),
        ({"reward_range": (0.0, 0.4)}, "A range that is not true voids the guarantee"),
        ({"runs": 1}, "`runs` must be a whole number >= 2"),
        ({"dim": 1}, "`dim` must be a whole number >= 2"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        plan(**{**COMMON, "alphas": [0.1], **change})  # type: ignore[arg-type]


CLICKS = {"dim": 3, "actions": 4, "noise": 0.5, "baseline_reward": 0.05, "lift": 0.5, "per_day": 2_000, "days": 4}


def test_clicks_free_the_learner_sooner_than_their_noise_alone() -> None:
    settings: dict[str, Any] = {**CLICKS, "alphas": [0.3], "runs": 8, "known": False, "policies": ["safe"]}
    by_noise, by_clicks = (plan(**settings, clicks=clicks, reward_range=(0.0, 1.0)) for clicks in (False, True))
    assert by_clicks.answers[0].baseline_rounds < 0.7 * by_noise.answers[0].baseline_rounds
    assert by_clicks.answers[0].violations == 0
    assert by_clicks.settings["noise"] == 0.5


def test_a_plan_for_clicks_says_when_it_is_hopeless() -> None:
    """86 rewards of the better arm at alpha 0.1: at 3% and a tenth of 100 rounds a day, 288 days."""
    settings: dict[str, Any] = {**CLICKS, "baseline_reward": 0.02, "per_day": 100, "alphas": [0.1], "runs": 2}
    found = " ".join(notes(plan(**settings, clicks=True)))
    assert "86 at 0.1" in found
    assert "takes 288 days" in found
    assert "4 days are hopeless" in found
    assert "guard" in found
    assert "hopeless" not in " ".join(notes(plan(**{**settings, "per_day": 100_000}, clicks=True)))


def test_what_is_needed_stands_beside_the_days_until_free() -> None:
    settings: dict[str, Any] = {
        **CLICKS,
        "alphas": [0.3],
        "runs": 8,
        "known": False,
        "policies": ["safe"],
        "clicks": True,
    }
    found = plan(**settings)
    (answer,) = found.answers
    # (r / 0.3 + 0.7^2 / 0.7) 2 ln(1000) / (r - 0.7)^2 / 0.05 rounds, 2,000 a day, at r = 1.5.
    assert answer.needed_day == pytest.approx((5.0 + 0.7) * 2 * np.log(1000) / 0.64 / 0.05 / 2_000)
    shown = dict(rows(found, "SafeLUCB"))
    assert shown["  until enough rewards have come, at a share alpha"] == [f"{answer.needed_day:,.1f}"]
    assert shown["rewards seen until free"] == [f"{answer.needed_times:.1f} x what is needed"]
    plain = plan(**{**settings, "clicks": False})
    assert not {"  until enough rewards have come, at a share alpha", "rewards seen until free"} & set(
        dict(rows(plain, "SafeLUCB"))
    )
    assert plain.as_dict()["answers"][0]["needed_day"] is None


def test_rewards_until_a_round_are_what_the_run_had_earned() -> None:
    found = plan(**CLICKS, alphas=[0.3], runs=4, known=False, policies=["safe"], clicks=True)  # type: ignore[arg-type]
    (outcome,) = found.outcomes
    end = float(outcome.checkpoints[-1])
    learner, baseline = rewards_until(outcome, np.full(4, end + 1), 0.05)
    kept = outcome.measures["baseline_rounds"][:, -1]
    assert baseline == pytest.approx(0.05 * kept)
    assert learner + baseline == pytest.approx(outcome.measures["earned"][:, -1])


def test_means_of_clicks_are_shares() -> None:
    with pytest.raises(ConfigError, match=r"must hold for clicks, but it is 1\.2"):
        plan(**{**CLICKS, "baseline_reward": 0.8}, alphas=[0.1], clicks=True)  # type: ignore[arg-type]


def test_a_guard_is_planned_by_itself_or_beside_the_others() -> None:
    from typer.testing import CliRunner

    from surefoot.cli.commands import app

    args = ["plan", "--baseline-reward", "0.3", "--lift", "0.5", "--per-day", "500", "--days", "4", "--runs", "10"]
    alone = CliRunner().invoke(app, [*args, "--policy", "guard", "--alpha", "0.1,0.3", "--json"])
    answers = json.loads(alone.stdout)["guard"]
    assert [answer["alpha"] for answer in answers] == [0.1, 0.3]
    assert answers[1]["half_day"] < answers[0]["half_day"]
    assert answers[1]["gained"] > answers[0]["gained"] > 0
    beside = CliRunner().invoke(app, [*args, "--policy", "safe,guard", "--alpha", "0.3", "--json"])
    assert set(json.loads(beside.stdout)) == {"answers", "rounds", "days", "settings", "guard"}
    shown = CliRunner().invoke(app, [*args, "--policy", "safe,guard", "--alpha", "0.3"])
    assert "days until half of the rounds" in shown.stdout


def test_a_long_plan_of_a_guard_is_not_that_of_its_first_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty days of which two can be simulated: all of them are told, and what is not known is not denied."""
    from typer.testing import CliRunner

    from surefoot.cli.commands import app

    monkeypatch.setattr(guard_simulation, "MOST_ROUNDS", 10_000)
    args = ["plan", "--policy", "guard", "--baseline-reward", "0.3", "--per-day", "5000", "--days", "30"]
    better = [*args, "--lift", "0.3", "--alpha", "0.2", "--runs", "10", "--delta", "0.05"]
    (answer,) = json.loads(CliRunner().invoke(app, [*better, "--json"]).stdout)["guard"]
    most = 0.3 * 0.3 * 30 * 5_000
    assert 0.9 * most < answer["gained"] < most
    assert answer["gained_share"] == pytest.approx(answer["gained"] / (0.3 * 30 * 5_000))
    assert answer["simulated_days"] == 2.0
    shown = CliRunner().invoke(app, [*args, "--lift", "0", "--alpha", "0.05", "--runs", "10"], env={"COLUMNS": "200"})
    assert "30 days, 2 of them simulated" in " ".join(shown.stdout.split())
    assert "more than 2" in shown.stdout
    assert "not in time" not in shown.stdout


def test_of_rare_rewards_a_round_may_stand_for_several(monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"baseline_reward": 0.01, "lift": 0.2, "per_day": 10_000, "days": 4, "delta": 0.05}
    (exact,) = guard_simulation.plan_guard(**settings, alphas=[0.2], runs=24, seed=1)
    monkeypatch.setattr(guard_simulation, "MOST_ROUNDS", 10_000)
    (found,) = guard_simulation.plan_guard(**settings, alphas=[0.2], runs=24, seed=2)
    assert found.simulated_days == exact.simulated_days == 4.0
    assert found.gained == pytest.approx(exact.gained, rel=0.15)
    assert found.baseline_rounds == pytest.approx(exact.baseline_rounds, rel=0.15)
    assert found.gained_share == pytest.approx(exact.gained_share, rel=0.15)
    assert found.half_day == pytest.approx(exact.half_day, rel=0.6)
    assert found.broken <= binom.ppf(1 - 1e-4, 24, 0.05)


def test_a_share_that_is_lost_again_was_not_reached() -> None:
    """A learner that is good until it turns bad: its share was above a half for a while, and is not in the end."""
    guard = surefoot.Guard(alpha=0.2, delta=0.05)
    found = simulate_guard(guard, lambda t, share, rng: (0.8 if t < 2_000 else 0.0, 0.4), rounds=6_000, runs=4)
    assert found.shares[:2_000].max() > 0.9
    assert (found.kept_from[0.5] == 6_000).all()
    steady = simulate_guard(guard, lambda t, share, rng: (0.8, 0.4), rounds=2_000, runs=4)
    assert (steady.kept_from[0.5] < 2_000).all()
    assert steady.shares[steady.kept_from[0.5].max() :].min() >= 0.5


def test_a_plan_says_how_far_it_has_come() -> None:
    seen: list[tuple[int, int]] = []
    asked: dict[str, Any] = COMMON | {"per_day": 2.0, "days": 5, "runs": 45, "alphas": [0.1, 0.2], "policies": ["safe"]}
    plan(**asked, progress=lambda *rounds: seen.append(rounds))
    total = 2 * 45 * 10  # policies, runs, rounds
    assert seen[0] == (0, total)
    assert seen[-1] == (total, total)
    assert len(seen) == 4  # three tasks of at most 20 runs each
    assert sorted(seen) == seen
    seen.clear()
    guarded: dict[str, Any] = {
        "baseline_reward": 0.3,
        "lift": 0.1,
        "per_day": 2.0,
        "days": 5.0,
        "delta": 0.05,
        "runs": 3,
    }
    guard_simulation.plan_guard(**guarded, alphas=[0.1, 0.2], progress=lambda *rounds: seen.append(rounds))
    assert seen == [(0, 60), (30, 60), (60, 60)]
