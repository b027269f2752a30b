"""A guard under load whose process is killed at random moments: nothing is lost, and no coin is drawn again."""

import random
from pathlib import Path

import pytest

from tests.experiment.client import begin
from tests.experiment.killing import Notes, a_moment, check_all, one_life


def guard_kills(path: Path, notes: Notes, kills: int, seed: int) -> None:
    rng, address = random.Random(seed), str(path)
    begin(address, "pair")
    for life in range(kills):
        one_life(address, notes, [f"life{life}"], a_moment(rng, notes))
    check_all(address, notes, "pair")
    assert len(notes.paid) > max(5 * kills, len(notes.late))
    assert len(notes.voids) > kills
    assert notes.rounds < len(notes.decisions)  # users came back


@pytest.mark.parametrize("file", ["shop.db", "shop.log"])
def test_a_killed_guard_loses_nothing_and_draws_no_coin_again(tmp_path: Path, file: str) -> None:
    guard_kills(tmp_path / file, Notes(tmp_path / "notes"), kills=8, seed=1)


@pytest.mark.long
def test_a_hundred_kills_lose_nothing_and_draw_no_coin_again(tmp_path: Path) -> None:
    guard_kills(tmp_path / "shop.db", Notes(tmp_path / "notes"), kills=100, seed=2)
