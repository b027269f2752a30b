"""Shards that decide by themselves, and a coordinator that keeps one floor over all of them."""

import math
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.errors import AssumptionError, ConfigError, DecisionError, InputError
from surefoot.policies.policy import Policy
from surefoot.sharing.coordinator import Coordinator
from surefoot.sharing.pots import RowsPot, recall_row
from tests.sharing.shards import ALPHA, BOUNDED, SETTINGS, Shard, World, leave, new_coordinator

every_set = pytest.mark.parametrize("settings", [{}, {"radius": "dual"}, BOUNDED], ids=["amm", "dual", "best"])


def test_one_shard_that_renews_often_is_allowed_about_as_much_as_one_ledger() -> None:
    world, coordinator = World(np.random.default_rng(7)), new_coordinator()
    shard, alone = Shard(coordinator.join("a", now=0.0)), surefoot.SafeLUCB(**SETTINGS)
    learner, by_itself = 0, 0
    for moment in range(1, 400):
        shard.observe(moment, world.visit(shard, float(moment)))
        learner += coordinator.policy.ledger.learner_rounds > 0
        shard.meet(coordinator, moment + 0.5)
        decision = alone.decide(world.rows, baseline=world.baseline)
        by_itself += decision.source == "learner"
        alone.observe(decision, float(world.rows[decision.action] @ world.theta))
    assert by_itself > 300
    assert coordinator.policy.ledger.learner_rounds > 0.9 * by_itself
    assert coordinator.policy.rounds == 399
    assert world.least > -1e-9


@every_set
def test_leases_never_add_up_to_more_than_is_proved_and_the_proof_is_below_the_truth(settings: dict[str, Any]) -> None:
    rng = np.random.default_rng(11)
    is_bounded = "reward_bounds" in settings
    world, coordinator = World(rng, is_bounded=is_bounded), new_coordinator(**settings)
    shards = {name: Shard(coordinator.join(name, now=0.0)) for name in "abcd"}
    true = 0.0
    means = world.rows @ world.theta
    for moment in range(1, 1500):
        name = "abcd"[int(rng.choice(4, p=[0.7, 0.1, 0.1, 0.1]))]
        shard = shards[name]
        reward = world.visit(shard, float(moment))
        shard.observe(shard.rounds, reward)
        if len(shard.since) >= 12:
            given = shard.meet(coordinator, moment + 0.5)
            played = [(made.played if made.is_learner else made.displaced, made.displaced) for made in given.rounds]
            true += sum(float(world.theta @ (np.array(x) - (1 - ALPHA) * np.array(b))) for x, b in played)
            assert given.level <= float(np.array(given.question) @ world.theta) + 1e-9
            assert isinstance(coordinator.pot, RowsPot)
            surefoot.check(coordinator.pot.proof)
            assert coordinator.pot.proved <= true + 1e-9
            # Of sums around 0 rounding leaves a little less.
            assert coordinator.leased[0] <= max(coordinator.pot.totals()[0], 0.0)
            assert all(min(member.amounts, default=0.0) >= 0 for member in coordinator.members.all.values())
    assert coordinator.policy.ledger.learner_rounds > (100 if is_bounded else 900)
    assert means[0] < (1 - ALPHA) * means[world.baseline]  # there was something to lose
    assert world.least > -1e-9


