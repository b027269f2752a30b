"""A guard in an experiment: durable coins, late rewards, units, modes, conflicts, and a restart to the bit."""

import asyncio
import json
import math
from pathlib import Path
from typing import Any, TypedDict

import msgspec
import numpy as np
import polars as pl
import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

import surefoot
from surefoot import Guard, ceiling, floor
from surefoot.audit import audit, audit_shards
from surefoot.cli.commands import app
from surefoot.errors import (
    ConfigError,
    DecisionConflictError,
    DecisionSettledError,
    InputError,
)
from surefoot.experiment import Answer, AsyncExperiment, Experiment, create_shared
from surefoot.experiment.export import export as write_export
from surefoot.experiment.export import pair_rounds
from surefoot.experiment.state import first_state
from surefoot.journal import Journal, open_journal
from surefoot.replay import Columns, Declared, read_log, replay
from surefoot.rounds import decode, events
from surefoot.rounds.format import pack
from surefoot.simulation import Spec
from tests.experiment.guard_worlds import SETTINGS, new_guard, played
from tests.experiment.worlds import Clock, safe_policy
from tests.journal.servers import PostgresServer, new_database


class Actions(TypedDict):
    baseline: Any
    proposal: Any


Asked = dict[str, Any]
ASKED: Actions = {"baseline": "big", "proposal": {"model": "small", "t": [0.5, 1]}}


def start(guard: Guard | None = None, *, mode: Any = "guarded", **more: Any) -> Experiment:
    return Experiment.create(open_journal("memory:"), "shop", guard or new_guard(), mode=mode, clock=Clock(), **more)


def bits(experiment: Experiment) -> bytes:
    return pack([experiment.policy_state(), repr(msgspec.structs.asdict(experiment.status()))])


def replayed(journal: Journal) -> bytes:
    """The guard after a replay of every event, without any snapshot."""
    view = journal.view("shop")
    state = first_state(view)
    for event in view.read(1):
        state.apply(event, view)
    return pack(state.policy.state())


def test_an_answer_has_the_action_its_source_and_its_honest_propensity() -> None:
    shop = start(new_guard(seed=5))
    answers = [shop.decide(**ASKED) for _ in range(40)]
    for answer in answers:
        is_learner = answer.source == "learner"
        assert answer.share is not None
        assert answer.margin is not None
        assert answer.action == (ASKED["proposal"] if is_learner else "big")
        assert answer.probability == (answer.share if is_learner else 1.0 - answer.share)
        draw = shop.round(answer.decision_id).draw
        assert draw is not None
        assert is_learner == (draw < answer.share)
        assert answer.margin >= 0.0
        assert "share of 0.3" in answer.explanation
    assert {answer.source for answer in answers} == {"learner", "baseline"}
    assert [answer.round for answer in answers] == list(range(1, 41))


def test_the_coin_is_the_guards_own_and_is_written_before_it_is_told() -> None:
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", new_guard(seed=5), mode="guarded")
    plain = new_guard(seed=5)
    for number in range(30):
        answer, twin = shop.decide(**ASKED, decision_id=str(number)), plain.decide(**ASKED)
        event = journal.find("shop", f"d:{number}")
        assert event is not None
        record = decode(event, events.PairRound)
        assert (answer.share, record.draw, answer.source) == (twin.share, twin.draw, twin.source)
        assert (record.share, record.source) == (answer.share, answer.source)
        shop.reward(str(number), 0.7)
        plain.observe(twin, 0.7)
    assert (shop.policy_state()["banks"] == plain.state()["banks"]).all()


def test_the_same_id_has_the_same_coin_for_ever_and_another_request_is_a_conflict() -> None:
    shop = start()
    first = shop.decide(**ASKED, decision_id="a", context={"who": 3})
    for _ in range(20):
        again = shop.decide(**ASKED, decision_id="a", context={"who": 3})
        assert again == replace(first, is_repeat=True)
    assert shop.find("a") == again
    others: list[Asked] = [{"baseline": "huge"}, {"proposal": 3}, {"prediction": 0.4}, {"context": {"who": 4}}]
    for other in others:
        with pytest.raises(DecisionConflictError, match="was asked before"):
            shop.decide(**{**ASKED, "context": {"who": 3}, **other}, decision_id="a")
    assert shop.status().rounds == 1


