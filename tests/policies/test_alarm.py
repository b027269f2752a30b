"""The alarm: what raises it, that only the baseline plays while it is on, and what each answer promises."""

import copy
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import surefoot
from surefoot.errors import AlarmError, ConfigError
from surefoot.policies.delta_split import delta_of

ROWS = np.array([[0.6, 0.0], [0.9, 0.0], [0.1, 0.8]])
LINEAR: dict[str, Any] = {"dim": 2, "alpha": 0.3, "delta": 0.1, "noise": 0.3, "theta_bound": 1.0, "feature_bound": 1.0}


def safe(**extra: Any) -> surefoot.SafeLUCB:
    return surefoot.SafeLUCB(**{**LINEAR, "reward_range": (0.0, 1.0), **extra})


POLICIES: dict[str, Any] = {
    "SafeLUCB": safe,
    "CLUCB": lambda: surefoot.CLUCB(**LINEAR, ridge=0.3),
    "CLUCB2-latest": lambda: surefoot.CLUCB2(**LINEAR, ridge=0.3, nesting="latest"),
    "CLUCB2-exact": lambda: surefoot.CLUCB2(**LINEAR, ridge=0.3),
    "ConservativeUCB": lambda: surefoot.ConservativeUCB(arms=3, alpha=0.9, delta=0.1, noise=0.1),
}


def ask(name: str, policy: Any) -> Any:
    known = 0.3 if name in ("SafeLUCB", "CLUCB") else None
    return policy.decide(None if name == "ConservativeUCB" else ROWS, baseline=0, baseline_reward=known)


@pytest.mark.parametrize("name", POLICIES)
def test_while_the_alarm_is_on_only_the_baseline_plays_and_nothing_is_promised(name: str) -> None:
    policy: Any = POLICIES[name]()
    for _ in range(60):
        decision = ask(name, policy)
        policy.observe(decision, 0.35)
    assert (policy.alarm, policy.responses) == (None, ())
    policy.report_breach("reward", "Something is wrong.")
    policy.report_breach("reward", "The first one stands.")
    assert (policy.alarm.text, policy.alarm.round, policy.is_refuted) == ("Something is wrong.", 60, True)
    again = surefoot.Policy.from_state(policy.state())
    assert again.alarm == policy.alarm
    for one in (policy, again):
        decision = ask(name, one)
        assert (decision.source, decision.certificate.margin) == ("baseline", -np.inf)
        assert not decision.certificate.is_held
        assert "the alarm is on" in decision.certificate.explain()
        one.observe(decision, 0.35)
    policy.acknowledge("stay")
    assert policy.is_refuted
    if name != "SafeLUCB":
        before = copy.deepcopy(policy.state())
        for response in ("relearn", "renew"):
            with pytest.raises(AlarmError, match="can be answered by stay"):
                policy.acknowledge(response)
        assert repr(policy.state()) == repr(before)


def test_policies_without_a_floor_note_an_alarm_and_play_on() -> None:
    policy = surefoot.LUCB(dim=2, delta=0.1, noise=0.3, ridge=0.3, theta_bound=1.0, feature_bound=1.0)
    policy.report_breach("reward", "Something is wrong.")
    assert policy.decide(ROWS).source == "learner"
    assert policy.is_refuted


@pytest.mark.parametrize("name", ["SafeLUCB", "CLUCB"])
def test_a_baseline_that_earns_more_than_its_features_allow_raises_the_alarm(name: str) -> None:
    policy = POLICIES[name]()
    assert policy.decide(ROWS, baseline=0, baseline_reward=0.6).certificate.margin > -np.inf
    decision = policy.decide(ROWS, baseline=0, baseline_reward=0.61)
    assert (decision.source, policy.alarm.kind) == ("baseline", "baseline_reward")
    assert "The baseline of round 2 is declared to earn more on average than any theta" in policy.alarm.text


def test_a_call_that_is_refused_raises_no_alarm() -> None:
    policy = safe()
    with pytest.raises(surefoot.errors.AssumptionError):
        policy.decide([[0.6, 0.0], [3.0, 4.0]], baseline=0, baseline_reward=0.9)
    assert policy.alarm is None
    assert policy.decide(ROWS, baseline=0).certificate.guaranteed > -np.inf


