"""Every route against every role; tokens that are unknown, revoked or malformed; and none of them ever in a log."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.errors import ConfigError
from surefoot.service.app import create_app
from surefoot.service.logs import JsonFormatter
from surefoot.service.settings import Settings
from surefoot.service.tokens import ROLES, Role, TokenFile
from tests.service.servers import ACTIONS, POLICY, create, running

SHOP = "/v1/experiments/{name}"
# What each route needs; None: anyone, token or not; "any": any but one for metrics alone.
NEEDS: dict[tuple[str, str], str | None] = {
    ("POST", "/v1/experiments"): "admin",
    ("GET", "/v1/experiments"): "read",
    ("GET", SHOP): "read",
    ("GET", f"{SHOP}/settings"): "read",
    ("PUT", f"{SHOP}/mode"): "admin",
    ("POST", f"{SHOP}/forks"): "admin",
    ("POST", f"{SHOP}/acknowledgements"): "admin",
    ("POST", f"{SHOP}/erasures"): "admin",
    ("POST", f"{SHOP}/catalogues"): "decide",
    ("POST", f"{SHOP}/decisions"): "decide",
    ("POST", f"{SHOP}/decision-batches"): "decide",
    ("POST", f"{SHOP}/fallbacks"): "decide",
    ("GET", f"{SHOP}/decisions"): "read",
    ("GET", f"{SHOP}/decisions/{{decision_id}}"): "read",
    ("POST", f"{SHOP}/decisions/{{decision_id}}/reward"): "decide",
    ("POST", f"{SHOP}/decisions/{{decision_id}}/abandon"): "decide",
    ("POST", f"{SHOP}/decisions/{{decision_id}}/void"): "decide",
    ("POST", f"{SHOP}/decisions/{{decision_id}}/correction"): "admin",
    ("POST", f"{SHOP}/reward-batches"): "decide",
    ("POST", f"{SHOP}/confirmations"): "decide",
    ("GET", f"{SHOP}/history"): "read",
    ("GET", f"{SHOP}/beliefs"): "read",
    ("GET", f"{SHOP}/alarms"): "read",
    ("GET", f"{SHOP}/assumptions"): "read",
    ("GET", f"{SHOP}/changes"): "read",
    ("GET", f"{SHOP}/shards"): "read",
    ("POST", f"{SHOP}/shards/{{shard}}/loss"): "admin",
    ("POST", f"{SHOP}/shards/{{shard}}/departure"): "admin",
    ("POST", f"{SHOP}/edges"): "decide",
    ("GET", f"{SHOP}/edges"): "decide",
    ("POST", f"{SHOP}/edges/{{shard}}/events"): "decide",
    ("GET", f"{SHOP}/live"): "read",
    ("GET", f"{SHOP}/gate"): "read",
    ("POST", "/ofrep/v1/evaluate/flags/{name}"): "decide",
    ("POST", "/ofrep/v1/evaluate/flags"): "decide",
    ("GET", "/metrics"): "metrics",
    ("GET", f"{SHOP}/head"): "any",
    ("GET", "/v1/head"): "any",
    ("GET", "/v1/access"): "any",
    ("GET", "/livez"): None,
    ("GET", "/readyz"): None,
    ("GET", "/problems/{word}"): None,
}
OF_FLAGS = {
    "/ofrep/v1/evaluate/flags/{name}": "/ofrep/v1/evaluate/flags/flag",
    f"{SHOP}/gate": "/v1/experiments/flag/gate?share=0.5",
}
BODIES: dict[str, Any] = {
    "/ofrep/v1/evaluate/flags/{name}": {"context": {}},
    "/ofrep/v1/evaluate/flags": {"context": {"targetingKey": "me"}},
    "/v1/experiments": {"name": "shop", "settings": POLICY},
    f"{SHOP}/mode": {"mode": "guarded"},
    f"{SHOP}/acknowledgements": {"response": "stay", "reason": "a test"},
    f"{SHOP}/decisions/{{decision_id}}/abandon": {"reason": "a test"},
    f"{SHOP}/decisions/{{decision_id}}/void": {"reason": "a test"},
    f"{SHOP}/erasures": {"person": "nobody", "reason": "a test"},
    f"{SHOP}/confirmations": {"decision_ids": ["made"]},
    f"{SHOP}/forks": {"name": "forked", "reason": "a test"},
    f"{SHOP}/decisions/{{decision_id}}/correction": {"value": 1, "reason": "a test"},
    f"{SHOP}/catalogues": {"actions": ACTIONS},
    f"{SHOP}/decisions": {"actions": ACTIONS},
    f"{SHOP}/decision-batches": {"decisions": [{"actions": ACTIONS}]},
    f"{SHOP}/fallbacks": {"actions": ACTIONS, "decision_id": "alone"},
    f"{SHOP}/decisions/{{decision_id}}/reward": {"value": 1},
    f"{SHOP}/reward-batches": {"rewards": [{"decision_id": "made", "value": 1}]},
    f"{SHOP}/shards/{{shard}}/loss": {"reason": "a test"},
    f"{SHOP}/edges": {"shard": "till", "token": "0" * 32},
    f"{SHOP}/edges/{{shard}}/events": {
        "token": "0" * 32,
        "lease": 1,
        "proof": "",
        "follows": 0,
        "sent": 1.0,
    },
}
NOBODY = "surefoot_00000000_nobody"


class Guarded:
    """A server that asks for tokens, one token for each role, and everything that it logged."""

    def __init__(
        self, address: str, tokens: dict[str, str], file: TokenFile, lines: list[str], requests: list[bytes]
    ) -> None:
        self.address, self.tokens, self.file, self.lines, self.requests = address, tokens, file, lines, requests

    def log(self) -> str:
        time.sleep(0.3)  # requests are logged together, a moment later
        return "\n".join(self.lines) + b"".join(self.requests).decode()

    def ask(self, method: str, path: str, token: str | None, **sent: Any) -> int:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        where = path.format(name="shop", decision_id="made", shard="till", word="invalid")
        body = BODIES.get(path) if method != "GET" else None
        where = OF_FLAGS.get(path, where)
        with (
            httpx.Client(base_url=self.address, headers=headers, timeout=120, trust_env=False) as client,
            client.stream(method, where, json=body, **sent) as answer,
        ):
            return answer.status_code


class _Kept(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self.lines = lines
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    file, lines = TokenFile(folder / "tokens"), list[str]()
    tokens: dict[str, str] = {role: file.create([role]) for role in ROLES}
    handler, loggers = _Kept(lines), [logging.getLogger(name) for name in ("surefoot", "uvicorn", "litestar", "httpx")]
    for logger in loggers:
        logger.addHandler(handler)
        logger.setLevel("DEBUG" if logger.name != "httpx" else "WARNING")
    requests: list[bytes] = []
    with running(Settings(database=str(folder / "shop.journal"), tokens=str(file.path)), requests) as address:
        headers = {"authorization": f"Bearer {tokens['admin']}"}
        with httpx.Client(base_url=address, headers=headers, timeout=120, trust_env=False) as client:
            create(client)
            create(client, "flag", policy="Guard", settings={"alpha": 0.1, "delta": 0.1}, actions=["old", "new"])
            client.post("/v1/experiments/shop/decisions", json={"actions": ACTIONS, "decision_id": "made"})
            # In whatever order the tests run, there is one to correct.
            client.post("/v1/experiments/shop/decisions/made/reward", json={"value": 1})
        yield Guarded(address, tokens, file, lines, requests)
    for logger in loggers:
        logger.removeHandler(handler)
        logger.setLevel("NOTSET")


def test_the_table_of_roles_names_every_route_of_the_document() -> None:
    schema = create_app(Settings()).litestar.openapi_schema.to_schema()
    found = {(method.upper(), path) for path, item in schema["paths"].items() for method in item}
    assert found == set(NEEDS)


@pytest.mark.parametrize("role", [*ROLES, "nobody", "no token"])
@pytest.mark.parametrize(("method", "path"), NEEDS)
def test_a_route_lets_in_whom_it_should(guarded: Guarded, method: str, path: str, role: str) -> None:
    token = {"nobody": NOBODY, "no token": None}.get(role, guarded.tokens.get(role))
    status, needed = guarded.ask(method, path, token), NEEDS[method, path]
    if needed is None or role == "admin" or role == needed or (needed == "any" and role in ("decide", "read")):
        assert status in (200, 201, 204, 409), status
    else:
        assert status == (403 if role in ROLES else 401)


def test_no_token_is_ever_in_a_log(guarded: Guarded) -> None:
    secret = guarded.tokens["decide"]
    for sent in (
        {"headers": {"authorization": f"Basic {secret}"}},
        {"headers": {"x-api-key": secret + "x"}},
        {"params": {"token": secret}},
    ):
        guarded.ask("GET", "/v1/experiments", None, **sent)
    guarded.ask("POST", f"/v1/{secret}/{{name}}", secret)
    text = guarded.log()
    assert '"event_number":2' in text
    assert '"decision_id"' not in text
    assert f'"token":"{secret.split("_")[1]}"' in text
    for token in guarded.tokens.values():
        assert token.split("_", 2)[2] not in text


def test_a_revoked_token_is_refused_without_a_restart(guarded: Guarded) -> None:
    token = guarded.file.create(["read"])
    _until(guarded, token, 200)
    guarded.file.revoke(token.split("_")[1])
    _until(guarded, token, 401)


def _until(guarded: Guarded, token: str, status: int) -> None:
    deadline = time.monotonic() + 10
    while guarded.ask("GET", "/v1/experiments", token) != status:
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("token", ["", "surefoot", "surefoot__", "_" * 500, "surefoot_é_x", "\x00_\x00_\x00"])
def test_nonsense_is_no_token(tmp_path: Path, token: str) -> None:
    file = TokenFile(tmp_path / "tokens")
    file.create(["admin"])
    assert file.find(token) is None


def test_a_file_holds_hashes_only_and_belongs_to_its_owner(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    token = file.create(["decide", "read"], note="the shop")
    assert token not in file.path.read_text()
    assert token.split("_", 2)[2] not in file.path.read_text()
    assert file.path.stat().st_mode & 0o777 == 0o600
    found = file.find(token)
    assert found is not None
    assert found.roles == ["decide", "read"]
    assert file.find(token[:-1]) is None


def test_roles_must_be_known(tmp_path: Path) -> None:
    roles: list[Role] = []
    with pytest.raises(ConfigError, match="decide, read, metrics, admin"):
        TokenFile(tmp_path / "tokens").create(roles)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "example.org", ""])
def test_without_tokens_only_loopback_addresses_are_listened_at(host: str) -> None:
    with pytest.raises(ConfigError, match="loopback"):
        create_app(Settings(host=host))
    create_app(Settings(host=host, tokens="some.tokens"))


def test_a_caller_who_asks_too_often_is_told_when_to_come_back(tmp_path: Path) -> None:
    from surefoot.service.settings import Limits

    limits = Limits(rate=0.5, burst=5)
    with running(Settings(database=str(tmp_path / "rated.journal"), limits=limits)) as address:
        answers = [httpx.get(f"{address}/v1/access", trust_env=False) for _ in range(8)]
    refused = [answer for answer in answers if answer.status_code == 429]
    assert len(refused) >= 3
    assert refused[-1].json()["type"] == "/problems/too-many-requests"
    assert int(refused[-1].headers["retry-after"]) >= 1