@pytest.mark.parametrize("mode", ["shadow", "paused"])
def test_where_the_learner_may_not_play_the_baseline_is_held_and_earns_slack(mode: Any) -> None:
    shop = start(mode=mode)
    for _ in range(30):
        answer = shop.decide(**ASKED)
        assert (answer.source, answer.share, answer.probability, answer.is_held) == ("baseline", 0.0, 1.0, True)
        assert shop.round(answer.decision_id).draw is None
        shop.reward(answer.decision_id, 1.0)
    status = shop.status()
    assert status.guard is not None
    assert status.guard.metrics["reward"].bank > 0.0
    assert (status.held_rounds, status.learner_rounds) == (30, 0)
    assert "as asked" in answer.explanation


def test_rounds_that_were_held_are_none_in_which_the_learner_could_have_played() -> None:
    shop = Experiment.create(open_journal("memory:"), "shop", Guard(alpha=0.1, delta=0.05), mode="shadow")
    for mode in ("shadow", "guarded", "paused"):
        shop.set_mode(mode)
        for proposal in ("new", "new", "old"):
            shop.decide(baseline="old", proposal=proposal)
    guard = shop.status().guard
    assert guard is not None
    assert guard.differing_rounds == 2


def test_a_fallback_is_the_baselines_and_never_the_learners() -> None:
    shop = start(new_guard(alpha=0.9, seed=1))
    booked = shop.book(**ASKED, decision_id="alone")
    assert (booked.source, booked.share, booked.is_fallback) == ("baseline", 0.0, True)
    assert shop.book(**ASKED, decision_id="alone").is_repeat
    learner = next(answer for answer in (shop.decide(**ASKED) for _ in range(50)) if answer.source == "learner")
    shop.reward(learner.decision_id, 1.0)
    with pytest.raises(DecisionSettledError, match="its reward has come"):
        shop.book(**ASKED, decision_id=learner.decision_id)
    with pytest.raises(InputError, match="decision_id"):
        shop.book(**ASKED)


def test_rewards_are_accepted_once_and_refused_with_a_reason() -> None:
    shop = start()
    for name in "abc":
        shop.decide(**ASKED, decision_id=name)
    before = shop.policy_state()
    for bad in (1.5, -0.1, math.nan, math.inf):
        assert shop.reward("a", bad).refused == "out_of_range"
    assert pack(shop.policy_state()) == pack(before)
    assert shop.reward("a", 0.5).is_accepted
    assert shop.reward("a", {"reward": 0.5}).is_repeat
    assert shop.reward("a", 0.6).refused == "conflict"
    assert shop.reward("nobody", 0.6).refused == "unknown"
    assert shop.abandon("b", reason="lost")
    assert shop.reward("b", 0.6).refused == "abandoned"
    with pytest.raises(DecisionSettledError):
        shop.abandon("a")
    for none in ([1], "0.5", True):
        with pytest.raises(InputError, match="must be a number"):
            shop.reward("c", none)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="metrics of this experiment are reward"):
        shop.reward("c", {"clicks": 1.0})
    assert shop.status().refused == {"out_of_range": 4, "conflict": 1, "unknown": 1, "abandoned": 1}


def test_what_visits_of_a_unit_have_brought_is_not_corrected_while_its_sum_waits() -> None:
    shop = start(new_guard(seed=2, unit_window=3))
    shop.decide(**ASKED, decision_id="first")
    for name in ("v1", "v2"):
        shop.decide(**ASKED, unit="u", decision_id=name)
        shop.reward(name, 0.4)
    for _ in range(3):
        shop.decide(**ASKED)
    before = shop.policy_state()["waiting_rewards"]
    assert before.tolist() == [[0.8]]
    with pytest.raises(DecisionSettledError, match="a part of its unit's"):
        shop.correct("v1", 0.1, reason="a test")
    assert (shop.policy_state()["waiting_rewards"] == before).all()