@pytest.mark.parametrize("name", ["SafeLUCB", "CLUCB", "CLUCB2-latest"])
def test_a_row_that_is_too_long_in_a_journal_counts_as_it_was_played_and_raises_the_alarm(name: str) -> None:
    policy = POLICIES[name]()
    long = np.array([[0.6, 0.0], [3.0, 4.0]])
    known = 0.3 if name == "CLUCB" else None
    decision = policy.recall(long, baseline=0, baseline_reward=known, action=1, source="learner")
    assert decision.features.tolist() == [3.0, 4.0]
    assert policy.ledger.played == pytest.approx([3.0, 4.0])
    assert policy.alarm.kind == "features"
    assert "a row of length 5, beyond feature_bound=1" in policy.alarm.text
    assert "relearn" not in policy.responses  # what was spent has no worst that could be charged


def test_a_row_at_its_bound_is_recalled_without_an_alarm() -> None:
    rows = np.array([[0.6, 0.0], [1.0 + 1e-12, 0.0]])
    played = safe()
    decision = played.decide(rows, baseline=0)
    again = safe()
    again.recall(rows, baseline=0, action=decision.action, source=decision.source)
    assert again.alarm is None


def test_a_reward_below_the_lowest_that_was_declared_raises_the_alarm() -> None:
    policy = safe(constraint={"name": "realised_path", "lowest_reward": 0.0}, gate="facts")
    for _ in range(200):
        decision = policy.decide(ROWS, baseline=0, baseline_reward=0.3)
        policy.observe(decision, 0.4)
        if decision.source == "learner":
            break
    decision = policy.decide(ROWS, baseline=0, baseline_reward=0.3)
    assert decision.source == "learner"
    policy.observe(decision, -0.5)
    assert policy.alarm is not None
    assert policy.alarm.kind == "reward"
    assert "A reward of -0.5 came in, below the declared lowest_reward=0" in policy.alarm.text
    assert policy.responses == ("stay", "renew")


def test_the_shares_of_delta_add_up_to_delta() -> None:
    assert sum(delta_of(0.05, k) for k in range(1, 80)) + delta_of(0.05, 0) == pytest.approx(0.05, rel=1e-12)
    policy = safe(realised_share=0.2)
    spent = 0.0
    for restarts in range(30):
        assert policy.restarts == restarts
        spent += float(
            policy.core.settings.delta + policy.core.settings.sum_delta
        )  # of the set, and of the realised sum
        policy.report_breach("reward", "a test")
        policy.acknowledge("renew")
    assert spent == pytest.approx(0.1, rel=1e-8)
    for share in (-0.1, 1.0):
        with pytest.raises(ConfigError, match="restart_share"):
            safe(restart_share=share)
    with pytest.raises(AlarmError, match="none is on"):
        policy.acknowledge("stay")


def test_a_restart_forgets_what_was_learned_and_charges_what_was_spent() -> None:
    policy = safe(reward_range=(0.1, 0.8))
    decisions = [policy.decide(ROWS, baseline=0, baseline_reward=0.3) for _ in range(30)]
    for decision in decisions[:20]:
        policy.observe(decision, 0.4)
    spent = policy.ledger.learner_rounds
    assert spent > 10
    policy.report_breach("reward", "a test")
    policy.acknowledge("relearn")
    assert policy.debt == pytest.approx(spent * (0.7 * 0.8 - 0.1))
    assert (policy.ridge.count, policy.ledger.learner_rounds, policy.rounds) == (0, 0, 30)
    required = policy.decide(ROWS, baseline=0, baseline_reward=0.3).certificate.required
    assert required == pytest.approx(policy.debt)
    for decision in decisions[20:]:  # decided before the restart: their rewards teach nothing any more
        policy.observe(decision, 0.4)
    assert (policy.ridge.count, policy.pending) == (0, (31,))
    again: Any = surefoot.Policy.from_state(policy.state())
    assert (again.debt, again.restarts) == (policy.debt, 1)
    ours, theirs = (one.decide(ROWS, baseline=0, baseline_reward=0.3).certificate for one in (policy, again))
    assert (ours.guaranteed, ours.required) == (theirs.guaranteed, theirs.required)


