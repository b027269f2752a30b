"""The service's settings: one TOML file, environment variables over it, options of the command line over both.

>>> settings = load(environment={"SUREFOOT_PORT": "9000", "SUREFOOT_LIMITS_ACTIONS": "50"})
>>> settings.port, settings.limits.actions, settings.host
(9000, 50, '127.0.0.1')
>>> load(environment={"SUREFOOT_PROT": "9000"})
Traceback (most recent call last):
surefoot.errors.ConfigError: `SUREFOOT_PROT` is not a setting. Did you mean 'SUREFOOT_PORT'?
"""

import ipaddress
import re
import tomllib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from surefoot.errors import ConfigError
from surefoot.hints import nearest
from surefoot.journal.address import without_password
from surefoot.service.tokens import ROLES, Role

PREFIX = "SUREFOOT_"
# Read by the command line, by clients, and by the core when it is imported.
OTHERS = frozenset({"SUREFOOT_CONFIG", "SUREFOOT_URL", "SUREFOOT_TOKEN", "SUREFOOT_CORE", "SUREFOOT_CORE_DIR"})

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]


class Limits(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """What one caller may ask for; more is refused before any work is done.

    Parameters
    ----------
    body_bytes : int
        Size of a request body.
    actions, dimensions : int
        Of one decision.
    batch : int
        Decisions or rewards in one request.
    rate : float
        Requests a second of one token, or of one address if there are no tokens; 0 for no limit.
    burst : int
        Requests at once before the rate counts.
    waiting : int
        Decisions and rewards that may wait for one experiment.
    live : int
        Pages that may follow experiments at a time.
    head_seconds, body_seconds : float
        For the head of a request to arrive, and for the rest of it.
    head_bytes : int
        Size of the head of a request: its line and its headers.
    connections, connections_per_address : int
        Open at a time, and from one address; a new one takes the place of the one that has been idle longest.
    edges : int
        Shards of one experiment that have not left, edges included; beyond, no other edge is let in.
    edges_per_token : int
        Edges of one experiment that have not left, of those that one token let in.

    Examples
    --------
    >>> Limits(rate=50.0).burst
    100
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
    head_bytes: Count = 32_768
    connections: Count = 2_000
    connections_per_address: Count = 1_000
    edges: Count = 1_000
    edges_per_token: Count = 100


class Oidc(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """The company's own log-in, by OpenID Connect: whose JSON Web Tokens are accepted, and as what.

    Parameters
    ----------
    issuer, audience : str
        What the claims `iss` and `aud` must say.
    jwks : str
        Where the issuer's keys are: https://..., or a file.
    roles_claim : str
        The claim that lists roles, or groups; or the path to it, such as `realm_access.roles`.
    roles : dict of str to {"decide", "read", "metrics", "admin"}
        Which of its values stands for which role.

    Examples
    --------
    >>> told = {"issuer": "https://id.example", "audience": "surefoot", "jwks": "keys.json"}
    >>> Oidc(**told).roles["surefoot:read"]
    'read'
    """

    issuer: Annotated[str, Meta(min_length=1)]
    audience: Annotated[str, Meta(min_length=1)]
    jwks: Annotated[str, Meta(min_length=1)]
    roles_claim: str = "roles"
    roles: dict[str, Role] = msgspec.field(default_factory=lambda: {f"surefoot:{role}": role for role in ROLES})

    def check(self) -> None:
        """Raise where anybody on the way could exchange the keys."""
        place = urlsplit(self.jwks)
        is_safe = place.scheme == "https" or (place.scheme == "http" and is_loopback(place.hostname or ""))
        if "://" in self.jwks and not is_safe:
            raise ConfigError(f"`oidc.jwks` must be https://... or a file, but got {self.jwks!r}.")


class Settings(msgspec.Struct, forbid_unknown_fields=True, frozen=True, kw_only=True):
    """All settings of a server.

    Parameters
    ----------
    database : str
        A SQLite file, or postgresql://... for several servers.
    hub, shard : str, optional
        Where shards that share a floor meet, postgresql://... as a rule, and this server's name among them; `database`
        is its own then.
    lease_decisions, lease_seconds : int and float
        Most decisions under one lease, and the longest time.
    edge_seconds : float
        How long the lease of an edge is good for; it needs a `signing_key`.
    host, port : str and int
        Where to listen; without tokens only loopback addresses are allowed.
    tokens : str, optional
        The file that `surefoot token` writes; without one, and without `oidc`, no token is asked for.
    proxies : list of str
        Addresses of proxies that are believed when they say in `X-Forwarded-For` who is asking.
    window_seconds : float
        How often reward windows are checked.
    clock_seconds : float
        By how much the system's clock may jump before it is not believed.
    snapshot_every : int
        Events between two snapshots of an experiment.
    stop_seconds : float
        For requests in progress when the server is told to stop.
    history_points : int
        Points of each experiment's chart.
    retention_days : float, optional
        After so many days, and not before their reward window has closed, ids, names and contexts are erased.
    log_ids : bool
        Whether decision ids, which are the callers' own words, are logged.
    heads, heads_url : str, optional
        A file, best on another machine's disk, and an address that the heads of the experiments are sent to.
    head_seconds : float
        How often; they are logged, too.
    signing_key : str, optional
        A file with an Ed25519 key that heads, and leases of edges, are signed with.
    coins : str, optional
        A folder for the secrets of guards' coins until they are revealed; by default beside a database that is a file.
        Without one, the newest block of a server that has ended is never revealed.
    log : {"debug", "info", "warning", "error"}
        What is logged.
    limits : Limits
        What one caller may ask for.
    oidc : Oidc, optional
        The company's own log-in, for people.

    Examples
    --------
    >>> Settings(port=9000).is_open
    True
    """

    database: str = "surefoot.journal"
    hub: str | None = None
    shard: Annotated[str, Meta(min_length=1, max_length=100)] | None = None
    lease_decisions: Count = 1_000
    lease_seconds: Seconds = 1.0
    edge_seconds: Seconds = 86_400.0
    host: str = "127.0.0.1"
    port: Annotated[int, Meta(ge=0, le=65535)] = 8080
    tokens: str | None = None
    proxies: list[str] = []
    window_seconds: Seconds = 1.0
    clock_seconds: Seconds = 10.0
    snapshot_every: Count = 2_000
    stop_seconds: Seconds = 20.0
    history_points: Annotated[int, Meta(ge=16)] = 512
    retention_days: Annotated[float, Meta(gt=0)] | None = None
    log_ids: bool = False
    heads: str | None = None
    heads_url: Annotated[str, Meta(pattern="^https?://")] | None = None
    head_seconds: Seconds = 60.0
    signing_key: str | None = None
    coins: str | None = None
    log: Literal["debug", "info", "warning", "error"] = "info"
    limits: Limits = Limits()
    oidc: Oidc | None = None

    @property
    def is_open(self) -> bool:
        """Whether no token is asked for."""
        return self.tokens is None and self.oidc is None

    def check(self) -> None:
        """Check that a server can run with these settings.

        Raises
        ------
        ConfigError
            If `host` can be reached from other machines and there are no tokens, a shard has no hub, or keys have no
            safe way.
        """
        if self.oidc is not None:
            self.oidc.check()
        if (self.hub is None) != (self.shard is None):
            raise ConfigError(
                f"`hub` and `shard` must be given together, but got hub={self.shown()['hub']!r} and {self.shard!r}. "
                "The hub is where shards meet, the shard is this server's name among them."
            )
        if self.is_open and not is_loopback(self.host):
            raise ConfigError(
                f"Without tokens `host` must be a loopback address, but got {self.host!r}: anyone could decide. "
                "Make a token with `surefoot token create`, and name its file as `tokens`."
            )

    def shown(self) -> dict[str, Any]:
        """The settings as plain data, without the database's password."""
        hub = None if self.hub is None else without_password(self.hub)
        return {**msgspec.to_builtins(self), "database": without_password(self.database), "hub": hub}


GROUPS: dict[str, type[msgspec.Struct]] = {"limits": Limits, "oidc": Oidc}


def load(
    file: Path | None = None, *, environment: Mapping[str, str] | None = None, given: Mapping[str, Any] | None = None
) -> Settings:
    """The settings of a file, overridden by the environment and by what is given here.

    Parameters
    ----------
    file : Path, optional
        A TOML file.
    environment : mapping of str to str, optional
        Such as `os.environ`: SUREFOOT_PORT sets `port`, SUREFOOT_LIMITS_RATE sets `limits.rate`.
    given : mapping, optional
        Settings by name; None leaves one as it is.

    Returns
    -------
    Settings
        Checked.

    Raises
    ------
    ConfigError
        If the file cannot be read, or a setting is unknown or invalid.

    Examples
    --------
    >>> load(environment={"SUREFOOT_PORT": "9000"}).port
    9000
    """
    found = {} if file is None else _read(file)
    for name, text in (environment or {}).items():
        if name.startswith(PREFIX) and name not in OTHERS and not _is_of_kubernetes(name, text):
            _put(found, name, text)
    found.update({key: value for key, value in (given or {}).items() if value is not None})
    try:
        settings = msgspec.convert(found, Settings)
    except msgspec.ValidationError as error:
        text, _, place = str(error).partition(" - at `$.")
        which = f"The setting `{place.rstrip('`')}` must have the right type and size" if place else "Settings must fit"
        raise ConfigError(f"{which}: {text[:1].lower()}{text[1:]}.") from None
    settings.check()
    return settings


# Asked for every request of a server without tokens.
@lru_cache(1024)
def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _read(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"Settings must be a TOML file, but {file} cannot be read as one: {error}.") from None
    _refuse_unknown(found, Settings, "")
    for group, kind in GROUPS.items():
        if isinstance(found.get(group), dict):
            _refuse_unknown(found[group], kind, f"{group}.")
    return found


def _refuse_unknown(found: Mapping[str, Any], kind: type[msgspec.Struct], prefix: str) -> None:
    for key in found:
        if key not in kind.__struct_fields__:
            hint = nearest(key, kind.__struct_fields__, prefix=prefix)
            raise ConfigError(f"`{prefix}{key}` is not a setting. {hint}")


def _is_of_kubernetes(name: str, text: str) -> bool:
    """Whether a variable is one that Kubernetes sets in every container where a Service is called surefoot."""
    is_link = name == f"{PREFIX}PORT" and "://" in text
    return is_link or re.fullmatch(rf"{PREFIX}(SERVICE_(HOST|PORT(_\w+)?)|PORT_\d+_\w+)", name) is not None


def _put(found: dict[str, Any], name: str, text: str) -> None:
    names: dict[str, tuple[str, ...]]
    names = {f"{PREFIX}{field.upper()}": (field,) for field in Settings.__struct_fields__ if field not in GROUPS}
    for group, kind in GROUPS.items():
        names |= {f"{PREFIX}{group.upper()}_{field.upper()}": (group, field) for field in kind.__struct_fields__}
    if name not in names:
        raise ConfigError(f"`{name}` is not a setting. {nearest(name, names)}")
    *above, last = names[name]
    home = found
    for key in above:
        home = home.setdefault(key, {})
    home[last] = _value(last, text)


def _value(field: str, text: str) -> Any:
    """A number where the setting is one; texts stay as they are."""
    structs: list[type[msgspec.Struct]] = [Settings, *GROUPS.values()]
    kind = next(f for s in structs for f in msgspec.structs.fields(s) if f.name == field).type
    if kind in (str, str | None, Annotated[str, Meta(min_length=1)]) or field == "log":
        # An empty variable takes back what the file says.
        return text or None if kind == str | None else text
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return text
