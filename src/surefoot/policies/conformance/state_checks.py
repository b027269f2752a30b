"""Checks of what a policy remembers: saved and restored, recalled from a journal, and never shared."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.policies.conformance.subject import Subject, check, same, trace
from surefoot.policies.conformance.trial_world import TrialWorld
from surefoot.policies.linear_policy import LinearPolicy
from surefoot.policies.policy import Policy

WAYS: dict[str, Callable[[Policy], Policy]] = {
    "state": lambda policy: Policy.from_state(policy.state()),
    "pickle": lambda policy: pickle.loads(pickle.dumps(policy)),
    "deepcopy": copy.deepcopy,
}


@check
def a_restored_policy_goes_on_as_if_it_had_never_stopped(subject: Subject) -> None:
    """To the bit, mid-run, with decisions pending."""
    for restore in WAYS.values():
        for changing in (True, False):
            _stopped_and_restored(subject, restore, changing)


def _stopped_and_restored(subject: Subject, restore: Callable[[Policy], Policy], changing: bool) -> None:
    rounds, world = subject.rounds(60), subject.world(5, changing=changing)
    policy: Policy = subject.make(world)
    waiting = []
    for index in range(rounds):
        decision, mean = subject.decide(policy, world)
        waiting.append((decision, world.reward(mean)))
        if index % 3 == 2:
            policy.observe(*waiting.pop(0))
    assert policy.pending
    restored = restore(policy)
    assert type(restored) is type(policy)
    assert same(policy.state(), restored.state())
    twin = copy.deepcopy(world)
    for _ in range(rounds):
        ours, mean = subject.decide(policy, world)
        theirs, _ = subject.decide(restored, twin)
        assert trace(ours) == trace(theirs)
        waiting.append((ours, world.reward(mean)))
        twin.reward(mean)
        oldest, reward = waiting.pop(0)
        policy.observe(oldest, reward)
        restored.observe(oldest.round, reward)
    assert same(policy.state(), restored.state())


@check
def a_state_is_a_copy_that_later_rounds_do_not_change(subject: Subject) -> None:
    world = subject.world(6)
    policy: Policy = subject.make(world)
    before = policy.state()
    kept = copy.deepcopy(before)
    for _ in range(5):
        decision, mean = subject.decide(policy, world)
        policy.observe(decision, world.reward(mean))
    assert same(before, kept)
    assert all(isinstance(value, (int, str, dict, np.ndarray)) for value in before.values())


@check
def a_run_that_is_recalled_leaves_the_same_state_to_the_bit(subject: Subject) -> None:
    world = subject.world(15)
    policy: Policy = subject.make(world)
    written = _played(subject, world, policy, subject.rounds(90))
    assert subject.may_stay or any(entry["source"] == "learner" for _, entry, _ in written)
    again: Policy = subject.make(world)
    for rows, entry, reward in written:
        decision = again.recall(rows, **entry)
        assert (decision.action, decision.source) == (entry["action"], entry["source"])
        _settle(again, decision, reward)
    assert same({**policy.state(), "id": 0}, {**again.state(), "id": 0})


def _played(subject: Subject, world: TrialWorld, policy: Policy, count: int) -> list[tuple[Any, dict[str, Any], float]]:
    """Play some rounds, and note what was asked, what was decided, and what came of it, as a journal would."""
    written = []
    for _ in range(count):
        rows, baseline, means = world.round()
        request = {"baseline": baseline, "baseline_reward": subject.baseline_reward(float(means[baseline]))}
        decision = policy.decide(rows, **request)
        reward = world.reward(float(means[decision.action]))
        coin = {"draw": decision.draw} if isinstance(policy, LinearPolicy) and decision.draw == decision.draw else {}
        written.append((rows, {**request, "action": decision.action, "source": decision.source, **coin}, reward))
        _settle(policy, decision, reward)
    return written


def _settle(policy: Policy, decision: Any, reward: float) -> None:
    """By its reward or without; some rounds stay open."""
    if decision.round % 4:
        policy.observe(decision, reward)
    elif decision.round % 8:
        policy.abandon(decision)


@check
def a_recalled_round_is_booked_as_it_was_whatever_the_policy_would_do(subject: Subject) -> None:
    world = subject.world(16)
    policy: Any = subject.make(world)
    rng = np.random.default_rng(16)
    counts, sums = {"learner": 0, "baseline": 0}, np.zeros(world.dim)
    for _ in range(subject.rounds(40)):
        rows, baseline, means = world.round()
        source = "learner" if rng.random() < 0.5 else "baseline"
        action = int(rng.integers(world.actions)) if source == "learner" else baseline
        request = {"baseline": baseline, "baseline_reward": subject.baseline_reward(float(means[baseline]))}
        decision = policy.recall(rows, **request, action=action, source=source)
        assert (decision.action, decision.source) == (action, source)
        assert not subject.plays_rows or np.array_equal(decision.features, rows[action])
        counts[source] += 1
        sums += rows[action] if source == "learner" else 0.0
        policy.observe(decision, world.reward(float(means[action])))
    assert policy.rounds == counts["learner"] + counts["baseline"]
    if hasattr(policy, "ledger"):
        assert policy.ledger.learner_rounds == counts["learner"]
        assert np.allclose(policy.ledger.played, sums, rtol=1e-12, atol=0)