def test_checkpoints_go_on_counting_after_a_restart_under_the_same_promise() -> None:
    """The floor of the rounds left in the block is lent: 30 rounds before, 8 of every 10."""
    policy = safe(constraint={"name": "checkpoints", "every": 8}, reward_floor=0.2)
    for _ in range(30):
        policy.decide(ROWS, baseline=0, hold=True)
    policy.report_breach("reward", "a test")
    policy.acknowledge("relearn")
    assert policy.decide(ROWS, baseline=0).certificate.required == pytest.approx(-0.3 * 1 * 0.2)  # round 31 of 32
    policy.report_breach("reward", "a test")
    policy.acknowledge("renew")
    assert policy.decide(ROWS, baseline=0).certificate.required == pytest.approx(-0.3 * 7 * 0.2)


def test_checkpoints_of_a_new_promise_stay_where_they_are_after_it_is_kept_through_a_restart() -> None:
    policy = safe(constraint={"name": "checkpoints", "every": 8}, reward_floor=0.2)
    for response, rounds in (("renew", 3), ("relearn", 2)):
        for _ in range(rounds):
            policy.decide(ROWS, baseline=0, hold=True)
        policy.report_breach("reward", "a test")
        policy.acknowledge(response)  # type: ignore[arg-type]
    assert policy.decide(ROWS, baseline=0).certificate.required == pytest.approx(-0.3 * 5 * 0.2)  # round 3 of 8


def test_a_row_that_is_too_long_is_not_hidden_by_an_earlier_alarm() -> None:
    policy = safe()
    policy.report_breach("reward", "Something is wrong.")
    policy.recall(np.array([[0.6, 0.0], [3.0, 4.0]]), baseline=0, action=1, source="learner")
    assert policy.responses == ("stay", "renew")


def drifting(policy: Any, response: str, seed: int) -> tuple[bool, bool]:
    """A world that turns against the learner after 150 rounds, and data that show it at once.

    Whether the floor was broken by the true means at any round that the promise covers, and whether it restarted.
    """
    rng = np.random.default_rng(seed)
    before, after = np.array([0.5, 0.9]), np.array([0.6, 0.1])
    rows = np.array([[1.0, 0.0], [0.0, 1.0]])
    earned = owed = 0.0
    broken = restarted = False
    for round_ in range(800):
        theta = before if round_ < 150 else after
        decision = policy.decide(rows, baseline=0)
        mean = float(rows[decision.action] @ theta)
        earned, owed = earned + mean, owed + float(theta[0])
        policy.observe(decision, mean + 0.1 * rng.normal())
        if round_ == 160:  # somebody noticed, ten rounds later
            policy.report_breach("reward", "The world has turned.")
            policy.acknowledge(response)
            restarted = True
            earned, owed = (0.0, 0.0) if response == "renew" else (earned, owed)
        # What was lost between the turn and the alarm no promise covers, for the model was wrong then.
        is_covered = not 150 <= round_ <= 160
        if response == "renew":
            broken |= is_covered and earned < 0.9 * owed - 1e-9
        elif round_ > 160 and decision.source == "learner":
            broken |= earned < 0.9 * owed - 1e-9
    return broken, restarted


@pytest.mark.parametrize("response", ["relearn", "renew"])
def test_the_promise_holds_through_a_restart(response: str) -> None:
    runs, delta, broken = 60, 0.2, 0
    for seed in range(runs):
        policy = surefoot.SafeLUCB(
            dim=2, alpha=0.1, delta=delta, noise=0.1, theta_bound=1.2, feature_bound=1.0, reward_range=(0.0, 1.0)
        )
        failed, restarted = drifting(policy, response, seed)
        broken += failed
        assert restarted
    assert broken <= int(binom.isf(1e-6, runs, delta))
