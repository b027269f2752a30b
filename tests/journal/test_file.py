"""A file journal survives kills, full disks and power cuts, and notices when it is not what its writer left."""

import os
import random
import shutil
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some
from typer.testing import CliRunner

from surefoot.cli.commands import app
from surefoot.errors import (
    JournalBusyError,
    JournalCorruptedError,
    JournalError,
    JournalNotFoundError,
    JournalReadOnlyError,
    JournalSchemaError,
)
from surefoot.journal import Event, Journal, PrivateText, Transaction, by_alias, clock, file, open_journal
from surefoot.journal.copying import backup, copy_journal, heads_of, verify_all
from surefoot.journal.file import FileJournal
from surefoot.journal.memory import MemoryJournal
from surefoot.journal.sqlite import SqliteJournal
from tests.journal.killing import Told, crash, kill_at_random, nothing_lost_nothing_twice, start
from tests.journal.writer import NAME, append

SYNC = pytest.mark.parametrize("sync", [True, False], ids=["synced", "unsynced"])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "app.log"


def begun(path: Path, events: int = 0, *, sync: bool = False) -> FileJournal:
    journal = FileJournal(path, sync=sync)
    journal.create(NAME, b"{}", time=0.0)
    for n in range(events):
        append(journal, f"d{n}", size=40)
    return journal


def append_private(journal: Journal, text: PrivateText) -> Event:
    return journal.transact(NAME, lambda t: t.append("decision", b"{}", time=0.0, private=text))


@pytest.mark.parametrize("kills", [20, pytest.param(300, marks=pytest.mark.long)])
@SYNC
def test_a_killed_writer_loses_nothing_that_it_acknowledged(tmp_path: Path, kills: int, sync: bool) -> None:
    path = tmp_path / ("synced.log" if sync else "unsynced.log")
    begun(path, sync=sync).close()
    dice, told = random.Random(kills), Told()
    with FileJournal(path, read_only=True) as reader:  # one that stays, and one that comes after each kill
        for n in range(kills):
            kill_at_random([start(str(path), str(n), told.unsure)], dice, told, 0.1 if sync else 0.03)
            with FileJournal(path, read_only=True) as later:
                assert reader.head(NAME) == later.head(NAME)
            # What was written and not acknowledged is no reader's to see, until a writer has taken it over.
            FileJournal(path, sync=sync).close()
            nothing_lost_nothing_twice(reader, told)
    assert len(told.done) > 10 * kills


ERASE = """
import itertools, os, sys
from surefoot.journal import PrivateText, open_journal
path, prefix, sync = sys.argv[1], sys.argv[2], sys.argv[3] == "True"
journal = open_journal(path, sync=sync)
for n in itertools.count():
    secret = f"secret {prefix}.{n} end"
    text = PrivateText(secret, "user", b"salt", secret.encode())
    event = journal.transact("shop", lambda t: t.append("decision", b"{}", time=0.0, private=text))
    if n % 3:
        journal.transact("shop", lambda t: t.erase([event.number]))
        os.write(1, f"erased {event.number} {secret}\\n".encode())
        journal.forget()
        os.write(1, f"gone {event.number} {secret}\\n".encode())
    else:
        os.write(1, f"kept {event.number} {secret}\\n".encode())
"""


@pytest.mark.parametrize("kills", [15, pytest.param(200, marks=pytest.mark.long)])
@SYNC
def test_a_kill_brings_no_erased_text_back(log: Path, kills: int, sync: bool) -> None:
    begun(log, sync=sync).close()
    dice, lines = random.Random(kills), list[str]()
    for n in range(kills):
        command = [sys.executable, "-c", ERASE, str(log), str(n), str(sync)]
        writer = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert writer.stdout is not None
        first = writer.stdout.readline()
        time.sleep(dice.uniform(0.0, 0.06))
        writer.kill()
        told = (first + writer.communicate()[0]).split("\n")[:-1]
        lines += told
        before = log.read_bytes()
        with FileJournal(log, read_only=True) as reader:
            check_erased(reader, lines)
        for line in told:
            word, _, secret = line.split(" ", 2)
            assert word != "gone" or secret.encode() not in before
    with FileJournal(log, sync=sync) as journal:
        check_erased(journal, lines)
        assert not journal.is_forgetting
    after, words = log.read_bytes(), {secret: word for word, _, secret in (line.split(" ", 2) for line in lines)}
    assert set(words.values()) >= {"kept", "gone"}
    for secret, word in words.items():
        assert (secret.encode() in after) == (word == "kept"), secret


