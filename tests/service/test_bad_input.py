"""Bad input: the right status, a problem that names the field and the rule, and nothing changed."""

from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from surefoot.service.problems import KINDS
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import ACTIONS, POLICY, create, running

SHOP = "/v1/experiments/shop"
JSON = {"content-type": "application/json"}

BODIES: dict[str, tuple[bytes | dict[str, Any], str, str]] = {
    "truncated": (b'{"actions": [', "malformed", ""),
    "not json": (b"hello", "malformed", ""),
    "nothing": (b"", "malformed", ""),
    "a list": (b"[]", "malformed", ""),
    "nan": (b'{"actions":[{"id":"a","features":[1,NaN]}]}', "malformed", ""),
    "infinite": (b'{"actions":[{"id":"a","features":[1,1e999]}]}', "malformed", ""),
    "wrong type": ({"actions": 3}, "malformed", "actions"),
    "unknown field": ({"actions": ACTIONS, "basline": "blue"}, "malformed", "basline"),
    "no actions": ({}, "invalid", "actions"),
    "empty actions": ({"actions": []}, "malformed", "actions"),
    "both": ({"actions": ACTIONS, "catalogue": "0" * 64}, "unknown-catalogue", ""),
    "wrong dimensions": ({"actions": [{"id": "a", "features": [1, 2, 3]}]}, "invalid", "features"),
    "ragged": ({"actions": [*ACTIONS, {"id": "c", "features": [1]}]}, "invalid", "actions[2].features"),
    "features of the second alone": ({"actions": [{"id": "a"}, ACTIONS[1]]}, "invalid", "must have features, or none"),
    "no features": ({"actions": [{"id": "a"}]}, "invalid", "features"),
    "too long": ({"actions": [{"id": "a", "features": [9, 9]}]}, "broken-assumption", ""),
    "twice the same": ({"actions": [ACTIONS[0], ACTIONS[0]]}, "invalid", "actions"),
    "unknown baseline": ({"actions": ACTIONS, "baseline": "green"}, "invalid", "baseline"),
    "negative baseline": ({"actions": ACTIONS, "baseline_reward": -1}, "broken-assumption", ""),
    "bad id": ({"actions": ACTIONS, "decision_id": "a/b"}, "malformed", "decision_id"),
    "context without map": ({"actions": ACTIONS, "context_features": [1]}, "invalid", "context_features"),
    "too many actions": ({"actions": [{"id": str(n), "features": [0, 0]} for n in range(1001)]}, "invalid", "actions"),
    "too many features": ({"actions": [{"id": "a", "features": [0.0] * 1001}]}, "invalid", "actions[].features"),
}


@pytest.mark.parametrize("name", BODIES)
def test_a_bad_question_is_refused_and_changes_nothing(client: httpx.Client, name: str) -> None:
    body, word, field = BODIES[name]
    before = client.get(SHOP).json()["events"]
    sent: dict[str, Any] = {"content": body, "headers": JSON} if isinstance(body, bytes) else {"json": body}
    answer = client.post(f"{SHOP}/decisions", **sent)
    found = answer.json()
    assert (answer.status_code, found["type"]) == (KINDS[word][0], f"/problems/{word}"), found
    assert answer.headers["content-type"] == "application/problem+json"
    assert field in str(found.get("errors", "")), found
    assert client.get(SHOP).json()["events"] == before


@pytest.mark.parametrize("value", [b"NaN", b'"much"', b"null", b"[1]", b"1e999"])
def test_a_bad_reward_is_refused(client: httpx.Client, value: bytes) -> None:
    client.post(f"{SHOP}/decisions", json={"actions": ACTIONS, "decision_id": "rewarded-badly"})
    before = client.get(SHOP).json()["rewards"]
    answer = client.post(f"{SHOP}/decisions/rewarded-badly/reward", content=b'{"value":%s}' % value, headers=JSON)
    assert (answer.status_code, answer.json()["type"]) == (400, "/problems/malformed")
    assert client.get(SHOP).json()["rewards"] == before


