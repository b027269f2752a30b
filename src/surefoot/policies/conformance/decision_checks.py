"""Checks of decisions: proofs that hold, certificates that stay, rounds that are held, and arrays that are nobody's."""

import copy
import pickle

import numpy as np

from surefoot.policies.conformance.subject import Subject, check, trace
from surefoot.policies.policy import Policy
from surefoot.safety.check import check as check_proof


@check
def every_certificate_carries_a_proof_that_holds(subject: Subject) -> None:
    world = subject.world(7)
    policy: Policy = subject.make(world)
    learner = 0
    for _ in range(subject.rounds(120)):
        decision, mean = subject.decide(policy, world)
        certificate = decision.certificate
        assert (certificate.margin >= 0) == certificate.is_safe
        is_let_in = decision.source == "learner" or certificate.is_held_out
        # A policy without a floor may hold a round by itself: it says so.
        assert certificate.is_safe == (is_let_in or certificate.is_held)
        proof = certificate.proof
        check_proof(proof)
        if np.isfinite(certificate.required) and np.isfinite(certificate.guaranteed):
            scale = 1 + abs(certificate.guaranteed) + abs(certificate.required)
            claimed = certificate.guaranteed if subject.proves == "guaranteed" else certificate.margin
            assert abs(proof.value - claimed) <= 1e-6 * scale
        assert certificate.explain().startswith(f"Played the {decision.source}")
        learner += decision.source == "learner"
        policy.observe(decision, world.reward(mean))
    assert subject.may_stay or learner > 0


@check
def a_held_round_plays_the_baseline_and_says_what_would_have_been(subject: Subject) -> None:
    world = subject.world(17)
    policy: Policy = subject.make(world)
    allowed = 0
    for _ in range(subject.rounds(60)):
        rows, baseline, means = world.round()
        declared = subject.baseline_reward(float(means[baseline]))
        free = copy.deepcopy(policy).decide(rows, baseline=baseline, baseline_reward=declared)
        held = policy.decide(rows, baseline=baseline, baseline_reward=declared, hold=True)
        assert (held.source, held.action) == ("baseline", baseline)
        assert not subject.plays_rows or np.array_equal(held.features, rows[baseline])
        assert held.certificate.is_held
        assert held.certificate.is_safe == free.certificate.is_safe
        if np.isfinite(held.certificate.required):
            assert held.certificate.explain().startswith("Played the baseline, as asked")
        check_proof(held.certificate.proof)
        allowed += held.certificate.is_safe
        policy.observe(held, world.reward(float(means[baseline])))
    assert subject.may_stay or allowed > 0


@check
def a_certificate_stays_what_it_was_while_the_policy_learns(subject: Subject) -> None:
    world = subject.world(8)
    policy: Policy = subject.make(world)
    for _ in range(6):
        decision, mean = subject.decide(policy, world)
        policy.observe(decision, world.reward(mean))
    decision, mean = subject.decide(policy, world)
    before, value = trace(decision), decision.certificate.proof.value
    features = decision.features.copy()
    policy.observe(decision, world.reward(mean))
    for _ in range(6):
        later, mean = subject.decide(policy, world)
        policy.observe(later, world.reward(mean))
    assert trace(decision) == before
    assert decision.certificate.proof.value == value
    assert np.array_equal(decision.features, features)
    assert trace(pickle.loads(pickle.dumps(decision))) == before


@check
def the_callers_arrays_are_neither_kept_nor_changed(subject: Subject) -> None:
    world = subject.world(14)
    policy: Policy = subject.make(world)
    rows, baseline, means = world.round()
    before = rows.copy()
    decision = policy.decide(rows, baseline=baseline, baseline_reward=subject.baseline_reward(float(means[baseline])))
    assert np.array_equal(rows, before)
    features = decision.features.copy()
    rows[:] = 0.0
    assert np.array_equal(decision.features, features)
    frozen = world.round()[0]
    frozen.flags.writeable = False
    policy.decide(frozen, baseline=baseline, baseline_reward=subject.baseline_reward(float(means[baseline])))