def check_erased(journal: Journal, lines: list[str]) -> None:
    view = journal.view(NAME)
    for line in lines:
        word, number, secret = line.split(" ", 2)
        text, event = view.private(int(number)), view.find(by_alias(secret))
        assert (text is None, event is None) == ((False, False) if word == "kept" else (True, True))


def test_a_second_writer_is_told_that_the_file_is_taken(log: Path) -> None:
    with begun(log) as journal:
        with pytest.raises(JournalBusyError, match="read_only=True"):
            FileJournal(log)
        code = "import sys; from surefoot.journal import open_journal; open_journal(sys.argv[1])"
        other = subprocess.run([sys.executable, "-c", code, str(log)], capture_output=True, text=True, check=False)
        assert "JournalBusyError" in other.stderr
        append(journal, "still mine")
        append_private(journal, PrivateText(None, None, b"", b""))
        journal.transact(NAME, lambda t: t.erase([3]))
        journal.forget()
        with pytest.raises(JournalBusyError):  # the file that took its place is locked as well
            FileJournal(log)


@SYNC
def test_readers_follow_a_writer_through_everything(log: Path, sync: bool) -> None:
    with begun(log, sync=sync) as journal, FileJournal(log, read_only=True) as reader:
        kept = reader.view(NAME)
        for n in range(20):
            text = PrivateText(f"alias {n}", "user", b"salt", b"text")
            written = append_private(journal, text)
            assert reader.head(NAME) == kept.head == written.head
            assert kept.find(by_alias(f"alias {n}")) == written
            if n % 5 == 4:
                assert journal.transact(NAME, lambda t: t.erase(t.about("user", newest=3))) == 3
                journal.forget()
                assert kept.about("user") == journal.view(NAME).about("user")
                assert kept.find(by_alias(f"alias {n}")) is None
        with pytest.raises(JournalReadOnlyError, match="opened to be read"):
            reader.transact(NAME, lambda t: None)
        assert list(kept.read()) == list(journal.read(NAME))


def test_a_frame_that_was_cut_short_anywhere_is_cut_off(log: Path) -> None:
    journal = begun(log, 3)
    before, whole = journal.head(NAME), log.stat().st_size
    mark = beside(log).read_bytes()
    after = append(journal, "last").head
    crash(journal)
    data = log.read_bytes()
    for cut in range(whole, len(data) + 1):
        write_in_place(log, data[:cut])
        write_in_place(beside(log), mark)  # as it was until the frame was whole
        with FileJournal(log, sync=False) as again:
            assert again.head(NAME) == (after if cut == len(data) else before)
            assert append(again, "next").previous == again.view(NAME).page(again.head(NAME).number - 2, 1)[0].hash
        assert verify_all(FileJournal(log, read_only=True))
    for end in (bytes(700), b"\1" * 700, data[whole : whole + 40] + bytes(900), bytes(40) + data[whole + 40 :]):
        write_in_place(log, data[:whole] + end)  # a disk may have written a part, or kept the length alone
        write_in_place(beside(log), mark)
        with FileJournal(log, sync=False) as again:
            assert again.head(NAME) == before


def beside(path: Path) -> Path:
    return path.with_name(path.name + ".mark")


def write_in_place(path: Path, data: bytes) -> None:
    """As somebody does who restores a file with `cp`: the inode stays."""
    with path.open("r+b") as opened:
        opened.truncate(0)
        opened.write(data)


