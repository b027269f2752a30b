"""Where a journal is, as it may be shown; and the file that it is, where it is one."""

from pathlib import Path
from urllib.parse import urlsplit, urlunsplit


def file_of(url: str) -> Path | None:
    """The SQLite file of a journal's address; None where it is no file.

    >>> str(file_of("sqlite:///shop.db")), file_of("postgresql://host/shop"), file_of("memory:")
    ('shop.db', None, None)
    """
    path = url.removeprefix("sqlite:///")
    return None if "://" in path or path == "memory:" else Path(path)


def without_password(url: str) -> str:
    """A database's address that may be shown.

    >>> without_password("postgresql://me:secret@host/shop?password=secret")
    'postgresql://me:***@host/shop'
    """
    parts = urlsplit(url)
    if "postgres" not in parts.scheme:
        return url
    # The last @, for a password may hold others. A query may hold one, too, and is dropped.
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    return urlunsplit((parts.scheme, f"{name}{':***' if colon else ''}{at}{host}", parts.path, "", ""))
