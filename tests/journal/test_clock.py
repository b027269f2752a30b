"""A start notices that the system's clock was set since the journal was last open."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from surefoot.journal import Journal, clock, file, open_journal

DAY = 86_400.0


@pytest.fixture(params=["shop.db", "shop.log"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)


@pytest.fixture
def set_forward(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Set the system's clock; the one that counts from when the machine was switched on goes on as before."""
    real = time.time
    return lambda seconds: monkeypatch.setattr(time, "time", lambda: real() + seconds)


def jump(path: Path) -> float:
    with open_journal(path) as journal:
        return journal.clock_jump()


def test_a_start_with_a_clock_a_day_ahead_is_noticed_once(path: Path, set_forward: Callable[[float], None]) -> None:
    assert jump(path) == 0.0
    assert jump(path) == pytest.approx(0.0, abs=30.0)
    set_forward(DAY)
    assert jump(path) == pytest.approx(DAY, abs=30.0)
    # Whoever starts once more, after the alarm, means it.
    assert jump(path) == pytest.approx(0.0, abs=30.0)
    set_forward(0.0)
    assert jump(path) == pytest.approx(-DAY, abs=30.0)


def test_a_clock_that_was_set_while_a_server_ran_is_noticed_at_its_next_start(
    path: Path, set_forward: Callable[[float], None]
) -> None:
    with open_journal(path) as journal:
        journal.probe()
        set_forward(DAY)
        for _ in range(3):
            journal.probe()
        assert journal.clock_jump() == 0.0
    assert jump(path) == pytest.approx(DAY, abs=30.0)


def test_small_corrections_add_up_to_no_jump(path: Path, set_forward: Callable[[float], None]) -> None:
    with open_journal(path) as journal:
        for seconds in range(0, 300, 50):
            set_forward(float(seconds))
            journal.probe()
    assert jump(path) == pytest.approx(0.0, abs=30.0)


def test_after_a_reboot_nobody_can_tell(
    path: Path, set_forward: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert jump(path) == 0.0
    for module in (clock, file):
        monkeypatch.setattr(module, "boot_id", lambda: "ab" * 16)
    set_forward(DAY)
    assert jump(path) == 0.0


def test_a_journal_in_memory_knows_no_jump() -> None:
    journal: Journal = open_journal("memory:")
    assert journal.clock_jump() == 0.0
