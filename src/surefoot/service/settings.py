"""The service's settings: one TOML file, environment variables over it, options of the command line over both.

>>> settings = load(environment={"SUREFOOT_PORT": "9000", "SUREFOOT_LIMITS_ACTIONS": "50"})
>>> settings.port, settings.limits.actions, settings.host
(9000, 50, '127.0.0.1')
>>> load(environment={"SUREFOOT_PROT": "9000"})
Traceback (most recent call last):
surefoot.errors.ConfigError: `SUREFOOT_PROT` is not a setting. Did you mean 'SUREFOOT_PORT'?
"""

import ipaddress
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit, urlunsplit

import msgspec
from msgspec import Meta

from surefoot.errors import ConfigError
from surefoot.hints import nearest

PREFIX = "SUREFOOT_"
OTHERS = frozenset({"SUREFOOT_CONFIG", "SUREFOOT_URL", "SUREFOOT_TOKEN"})  # read by the command line and by clients

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class Limits(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What one caller may ask for; more is refused before any work is done.

    body_bytes:          the largest request body
    actions, dimensions: of one decision
    batch:               decisions or rewards in one request
    rate:                requests a second of one token (of one address where there are no tokens), 0 for no limit
    burst:               requests at once before the rate counts
    waiting:             decisions and rewards that may wait for one experiment
    live:                pages that may follow experiments at a time
    head_seconds:        for the head of a request to arrive, and `body_seconds` for the rest of it
    connections:         open at a time
    """

    body_bytes: Count = 1_000_000
    actions: Count = 1_000
    dimensions: Count = 1_000
    batch: Count = 500
    rate: Annotated[float, Meta(ge=0)] = 0.0
    burst: Count = 100
    waiting: Count = 2_000
    live: Count = 100
    head_seconds: Seconds = 10.0
    body_seconds: Seconds = 20.0
    connections: Count = 2_000


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """Everything that a server can be told.

    database:          a SQLite file, or postgresql://... for several servers
    host, port:        where to listen; without tokens only loopback addresses are allowed
    tokens:            the file that `surefoot token` writes; None asks for none
    window_seconds:    how often windows are looked at
    snapshot_every:    events between two snapshots of an experiment
    stop_seconds:      for requests that are being answered when the server is told to stop
    history_points:    of each experiment's picture
    log:               what is logged
    """

    database: str = "surefoot.journal"
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    tokens: str | None = None
    window_seconds: Seconds = 1.0
    snapshot_every: Count = 2_000
    stop_seconds: Seconds = 20.0
    history_points: Annotated[int, Meta(ge=16)] = 512
    log: Literal["debug", "info", "warning", "error"] = "info"
    limits: Limits = Limits()

    @property
    def is_open(self) -> bool:
        """Whether nobody is asked for a token."""
        return self.tokens is None

    def check(self) -> None:
        """Refuse what no server can run with."""
        if self.is_open and not is_loopback(self.host):
            raise ConfigError(
                f"Without tokens `host` must be a loopback address, but got {self.host!r}: anyone could decide. "
                "Make a token with `surefoot token create`, and name its file as `tokens`."
            )

    def shown(self) -> dict[str, Any]:
        """The settings as plain data, without the database's password."""
        return {**msgspec.to_builtins(self), "database": without_password(self.database)}


def load(
    file: Path | None = None, *, environment: Mapping[str, str] | None = None, given: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of a file, with the environment's over them, and those `given` over both."""
    found = {} if file is None else _read(file)
    for name, text in (environment or {}).items():
        if name.startswith(PREFIX) and name not in OTHERS:
            _put(found, name, text)
    found.update({key: value for key, value in (given or {}).items() if value is not None})
    try:
        settings = msgspec.convert(found, Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(f"A setting must have its type: {error}.") from None
    settings.check()
    return settings


@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach it."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def without_password(url: str) -> str:
    """A database's address that may be shown.

    >>> without_password("postgresql://me:secret@host/shop?password=secret")
    'postgresql://me:***@host/shop'
    """
    parts = urlsplit(url)
    if "postgres" not in parts.scheme:
        return url
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    return urlunsplit((parts.scheme, f"{name}{':***' if colon else ''}{at}{host}", parts.path, "", ""))


def _read(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"Settings must be a TOML file, but {file} cannot be read as one: {error}.") from None
    _refuse_unknown(found, Settings, "")
    if isinstance(found.get("limits", {}), dict):
        _refuse_unknown(found.get("limits", {}), Limits, "limits.")
    return found


def _refuse_unknown(found: Mapping[str, Any], kind: type[msgspec.Struct], prefix: str) -> None:
    for key in found:
        if key not in kind.__struct_fields__:
            hint = nearest(key, kind.__struct_fields__, prefix=prefix)
            raise ConfigError(f"`{prefix}{key}` is not a setting. {hint}")


def _put(found: dict[str, Any], name: str, text: str) -> None:
    names: dict[str, tuple[str, ...]]
    names = {f"{PREFIX}{field.upper()}": (field,) for field in Settings.__struct_fields__ if field != "limits"}
    names |= {f"{PREFIX}LIMITS_{field.upper()}": ("limits", field) for field in Limits.__struct_fields__}
    if name not in names:
        raise ConfigError(f"`{name}` is not a setting. {nearest(name, names)}")
    *above, last = names[name]
    home = found
    for key in above:
        home = home.setdefault(key, {})
    home[last] = _value(last, text)


def _value(field: str, text: str) -> Any:
    """A number where the setting is one; texts stay as they are."""
    kind = next(f for s in (Settings, Limits) for f in msgspec.structs.fields(s) if f.name == field).type
    if kind in (str, str | None) or field == "log":
        return text or None if kind == str | None else text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
