"""Where a journal is: what its address says, how it may be shown, and the files that belong to it.

>>> str(file_of("sqlite:///shop.db")), str(file_of("file:///var/app.log")), file_of("host=db dbname=shop")
('shop.db', '/var/app.log', None)
"""

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit, urlunsplit

from surefoot.errors import ConfigError, JournalUnavailableError

# First line of a file journal, by which one is known whatever its name.
FILE_MAGIC = b"surefoot-journal/1\n"
# libpq's own form of an address: words and values. Any of them tells it from a file, whose name could hold a secret.
CONNECTION_STRING = re.compile(
    r"(^|\s)(host|hostaddr|port|dbname|user|service|password|passfile|options|application_name|client_encoding|"
    r"connect_timeout|tcp_user_timeout|target_session_attrs|load_balance_hosts|channel_binding|require_?auth|require_?peer|"
    r"(ssl|gss|krb|keepalives)\w*)\s*="
)
PASSWORD = re.compile(r"(password\s*=\s*)('(?:\\.|[^'\\])*'|\S+)")
KINDS = "'memory:', a path, 'sqlite:///path', 'file:///path', 'postgresql://...' or 'host=... dbname=...'"


class Address(NamedTuple):
    """The kind of a journal, and the path or connection string by which it is found."""

    kind: Literal["memory", "file", "sqlite", "postgres"]
    place: str


def parse(url: str | Path) -> Address:
    """What the address of a journal says; a file that exists is known by how it begins."""
    text = str(url)
    if isinstance(url, str):
        if text == "memory:":
            return Address("memory", "")
        if text.startswith(("postgresql://", "postgres://")) or CONNECTION_STRING.search(text):
            return Address("postgres", text)
        if text.startswith("file:"):
            return Address("file", urlsplit(text).path if text.startswith("file://") else text.removeprefix("file:"))
        if "://" in text and not text.startswith("sqlite:///"):
            raise ConfigError(f"A journal is {KINDS}, but got {text.split('://')[0]!r}.")
        if text.startswith("sqlite:///"):
            return Address("sqlite", text.removeprefix("sqlite:///"))
    is_log = _begins_as_log(Path(text))
    return Address("file" if is_log or (is_log is None and text.endswith(".log")) else "sqlite", text)


def file_of(url: str | Path) -> Path | None:
    """The file that a journal is; None where it is none.

    >>> str(file_of("sqlite:///shop.db")), file_of("postgresql://host/shop"), file_of("memory:")
    ('shop.db', None, None)
    """
    kind, place = parse(url)
    return Path(place) if kind in ("file", "sqlite") else None


def without_password(url: str) -> str:
    """A database's address that may be shown.

    >>> without_password("postgresql://me:secret@host/shop?password=secret")
    'postgresql://me:***@host/shop'
    >>> without_password("host=db user=me password='se cret' dbname=shop")
    'host=db user=me password=*** dbname=shop'
    """
    if not url.startswith(("postgresql://", "postgres://")):
        return PASSWORD.sub(r"\1***", url) if CONNECTION_STRING.search(url) else url
    parts = urlsplit(url)
    # The last @, for a password may hold others. A query may hold one, too, and is dropped.
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    return urlunsplit((parts.scheme, f"{name}{':***' if colon else ''}{at}{host}", parts.path, "", ""))


def beside(path: Path, end: str) -> Path:
    """A file that stands beside a journal's, by its name and an ending."""
    return path.parent / (path.name + end)


def private_file(path: Path) -> None:
    """Make an empty file that only its owner may read, from its first moment; one that exists stays as it is."""
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise JournalUnavailableError(
            f"{path}: {error.strerror}. The file or its folder cannot be opened: check their permissions."
        ) from error


def flush_folder(path: Path) -> None:
    """Have the disk write the names in the folder of a file, where the file system can."""
    folder = os.open(path.absolute().parent, os.O_RDONLY)
    try:
        with suppress(OSError):
            os.fsync(folder)
    finally:
        os.close(folder)


def _begins_as_log(path: Path) -> bool | None:
    """Whether a file begins as a file journal does; None where nothing can be read yet."""
    try:
        with path.open("rb") as file:
            start = file.read(len(FILE_MAGIC))
    except OSError:
        return None
    return FILE_MAGIC.startswith(start) if start else None
