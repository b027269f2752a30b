"""Policies of one's own in the engine: the rounds and counts of compiled ones, and errors that say whose they are."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import ConfigError, PolicyError
from surefoot.simulation import (
    ArmsWorld,
    Baseline,
    ContextualWorld,
    Gaussian,
    Outcome,
    PaperWorld,
    Part,
    Problem,
    Spec,
    Sweep,
    World,
    run_sweep,
    simulate,
)
from tests.own_policy import EpsilonGreedy

ALPHA = 0.3
WORLDS: dict[str, World] = {
    "paper": PaperWorld(rewards=Gaussian(0.05), actions=12, dim=3, baseline=Baseline(rank=4)),
    "contextual, late": ContextualWorld(rewards=Gaussian(0.02), actions=5, dim=3, baseline=Baseline(rank=2), delay=6.0),
}
OURS = {
    "LUCB": (Spec("LUCB", delta=0.05, ridge=0.3), lambda p: surefoot.LUCB(dim=p.dim, **settings_of(p))),
    "CLUCB": (
        Spec("CLUCB", alpha=ALPHA, delta=0.05, ridge=0.3),
        lambda p: surefoot.CLUCB(dim=p.dim, alpha=ALPHA, **settings_of(p)),
    ),
    "SafeLUCB": (
        Spec("SafeLUCB", alpha=ALPHA, delta=0.05, ridge=0.3),
        lambda p: surefoot.SafeLUCB(dim=p.dim, alpha=ALPHA, **settings_of(p)),
    ),
}


def settings_of(problem: Problem) -> dict[str, Any]:
    return problem.settings(ridge=0.3, delta=0.05)


def greedy(problem: Problem) -> EpsilonGreedy:
    return EpsilonGreedy(dim=problem.dim, seed=problem.seed)


def same(one: Outcome, other: Outcome) -> bool:
    counts = all(np.allclose(one.measures[key], other.measures[key], rtol=1e-12, atol=0) for key in one.measures)
    return counts and np.array_equal(one.violations, other.violations)


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("name", OURS)
def test_a_factory_of_our_policies_is_counted_as_the_compiled_loop_is(name: str, world: str) -> None:
    spec, make = OURS[name]
    own = Spec(make, name="mine", alpha=spec.alpha)
    compiled, found = simulate(WORLDS[world], [spec, own], runs=3, horizon=300, seed=4, watched=[ALPHA])
    assert same(compiled, found)
    assert found.spec.label == ("mine" if spec.alpha is None else "mine, α = 0.3")


def test_a_policy_object_is_copied_for_every_run_and_stays_new() -> None:
    world = ArmsWorld(actions=4, dim=4, rewards=Gaussian(0.1), baseline=Baseline(rank=2))
    policy = surefoot.UCB(arms=4, noise=0.1)
    compiled, found = simulate(world, [Spec("UCB"), policy], runs=4, horizon=100, seed=2)
    assert same(compiled, found)
    assert policy.rounds == 0
    assert found.spec.name == "UCB"


def test_a_policy_written_in_python_learns_and_every_run_draws_its_own_numbers() -> None:
    world = PaperWorld(actions=10, rewards=Gaussian(0.1), baseline=Baseline(rank=5))
    random, learned = simulate(
        world,
        [Spec(lambda p: EpsilonGreedy(dim=p.dim, epsilon=1.0, seed=p.seed), name="coin"), greedy],
        runs=6,
        horizon=400,
    )
    assert (learned.measures["regret"][:, -1] < random.measures["regret"][:, -1] / 2).all()
    seeds: list[int] = []

    def noted(problem: Problem) -> EpsilonGreedy:
        seeds.append(problem.seed)
        return greedy(problem)

    simulate(world, [noted], runs=3, horizon=1)
    assert len(set(seeds)) == 3
    threads = [simulate(world, [greedy], runs=25, horizon=30, threads=number)[0] for number in (1, 2)]
    assert same(*threads)


def test_a_factory_is_told_the_bounds_and_the_baseline_only_where_it_may_know_it() -> None:
    world = ContextualWorld(dim=3, actions=5, rewards=Gaussian(0.2), baseline=Baseline(rank=2))
    seen: list[Problem] = []
    heard: list[Any] = []

    class Listener(EpsilonGreedy):
        def decide(self, features: Any, **asked: Any) -> surefoot.Decision:
            heard.append(asked["baseline_reward"])
            return super().decide(features, **asked)

    def listen(problem: Problem) -> Listener:
        seen.append(problem)
        return Listener(dim=problem.dim)

    for knows in (False, True):
        own = Spec(listen, knows_baseline=knows)
        simulate(world, [own], runs=1, horizon=1)
    realisation = world.realisations(0, [0])[0]
    owed = realisation.problem(realisation.take(1)).baseline_reward
    assert [problem.baseline_reward for problem in seen] == heard == [None, owed]
    assert (seen[0].dim, seen[0].actions, seen[0].noise) == (3, 5, 0.2)
    assert (seen[0].theta_bound, seen[0].feature_bound) == (realisation.theta_bound, realisation.feature_bound)


def test_a_policy_that_needs_the_baselines_reward_is_told_without_asking() -> None:
    heard: list[Any] = []

    class Needy(EpsilonGreedy):
        needs_baseline_reward = True

        def decide(self, features: Any, **asked: Any) -> surefoot.Decision:
            heard.append(asked["baseline_reward"])
            return super().decide(features, **asked)

    simulate(PaperWorld(actions=12), [Needy(dim=4)], runs=1, horizon=3)
    assert len(heard) == 3
    assert None not in heard


class Broken(EpsilonGreedy):
    """Fails in round 3, in a way of its own."""

    how = "raise"

    def decide(self, features: Any, **asked: Any) -> Any:
        decision = super().decide(features, **asked)
        if self.rounds < 3:
            return decision
        if self.how == "raise":
            raise ZeroDivisionError("nothing to divide by")
        if self.how == "change":
            features[:] = 0.0
        return {"row": FakeDecision(99), "none": None, "text": FakeDecision("first"), "source": FakeDecision(1, "me"),
                "baseline": FakeDecision((asked["baseline"] + 1) % 3, "baseline")}[self.how]  # fmt: skip


class FakeDecision:
    def __init__(self, action: Any, source: str = "learner") -> None:
        self.action, self.source = action, source


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("raise", "ZeroDivisionError: nothing to divide by"),
        ("change", "read-only"),
        ("row", "row index from 0 to 2, but it decided for 99"),
        ("none", "decided for None"),
        ("text", "decided for 'first'"),
        ("source", "by 'me'"),
        ("baseline", "`source` must be"),
    ],
)
def test_an_error_says_whose_it_is_and_in_which_run_and_round(how: str, words: str) -> None:
    world = ContextualWorld(dim=2, actions=3, baseline=Baseline(rank=1))

    def make(problem: Problem) -> Broken:
        policy = Broken(dim=problem.dim)
        policy.how = how
        return policy

    with pytest.raises(PolicyError, match="'the broken one' failed in run 0, round 3: ") as caught:
        simulate(world, [Spec("LUCB"), Spec(make, name="the broken one")], runs=2, horizon=5, threads=1)
    assert words in str(caught.value)
    assert caught.value.__cause__ is not None


def used() -> surefoot.UCB:
    policy = surefoot.UCB(arms=2)
    policy.decide()
    return policy


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("LUBC", "must be one that can be simulated, but got 'LUBC'. Did you mean 'LUCB'"),
        (3, r"must be a name, an object or a function that makes one.*Spec\(\"CLUCB\""),
        (lambda problem: None, "needs a name"),
        (used(), "must be new"),
    ],
)
def test_what_cannot_play_is_refused_before_any_work(given: Any, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        simulate(PaperWorld(), [given], runs=1, horizon=1)


@pytest.mark.parametrize("made", [None, used()])
def test_a_factory_must_make_a_new_policy(made: Any) -> None:
    with pytest.raises(PolicyError, match="No policy could be made for 'odd'"):
        simulate(PaperWorld(), [Spec(lambda problem: made, name="odd")], runs=1, horizon=1)


def test_a_sweep_takes_policies_and_knows_them_again(tmp_path: Path) -> None:
    world = PaperWorld(actions=5, baseline=Baseline(rank=2))

    def sweep(factory: Any) -> Sweep:
        return Sweep([Part("paper", world, [Spec("LUCB"), factory], runs=3, horizon=20)])

    table = run_sweep(sweep(greedy), tmp_path / "one", threads=1)
    assert set(table["policy"]) == {"LUCB", "greedy"}
    again = run_sweep(sweep(greedy), tmp_path / "one", threads=1)
    assert again.equals(table)

    def other(problem: Problem) -> EpsilonGreedy:
        return EpsilonGreedy(dim=problem.dim, epsilon=0.2, seed=problem.seed)

    other.__name__ = "greedy"
    with pytest.raises(ConfigError, match="a result of other settings"):
        run_sweep(sweep(other), tmp_path / "one", threads=1)
    # The same factory, but its class does something else.
    before = sweep(greedy).describe()
    kept = EpsilonGreedy.__dict__["learn"]
    try:
        EpsilonGreedy.learn = lambda self, features, reward, is_learner: None  # type: ignore[method-assign]
        assert sweep(greedy).describe() != before
    finally:
        EpsilonGreedy.learn = kept  # type: ignore[method-assign]
    assert sweep(greedy).describe() == before
