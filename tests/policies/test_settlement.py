"""Which rewards are learned, and when: in the order of the decisions, by what was settled when they were made."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefoot
from surefoot.errors import ConfigError, DecisionError, StateError

ROWS = np.array([[0.6, 0.1], [0.2, 0.7], [0.9, 0.3]])
FAVOURITE = 10  # place in a saved ridge
LINEAR: dict[str, Any] = {"dim": 2, "delta": 0.1, "noise": 0.3, "theta_bound": 1.2, "feature_bound": 1.0}


def safe(**extra: Any) -> surefoot.SafeLUCB:
    return surefoot.SafeLUCB(**{**LINEAR, "alpha": 0.3, "ridge": 0.3, **extra})


def learned(policy: Any) -> bytes:
    """Everything learned, but for the hint which row was proposed last."""
    state = policy.state()["ridge"]
    state[FAVOURITE] = 0.0
    return bytes(state.tobytes())


def in_order(taught: list[tuple[int, float]], rounds: int) -> bytes:
    """What a policy knows that was told these rewards one after the other."""
    policy = safe()
    for _ in range(rounds):
        policy.decide(ROWS, baseline=0, hold=True)
    for round_ in range(1, rounds + 1):
        values = dict(taught)
        if round_ in values:
            policy.observe(round_, values[round_])
        else:
            policy.abandon(round_)
    return learned(policy)


def settle(policy: Any, round_: int, value: float | None) -> None:
    if value is None:
        policy.abandon(round_)
    else:
        policy.observe(round_, value)


STEPS = st.lists(
    st.tuples(st.sampled_from(["decide", "observe", "abandon", "restore"]), st.integers(0, 11), st.floats(-1, 1)),
    max_size=60,
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(steps=STEPS, window=st.sampled_from([None, 1, 3]))
def test_any_sequence_learns_the_settled_prefix_in_decision_order(
    steps: list[tuple[str, int, float]], window: int | None
) -> None:
    """Against a model of a few lines: rewards in any order, twice, given up, too late, and restarts in between."""
    policy: Any = safe(settle_after=window, default_reward=None if window is None else 0.25)
    settled: dict[int, float | None] = {}
    prefix: list[tuple[int, float]] = []
    for what, place, value in steps:
        rounds = policy.rounds
        round_ = 1 + place % max(rounds, 1)
        if what == "decide" and rounds < 12:
            policy.decide(ROWS, baseline=0, hold=True)
            if window is not None and rounds + 1 - window >= 1:
                settled.setdefault(rounds + 1 - window, 0.25)
        elif what == "restore":
            policy = pickle.loads(pickle.dumps(policy))
        elif what in ("observe", "abandon"):
            if round_ in settled or rounds == 0:
                with pytest.raises(DecisionError):
                    settle(policy, round_, value if what == "observe" else None)
                continue
            settle(policy, round_, value if what == "observe" else None)
            settled[round_] = value if what == "observe" else None
        first = next((r for r in range(1, policy.rounds + 1) if r not in settled), policy.rounds + 1)
        prefix = [(r, v) for r, v in sorted(settled.items()) if r < first and v is not None]
        beyond = [r for r, v in sorted(settled.items()) if r > first and v is not None]
        assert policy.ridge.count == len(prefix)
        assert list(policy.waiting) == beyond
        assert list(policy.pending) == sorted({r for r in range(1, policy.rounds + 1) if r not in settled} | {*beyond})
        assert policy.held_up_by == (first if beyond else None)
    assert learned(policy) == in_order(prefix, policy.rounds)


def test_a_round_that_teaches_nothing_never_blocks() -> None:
    policy = surefoot.CLUCB(**LINEAR, alpha=0.9, ridge=0.3)
    held = [policy.decide(ROWS, baseline=0, baseline_reward=0.5, hold=True) for _ in range(40)]
    learner = policy.decide(ROWS, baseline=0, baseline_reward=0.5)
    assert learner.source == "learner"
    policy.observe(learner, 0.4)
    assert (policy.ridge.count, policy.waiting, len(policy.pending)) == (1, (), 40)
    policy.observe(held[3], 0.5)
    assert (policy.ridge.count, len(policy.pending)) == (1, 39)


def test_whether_a_round_teaches_is_settled_when_it_is_decided() -> None:
    """A baseline that changes later must not bring earlier rewards in, nor keep later ones out."""
    policy = safe(reward_range=(0.0, 1.0))
    same = [policy.decide(ROWS, baseline=0, baseline_reward=0.5, hold=True) for _ in range(5)]
    moved = [policy.decide(ROWS, baseline=1, baseline_reward=0.5, hold=True) for _ in range(2)]
    for decision in (*moved, *same):
        policy.observe(decision, 0.5)
    assert policy.ridge.count == 2
    again = pickle.loads(pickle.dumps(safe(reward_range=(0.0, 1.0))))
    first = again.decide(ROWS, baseline=0, baseline_reward=0.5, hold=True)
    again = surefoot.SafeLUCB.from_state(again.state())
    again.decide(ROWS, baseline=1, baseline_reward=0.5, hold=True)
    again.observe(first.round, 0.5)
    assert again.ridge.count == 0


def test_a_window_of_rounds_learns_the_default_and_refuses_what_comes_later() -> None:
    policy = safe(settle_after=2, default_reward=-0.4)
    for _ in range(2):
        policy.decide(ROWS, baseline=0, hold=True)
    assert (policy.ridge.count, policy.pending) == (0, (1, 2))
    policy.decide(ROWS, baseline=0, hold=True)
    assert (policy.ridge.count, policy.pending) == (1, (2, 3))
    assert policy.ridge.moment == pytest.approx(-0.4 * ROWS[0])
    with pytest.raises(DecisionError, match="it was settled before"):
        policy.observe(1, 1.0)
    assert surefoot.SafeLUCB(**policy.settings).settings == policy.settings


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"default_reward": 0.0}, "`default_reward` needs `settle_after`"),
        ({"settle_after": 0}, "`settle_after` must be a whole number >= 1"),
        ({"settle_after": 2.5}, "`settle_after` must be a whole number"),
    ],
)
def test_a_window_that_means_nothing_is_refused(given: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        safe(**given)


def test_a_state_whose_rewards_wait_for_nothing_is_refused() -> None:
    policy = safe()
    policy.decide(ROWS, baseline=0)
    state = policy.state()
    state["waiting_rounds"], state["waiting_rewards"] = np.array([7]), np.array([0.5])
    with pytest.raises(StateError, match="Rewards that wait"):
        surefoot.Policy.from_state(state)


def test_a_reward_that_fails_to_be_learned_leaves_everything_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    policy = safe()
    decisions = [policy.decide(ROWS, baseline=0) for _ in range(2)]
    policy.observe(decisions[1], 0.5)
    before = copy.deepcopy(policy.state())

    def fail(*_: Any) -> None:
        raise RuntimeError("no")

    monkeypatch.setattr(policy, "_learn_round", fail)
    with pytest.raises(RuntimeError):
        policy.observe(decisions[0], 0.5)
    after = policy.state()
    assert all(np.array_equal(before[key], after[key]) for key in before if key not in ("settings", "alarm"))
