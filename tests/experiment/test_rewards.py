"""Rewards: accepted once, refused with a reason, learned in the order of the decisions."""

import gc
import math
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Answer, Experiment
from surefoot.experiment.rewards import MOST_RECORDED
from surefoot.experiment.turn import MOST_SETTLED
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode, events
from tests.experiment.worlds import LINEAR, SAFE, Clock, safe_policy

ROWS = np.array([[0.6, 0.0], [0.3, 0.4]])
EASY = np.array([[0.9, 0.0], [0.6, 0.0]])  # more of the same, so that the learner plays from the first round on


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def journal() -> Journal:
    return open_journal("memory:")


def shop_with(journal: Journal, clock: Clock, window: float | None) -> Experiment:
    return Experiment.create(
        journal,
        "shop",
        safe_policy(),
        clock=clock,
        reward_window=window,
        reward_bounds=(0.0, 1.0),
    )


def closed(journal: Journal) -> list[tuple[str, bool]]:
    """Windows that closed, in order, and whether their reward was missing."""
    records = [decode(event, events.Settled) for event in journal.read("shop") if event.kind == events.SETTLED]
    return [(window.decision_id, window.is_missing) for record in records for window in record.windows]


@pytest.mark.parametrize("window", [None, 60.0])
def test_a_reward_is_accepted_once(journal: Journal, clock: Clock, window: float | None) -> None:
    shop = shop_with(journal, clock, window)
    shop.decide(ROWS, baseline=0, decision_id="a")
    first, again, other = shop.reward("a", 1.0), shop.reward("a", 1.0), shop.reward("a", 0.5)
    assert (first.is_accepted, first.is_repeat) == (True, False)
    assert (again.is_accepted, again.is_repeat) == (True, True)
    assert (other.is_accepted, other.refused, other.is_recorded) == (False, "conflict", True)
    assert shop.status().rewards == 1
    assert shop.status().refused == {"conflict": 1}


@pytest.mark.parametrize("window", [None, 60.0])
@pytest.mark.parametrize("value", [math.nan, math.inf, 1e200])
def test_a_reward_that_nobody_can_compute_with_is_recorded_and_refused(
    journal: Journal, clock: Clock, window: float | None, value: float
) -> None:
    shop = shop_with(journal, clock, window)
    shop.decide(ROWS, baseline=0, decision_id="a")
    before = shop.policy_state()["ridge"].tobytes()
    assert shop.reward("a", value).refused == "out_of_range"
    event = journal.latest("shop", events.REWARD)
    assert event is not None
    kept = float(decode(event, events.Reward).values[events.METRIC])
    assert kept == value or (math.isnan(kept) and math.isnan(value))
    assert shop.policy_state()["ridge"].tobytes() == before
    assert shop.reward("a", 0.5).is_accepted


@pytest.mark.parametrize("window", [None, 60.0])
@pytest.mark.parametrize("value", [1.0001, -0.1])
def test_a_reward_outside_of_its_bounds_is_booked_and_raises_the_alarm(
    journal: Journal, clock: Clock, window: float | None, value: float
) -> None:
    """To refuse it, or to learn the default instead, would choose the data by their values."""
    shop = shop_with(journal, clock, window)
    shop.set_mode("guarded")
    for name in "abcde":
        shop.decide(EASY, baseline=1, baseline_reward=0.3, decision_id=name)
    assert shop.decide(EASY, baseline=1, baseline_reward=0.3).source == "learner"
    assert shop.reward("a", value).is_accepted
    status = shop.status()
    assert status.is_refuted
    assert status.alarm is not None
    assert f"A reward of {value:g} came in for round 1, but 0 to 1 was declared." in status.alarm
    assert (status.alarm_round, status.alarm_answer) == (6, None)
    assert math.isnan(status.margin)
    answer = shop.decide(EASY, baseline=1, baseline_reward=0.3)
    assert (answer.source, answer.margin) == ("baseline", None)
    assert "the alarm is on" in answer.explanation
    again = Experiment.open(journal, "shop", clock=clock)
    now, before = (repr(msgspec.structs.asdict(one.status())) for one in (again, shop))
    assert now == before  # there are nans in it
    clock.now += 60
    again.close_windows()
    assert again.policy_state()["ridge"][1] == (1 if window is None else 6)  # observations, this one among them
    assert audit(journal, "shop").is_clean