def test_late_rewards_enter_in_the_order_of_the_decisions() -> None:
    shop, twin = start(new_guard(seed=2)), new_guard(seed=2)
    for name in "abc":
        shop.decide(**ASKED, decision_id=name)
        twin.decide(**ASKED)
    shop.reward("c", 0.9)
    shop.reward("b", 0.8)
    assert shop.status().waiting == 2
    assert shop.status().held_up_by == "a"
    shop.abandon("a")
    twin.abandon(1)
    twin.observe(2, 0.8)
    twin.observe(3, 0.9)
    assert (shop.policy_state()["banks"] == twin.state()["banks"]).all()
    assert shop.status().pending == 0


def test_a_round_that_many_rewards_have_overtaken_is_said_to_be_late_until_its_own_comes() -> None:
    shop = start(new_guard(seed=2))

    def standing() -> tuple[int, int, int]:
        status = shop.status()
        assert status.guard is not None
        return status.guard.late_rounds, status.waiting, status.pending

    for name in "abcdefghij":
        shop.decide(**ASKED, decision_id=name)
    for name in "bcdefgh":
        shop.reward(name, 0.8)
    assert standing() == (0, 7, 10)
    shop.reward("i", 0.8)
    assert standing() == (1, 0, 2)
    assert shop.status().held_up_by is None
    shop.reward("a", 0.8)
    assert standing() == (0, 0, 1)


@pytest.mark.parametrize("default", [None, 0.3])
def test_a_window_settles_by_the_default_or_at_the_worst(default: float | None) -> None:
    clock, twin = Clock(), new_guard(seed=2)
    guard = new_guard(seed=2, default_reward=default)
    shop = Experiment.create(open_journal("memory:"), "shop", guard, mode="guarded", reward_window=10.0, clock=clock)
    for name in "ab":
        shop.decide(**ASKED, decision_id=name)
        twin.decide(**ASKED)
    assert shop.reward("b", 0.8).is_accepted
    clock.now += 10.0
    assert shop.close_windows() == 2
    assert shop.reward("a", 0.5).refused == "too_late"
    twin.abandon(1) if default is None else twin.observe(1, default)
    twin.observe(2, 0.8)
    assert (shop.policy_state()["banks"] == twin.state()["banks"]).all()
    assert (shop.status().defaults, shop.status().pending) == (1, 0)


def test_a_unit_keeps_its_side_and_its_visits_share_a_round_and_a_sum() -> None:
    shop = start(new_guard("units", seed=4))
    first = shop.decide(**ASKED, unit="ann", decision_id="1")
    again = shop.decide(baseline="big", proposal="tiny", unit="ann", decision_id="2")
    assert again.is_visit
    assert (again.round, again.source, again.share) == (first.round, first.source, first.share)
    assert again.action == ("tiny" if first.source == "learner" else "big")
    assert shop.decide(baseline="big", proposal="tiny", unit="ann", decision_id="2").is_repeat
    assert "Another visit of unit 'ann'" in again.explanation
    assert shop.reward("1", 0.25).is_accepted
    assert shop.reward("2", 0.5).is_accepted
    status = shop.status()
    assert status.guard is not None
    assert (status.rounds, status.guard.visits, status.guard.open_units, status.pending) == (1, 1, 1, 1)
    for number in range(6):
        shop.decide(**ASKED, unit=f"other-{number}")
    assert shop.reward("2", 0.5).is_repeat
    twin = new_guard("units", seed=4)
    twin.observe(twin.decide(**ASKED), 0.75)
    assert (shop.policy_state()["banks"][0, -12:] == twin.state()["banks"][0, -12:]).all()
    late = shop.decide(**ASKED, unit="ann", decision_id="3")
    assert (late.round, late.is_visit) == (8, False)


def test_a_unit_that_is_paused_plays_the_baseline_and_keeps_its_round() -> None:
    shop, rounds = start(new_guard("units", alpha=0.9, seed=4)), dict[str, Answer]()
    for number in range(6):
        rounds[f"u{number}"] = shop.decide(**ASKED, unit=f"u{number}")
    learner = next(answer for answer in rounds.values() if answer.source == "learner")
    shop.set_mode("paused")
    held = shop.decide(**ASKED, unit=learner.unit)
    assert (held.round, held.source, held.share, held.action) == (learner.round, "baseline", 0.0, "big")
    shop.set_mode("guarded")
    assert shop.decide(**ASKED, unit=learner.unit).source == "learner"


