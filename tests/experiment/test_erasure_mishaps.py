"""Erasures while somebody reads, before a reward has come, and of nothing that could be erased."""

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot.errors import InputError
from surefoot.experiment import Experiment
from surefoot.journal import Journal, open_journal
from surefoot.service.registry import OpenExperiment
from surefoot.service.settings import Settings
from tests.experiment.worlds import Clock

ADA = "Ada-Lovelace"


def shop(journal: Journal, **settings: Any) -> Experiment:
    return Experiment.create(journal, "shop", surefoot.UCB(arms=2), mode="guarded", sealed=True, **settings)


def is_on_disk(folder: Path) -> bool:
    return any(ADA.encode() in path.read_bytes() for path in folder.iterdir())


def test_what_is_erased_while_somebody_reads_leaves_the_log_once_they_are_done(tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal(path) as journal:
        experiment = shop(journal)
        for n in range(20):
            experiment.decide(baseline=0, decision_id=f"{ADA}-{n}", context={"person": ADA})
        with closing(sqlite3.connect(path, isolation_level=None)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT COUNT(*) FROM private").fetchall()
            began = time.monotonic()
            assert experiment.erase(person=ADA) == 20
            assert time.monotonic() - began < 2.0, "nobody waits for the reader"
            assert journal.is_forgetting
            assert is_on_disk(tmp_path)
            experiment.decide(baseline=0, decision_id="during")
        deadline = time.monotonic() + 30
        while is_on_disk(tmp_path) and time.monotonic() < deadline:
            time.sleep(0.1)
            journal.probe()  # as a server does every two seconds
        assert (journal.is_forgetting, is_on_disk(tmp_path)) == (False, False)


def test_nothing_waits_where_nobody_reads(tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        experiment = shop(journal)
        experiment.decide(baseline=0, decision_id=ADA)
        experiment.erase([ADA])
        assert not journal.is_forgetting
        assert not is_on_disk(tmp_path)


def test_what_a_killed_process_has_left_in_the_log_leaves_it_too(tmp_path: Path) -> None:
    script = f"""
import os, surefoot, sqlite3
from surefoot.experiment import Experiment
journal = surefoot.open_journal({str(tmp_path / "shop.db")!r})
shop = Experiment.create(journal, "shop", surefoot.UCB(arms=2), sealed=True)
shop.decide(baseline=0, decision_id={ADA!r})
reader = sqlite3.connect({str(tmp_path / "shop.db")!r}, isolation_level=None)
reader.execute("BEGIN")
reader.execute("SELECT COUNT(*) FROM private").fetchall()
shop.erase([{ADA!r}])
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", script]).returncode == 9
    assert is_on_disk(tmp_path)
    with open_journal(tmp_path / "shop.db") as journal:
        journal.probe()
        assert not is_on_disk(tmp_path)


@pytest.mark.parametrize(
    ("asked", "rule"),
    [
        ({}, "Something must be named"),
        ({"decision_ids": []}, "Something must be named"),
        ({"decision_ids": "visit-1"}, "must be a list"),
        ({"person": ""}, "`person` must be 1 to 200"),
        ({"person": 5.5}, "`person` must be 1 to 200"),
        ({"person": ["ada"]}, "`person` must be 1 to 200"),
        ({"before": "yesterday"}, "`before` must be a time"),
        ({"before": float("nan")}, "`before` must be a time"),
    ],
)
def test_an_erasure_of_nothing_is_refused(asked: dict[str, Any], rule: str) -> None:
    with open_journal("memory:") as journal:
        experiment = shop(journal)
        experiment.decide(baseline=0, decision_id="visit-1", context={"person": "5"})
        with pytest.raises(InputError, match=rule):
            experiment.erase(**asked)
        assert journal.head("shop").number == 2


def test_a_person_who_is_a_number_is_found_as_a_number() -> None:
    with open_journal("memory:") as journal:
        experiment = shop(journal)
        experiment.decide(baseline=0, context={"person": 5})
        assert experiment.erase(person=5) == 1


def test_retention_waits_until_a_decision_has_had_its_reward() -> None:
    from concurrent.futures import ThreadPoolExecutor

    clock = Clock()
    with open_journal("memory:") as journal, ThreadPoolExecutor(1) as threads:
        experiment = shop(journal, clock=clock, reward_window=1_000.0)
        opened = OpenExperiment(experiment, journal, threads, Settings())
        experiment.decide(baseline=0, decision_id="visit-1")
        clock.now += 900.0
        opened.retain(1e-3)
        assert experiment.reward("visit-1", 1.0).is_accepted
        time.sleep(0.01)
        clock.now += 200.0
        opened.retain(1e-3)
        assert [event.kind for event in journal.read("shop")][-2:] == ["settled", "erased"]
