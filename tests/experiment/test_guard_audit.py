"""The audit of a guard: honest journals are clean, and forgeries with all hashes computed anew are found and named."""

import dataclasses
import hashlib
import math
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from surefoot import Guard, ceiling
from surefoot.audit import Report, audit, audit_shards
from surefoot.audit.bank import RebuiltBank, ramp_share
from surefoot.audit.coins import CoinFairness, coin_of
from surefoot.audit.declarations import read_guard
from surefoot.audit.report import as_markdown, promise, verdict
from surefoot.experiment import Experiment, coins, create_shared, decisions, restore
from surefoot.journal import open_journal
from surefoot.reports.audit_page import as_html
from surefoot.rounds import Answer, decode, encode, events
from surefoot.sharing.hub import EdgeTerms, Granted, Hub
from tests.experiment.guard_worlds import SETTINGS, new_guard, play, played
from tests.experiment.tampering import Row, Tamper, assert_named, first, forged, is_learner, load, rehashed, save, swap
from tests.experiment.worlds import Clock
from tests.policies.guard_reference import Bank


@pytest.fixture(scope="module")
def honest_guards(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("guards")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coins, "BLOCK", 60)  # so that several blocks are over, and revealed
        play_guards(folder)
    return folder


def play_guards(folder: Path) -> None:
    for name, kind, window in (("one", "one metric", None), ("window", "one metric", 5.0), ("units", "units", None)):
        with open_journal(folder / f"{name}.db") as journal:
            played(kind, 200, journal=journal, window=window)


@pytest.mark.parametrize(
    ("kind", "window"),
    [*((kind, None) for kind in SETTINGS), *((kind, 7.0) for kind in ("one metric", "several metrics", "played"))],
)
def test_an_honest_journal_is_clean(kind: str, window: float | None) -> None:
    journal, experiment, _ = played(kind, 300, window=window)
    experiment.reward("nobody", dict.fromkeys(new_guard(kind).metrics, 0.5))
    experiment.reward("1-1", dict.fromkeys(new_guard(kind).metrics, 99.0))
    report, status = audit(journal, "shop"), experiment.status()
    assert report.is_clean, list(report.findings)
    assert (report.tally.decisions, report.tally.learner) == (status.rounds, status.learner_rounds)
    assert (report.tally.pending, report.tally.abandoned) == (status.pending, status.abandoned)
    assert report.tally.learner > 0
    assert report.coins is not None
    assert report.coins.coins > 100


@pytest.mark.parametrize("seed", [19, 54])
def test_what_rounding_leaves_of_an_exhausted_bank_is_no_finding(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SETTINGS, "seeded", {**SETTINGS["exhausted reserve"], "seed": seed})
    journal, _, _ = played("seeded", 300)
    report = audit(journal, "shop")
    assert report.is_clean, list(report.findings)


def test_a_reserve_of_whole_rounds_is_spent_to_the_bit_in_the_audit_as_well() -> None:
    guard = Guard(alpha=0.5, delta=0.2, promise="played", reserve=1.0, ramp="gate", seed=3)
    journal = open_journal("memory:")
    experiment = Experiment.create(journal, "shop", guard, mode="guarded")
    sources = [experiment.decide(baseline="old", proposal="new").source for _ in range(30)]
    assert 0 < sources.count("learner") < 3
    assert audit(journal, "shop").is_clean


