"""A request has one answer, by the fast path and by its route: every example and every bad body, down both."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.service import app
from surefoot.service.app import Service, create_app
from surefoot.service.routes.route_options import operations
from surefoot.service.settings import Limits, Settings
from surefoot.service.tokens import ROLES, TokenFile
from tests.service.servers import ACTIONS, create, running
from tests.service.test_bad_input import BODIES, HUGE

SHOP, MODELS = "/v1/experiments/shop", "/v1/experiments/models"
JSON = {"content-type": "application/json"}
OF_THE_MOMENT = {"time", "request_id", "head", "explanation", "held_up_by"}
Asked = tuple[str, Any, dict[str, str]]  # the address, the body, and headers beside the token


def asked() -> Iterator[Asked]:
    for body, _, _ in BODIES.values():
        yield f"{SHOP}/decisions", body, {}
        yield f"{MODELS}/decisions", body, {}
    for one in ("a", "a", "b"):
        yield f"{SHOP}/decisions", {"actions": ACTIONS, "decision_id": one}, {}
    yield f"{SHOP}/decisions", {"actions": ACTIONS[::-1], "decision_id": "a"}, {}
    yield f"{SHOP}/decisions", {"actions": ACTIONS, "decision_id": "c", "baseline": "red", "confirms": ["a"]}, {}
    yield f"{MODELS}/decisions", {"baseline": "old", "proposal": "new", "decision_id": "g", "unit": "u"}, {}
    yield f"{MODELS}/decisions", {"baseline": 1, "proposal": [[[]]] * 3, "decision_id": "h"}, {}
    yield "/v1/experiments/nobody/decisions", {"actions": ACTIONS}, {}
    for number in HUGE:
        yield f"{SHOP}/decisions", b'{"decision_id":"z","actions":[{"id":"a","features":[%s,1]}]}' % number.encode(), {}
        yield f"{SHOP}/decisions/b/reward", b'{"value":%s}' % number.encode(), {}
    for value in (b"0.5", b"0.5", b"0.7", b"null", b'"much"', b"{}", b'{"reward":1}', b"[1]", b"true"):
        yield f"{SHOP}/decisions/a/reward", b'{"value":%s}' % value, {}
        yield f"{MODELS}/decisions/g/reward", b'{"value":%s}' % value, {}
    for body in (b"", b"{", b"[]", b"\xff", b'{"value":1,"x":2}', b'{"value":1}' + b" " * 5000, b"[" * 5000):
        yield f"{SHOP}/decisions/c/reward", body, {}
        yield f"{SHOP}/decisions", body, {}
    yield f"{SHOP}/decisions/nobody/reward", {"value": 1}, {}
    yield "/v1/experiments/nobody/decisions/a/reward", {"value": 1}, {}
    yield f"{SHOP}/decisions/c/reward", b'{"value":1}', {"content-type": "text/plain"}
    yield f"{SHOP}/decisions", b'{"actions":[]}', {"content-type": "application/x-www-form-urlencoded"}
    yield f"{SHOP}/decisions/b%2Fc/reward", {"value": 1}, {}
    yield f"{SHOP}/decisions/%00/reward", {"value": 1}, {}


def told(address: str, tokens: dict[str, str]) -> list[tuple[Any, ...]]:
    """Every answer, without what differs from one second to the next."""
    found = list[tuple[Any, ...]]()
    with httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        client.headers["authorization"] = f"Bearer {tokens['admin']}"
        create(client)
        guard = {"name": "models", "policy": "Guard", "settings": {"alpha": 0.1, "delta": 0.05, "unit_window": 9}}
        assert client.post("/v1/experiments", json={**guard, "mode": "shadow"}).status_code == 201
        for role in ("admin", "decide", "read", "nobody"):
            client.headers["authorization"] = f"Bearer {tokens[role]}"
            for path, body, headers in asked():
                sent: dict[str, Any] = {"content": body, "headers": {**JSON, **headers}}
                answer = client.post(path, **(sent if isinstance(body, bytes) else {"json": body, "headers": headers}))
                found.append((role, path, body, answer.status_code, answer.headers["content-type"], plain(answer)))
    return found


def plain(answer: httpx.Response) -> Any:
    told = answer.json()
    assert isinstance(told, dict)
    return {name: value for name, value in told.items() if name not in OF_THE_MOMENT}


def test_both_ways_give_the_same_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens: dict[str, str] = {"nobody": "surefoot_00000000_nobody"}
    file = TokenFile(tmp_path / "tokens")
    tokens |= {role: file.create([role]) for role in ROLES}
    answers, by_route, way_of = list[list[tuple[Any, ...]]](), list[str](), Service._route

    async def noted(self: Service, scope: Any, *rest: Any) -> None:
        by_route.append(scope["path"])
        await way_of(self, scope, *rest)

    monkeypatch.setattr(Service, "_route", noted)
    for way in ("fast", "route"):
        if way == "route":
            by_route.clear()
            monkeypatch.setattr(app, "PATHS", re.compile("(?!)"))
        database = str(tmp_path / f"{way}.journal")
        limits = Limits(body_bytes=4096)
        settings = Settings(database=database, tokens=str(tmp_path / "tokens"), limits=limits)
        with running(settings) as address:
            answers.append(told(address, tokens))
    assert sum(path.endswith(("/decisions", "/reward")) for path in by_route) > 200
    fast, route = answers
    assert len(fast) == len(route)
    for one, other in zip(fast, route, strict=True):
        assert one == other
    statuses = {one[3] for one in fast}
    assert {200, 201, 400, 401, 403, 404, 409, 413, 415, 422} <= statuses


def test_a_role_is_said_once() -> None:
    found = operations(create_app(Settings(), write=None).litestar)
    assert found["decide"].role == found["reward"].role == "decide"
    assert found["createExperiment"].role == "admin"
    assert all(one.role in ROLES for one in found.values())