def test_rounds_are_learned_in_the_order_of_their_decisions_whoever_hands_in_first() -> None:
    """To the bit as one policy that was told of every round in the order of the moments."""
    world, coordinator = World(np.random.default_rng(5)), new_coordinator()
    shards = [Shard(coordinator.join(name, now=0.0)) for name in "ab"]
    told, alone = [], surefoot.SafeLUCB(**SETTINGS)
    for moment in range(1, 61):
        shard = shards[moment % 2]
        told.append((shard, shard.rounds + 1, world.visit(shard, float(moment))))
    for shard, number, reward in reversed(told):  # rewards come in any order
        shard.observe(number, reward)
    second, first = shards[1].hand_in(60.5), shards[0].hand_in(61.0)
    shards[1].renew(coordinator.take(second, now=60.5))
    assert coordinator.watermark == 0.0
    assert coordinator.policy.rounds == 0
    shards[0].renew(coordinator.take(first, now=61.0))
    assert coordinator.watermark == 60.5
    assert coordinator.policy.rounds == 60
    rounds = sorted((*first.rounds, *second.rounds), key=lambda made: made.moment)
    for made, (_, _, reward) in zip(rounds, told, strict=True):
        alone.observe(recall_row(alone, made), reward)
    assert np.array_equal(alone.core.ridge.save(), coordinator.policy.core.ridge.save())
    assert np.array_equal(alone.core.ledger.save(), coordinator.policy.core.ledger.save())


def test_a_reward_that_comes_after_its_round_was_handed_in_is_learned_in_its_turn() -> None:
    world, coordinator = World(np.random.default_rng(5)), new_coordinator()
    shard = Shard(coordinator.join("a", now=0.0))
    rewards = [world.visit(shard, float(moment)) for moment in (1, 2, 3)]
    shard.observe(2, rewards[1])
    shard.meet(coordinator, 4.0)
    assert coordinator.policy.waiting == (2,)
    shard.observe(1, rewards[0])
    shard.abandon(3)
    shard.meet(coordinator, 5.0)
    assert coordinator.policy.pending == ()
    assert coordinator.policy.ridge.count == 2


@every_set
def test_a_lease_is_the_set_of_its_moment_on_an_empty_ledger(settings: dict[str, Any]) -> None:
    world, coordinator = World(np.random.default_rng(3), is_bounded=True), new_coordinator(**settings)
    shard = Shard(coordinator.join("a", now=0.0))
    for moment in range(1, 200):
        reward = world.visit(shard, float(moment))
        shard.observe(shard.rounds, reward)
        if moment % 20 == 0:
            shard.meet(coordinator, moment + 0.5)
    leased: Any = Policy.from_state(shard.state)
    assert leased.ledger.learner_rounds == leased.ledger.baseline_rounds == 0
    assert not leased.pending
    assert shard.amount > 0
    assert leased.settings["constraint"]["granted"] == shard.amount
    assert coordinator.policy.ridge.count > 100
    kept, frozen = coordinator.policy.confidence_set, shard.policy.confidence_set
    for q in np.random.default_rng(0).normal(size=(20, 3)):
        assert frozen.lower(q) == leased.confidence_set.lower(q)
        if not shard.since:
            assert kept.lower(q) == frozen.lower(q)
    before = shard.policy.core.ridge.save()
    shard.decide(world.rows, baseline=3, moment=1000.0)
    shard.observe(shard.rounds, 1.0)
    assert np.array_equal(before, shard.policy.core.ridge.save())  # what comes here proves nothing here


def test_local_rewards_steer_proposals_and_never_proofs() -> None:
    """Two shards under equal leases: bad news of the row that both would propose, told to one of them alone."""
    rows = np.array([[0.5, 0.0, 0.0], [0.0, 0.9, 0.0], [0.0, 0.0, 0.8]])
    coordinator = new_coordinator(constraint={"name": "reserve", "granted": 100.0})
    shards = [Shard(coordinator.join(name, now=0.0)) for name in "ab"]
    for moment in range(1, 12):
        for shard, reward in zip(shards, (0.0, None), strict=True):
            decision = shard.decide(rows, baseline=0, moment=float(moment))
            if moment < 11 and reward is not None:
                shard.observe(shard.rounds, reward)
    told, untold = (shard.decide(rows, baseline=0, moment=20.0) for shard in shards)
    assert untold.action == 1
    assert told.action == 2
    assert told.certificate.proof.pieces[0].fact.name == "ball" == untold.certificate.proof.pieces[0].fact.name
    assert decision.certificate.optimism < math.inf == told.certificate.optimism