def test_a_reward_that_nobody_can_compute_with_is_refused(client: httpx.Client) -> None:
    client.post("/v1/experiments/patient/decisions", json={"actions": ACTIONS, "decision_id": "bounded"})
    answer = client.post("/v1/experiments/patient/decisions/bounded/reward", json={"value": 1e200})
    assert (answer.status_code, answer.json()["type"]) == (422, "/problems/reward-out-of-range")


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"name": "shop", "settings": {**POLICY, "alpha": 0.2}}, "experiment-exists"),
        ({"name": "a/b"}, "malformed"),
        ({"policy": "Oracle"}, "malformed"),
        ({"settings": {**POLICY, "alpha": 2}}, "invalid"),
        ({"settings": {**POLICY, "alhpa": 2}}, "invalid"),
        ({"settings": {**POLICY, "dim": 5000}}, "invalid"),
        ({"settings": {}}, "invalid"),
        ({"default_reward": 1.0}, "invalid"),
        ({"reward_bounds": [1, 0]}, "invalid"),
        ({"history": {"features": [[1, 2, 3]], "rewards": [1]}}, "invalid"),
        ({"reward_window": 0}, "malformed"),
    ],
)
def test_a_bad_experiment_is_refused(client: httpx.Client, change: dict[str, Any], word: str) -> None:
    before = [entry["name"] for entry in client.get("/v1/experiments").json()["experiments"]]
    answer = client.post("/v1/experiments", json={"name": "new", "settings": POLICY, **change})
    assert (answer.status_code, answer.json()["type"]) == (KINDS[word][0], f"/problems/{word}"), answer.text
    assert [entry["name"] for entry in client.get("/v1/experiments").json()["experiments"]] == before


@pytest.mark.parametrize(
    ("method", "path", "word"),
    [
        ("GET", "/v1/experiments/nobody", "unknown-experiment"),
        ("GET", "/v1/experiments/nobody/live", "unknown-experiment"),
        ("GET", f"{SHOP}/decisions/nobody", "unknown-decision"),
        ("GET", f"{SHOP}/decisions?limit=0", "malformed"),
        ("GET", "/v1/nothing", "not-found"),
        ("DELETE", SHOP, "method-not-allowed"),
        ("PATCH", "/livez", "method-not-allowed"),
    ],
)
def test_what_does_not_exist_is_a_problem_too(client: httpx.Client, method: str, path: str, word: str) -> None:
    answer = client.request(method, path)
    assert (answer.status_code, answer.json()["type"]) == (KINDS[word][0], f"/problems/{word}")


def test_only_json_is_taken_so_that_no_form_of_another_site_is(client: httpx.Client) -> None:
    body = b'{"actions":[{"id":"a","features":[0,0]}]}'
    for media in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"):
        answer = client.post(f"{SHOP}/decisions", content=body, headers={"content-type": media})
        assert (answer.status_code, answer.json()["type"]) == (415, "/problems/media-type")


def test_too_large_a_body_is_refused(client: httpx.Client) -> None:
    answer = client.post(f"{SHOP}/decisions", content=b" " * 1_100_000, headers=JSON)
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")
    batch = {"rewards": [{"decision_id": "x", "value": 1}] * 501}
    answer = client.post(f"{SHOP}/reward-batches", json=batch)
    assert (answer.status_code, answer.json()["type"]) == (413, "/problems/too-large")


def test_every_problem_is_explained_at_its_own_address(client: httpx.Client) -> None:
    for word, (status, title, _) in KINDS.items():
        found = client.get(f"/problems/{word}").json()
        assert (found["type"], found["status"], found["title"]) == (f"/problems/{word}", status, title)


