"""The life of an alarm over HTTP: raised by a reward, answered by an admin with a reason, and told openly."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot import Client
from surefoot.audit import audit
from surefoot.audit.report import as_markdown
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import create, running

EASY = [{"id": "more", "features": [0.9, 0.0]}, {"id": "today", "features": [0.6, 0.0]}]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[tuple[httpx.Client, Path]]:
    tokens = TokenFile(str(tmp_path / "tokens"))
    admin = tokens.create(["admin"])
    path = tmp_path / "shop.journal"
    with running(Settings(database=str(path), tokens=str(tmp_path / "tokens"))) as address:
        headers = {"authorization": f"Bearer {admin}"}
        with httpx.Client(base_url=address, headers=headers, timeout=60, trust_env=False) as client:
            create(client, reward_bounds=[0, 1])
            yield client, path


def decide(client: httpx.Client, decision_id: str) -> dict[str, Any]:
    asked = {"actions": EASY, "baseline": "today", "baseline_reward": 0.3, "decision_id": decision_id}
    found: dict[str, Any] = client.post("/v1/experiments/shop/decisions", json=asked).json()
    return found


def alarms_of(client: httpx.Client) -> dict[str, str]:
    found = client.get("/v1/experiments/shop/alarms").json()["alarms"]
    return {alarm["kind"]: alarm["text"] for alarm in found}


def answer(client: httpx.Client, response: str, reason: str = "the tracker counted twice") -> httpx.Response:
    return client.post("/v1/experiments/shop/acknowledgements", json={"response": response, "reason": reason})


def test_an_alarm_is_raised_answered_and_told_openly(shop: tuple[httpx.Client, Path]) -> None:
    client, path = shop
    assert decide(client, "a")["source"] == "learner"
    refused = answer(client, "stay")
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/alarm-conflict")
    assert client.post("/v1/experiments/shop/decisions/a/reward", json={"value": 7}).status_code == 200
    held = decide(client, "b")
    assert (held["source"], "margin" in held) == ("baseline", False)
    assert "the alarm is on" in held["explanation"]
    assert "A reward of 7 came in for round 1, but 0 to 1 was declared." in alarms_of(client)["refuted"]
    assert answer(client, "renew", "  ").status_code == 400
    stayed = answer(client, "stay").json()
    assert (stayed["alarm_answer"], stayed["alarm_responses"]) == ("stay", ["stay", "relearn", "renew"])
    assert "It was acknowledged" in alarms_of(client)["refuted"]
    assert decide(client, "c")["source"] == "baseline"
    anew = answer(client, "relearn").json()
    assert (anew["is_refuted"], anew["restarts"], anew["promise_round"]) == (False, 1, 1)
    assert anew["debt"] == pytest.approx(0.9)  # one round of the learner: 0.9 times the most, less the least
    assert "with a debt of 0.9" in alarms_of(client)["debt"]
    assert decide(client, "d")["source"] == "baseline"
    client.post("/v1/experiments/shop/decisions/d/reward", json={"value": -1})
    renewed = answer(client, "renew").json()
    assert (renewed["restarts"], renewed["promise_round"], renewed["debt"]) == (2, 5, 0.0)
    assert "counts from round 5 on" in alarms_of(client)["renewed"]
    assert decide(client, "e")["source"] == "learner"
    text = client.get("/metrics").text
    assert 'surefoot_experiment_restarts{experiment="shop"} 2.0' in text
    points = client.get("/v1/experiments/shop/history").json()["points"]
    stood = [(point["restarts"], point["promise_round"], point["debt"] > 0) for point in points]
    assert (stood[0], stood[-1]) == ((0, 1, False), (2, 5, False))
    assert (1, 1, True) in stood
    with open_journal(path, read_only=True) as journal:
        report = audit(journal, "shop")
    assert report.is_clean, list(report.findings)
    page = as_markdown(report)
    assert "A new promise was begun: it counts from round 5 on." in page
    assert "begins a new promise after round 4: the tracker counted twice" in page
    assert "That is open." in page


def test_a_decision_is_given_up_over_http_and_by_the_client(shop: tuple[httpx.Client, Path]) -> None:
    client, _ = shop
    for name in "abc":
        decide(client, name)
    client.post("/v1/experiments/shop/decisions/c/reward", json={"value": 1})
    summary = client.get("/v1/experiments/shop").json()
    assert (summary["pending"], summary["waiting"], summary["held_up_by"]) == (3, 1, "a")
    path = "/v1/experiments/shop/decisions/{}/abandon"
    receipt = client.post(path.format("a"), json={"reason": "lost"}).json()
    assert receipt == {"decision_id": "a", "head": receipt["head"]}
    assert client.post(path.format("a"), json={}).json()["is_repeat"]
    settled = client.post(path.format("c"), json={})
    assert (settled.status_code, settled.json()["type"]) == (409, "/problems/decision-settled")
    assert client.post(path.format("nobody"), json={}).json()["type"] == "/problems/unknown-decision"
    late = client.post("/v1/experiments/shop/decisions/a/reward", json={"value": 1})
    assert (late.status_code, late.json()["type"]) == (409, "/problems/reward-abandoned")
    token = client.headers["authorization"].removeprefix("Bearer ")
    with Client(str(client.base_url), token=token) as caller:
        given_up = caller.abandon("shop", "b")
        assert (given_up.decision_id, given_up.is_repeat) == ("b", False)
        assert given_up.head is not None
    summary = client.get("/v1/experiments/shop").json()
    assert (summary["learned"], summary["abandoned"], summary["waiting"]) == (1, 2, 0)


def test_a_learner_that_waits_for_a_lost_reward_is_a_warning_everywhere(shop: tuple[httpx.Client, Path]) -> None:
    client, _ = shop
    decide(client, "lost")
    ids = [f"visit-{n}" for n in range(1000)]
    for start in range(0, len(ids), 250):
        batch = [{"actions": EASY, "baseline": "today", "decision_id": name} for name in ids[start : start + 250]]
        client.post("/v1/experiments/shop/decision-batches", json={"decisions": batch}).raise_for_status()
        rewards = [{"decision_id": name, "value": 1} for name in ids[start : start + 250]]
        client.post("/v1/experiments/shop/reward-batches", json={"rewards": rewards}).raise_for_status()
    assert client.get("/v1/experiments/shop").json()["is_stalled"]
    assert "1,000 rewards have waited for that of decision lost for 1,000 rounds" in alarms_of(client)["stalled"]
    assert 'surefoot_experiment_is_stalled{experiment="shop"} 1.0' in client.get("/metrics").text
    client.post("/v1/experiments/shop/decisions/lost/abandon", json={"reason": "the page was closed"})
    assert alarms_of(client) == {}


def test_refused_rewards_are_counted_in_words(shop: tuple[httpx.Client, Path]) -> None:
    client, _ = shop
    decide(client, "a")
    address = "/v1/experiments/shop/decisions/a/reward"
    assert client.post(address, json={"value": 0.5}).status_code == 200
    for said in ("One reward was refused for contradicting", "2 rewards were refused for contradicting"):
        assert client.post(address, json={"value": 0.25}).status_code == 409
        assert alarms_of(client)["refused-conflict"].startswith(said)
