"""A file journal that a fork inherits, or that lost something, never spends a lease twice."""

import multiprocessing
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import JournalReadOnlyError, JournalUnavailableError
from surefoot.journal import clock, file
from tests.sharing.edges import Shop, close, crash, play, reward_of, visit, warmed
from tests.sharing.experiments import findings


@pytest.mark.parametrize("sync", [False, True])
def test_a_fork_decides_nothing_and_the_parent_goes_on(new_shop: Callable[..., Shop], sync: bool) -> None:
    shop = new_shop("pair")
    with shop.edge(sync=sync) as edge:
        warmed(edge)
        waits = visit(edge)
        context = multiprocessing.get_context("fork")
        found: Any = context.SimpleQueue()

        def child() -> None:
            errors = list[str]()
            for call in (lambda: visit(edge), lambda: edge.reward(waits.decision_id, 1.0), edge.leases.renew):
                try:
                    call()
                except JournalUnavailableError as error:
                    errors.append(str(error))
            edge.journal._log.close()
            found.put(errors)

        process = context.Process(target=child)
        process.start()
        process.join(60.0)
        assert process.exitcode == 0
        errors = found.get()
        assert len(errors) == 3
        assert all("fork" in text for text in errors)
        assert edge.reward(waits.decision_id, reward_of(edge, waits)).is_accepted
        play(edge, 5)
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 146


def test_a_journal_that_is_put_back_over_itself_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "_identity", lambda _: (1, 1))  # a new file would be told by that
    with shop.edge() as edge:
        play(edge, 5)
    log, backup = shop.journal_of("till"), shop.folder / "backup"
    shutil.copyfile(log, backup)
    edge = shop.opened()
    edge.leases.renew()
    play(edge, 5)
    crash(edge)
    newest = log.read_bytes()
    shutil.copyfile(backup, log)  # into the same file
    with pytest.raises(JournalReadOnlyError, match="earlier state"):
        shop.opened()
    log.write_bytes(newest)
    with shop.edge() as again:
        assert again.status().rounds == 10
        again.leases.renew()
    assert findings(shop.audit()) == []


def test_after_a_power_cut_an_edge_goes_on_only_if_the_disk_had_everything(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boots = tmp_path / "boot"
    boots.write_text("11" * 16)
    monkeypatch.setattr(clock, "BOOT", boots)
    for shard, sync in (("loose", False), ("synced", True), ("closed", False)):
        edge = shop.opened(shard, sync=sync)
        play(edge, 3)
        close(edge) if shard == "closed" else crash(edge)
    boots.write_text("22" * 16)
    with pytest.raises(JournalReadOnlyError, match="switched off"):
        shop.opened("loose")
    for shard in ("synced", "closed"):
        with shop.edge(shard) as edge:
            assert edge.status().rounds == 3


def test_what_was_cut_short_was_never_answered_and_is_left_out(shop: Shop) -> None:
    edge = shop.opened()
    warmed(edge)
    size = edge.journal._log.size
    crash(edge)
    path = shop.journal_of("till")
    whole = path.read_bytes()
    for tail in (b"\x40", whole[-200:-100], b"\0" * 4096):
        with path.open("ab") as journal:
            journal.write(tail)
        again = shop.opened()
        assert again.status().rounds == 140
        crash(again)
        assert os.path.getsize(path) >= size
    with shop.edge() as again:
        play(again, 3)
        again.leases.renew()
    assert findings(shop.audit()) == []
