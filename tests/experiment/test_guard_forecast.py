"""An experiment predicts the baseline's rewards from contexts, and records what it said: nothing else rests on it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import Guard
from surefoot.audit import audit, audit_shards
from surefoot.audit.coins import LIMIT, CoinFairness
from surefoot.errors import InputError
from surefoot.experiment import Experiment, create_shared
from surefoot.experiment.kinds import Pair
from surefoot.experiment.state import FORECAST_BYTES, recent_rounds
from surefoot.journal import Journal, open_journal
from surefoot.rounds import decode
from surefoot.rounds.events import ROUND, Created, PairRound
from tests.experiment.tampering import Row, assert_named, first
from tests.experiment.worlds import Clock

MEANS = {"phone": 0.05, "desk": 0.85}  # of the baseline; the learner earns a little more


def new_shop(journal: Journal, *, sealed: bool = False, **settings: Any) -> Experiment:
    guard = Guard(**{"alpha": 0.1, "delta": 0.05, **settings})
    return Experiment.create(
        journal, "shop", guard, mode="guarded", clock=Clock(), snapshot_every=100, sealed=sealed, secrets=None
    )


def visit(shop: Experiment, rng: np.random.Generator, number: int, **others: Any) -> None:
    device = ("phone", "desk")[rng.integers(2)]
    context = {"person": f"ada-{number}", "device": device, "age": int(rng.integers(18, 80))}
    request: dict[str, Any] = {"baseline": "old", "proposal": "new", "context": context, **others}
    answer = shop.decide(decision_id=f"visit-{number}", **request)
    shop.reward(answer.decision_id, float(rng.random() < MEANS[device] * (1.1 if answer.source == "learner" else 1.0)))


def play(shop: Experiment, rounds: int, *, start: int = 0, seed: int = 1, **others: Any) -> None:
    rng = np.random.default_rng(seed)
    for number in range(start, start + rounds):
        visit(shop, rng, number, **others)


def forecasts(journal: Journal, name: str = "shop") -> list[dict[str, float] | None]:
    view = journal.view(name)
    return [decode(event, PairRound).forecast for event in view.read() if event.kind == ROUND]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_context_that_tells_is_used_and_what_was_said_is_recorded_and_audited(sealed: bool) -> None:
    journal = open_journal("memory:")
    shop = new_shop(journal, sealed=sealed)
    play(shop, 300)
    said = forecasts(journal)
    assert said[:50] == [None] * 50
    known = [one["reward"] for one in said[150:] if one is not None]
    assert len(known) == 150
    assert min(known) < 0.2
    assert max(known) > 0.7
    report = audit(journal, "shop")
    assert report.is_clean, list(report.findings)


def test_it_proves_more_from_the_same_rewards() -> None:
    def bank(predict: bool) -> float:
        shop = new_shop(open_journal("memory:"), predict=predict, ramp="free", seed=5)
        play(shop, 600)
        (metric,) = shop.status().guard.metrics.values()  # type: ignore[union-attr]
        return metric.bank

    assert bank(True) > bank(False) + 2.0


@pytest.mark.parametrize(
    ("settings", "others", "is_used"),
    [
        ({}, {}, True),
        ({"predict": False}, {}, False),
        ({"baseline_ceiling": 0.9}, {}, False),
        ({}, {"prediction": 0.4}, False),
        ({}, {"proposal": "old"}, False),
        ({}, {"context": None}, False),
        ({}, {"context": {"person": "ada", "large": 10**400, "many": [1, 2]}}, False),
        ({"unit_window": 3}, {}, False),
    ],
    ids=str,
)
def test_it_is_used_where_nothing_speaks_against_it(
    settings: dict[str, Any], others: dict[str, Any], is_used: bool
) -> None:
    journal = open_journal("memory:")
    shop = new_shop(journal, **settings)
    play(shop, 130, **others)
    assert any(forecasts(journal)) is is_used
    assert audit(journal, "shop").is_clean


@pytest.mark.parametrize("window", [None, 5.0])
def test_it_is_made_again_of_what_the_journal_holds(tmp_path: Path, window: float | None) -> None:
    clock = Clock()
    with open_journal(tmp_path / "shop.db") as journal:
        guard = Guard(alpha=0.1, delta=0.05, seed=1)
        shop = Experiment.create(
            journal, "shop", guard, mode="guarded", clock=clock, reward_window=window, snapshot_every=40
        )
        rng = np.random.default_rng(3)
        for number in range(200):
            clock.now += 1.0
            visit(shop, rng, number)
        state = shop.policy_state()
    with open_journal(tmp_path / "shop.db") as journal:
        again = Experiment.open(journal, "shop", clock=clock)
        np.testing.assert_equal(again.policy_state(), state)
        play(again, 10, start=200)
        assert None not in forecasts(journal)[-10:]
        assert audit(journal, "shop").is_clean


def test_an_erased_context_is_no_longer_learned_from_and_everything_else_is_as_it_was(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        shop = new_shop(journal, sealed=True)
        play(shop, 200)
        said, state = forecasts(journal), shop.policy_state()
        assert shop.erase(before=shop.clock() + 1.0, by="ada", reason="asked to") == 200
        np.testing.assert_equal(shop.policy_state(), state)
        play(shop, 20, start=200, seed=2)
        assert forecasts(journal) == said + [None] * 20
        state = shop.policy_state()
    with open_journal(tmp_path / "shop.db") as journal:
        np.testing.assert_equal(Experiment.open(journal, "shop").policy_state(), state)
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)


def test_a_forecast_that_is_changed_afterwards_is_found(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        play(new_shop(journal), 200)

    def change(rows: list[Row]) -> int:
        # At a share of alpha or less the bets do not use it: changing it there changes nothing.
        row = first(rows, ROUND, lambda payload: payload.get("forecast") is not None and payload["share"] > 0.11)
        row["payload"]["forecast"]["reward"] += 0.3
        return int(row["number"])

    (tmp_path / "forged").mkdir()
    assert_named(tmp_path, "shop", change, tmp_path / "forged", check="certificate", later=4)


LIES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, float]]] = {
    "predict is off": ({"predict": False}, {}, {"reward": 0.4}),
    "a ceiling is declared": ({"baseline_ceiling": 0.6}, {}, {"reward": 0.4}),
    "units have several contexts": ({"unit_window": 50}, {}, {"reward": 0.4}),
    "no such metric": ({}, {}, {"reward": 0.4, "clicks": 0.4}),
    "the caller predicted": ({}, {"prediction": 0.5}, {"reward": 0.4}),
    "nothing to decide": ({}, {"proposal": "old"}, {"reward": 0.4}),
    "no context": ({}, {"context": None}, {"reward": 0.4}),
    "held": ({}, {}, {"reward": 0.4}),
}


@pytest.mark.parametrize("lie", LIES)
def test_a_forecast_that_nobody_was_allowed_to_make_is_found(tmp_path: Path, lie: str) -> None:
    settings, others, said = LIES[lie]
    with open_journal(tmp_path / "shop.db") as journal:
        shop = new_shop(journal, **settings)
        play(shop, 20, **others)
        if lie == "held":
            shop.set_mode("paused")
            play(shop, 5, start=20)

    def add(rows: list[Row]) -> int:
        row = [row for row in rows if row["kind"] == ROUND][-1]
        row["payload"]["forecast"] = said
        return int(row["number"])

    (tmp_path / "forged").mkdir()
    assert_named(tmp_path, "shop", add, tmp_path / "forged", check="forecast", later=0)


@pytest.mark.parametrize("follows", ["the coin", "the reward"])
def test_predictions_that_are_chosen_after_the_coin_are_found(follows: str) -> None:
    rng, fairness, honest = np.random.default_rng(7), CoinFairness(), CoinFairness()
    for _ in range(3000):
        draw, guess = float(rng.random()), float(rng.random())
        is_learner = draw < 0.4
        reward = float(rng.random() < (0.3 if is_learner else 0.5))
        assert not honest.toss(0.4, draw, is_learner, [guess])
        fairness.toss(0.4, draw, is_learner, [float(not is_learner) if follows == "the coin" else reward])
    assert fairness.most > LIMIT


def test_shards_hand_in_what_they_said_and_the_audit_recomputes_the_bank_from_it() -> None:
    hub, clock = open_journal("memory:"), Clock()
    create_shared(hub, "shop", Guard(alpha=0.1, delta=0.05), mode="guarded", skew=1.0, clock=clock)
    journals = {name: open_journal("memory:") for name in ("berlin", "paris")}
    shops = {
        name: Experiment.join(hub, "shop", journal, shard=name, in_background=False, clock=clock)
        for name, journal in journals.items()
    }
    rng = np.random.default_rng(4)
    for number in range(240):
        clock.now += 0.1
        shop = shops[("berlin", "paris")[number % 2]]
        visit(shop, rng, number)
        if number % 20 == 19:
            assert shop.leases is not None
            shop.leases.renew()
    for journal in journals.values():
        assert any(forecasts(journal, journal.names()[0]))
    assert audit_shards(hub, "shop", journals).is_clean


def test_a_context_is_at_most_as_deep_as_a_journal_can_be_read_again() -> None:
    shop, deep = new_shop(open_journal("memory:")), dict[str, Any]()
    for _ in range(200):
        deep = {"a": deep}
    with pytest.raises(InputError, match="`context` must be nested at most"):
        shop.decide(baseline="old", proposal="new", context=deep)
    assert shop.status().rounds == 0


def test_a_unit_that_cannot_be_written_is_refused_before_its_coin() -> None:
    guard = Guard(alpha=0.1, delta=0.05, unit_window=5)
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", guard, mode="guarded")
    for _ in range(3):
        with pytest.raises(InputError, match="`unit` must be 1 to 200 printable characters"):
            shop.decide(baseline="old", proposal="new", unit="\ud800")
        shop.decide(baseline="old", proposal="new", unit="eve")
    assert audit(journal, "shop").tally.coin_blocks == 1  # a coin that was never written would begin another


def test_a_damaged_text_stops_no_other_decision(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.journal") as journal:
        shop = new_shop(journal, sealed=True)
        for n in range(60):
            answer = shop.decide(baseline="old", proposal="new", context={"n": n})
            shop.reward(answer.decision_id, 1.0)
    with closing(sqlite3.connect(tmp_path / "shop.journal")) as file, file:
        texts = "select min(number) + 20 from private"
        damaged = file.execute(f"update private set text = ? where number = ({texts})", (b'{"decision_id": 5}',))
        assert damaged.rowcount == 1
    with open_journal(tmp_path / "shop.journal") as journal:
        assert Experiment.open(journal, "shop").decide(baseline="old", proposal="new", context={"n": 3}).round == 61


def test_a_forecast_is_made_of_what_is_read_in_a_moment() -> None:
    journal = open_journal("memory:")
    shop = new_shop(journal)
    for n in range(150):
        context = {"n": n} | {f"field-{k}": "x" * 20 for k in range(1000)}
        shop.reward(shop.decide(baseline="old", proposal="new", context=context).decision_id, 0.5)
    view = journal.view("shop")
    assert sum(len(event.payload) for event in view.newest_of(ROUND, 150)) > FORECAST_BYTES
    assert len(recent_rounds(Pair(decode(view.newest_of("created", 1)[0], Created)), view)) < 150
