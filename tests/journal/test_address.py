"""Addresses: which journal they are of, what may be shown of them, and who may read the files."""

import os
import stat
from pathlib import Path

import pytest

from surefoot.errors import ConfigError, JournalError, JournalNotFoundError, JournalUnavailableError
from surefoot.journal import open_journal
from surefoot.journal.address import file_of, parse, without_password
from surefoot.journal.copying import backup
from tests.journal.writer import NAME, append


@pytest.mark.parametrize(
    ("url", "kind", "place"),
    [
        ("memory:", "memory", ""),
        ("shop.db", "sqlite", "shop.db"),
        ("sqlite:///shop.log", "sqlite", "shop.log"),
        ("app.log", "file", "app.log"),
        ("file:app.journal", "file", "app.journal"),
        ("file:///var/lib/app.log", "file", "/var/lib/app.log"),
        ("postgresql://me@db/shop", "postgres", "postgresql://me@db/shop"),
        ("postgres://db/shop", "postgres", "postgres://db/shop"),
        ("host=db dbname=shop", "postgres", "host=db dbname=shop"),
        ("dbname = shop", "postgres", "dbname = shop"),
        ("password=secret", "postgres", "password=secret"),
        (
            "sslmode=verify-full target_session_attrs=read-write",
            "postgres",
            "sslmode=verify-full target_session_attrs=read-write",
        ),
        ("sslmode=require user='me' service=shop", "postgres", "sslmode=require user='me' service=shop"),
        ("service=shop", "postgres", "service=shop"),
        (Path("host=db.journal"), "sqlite", "host=db.journal"),
        ("./a=b.db", "sqlite", "./a=b.db"),
        ("myhost=1.db", "sqlite", "myhost=1.db"),
    ],
)
def test_an_address_says_which_journal_it_is_of(url: str | Path, kind: str, place: str) -> None:
    assert parse(url) == (kind, place)
    assert file_of(url) == (Path(place) if kind in ("sqlite", "file") else None)


def test_another_kind_of_address_is_refused() -> None:
    with pytest.raises(ConfigError, match="'mysql'"):
        open_journal("mysql://db/shop")


def test_a_connection_string_is_never_a_file_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.chdir(tmp_path)
    for read_only in (False, True):
        with pytest.raises(JournalUnavailableError):
            open_journal(f"host={tmp_path} dbname=shop user=postgres", read_only=read_only)
        with pytest.raises(ConfigError, match="PostgreSQL's own tools"):
            open_journal("host=db database=shop", read_only=read_only)
    assert list(tmp_path.iterdir()) == []
    url = str(request.getfixturevalue("url"))
    name, host = url.split("/")[3].split("?")[0], url.split("host=")[1]
    with open_journal(f"host={host} user=postgres dbname={name}") as journal, open_journal(url) as same:
        journal.create(NAME, b"{}", time=0.0)
        assert same.names() == [NAME]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("secret", ["hunter2", "open sesame", "it's", 'a"b', "back\\slash"])
def test_no_password_is_shown(secret: str) -> None:
    quoted = "'" + secret.replace("\\", "\\\\").replace("'", "\\'") + "'"
    for url in (
        f"host=db password={quoted} dbname=shop",
        f"password = {quoted} host=db",
        f"host=db sslpassword={quoted}",
        f"postgresql://me:{secret.replace(' ', '%20')}@db/shop",
        f"postgresql://db/shop?password={secret.replace(' ', '%20')}",
    ):
        shown = without_password(url)
        assert "db" in shown
        assert not any(word in shown for word in (secret, *secret.split()))
    assert without_password("/var/lib/password=1.db") == "/var/lib/password=1.db"


def test_only_a_file_journal_goes_without_sync(tmp_path: Path) -> None:
    for url in (str(tmp_path / "shop.db"), "postgresql://db/shop"):
        with pytest.raises(ConfigError, match="sync=False"):
            open_journal(url, sync=False)
    assert list(tmp_path.iterdir()) == []


def test_only_the_owner_may_read_a_sqlite_journal(tmp_path: Path) -> None:
    path, umask = tmp_path / "shop.db", os.umask(0)
    try:
        with open_journal(path) as journal:
            journal.create(NAME, b"{}", time=0.0)
            append(journal, "d")
            modes = {each.name: stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()}
        backup(path, tmp_path / "copy.db")
    finally:
        os.umask(umask)
    assert modes.keys() >= {"shop.db", "shop.db-wal", "shop.db-shm", "shop.db-writer"}
    assert set(modes.values()) == {0o600}
    assert stat.S_IMODE((tmp_path / "copy.db").stat().st_mode) == 0o600
    path.chmod(0o640)  # for a group of auditors, say
    with open_journal(path) as journal:
        append(journal, "e")
        assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(Path(f"{path}-wal").stat().st_mode) == 0o640


def test_a_journal_that_is_not_there_is_not_made_to_be_read(tmp_path: Path) -> None:
    for name in ("shop.db", "app.log"):
        with pytest.raises(JournalNotFoundError):
            open_journal(tmp_path / name, read_only=True)
        with pytest.raises(JournalError):
            open_journal(tmp_path / "none" / name)
    assert list(tmp_path.iterdir()) == []