def test_a_round_that_a_unit_has_closed_takes_no_more_rewards() -> None:
    shop = start(new_guard("units"))
    shop.decide(**ASKED, unit="ann", decision_id="1")
    shop.decide(**ASKED, unit="ann", decision_id="2")
    for _ in range(6):
        shop.decide(**ASKED)
    assert shop.reward("2", 0.5).refused == "too_late"
    with pytest.raises(DecisionSettledError):
        shop.abandon("1")


def test_several_metrics_are_named() -> None:
    shop = start(new_guard("several metrics"))
    shop.decide(**ASKED, decision_id="1")
    with pytest.raises(InputError, match="must name its metrics"):
        shop.reward("1", 0.9)
    with pytest.raises(InputError, match="must name its metrics"):
        shop.decide(**ASKED, prediction=0.4)


SERVED = {"quality": floor(0, 1, alpha=0.3, reserve=9.0), "latency": ceiling(0, 2, alpha=0.4, reserve=9.0)}
WINDOWS: dict[str, dict[str, Any]] = {"none": {}, "seconds": {"reward_window": 3600.0}, "rounds": {"settle_after": 9}}


def served(window: str, **more: Any) -> tuple[Journal, Experiment, Guard]:
    """An experiment with two metrics, and a guard beside it that is told both at once."""
    guard: dict[str, Any] = {"metrics": SERVED, "delta": 0.2, "seed": 3, "ramp": "gate"}
    if window == "rounds":
        guard |= WINDOWS[window]
    settings = WINDOWS[window] if window == "seconds" else {}
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", Guard(**guard), mode="guarded", clock=Clock(), **settings, **more)
    return journal, shop, Guard(**shop.settings.settings)


def close(shop: Experiment, twin: Guard) -> None:
    """Let every window pass."""
    shop.clock.now += 3600.0  # type: ignore[attr-defined]
    shop.close_windows()
    if twin.settings["settle_after"] is not None:
        for _ in range(9):
            shop.decide(baseline="big", proposal="big")
            twin.decide(baseline="big", proposal="big")


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("window", WINDOWS)
def test_metrics_that_come_one_by_one_are_one_learning(window: str, sealed: bool) -> None:
    journal, shop, twin = served(window, sealed=sealed)
    for number in range(8):
        shop.decide(**ASKED, decision_id=str(number))
        twin.decide(**ASKED)
    for number in range(8):
        assert shop.reward(str(number), {"latency": 0.25 * number}).is_accepted
        assert (shop.status().learned, shop.status().pending) == (0, 8)
    assert bits(Experiment.open(journal, "shop", clock=shop.clock)) == bits(shop)
    shop.snapshot()
    shop = Experiment.open(journal, "shop", clock=shop.clock)
    again, other = shop.reward("5", {"latency": 1.25}), shop.reward("5", {"latency": 1.0, "quality": 0.5})
    assert (again.is_repeat, other.refused) == (True, "conflict")
    for number in reversed(range(8)):  # each with a metric that was told before
        assert not shop.reward(str(number), {"quality": 0.125 * number, "latency": 0.25 * number}).is_repeat
        twin.observe(number + 1, {"quality": 0.125 * number, "latency": 0.25 * number})
    close(shop, twin)
    assert (shop.policy_state()["banks"] == twin.state()["banks"]).all()
    assert shop.status().rewards == 16
    assert shop.reward("5", {"latency": 1.25}).is_repeat
    assert shop.reward("5", {"quality": 0.5}).refused == "conflict"
    assert bits(Experiment.open(journal, "shop", clock=shop.clock)) == bits(shop)
    assert replayed(journal) == pack(shop.policy_state())
    assert audit(journal, "shop").is_clean