def test_damage_is_an_error_or_harmless(log: Path) -> None:
    journal = begun(log, 40)
    digest = journal.transact(NAME, lambda t: t.attach(b"state" * 50))
    truth = list(journal.read(NAME))
    journal.close()
    data, mark, dice, errors = log.read_bytes(), beside(log).read_bytes(), random.Random(3), 0
    for _ in range(300):
        at = dice.randrange(len(data))
        write_in_place(log, data[:at] + bytes([data[at] ^ (1 << dice.randrange(8))]) + data[at + 1 :])
        write_in_place(beside(log), mark)
        try:
            with FileJournal(log, sync=False) as damaged:
                assert list(damaged.read(NAME)) == truth
                assert damaged.attachment(NAME, digest) in (None, b"state" * 50)
        except JournalError:
            errors += 1
    assert errors > 250


def test_damage_before_a_whole_frame_is_found_without_the_mark(log: Path, tmp_path: Path) -> None:
    begun(log, 10).close()
    data, copy = log.read_bytes(), tmp_path / "copy.log"
    for at in range(file.START, len(data) // 2, 7):
        copy.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(JournalCorruptedError):
            FileJournal(copy, read_only=True)


def test_damage_after_the_opening_is_found_by_whoever_reads_it(log: Path) -> None:
    with begun(log, 3) as journal:
        data = log.read_bytes()
        with log.open("r+b") as opened:
            opened.seek(data.index(b'"xxxx') + 8)
            opened.write(b"y")
        with pytest.raises(JournalCorruptedError, match="event 2"):
            list(journal.read(NAME))
        with pytest.raises(JournalCorruptedError):
            journal.find(NAME, "d0")
        assert journal.find(NAME, "d1") is not None


def refused(path: Path, match: str) -> None:
    for _ in range(2):  # and it stays so
        with pytest.raises(JournalReadOnlyError, match=match):
            FileJournal(path)
    with FileJournal(path, read_only=True) as reader, MemoryJournal() as target:
        assert copy_journal(reader, target) == heads_of(reader)


@SYNC
def test_a_copy_is_not_written_to(log: Path, tmp_path: Path, sync: bool) -> None:
    begun(log, 3, sync=sync).close()
    copy = tmp_path / "copy.log"
    for path in (log, beside(log)):
        shutil.copy(path, tmp_path / path.name.replace("app", "copy"))
    refused(copy, "is a copy")
    log.rename(tmp_path / "moved.log")
    refused(tmp_path / "moved.log", "lost the mark")
    beside(log).rename(tmp_path / "moved.log.mark")
    with FileJournal(tmp_path / "moved.log", sync=sync) as moved:  # a rename is no copy
        append(moved, "goes on")


def test_a_copy_can_be_moved_to_a_journal_of_its_own(log: Path, tmp_path: Path) -> None:
    begun(log, 3).close()
    shutil.copy(log, tmp_path / "copy.log")
    done = CliRunner().invoke(app, ["move", str(tmp_path / "copy.log"), str(tmp_path / "own.log")])
    assert done.exit_code == 0, done.output
    with FileJournal(tmp_path / "own.log") as own, FileJournal(log) as journal:
        assert heads_of(own) == heads_of(journal)
        append(own, "goes on")
    done = CliRunner().invoke(app, ["backup", str(tmp_path / "own.log"), str(tmp_path / "backup")])
    assert done.exit_code == 0, done.output
    with open_journal(tmp_path / "backup") as kept:  # known by what it is
        assert kept.head(NAME).number == 5


@SYNC
def test_an_earlier_state_is_not_written_to(log: Path, sync: bool) -> None:
    with begun(log, 3, sync=sync) as journal:
        data = log.read_bytes()
        append(journal, "later")
    write_in_place(log, data)
    refused(log, "earlier state")


def test_an_earlier_state_from_before_a_compaction_is_not_written_to(log: Path, tmp_path: Path) -> None:
    with begun(log, 30) as journal:
        event = append_private(journal, PrivateText(None, None, b"", b"text" * 99))
        os.link(log, tmp_path / "kept")  # the same inode, under another name
        journal.transact(NAME, lambda t: t.erase([event.number]))
        journal.forget()
        append(journal, "later")
    os.replace(tmp_path / "kept", log)
    refused(log, "earlier state")


def test_after_a_power_cut_only_what_was_synced_goes_on(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crash(begun(log, 3, sync=False))
    FileJournal(log, sync=False).close()  # a kill alone loses nothing
    switch_on_again(monkeypatch)
    FileJournal(log, sync=False).close()  # closed in good order
    crash(FileJournal(log, sync=True))
    switch_on_again(monkeypatch)
    crash(FileJournal(log, sync=False))
    switch_on_again(monkeypatch)
    refused(log, "switched off")


def switch_on_again(monkeypatch: pytest.MonkeyPatch) -> None:
    boot = os.urandom(16).hex()
    for module in (file, clock):
        monkeypatch.setattr(module, "boot_id", lambda: boot)


@SYNC
def test_what_was_erased_leaves_the_file_and_views_stay(log: Path, sync: bool) -> None:
    with begun(log, 5, sync=sync) as journal:
        view, size = journal.view(NAME), log.stat().st_size

        def write(transaction: Transaction) -> None:
            for n in range(50):
                private = PrivateText(f"alias {n}", f"user {n % 2}", b"salt", b"a secret %d." % n)
                transaction.append("decision", b"{}", time=0.0, key=f"k{n}", private=private)

        journal.transact(NAME, write)
        events = list(view.read())
        assert journal.transact(NAME, lambda t: t.erase(t.about("user 1"))) == 25
        states = [journal.is_forgetting]
        journal.forget()
        assert [*states, journal.is_forgetting] == [True, False]
        data = log.read_bytes()
        assert [n for n in range(50) if b"a secret %d." % n in data] == list(range(0, 50, 2))
        assert b"user 1" not in data
        assert list(view.read()) == events
        assert view.find(by_alias("alias 3")) is None
        assert view.find(by_alias("alias 4")) == view.find("k4") == events[10]
        append(journal, "goes on")
    with FileJournal(log) as again:
        assert again.head(NAME).number == len(events) + 1
        assert list(again.read(NAME))[:-1] == events
        again.create("@journal", b"{}", time=0.0)
        again.remove(NAME, head=again.head(NAME), note=lambda t: t.append("deleted", b"{}", time=0.0))
    assert log.stat().st_size < size
    assert b"secret" not in log.read_bytes()


def test_attachments_that_were_removed_do_not_fill_the_disk(log: Path) -> None:
    with begun(log) as journal:
        before = journal.transact(NAME, lambda t: t.attach(b"0"))
        for n in range(40):
            data = bytes([n]) * 300_000

            def snapshot(transaction: Transaction, before: str = before, data: bytes = data) -> str:
                transaction.detach(before)
                return transaction.attach(data)

            before = journal.transact(NAME, snapshot)
        assert journal.attachment(NAME, before) == data
        assert log.stat().st_size < 2_500_000


LIMIT = """
import resource, sys
from surefoot.errors import JournalError
from surefoot.journal import open_journal
journal = open_journal(sys.argv[1], sync=sys.argv[2] == "True")
most = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, most))
for n in range(1000):
    try:
        journal.transact("shop", lambda t: t.append("decision", b"x" * (300 + n % 50), time=0.0, key=f"d{n}"))
        print(f"done d{n}", flush=True)
    except JournalError as error:
        print("error", type(error).__name__, flush=True)
try:
    journal.probe()
except JournalError as error:
    print("probe", type(error).__name__)
resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
journal.probe()
journal.transact("shop", lambda t: t.append("decision", b"", time=0.0, key="room again"))
"""


@SYNC
def test_a_full_disk_is_an_error_and_no_loss(log: Path, sync: bool) -> None:
    begun(log).close()
    command = [sys.executable, "-c", LIMIT, str(log), str(sync)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\n")
    told = Told()
    told.listen("\n".join(said).encode())
    assert {line for line in said if line.startswith(("error", "probe"))} == {
        "error JournalFullError",
        "probe JournalFullError",
    }
    with FileJournal(log) as again:
        keys = [event.key for event in again.read(NAME, 1)]
        assert len(told.done) > 50
        assert keys == [*sorted(told.done, key=lambda key: int(key[1:])), "room again"]


@pytest.mark.parametrize("calls", [1, 2, 3])
def test_an_interrupt_while_it_writes_leaves_nothing(log: Path, monkeypatch: pytest.MonkeyPatch, calls: int) -> None:
    journal = begun(log, 3)
    head, left = journal.head(NAME), [calls]

    def interrupt(*args: Any) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt
        apply(*args)

    def work(transaction: Transaction) -> None:
        for n in range(3):
            transaction.append("decision", b"{}", time=0.0, key=f"e{n}", private=PrivateText(None, "user", b"", b""))

    apply = journal._apply
    with monkeypatch.context() as patch:
        patch.setattr(journal, "_apply", interrupt)
        with pytest.raises(KeyboardInterrupt):
            journal.transact(NAME, work)
    assert journal.head(NAME) == head
    assert journal.find(NAME, "e0") is None
    assert journal.view(NAME).about("user") == []
    journal.transact(NAME, work)
    events = list(journal.read(NAME))
    journal.close()
    with FileJournal(log) as again:
        assert list(again.read(NAME)) == events
        assert len(events) == 7


def test_a_compaction_that_fails_changes_nothing(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with begun(log, 3) as journal:
        append_private(journal, PrivateText(None, "user", b"", b"secret"))
        journal.transact(NAME, lambda t: t.erase([5]))
        for error in (OSError(28, "no room"), KeyboardInterrupt()):

            def fail(*_: object, error: BaseException = error) -> None:
                raise error

            for step in ("append", "replace"):
                with monkeypatch.context() as patch:
                    patch.setattr(file.LogFile, step, fail)
                    if isinstance(error, OSError):
                        journal.forget()
                    else:
                        with pytest.raises(KeyboardInterrupt):
                            journal.forget()
                assert journal.is_forgetting
                assert journal.view(NAME).private(5) is None
                assert not log.with_name("app.log.new").exists()
        append(journal, "goes on")
        journal.probe()  # tries again
        assert not journal.is_forgetting
        assert b"secret" not in log.read_bytes()
        assert journal.head(NAME).number == 6


def test_many_threads_share_flushes_and_lose_nothing(log: Path) -> None:
    with begun(log, sync=True) as journal, ThreadPoolExecutor(16) as threads:
        list(threads.map(lambda n: append(journal, f"e{n}"), range(300)))
        assert {event.key for event in journal.read(NAME, 1)} == {f"e{n}" for n in range(300)}


def test_readers_in_threads_see_whole_transactions(log: Path) -> None:
    with begun(log) as journal:
        stop, odd = threading.Event(), list[int]()

        def look() -> None:
            while not stop.is_set():
                odd.extend(n for n in [journal.head(NAME).number] if n % 5 != 1)
                list(journal.read(NAME, max(0, journal.head(NAME).number - 20)))

        def write(transaction: Transaction) -> None:
            for _ in range(5):
                transaction.append("decision", b"{}", time=0.0, private=PrivateText(None, "user", b"", b"text"))

        with ThreadPoolExecutor(2) as threads:
            looking = [threads.submit(look) for _ in range(2)]
            for n in range(60):
                journal.transact(NAME, write)
                if n % 10 == 9:
                    journal.transact(NAME, lambda t: t.erase(t.about("user")))
                    journal.forget()
            stop.set()
            for each in looking:
                each.result()
        assert odd == []


def test_only_the_owner_may_read_it(log: Path, tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        with begun(log, 3) as journal:
            append_private(journal, PrivateText(None, "user", b"", b"secret"))
            journal.transact(NAME, lambda t: t.erase([5]))
            journal.forget()
            backup(log, tmp_path / "copy.log")
    finally:
        os.umask(umask)
    assert {stat.S_IMODE(path.stat().st_mode) for path in tmp_path.iterdir()} == {0o600}
    with FileJournal(tmp_path / "copy.log") as copy, FileJournal(log) as journal:  # a backup is a journal of its own
        assert heads_of(copy) == heads_of(journal)
        append(copy, "goes on")


def test_what_is_not_a_journal_is_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(JournalNotFoundError):
        open_journal(log, read_only=True)
    with pytest.raises(JournalNotFoundError):
        open_journal(tmp_path / "no such folder" / "app.log")
    log.write_text("2026-07-31 12:00 another program was here\n" * 9)
    for path in (f"file://{log}", f"file:{log}"):
        for read_only in (False, True):
            with pytest.raises(JournalSchemaError, match="another kind of file"):
                open_journal(path, read_only=read_only)
    assert log.read_text().startswith("2026")
    log.unlink()
    SqliteJournal(log).close()
    with open_journal(log) as journal:  # known by what it is, and not by its name
        assert isinstance(journal, SqliteJournal)
    begun(tmp_path / "app.journal").close()
    with open_journal(tmp_path / "app.journal") as journal:
        assert isinstance(journal, FileJournal)


@pytest.mark.parametrize("size", [0, 1, 10, 30, file.START - 1])
def test_a_journal_that_was_killed_as_it_was_made_is_begun_again(log: Path, size: int) -> None:
    begun(log).close()
    write_in_place(log, log.read_bytes()[:size])
    with FileJournal(log) as journal:
        assert journal.names() == []


ACTIONS = some.lists(
    some.sampled_from(["append", "private", "many", "erase", "attach", "detach", "raise", "forget", "reopen", "kill"]),
    max_size=25,
)


@given(actions=ACTIONS, seed=some.integers(0, 9), sync=some.booleans())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_it_holds_what_a_journal_in_memory_holds(tmp_path: Path, actions: list[str], seed: int, sync: bool) -> None:
    path, dice = tmp_path / f"{os.urandom(8).hex()}.log", random.Random(seed)
    model: Journal = MemoryJournal()
    journal = begun(path, sync=sync)
    model.create(NAME, b"{}", time=0.0)
    digests = list[str]()
    for n, action in enumerate(actions):
        if action == "forget":
            journal.forget()
        elif action in ("reopen", "kill"):
            if journal._group is not None:
                journal._group.close()
            journal.close() if action == "reopen" else crash(journal)
            journal = FileJournal(path, sync=sync)
        else:
            work = works(action, n, dice.randrange(1 << 30), digests)
            outcomes = [outcome(each, work) for each in (model, journal)]
            assert outcomes[0] == outcomes[1]
            if action == "attach":
                digests.append(str(outcomes[0]))
        assert_same(model, journal, digests)
    journal.close()


def works(action: str, n: int, seed: int, digests: list[str]) -> Callable[[Transaction], object]:
    def work(transaction: Transaction) -> object:
        dice = random.Random(seed)
        for m in range(30 if action == "many" else 1):
            if action in ("append", "private", "many", "raise"):
                text = PrivateText(f"alias {n}.{m}", f"user {dice.randrange(3)}", b"salt", b"text %d" % n)
                key = f"key {n}.{m}" if dice.random() < 0.5 else None
                transaction.append(
                    dice.choice(["decision", "reward"]),
                    b"{}" * dice.randrange(40),
                    time=float(n),
                    key=key,
                    private=None if action == "append" else text,
                )
        if action == "erase":
            return transaction.erase(transaction.about(f"user {dice.randrange(3)}"))
        if action == "attach":
            return transaction.attach(bytes([dice.randrange(4)]) * dice.randrange(4000))
        if action == "detach" and digests:
            transaction.detach(dice.choice(digests))
        return 1 // 0 if action == "raise" else transaction.head

    return work


def outcome(journal: Journal, work: Callable[[Transaction], object]) -> object:
    try:
        return journal.transact(NAME, work)
    except ZeroDivisionError:
        return "raised"


def assert_same(model: Journal, journal: Journal, digests: list[str]) -> None:
    mine, theirs = journal.view(NAME), model.view(NAME)
    events = list(theirs.read())
    assert list(mine.read()) == events
    assert mine.head == theirs.head
    assert mine.privates(0, 10_000) == theirs.privates(0, 10_000)
    for person in range(3):
        assert mine.about(f"user {person}") == theirs.about(f"user {person}")
    for event in events:
        assert event.key is None or mine.find(event.key) == event
    for number, text in theirs.privates(0, 10_000):
        assert mine.find(by_alias(str(text.alias))) == events[number - 1]
    for kind in ("created", "decision", "reward", "none"):
        assert mine.newest_of(kind, 3) == theirs.newest_of(kind, 3)
    for digest in digests:
        assert mine.attachment(digest) == theirs.attachment(digest)
