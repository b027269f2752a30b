"""Adversaries who speak of rounds after rewards are known: by booking them, or by voiding them, in an order of theirs.

What is learned must be fixed before the noise of later rounds. Words that come afterwards may follow from it, so a
round that is booked teaches nothing, and a void after `confirm_within` raises the alarm.
"""

import hashlib
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.policies.settlement import OpenRound
from tests.experiment.worlds import Clock
from tests.policies.adversaries import NOTHING, PRIZE, Adversary, Journaled, Luck
from tests.policies.safe_runs import most_allowed

LUCK = {0.2: Luck(odds=0.13, streak=2, visits=200), 0.01: Luck(odds=0.15, streak=4, visits=3000)}
RUNS = {0.2: 40, 0.01: 12}
WITHIN = 5.0


def shop_of(luck: Luck, delta: float, clock: Clock, **extra: Any) -> Experiment:
    policy = surefoot.SafeLUCB(**luck.declared(delta))
    journal = surefoot.open_journal("memory:")
    return Experiment.create(journal, "shop", policy, mode="guarded", clock=clock, snapshot_every=0, **extra)


def prizes_until_streak(luck: Luck, rng: np.random.Generator) -> list[bool]:
    """Prizes one after the other, until a streak of them has come or the day is over."""
    drawn, streak = list[bool](), 0
    while streak < luck.streak and len(drawn) < luck.visits:
        drawn.append(bool(rng.random() < luck.odds))
        streak = streak + 1 if drawn[-1] else 0
    return drawn


def flush_last_client_first(adversary: Adversary, shop: Experiment) -> None:
    """An outage: each client played the baseline and knows its reward; then they report, the last one first.

    The day shows prizes until a streak of them has come, and nothing after that.
    """
    luck, drawn = adversary.luck, prizes_until_streak(adversary.luck, adversary.rng)
    for number in reversed(range(luck.visits)):
        is_shown = number < len(drawn)
        shop.book([PRIZE if is_shown else NOTHING], baseline=0, decision_id=f"client-{number}")
        is_prize = is_shown and drawn[number]
        assert shop.reward(f"client-{number}", (is_prize - luck.odds) if is_shown else 0.0).is_accepted
        if is_prize:
            adversary.hand_in(*adversary.tempt())
    adversary.tempt()


def change_mails_until_luck(adversary: Adversary, shop: Experiment, clock: Clock) -> None:
    """Mails are decided in the morning and sent in the evening, the newest first.

    Each is replaced by another one of the same mean, which now and then wins a prize, until a streak of prizes has
    come; the older ones go out as they were decided.
    """
    luck, drawn = adversary.luck, prizes_until_streak(adversary.luck, adversary.rng)
    made = [shop.decide([NOTHING, PRIZE], baseline=0, decision_id=f"mail-{n}") for n in range(luck.visits)]
    clock.now += 10.0
    rewards = [0.0] * luck.visits
    for number, is_prize in zip(reversed(range(luck.visits)), drawn, strict=False):
        if made[number].action == 0:
            shop.void(made[number].decision_id, 1)
        rewards[number] = is_prize - luck.odds
    for number, reward in enumerate(rewards):
        shop.reward(f"mail-{number}", reward)
        if reward > 0.0:
            adversary.hand_in(*adversary.tempt())
    adversary.tempt()


class Tempted(Journaled):
    """A player whose rewards may be refused: those of rounds that were condemned are."""

    def reward(self, made: Any, value: float) -> None:
        self.experiment.reward(made, value)


def run(play: Any, seed: int, delta: float, **extra: Any) -> tuple[bool, Experiment]:
    clock = Clock()
    shop = shop_of(LUCK[delta], delta, clock, **extra)
    adversary = Adversary(Tempted(shop), LUCK[delta], np.random.default_rng([17, seed]))
    play(adversary, shop) if play is flush_last_client_first else play(adversary, shop, clock)
    return adversary.is_below, shop


@pytest.mark.parametrize("delta", LUCK)
def test_clients_that_report_an_outage_last_first_do_not_break_the_floor(delta: float) -> None:
    below = 0
    for seed in range(RUNS[delta]):
        is_below, shop = run(flush_last_client_first, seed, delta)
        below += is_below
        if seed < 3:
            assert not audit(shop.journal, "shop").findings
    assert below <= most_allowed(RUNS[delta], delta)


