"""What a replay may show: gains where the learner played, intervals of rare rewards, alarms, and the verdict."""

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

import surefoot
from surefoot.replay.estimates import Estimate, ImportanceWeighting, Moments, RareSum, reaches, weights
from surefoot.replay.evaluation import EvaluatorName, ReplayOutcome, replay
from surefoot.replay.log import ArrayLog
from surefoot.replay.replayed_policy import Declared
from surefoot.replay.verdict import verdict_of
from surefoot.simulation.policy_specs import Problem, Spec
from tests.replay.logs import linear_log
from tests.replay.test_coverage import decisions


@pytest.mark.parametrize("count", [0, 1, 3, 20])
def test_of_equal_terms_the_interval_is_the_exact_one_of_a_poisson_count(count: int) -> None:
    low, high = RareSum(2.0 * count, 4.0 * count, 2.0, 1e3).ends(0.9)
    assert low == pytest.approx(chi2.ppf(0.05, 2 * count) if count else 0.0)
    assert high == pytest.approx(chi2.ppf(0.95, 2 * count + 2))


def test_the_ends_of_a_difference_are_put_together_by_their_squares() -> None:
    plus, minus = RareSum(9.0, 9.0, 1.0, 1e3), RareSum(4.0, 4.0, 1.0, 1e3)
    down, up = reaches(plus, minus, 0.95)
    assert down == pytest.approx(math.hypot(9 - plus.ends(0.95)[0], minus.ends(0.95)[1] - 4))
    assert up == pytest.approx(math.hypot(plus.ends(0.95)[1] - 9, 4 - minus.ends(0.95)[0]))


def test_a_mean_near_either_end_of_its_range_has_an_interval_within_it() -> None:
    for value, other in ((0.0, 1.0), (1.0, 0.0)):
        moments = Moments()
        moments.add(np.array([value] * 498 + [other] * 2))
        found = moments.interval(0.95, (0.0, 1.0))
        assert found.method == "gamma"
        assert 0 <= found.low < found.value < found.high <= 1
        # Farther into the range than toward its end: a count of two may well have been five.
        inward, outward = sorted((found.high - found.value, found.value - found.low), reverse=True)
        assert inward > 2 * outward
    plain = Moments()
    plain.add(np.array([0.0, 1.0] * 200))
    assert plain.interval(0.95, (0.0, 1.0)).method == "normal"


def test_no_reward_at_all_leaves_room_above_zero() -> None:
    weight = weights(np.arange(900) % 3, np.zeros(900, dtype=np.int64), np.full(900, 1 / 3))
    both = np.stack([weight, weight])
    found = ImportanceWeighting(bounds=(0.0, 1.0))
    found.add(both, np.zeros(900), both * 0)
    for name in ("ips", "snips", "dr"):
        assert found.estimate(name, "reward", 0.95).high == pytest.approx(chi2.ppf(0.975, 2) / 2 / 300)
        assert found.estimate(name, "gain", 0.95).high == 0


TIMID = Declared(noise=50.0, theta_bound=1.0, baseline_reward=0.6)  # noise that no learner can see through


@pytest.mark.parametrize("evaluator", ["rejection", "importance"])
def test_a_learner_that_was_never_let_in_gained_nothing(evaluator: EvaluatorName) -> None:
    truth = linear_log(3_000, seed=5)
    (outcome,) = replay(truth.log, [Spec("CLUCB2", alpha=0.01)], declared=TIMID, evaluator=evaluator)
    assert outcome.learner_rounds == 0
    gain = outcome.main["gain"]
    assert (gain.low, gain.value, gain.high) == (0, 0, 0)
    verdict = verdict_of([outcome])
    assert verdict is not None
    assert verdict == ("The learner never played: no lift, and nothing at risk.", False)


