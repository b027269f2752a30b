"""A learner under a guard: what it hears and when, honest propensities, late rewards, bad answers, several metrics."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot import Guard, ceiling, floor
from surefoot.errors import AssumptionError, ConfigError, DecisionError, InputError, StateError
from surefoot.learners import CallableLearner, GuardedLearner, Proposal

ACTIONS = ["old", "new", "newer"]


class Diary:
    """A learner that proposes as it is told, and writes down what it hears."""

    def __init__(self, proposal: Any = "new") -> None:
        self.proposal, self.heard = proposal, list[tuple[Any, ...]]()

    def propose(self, context: Any, actions: Sequence[Any]) -> Any:
        return self.proposal

    def learn(self, context: Any, action: Any, reward: float, probability: float, *, actions: Sequence[Any]) -> None:
        self.heard.append((context, action, reward, probability, list(actions)))


class Explorer(Diary):
    """The same with probabilities of its own."""

    def __init__(self, probabilities: Sequence[float], seed: int = 0) -> None:
        super().__init__()
        self.probabilities, self.rng = probabilities, np.random.default_rng(seed)

    def sample(self, context: Any, actions: Sequence[Any]) -> Proposal:
        return Proposal(actions[self.rng.choice(len(actions), p=self.probabilities)], self.probabilities)


def new_driver(learner: Any = None, *, settings: dict[str, Any] | None = None, **given: Any) -> GuardedLearner:
    guard = Guard(**{"alpha": 0.4, "delta": 0.05, "seed": 5, **(settings or {})})
    return GuardedLearner(Diary() if learner is None else learner, guard, **given)


def heard(driver: GuardedLearner) -> list[Any]:
    """The contexts of the rounds that the learner has learned, in their order."""
    return [entry[0] for entry in driver.learner.heard]  # type: ignore[attr-defined]


def test_it_learns_what_was_played_with_the_propensity_of_the_coin() -> None:
    driver = new_driver()
    decisions = [driver.decide(number, ACTIONS, "old") for number in range(50)]
    for number, decision in enumerate(decisions):
        driver.observe(decision, number / 50)
    assert {decision.action for decision in decisions} == {"old", "new"}
    assert driver.learner.heard == [  # type: ignore[attr-defined]
        (number, one.action, number / 50, one.probability, ACTIONS) for number, one in enumerate(decisions)
    ]


def test_a_proposal_equal_to_the_baseline_is_certain_and_still_teaches_the_learner() -> None:
    driver = new_driver(Diary("old"))
    driver.observe(driver.decide("c", ACTIONS, "old"), 0.7)
    assert driver.learner.heard == [("c", "old", 0.7, 1.0, ACTIONS)]  # type: ignore[attr-defined]


def test_propensities_are_those_of_both_draws_and_frequencies_agree_with_them() -> None:
    learner, rounds = Explorer([0.5, 0.3, 0.2]), 4000
    driver = new_driver(learner, settings={"ramp": "free"})
    for number in range(rounds):
        driver.observe(driver.decide(number, ACTIONS, "old"), 0.5)
    expected = {"old": 0.4 * 0.5 + 0.6, "new": 0.4 * 0.3, "newer": 0.4 * 0.2}
    for action, chance in expected.items():
        told = [entry[3] for entry in learner.heard if entry[1] == action]
        assert told == pytest.approx([chance] * len(told))
        assert abs(len(told) / rounds - chance) < 4 * np.sqrt(chance * (1 - chance) / rounds)


def test_a_held_round_is_the_baselines_for_certain() -> None:
    learner = Explorer([0.5, 0.3, 0.2])
    driver = new_driver(learner)
    for number in range(20):
        decision = driver.decide(number, ACTIONS, "old", hold=True)
        driver.observe(decision, 0.5)
        assert decision.source == "baseline"
    assert {entry[3] for entry in learner.heard} == {1.0}


def test_rewards_wait_for_those_of_earlier_decisions() -> None:
    driver = new_driver()
    first, second, third = (driver.decide(number, ACTIONS, "old") for number in range(3))
    driver.observe(third, 0.3)
    driver.observe(second, 0.2)
    assert heard(driver) == []
    assert driver.pending == (1, 2, 3)
    driver.observe(first, 0.1)
    assert heard(driver) == [0, 1, 2]
    assert not driver.pending


def test_an_abandoned_round_is_never_heard_of_and_holds_nobody_up() -> None:
    driver = new_driver()
    first, second = (driver.decide(number, ACTIONS, "old") for number in range(2))
    driver.observe(second, 0.2)
    driver.abandon(first)
    assert heard(driver) == [1]
    with pytest.raises(DecisionError):
        driver.observe(first, 1.0)


@pytest.mark.parametrize(("default", "learned"), [(0.25, [0, 1, 2]), (None, [1, 2])])
def test_a_reward_that_comes_too_late_is_the_default_or_nothing(default: float | None, learned: list[int]) -> None:
    driver = new_driver(settings={"settle_after": 2, "default_reward": default})
    decisions = [driver.decide(number, ACTIONS, "old") for number in range(3)]
    for decision in decisions[1:]:
        driver.observe(decision, 0.9)
    assert heard(driver) == learned
    if default is not None:
        assert driver.learner.heard[0][2] == default  # type: ignore[attr-defined]


def test_memory_is_bounded_and_the_guard_forgets_nothing() -> None:
    driver = new_driver(max_pending=3)
    decisions = [driver.decide(number, ACTIONS, "old") for number in range(5)]
    assert driver.pending == (3, 4, 5)
    assert driver.forgotten == 2
    assert driver.guard.pending == (1, 2, 3, 4, 5)
    for decision in reversed(decisions):
        driver.observe(decision, 0.5)
    assert heard(driver) == [2, 3, 4]
    assert not driver.guard.pending


@pytest.mark.parametrize("bad", ["unheard-of", None, 7, np.zeros(2)])
def test_a_proposal_that_is_no_action_plays_nothing(bad: Any) -> None:
    driver, twin = new_driver(Diary(bad)), new_driver()
    with pytest.raises(InputError, match="learner's proposal must be one of the 3 actions"):
        driver.decide("c", ACTIONS, "old")
    assert (driver.guard.rounds, driver.pending) == (0, ())
    driver.learner.proposal = "new"  # type: ignore[attr-defined]
    assert driver.decide("c", ACTIONS, "old").draw == twin.decide("c", ACTIONS, "old").draw


@pytest.mark.parametrize("probabilities", [[0.5, 0.5], [1.0, 0.0, 0.0], [float("nan")] * 3, [3.0, 3.0, 3.0]])
def test_a_sample_without_honest_probabilities_plays_nothing(probabilities: list[float]) -> None:
    class Wrong(Diary):
        def sample(self, context: Any, actions: Sequence[Any]) -> Proposal:
            return Proposal("new", probabilities)

    driver = new_driver(Wrong())
    with pytest.raises(InputError, match=r"must return a Proposal|must have a probability"):
        driver.decide("c", ACTIONS, "old")
    assert driver.guard.rounds == 0


def test_a_baseline_that_is_no_action_and_a_learner_that_fails_play_nothing() -> None:
    driver = new_driver()
    with pytest.raises(InputError, match="`baseline` must be one of"):
        driver.decide("c", ACTIONS, "older")
    failing = new_driver(CallableLearner(lambda context, actions: context["missing"]))
    with pytest.raises(KeyError):
        failing.decide({}, ACTIONS, "old")
    assert driver.guard.rounds == failing.guard.rounds == 0


@pytest.mark.parametrize(
    ("reward", "error"), [(2.0, AssumptionError), ("good", InputError), (float("nan"), InputError)]
)
def test_a_bad_reward_changes_nothing(reward: Any, error: type[Exception]) -> None:
    driver = new_driver()
    decision = driver.decide("c", ACTIONS, "old")
    with pytest.raises(error):
        driver.observe(decision, reward)
    assert driver.pending == driver.guard.pending == (1,)
    driver.observe(decision, 1.0)
    assert heard(driver) == ["c"]
    with pytest.raises(DecisionError):
        driver.observe(decision, 1.0)
    assert heard(driver) == ["c"]


def test_a_learner_that_cannot_learn_a_round_passes_its_error_on_and_is_not_asked_again() -> None:
    def learn(context: Any, *rest: Any, **more: Any) -> None:
        told.append(context)
        raise ZeroDivisionError

    told: list[Any] = []
    driver = new_driver(CallableLearner(lambda context, actions: "new", learn=learn))
    decision = driver.decide("c", ACTIONS, "old")
    with pytest.raises(ZeroDivisionError):
        driver.observe(decision, 1.0)
    driver.decide("d", ACTIONS, "old")
    assert told == ["c"]
    assert driver.guard.pending == (2,)


def test_actions_may_be_rows_or_mappings() -> None:
    rows = [np.array([1.0, 0.0]), np.array([0.0, 1.0])]
    driver = new_driver(CallableLearner(lambda context, actions: actions[1].copy()))
    driver.observe(driver.decide(None, rows, rows[0].copy()), 0.5)
    offers = [{"price": 1}, {"price": 2}]
    driver = new_driver(CallableLearner(lambda context, actions: {"price": 2}))
    assert driver.decide(None, offers, {"price": 1}).action in offers


METRICS: dict[str, Any] = {"quality": floor(0, 1, alpha=0.2, default=0.25), "cost": ceiling(0, 1, alpha=0.2)}


@pytest.mark.parametrize(
    ("reward", "rewards", "learned"),
    [
        ("quality", {"quality": 0.9, "cost": 0.2}, [0.9]),
        ("quality", {"cost": 0.2}, [0.25]),
        (lambda rewards: rewards["quality"] - rewards["cost"], {"quality": 0.75, "cost": 0.25}, [0.5]),
    ],
)
def test_of_several_metrics_the_learner_maximises_one_or_a_function_of_all(
    reward: Any, rewards: dict[str, float], learned: list[float]
) -> None:
    driver = new_driver(settings={"alpha": None, "metrics": METRICS}, reward=reward)
    driver.observe(driver.decide("c", ACTIONS, "old"), rewards)
    assert [entry[2] for entry in driver.learner.heard] == learned  # type: ignore[attr-defined]


def test_a_metric_that_is_missing_teaches_nothing_and_a_function_that_fails_changes_nothing() -> None:
    metrics = {"a": floor(0, 1, alpha=0.2), "b": floor(0, 1, alpha=0.2)}
    driver = new_driver(settings={"alpha": None, "metrics": metrics}, reward="a")
    driver.observe(driver.decide("c", ACTIONS, "old"), {"b": 1.0})
    assert (heard(driver), driver.pending) == ([], ())
    driver = new_driver(settings={"alpha": None, "metrics": metrics}, reward=lambda rewards: rewards["a"])
    with pytest.raises(KeyError):
        driver.observe(driver.decide("c", ACTIONS, "old"), {"b": 1.0})
    assert driver.guard.pending == (1,)


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"settings": {"alpha": None, "metrics": METRICS}}, "which metric the learner maximises"),
        ({"settings": {"alpha": None, "metrics": METRICS}, "reward": "qualty"}, "one of quality, cost"),
        ({"settings": {"alpha": None, "metrics": METRICS}, "reward": "cost"}, "has a ceiling"),
        ({"settings": {"unit_window": 3}}, "without `unit_window`"),
        ({"max_pending": 0}, "max_pending"),
        ({"learner": object()}, "`propose` and `learn`"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        new_driver(**given)
    with pytest.raises(ConfigError, match="must be a Guard"):
        GuardedLearner(Diary(), surefoot.UCB(arms=2))  # type: ignore[arg-type]


@pytest.mark.parametrize("state", [None, {}, {"format": 1}, {"format": 2}])
def test_a_damaged_state_is_refused(state: Any) -> None:
    class Saved(Diary):
        def state(self) -> Any:
            return {}

        def restore(self, state: Any) -> None:
            raise AssertionError

    with pytest.raises(StateError):
        GuardedLearner.from_state(state, Saved())
    with pytest.raises(StateError, match="`state` and `restore`"):
        GuardedLearner.from_state({"format": 1}, Diary())