def test_a_shard_goes_on_with_the_baseline_between_hand_in_and_renewal() -> None:
    world = World(np.random.default_rng(2))
    coordinator = new_coordinator(constraint={"name": "reserve", "granted": 50.0})
    shard = Shard(coordinator.join("a", now=0.0))
    assert shard.decide(world.rows, baseline=3, moment=1.0).source == "learner"
    given = shard.hand_in(2.0)
    assert shard.decide(world.rows, baseline=3, moment=3.0).source == "baseline"
    shard.renew(coordinator.take(given, now=2.0))
    assert shard.policy.ledger.baseline_rounds == 1
    assert shard.policy.ledger.learner_rounds == 0
    assert [made.number for made in shard.hand_in(4.0).rounds] == [2]


def test_a_lost_shard_costs_its_lease_until_its_rounds_are_back() -> None:
    world = World(np.random.default_rng(2))
    coordinator = new_coordinator(constraint={"name": "reserve", "granted": 8.0})
    shards = {name: Shard(coordinator.join(name, now=0.0)) for name in "ab"}
    for moment in (1.0, 2.0, 3.0):
        for shard in shards.values():
            reward = world.visit(shard, moment)
            shard.observe(shard.rounds, reward)
    charged = shards["b"].amount
    assert charged > 0
    shards["a"].meet(coordinator, 4.0)
    assert coordinator.watermark == 0.0
    coordinator.lose("b")
    assert coordinator.watermark == 4.0
    assert coordinator.policy.rounds == 3
    assert coordinator.members.all["b"].amounts == (charged,)  # still at risk
    count = coordinator.policy.ridge.count
    back = shards["b"].hand_in(5.0)
    shards["b"].renew(coordinator.take(back, now=5.0))
    assert coordinator.policy.rounds == 6
    assert coordinator.policy.ridge.count == count
    assert coordinator.leased <= coordinator.pot.totals()
    reward = world.visit(shards["b"], 6.0)
    shards["b"].observe(4, reward)
    shards["b"].meet(coordinator, 7.0)
    shards["a"].meet(coordinator, 7.0)
    assert coordinator.policy.ridge.count == count + 1  # what it does since is learned again


def test_open_rounds_of_a_lost_shard_hold_nothing_back() -> None:
    world, coordinator = World(np.random.default_rng(2)), new_coordinator()
    a, b = (Shard(coordinator.join(name, now=0.0)) for name in "ab")
    world.visit(b, 1.0)
    b.meet(coordinator, 1.5)
    a.observe(1, world.visit(a, 1.2))
    a.meet(coordinator, 1.6)
    assert coordinator.policy.ridge.count == 0  # b's first reward has not come
    world.visit(b, 1.7)
    b.meet(coordinator, 1.8)
    coordinator.lose("b")
    a.meet(coordinator, 2.0)
    assert coordinator.policy.ridge.count == 1
    assert coordinator.policy.pending == ()


def test_a_shard_that_leaves_gives_its_lease_back_and_its_rewards_may_still_come() -> None:
    world = World(np.random.default_rng(2))
    coordinator = new_coordinator(constraint={"name": "reserve", "granted": 8.0})
    shard = Shard(coordinator.join("a", now=0.0))
    reward = world.visit(shard, 1.0)
    leave(coordinator, shard.hand_in(2.0), now=2.0)
    assert coordinator.leased == (0.0,)
    assert coordinator.policy.pending == (1,)
    coordinator.settle("a", [(1, {"reward": reward}), (1, {"reward": reward}), (7, {"reward": reward})])
    assert coordinator.policy.ridge.count == 1


def test_an_alarm_in_one_shard_ends_all_leases() -> None:
    world = World(np.random.default_rng(2))
    coordinator = new_coordinator(constraint={"name": "reserve", "granted": 8.0})
    a, b = (Shard(coordinator.join(name, now=0.0)) for name in "ab")
    a.decide(world.rows, baseline=0, baseline_reward=(0.99, 1.0), moment=1.0)  # more than its features allow
    assert a.policy.alarm is not None
    a.meet(coordinator, 2.0)
    assert coordinator.policy.alarm is not None
    assert "'a'" in coordinator.policy.alarm.text
    b.meet(coordinator, 3.0)
    assert a.amount == b.amount == 0.0
    assert b.decide(world.rows, baseline=3, moment=4.0).source == "baseline"