@pytest.mark.parametrize("window", WINDOWS)
def test_a_metric_that_never_comes_counts_at_its_worst(window: str) -> None:
    journal, shop, twin = served(window)
    for name in "abc":
        shop.decide(**ASKED, decision_id=name)
        twin.decide(**ASKED)
    for name in "ab":
        shop.reward(name, {"latency": 0.5})
    shop.reward("c", {"latency": 0.5, "quality": 1.0})
    if window == "none":  # it would hold up all others for ever
        assert shop.status().held_up_by == "a"
        assert [shop.abandon("a", reason="lost"), shop.abandon("a"), shop.abandon("b")] == [True, False, True]
        assert shop.reward("a", {"quality": 0.5}).refused == "abandoned"
    elif window == "seconds":
        with pytest.raises(DecisionSettledError):
            shop.abandon("a")
    for round_ in (1, 2):
        twin.observe(round_, {"latency": 0.5})
    twin.observe(3, {"latency": 0.5, "quality": 1.0})
    close(shop, twin)
    if window != "none":
        assert shop.reward("a", {"quality": 0.5}).refused == "too_late"
    # A window of rounds books them later, between rounds whose bets rest on the bank: the audit knows how.
    assert window == "rounds" or (shop.policy_state()["banks"] == twin.state()["banks"]).all()
    assert twin.booked.means(is_learner=False) == twin.from_state(shop.policy_state()).booked.means(is_learner=False)
    assert replayed(journal) == pack(shop.policy_state())
    report = audit(journal, "shop")
    assert report.is_clean, list(report.findings)
    rewards = [row["rewards"] for row in pair_rounds(journal, "shop")]
    assert rewards[:3] == [{"latency": 0.5}, {"latency": 0.5}, {"latency": 0.5, "quality": 1.0}]


@pytest.mark.parametrize("where", ["process", "shard"])
def test_a_bill_that_gets_lost_once_the_quality_came_counts_at_its_worst(where: str) -> None:
    """Its default is for a window that closes: by losing high bills alone a costly learner would look cheap."""
    metrics = {"quality": floor(0, 1, alpha=0.1), "cost": ceiling(0, 1, alpha=0.2, default=0.0)}
    guard, journal, clock = Guard(delta=0.2, metrics=metrics, goal="save"), open_journal("memory:"), Clock()
    journals = {"a": open_journal("memory:")}
    if where == "process":
        shop = Experiment.create(journal, "shop", guard, mode="guarded", clock=clock)
    else:
        create_shared(journal, "shop", guard, mode="guarded", clock=clock)
        shop = Experiment.join(journal, "shop", journals["a"], shard="a", in_background=False, clock=clock)
    rng, worst = np.random.default_rng(7), 0.0
    slack = 0.0
    for number in range(300):
        clock.now += 1.0
        answer = shop.decide(baseline="old", proposal="new", decision_id=f"d{number}")
        share = answer.share or 0.0
        slack += (share + 0.2) * 0.3 - share * 0.9
        worst = min(worst, slack)
        cost = float(rng.random() < {"old": 0.3, "new": 0.9}[answer.action])
        shop.reward(f"d{number}", {"quality": 0.8})
        if cost and answer.action == "new":
            shop.abandon(f"d{number}", reason="the bill was lost")
        else:
            shop.reward(f"d{number}", {"cost": cost})
        if shop.leases is not None and number % 20 == 19:
            shop.leases.renew()
    assert worst == 0.0
    report = audit(journal, "shop") if where == "process" else audit_shards(journal, "shop", journals)
    assert report.is_clean


def test_parts_of_one_decision_are_never_those_of_another() -> None:
    _, shop, _ = served("none")
    for name in ("a", "a.2", "2:a"):
        shop.decide(**ASKED, decision_id=name)
    for name in ("a.2", "2:a", "a"):
        assert not shop.reward(name, {"latency": 0.5}).is_repeat
    for name in ("a", "a.2", "2:a"):
        assert not shop.reward(name, {"quality": 0.5}).is_repeat
    assert (shop.status().rewards, shop.status().learned) == (6, 3)


