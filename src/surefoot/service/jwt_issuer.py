"""The company's own log-in: JSON Web Tokens of one issuer (OpenID Connect), in place of tokens for people.

There is no flow of ours: a proxy before the page (oauth2-proxy and the like) logs people in, and passes their token on
as `Authorization: Bearer`. What is checked: the signature, by one of the issuer's keys and with that key's own
algorithm, which is never a symmetric one, whatever the token says; issuer, audience and times; and the roles.
"""

import asyncio
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import ConfigError
from surefoot.service.fetch import fetch
from surefoot.service.logs import log
from surefoot.service.problems import ProblemError
from surefoot.service.settings import Oidc
from surefoot.service.tokens import Token

ALGORITHMS = frozenset(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"))
RSA_BITS = 2048  # at least
CLAIMS = ("exp", "iat", "iss", "aud", "sub")
LEEWAY = 30.0  # seconds by which the issuer's clock may differ
MOST_CHARACTERS = 16_384
KEPT_SECONDS, AGAIN_SECONDS = 300.0, 10.0  # between two fetches of the keys; where one failed, or a key is not known
FETCH_SECONDS = 5.0


class JwtIssuer:
    """Which tokens of an issuer are accepted, and as whose.

    Its keys are fetched by a thread of their own, and the last ones go on where they cannot be. A token of a key that
    is not known has them fetched again, but not more often than every ten seconds: anybody can invent a key's name.
    """

    def __init__(self, settings: Oidc) -> None:
        try:
            import jwt
            from jwt.algorithms import has_crypto
        except ModuleNotFoundError:
            raise _needs_package() from None
        if not has_crypto:
            raise _needs_package()
        self._settings, self._jwt = settings, jwt
        self._keys: Mapping[str | None, Any] = {}
        self._alone, self._is_fetching = threading.Lock(), False
        self._since = self._tried = time.monotonic() - KEPT_SECONDS
        self._has_failed = False

    @property
    def age(self) -> float:
        """Seconds since the keys were last fetched, or nearly that since the start."""
        return time.monotonic() - self._since

    def find(self, presented: str) -> Token:
        """The caller, as a token like those of the file.

        Raises
        ------
        ProblemError
            If the token is not accepted, with what is wrong with it; or nobody can tell, for its key is not known yet.
        """
        if len(presented) > MOST_CHARACTERS:
            raise refusal(f"A log-in has at most {MOST_CHARACTERS} characters.")
        try:
            key = self._key_of(self._jwt.get_unverified_header(presented).get("kid"))
            claims = self._jwt.decode(
                presented,
                key,
                algorithms=[key.algorithm_name],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=LEEWAY,
                options={"require": list(CLAIMS)},
            )
            return self._token_of(claims)
        except self._jwt.PyJWTError as error:
            raise refusal(f"The log-in is not accepted ({type(error).__name__}).") from None
        except (ValueError, TypeError, OverflowError, RecursionError) as error:  # numbers that are none, and the like
            raise refusal(f"The log-in cannot be read ({type(error).__name__}).") from None

    def _key_of(self, name: str | None) -> Any:
        key = self._keys.get(name)
        if key is None and name is None and len(self._keys) == 1:  # an issuer of one key need not name it
            (key,) = self._keys.values()
        if key is not None:
            return key
        self.refresh(AGAIN_SECONDS)
        if self._is_fetching or not self._keys:
            raise ProblemError("tokens-unreadable", "The keys of the log-in are being fetched: ask again.")
        raise refusal("The log-in names a key that its issuer does not have.")

    def _token_of(self, claims: Mapping[str, Any]) -> Token:
        subject, values = claims["sub"], _claim(claims, self._settings.roles_claim)
        if not _is_name(subject):
            raise refusal("The log-in must have a `sub` that can be printed, of at most 200 characters.")
        values = [values] if isinstance(values, str) else values if isinstance(values, list) else []
        known = self._settings.roles
        roles = sorted({known[value] for value in values if isinstance(value, str) and value in known})
        if not roles:
            raise ProblemError(
                "not-allowed", f"No role of this service is in the log-in's {self._settings.roles_claim!r}."
            )
        # What people may write themselves must not name another in the trail.
        is_verified = claims.get("email_verified", True) in (True, "true")
        names = (claims.get(claim) for claim in ("email", "preferred_username") if is_verified)
        owner = next((str(name) for name in names if _is_name(name)), "")
        # Ids of the token file have no colon, so that no subject is taken for one of them.
        return Token(f"oidc:{subject}", roles, "", float(claims["iat"]), "", owner, float(claims["exp"]))

    def refresh(self, after: float | None = None) -> None:
        """Have the keys fetched, unless that was tried a moment ago."""
        after = after or (AGAIN_SECONDS if self._has_failed else KEPT_SECONDS)
        with self._alone:
            if self._is_fetching or time.monotonic() - self._tried < after:
                return
            self._tried, self._is_fetching = time.monotonic(), True
        threading.Thread(target=self._fetch, name="keys of the log-in", daemon=True).start()

    def _fetch(self) -> None:
        try:
            self._keys = self.read_keys()
            self._since, self._has_failed = time.monotonic(), False
        except Exception as error:  # whatever the address answers, the last keys go on
            self._has_failed = True
            log.error("the log-in keys cannot be fetched; using the cached keys", extra={"detail": str(error)})
        finally:
            self._is_fetching = False

    def read_keys(self) -> dict[str | None, Any]:
        """The issuer's keys that tokens may be signed with, by their names.

        Raises
        ------
        ConfigError
            If there are none, or they cannot be fetched.
        """
        try:
            entries = msgspec.json.decode(_read(self._settings.jwks), type=_KeySet).keys
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            raise ConfigError(f"`oidc.jwks` must be a set of keys, but {self._settings.jwks}: {error}.") from None
        keys = [key for entry in entries if (key := self._usable(entry)) is not None]
        if not keys:
            raise ConfigError(f"`oidc.jwks` must have a public key to sign with, but {self._settings.jwks} has none.")
        return {key.key_id: key for key in keys}

    def _usable(self, entry: dict[str, Any]) -> Any:
        # A private part, or a secret that both sides share, would be everybody's by now.
        if entry.get("use", "sig") != "sig" or entry.get("kty") == "oct" or "d" in entry:
            return None
        try:
            key = self._jwt.PyJWK(entry)
        except (self._jwt.PyJWTError, ValueError, TypeError, KeyError):
            return None
        is_short = entry["kty"] == "RSA" and key.key.key_size < RSA_BITS
        return key if key.algorithm_name in ALGORITHMS and not is_short else None


class _KeySet(msgspec.Struct):
    keys: list[dict[str, Any]]


def _claim(claims: Mapping[str, Any], name: str) -> Any:
    """A claim by its name, or by the path to it; names may have dots, too."""
    if name in claims:
        return claims[name]
    found: Any = claims
    for part in name.split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _read(place: str) -> bytes:
    """The content of an address or a file."""
    if "://" in place:
        return asyncio.run(fetch(place, seconds=FETCH_SECONDS))
    return Path(place).read_bytes()


def _is_name(text: Any) -> bool:
    return isinstance(text, str) and 0 < len(text) <= 200 and text.isprintable()


def _needs_package() -> ConfigError:
    return ConfigError("Log-ins of a provider (`oidc`) need one more package: pip install 'surefoot[oidc]'.")


def refusal(detail: str) -> ProblemError:
    """That a caller is not known."""
    return ProblemError("no-token", detail, WWW_Authenticate='Bearer realm="surefoot"')