@pytest.mark.parametrize(
    ("change", "error", "words"),
    [
        ({"lease": 2}, InputError, "counts once"),
        ({"shard": "z"}, InputError, "join"),
        ({"through": 12.0}, AssumptionError, "clock"),
        ({"through": -3.0}, AssumptionError, "clock"),
        ({"rounds": "swapped"}, InputError, "in the order"),
        ({"rounds": "gap"}, InputError, "whole"),
        ({"through": 1.5}, InputError, "in the order"),
    ],
)
def test_what_cannot_be_true_is_refused_and_changes_nothing(change: dict[str, Any], error: Any, words: str) -> None:
    world, coordinator = World(np.random.default_rng(2)), new_coordinator(skew=5.0)
    shard = Shard(coordinator.join("a", now=0.0))
    for moment in (1.0, 2.0):
        world.visit(shard, moment)
    given = shard.hand_in(3.0)
    rounds = {"swapped": given.rounds[::-1], "gap": given.rounds[1:]}
    told = {key: rounds.get(value, value) if isinstance(value, str) else value for key, value in change.items()}
    with pytest.raises(error, match=words):
        coordinator.take(msgspec.structs.replace(given, **told), now=3.0)
    shard.renew(coordinator.take(given, now=3.0))
    assert coordinator.policy.rounds == 2
    with pytest.raises(InputError, match="counts once"):
        coordinator.take(given, now=3.0)


def test_a_shard_refuses_what_breaks_its_rules() -> None:
    world, coordinator = World(np.random.default_rng(2)), new_coordinator()
    shard = Shard(coordinator.join("a", now=10.0))
    with pytest.raises(InputError, match="one row"):
        shard.decide(world.rows, baseline=[0.5, 0.5, 0.0, 0.0, 0.0], moment=11.0)
    with pytest.raises(DecisionError, match="pending"):
        shard.observe(1, 0.5)
    with pytest.raises(InputError, match="must be new"):
        coordinator.join("a", now=10.0)
    assert shard.rounds == 0
    assert shard.policy.rounds == 0


@pytest.mark.parametrize(
    "policy",
    [
        surefoot.SafeLUCB(**SETTINGS, constraint="stagewise"),
        surefoot.SafeLUCB(**SETTINGS, misspecification=0.01),
        surefoot.SafeLUCB(**SETTINGS, holdout=0.02),
        surefoot.SafeLUCB(**SETTINGS, settle_after=10),
        surefoot.LUCB(dim=3, delta=0.1, noise=0.1, ridge=1.0, theta_bound=1.0, feature_bound=1.0),
    ],
)
def test_a_promise_that_does_not_add_up_over_shards_is_refused(policy: Any) -> None:
    with pytest.raises(ConfigError):
        Coordinator(policy, skew=1.0)


def test_a_proposal_from_elsewhere_is_judged_like_any_other() -> None:
    policy = surefoot.SafeLUCB(**{**SETTINGS, "reward_range": (0.05, 1.0)})
    rows = np.array([[0.5, 0.0, 0.0], [0.9, 0.0, 0.0], [0.0, 0.9, 0.0]])
    bad, good = policy.consider(rows, proposal=2, baseline=0), policy.consider(rows, proposal=1, baseline=0)
    assert (good.action, good.source) == (1, "learner")  # nine of something pay more than five of it
    assert (bad.action, bad.source, bad.certificate.proposal) == (0, "baseline", 2)
    assert good.certificate.margin >= 0 > bad.certificate.margin
    surefoot.check(good.certificate.proof, question=good.certificate.proof.question)
    for proposal in (-1, 3):
        with pytest.raises(InputError, match="proposal"):
            policy.consider(rows, proposal=proposal, baseline=0)
    assert policy.rounds == 2