@pytest.mark.parametrize("shape", [{"alpha": 0.1}, {"alpha": 0.3, "baseline_ceiling": 0.4}])
def test_the_audits_bank_is_that_of_the_slow_reference(shape: dict[str, Any]) -> None:
    (metric,) = read_guard({"delta": 0.05, **shape}).metrics
    ours, theirs = RebuiltBank(metric), Bank(1.0, metric.alpha, metric.low, metric.most, 0.05)
    rng = np.random.default_rng(3)
    for number in range(300):
        share = min(0.98, float(rng.random()) * ours.allowed_at(0.0)) if number % 5 else 0.0
        assert ours.allowed_at(0.0) <= theirs.largest_share() + 1e-9
        is_ours, reward = bool(rng.random() < share), float(rng.random())
        booked = ours.plan(share, None)
        ours.charge(share, is_ours)
        ours.enter(booked, is_ours, math.nan if number % 40 == 39 else reward)
        theirs.enter(share, booked.learner, booked.baseline, is_ours, None if number % 40 == 39 else reward)
        assert ours.log_wealth == pytest.approx(theirs.wealth, rel=1e-9, abs=1e-9)
        assert ours.bound <= theirs.bound() + 1e-9
        assert ours.carried == pytest.approx(theirs.bank, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("told", [{"alpha": 0.1}, {"alpha": 0.1, "goal": "save"}, {"alpha": 0.2, "ramp": "free"}])
def test_the_audits_share_is_that_of_the_guard(told: dict[str, Any]) -> None:
    guard, rng = Guard(delta=0.05, seed=1, **told), np.random.default_rng(1)
    declared = read_guard(guard.settings)
    (bank,) = (RebuiltBank(metric) for metric in declared.metrics)
    for number in range(3000):
        assert guard.share == pytest.approx(ramp_share(declared, [bank]), rel=1e-9)
        made = guard.decide(baseline=0, proposal=1)
        is_ours = made.source == "learner"
        reward = float(rng.random() < (0.4 if not is_ours else 0.6 if number < 1500 else 0.1))
        booked = bank.plan(made.share, None)
        bank.charge(made.share, is_ours)
        bank.enter(booked, is_ours, reward)
        guard.observe(made, reward)
    other = dataclasses.replace(declared, goal="save" if declared.goal == "earn" else "earn")
    if declared.ramp == "auto":
        assert ramp_share(other, [bank]) != pytest.approx(guard.share, rel=0.1)


def test_two_who_sum_up_an_exhausted_bank_differ_by_what_rounding_loses_however_long_it_is() -> None:
    cost = ceiling(0, 1, alpha=0.1, reserve=4.0)
    guard, rng = Guard(delta=0.05, seed=1, metrics={"cost": cost}, ramp="gate"), np.random.default_rng(1)
    declared = read_guard(guard.settings)
    (bank,) = (RebuiltBank(metric) for metric in declared.metrics)
    widest = 0.0
    for _ in range(16_000):  # from round 13,975 on they differed by more than was allowed for
        least, most = (ramp_share(declared, [bank], rounded) for rounded in (-1.0, 1.0))
        assert (1 - 1e-9) * least <= guard.share <= (1 + 1e-9) * most
        widest = max(widest, abs(guard.banks["cost"] - bank.held) / bank.rounding)
        decision = guard.decide(baseline=0, proposal=1)
        is_learner = decision.source == "learner"
        reward = float(rng.random() < (0.5 if is_learner else 0.4))
        booked = bank.plan(decision.share, None)
        bank.charge(decision.share, is_learner)
        bank.enter(booked, is_learner, reward)
        guard.observe(decision, reward)
    assert 0.0 < widest < 0.2
    assert bank.rounding < 1e-9


def test_what_many_open_rounds_owed_is_no_finding_once_they_are_settled() -> None:
    guard, rng = Guard(delta=0.05, seed=1, alpha=0.1, ramp="gate", reserve=9e3), np.random.default_rng(1)
    (bank,) = (RebuiltBank(metric) for metric in read_guard(guard.settings).metrics)
    for _ in range(3):
        batch = [guard.decide(baseline=0, proposal=1) for _ in range(3000)]
        booked = [bank.plan(decision.share, None) for decision in batch]
        for decision in batch:
            bank.charge(decision.share, decision.source == "learner")
        for decision, round_ in zip(batch, booked, strict=True):
            reward = float(rng.random() < 0.5)
            guard.observe(decision, reward)
            bank.enter(round_, decision.source == "learner", reward)
        (record,) = guard.bank_records
        assert record.owed == pytest.approx(bank.owed, rel=1e-9, abs=bank.rounding)
        assert record.carried == pytest.approx(bank.held, rel=1e-9, abs=bank.rounding)
    assert record.owed > 1e-9 > bank.owed


def a_share(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=80)
    row["payload"]["share"] = min(0.97, 1.01 * row["payload"]["share"])
    return int(row["number"])


def a_share_far_beyond_the_bank(rows: list[Row]) -> int:
    # The least share of all: coins are the system's, and luck may have filled the bank early.
    drawn = [row for row in rows if row["kind"] == "round" and row["payload"]["mode"] == "guarded"]
    row = min((row for row in drawn if row["payload"]["share"] > 0.0), key=lambda row: row["payload"]["share"])
    row["payload"].update(share=0.98, source="learner", draw=0.5)
    return int(row["number"])


def a_draw(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: is_learner(p) and p["share"] < 0.95, after=80)
    row["payload"]["draw"] = 0.99
    return int(row["number"])


def a_side_with_its_coin(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: is_learner(p) and p["share"] < 0.95, after=80)
    row["payload"].update(draw=0.99, source="baseline")
    return int(row["number"])


def a_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=80)
    row["payload"]["values"]["reward"] = 0.5 + 0.4 * row["payload"]["values"]["reward"]
    return int(row["number"])


def a_reward_out_of_its_bounds(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=80)
    row["payload"]["values"]["reward"] = 1.5
    return int(row["number"])


def rewards_of_two_rounds(rows: list[Row]) -> int:
    one = first(rows, "reward", lambda p: not p.get("refused"), after=80)
    two = first(rows, "reward", lambda p: not p.get("refused"), after=one["number"])
    one["payload"]["values"], two["payload"]["values"] = two["payload"]["values"], one["payload"]["values"]
    return int(one["number"])


def a_reward_before_its_decision(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=80)
    at = next(i for i, other in enumerate(rows) if other["key"] == f"d:{row['payload']['decision_id']}")
    swap(rows, at, rows.index(row))
    rows[at]["time"], row["time"] = row["time"], rows[at]["time"]
    return int(rows[at]["number"])


def a_prediction_that_a_bet_rests_on(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: p["share"] > 0.4 and p["request"].get("prediction"), after=80)
    row["payload"]["request"]["prediction"] = {"reward": 0.9}
    return int(row["number"])


def a_bound(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=80)
    row["payload"]["certificate"]["banks"][0]["bound"] += 1e-6
    return int(row["number"])


def what_is_carried(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=80)
    row["payload"]["certificate"]["banks"][0]["carried"] *= 1.001
    return int(row["number"])


def a_wealth(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=80)
    row["payload"]["certificate"]["banks"][0]["log_wealth"][7] += 1e-6
    return int(row["number"])


def a_bad_round_that_is_dropped(rows: list[Row]) -> int:
    """The round and its reward are gone, and all later rounds are numbered anew."""
    paid = {row["payload"]["decision_id"]: row for row in rows if row["kind"] == "reward"}
    bad = next(
        row
        for row in rows
        if row["kind"] == "round"
        and row["number"] > 80
        and row["payload"]["decision_id"] in paid
        and paid[row["payload"]["decision_id"]]["payload"]["values"]["reward"] < 0.3
    )
    rows.remove(paid[bad["payload"]["decision_id"]])
    rows.remove(bad)
    for row in rows:
        if row["kind"] == "round" and row["number"] > bad["number"]:
            row["payload"]["round"] -= 1
    return int(bad["number"]) - 1


def an_abandoned_round_that_is_given_its_reward(rows: list[Row]) -> int:
    row = first(rows, "abandoned", after=40)
    row.update(kind="reward", payload={**row["payload"], "values": {"reward": 1.0}})
    row["payload"].pop("reason", None)
    return int(row["number"])


def a_reward_refused_though_it_counts(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=80)
    row["payload"]["refused"], row["key"] = "out_of_range", None
    return int(row["number"])


def a_learner_in_shadow(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: p["mode"] == "shadow")
    row["payload"].update(source="learner", share=0.2, draw=0.1)
    return int(row["number"])


def a_setting(name: str, value: Any) -> Tamper:
    def tamper(rows: list[Row]) -> int:
        rows[0]["payload"]["settings"][name] = value
        return 1

    tamper.__name__ = f"declared_{name}"
    return tamper


