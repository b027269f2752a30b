"""The adapters: what each one tells its library, what it refuses, and that a missing library is named."""

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import vowpalwabbit
from skl2onnx import to_onnx
from sklearn.cluster import KMeans
from sklearn.linear_model import LinearRegression, LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import GaussianNB

import surefoot
from surefoot.errors import ConfigError, InputError
from surefoot.learners import CallableLearner, LinearLearner, OnnxLearner, SklearnLearner, VWLearner
from surefoot.learners.vw_learner import examples

ACTIONS = ["a", "b"]


class Spy(SGDClassifier):  # type: ignore[misc]
    """Writes down what it is fitted to."""

    seen: list[Any] = []  # noqa: RUF012

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Any:
        self.seen.append((X.tolist(), list(y), list(sample_weight)))
        return super().partial_fit(X, y, classes=classes, sample_weight=sample_weight)


class Unweighted(SGDClassifier):  # type: ignore[misc]
    """Cannot weight its rounds."""

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Any:
        return super().partial_fit(X, y, classes=classes)


def test_a_classifier_is_fitted_to_what_paid_with_reward_over_probability() -> None:
    Spy.seen.clear()
    learner = SklearnLearner(Spy(), actions=ACTIONS, max_weight=8.0)
    learner.learn([1.0, 2.0], "b", 0.6, 0.2, actions=ACTIONS)
    learner.learn([1.0, 2.0], "a", 0.0, 0.2, actions=ACTIONS)
    learner.learn([1.0, 2.0], "a", 1.0, 0.01, actions=ACTIONS)
    assert [(labels, weights) for _, labels, weights in Spy.seen] == [
        ([1], pytest.approx([3.0])),
        ([0], [8.0]),
    ]


def test_regressors_try_what_is_new_and_then_what_pays() -> None:
    learner = SklearnLearner(SGDRegressor(random_state=0), actions=ACTIONS, epsilon=0.0)
    learner.learn([1.0], "a", 0.9, 1.0, actions=ACTIONS)
    assert learner.sample([1.0], ACTIONS).probabilities == [0.0, 1.0]
    for _ in range(50):
        learner.learn([1.0], "a", 0.9, 1.0, actions=ACTIONS)
        learner.learn([1.0], "b", 0.1, 1.0, actions=ACTIONS)
    assert learner.sample([1.0], ACTIONS).probabilities == [1.0, 0.0]


