"""Learner rounds that nobody says were played: they count at their worst, until somebody does."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.errors import ConfigError, InputError
from surefoot.experiment import Experiment
from surefoot.experiment.export import row_rounds
from surefoot.journal import Journal, canonical, open_journal
from surefoot.rounds.format import pack
from tests.experiment.honest import new_world, rounds_of, safe
from tests.experiment.tampering import Row, first, forged
from tests.experiment.worlds import Clock

LATE = 0.4


def played(
    within: float | None,
    *,
    journal: Journal | None = None,
    rounds: int = 400,
    sealed: bool = False,
    confirms: bool = False,
) -> tuple[Experiment, list[tuple[np.ndarray, int, int]], np.ndarray, Clock]:
    """An experiment of whose answers four in ten come too late, by a caller that says nothing of it.

    The rest is rewarded; with `confirms` half of it is confirmed with the next question, and rewarded much later.
    Returns what was really played, and theta.
    """
    journal, clock, seed = journal or open_journal("memory:"), Clock(), 11
    world = new_world(seed, changing=True)
    policy = safe(alpha=0.3)(world.settings(ridge=0.3, delta=0.05))
    options: dict[str, Any] = {"clock": clock, "snapshot_every": 97, "sealed": sealed}
    shop = Experiment.create(journal, "shop", policy, mode="guarded", confirm_within=within, **options)
    rng, found, waiting, unsaid = np.random.default_rng(seed), list[Any](), list[Any](), list[str]()
    for question, reward in (pair for _, pair in zip(range(rounds), rounds_of(policy, world, seed), strict=False)):
        clock.now += 1.0
        answer = shop.decide(**{**question, "decision_id": f"visit-{len(found)}", "confirms": unsaid})
        unsaid, action = [], answer.action
        if rng.random() < LATE:
            action = question["baseline"]
            shop.abandon(answer.decision_id)  # its reward will never come: no word of what was played
        else:
            unsaid = [answer.decision_id] if confirms and rng.random() < 0.5 else []
            waiting.append((answer.decision_id, reward(action)))
        found.append((question["features"], question["baseline"], action))
        while len(waiting) > (20 if confirms else 3):
            shop.reward(*waiting.pop(0))
    return shop, found, world.theta, clock


@pytest.mark.parametrize(
    ("settings", "window"), [({"settle_after": 5}, None), ({}, 5.0)], ids=["settle_after", "reward_window"]
)
def test_a_window_would_teach_what_nobody_played(settings: dict[str, Any], window: float | None) -> None:
    world = new_world(11, changing=True)
    with open_journal("memory:") as journal:
        policy = safe(alpha=0.3, **settings)(world.settings(ridge=0.3, delta=0.05))
        with pytest.raises(ConfigError, match="`confirm_within` must come without a window"):
            Experiment.create(journal, "shop", policy, confirm_within=20.0, reward_window=window)
        Experiment.create(journal, "shop", policy, reward_window=window)
        created = next(journal.read("shop")).value() | {"confirm_within": 20.0}
        journal.create("older", canonical(created), time=0.0)
        assert Experiment.open(journal, "older").status().rounds == 0, "what was created before still opens"
        assert audit(journal, "shop").is_clean
        assert "settings" in audit(journal, "older").findings.counts


def promised_and_true(within: float | None) -> tuple[float, float]:
    """What the newest certificate of the learner says was earned beyond the floor, and what that was in truth."""
    shop, found, theta, _ = played(within)
    rows = list(row_rounds(shop.journal, "shop"))
    newest = max(number for number, row in enumerate(rows) if row["source"] == "learner")
    offered, baseline, _ = found[newest]
    counted = [*found[:newest], (offered, baseline, rows[newest]["proposal"])]
    return rows[newest]["margin"], sum(float((x[a] - 0.7 * x[b]) @ theta) for x, b, a in counted)


def test_a_service_promises_what_nobody_played_unless_callers_must_confirm_it() -> None:
    promised, true = promised_and_true(None)
    assert promised > true  # the attack: learner's rounds that nobody played, and nobody voided
    promised, true = promised_and_true(5.0)
    assert promised <= true


@pytest.mark.parametrize("sealed", [False, True])
def test_the_audit_of_confirmed_and_overdue_rounds_is_clean_and_a_replay_is_the_same(sealed: bool) -> None:
    shop, _, _, _ = played(5.0, sealed=sealed, confirms=True)
    report = audit(shop.journal, "shop")
    assert report.is_clean, list(report.findings)
    kinds = [event.kind for event in shop.journal.read("shop")]
    assert kinds.count("overdue") > 3
    assert kinds.count("confirmed") > 3
    again = Experiment.open(shop.journal, "shop")
    assert pack(again.policy_state()) == pack(shop.policy_state())
    assert again.status().unconfirmed == shop.status().unconfirmed > 0
    assert shop.status().debt > 0


def test_what_is_confirmed_later_is_charged_no_more() -> None:
    shop, _, _, clock = played(5.0, rounds=200)
    clock.now += 10.0
    late = [f"visit-{n}" for n in range(200)]
    shop.close_windows()
    overdue = shop.status().unconfirmed
    assert overdue > 3
    assert shop.confirm(late[:100]) + shop.confirm(late[100:]) == overdue
    after = shop.status()
    assert (after.unconfirmed, after.debt) == (0, 0.0), "to the bit"
    assert shop.confirm(late) == 0
    assert audit(shop.journal, "shop").is_clean


def one_learner_round() -> tuple[Experiment, str, Clock]:
    shop, _, _, clock = played(5.0, rounds=120)
    shop.confirm([f"visit-{n}" for n in range(120)])
    rows = np.array(list(row_rounds(shop.journal, "shop"))[-1]["features"])
    for _ in range(200):
        clock.now += 0.01
        answer = shop.decide(np.tile(rows, (5, 1)) * np.linspace(0.2, 1.0, 5)[:, None], baseline=2)
        if answer.source == "learner" and answer.action != 2:
            return shop, answer.decision_id, clock
        shop.confirm([answer.decision_id])
    raise AssertionError("the learner never played")


@pytest.mark.parametrize("word", ["confirm", "reward"])
def test_a_late_reward_is_a_word_too(word: str) -> None:
    shop, id_, clock = one_learner_round()
    clock.now += 10.0
    shop.close_windows()
    assert shop.status().unconfirmed == 1
    if word == "confirm":
        assert shop.confirm([id_]) == 1
    else:
        assert shop.reward(id_, 0.3).is_accepted
    assert shop.status().unconfirmed == 0
    assert shop.status().debt == 0.0
    assert audit(shop.journal, "shop").is_clean


def test_a_void_in_time_moves_the_round() -> None:
    shop, id_, _ = one_learner_round()
    assert shop.void(id_)
    assert shop.status().unconfirmed == 0
    assert shop.status().alarm is None
    assert shop.find(id_).source == "baseline"
    assert audit(shop.journal, "shop").is_clean


@pytest.mark.parametrize("way", ["void", "book"])
def test_a_late_void_is_taken_charged_for_good_and_raises_the_alarm(way: str) -> None:
    """Whoever voids after rewards may have come could choose by them: the report counts, and proves nothing."""
    shop, id_, clock = one_learner_round()
    clock.now += 10.0
    if way == "void":
        assert shop.void(id_)
    else:
        asked: Any = shop.round(id_).request
        assert shop.book(asked.features, baseline=asked.baseline, decision_id=id_).source == "baseline"
    status = shop.status()
    assert status.alarm is not None
    assert "was voided" in status.alarm
    assert (status.unconfirmed, status.debt > 0.0) == (1, True)
    assert shop.confirm([id_]) == 0  # no word takes that back
    assert shop.reward(id_, 0.3).refused == "too_late"
    assert shop.status().unconfirmed == 1
    again = Experiment.open(shop.journal, "shop", clock=clock).status()
    assert (again.alarm, again.debt, again.voided) == (status.alarm, status.debt, status.voided)
    assert audit(shop.journal, "shop").is_clean
    shop.acknowledge("renew", reason="The mailer is mended.")
    assert shop.status().unconfirmed == 0
    assert audit(shop.journal, "shop").is_clean


@pytest.mark.parametrize("policy", [surefoot.UCB(arms=2), surefoot.Guard(alpha=0.1, delta=0.05)], ids=["UCB", "Guard"])
def test_only_a_policy_that_can_count_at_its_worst_takes_it(policy: Any) -> None:
    with open_journal("memory:") as journal:
        with pytest.raises(ConfigError, match="`confirm_within` is for SafeLUCB"):
            Experiment.create(journal, "shop", policy, confirm_within=5.0)
        assert journal.names() == []


def test_bad_words_are_refused_and_others_passed_over() -> None:
    shop, id_, _ = one_learner_round()
    with pytest.raises(InputError, match="must be a list"):
        shop.confirm(id_)
    with pytest.raises(InputError, match="at most 400"):
        shop.confirm([id_] * 401)
    assert shop.confirm(["nobody", id_, id_]) == 1


def unsaid(rows: list[Row]) -> int:
    """Leave out the word that rounds are overdue."""
    row = first(rows, "overdue")
    rows.remove(row)
    return int(row["number"])


def early(rows: list[Row]) -> int:
    """Charge a round before it is due, so that its learner is kept out."""
    decided = first(rows, "round", lambda made: made["source"] == "learner")
    at = rows.index(decided) + 1
    told = {"decisions": [[decided["payload"]["decision_id"], decided["payload"]["round"]]]}
    rows.insert(at, {**decided, "kind": "overdue", "payload": told, "key": None})
    return at + 1


def nothing_said(rows: list[Row]) -> int:
    """Confirm what was charged, though nobody has."""
    row = first(rows, "overdue")
    ids = [one[0] for one in row["payload"]["decisions"]]
    rows.insert(rows.index(row) + 1, {**row, "kind": "confirmed", "payload": {"decision_ids": ids}})
    return int(row["number"])


@pytest.mark.parametrize(("tamper", "what"), [(unsaid, "overdue"), (early, "overdue"), (nothing_said, "required")])
def test_a_forged_word_is_found(tamper: Any, what: str, tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        played(5.0, journal=journal, rounds=250)
    (tmp_path / "forged").mkdir()
    _, report = forged(tmp_path, "shop", tamper, tmp_path / "forged", rehash=True)
    assert what in report.findings.counts