@pytest.mark.parametrize("delta", LUCK)
def test_voids_that_follow_later_rewards_do_not_break_the_floor(delta: float) -> None:
    below = 0
    for seed in range(RUNS[delta]):
        is_below, shop = run(change_mails_until_luck, seed, delta, confirm_within=WITHIN)
        below += is_below
        if seed < 3:
            report = audit(shop.journal, "shop")
            assert report.is_clean
            assert report.tally.is_refuted == shop.status().is_refuted
    assert below <= most_allowed(RUNS[delta], delta)


def test_a_booked_round_counts_takes_its_reward_and_teaches_nothing() -> None:
    clock = Clock()
    shop = shop_of(LUCK[0.2], 0.2, clock)
    for number in range(5):
        shop.book([PRIZE], baseline=0, decision_id=f"client-{number}")
        assert shop.reward(f"client-{number}", 0.5).is_accepted
    status = shop.status()
    assert (status.rounds, status.baseline_rounds, status.pending) == (5, 5, 0)
    before = shop.policy_state()
    shop.decide([PRIZE], baseline=0, decision_id="asked")
    shop.reward("asked", 0.5)
    assert (before["ridge"] == surefoot.SafeLUCB(**LUCK[0.2].declared(0.2)).state()["ridge"]).all()
    assert (before["ridge"] != shop.policy_state()["ridge"]).any()
    again = Experiment.open(shop.journal, "shop", clock=clock).policy_state()
    assert (again["ridge"] == shop.policy_state()["ridge"]).all()
    assert audit(shop.journal, "shop").is_clean


class Past:
    """An experiment with a random past, and after `split` rounds a future by another seed.

    The future pays the rounds of the past in an order of its own, reports those that were played during outages, and
    has rounds of its own.
    """

    def __init__(self, past: int, future: int, split: int = 60) -> None:
        self.rng, self.shop = np.random.default_rng([past, 0]), shop_of(LUCK[0.2], 0.2, Clock())
        self.unpaid: list[str] = []
        self.unreported: list[tuple[str, Any]] = []
        self.rows: set[bytes] = set()  # of the past
        self.number = 0
        while self.number < split:
            self.step()
        known, self.rng = set(self.rows), np.random.default_rng([past, 1, future])
        for _ in range(120):
            self.step()
        while self.unreported:
            self.report()
        self.rows = known
        for decision_id in list(self.rng.permutation(self.unpaid)):
            self.pay(str(decision_id))

    def step(self) -> None:
        match self.rng.choice(["decide", "outage", "report", "pay"], p=[0.45, 0.15, 0.1, 0.3]):
            case "decide":
                decision_id, rows = self.play()
                self.shop.decide(rows, baseline=0, decision_id=decision_id)
                self.unpaid.append(decision_id)
            case "outage":
                self.unreported.append(self.play())
            case "report" if self.unreported:
                self.report()
            case "pay" if self.unpaid:
                self.pay(self.unpaid.pop(int(self.rng.integers(len(self.unpaid)))))

    def play(self) -> tuple[str, Any]:
        self.number += 1
        rows = self.rng.uniform(0.0, 0.7, size=(2, 2))
        self.rows |= {row.tobytes() for row in rows}
        return f"visit-{self.number}", rows

    def report(self) -> None:
        decision_id, rows = self.unreported.pop(int(self.rng.integers(len(self.unreported))))
        self.shop.book(rows, baseline=0, decision_id=decision_id)
        self.unpaid.append(decision_id)

    def pay(self, decision_id: str) -> None:
        """The same reward in every future: it was fixed when the round was played."""
        assert self.shop.reward(decision_id, (hash_of(decision_id) % 1000) / 1000.0).is_accepted


def hash_of(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest())


@pytest.mark.parametrize("past", range(8))
def test_what_is_learned_of_the_past_does_not_depend_on_the_future(past: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every prefix of what was learned is that of the decisions, whatever came after, and in whatever order."""
    learned: dict[str, list[tuple[bytes, float]]] = {}
    plain = surefoot.SafeLUCB._learn_round

    def noted(policy: Any, entry: OpenRound, reward: float) -> None:
        learned.setdefault(policy.id, []).append((entry[0], reward))
        plain(policy, entry, reward)

    monkeypatch.setattr(surefoot.SafeLUCB, "_learn_round", noted)
    futures = [Past(past, future) for future in (1, 2)]
    first, second = (learned[one.shop.policy_state()["id"]] for one in futures)
    assert first != second
    of_past = [[one for one in all_of_it if one[0][:16] in futures[0].rows] for all_of_it in (first, second)]
    assert len(of_past[0]) > 25
    assert of_past[0] == of_past[1]