@pytest.mark.parametrize(
    ("estimator", "given", "what"),
    [
        (LinearRegression(), {}, "partial_fit"),
        (KMeans(), {}, "partial_fit"),
        (Unweighted(), {}, "sample_weight"),
        (SGDRegressor(), {"epsilon": 1.5}, "epsilon <= 1"),
        (SGDRegressor(), {"actions": []}, "empty"),
        (SGDRegressor(), {"max_weight": 0.0}, "max_weight"),
    ],
)
def test_estimators_and_settings_that_cannot_work_are_refused(estimator: Any, given: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        SklearnLearner(estimator, **{"actions": ACTIONS, **given})


def test_unknown_actions_and_contexts_that_are_no_rows_are_refused() -> None:
    learner = SklearnLearner(SGDRegressor(), actions=ACTIONS)
    with pytest.raises(InputError, match="one of those declared"):
        learner.propose([1.0], ["a", "c"])
    with pytest.raises(InputError, match="one of those declared"):
        learner.propose([1.0], [["a"]])
    with pytest.raises(InputError, match="context"):
        learner.propose("text", ACTIONS)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_model_that_answers_nan_is_refused() -> None:
    learner = SklearnLearner(GaussianNB(), actions=ACTIONS)
    learner.learn([1.0], "a", 1.0, 1.0, actions=ACTIONS)
    with pytest.raises(InputError, match="must have a score"):
        learner.propose([1.0], ACTIONS)


class Workspace(vowpalwabbit.Workspace):  # type: ignore[misc]
    """Writes down what it is told."""

    def learn(self, lines: Any) -> None:
        self.told = list(lines)
        super().learn(lines)


def test_vw_is_told_cost_and_propensity_on_the_line_of_what_was_played() -> None:
    workspace = Workspace("--cb_explore_adf --squarecb --quiet")
    VWLearner(workspace).learn({"x": 1.5}, "b", 0.75, 0.0625, actions=["a", "b", "c"])
    assert workspace.told == ["shared |c x:1.5", "|a value=a", "0:-0.75:0.0625 |a value=b", "|a value=c"]


def test_vw_reads_the_label_that_we_write() -> None:
    workspace = vowpalwabbit.Workspace("--cb_explore_adf --squarecb --quiet")
    lines = examples({"x": 1.5}, ["a", "b"])
    parsed = workspace.parse([lines[0], f"0:-0.75:0.0625 {lines[1]}", lines[2]])
    (cost,) = vowpalwabbit.pyvw.CBLabel.from_example(parsed[1]).costs
    assert (cost.cost, cost.probability) == pytest.approx((-0.75, 0.0625))
    workspace.finish_example(parsed)


@pytest.mark.parametrize("evil", ["a\n0:-1:1 |a b", "|x:9", "a b\tc", "0:1:0.5 |"])
def test_no_text_of_an_action_or_a_context_can_write_a_label(evil: str) -> None:
    for line in examples({evil: evil, "n": 1}, [evil, {evil: 2.0}]):
        assert line.count("|") == 1
        assert line.startswith(("shared |c ", "|a "))
        assert "\n" not in line
        assert line.count(":") <= 1


def test_vw_needs_probabilities_of_actions() -> None:
    with pytest.raises(ConfigError, match="--cb_explore_adf"):
        VWLearner("--quiet")


def test_vw_learns_which_action_a_context_asks_for() -> None:
    learner, rng = VWLearner("--cb_explore_adf --squarecb -q ca --quiet", seed=0), np.random.default_rng(0)
    for _ in range(500):
        context = {"side": rng.choice(["left", "right"])}
        drawn = learner.sample(context, ["left", "right"])
        reward = float(drawn.action == context["side"])
        learner.learn(
            context, drawn.action, reward, drawn.probabilities[drawn.action == "right"], actions=["left", "right"]
        )
    assert learner.sample({"side": "left"}, ["left", "right"]).probabilities[0] > 0.9
    assert learner.sample({"side": "right"}, ["left", "right"]).probabilities[1] > 0.9


def model(width: int, classes: int, **options: Any) -> bytes:
    X = np.random.default_rng(0).random((40, width)).astype(np.float32)
    fitted = LogisticRegression().fit(X, np.arange(40) % classes)
    return bytes(to_onnx(fitted, X, options={"zipmap": False}, **options).SerializeToString())


def test_an_onnx_model_scores_labels_or_one_row_per_action() -> None:
    learner = OnnxLearner(model(2, 3), labels=["x", "y", "z"])
    scores = learner.scores([0.2, 0.9], ["x", "y", "z"])
    assert learner.scores([0.2, 0.9], ["z", "x"]) == pytest.approx([scores[2], scores[0]])
    ranker = LinearRegression().fit(np.eye(2), [1.0, 2.0])
    onnx = to_onnx(ranker, np.eye(2, dtype=np.float32)).SerializeToString()
    by_row = OnnxLearner(onnx, feed=lambda context, actions: np.array(actions))
    assert by_row.propose(None, [(1.0, 0.0), (0.0, 1.0), (0.5, 0.5)]) == (0.0, 1.0)


def test_an_onnx_model_that_does_not_score_the_actions_is_refused() -> None:
    learner = OnnxLearner(model(2, 3))
    with pytest.raises(InputError, match="a finite score for each of 2"):
        learner.propose([0.2, 0.9], ["x", "y"])
    with pytest.raises(InputError, match="one of the model's labels"):
        OnnxLearner(model(2, 3), labels=["x", "y", "z"]).propose([0.2, 0.9], ["x", "w"])
    with pytest.raises(ConfigError, match="the output with the scores"):
        OnnxLearner(model(2, 3), output="missing")
    with pytest.raises(InputError, match="finite"):
        OnnxLearner(model(2, 3), labels=["x", "y", "z"]).propose([np.nan, 0.9], ["x", "y"])


def test_a_linear_policy_counts_rounds_as_they_were_played() -> None:
    policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.1, noise=0.5, theta_bound=1.0, feature_bound=1.0)
    learner = LinearLearner(
        policy, features=lambda context, actions: np.eye(2)[list(actions)], baseline=lambda context, actions: actions[0]
    )
    for _ in range(5):
        learner.propose(None, [0, 1])
    assert policy.rounds == 0
    learner.learn(None, 1, 0.5, 0.1, actions=[0, 1])
    learner.learn(None, 0, 0.5, 0.9, actions=[0, 1])
    assert (policy.ledger.learner_rounds, policy.ledger.baseline_rounds, policy.pending) == (1, 1, ())


def test_linear_policies_and_functions_that_do_not_fit_are_refused() -> None:
    bounds: dict[str, Any] = {"delta": 0.1, "noise": 0.5, "ridge": 1.0, "theta_bound": 1.0, "feature_bound": 1.0}
    with pytest.raises(ConfigError, match="`baseline` must be given"):
        LinearLearner(surefoot.CLUCB2(dim=2, alpha=0.1, **bounds), features=lambda c, a: np.eye(2))
    with pytest.raises(ConfigError, match="a LUCB, a SafeLUCB"):
        LinearLearner(surefoot.CLUCB(dim=2, alpha=0.1, **bounds), features=lambda c, a: np.eye(2))
    with pytest.raises(ConfigError, match="`propose` must be a function"):
        CallableLearner(None)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="`learn` must be a function"):
        CallableLearner(lambda context, actions: actions[0], learn=3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("library", "use", "extra"),
    [
        ("sklearn", "learners.SklearnLearner", "sklearn"),
        ("vowpalwabbit", "learners.VWLearner", "vw"),
        ("onnxruntime", "learners.OnnxLearner(b'')", "onnx"),
    ],
)
def test_a_missing_library_is_named_and_the_others_still_load(library: str, use: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{library!r}] = None; from surefoot import learners; learners.CallableLearner; {use}"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert f"pip install 'surefoot[{extra}]'" in done.stderr