FORGED: dict[Tamper, tuple[str, int]] = {
    a_share: ("share", 0),
    a_share_far_beyond_the_bank: ("gate", 0),
    a_draw: ("source", 0),
    a_side_with_its_coin: ("certificate", 30),
    a_reward: ("certificate", 30),
    a_reward_out_of_its_bounds: ("reward", 0),
    rewards_of_two_rounds: ("certificate", 40),
    a_reward_before_its_decision: ("reward", 0),
    a_prediction_that_a_bet_rests_on: ("certificate", 40),
    a_bound: ("certificate", 0),
    what_is_carried: ("certificate", 0),
    a_wealth: ("certificate", 0),
    a_bad_round_that_is_dropped: ("certificate", 40),
    an_abandoned_round_that_is_given_its_reward: ("certificate", 40),
    a_reward_refused_though_it_counts: ("refused", 0),
    a_learner_in_shadow: ("held", 0),
    a_setting("alpha", 0.4): ("certificate", 40),
    a_setting("delta", 0.5): ("certificate", 2),
    a_setting("reserve", 1.0): ("certificate", 2),
    a_setting("min_holdout", 0.0): ("settings", 0),
    a_setting("baseline_ceiling", 0.5): ("certificate", 150),
    a_setting("ramp", "gate"): ("share", 150),
    a_setting("reward_bounds", [0.0, 0.0]): ("settings", 0),
}


@pytest.mark.parametrize("tamper", FORGED, ids=lambda tamper: tamper.__name__)
def test_a_forgery_is_found_and_named(honest_guards: Path, tamper: Tamper, tmp_path: Path) -> None:
    check, later = FORGED[tamper]
    assert_named(honest_guards, "one", tamper, tmp_path, check=check, later=later)


@pytest.mark.parametrize(("reason", "value"), [("unknown", 0.7), ("too_late", 0.5), ("conflict", 0.5)])
def test_a_reward_that_waits_for_an_earlier_round_is_not_refused(reason: Any, value: float) -> None:
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", Guard(alpha=0.1, delta=0.05, reserve=20.0), mode="guarded", clock=Clock())
    answers = [shop.decide(baseline="old", proposal="new") for _ in range(2)]
    assert all(answer.share for answer in answers)
    assert shop.reward(answers[1].decision_id, 0.5).is_accepted
    assert audit(journal, "shop").is_clean
    record = events.Reward(decision_id=answers[1].decision_id, values={"reward": value}, refused=reason)
    journal.transact("shop", lambda t: t.append("reward", encode(record), time=2e9))
    assert [finding.what for finding in audit(journal, "shop").findings] == ["refused"]


def a_default_that_nobody_declared(rows: list[Row]) -> int:
    """The guard was honest about its default; the settings now say that there was none."""
    rows[0]["payload"]["settings"]["default_reward"] = None
    return next(int(row["number"]) for row in rows if row["kind"] == "settled")


def a_window_that_says_its_reward_came(rows: list[Row]) -> int:
    row = first(rows, "settled", lambda p: any(is_missing for _, _, is_missing in p["windows"]))
    row["payload"]["windows"] = [[id_, round_, False] for id_, round_, _ in row["payload"]["windows"]]
    return int(row["number"])


def a_window_that_closed_early(rows: list[Row]) -> int:
    row = first(rows, "settled", after=80)
    row["payload"]["windows"].append(["4-60", 80, True])
    return int(row["number"])


@pytest.mark.parametrize(
    ("tamper", "check"),
    [(a_window_that_says_its_reward_came, "settled"), (a_window_that_closed_early, "window")],
)
def test_windows_cannot_be_forged(honest_guards: Path, tamper: Tamper, check: str, tmp_path: Path) -> None:
    assert_named(honest_guards, "window", tamper, tmp_path, check=check, later=0)


def test_a_missing_reward_booked_at_a_default_that_was_not_declared_is_found(tmp_path: Path) -> None:
    with open_journal(tmp_path / "default.db") as journal:
        played("one metric", 100, journal=journal, window=5.0, default_reward=0.9)
        assert audit(journal, "shop").is_clean
    (tmp_path / "out").mkdir()
    assert_named(tmp_path, "default", a_default_that_nobody_declared, tmp_path / "out", check="certificate", later=200)


def a_side_of_a_unit(rows: list[Row]) -> int:
    row = first(rows, "visit", is_learner)
    row["payload"]["source"] = "baseline"
    return int(row["number"])


def a_unit_whose_coin_is_drawn_again(rows: list[Row]) -> int:
    visit = first(rows, "visit", lambda p: p["source"] == "baseline" and p["mode"] == "guarded")
    opened = first(rows, "round", lambda p: p["round"] == visit["payload"]["round"])
    visit["kind"] = "round"
    visit["payload"]["certificate"] = opened["payload"]["certificate"]
    return int(visit["number"])


def a_visit_of_another_round(rows: list[Row]) -> int:
    row = first(rows, "visit")
    row["payload"]["round"] += 1
    return int(row["number"])


@pytest.mark.parametrize("tamper", [a_side_of_a_unit, a_unit_whose_coin_is_drawn_again, a_visit_of_another_round])
def test_a_unit_must_keep_its_side(honest_guards: Path, tamper: Tamper, tmp_path: Path) -> None:
    assert_named(honest_guards, "units", tamper, tmp_path, check="unit", later=0)


def cheated(monkeypatch: pytest.MonkeyPatch, coin: Callable[..., float], rounds: int = 500) -> Report:
    """An experiment that is honest in all but its coin: certificates, shares and sources all fit."""
    monkeypatch.setattr(coins, "coin_of", coin)
    clock, guard, journal = Clock(), new_guard(), open_journal("memory:")
    experiment = Experiment.create(journal, "shop", guard, mode="guarded", clock=clock)
    play(experiment, guard, clock, rounds)
    return audit(journal, "shop")


def drawn_twice(secret: bytes, round_: int) -> float:
    return min(coin_of(secret, round_), coin_of(secret[::-1], round_))