def test_the_status_says_share_banks_who_binds_and_the_lift() -> None:
    shop = start(new_guard(seed=8))
    for _ in range(200):
        answer = shop.decide(**ASKED)
        shop.reward(answer.decision_id, 0.6 if answer.source == "learner" else 0.5)
    status = shop.status()
    assert status.guard is not None
    assert (status.guard.binds, status.guard.promise) == ("reward", "mean")
    assert status.guard.metrics["reward"].learner_mean == pytest.approx(0.6)
    assert status.guard.metrics["reward"].lift == pytest.approx(0.2)
    assert status.guard.share <= status.guard.allowed
    assert status.guard.metrics["reward"].bank > 0.0
    assert status.learner_share == status.learner_rounds / 200
    assert math.isnan(status.floor)


@pytest.mark.parametrize(
    ("kind", "window"), [*((kind, None) for kind in SETTINGS), ("one metric", 7.0), ("several metrics", 7.0)]
)
def test_a_restart_is_the_live_guard_to_the_bit(kind: str, window: float | None) -> None:
    journal, live, clock = played(kind, 120, window=window)
    opened = Experiment.open(journal, "shop", clock=clock)
    assert bits(opened) == bits(live)
    assert replayed(journal) == pack(live.policy_state())
    assert live.status().learner_rounds > 0
    shared = live.decide(**ASKED, decision_id="next")
    assert opened.decide(**ASKED, decision_id="next") == replace(shared, is_repeat=True)
    assert bits(opened) == bits(live)


