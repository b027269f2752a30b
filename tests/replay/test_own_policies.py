"""Policies of one's own on a log: they are evaluated as compiled ones are, by every evaluator."""

from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import ConfigError, PolicyError
from surefoot.replay import Declared, datasets, replay
from surefoot.replay.evaluation import EvaluatorName, ReplayOutcome
from surefoot.replay.report import report_html
from surefoot.simulation import Problem, Spec
from tests.own_policy import EpsilonGreedy
from tests.replay.logs import Truth, linear_log

EVALUATORS: tuple[EvaluatorName, ...] = ("rejection", "importance", "full")
SPECS = [
    Spec("LUCB", delta=0.05, ridge=0.3),
    Spec("CLUCB", alpha=0.3, delta=0.05, ridge=0.3),
    Spec("CLUCB2", alpha=0.3, delta=0.05, ridge=0.3),
    Spec("SafeLUCB", alpha=0.3, delta=0.05, ridge=0.3),
]


def own(spec: Spec) -> Spec:
    def make(problem: Problem) -> Any:
        extra: dict[str, Any] = {} if spec.alpha is None else {"alpha": spec.alpha}
        extra |= {"nesting": "latest"} if spec.policy == "CLUCB2" else {}
        return getattr(surefoot, spec.policy)(dim=problem.dim, **problem.settings(ridge=0.3, delta=0.05), **extra)

    return Spec(make, name=spec.policy, alpha=spec.alpha)


def log_for(evaluator: str, rounds: int = 500) -> Truth:
    return linear_log(rounds, seed=3, full=evaluator == "full", noise=0.05)


def run(truth: Truth, policies: list[Any], evaluator: EvaluatorName) -> list[ReplayOutcome]:
    return replay(truth.log, policies, declared=truth.declared, evaluator=evaluator, watched=[0.3])


@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.policy)
@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_an_object_is_evaluated_as_the_compiled_policy_is(spec: Spec, evaluator: EvaluatorName) -> None:
    compiled, found = run(log_for(evaluator), [spec, own(spec)], evaluator)
    assert compiled.learner_rounds > 20
    ours, theirs = compiled.as_dict(), found.as_dict()
    margin, same = (np.array(one["curves"].pop("margin"), dtype=np.float64) for one in (ours, theirs))
    np.testing.assert_allclose(margin, same, rtol=1e-9)
    assert theirs == ours


@pytest.mark.parametrize("evaluator", EVALUATORS)
def test_a_policy_written_in_python_stands_beside_ours_in_the_report(evaluator: EvaluatorName) -> None:
    truth = log_for(evaluator)
    mine = Spec(lambda problem: EpsilonGreedy(dim=problem.dim, seed=problem.seed), name="greedy <ridge>")
    outcomes = run(truth, [mine, SPECS[3]], evaluator)
    assert outcomes[0].main["gain"].value > 0
    html = report_html(truth.log, outcomes, settings={})
    assert "greedy &lt;ridge&gt;" in html
    assert "SafeLUCB" in html


def test_a_new_object_is_copied_and_a_rejected_round_leaves_it_as_it_was() -> None:
    """It draws by the number of its round, so that a round counted wrongly would change what follows."""
    truth = log_for("rejection")
    policy = EpsilonGreedy(dim=3, epsilon=0.5, seed=5)
    first, second = run(truth, [policy, Spec(lambda p: EpsilonGreedy(dim=3, epsilon=0.5, seed=5), name="b")],
                        "rejection")  # fmt: skip
    assert policy.rounds == 0
    assert 0 < first.rounds < 500
    assert (first.rounds, first.main) == (second.rounds, second.main)
    batch, twin, counted = truth.log.batch, EpsilonGreedy(dim=3, epsilon=0.5, seed=5), 0
    for t in range(len(batch)):
        asked = surefoot.Policy.from_state(twin.state()).decide(batch.features[t], baseline=0)
        if asked.action == batch.actions[t]:
            twin.observe(twin.decide(batch.features[t], baseline=0), float(batch.rewards[t, 0]))
            counted += 1
    assert counted == first.rounds


def test_a_real_log_is_replayed_with_a_policy_of_ones_own() -> None:
    log = datasets.wine()
    declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.6)
    mine = Spec(lambda problem: EpsilonGreedy(dim=problem.dim), name="greedy")
    (found,) = replay(log, [mine], declared=declared, evaluator="full")
    assert found.rows == log.rows
    assert found.main["reward"].value > 0.5


def test_an_error_names_the_policy_and_the_line() -> None:
    class Breaks(EpsilonGreedy):
        def decide(self, features: Any, **asked: Any) -> surefoot.Decision:
            if self.rounds == 7:
                raise KeyError("lost")
            return super().decide(features, **asked)

    truth = log_for("full")
    line = int(truth.log.batch.lines[7])
    with pytest.raises(PolicyError, match=f"'Breaks' failed in line {line} of the log: KeyError: 'lost'"):
        run(truth, [Breaks(dim=3)], "full")


def test_what_others_played_must_be_learnable_for_importance_weighting() -> None:
    class First:
        def decide(self, features: Any, **asked: Any) -> Any:
            return type("Choice", (), {"action": 0})()

        def observe(self, decision: Any, reward: float) -> None:
            pass

    truth = log_for("importance")
    with pytest.raises(ConfigError, match="learn_logged"):
        run(truth, [First()], "importance")
    (found,) = run(log_for("full"), [First()], "full")
    assert found.learner_share == 1.0


def test_decisions_that_were_never_played_do_not_stay_open() -> None:
    made: list[EpsilonGreedy] = []

    def make(problem: Problem) -> EpsilonGreedy:
        made.append(EpsilonGreedy(dim=problem.dim))
        return made[0]

    run(log_for("importance", 50), [make], "importance")
    assert (made[0].rounds, made[0].pending) == (50, ())


def test_a_logged_row_is_learned_without_counting_a_round() -> None:
    policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.1, noise=0.1, theta_bound=1.0, feature_bound=1.0)
    twin = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.1, noise=0.1, theta_bound=1.0, feature_bound=1.0)
    twin.warm_start([[0.6, 0.2]], [0.4])
    policy.learn_logged([0.6, 0.2], 0.4)
    assert policy.rounds == 0
    assert np.array_equal(policy.ridge.theta, twin.ridge.theta)
    for row, words in (([3.0, 0.0], "feature_bound"), ([0.1], "2 entries"), ([np.nan, 0.0], "finite")):
        with pytest.raises(surefoot.errors.InputError, match=words):
            policy.learn_logged(row, 0.4)
