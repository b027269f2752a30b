"""Tokens: who may decide, read, read metrics alone, or administer.

A token is `surefoot_<id>_<secret>`; the file holds its id, its roles and the SHA-256 of the whole. The secret is 256
random bits, which cannot be guessed however fast the hash is: a slow one (scrypt) protects passwords that people
choose, and would cost every request a tenth of a second here. Hashes are compared in constant time, and an unknown id
is compared too, so that the time of an answer reveals nothing.
"""

import fcntl
import hashlib
import hmac
import math
import os
import pwd
import secrets
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from surefoot.errors import ConfigError, JournalUnavailableError
from surefoot.journal.address import private_file
from surefoot.service.logs import log

Role: TypeAlias = Literal["decide", "read", "metrics", "admin"]
ROLES: tuple[Role, ...] = ("decide", "read", "metrics", "admin")
PREFIX = "surefoot"
NOBODY, NO_FILE = "0" * 64, (0, 0, 0)


class Token(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A token as the file keeps it: enough to recognise it, not enough to use it.

    owner:       who answers for what is done with it; events name them
    expires:     when it is refused, in seconds since 1970
    experiments: the only ones that it may be used for; empty for all
    """

    id: str
    roles: list[Role]
    hash: str
    created: float
    note: str = ""
    owner: str = ""
    expires: float | None = None
    experiments: list[str] = []

    @property
    def by(self) -> str:
        """Whom events name."""
        return f"{self.owner} ({self.id})" if self.owner else self.id

    def has_expired(self, now: float) -> bool:
        """Whether its time is over."""
        return self.expires is not None and now >= self.expires


class TokenFile:
    """The tokens in a file that only its owner can read. A running server notices changes.

    While the file is broken, or gone, the tokens that were last read go on, and `error` says why.

    Parameters
    ----------
    path : Path or str
        The file; it need not exist yet.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tokens = TokenFile(Path(folder) / "tokens")
    ...     secret = tokens.create(["decide"], note="the shop")
    ...     tokens.find(secret).roles, tokens.find("surefoot_0_guess")
    (['decide'], None)
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._known: dict[str, Token] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._looked = -1.0
        self.error: str | None = None

    def all(self) -> list[Token]:
        """The tokens, oldest first; none if there is no file.

        Raises
        ------
        ConfigError
            If the file cannot be read, or is not a token file.
        """
        try:
            return self._read()
        except FileNotFoundError:
            return []

    def _read(self) -> list[Token]:
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as error:
            raise ConfigError(f"`tokens` must be a file that can be read, but {self.path}: {error}.") from None
        try:
            return msgspec.json.decode(data, type=list[Token])
        except msgspec.MsgspecError as error:
            raise ConfigError(f"`tokens` must be a file of `surefoot token`, but {self.path} is not: {error}") from None

    def create(
        self,
        roles: list[Role],
        *,
        note: str = "",
        owner: str = "",
        expires: float | None = None,
        experiments: Sequence[str] = (),
    ) -> str:
        """Create a token and return it; only its hash is kept.

        Parameters
        ----------
        roles : list of {"decide", "read", "metrics", "admin"}
            What it may do; an admin may do everything.
        note : str
            What it is for.
        owner : str
            Who answers for what is done with it; events name them.
        expires : float, optional
            When it is refused, in seconds since 1970; never by default.
        experiments : sequence of str
            The only experiments that it may be used for; all by default.

        Returns
        -------
        str
            The token.

        Raises
        ------
        ConfigError
            If a role is unknown, or the file cannot be written.
        """
        if not roles or not set(roles) <= set(ROLES):
            raise ConfigError(f"`roles` must be some of {', '.join(ROLES)}, but got {', '.join(roles) or 'none'}.")
        if expires is not None and not time.time() < expires < math.inf:
            raise ConfigError(f"`expires` must be a time that is still to come, but got {expires!r}.")
        if not all(text.isprintable() and len(text) <= 200 for text in (owner, *experiments)) or "" in experiments:
            raise ConfigError(
                f"`owner` and `experiments` must be printable, of at most 200 characters, but got {owner!r:.80} and "
                f"{list(experiments)!r:.80}."
            )
        identity = secrets.token_hex(4)
        token = f"{PREFIX}_{identity}_{secrets.token_urlsafe(32)}"
        kept = Token(
            identity, sorted(set(roles)), digest(token), time.time(), note, owner, expires, sorted(set(experiments))
        )
        with self._alone():
            tokens = [*self.all(), kept]
            self._note("created", kept)
            self._write(tokens)
        return token

    def revoke(self, identity: str) -> None:
        """Remove a token, which is refused from then on.

        Parameters
        ----------
        identity : str
            Its id: the word after the first underscore.

        Raises
        ------
        ConfigError
            If there is no such token, or the file cannot be written.
        """
        with self._alone():
            tokens = self.all()
            gone = next((token for token in tokens if token.id == identity), None)
            if gone is None:
                raise ConfigError(f"There is no token {identity!r:.40}; `surefoot token list` shows those there are.")
            self._note("revoked", gone)
            self._write([token for token in tokens if token.id != identity])

    def find(self, presented: str) -> Token | None:
        """The token that was presented, if it is valid.

        Parameters
        ----------
        presented : str
            What the caller sent.

        Returns
        -------
        Token or None
            Its id and roles.
        """
        self._refresh()
        # At most two cuts: a secret may hold underscores.
        known = self._known.get(presented.split("_", 2)[1]) if presented.count("_") >= 2 else None
        is_right = hmac.compare_digest(digest(presented), NOBODY if known is None else known.hash)
        return known if is_right and known is not None and not known.has_expired(time.time()) else None

    def _refresh(self) -> None:
        now = time.monotonic()
        if now - self._looked < 0.5:
            return
        self._looked = now
        try:
            stamp = self._read_stamp()
            if stamp != self._stamp:
                known = {} if stamp == NO_FILE else {token.id: token for token in self._read()}
                if self._stamp is not None:
                    _log_changes(self._known, known)
                self._known = known
                # Only now, so that a file that could not be read is tried again.
                self._stamp = stamp
            self.error = None
        except (ConfigError, OSError) as error:
            if self.error is None:
                log.error("the token file cannot be read; the last tokens go on", extra={"detail": str(error)})
            self.error = str(error)

    def _read_stamp(self) -> tuple[int, int, int]:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            if self._stamp not in (None, NO_FILE):  # to revoke all, empty the list in it
                raise
            return NO_FILE
        # With the inode, since a file replaced within the clock's resolution has a new one.
        return (found.st_mtime_ns, found.st_size, found.st_ino)

    def expiries(self) -> dict[str, float]:
        """When tokens expire, by id, of those that do, in seconds since 1970."""
        return {token.id: token.expires for token in self._known.values() if token.expires is not None}

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time: what two read before either writes, the last would undo."""
        if self.path.is_dir():
            raise ConfigError(f"`tokens` must be a file that can be written, but {self.path} is a folder.")
        beside = self.path.with_name(f".{self.path.name}.lock")
        try:
            lock = os.open(beside, os.O_WRONLY | os.O_CREAT, 0o600)
        except OSError as error:
            raise ConfigError(f"`tokens` must be a file that can be written, but {self.path}: {error}.") from None
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    @property
    def trail(self) -> Path:
        """The file that says who has changed the tokens: one JSON object a line, without their hashes."""
        return self.path.with_name(f"{self.path.name}.trail")

    def _note(self, change: Literal["created", "revoked"], token: Token) -> None:
        """Add to the trail, before the change itself: a token that nobody has noted must not be."""
        line = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "change": change,
            "by": _user(),
            **{field: value for field, value in msgspec.to_builtins(token).items() if field != "hash"},
        }
        try:
            private_file(self.trail)
            with self.trail.open("ab") as file:
                file.write(msgspec.json.encode(line) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except (OSError, JournalUnavailableError) as error:
            raise ConfigError(f"Changes of tokens must be noted in {self.trail}, but: {error}") from None

    def _write(self, tokens: list[Token]) -> None:
        """Replace the file as a whole, so that no reader sees half of it."""
        data = msgspec.json.format(msgspec.json.encode(tokens), indent=2) + b"\n"
        beside = self.path.with_name(f".{self.path.name}.{secrets.token_hex(4)}")
        try:
            # Private from its first moment; a chmod afterwards would come too late.
            with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(data)
                out.flush()
                # Before the rename: otherwise a power cut may leave the name with an empty file.
                os.fsync(out.fileno())
            beside.replace(self.path)
        except OSError as error:
            raise ConfigError(f"`tokens` must be a file that can be written, but {self.path}: {error}.") from None


def _log_changes(before: Mapping[str, Token], now: Mapping[str, Token]) -> None:
    """Log which tokens are others now, for a file that was edited by hand has left no trail."""
    for identity in sorted({one for one in before.keys() | now.keys() if before.get(one) != now.get(one)}):
        token = now.get(identity)
        told = {"roles": [], "owner": ""} if token is None else {"roles": token.roles, "owner": token.owner}
        log.warning("a token was revoked" if token is None else "a token is new", extra={"token": identity, **told})


def _user() -> str:
    """Who is at the keyboard, as far as the system knows."""
    with suppress(KeyError):  # a container's user has no name
        return os.environ.get("SUDO_USER") or pwd.getpwuid(os.getuid()).pw_name
    return str(os.getuid())


def digest(token: str) -> str:
    """What is kept of a token."""
    return hashlib.sha256(token.encode()).hexdigest()
