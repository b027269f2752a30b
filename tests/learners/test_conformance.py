"""Every learner keeps the contract. A new one is listed here, and takes part."""

import copy
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from skl2onnx import to_onnx
from sklearn.linear_model import LogisticRegression, SGDClassifier, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import surefoot
from surefoot import Guard
from surefoot.learners import (
    CallableLearner,
    GuardedLearner,
    Learner,
    LinearLearner,
    OnnxLearner,
    SamplingLearner,
    SklearnLearner,
    StatefulLearner,
    VWLearner,
)

ACTIONS = ["mail", "call", "visit"]
BOUNDS: dict[str, Any] = {"noise": 0.5, "theta_bound": 2.0, "feature_bound": 2.0}


def rows(context: Any, actions: Any) -> Any:
    """One block of features per action, as a linear policy takes them."""
    return np.array([np.kron(np.eye(3)[ACTIONS.index(action)], context) for action in actions])


def onnx_model() -> bytes:
    contexts = np.random.default_rng(0).random((60, 2)).astype(np.float32)
    model = LogisticRegression().fit(contexts, np.arange(60) % 3)
    return bytes(to_onnx(model, contexts, options={"zipmap": False}).SerializeToString())


def first(context: Any, actions: Any) -> Any:
    return actions[0]


def sklearn_learner(estimator: Any) -> SklearnLearner:
    return SklearnLearner(estimator, actions=ACTIONS, epsilon=0.2, seed=4)


LEARNERS: dict[str, Callable[[], Learner]] = {
    "callable": lambda: CallableLearner(lambda context, actions: actions[-1]),
    "linear LUCB": lambda: LinearLearner(surefoot.LUCB(dim=6, delta=0.1, ridge=1.0, **BOUNDS), features=rows),
    "linear SafeLUCB": lambda: LinearLearner(
        surefoot.SafeLUCB(dim=6, alpha=0.1, delta=0.1, **BOUNDS), features=rows, baseline=first
    ),
    "onnx": lambda: OnnxLearner(onnx_model(), labels=ACTIONS),
    "sklearn classifier": lambda: sklearn_learner(SGDClassifier(loss="log_loss", random_state=0)),
    "sklearn hinge": lambda: sklearn_learner(SGDClassifier(random_state=0)),
    "sklearn pipeline": lambda: sklearn_learner(make_pipeline(StandardScaler(), SGDRegressor(random_state=0))),
    "sklearn regressor": lambda: sklearn_learner(SGDRegressor(random_state=0)),
    "vw": lambda: VWLearner("--cb_explore_adf --squarecb -q ca --quiet", seed=4),
}


SAMPLING = [name for name in LEARNERS if name.startswith(("sklearn", "vw"))]
CERTAIN = [name for name in LEARNERS if name not in SAMPLING]


@pytest.fixture(params=LEARNERS)
def make(request: pytest.FixtureRequest) -> Callable[[], Learner]:
    return LEARNERS[request.param]


def new_guard() -> Guard:
    return Guard(alpha=0.4, delta=0.05, seed=2)


def drive(driver: GuardedLearner, number: int, seed: int = 0) -> list[Any]:
    rng, played = np.random.default_rng(seed), []
    for context in rng.random((number, 2)):
        decision = driver.decide(context, ACTIONS, "mail")
        driver.observe(decision, float(rng.random() < context[0]) if decision.action == "call" else 0.4)
        played.append((decision.action, decision.source, decision.share))
    return played


def contexts(number: int) -> Iterator[Any]:
    return iter(np.random.default_rng(9).random((number, 2)))


@pytest.mark.parametrize("name", LEARNERS)
def test_it_is_a_learner_and_says_whether_it_explores(name: str) -> None:
    learner = LEARNERS[name]()
    assert isinstance(learner, Learner)
    assert isinstance(learner, SamplingLearner) == (name in SAMPLING)


def test_proposals_are_among_the_actions_whatever_is_offered(make: Callable[[], Learner]) -> None:
    learner = make()
    for context in contexts(20):
        for offered in (ACTIONS, ACTIONS[:2], ["mail"], ["mail", "visit", "call"]):
            assert learner.propose(context, offered) in offered
            learner.learn(context, "mail", 0.5, 0.7, actions=offered)


@pytest.mark.parametrize("name", CERTAIN)
def test_being_asked_teaches_nothing(name: str) -> None:
    asked, other = LEARNERS[name](), LEARNERS[name]()
    for learner in (asked, other):
        drive(GuardedLearner(learner, new_guard()), 30)
    for context in contexts(30):
        asked.propose(context, ACTIONS)
    assert [asked.propose(c, ACTIONS) for c in contexts(9)] == [other.propose(c, ACTIONS) for c in contexts(9)]


@pytest.mark.parametrize("name", SAMPLING)
def test_probabilities_add_up_and_asking_does_not_change_them(name: str) -> None:
    learner = LEARNERS[name]()
    assert isinstance(learner, SamplingLearner)
    drive(GuardedLearner(learner, new_guard()), 30)
    for context in contexts(20):
        drawn = learner.sample(context, ACTIONS)
        assert sum(drawn.probabilities) == pytest.approx(1.0)
        assert min(drawn.probabilities) >= 0.0
        assert drawn.probabilities[ACTIONS.index(drawn.action)] > 0.0
        assert learner.sample(context, ACTIONS).probabilities == drawn.probabilities


def test_the_same_calls_give_the_same_rounds(make: Callable[[], Learner]) -> None:
    assert drive(GuardedLearner(make(), new_guard()), 60) == drive(GuardedLearner(make(), new_guard()), 60)


def test_rewards_in_any_order_teach_the_same(make: Callable[[], Learner]) -> None:
    drivers = [GuardedLearner(make(), new_guard()) for _ in range(2)]
    orders = [list(range(12)), np.random.default_rng(3).permutation(12).tolist()]
    for driver, order in zip(drivers, orders, strict=True):
        decisions = [driver.decide(context, ACTIONS, "mail") for context in contexts(12)]
        for place in order:
            driver.observe(decisions[place], (place % 5) / 5)
        assert driver.pending == ()
    one, other = (drive(driver, 30) for driver in drivers)
    assert [made[:2] for made in one] == [made[:2] for made in other]
    # Not to the bit: with nothing at stake, rewards enter as they come.
    assert [made[2] for made in one] == pytest.approx([made[2] for made in other], rel=1e-12)


def test_what_can_be_saved_continues_as_if_it_had_never_stopped(make: Callable[[], Learner]) -> None:
    driver = GuardedLearner(make(), new_guard())
    drive(driver, 40)
    if not isinstance(driver.learner, StatefulLearner):
        with pytest.raises(surefoot.errors.StateError, match="`state` and `restore`"):
            driver.state()
        return
    open_, late = (driver.decide(context, ACTIONS, "mail") for context in contexts(2))
    driver.observe(late, 0.3)
    again = GuardedLearner.from_state(copy.deepcopy(driver.state()), make())
    assert again.pending == driver.pending == (open_.round, late.round)
    for one in (driver, again):
        one.observe(open_.round, 0.9)
    assert drive(again, 40, seed=1) == drive(driver, 40, seed=1)
