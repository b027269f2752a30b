"""A guard under load whose process is killed at random moments: nothing is lost, and no coin is drawn again."""

import multiprocessing
import random
from pathlib import Path

import pytest
from surefoot.experiment.guard_decide import answer_of

from surefoot.audit import audit
from surefoot.experiment.state import decode
from surefoot.journal import Journal, open_journal
from surefoot.rounds import events
from tests.experiment.client import NAME
from tests.experiment.guard_client import begin, live, reward_of, told
from tests.experiment.killing import Notes, a_moment, check_bits

FORKS = multiprocessing.get_context("forkserver")


def one_life(address: str, notes: Notes, name: str, rng: random.Random) -> None:
    """Start a client, let it run for a moment, and kill it."""
    before = notes.ready
    client = FORKS.Process(target=live, args=(address, name, str(notes.path), notes.unsure), daemon=True)
    client.start()
    notes.await_ready(before + 1)
    a_moment(rng, notes)()
    client.kill()
    client.join()
    notes.catch_up()


def check(journal: Journal, notes: Notes) -> None:
    """Every coin that a client was told is in the journal as it was told, and once; and every reward."""
    coins, rewards, rounds = dict[str, str](), dict[str, float](), 0
    for event in journal.read(NAME):
        if event.kind in (events.GUARDED, events.VISIT):
            answer = answer_of(event, journal.view(NAME), None)
            assert isinstance(answer)
            assert answer.decision_id not in coins
            coins[answer.decision_id] = told(answer)
            rounds += not answer.is_visit
            assert answer.is_visit or answer.round == rounds
        elif event.kind == events.METRIC_REWARD:
            reward = decode(event, events.MetricReward)
            if reward.refused is None:
                rewards[reward.decision_id] = float(reward.values["reward"])
    kept = {line.split()[1] for line in notes.path.read_text().splitlines() if line.startswith("kept ")}
    assert not notes.refused
    assert {name: coins.get(name) for name in notes.got} == notes.got
    assert set(coins) <= notes.asked
    assert all(value == reward_of(name) for name, value in rewards.items())
    assert kept <= set(rewards)
    assert 2 * len(kept) > len(notes.paid)
    assert rounds < len(coins)


def guard_kills(path: Path, notes: Notes, kills: int, seed: int) -> None:
    rng, address = random.Random(seed), str(path)
    begin(address)
    for life in range(kills):
        one_life(address, notes, f"life{life}", rng)
    with open_journal(address) as journal:
        check(journal, notes)
        check_bits(journal)
        report = audit(journal, NAME)
    assert report.is_clean, list(report.findings)
    assert len(notes.paid) > 5 * kills


def test_a_killed_guard_loses_nothing_and_draws_no_coin_again(tmp_path: Path) -> None:
    guard_kills(tmp_path / "shop.db", Notes(tmp_path / "notes"), kills=8, seed=1)


@pytest.mark.long
def test_a_hundred_kills_lose_nothing_and_draw_no_coin_again(tmp_path: Path) -> None:
    guard_kills(tmp_path / "shop.db", Notes(tmp_path / "notes"), kills=100, seed=2)