def test_the_gain_is_that_of_the_contexts_in_which_policy_and_baseline_differ() -> None:
    """In rich contexts all actions pay alike and much, in poor ones the policy's more: rich ones must not count."""
    rng = np.random.default_rng(0)
    rich = rng.random(40_000) < 0.5
    features = np.zeros((40_000, 2, 3))
    features[:, 0, 0], features[:, 1, 0] = rich, rich
    features[:, 0, 1], features[:, 1, 2] = ~rich, ~rich
    means = features @ [0.9, 0.1, 0.3]
    actions = rng.integers(0, 2, size=40_000)
    rewards = (rng.random(40_000) < means[np.arange(40_000), actions]).astype(float)
    log = ArrayLog(features=features, actions=actions, rewards=rewards, baselines=0, propensities=np.full(40_000, 0.5))
    declared = Declared(0.5, 1.0, 0.5, (0.0, 1.0))
    (outcome,) = replay(log, [Spec("LUCB")], declared=declared)
    gain, chosen = outcome.main["gain"], decisions(log, declared, "rejection")[0]
    assert gain.low <= 0.2 * (chosen == 1).mean() <= gain.high
    assert not (chosen[rich] == 1).any()
    assert gain.high - gain.low < 0.02


def test_a_verdict_says_whether_it_pays_and_how_sure_that_is() -> None:
    truth = linear_log(30_000, seed=4)
    outcomes = replay(truth.log, [Spec("LUCB"), Spec("CLUCB", alpha=0.1)], declared=truth.declared)
    text, is_good = verdict_of(outcomes) or ("", False)
    assert is_good
    assert text.startswith("It pays: CLUCB, α = 0.1 has a lift of +0.")
    assert ", 95% sure; unrestricted from round" in text
    assert "Every policy with a floor stayed above it." in text
    assert verdict_of(outcomes[:1]) is None


def outcome_of(name: str, gain: tuple[float, float, float], below: int) -> ReplayOutcome:
    estimates = {"rejection": {"gain": Estimate(gain[1], gain[0], gain[2]), "baseline": Estimate(0.5, 0.4, 0.6)}}
    spec = Spec(name, alpha=0.1)
    return ReplayOutcome(spec, "rejection", 900, 300, 30, None, 0.8, {0.1: below}, estimates, {})


def test_the_verdict_is_about_the_surest_gain_and_else_about_the_largest() -> None:
    small, large = outcome_of("CLUCB", (-1e-5, 1e-6, 1e-5), 0), outcome_of("SafeLUCB", (-0.01, 0.02, 0.05), 22)
    text, is_good = verdict_of([small, large]) or ("", True)
    assert text.startswith("Whether it pays is open: SafeLUCB")
    assert "below the floor at times: SafeLUCB, α = 0.1 (22 of 300 rounds)." in text
    assert not is_good
    sure = outcome_of("CLUCB2", (0.001, 0.002, 0.003), 0)
    assert (verdict_of([small, large, sure]) or ("", False))[0].startswith("It pays: CLUCB2")


def contradicted() -> tuple[ArrayLog, Declared]:
    """Rewards near 0.9 under a declared theta of length 0.05: no theta fits."""
    truth = linear_log(2_000, seed=1, noise=0.01)
    return truth.log, Declared(noise=0.05, theta_bound=0.05, baseline_reward=0.02)


@pytest.mark.parametrize("evaluator", ["rejection", "importance"])
def test_an_alarm_is_shown_with_its_round_and_what_followed(evaluator: EvaluatorName) -> None:
    log, declared = contradicted()

    def own(problem: Problem) -> surefoot.SafeLUCB:
        settings: dict[str, Any] = dict(problem.settings(ridge=1.0, delta=0.001))
        return surefoot.SafeLUCB(dim=problem.dim, alpha=0.3, **settings)

    specs: list[Spec | Spec] = [Spec("SafeLUCB", alpha=0.3, ridge=1.0), Spec(own, alpha=0.3)]
    compiled, played = replay(log, specs, declared=declared, evaluator=evaluator)
    assert compiled.alarm is not None
    round_, line = compiled.alarm
    assert played.alarm == compiled.alarm
    verdict = verdict_of([compiled])
    assert verdict is not None
    assert not verdict[1]
    assert f"in round {round_:,} (line {line:,})" in verdict[0]
    assert compiled.as_dict()["alarm"] == {"round": round_, "line": line}
    # From there on nobody but the baseline plays.
    share = compiled.curves["learner_share"] * compiled.curves["round"]
    after = compiled.curves["round"] >= round_
    assert np.ptp(share[after].round()) == 0


def test_without_an_alarm_there_is_none_to_show() -> None:
    truth = linear_log(2_000, seed=1)
    (outcome,) = replay(truth.log, [Spec("SafeLUCB", alpha=0.3)], declared=truth.declared)
    assert outcome.alarm is None
    assert outcome.as_dict()["alarm"] is None