def test_a_restart_on_sqlite_is_to_the_bit(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        state = pack(played("units", 80, journal=journal)[1].policy_state())
    with open_journal(tmp_path / "shop.db") as journal:
        assert pack(Experiment.open(journal, "shop").policy_state()) == state == replayed(journal)


def test_two_processes_on_postgres_share_one_guard(server: PostgresServer) -> None:
    url = new_database(server)
    with open_journal(url) as one, open_journal(url) as two:
        left = Experiment.create(one, "shop", new_guard(), mode="guarded")
        right = Experiment.open(two, "shop")
        for number in range(20):
            shop, other = (left, right) if number % 2 else (right, left)
            answer = shop.decide(**ASKED, decision_id=str(number))
            assert other.decide(**ASKED, decision_id=str(number)) == replace(answer, is_repeat=True)
            other.reward(str(number), 0.5)
        assert bits(left) == bits(right)
        assert replayed(one) == pack(left.policy_state())


def test_an_event_loop_and_batches_give_the_same_answers() -> None:
    plain = start(new_guard(seed=6))

    async def visits() -> list[Answer]:
        async with AsyncExperiment(plain) as shop:
            answers = [await shop.decide(**ASKED, decision_id=str(number)) for number in range(5)]
            await shop.decide(baseline="big", proposal="small", decision_id="5")
            await shop.reward_all([("0", 0.5), ("1", {"reward": 0.25})])
            return [*answers, *await shop.decide_all([{"baseline": "big", "proposal": "small", "decision_id": "6"}])]  # type: ignore[list-item]

    answers = asyncio.run(visits())
    twin = start(new_guard(seed=6))
    batch = twin.decide_all([dict(**ASKED) for _ in range(5)])
    assert [answer.round for answer in answers] == [1, 2, 3, 4, 5, 7]
    draws = [twin.round(one.decision_id).draw for one in batch if isinstance(one, Answer)]
    assert draws == [plain.round(answer.decision_id).draw for answer in answers[:5]]


def test_requests_of_the_other_kind_are_refused_and_change_nothing() -> None:
    shop, rows = start(), Experiment.create(open_journal("memory:"), "rows", safe_policy())
    bad: list[Asked] = [
        {"baseline": "big"},
        {"proposal": "small"},
        {"baseline": None, "proposal": "small"},
        {"features": [[1.0]], "baseline": 0},
        {"baseline": object(), "proposal": 3},
        {"baseline": math.nan, "proposal": 3},
        {**ASKED, "unit": "ann"},
        {**ASKED, "prediction": math.inf},
        {**ASKED, "context": 3},
    ]
    for asked in bad:
        with pytest.raises(InputError):
            shop.decide(**asked)
    with pytest.raises(InputError, match="no `proposal`"):
        rows.decide(baseline=0, proposal=1)
    assert isinstance(shop.decide_all([{"baseline": 0}])[0], InputError)
    assert isinstance(rows.decide_all([{"baseline": 0, "proposal": 1}])[0], InputError)
    assert (shop.status().rounds, rows.status().rounds) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "more", "what"),
    [
        ("one metric", {"reward_bounds": (0, 1)}, "not for a guard"),
        ("one metric", {"reward_window": 5.0, "default_reward": 0.0}, "not for a guard"),
        ("units", {"reward_window": 5.0}, "must be one of"),
        ("settled after", {"reward_window": 5.0}, "must be one of"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(kind: str, more: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        start(new_guard(kind), **more)


def test_a_unit_of_which_nothing_is_heard_must_count_at_its_worst() -> None:
    for kind in ("odd bounds", "several metrics"):
        with pytest.raises(ConfigError, match="A unit without a reward counts as 0"):
            start(new_guard(kind, unit_window=5))
    with pytest.raises(ConfigError, match="settled by `unit_window`"):
        start(new_guard("units", settle_after=3))


def test_a_used_guard_is_refused_and_there_is_no_alarm_to_answer() -> None:
    guard = new_guard()
    guard.decide(**ASKED)
    with pytest.raises(ConfigError, match="must be new"):
        start(guard)
    with pytest.raises(surefoot.errors.AlarmError):
        start().acknowledge("stay", reason="no alarm")


def test_a_guard_is_created_and_exported_on_the_command_line(tmp_path: Path) -> None:
    journal, table, lines = (tmp_path / name for name in ("g.journal", "g.parquet", "g.dsjson"))
    told = ["experiment", "create", str(journal), "models", "--policy", "Guard", "--mode", "guarded"]
    made = CliRunner().invoke(app, [*told, "--set", "alpha=0.4", "--set", "delta=0.05"])
    assert made.exit_code == 0, made.output
    with open_journal(journal) as opened:
        models = Experiment.open(opened, "models")
        for number in range(40):
            answer = models.decide(baseline={"model": "big"}, proposal={"model": "small"}, decision_id=f"r{number}")
            if number % 4:
                models.reward(answer.decision_id, 0.5)
    for file in (table, lines):
        done = CliRunner().invoke(app, ["experiment", "export", str(journal), "models", str(file)])
        assert done.exit_code == 0, done.output
    rows = pl.read_parquet(table)
    assert rows.height == 40
    assert rows["reward_reward"].count() == 30
    is_learner = rows["source"] == "learner"
    assert 0 < is_learner.sum() < 40
    propensity = pl.when(pl.col("source") == "learner").then("share").otherwise(1 - pl.col("share"))
    assert (rows.select(propensity.alias("p"))["p"] == rows["probability"]).all()
    assert (is_learner == (rows["draw"] < rows["share"])).all()
    decoded = [json.loads(line) for line in lines.read_text().splitlines()]
    assert len(decoded) == 30
    assert all(math.isclose(sum(line["p"]), 1.0) for line in decoded)
    assert {line["_label_probability"] for line in decoded} == {line["p"][0] for line in decoded}


def test_what_a_guard_decided_is_a_log_that_replay_can_weigh_by_its_coins(tmp_path: Path) -> None:
    journal, rng = open_journal("memory:"), np.random.default_rng(0)
    models = Experiment.create(journal, "models", Guard(alpha=0.3, delta=0.05, seed=2, min_holdout=0.2), mode="guarded")
    for number in range(1500):
        answer = models.decide(baseline="big", proposal="small", context={"hour": number % 24})
        models.reward(answer.decision_id, float(rng.random() < (0.7 if answer.source == "learner" else 0.3)))
    files = [tmp_path / "models.dsjson", tmp_path / "models.parquet"]
    for file in files:
        assert write_export(journal, "models", file) == 1500
    columns = Columns(action="source", reward="reward_reward", propensity="probability", context=())
    for log in (read_log(files[0], baseline="1"), read_log(files[1], columns=columns, baseline="baseline")):
        declared = Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.3, reward_bounds=(0.0, 1.0))
        (found,) = replay(log, [Spec("LUCB")], declared=declared, evaluator="importance")
        assert found.main["baseline"].low < 0.3 < found.main["baseline"].high
        assert found.main["gain"].low > 0.0