def test_other_sites_cannot_reach_a_server_without_tokens(client: httpx.Client) -> None:
    for headers in ({"host": "evil.example"}, {"origin": "http://evil.example"}, {"origin": "null"}):
        answer = client.get("/v1/experiments", headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (403, "/problems/wrong-host")


@pytest.mark.parametrize(
    "headers",
    [
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site", "origin": "HOST"},
        {"origin": "https://evil.example"},
        {"origin": "null"},
    ],
)
def test_the_page_of_another_site_changes_nothing_though_a_proxy_adds_a_log_in(
    headers: dict[str, str], tmp_path: Path
) -> None:
    token = TokenFile(tmp_path / "tokens").create(["admin"])
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))
    log_in = {"authorization": f"Bearer {token}"}
    with running(settings) as address, httpx.Client(base_url=address, headers=log_in, trust_env=False) as client:
        create(client)
        headers = {name: address if value == "HOST" else value for name, value in headers.items()}
        shop = "/v1/experiments/shop"
        for method, path in (("POST", f"{shop}/shards/x/departure"), ("PUT", f"{shop}/mode"), ("DELETE", shop)):
            answer = client.request(method, path, headers=headers)
            assert (answer.status_code, answer.json()["type"]) == (403, "/problems/other-site")
        assert client.get(shop, headers=headers).status_code == 200, "reading is the browser's to refuse"
        own = {"sec-fetch-site": "same-origin", "origin": "https://name-before-the-proxy.example"}
        paused = client.put(f"{shop}/mode", json={"mode": "paused"}, headers=own)
        assert paused.status_code == 200, "a proxy may have changed the host"


def test_every_answer_has_its_security_headers(client: httpx.Client) -> None:
    for path in ("/", "/livez", "/v1/experiments", "/v1/nothing", "/openapi.json"):
        headers = client.get(path).headers
        assert "default-src 'none'" in headers["content-security-policy"]
        assert (headers["x-content-type-options"], headers["x-frame-options"]) == ("nosniff", "DENY")
        assert "server" not in headers


DEEP = {"list": "[" * 50_000 + "]" * 50_000, "object": '{"a":' * 3_000 + "1" + "}" * 3_000}
HUGE = ["1e308", "-1e308", "1e400", str(10**30), str(-(10**30)), "1e-320"]
PLACES = {
    "decisions": '{"actions": [{"id": "a", "features": [%s, 0.1]}, {"id": "b", "features": [0.1, 0.1]}]}',
    "decision-batches": '{"decisions": [%s]}',
    "decisions/a/reward": '{"value": %s}',
    "decisions/a/void": '{"action": %s}',
    "decisions/a/abandon": '{"reason": %s}',
    "reward-batches": '{"rewards": [{"decision_id": "a", "value": %s}]}',
    "fallbacks": '{"decision_id": "f", "actions": [{"id": "a", "features": [%s, 0.1]}]}',
    "acknowledgements": '{"response": "stay", "reason": "r", "alarm_round": %s}',
    "catalogues": '{"actions": [{"id": "a", "features": [%s, 0.1]}]}',
}


@pytest.mark.parametrize("way", PLACES)
@pytest.mark.parametrize("value", [*DEEP, *HUGE])
def test_no_number_and_no_nesting_is_our_mistake(client: httpx.Client, way: str, value: str) -> None:
    body = PLACES[way] % DEEP.get(value, value)
    answer = client.post(f"/v1/experiments/shop/{way}", content=body, headers=JSON)
    assert answer.status_code < 500, answer.text[:200]
    if value in DEEP:
        assert answer.status_code in (400, 422)
    assert client.get("/v1/experiments").status_code == 200


@pytest.mark.parametrize("policy", ["SafeLUCB", "Guard"])
@pytest.mark.parametrize("value", [*DEEP, *HUGE])
def test_no_setting_is_our_mistake(client: httpx.Client, policy: str, value: str) -> None:
    known = {"alpha": 0.1, "delta": 0.1} if policy == "Guard" else POLICY
    names = ["alpha", "delta", "settle_after", "reserve", "unit_window", "cap", "metrics", "schedule"]
    names = names if policy == "Guard" else [*POLICY, "ridge", "settle_after", "misspecification", "constraint"]
    for name in names:
        kept = ", ".join(f'"{one}": {msgspec.json.encode(told).decode()}' for one, told in known.items() if one != name)
        settings = f'{{{kept}, "{name}": {DEEP.get(value, value)}}}'
        body = f'{{"name": "new-{policy}", "policy": "{policy}", "settings": {settings}}}'
        answer = client.post("/v1/experiments", content=body, headers=JSON)
        assert answer.status_code in (201, 400, 409, 422), (name, answer.text[:200])