def test_a_reward_that_is_no_number_is_not_even_recorded(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    before = journal.head("shop")
    with pytest.raises(surefoot.errors.InputError, match="must be a number"):
        shop.reward("a", "much")  # type: ignore[arg-type]
    assert journal.head("shop") == before


def test_without_a_window_rewards_are_learned_in_decision_order_as_they_come(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    for name in "abcd":
        shop.decide(ROWS, baseline=0, decision_id=name)
    clock.now += 1e9  # nothing is ever too late
    shop.reward("c", 0.5)
    status = shop.status()
    assert (status.learned, status.pending, status.waiting) == (0, 4, 1)
    assert (status.held_up_by, status.held_up_rounds, status.is_stalled) == ("a", 3, False)
    shop.reward("a", 0.5)
    assert (shop.status().learned, shop.status().held_up_by) == (1, "b")
    assert shop.abandon("b", reason="the tracker was down")
    assert not shop.abandon("b")
    status = shop.status()
    assert (status.learned, status.pending, status.waiting, status.abandoned) == (2, 1, 0, 1)
    assert status.held_up_by is None
    assert closed(journal) == []
    assert shop.reward("b", 1.0).refused == "abandoned"
    assert audit(journal, "shop").is_clean


@pytest.mark.parametrize("window", [None, 60.0])
def test_a_decision_is_abandoned_only_while_its_reward_has_not_come(
    journal: Journal, clock: Clock, window: float | None
) -> None:
    shop = shop_with(journal, clock, window)
    for name in "ab":
        shop.decide(ROWS, baseline=0, decision_id=name)
    shop.reward("b", 1.0)
    before = journal.head("shop")
    with pytest.raises(surefoot.errors.DecisionError, match="would select the data by their values"):
        shop.abandon("b")
    with pytest.raises(surefoot.errors.DecisionError, match="none has the id"):
        shop.abandon("nobody")
    assert journal.head("shop") == before
    shop.abandon("a")
    clock.now += 60
    shop.close_windows()
    status = Experiment.open(journal, "shop", clock=clock).status()
    assert (status.learned, status.pending, status.abandoned) == (1, 0, 1)
    assert audit(journal, "shop").is_clean


def test_a_window_of_rounds_settles_by_the_default_and_refuses_what_comes_later(journal: Journal, clock: Clock) -> None:
    policy = surefoot.SafeLUCB(**SAFE, settle_after=3, default_reward=0.25)
    shop = Experiment.create(journal, "shop", policy, clock=clock)
    for name in "abcd":
        shop.decide(ROWS, baseline=0, decision_id=name)
    assert shop.reward("b", 1.0).is_accepted
    status = shop.status()
    assert (status.learned, status.defaults, status.total_reward) == (2, 1, 1.25)
    assert shop.reward("a", 1.0).refused == "too_late"
    plain = safe_policy()
    for _ in range(4):
        plain.decide(ROWS, baseline=0, hold=True)
    plain.observe(1, 0.25)
    plain.observe(2, 1.0)
    opened = Experiment.open(journal, "shop", clock=clock)
    assert opened.policy_state()["ridge"].tobytes() == plain.state()["ridge"].tobytes()
    assert audit(journal, "shop").is_clean
    with pytest.raises(surefoot.errors.ConfigError, match="one of seconds or of rounds"):
        Experiment.create(journal, "two", surefoot.SafeLUCB(**SAFE, settle_after=3), reward_window=60.0)


def test_rewards_that_wait_for_very_long_are_a_warning(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    shop.decide(ROWS, baseline=0, decision_id="lost")
    ids = [f"visit-{n}" for n in range(1000)]
    shop.decide_all([{"features": ROWS, "baseline": 0, "decision_id": name} for name in ids])
    assert not shop.status().is_stalled
    shop.reward_all([(decision_id, 0.5) for decision_id in ids])
    status = shop.status()
    assert (status.is_stalled, status.held_up_by, status.held_up_rounds, status.waiting) == (True, "lost", 1000, 1000)
    shop.abandon("lost")
    assert (shop.status().is_stalled, shop.status().learned) == (False, 1000)


def test_with_a_window_rewards_are_learned_in_decision_order_when_it_closes(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, 60.0)
    for name in "abc":
        shop.decide(ROWS, baseline=0, decision_id=name)
        clock.now += 10
    shop.reward("c", 0.25)
    shop.reward("a", 0.75)
    assert shop.status().learned == 0
    clock.now += 29.9
    assert shop.close_windows() == 0
    clock.now += 0.1
    assert shop.close_windows() == 1
    clock.now += 20
    assert shop.close_windows() == 2
    assert closed(journal) == [("a", False), ("b", True), ("c", False)]
    assert shop.status().total_reward == 1.0
    assert (shop.status().learned, shop.status().defaults, shop.status().pending) == (3, 1, 0)


def test_windows_teach_what_a_plain_policy_would_learn_in_that_order(journal: Journal, clock: Clock) -> None:
    shop, plain = shop_with(journal, clock, 60.0), safe_policy()
    for name in "abc":
        shop.decide(ROWS, baseline=0, decision_id=name)
        plain.decide(ROWS, baseline=0, hold=True)
    shop.reward("c", 0.25)
    clock.now += 60
    shop.close_windows()
    for round_, value in [(1, 0.0), (2, 0.0), (3, 0.25)]:
        plain.observe(round_, value)
    assert shop.policy_state()["ridge"].tobytes() == plain.state()["ridge"].tobytes()


def test_every_call_closes_what_is_due_first(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, 60.0)
    shop.decide(ROWS, baseline=0, decision_id="a")
    clock.now += 60
    assert shop.reward("a", 1.0).refused == "too_late"
    assert closed(journal) == [("a", True)]
    shop.decide(ROWS, baseline=0, decision_id="b")
    clock.now += 60
    shop.decide(ROWS, baseline=0, decision_id="c")
    assert [name for name, *_ in closed(journal)] == ["a", "b"]


def test_after_the_window_the_same_reward_is_a_repeat_and_another_a_conflict(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, 60.0)
    shop.decide(ROWS, baseline=0, decision_id="a")
    shop.reward("a", 1.0)
    clock.now += 61
    assert shop.reward("a", 1.0).is_repeat
    assert shop.reward("a", 0.5).refused == "conflict"
    assert shop.status().total_reward == 1.0


def test_a_clock_that_is_set_back_keeps_the_order_of_windows(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, 60.0)
    shop.decide(ROWS, baseline=0, decision_id="a")
    clock.now -= 1000
    shop.decide(ROWS, baseline=0, decision_id="b")
    assert shop.find("b").time == shop.find("a").time
    clock.now += 1000 + 60
    assert shop.close_windows() == 2
    times = [event.time for event in journal.read("shop")]
    assert times == sorted(times)


def test_a_long_queue_of_windows_closes_in_several_turns(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, 60.0)
    count = MOST_SETTLED + 5
    shop.decide_all([{"features": ROWS, "baseline": 0, "decision_id": f"d{i}"} for i in range(count)])
    clock.now += 60
    assert shop.reward(f"d{count - 1}", 1.0).refused == "too_late"  # due, though its turn has not come
    assert len(closed(journal)) == MOST_SETTLED
    assert shop.close_windows() == 5
    assert shop.status().defaults == count


def test_the_default_reward_is_what_the_experiment_says(journal: Journal, clock: Clock) -> None:
    policy = surefoot.SafeLUCB(**SAFE)
    shop = Experiment.create(journal, "shop", policy, reward_window=5.0, default_reward=0.25, clock=clock)
    shop.decide(ROWS, baseline=0)
    clock.now += 5
    shop.close_windows()
    assert shop.status().total_reward == 0.25


def test_a_batch_of_rewards_is_judged_one_by_one(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    for name in "ab":
        shop.decide(ROWS, baseline=0, decision_id=name)
    receipts = shop.reward_all([("a", 1.0), ("nobody", 1.0), ("b", 7.0), ("a", 1.0), ("b", 0.0)])
    assert [receipt.refused for receipt in receipts] == [None, "unknown", None, None, "conflict"]
    assert receipts[3].is_repeat


def test_a_flood_of_unknown_ids_is_counted_but_fills_neither_disk_nor_memory(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    before = journal.head("shop").number
    tracemalloc.start()
    for batch in range(20):
        shop.reward_all([(f"nobody-{batch}-{i}", 1.0) for i in range(500)])
        if batch == 2:
            settled = tracemalloc.get_traced_memory()[0]
    grown = tracemalloc.get_traced_memory()[0] - settled
    tracemalloc.stop()
    assert journal.head("shop").number - before == MOST_RECORDED
    assert grown < 100_000
    clock.now += 3600
    assert shop.reward("nobody", 1.0).is_recorded
    event = journal.latest("shop", events.REWARD)
    assert event is not None
    assert decode(event, events.Reward).unrecorded == 10_000 - MOST_RECORDED
    assert shop.status().refused == {"unknown": 10_001}


def test_a_flood_of_one_kind_leaves_room_for_the_others(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    shop.decide(ROWS, baseline=0, decision_id="a")
    shop.reward("a", 1.0)
    shop.reward_all([(f"nobody-{i}", 1.0) for i in range(2 * MOST_RECORDED)])
    assert not shop.reward("nobody", 1.0).is_recorded
    assert shop.reward("a", 0.0).is_recorded


@pytest.mark.parametrize("window", [None, 60.0])
def test_memory_does_not_grow_with_the_number_of_events(tmp_path: Path, clock: Clock, window: float | None) -> None:
    def visit(rounds: int) -> int:
        for _ in range(rounds // 50):
            answers = shop.decide_all([{"features": ROWS, "baseline": 0} for _ in range(50)])
            shop.reward_all([(answer.decision_id, 0.5) for answer in answers if isinstance(answer, Answer)])
            clock.now += 60
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    with open_journal(tmp_path / "shop.db") as journal:
        shop = shop_with(journal, clock, window)
        tracemalloc.start()
        early, late = visit(200), visit(1000)
        tracemalloc.stop()
    assert late - early < 100_000  # a hundred bytes for each of a thousand rounds would show


@pytest.mark.parametrize("text", [None, 7, "x" * 2001, "\ud800"])
def test_a_reason_that_a_journal_cannot_keep_is_refused_and_changes_nothing(
    journal: Journal, clock: Clock, text: Any
) -> None:
    """It could never be read back: the experiment would be lost for ever."""
    shop = shop_with(journal, clock, None)
    shop.decide(ROWS, baseline=0, decision_id="a")
    shop.reward("a", 7.0)
    shop.decide(ROWS, baseline=0, decision_id="b")
    before = journal.head("shop")
    for call in (
        lambda: shop.abandon("b", reason=text),
        lambda: shop.set_mode("paused", reason=text),
        lambda: shop.acknowledge("stay", reason=text),
        lambda: shop.acknowledge("stay", reason="why", by=text),
    ):
        with pytest.raises(surefoot.errors.InputError, match="must be a text of at most 2,000 characters"):
            call()
    assert journal.head("shop") == before
    assert Experiment.open(journal, "shop", clock=clock).status().rounds == 2


def test_an_alarm_is_answered_once_and_never_another_one_by_mistake(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    shop.decide(ROWS, baseline=0, decision_id="a")
    shop.reward("a", 7.0)
    first = shop.status().alarm_round
    with pytest.raises(surefoot.errors.AlarmError, match="the answer is for that of round 9"):
        shop.acknowledge("renew", reason="cents", alarm_round=9)
    for _ in range(2):  # the answer was lost on the way, and the caller asks again
        shop.acknowledge("renew", reason="cents", by="ops", alarm_round=first)
    assert shop.status().restarts == 1
    shop.decide(ROWS, baseline=0, decision_id="b")
    shop.reward("b", 7.0)
    assert (shop.status().is_refuted, shop.status().alarm_answer) == (True, None)
    shop.acknowledge("renew", reason="cents", by="ops", alarm_round=first)
    assert shop.status().is_refuted  # what was asked again was done before, and the new alarm is still on
    assert audit(journal, "shop").is_clean


def test_a_reward_below_the_lowest_rings_when_it_comes_not_when_its_window_closes(
    journal: Journal, clock: Clock
) -> None:
    constraint = {"name": "realised_path", "lowest_reward": 0.0}
    policy = surefoot.SafeLUCB(**{**SAFE, "alpha": 0.9}, constraint=constraint)
    shop = Experiment.create(journal, "shop", policy, mode="guarded", clock=clock, reward_window=60.0)
    made = [shop.decide(EASY, baseline=1, baseline_reward=0.3) for _ in range(30)]
    learner = next(answer for answer in made if answer.source == "learner")
    shop.reward(learner.decision_id, -1.0)
    assert shop.status().is_refuted
    assert shop.decide(EASY, baseline=1, baseline_reward=0.3).source == "baseline"
    clock.now += 60
    shop.close_windows()
    assert audit(journal, "shop").is_clean
    with pytest.raises(surefoot.errors.ConfigError, match="must not lie below lowest_reward=0"):
        surefoot.SafeLUCB(**SAFE, constraint=constraint, settle_after=3, default_reward=-0.1)
    with pytest.raises(surefoot.errors.ConfigError, match="must not lie below lowest_reward=0"):
        Experiment.create(
            journal, "low", surefoot.SafeLUCB(**SAFE, constraint=constraint), reward_window=60.0, default_reward=-0.1
        )


def test_the_floor_is_exact_where_the_baselines_rewards_are_known(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, None)
    for _ in range(100):
        answer = shop.decide(ROWS, baseline=0, baseline_reward=0.5)
        shop.reward(answer.decision_id, 0.5)
    assert shop.status().floor == pytest.approx(0.8 * 50)
    assert shop.status().estimated_baseline == pytest.approx(50)


def test_a_baseline_that_is_no_row_is_refused_whatever_the_policy(journal: Journal, clock: Clock) -> None:
    shop = Experiment.create(journal, "free", surefoot.LUCB(**LINEAR, ridge=1.0), mode="guarded", clock=clock)
    with pytest.raises(surefoot.errors.InputError, match="`0 <= baseline < 2` must hold"):
        shop.decide(ROWS, baseline=7)
    assert shop.status().rounds == 0


def test_a_decision_whose_window_has_passed_is_not_given_up(journal: Journal, clock: Clock) -> None:
    shop = shop_with(journal, clock, 60.0)
    shop.decide_all([{"features": ROWS, "baseline": 0, "decision_id": f"v{n}"} for n in range(MOST_SETTLED + 5)])
    clock.now += 60
    with pytest.raises(surefoot.errors.DecisionSettledError):
        shop.abandon(f"v{MOST_SETTLED + 4}")
