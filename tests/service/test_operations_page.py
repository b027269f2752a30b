"""The commands of docs/operations.md beside its walk, word for word: each does what the page says of it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit

PAGE = (Path(__file__).parents[2] / "docs" / "operations.md").read_text()
ROWS = np.array([[0.6, 0.1], [0.9, 0.3]])
BOUNDS: dict[str, Any] = {"noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}


def commands(title: str) -> list[str]:
    """The commands of a section, without the prompt."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (found,) = [text for text in section if text.startswith(f"{title}\n")]
    return re.findall(r"^ *\$ ((?:.*\\\n)*.*)", found, flags=re.MULTILINE)


def test_every_line_for_the_reviewer_names_tests_that_are_there() -> None:
    table = PAGE.partition("| attack or mishap |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    assert len(lines) > 15
    for line in lines:
        names = re.findall(r"`([\w/]+\.py)::(\w+)`", line)
        assert names, line
        for file, name in names:
            assert f"def {name}(" in (Path(__file__).parents[1] / file).read_text(), (file, name)


class Desk:
    """A folder in which the page's commands are typed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in ("backups", "elsewhere"):
            (folder / name).mkdir()

    def type(self, command: str, more: str = "") -> subprocess.CompletedProcess[str]:
        text = re.sub(r"(?<![\w.])/(backups|elsewhere)", rf"{self.folder}/\1", command) + more
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        told = {**os.environ, "PATH": path, "PYTHONWARNINGS": "ignore"}
        return subprocess.run(
            ["bash", "-c", text], cwd=self.folder, env=told, capture_output=True, text=True, timeout=120, check=False
        )

    def must(self, command: str, more: str = "") -> str:
        found = self.type(command, more)
        assert found.returncode == 0, found.stderr
        return found.stdout + found.stderr

    def play(self, *names: str, rounds: int = 3) -> None:
        with surefoot.open_journal(self.folder / "shop.journal") as journal:
            for name in names:
                if name in journal.names():
                    shop = surefoot.Experiment.open(journal, name)
                else:
                    policy = surefoot.SafeLUCB(dim=2, alpha=0.1, delta=0.01, **BOUNDS)
                    shop = surefoot.Experiment.create(journal, name, policy, mode="guarded", sealed=True)
                for n in range(rounds):
                    told: dict[str, Any] = {"decision_id": f"visit-{n + 1}", "context": {"person": "user-17"}}
                    shop.decide(ROWS, baseline=0, **told)


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def test_a_backup_and_a_restore_as_the_page_says(desk: Desk) -> None:
    (backup,), (restore,) = commands("Backup"), commands("Restore")
    desk.play("shop")
    assert "every event of which was checked" in desk.must(backup)
    desk.play("shop", rounds=5)
    heads = desk.folder / "elsewhere" / "heads.jsonl"
    with surefoot.open_journal(desk.folder / "shop.journal", read_only=True) as journal:
        number, hash_ = journal.view("shop").head
    heads.write_text(heads.read_text() + f'{{"experiment": "shop", "number": {number}, "hash": "{hash_}"}}\n')
    assert "but shop.journal exists" in desk.type(restore, " --accept-loss").stderr, "what is there is moved away first"
    (desk.folder / "away").mkdir()
    for file in desk.folder.glob("shop.journal*"):
        file.rename(desk.folder / "away" / file.name)
    refused = desk.type(restore)
    assert refused.returncode == 2
    assert f"'shop' had event {number} and ends with" in refused.stderr
    assert not (desk.folder / "shop.journal").exists()
    assert "Lost: shop had event" in desk.must(restore, " --accept-loss")
    with surefoot.open_journal(desk.folder / "shop.journal", read_only=True) as journal:
        assert surefoot.Experiment.open(journal, "shop").status().mode == "paused"


def test_erasing_archiving_and_deleting_as_the_page_says(desk: Desk) -> None:
    by_person, by_id, by_age, archive, delete = commands("Erasing personal data")
    desk.play("shop", "winter")
    assert "Erased 1 private text of 'shop'." in desk.must(by_id)
    assert "Erased 2 private texts of 'shop'." in desk.must(by_person)
    assert "Erased 0 private texts of 'shop'." in desk.must(by_age)
    assert "'winter' is in winter.journal" in desk.must(archive)
    with surefoot.open_journal(desk.folder / "winter.journal", read_only=True) as journal:
        assert audit(journal, "winter").is_clean
    gone = desk.type(delete)
    assert gone.returncode == 2
    assert "`surefoot experiment list` lists those it has" in gone.stderr
    desk.must(delete.replace("winter", "shop"))
    with surefoot.open_journal(desk.folder / "shop.journal", read_only=True) as journal:
        assert journal.names() == []


def test_a_move_to_postgresql_as_the_page_says(desk: Desk, url: str) -> None:
    (move,) = commands("From SQLite to PostgreSQL")
    desk.play("shop")
    command = move.replace("postgresql://surefoot@db/shop", f"'{url}'")
    with surefoot.open_journal(desk.folder / "shop.journal"):
        busy = desk.type(command)
    assert busy.returncode == 2
    assert "Stop the server that uses it, or ask it over HTTP" in busy.stderr
    for _ in range(2):  # one that was interrupted is called again
        assert "Every event was read back and checked" in desk.must(command)
    with surefoot.open_journal(url, read_only=True) as journal:
        assert audit(journal, "shop").is_clean
        assert surefoot.Experiment.open(journal, "shop").status().rounds == 3


def test_alerts_and_the_dashboard_are_printed(desk: Desk) -> None:
    for command, file in zip(
        commands("Alerts and the dashboard"), ("surefoot-alerts.yml", "surefoot.json"), strict=True
    ):
        desk.must(command)
        assert (desk.folder / file).stat().st_size > 1_000