def test_a_coin_that_is_drawn_again_until_it_suits_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    report = cheated(monkeypatch, drawn_twice)
    assert set(report.findings.counts) == {"coins"}
    assert "fair coins" in next(iter(report.findings)).text
    assert "UNFAIR" in as_markdown(report)
    monkeypatch.setattr(coins, "BLOCK", 10)
    report = cheated(monkeypatch, drawn_twice, 30)
    assert set(report.findings.counts) == {"draw"}, "its secret shows it at once"


@pytest.mark.parametrize("name", ["constant", "alternating", "walking"])
def test_coins_that_repeat_or_follow_each_other_are_found(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    rng, last = np.random.default_rng(2), [0.5]

    def walking(secret: bytes, round_: int) -> float:
        last[0] = (last[0] + 0.1 * rng.random()) % 1.0
        return last[0]

    ways: dict[str, Callable[[bytes, int], float]] = {
        "constant": lambda secret, round_: 0.77,
        "alternating": lambda secret, round_: 0.25 if round_ % 2 else 0.75,
        "walking": walking,
    }
    assert cheated(monkeypatch, ways[name], 900).findings.counts["coins"] == 1


def test_fair_coins_are_hardly_ever_called_unfair() -> None:
    rng = np.random.default_rng(5)
    for _ in range(40):
        fairness = CoinFairness()
        for _ in range(300):
            share, draw = float(rng.random()), float(rng.random())
            assert not fairness.toss(share, draw, draw < share)
            fairness.rewarded(float(rng.random()))
        assert fairness.most < math.log(40 * 100)


def test_a_coin_that_follows_the_last_reward_is_found() -> None:
    rng, fairness, reward = np.random.default_rng(6), CoinFairness(), 0.5
    found = False
    for _ in range(400):
        draw = float(rng.random())
        if rng.random() < 0.5 and (draw < 0.5) != (reward > 0.5):
            draw = 1.0 - draw
        found |= fairness.toss(0.5, draw, draw < 0.5)
        reward = float(rng.random())
        fairness.rewarded(reward)
    assert found


def a_coin_on_the_same_side(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=80)
    row["payload"]["draw"] *= 0.5
    return int(row["number"])


def a_block(rows: list[Row], after: int = 2) -> Row:
    return first(rows, "coins", lambda payload: "commitment" in payload, after=after)


def a_commitment_after_its_first_coin(rows: list[Row]) -> int:
    row = first(rows, "round", lambda payload: "coins" in payload)
    row["payload"]["coins"] = a_block(rows)["number"]
    return int(row["number"])


def a_block_for_the_round_at_hand(rows: list[Row]) -> int:
    """Whose secret was drawn again until the coin of that round suited."""
    row = a_block(rows)
    row["payload"]["first"] = first(rows, "round", after=row["number"])["payload"]["round"]
    return int(row["number"])


def a_block_that_begins_late(rows: list[Row]) -> int:
    row = a_block(rows)
    row["payload"]["first"] += 1
    return int(first(rows, "round", lambda p: p.get("coins") == row["number"])["number"])


def a_round_without_its_coin(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: "coins" in p and p["source"] == "baseline", after=80)
    row["payload"].update(share=0.0)
    del row["payload"]["coins"], row["payload"]["draw"]
    return int(row["number"])


def a_restore_without_a_new_block(rows: list[Row]) -> int:
    mode = first(rows, "mode")
    mode["payload"]["lost"] = 0
    return int(first(rows, "round", lambda payload: "coins" in payload, after=mode["number"])["number"])


def a_commitment_to_another_secret(rows: list[Row]) -> int:
    """With that secret revealed, so that only the coins are left to show it."""
    block, over = first(rows, "coins"), first(rows, "coins", lambda payload: bool(payload.get("revealed")))
    secret = "ab" * 32
    block["payload"]["commitment"] = hashlib.sha256(bytes.fromhex(secret)).hexdigest()
    over["payload"]["revealed"] = [[block["number"], secret]]
    return next(int(row["number"]) for row in rows if row["payload"].get("coins") == block["number"])


def a_secret_that_is_short(rows: list[Row]) -> int:
    block, over = first(rows, "coins"), first(rows, "coins", lambda payload: bool(payload.get("revealed")))
    block["payload"]["commitment"] = hashlib.sha256(bytes(8)).hexdigest()
    over["payload"]["revealed"] = [[block["number"], bytes(8).hex()]]
    return int(over["number"])


def revealed(secret: str) -> Tamper:
    def tamper(rows: list[Row]) -> int:
        row = first(rows, "coins", lambda p: bool(p.get("revealed")))
        row["payload"]["revealed"] = [[one, secret] for one, _ in row["payload"]["revealed"]]
        return int(row["number"])

    tamper.__name__ = f"revealed_{secret:.4}"
    return tamper


def a_secret_of_no_block(rows: list[Row]) -> int:
    row = first(rows, "coins", lambda p: bool(p.get("revealed")))
    row["payload"]["revealed"] = [[row["number"] - 1, secret] for _, secret in row["payload"]["revealed"]]
    return int(row["number"])


def a_coin_of_a_block_that_was_revealed(rows: list[Row]) -> int:
    began = [row["number"] for row in rows if row["kind"] == "coins"]
    row = first(rows, "round", lambda p: p.get("coins") == began[1])
    row["payload"]["coins"] = began[0]
    return int(row["number"])


def a_coin_of_no_block(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner, after=80)
    row["payload"].pop("coins")
    return int(row["number"])


def a_block_without_a_coin(rows: list[Row]) -> int:
    row = first(rows, "round", lambda p: p["mode"] == "paused")
    row["payload"]["coins"] = first(rows, "coins")["number"]
    return int(row["number"])


def a_secret_that_is_used_twice(rows: list[Row]) -> int:
    row = first(rows, "coins", after=80)
    row["payload"]["commitment"] = first(rows, "coins")["payload"]["commitment"]
    return int(row["number"])


COINS: dict[Tamper, str] = {
    a_coin_on_the_same_side: "draw",
    a_commitment_after_its_first_coin: "block",
    a_block_for_the_round_at_hand: "block",
    a_block_that_begins_late: "block",
    a_round_without_its_coin: "share",
    a_restore_without_a_new_block: "block",
    a_commitment_to_another_secret: "draw",
    a_secret_that_is_short: "secret",
    revealed("cd" * 32): "secret",
    revealed("xyz"): "secret",
    a_secret_of_no_block: "secret",
    a_coin_of_a_block_that_was_revealed: "block",
    a_coin_of_no_block: "block",
    a_block_without_a_coin: "block",
    a_secret_that_is_used_twice: "block",
}


@pytest.mark.parametrize("tamper", COINS, ids=lambda tamper: tamper.__name__)
def test_every_coin_follows_from_a_secret_fixed_before_it(honest_guards: Path, tamper: Tamper, tmp_path: Path) -> None:
    assert_named(honest_guards, "one", tamper, tmp_path, check=COINS[tamper], later=0)


def test_a_block_that_goes_on_for_too_long_is_found(honest_guards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.audit.coins.BLOCK", 50)  # and not 60, as it was played
    with open_journal(honest_guards / "one.db", read_only=True) as journal:
        assert set(audit(journal, "shop").findings.counts) == {"block"}


def test_coins_whose_secret_is_still_hidden_are_counted_and_named(honest_guards: Path, tmp_path: Path) -> None:
    with open_journal(honest_guards / "one.db", read_only=True) as journal:
        report = audit(journal, "shop")
        blocks = [event.number for event in journal.read("shop") if event.kind == "coins"]
    assert report.is_clean
    assert report.coins is not None
    hidden = report.tally.coins_hidden.total()
    assert report.tally.coins_recomputed + hidden == report.coins.coins
    assert report.tally.coins_recomputed > 100
    (last,) = report.tally.coins_hidden
    assert last in blocks[-3:]  # after it there are the last secret, revealed, and perhaps the next block
    assert report.tally.coin_blocks_at_once == 1
    assert f"| coins not yet revealed | {hidden}, of the blocks that begin with event {last:,} |" in as_markdown(report)
    assert report.as_dict()["coins"]["not_revealed"] == hidden > 0
    _, report = forged(honest_guards, "one", revealed("cd" * 32), tmp_path, rehash=True)
    assert report.tally.coins_hidden.total() > hidden, "a wrong secret reveals nothing"


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    for room in ("experiment", "audit"):
        monkeypatch.setattr(f"surefoot.{room}.coins.BLOCK", 20)


def drawn_by(shop: Experiment, rounds: int, **request: Any) -> dict[int, float | None]:
    """The coin of each round, which has an equal share."""
    answers = [shop.decide(baseline="old", proposal="new", **request) for _ in range(rounds)]
    return {one.round: one.draw for one in (shop.round(answer.decision_id) for answer in answers)}


@pytest.mark.usefixtures("short_blocks")
def test_processes_share_their_blocks_where_they_share_a_folder(tmp_path: Path) -> None:
    clock, guard = Clock(), new_guard()
    for name, apart in (("one", None), ("two", tmp_path / "apart")):
        with open_journal(tmp_path / f"{name}.db") as journal:
            one = Experiment.create(journal, "shop", guard, mode="guarded", clock=clock)
            two = Experiment.open(journal, "shop", clock=clock, secrets=apart)
            for turn in range(10):
                play(one if turn % 2 else two, guard, clock, 7, seed=turn)
            report = audit(journal, "shop")
        assert report.is_clean, [*report.findings]
        folders = 1 if apart is None else 2
        assert report.tally.coin_blocks_at_once == report.as_dict()["coins"]["blocks_at_once"] == folders
        assert report.tally.coins_missing == report.as_dict()["coins"]["missing"]
        assert (report.tally.coins_missing > 0) == (folders > 1)
        assert report.tally.coin_blocks >= 4
        assert len(report.tally.coins_hidden) <= folders


@pytest.mark.usefixtures("short_blocks")
def test_a_process_goes_on_with_the_blocks_of_one_that_has_ended(tmp_path: Path) -> None:
    """So nobody restarts until a coin suits, and a process that decides once has a coin for it."""
    for number in range(70):
        with open_journal(tmp_path / "shop.db") as journal:
            shop = Experiment.create(journal, "shop", new_guard(), mode="guarded", clock=Clock(), or_open=True)
            shop.decide(baseline="old", proposal="new", decision_id=f"visit-{number}")
    with open_journal(tmp_path / "shop.db") as journal:
        report = audit(journal, "shop")
        assert report.is_clean, [*report.findings]
        tally = report.tally
        assert (tally.coin_blocks, tally.coin_blocks_at_once, tally.coins_missing) == (4, 1, 0)
        assert (report.coins.coins, tally.coins_recomputed) == (70, 60)  # type: ignore[union-attr]
        assert len([*(tmp_path / "shop.db.coins").iterdir()]) <= 2, "what is revealed is removed"


@pytest.mark.usefixtures("short_blocks")
def test_a_round_that_was_rolled_back_has_the_same_coin(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        shop = Experiment.create(journal, "shop", new_guard(), mode="guarded", clock=Clock())
        lost = list[float | None]()

        def fails(turn: Any) -> None:
            decide = partial(decisions.decide, turn)
            answers = [decide(shop.read({"baseline": "old", "proposal": "new"})) for _ in range(45)]
            lost.extend(
                decode(turn.transaction.find(f"d:{one.decision_id}"), events.PairRound).draw  # type: ignore
                for one in answers
            )
            raise OSError("a disk that is full")

        with pytest.raises(OSError, match="a disk that is full"):
            shop.transact(fails)
        assert list(drawn_by(shop, 20).values()) == lost[:20]
        assert drawn_by(Experiment.open(journal, "shop", clock=Clock()), 1) == {21: lost[20]}
        assert audit(journal, "shop").is_clean


def test_a_process_without_the_secrets_loses_one_round(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        for number in range(5):
            shop = Experiment.create(
                journal,
                "shop",
                new_guard(),
                mode="guarded",
                clock=Clock(),
                or_open=True,
                secrets=tmp_path / str(number),
            )
            drawn = drawn_by(shop, 3)
            assert [draw is None for draw in drawn.values()] == [number > 0, False, False]
        report = audit(journal, "shop")
    assert report.is_clean, [*report.findings]
    assert (report.tally.coins_missing, report.tally.coin_blocks_at_once) == (4, 5)
    assert "| &nbsp;&nbsp;rounds without a coin, where a block had to begin | 4; more" in as_markdown(
        report
    ) or "rounds without a coin, where a block had to begin | 4; more" in as_markdown(report)


class Chosen(coins.Coins):
    """An operator who commits to many blocks, and takes for each round the one whose coin suits."""

    MANY = 20
    pool: ClassVar[list[tuple[int, bytes]]] = []

    def draw(self, turn: Any, round_: int) -> float:
        if round_ == 2:
            for _ in range(self.MANY - 1):
                secret = self._secrets.find(self._secrets.new({one.commitment for one in coins._blocks(turn)}))
                assert secret is not None
                record = events.CoinBlock(commitment=coins.commitment_to(secret), first=round_ + 1)
                self.pool.append((turn.write(events.COINS, record).number, secret))
        draw, share = super().draw(turn, round_), turn.state.policy.share
        suits = [one for one in self.pool if round_ > 2 and coin_of(one[1], round_) < share]
        if suits:
            self.block, secret = self.pool.pop(self.pool.index(suits[0]))  # each once, so that none is hidden twice
            self._first = self._until = 0
            return coin_of(secret, round_)
        return draw


def test_blocks_that_were_there_to_choose_from_are_counted_used_or_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("surefoot.experiment.experiment.Coins", Chosen)
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", new_guard(), mode="guarded", clock=Clock())
    drawn_by(shop, 60)
    report = audit(journal, "shop")
    assert report.is_clean, [*report.findings]
    assert not Chosen.pool
    assert report.tally.coin_blocks_at_once == Chosen.MANY
    assert f"{Chosen.MANY} for one coin at most" in as_markdown(report)


@pytest.mark.usefixtures("short_blocks")
def test_a_block_that_runs_out_between_two_coins_costs_one_round() -> None:
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", new_guard(), mode="guarded", clock=Clock())
    for _ in range(4):
        shop.decide_all([{"baseline": "old", "proposal": "new"}] + [{"baseline": "old", "proposal": "old"}] * 30)
    report = audit(journal, "shop")
    assert report.is_clean, [*report.findings]
    assert (report.tally.coin_blocks, report.tally.coins_missing, report.tally.coin_blocks_at_once) == (4, 3, 1)


@pytest.mark.parametrize("sealed", [False, True])
def test_no_coin_follows_from_an_id(monkeypatch: pytest.MonkeyPatch, sealed: bool) -> None:
    """Who knows the secret could otherwise choose ids until the coin suits."""
    monkeypatch.setattr(coins, "BLOCK", 20)
    monkeypatch.setattr("surefoot.experiment.coins.secrets.token_bytes", lambda size: b"k" * size)
    drawn = []
    for name in ("a", "b"):
        journal = open_journal("memory:")
        shop = Experiment.create(journal, "shop", new_guard(), mode="guarded", clock=Clock(), sealed=sealed)
        answers = [shop.decide(baseline="old", proposal="new", decision_id=f"{name}{k}") for k in range(15)]
        drawn.append([shop.round(answer.decision_id).draw for answer in answers])
    assert drawn[0] == drawn[1]


@pytest.mark.usefixtures("short_blocks")
def test_blocks_begin_and_end_within_a_batch(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        shop = Experiment.create(journal, "shop", new_guard(), mode="guarded", clock=Clock())
        for _ in range(3):
            answers = shop.decide_all([{"baseline": "old", "proposal": "new"}] * 25)
            shop.reward_all([(answer.decision_id, 0.5) for answer in answers if isinstance(answer, Answer)])
        report = audit(journal, "shop")
    assert report.is_clean, [*report.findings]
    tally = report.tally
    assert (tally.coin_blocks, tally.coin_blocks_at_once, tally.coins_recomputed) == (4, 1, 60)


def test_after_a_restore_no_coin_falls_that_may_have_been_seen(tmp_path: Path) -> None:
    """The copy is used beside the original, whose secrets it finds: each round is decided a second time."""
    path, copied = tmp_path / "shop.db", tmp_path / "copy.db"
    with open_journal(path) as journal:
        shop = Experiment.create(journal, "shop", new_guard(), mode="guarded", clock=Clock())
        drawn_by(shop, 5)
        shop.set_mode("paused")
    shutil.copy(path, copied)
    with open_journal(path) as journal:
        shop = Experiment.open(journal, "shop", clock=Clock())
        shop.set_mode("guarded")
        seen = drawn_by(shop, 5)
    shutil.copytree(tmp_path / "shop.db.coins", tmp_path / "copy.db.coins")
    with open_journal(copied) as copy:
        live = Experiment.open(copy, "shop", clock=Clock())
        restore(copy, by="ada", reason="the disk failed", accept_loss=True)
        live.set_mode("guarded")
        again = drawn_by(live, 5)
        report = audit(copy, "shop")
    assert report.is_clean, [*report.findings]
    assert again.keys() == seen.keys()
    assert not set(again.values()) & set(seen.values())
    assert [draw is None for draw in again.values()] == [True, False, False, False, False]
    assert (report.tally.coin_blocks, report.tally.coin_blocks_at_once) == (2, 1)
    assert report.tally.coins_recomputed == 5, "the block of the lost rounds is over, and revealed"


class LeasedCoins(Hub):
    """A hub that leases as to an edge: with commitments to the secrets of its coins."""

    def of(self, name: str, shard: str) -> "LeasedCoins":
        return self

    def secret(self, block: int) -> bytes:
        return hashlib.sha256(f"secret {block}".encode()).digest()

    def commitment(self, block: int) -> str:
        return hashlib.sha256(self.secret(block)).hexdigest()

    def terms(self) -> EdgeTerms:
        return EdgeTerms(self.now() + 1e6, 10_000, proof=str, commitment=self.commitment)

    def with_secrets(self, granted: Granted | None) -> Any:
        lease = None if granted is None else granted.lease
        if granted is None or lease is None or lease.coins is None:
            return granted
        blocks = range(lease.block, lease.block + len(lease.coins))
        return granted._replace(secrets=tuple(map(self.secret, blocks)))

    def join(self, shard: str, token: str, **extra: Any) -> Granted:
        granted: Granted = self.with_secrets(super().join(shard, token, terms=self.terms(), **extra))
        return granted

    def take(self, hand_in: Any, **extra: Any) -> Granted | None:
        granted: Granted | None = self.with_secrets(super().take(hand_in, terms=self.terms(), **extra))
        return granted


@pytest.fixture(scope="module")
def leased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shard whose coins are leased, over more than two of their blocks."""
    folder, clock = tmp_path_factory.mktemp("leased"), Clock()
    with open_journal(folder / "hub.db") as hub, open_journal(folder / "app.db") as own:
        create_shared(hub, "shop", new_guard(reserve=20.0), mode="guarded", skew=1.0, clock=clock)
        where = LeasedCoins(hub, "shop", clock)
        told: dict[str, Any] = {"every": 300, "seconds": 1e9, "in_background": False, "clock": clock}
        shop = Experiment.join(where, "shop", own, shard="app", **told)
        rng = np.random.default_rng(4)
        for number in range(2100):
            clock.now += 0.01
            answer = shop.decide(baseline=0, proposal=1, decision_id=f"v{number}")
            shop.reward(answer.decision_id, float(rng.random() < (0.8 if answer.source == "learner" else 0.4)))
        assert shop.leases is not None
        shop.leases.renew()
    return folder


def audited_lease(folder: Path, tmp_path: Path, *, hub: Tamper | None = None, app: Tamper | None = None) -> Any:
    for name, tamper in (("hub", hub), ("app", app)):
        shutil.copy(folder / f"{name}.db", tmp_path / f"{name}.db")
        if tamper is not None:
            rows = load(tmp_path / f"{name}.db")
            tamper(rows)
            rows = rehashed(rows)
            save(tmp_path / f"{name}.db", rows, head=(rows[-1]["number"], rows[-1]["hash"]))
    hub_path, own_path = tmp_path / "hub.db", tmp_path / "app.db"
    with open_journal(hub_path, read_only=True) as where, open_journal(own_path, read_only=True) as own:
        return audit_shards(where, "shop", {"app": own})


def test_leased_coins_are_computed_again(leased: Path, tmp_path: Path) -> None:
    report = audited_lease(leased, tmp_path)
    tally = report.shards["app"].tally
    assert report.is_clean, [*report.hub.findings, *report.shards["app"].findings]
    assert (tally.coin_blocks, tally.coin_blocks_at_once) == (3, 1)
    assert tally.coins_recomputed > 1000
    assert len(tally.coins_hidden) == 1


@pytest.mark.parametrize("window", [None, 5.0])
def test_a_shard_hands_in_what_its_rounds_were_settled_by(window: float | None) -> None:
    """Metrics that come one by one, or in part, and within a window a reward that is corrected."""
    clock, hub, own = Clock(), open_journal("memory:"), open_journal("memory:")
    create_shared(
        hub, "shop", new_guard("several metrics"), mode="guarded", skew=1.0, clock=clock, reward_window=window
    )
    told: dict[str, Any] = {"every": 10, "seconds": 1e9, "in_background": False, "clock": clock}
    shop = Experiment.join(hub, "shop", own, shard="app", **told)
    for number in range(60):
        clock.now += 1.0
        shop.decide(baseline=0, proposal=1, decision_id=f"v{number}")
        if number % 7 == 3:
            if window is None and number % 2:
                shop.reward(f"v{number}", {"cost": 0.4})  # and quality never comes
            shop.abandon(f"v{number}")
        elif number % 2:
            shop.reward(f"v{number}", {"cost": 0.3, "quality": 0.6})
        else:
            shop.reward(f"v{number}", {"cost": 0.4})
            shop.reward(f"v{number}", {"quality": 0.7})
            if window is not None:
                shop.correct(f"v{number}", {"quality": 0.2}, reason="measured wrongly")
    assert shop.leases is not None
    clock.now += 10.0
    shop.close_windows()
    shop.leases.renew()
    report = audit_shards(hub, "shop", {"app": own})
    assert report.is_clean, [*report.hub.findings, *report.shards["app"].findings]
    assert report.hub.tally.learned == 60


def a_block_of_ones_own(rows: list[Row]) -> int:
    """Not the one that the lease commits to, and yet a secret that gives the coins."""
    secret, began = "ab" * 32, [row for row in rows if row["kind"] == "coins"]
    began[1]["payload"]["commitment"] = hashlib.sha256(bytes.fromhex(secret)).hexdigest()
    began[2]["payload"]["revealed"] = [[began[1]["number"], secret]]
    for row in rows:
        payload = row["payload"]
        if payload.get("coins") == began[1]["number"] and row["kind"] == "round":
            payload["draw"] = coin_of(bytes.fromhex(secret), payload["round"])
            payload["source"] = "learner" if payload["draw"] < payload["share"] else "baseline"
    return int(began[1]["number"])


def a_block_that_begins_early(rows: list[Row]) -> int:
    """The next secret of the lease, for rounds of the block before."""
    began = [row for row in rows if row["kind"] == "coins"]
    round_ = [row for row in rows if row["payload"].get("coins") == began[0]["number"] and row["kind"] == "round"][-1]
    rows.remove(began[1])
    rows.insert(rows.index(round_), began[1])
    round_["payload"]["coins"] = began[1]["number"]
    return int(round_["number"])


@pytest.mark.parametrize("tamper", [a_block_of_ones_own, a_block_that_begins_early], ids=lambda tamper: tamper.__name__)
def test_a_leased_coin_is_of_the_block_that_its_lease_commits_to(leased: Path, tmp_path: Path, tamper: Tamper) -> None:
    report = audited_lease(leased, tmp_path, app=tamper)
    assert report.shards["app"].findings.counts["block"] > 0


def test_a_leased_coin_cannot_be_changed(leased: Path, tmp_path: Path) -> None:
    report = audited_lease(leased, tmp_path, app=a_coin_on_the_same_side)
    assert report.shards["app"].findings.counts["draw"] == 1


@pytest.mark.parametrize("what", ["another first block", "one secret for two blocks", "two secrets for one block"])
def test_commitments_of_a_lease_are_of_their_blocks(leased: Path, tmp_path: Path, what: str) -> None:
    def tamper(rows: list[Row]) -> int:
        row = [row for row in rows if row["kind"] == "leased"][-1]
        if what == "another first block":
            row["payload"]["block"] -= 1
        elif what == "one secret for two blocks":
            row["payload"]["coins"][3] = row["payload"]["coins"][2]
        else:
            row["payload"]["coins"][0] = hashlib.sha256(b"another").hexdigest()
        return int(row["number"])

    assert audited_lease(leased, tmp_path, hub=tamper).hub.findings.counts["block"] > 0


def test_reports_name_a_seed_and_what_counts_where_no_reward_came() -> None:
    journal, guard = open_journal("memory:"), Guard(alpha=0.1, delta=0.05, seed=7, settle_after=5, default_reward=0.5)
    shop = Experiment.create(journal, "shop", guard, mode="guarded", clock=Clock())
    for _ in range(10):
        shop.decide(baseline="old", proposal="new")
    report = audit(journal, "shop")
    assert report.is_clean
    assert verdict(report).startswith("That is open. The coins follow from a seed of 7")
    assert "'reward' counts 0.5, by definition" in promise(report)


def test_the_coins_of_a_seed_are_computed_again(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with open_journal(tmp_path / "seeded.db") as journal:
        played("schedule", 60, journal=journal)

    def a_coin(rows: list[Row]) -> int:
        row = first(rows, "round", lambda p: (p.get("draw") or 0.0) > 0.6)
        row["payload"]["draw"] = 0.9999
        return int(row["number"])

    assert_named(tmp_path, "seeded", a_coin, tmp_path / "out", check="draw", later=0)


def test_the_report_says_in_words_what_was_promised_and_whether_it_was_kept() -> None:
    for kind, word in (("one metric", "of the mean, coins averaged"), ("played", "of the actions played")):
        report = audit(played(kind, 100)[0], "shop")
        assert word in promise(report)
        assert "at least 70% of what the baseline would have earned" in promise(report)
        assert verdict(report).startswith(f"Yes, the promise {word} was kept")
        assert word in as_html(report)
        assert "coins drawn" in as_markdown(report)
        assert report.as_dict()["coins"]["are_fair"]
    several = promise(audit(played("several metrics", 30)[0], "shop"))
    assert "at most 140% of the baseline's 'cost'" in several


def test_a_reward_of_another_metric_is_a_finding(honest_guards: Path, honest: Path, tmp_path: Path) -> None:
    def another_metric(rows: list[Row]) -> int:
        row = first(rows, "reward", after=20)
        row["payload"]["values"] = {"cost": 0.5}
        return int(row["number"])

    assert_named(honest_guards, "one", another_metric, tmp_path, check="reward", later=0)
    assert_named(honest, "arrival", another_metric, tmp_path, check="reward", later=0)


def test_rounds_of_the_other_kind_are_findings(honest_guards: Path, honest: Path, tmp_path: Path) -> None:
    pair = first(load(honest_guards / "one.db"), "round", after=20)["payload"]
    linear = first(load(honest / "arrival.db"), "round", after=20)["payload"]

    def with_round(payload: Row) -> Tamper:
        def tamper(rows: list[Row]) -> int:
            row = first(rows, "round", after=20)
            row["payload"] = payload
            return int(row["number"])

        return tamper

    assert_named(honest_guards, "one", with_round(linear), tmp_path, check="payload", later=0)
    assert_named(honest, "arrival", with_round(pair), tmp_path, check="payload", later=0)


@pytest.mark.parametrize("kind", ["one metric", "several metrics", "played"])
def test_a_restore_charges_what_is_lost_at_its_worst(kind: str, tmp_path: Path) -> None:
    path, copy = tmp_path / "shop.db", tmp_path / "copy.db"
    clock, guard = Clock(), new_guard(kind)
    with open_journal(path) as journal:
        shop = Experiment.create(journal, "shop", guard, mode="guarded", clock=clock)
        play(shop, guard, clock, 80)
    shutil.copy(path, copy)
    with open_journal(path) as journal:
        play(Experiment.open(journal, "shop", clock=clock), guard, clock, 20, seed=2)
        known = {"shop": journal.head("shop")}
    with open_journal(copy) as journal:
        stood, before = journal.head("shop").number, Experiment.open(journal, "shop").policy_state()["banks"]
        lost = known["shop"].number - stood
        for _ in range(2):  # the second time as if the first had been cut short
            restore(journal, by="ada", reason="the disk failed", known=known, accept_loss=True)
        shop = Experiment.open(journal, "shop", clock=clock)
        after = shop.policy_state()["banks"]
        assert shop.status().mode == "paused"
        metrics = shop.look(lambda state: state.policy.step_settings.metrics)
        for settings, bank, old in zip(metrics, after, before, strict=True):
            worst = 0.98 - settings.alpha if settings.sign > 0 else 0.98
            assert bank[2] - old[2] == pytest.approx(lost * worst, rel=1e-6)  # what is owed
            assert bank[1] <= old[1] - lost * worst + 1e-6 or settings.is_played
        shop.set_mode("guarded")
        play(shop, guard, clock, 30, seed=3)
        report = audit(journal, "shop", expect=())
        assert report.is_clean, [*report.findings]
    (tmp_path / "out").mkdir()
    assert_named(tmp_path, "copy", a_loss_that_is_kept_quiet, tmp_path / "out", check="certificate", later=10)


def a_loss_that_is_kept_quiet(rows: list[Row]) -> int:
    row = first(rows, "mode", lambda payload: "lost" in payload)
    del row["payload"]["lost"]
    return int(row["number"])
