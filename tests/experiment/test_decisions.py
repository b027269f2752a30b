"""Decisions: durable, repeatable by their id, and in every mode by the right player."""

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

import surefoot
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError, ModeError
from surefoot.experiment import Answer, Experiment
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode, events
from tests.experiment.worlds import POLICIES, Clock, World, play, safe_policy

ROWS = np.array([[0.6, 0.0], [0.9, 0.0]])  # whatever theta is, row 1 pays 1.5 times what row 0 does
ASK: dict[str, Any] = {"features": ROWS, "baseline": 0, "baseline_reward": 0.3}


@pytest.fixture
def journal() -> Journal:
    return open_journal("memory:")


@pytest.fixture
def shop(journal: Journal) -> Experiment:
    return Experiment.create(journal, "shop", safe_policy(), mode="guarded", clock=Clock())


def test_a_decision_is_in_the_journal_when_it_is_returned(journal: Journal, shop: Experiment) -> None:
    answer = shop.decide(**ASK, decision_id="visit")
    event = journal.find("shop", "d:visit")
    assert event is not None
    assert decode(event, events.RowsRound) == shop.round("visit")
    assert answer.head is not None
    assert (answer.head.number, answer.head.hash) == event.head
    assert (answer.action, answer.source, answer.round, answer.mode) == (1, "learner", 1, "guarded")
    assert answer.margin is not None
    assert answer.margin >= 0
    assert answer.explanation.startswith("Played the learner: action 1")


def test_asking_twice_gives_the_same_answer_and_counts_once(shop: Experiment) -> None:
    first = shop.decide(**ASK, decision_id="visit", context={"page": [1, 2.5, None]})
    again = shop.decide(**{**ASK, "features": ROWS.tolist()}, decision_id="visit", context={"page": [1, 2.5, None]})
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert replace(again, is_repeat=False) == first
    assert shop.find("visit") == again
    assert shop.status().rounds == 1


