"""On real pictures learners under a guard keep the floor in every round and end above the baseline; free ones do not.

Figures at alpha 0.1, delta 0.05 are in docs/learners.md.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.naive_bayes import MultinomialNB

from surefoot.learners import Learner, OnnxLearner, SklearnLearner, VWLearner
from tests.learners.digits_bandit import ACTIONS, ALPHA, Digits, Run, load, run_guarded, run_unguarded

DATA = load()
TRAINING = 400  # pictures that the models in ONNX's format are trained on, and that are not played there
SWAP = 600  # the round in which the broken model is replaced


def sklearn_learner(estimator: Any) -> Learner:
    return SklearnLearner(estimator, actions=ACTIONS, epsilon=0.05, seed=1)


def vw_learner() -> Learner:
    return VWLearner("--cb_explore_adf --squarecb -q ca -l 2 --quiet", seed=1)


def exported(labels: Any) -> bytes:
    pictures = DATA.pictures[:TRAINING].astype(np.float32)
    fitted = LogisticRegression().fit(pictures, labels)
    return bytes(to_onnx(fitted, pictures, options={"zipmap": False}).SerializeToString())


def check(kept: Run, free: Run) -> None:
    print(f"\nguarded:   {kept}\nunguarded: {free}")
    assert kept.rounds_below == 0
    assert kept.worst_share >= 1.0 - ALPHA - 1e-9
    assert kept.lift > 0.05
    assert free.rounds_below > 100
    assert free.worst_share < 1.0 - ALPHA


def test_the_baseline_is_weak() -> None:
    assert 0.4 < float((DATA.baselines == DATA.labels).mean()) < 0.6


@pytest.mark.parametrize(
    ("make", "rounds"),
    [
        pytest.param(lambda: sklearn_learner(MultinomialNB()), 2500, id="sklearn classifier"),
        pytest.param(vw_learner, 4000, id="vw squarecb", marks=pytest.mark.long),
    ],
)
def test_a_learner_that_starts_from_nothing(make: Callable[[], Learner], rounds: int) -> None:
    data = DATA.rounds(rounds, seed=0)
    check(run_guarded(make(), data, seed=0), run_unguarded(make(), data))


def test_an_onnx_model_that_is_bad_on_seven_digits_until_it_is_swapped() -> None:
    labels = DATA.labels[:TRAINING]
    mixed_up = np.where(labels < 3, labels, 3 + (labels - 2) % 7)  # a job that names seven digits by the next one
    data = Digits(*(column[TRAINING:] for column in DATA)).rounds(4000, seed=0)

    def start() -> dict[str, Any]:
        learner = OnnxLearner(exported(mixed_up), labels=ACTIONS)

        def swap(number: int) -> None:
            if number == SWAP:
                learner.session = exported(labels)

        return {"learner": learner, "data": data, "before": swap}

    check(run_guarded(**start(), seed=0), run_unguarded(**start()))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(
    "make",
    [
        lambda: sklearn_learner(MultinomialNB()),
        lambda: sklearn_learner(SGDClassifier(loss="log_loss", random_state=0)),
        lambda: sklearn_learner(SGDRegressor(learning_rate="constant", eta0=0.05, random_state=0)),
        vw_learner,
    ],
    ids=["naive Bayes", "SGD classifier", "SGD regressors", "vw squarecb"],
)
def test_learners_that_start_from_nothing_on_other_orders(make: Callable[[], Learner], seed: int) -> None:
    data = DATA.rounds(6000, seed=seed)
    check(run_guarded(make(), data, seed=seed), run_unguarded(make(), data))