@pytest.mark.parametrize(
    "other",
    [
        {"features": ROWS[::-1]},
        {"baseline": 1},
        {"baseline_reward": 0.5},
        {"actions": ["a", "b"]},
        {"context": {"page": 2}},
        {"features": surefoot.Catalogue(ROWS)},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_request_under_the_same_id_is_a_conflict(shop: Experiment, other: dict[str, Any]) -> None:
    asked = {**ASK, "decision_id": "visit"}
    shop.decide(**asked)
    with pytest.raises(DecisionConflictError, match="must stand for one request"):
        shop.decide(**{**asked, **other})
    assert shop.status().rounds == 1


def test_rows_can_be_named(shop: Experiment) -> None:
    answer = shop.decide(ROWS, baseline="blue", baseline_reward=0.3, actions=["blue", "red"])
    assert (answer.action, answer.action_id, shop.round(answer.decision_id).request.baseline) == (1, "red", 0)


@pytest.mark.parametrize(
    ("wrong", "rule"),
    [
        ({"features": [[0.5, 0.5, 0.5]], "baseline": 0}, "dim=2"),
        ({"features": [[3.0, 0.0]], "baseline": 0}, "feature_bound"),
        ({"features": [[np.nan, 0.0]], "baseline": 0}, "finite"),
        ({"features": ROWS, "baseline": 2}, "baseline < 2"),
        ({"features": ROWS, "baseline": 0.0}, "row index"),
        ({"features": ROWS, "baseline": "blue"}, "one of `actions`"),
        ({"features": ROWS, "baseline": 0, "actions": ["a", "a"]}, "different name"),
        ({"features": ROWS, "baseline": 0, "actions": 5}, "must be texts"),
        ({"features": ROWS, "baseline": 0, "actions": ["a", "\ud800"]}, "must be texts"),
        ({"features": ROWS, "baseline": 0, "baseline_reward": "much"}, "baseline_reward"),
        ({"features": ROWS, "baseline": 0, "decision_id": "two\nlines"}, "printable"),
        ({"features": ROWS, "baseline": 0, "decision_id": "x" * 201}, "1 to 200"),
        ({"features": ROWS, "baseline": 0, "context": {"a": float("inf")}}, "finite numbers"),
        ({"features": ROWS, "baseline": 0, "context": {"a": object()}}, "plain JSON"),
        ({"features": surefoot.EuclideanBall(center=[0.1, 0.1], radius=0.5), "baseline": 0}, "rows or a Catalogue"),
    ],
)
def test_a_refused_request_changes_nothing(
    journal: Journal, shop: Experiment, wrong: dict[str, Any], rule: str
) -> None:
    before = journal.head("shop")
    with pytest.raises(InputError, match=rule):
        shop.decide(**wrong)
    assert journal.head("shop") == before
    assert shop.decide(**ASK).round == 1


def test_a_batch_is_decided_in_order_and_each_request_stands_alone(shop: Experiment) -> None:
    answers = shop.decide_all(
        [
            {"features": ROWS, "baseline": 0, "decision_id": "a"},
            {"features": ROWS, "baseline": 7, "decision_id": "b"},
            {"features": ROWS, "baseline": "blue"},
            {"features": ROWS, "baseline": 0, "decision_id": "a"},
            {"features": ROWS, "baseline": 0, "decision_id": "c"},
        ]
    )
    rounds = [answer.round if isinstance(answer, Answer) else type(answer).__name__ for answer in answers]
    assert rounds == [1, "InputError", "InputError", 1, 2]
    assert shop.status().rounds == 2


def test_what_was_never_decided_is_not_found(shop: Experiment) -> None:
    with pytest.raises(DecisionError, match="no decision 'nobody'"):
        shop.find("nobody")


@pytest.mark.parametrize("mode", ["shadow", "paused"])
def test_shadow_and_paused_play_the_baseline_and_learn(journal: Journal, mode: Any) -> None:
    shop = Experiment.create(journal, "quiet", safe_policy(), mode=mode, clock=Clock())
    shop.decide(**ASK | {"features": ASK["features"][::-1], "decision_id": None})  # a baseline that moves teaches
    answer = shop.decide(**ASK)
    assert (answer.action, answer.source, answer.is_held) == (0, "baseline", True)
    assert answer.proposal == 1
    assert "would have been allowed" in answer.explanation
    before = shop.policy_state()["ridge"].tobytes()
    assert shop.reward(answer.decision_id, 0.5).is_accepted
    assert shop.policy_state()["ridge"].tobytes() != before
    status = shop.status()
    assert (status.learner_share, status.held_rounds) == (0.0, 2)


def test_modes_change_as_allowed_and_survive_a_restart(journal: Journal) -> None:
    shop = Experiment.create(journal, "shop", safe_policy(), clock=Clock())
    assert shop.status().mode == "shadow"
    assert shop.set_mode("guarded", reason="looks good") == "shadow"
    assert shop.set_mode("guarded") == "guarded"
    assert shop.decide(**ASK).source == "learner"
    with pytest.raises(ModeError, match="from 'guarded' to 'paused', but got 'shadow'"):
        shop.set_mode("shadow")
    shop.set_mode("paused", reason="a complaint")
    again = Experiment.open(journal, "shop", clock=Clock())
    assert again.decide(**ASK).source == "baseline"
    again.set_mode("guarded")
    assert shop.decide(**ASK).source == "learner"
    modes = [event.value() for event in journal.read("shop") if event.kind == events.MODE]
    assert [record["mode"] for record in modes] == ["guarded", "paused", "guarded"]


def test_a_fallback_is_booked_once_as_the_baselines(shop: Experiment) -> None:
    booked = shop.book(**ASK, decision_id="alone")
    assert (booked.source, booked.action, booked.is_fallback) == ("baseline", 0, True)
    assert shop.book(**ASK, decision_id="alone").is_repeat
    assert shop.decide(**ASK, decision_id="alone") == replace(booked, is_repeat=True)
    assert shop.reward("alone", 0.5).is_accepted
    assert (shop.status().rounds, shop.status().fallback_rounds) == (1, 1)


def test_a_fallback_cannot_rewrite_what_the_learner_played(shop: Experiment) -> None:
    assert shop.decide(**ASK, decision_id="visit").source == "learner"
    shop.reward("visit", 0.5)
    with pytest.raises(DecisionSettledError, match="its reward has come"):
        shop.book(**ASK, decision_id="visit")


def test_status_says_where_the_experiment_stands(shop: Experiment) -> None:
    clock = Clock()
    play(shop, World(), clock, 40)
    status = shop.status()
    assert status.rounds == 40 == status.learner_rounds + status.baseline_rounds
    assert status.learner_share == status.learner_rounds / 40
    assert status.pending == 40 - status.learned
    assert status.guaranteed == pytest.approx(status.floor + status.margin)
    assert 0 <= status.worst_margin <= status.margin
    assert 1 <= status.worst_round <= 40
    assert status.estimated_baseline * 0.8 == pytest.approx(status.floor)
    assert not status.is_refuted


def test_status_raises_the_alarm_when_data_refute_the_assumptions(journal: Journal) -> None:
    policy = surefoot.CLUCB2(
        dim=1, alpha=0.1, delta=0.01, noise=0.01, ridge=0.01, theta_bound=1.0, feature_bound=1.0, radius="logdet"
    )
    shop = Experiment.create(journal, "broken", policy, mode="guarded", clock=Clock())
    assert not shop.status().is_refuted
    for _ in range(30):
        shop.reward(shop.decide([[1.0], [0.5]], baseline=1).decision_id, 30.0)  # theta would have to be far beyond 1
    assert shop.status().is_refuted


@pytest.mark.parametrize("policy", [name for name in POLICIES if name not in ("UCB", "LUCB")])
def test_status_has_a_floor_for_every_policy_that_keeps_one(journal: Journal, policy: str) -> None:
    clock = Clock()
    shop = Experiment.create(journal, policy.replace(" ", "-"), POLICIES[policy](), mode="guarded", clock=clock)
    play(shop, World(policy), clock, 20)
    assert np.isfinite(shop.status().floor)


def test_settings_that_make_no_sense_are_refused(journal: Journal) -> None:
    for wrong, rule in [
        ({"mode": "wild"}, "`mode` must be"),
        ({"reward_window": 0.0}, "reward_window > 0"),
        ({"default_reward": 0.0}, "needs a `reward_window`"),
        ({"reward_bounds": (1.0, 0.0)}, "low < high"),
        ({"reward_window": 1.0, "default_reward": 2.0, "reward_bounds": (0.0, 1.0)}, "must lie within"),
        ({"reward_window": 1.0, "default_reward": float("nan")}, "must be finite"),
    ]:
        with pytest.raises(surefoot.errors.ConfigError, match=rule):
            Experiment.create(journal, "never", safe_policy(), **wrong)  # type: ignore[arg-type]
    assert journal.names() == []
