"""The API from outside: what is decided, rewarded, registered and read."""

import time
from typing import Any

import httpx
import pytest

from tests.service.servers import ACTIONS, POLICY, create

SHOP = "/v1/experiments/shop"


def decide(client: httpx.Client, name: str = "shop", **fields: Any) -> Any:
    answer = client.post(f"/v1/experiments/{name}/decisions", json={"actions": ACTIONS, **fields})
    assert answer.status_code == 201, answer.text
    return answer.json()


def test_a_decision_names_the_action_its_source_and_its_certificate(client: httpx.Client) -> None:
    answer = decide(client, decision_id="first")
    assert answer["decision_id"] == "first"
    assert answer["source"] == "baseline"
    assert answer["action_id"] == "blue"  # the first action is the baseline by convention
    assert answer["margin"] == pytest.approx(answer["guaranteed"] - answer["required"])
    assert answer["margin"] < 0
    assert answer["proposal_id"] == "red"
    assert answer["explanation"].startswith("Played the baseline: playing red could have left us ")


def test_asking_again_is_answered_alike_and_counts_once(client: httpx.Client) -> None:
    first = decide(client, decision_id="again")
    rounds = client.get(SHOP).json()["rounds"]
    second = client.post(f"{SHOP}/decisions", json={"actions": ACTIONS, "decision_id": "again"})
    assert second.status_code == 200
    assert second.json() == {**first, "is_repeat": True}
    assert client.get(SHOP).json()["rounds"] == rounds


def test_the_baseline_can_be_named_and_its_reward_be_known(client: httpx.Client) -> None:
    assert decide(client, baseline="red")["action_id"] == "red"
    assert decide(client, baseline="red", baseline_reward=0.5)["action_id"] == "red"
    assert decide(client, baseline="red", baseline_reward=[0.4, 0.6])["action_id"] == "red"


def test_the_learner_plays_what_is_proved(client: httpx.Client) -> None:
    actions = [{"id": "small", "features": [0.3, 0.0]}, {"id": "large", "features": [0.9, 0.0]}]
    found = client.post(f"{SHOP}/decisions", json={"actions": actions, "baseline_reward": 0.2}).json()
    assert (found["source"], found["action_id"]) == ("learner", "large")
    assert found["margin"] >= 0


def test_a_decision_can_be_read_with_its_question_and_proof(client: httpx.Client) -> None:
    answer = decide(client, decision_id="read-me", context={"page": "home"})
    found = client.get(f"{SHOP}/decisions/read-me").json()
    assert found["answer"] == {**answer, "is_repeat": True, "explanation": found["answer"]["explanation"]}
    assert found["answer"]["explanation"].startswith(answer["explanation"].partition(";")[0])
    assert found["round"]["request"]["context"] == {"page": "home"}
    assert found["round"]["certificate"]["proof"]["pieces"]


def test_a_catalogue_is_registered_once_and_decides_like_its_actions(client: httpx.Client) -> None:
    first = client.post(f"{SHOP}/catalogues", json={"actions": ACTIONS})
    assert first.status_code == 201
    again = client.post(f"{SHOP}/catalogues", json={"actions": ACTIONS}).json()
    assert again == first.json() == {"catalogue": again["catalogue"], "actions": 2, "dim": 2}
    found = client.post(f"{SHOP}/decisions", json={"catalogue": again["catalogue"], "baseline": "red"})
    assert found.json()["action_id"] == "red"


def test_a_feature_map_makes_rows_of_a_catalogue_and_a_context(client: httpx.Client) -> None:
    create(client, "mapped", settings={**MAPPED})
    body = {
        "actions": [{"id": "a", "features": [0.5]}, {"id": "b", "features": [0.1]}],
        "feature_map": {"kind": "interactions", "context_dim": 1, "context_bound": 1.0},
    }
    catalogue = client.post("/v1/experiments/mapped/catalogues", json=body).json()
    assert catalogue["dim"] == 4
    asked = {"catalogue": catalogue["catalogue"], "context_features": [0.4], "decision_id": "m"}
    assert client.post("/v1/experiments/mapped/decisions", json=asked).status_code == 201
    rows = client.get("/v1/experiments/mapped/decisions/m").json()["round"]["request"]["features"]
    assert rows == [[1.0, 0.5, 0.4, 0.2], [1.0, 0.1, 0.4, pytest.approx(0.04)]]


MAPPED = {"dim": 4, "alpha": 0.1, "delta": 0.01, "noise": 0.5, "theta_bound": 1.0, "feature_bound": 2.0}


def test_a_reward_is_accepted_once(client: httpx.Client) -> None:
    decide(client, decision_id="paid")
    first = client.post(f"{SHOP}/decisions/paid/reward", json={"value": 0.5})
    assert (first.status_code, "is_repeat" in first.json()) == (200, False)
    again = client.post(f"{SHOP}/decisions/paid/reward", json={"value": 0.5})
    assert (again.status_code, again.json()["is_repeat"]) == (200, True)
    other = client.post(f"{SHOP}/decisions/paid/reward", json={"value": 0.6})
    assert (other.status_code, other.json()["type"]) == (409, "/problems/reward-conflict")


def test_batches_answer_each_entry_on_its_own(client: httpx.Client) -> None:
    long = [{"id": "long", "features": [9.0, 9.0]}]
    batch = [{"actions": ACTIONS, "decision_id": "b1"}, {"actions": long}, {"actions": ACTIONS, "baseline": "nobody"}]
    answer = client.post(f"{SHOP}/decision-batches", json={"decisions": batch})
    assert answer.status_code == 200
    found = answer.json()["results"]
    assert found[0]["decision"]["decision_id"] == "b1"
    assert found[1]["problem"]["type"] == "/problems/broken-assumption"
    assert found[2]["problem"]["type"] == "/problems/invalid"
    paid = [{"decision_id": "b1", "value": 1.0}, {"decision_id": "nobody", "value": 1.0}]
    receipts = client.post(f"{SHOP}/reward-batches", json={"rewards": paid}).json()["results"]
    assert receipts[0]["receipt"]["decision_id"] == "b1"
    assert "refused" not in receipts[0]["receipt"]
    assert receipts[1]["problem"]["type"] == "/problems/unknown-decision"


def test_a_fallback_is_booked_once_and_never_over_a_reward_that_has_come(client: httpx.Client) -> None:
    body = {"actions": ACTIONS, "decision_id": "alone"}
    first, again = (client.post(f"{SHOP}/fallbacks", json=body) for _ in range(2))
    assert (first.status_code, again.status_code) == (201, 200)
    assert (first.json()["source"], first.json()["is_fallback"]) == ("baseline", True)
    actions = [{"id": "small", "features": [0.3, 0.0]}, {"id": "large", "features": [0.9, 0.0]}]
    learner = {"actions": actions, "baseline_reward": 0.2, "decision_id": "learners"}
    assert client.post(f"{SHOP}/decisions", json=learner).json()["source"] == "learner"
    booked = client.post(f"{SHOP}/fallbacks", json=learner)
    assert (booked.status_code, booked.json()["source"], booked.json()["is_voided"]) == (200, "baseline", True)
    assert client.post(f"{SHOP}/decisions", json=learner).json()["action_id"] == "small"
    late = learner | {"decision_id": "rewarded"}
    assert client.post(f"{SHOP}/decisions", json=late).json()["source"] == "learner"
    assert client.post(f"{SHOP}/decisions/rewarded/reward", json={"value": 0.5}).status_code == 200
    refused = client.post(f"{SHOP}/fallbacks", json=late)
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/decision-settled")


def test_what_was_really_played_can_be_said_until_a_reward_has_come(client: httpx.Client) -> None:
    actions = [{"id": "small", "features": [0.3, 0.0]}, {"id": "large", "features": [0.9, 0.0]}]
    actions.append({"id": "middle", "features": [0.5, 0.0]})
    for decision_id in ("void-1", "void-2"):
        body = {"actions": actions, "baseline_reward": 0.2, "decision_id": decision_id}
        assert client.post(f"{SHOP}/decisions", json=body).json()["action_id"] == "large"
    before = client.get(SHOP).json()
    way = f"{SHOP}/decisions/void-1/void"
    said = [client.post(way, json={"reason": "late"}), client.post(way, json={"action": "small"})]
    receipts = [answer.json() for answer in said]
    assert [one["decision_id"] for one in receipts] == ["void-1", "void-1"]
    assert [set(one) for one in receipts] == [{"decision_id", "head"}, {"decision_id", "head", "is_repeat"}]
    other = client.post(way, json={"action": "middle"})
    assert (other.status_code, other.json()["type"]) == (409, "/problems/decision-conflict")
    assert "is_repeat" not in client.post(f"{SHOP}/decisions/void-2/void", json={"action": 2}).json()
    after = client.get(SHOP).json()
    assert (after["voided"], after["learner_rounds"]) == (before["voided"] + 2, before["learner_rounds"] - 1)
    found = client.get(f"{SHOP}/decisions/void-2").json()["answer"]
    assert (found["action_id"], found["source"], found["is_voided"]) == ("middle", "learner", True)
    newest = {one["decision_id"]: one for one in client.get(f"{SHOP}/decisions").json()["decisions"]}
    assert [newest[name]["action_id"] for name in ("void-1", "void-2")] == ["small", "middle"]
    assert client.post(f"{SHOP}/decisions/nobody/void", json={}).json()["type"] == "/problems/unknown-decision"
    bad = client.post(f"{SHOP}/decisions/void-2/void", json={"action": "huge"})
    assert (bad.status_code, bad.json()["errors"][0]["field"]) == (422, "action")
    client.post(f"{SHOP}/decisions/void-2/reward", json={"value": 0.5})
    assert f'surefoot_experiment_voided{{experiment="shop"}} {after["voided"]}' in client.get("/metrics").text


def test_windows_close_although_nobody_calls(client: httpx.Client) -> None:
    decide(client, "patient", decision_id="silent")
    deadline = time.monotonic() + 20
    while client.get("/v1/experiments/patient").json()["learned"] < 1:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    found = client.get("/v1/experiments/patient").json()
    assert (found["defaults"], found["total_reward"]) == (1, 0.25)
    late = client.post("/v1/experiments/patient/decisions/silent/reward", json={"value": 1.0})
    assert (late.status_code, late.json()["type"]) == (409, "/problems/reward-too-late")


def test_modes_change_where_they_may(client: httpx.Client) -> None:
    create(client, "modes", mode="shadow")
    path = "/v1/experiments/modes/mode"
    assert client.get("/v1/experiments/modes").json()["allowed_modes"] == ["guarded", "paused"]
    changed = client.put(path, json={"mode": "guarded", "reason": "two quiet weeks"})
    assert (changed.status_code, changed.json()["mode"]) == (200, "guarded")
    refused = client.put(path, json={"mode": "shadow"})
    assert (refused.status_code, refused.json()["type"]) == (409, "/problems/mode-conflict")


def test_a_page_can_read_everything(client: httpx.Client) -> None:
    decide(client)
    points = client.get(f"{SHOP}/history").json()["points"]
    assert [point["events"] for point in points] == sorted({point["events"] for point in points})
    assert points[-1]["rounds"] == client.get(SHOP).json()["rounds"]
    newest = client.get(f"{SHOP}/decisions", params={"limit": 3}).json()["decisions"]
    assert [entry["round"] for entry in newest] == sorted((entry["round"] for entry in newest), reverse=True)
    beliefs = client.get(f"{SHOP}/beliefs").json()
    assert len(beliefs["beliefs"]) == 2
    assert all(entry["low"] <= entry["estimate"] <= entry["high"] for entry in beliefs["beliefs"])
    assert {"alpha", "noise", "reward_range"} <= {
        entry["setting"] for entry in client.get(f"{SHOP}/assumptions").json()["assumptions"]
    }
    assert "shop" in [entry["name"] for entry in client.get("/v1/experiments").json()["experiments"]]


def test_live_streams_tell_what_is_new(client: httpx.Client) -> None:
    create(client, "lively")
    with client.stream("GET", "/v1/experiments/lively/live") as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        chunks = stream.iter_text()
        assert next(chunks).startswith("event: update\ndata: ")
        made = decide(client, "lively")
        assert made["decision_id"] in next(chunks)


def test_metrics_are_prometheus_and_in_base_units(client: httpx.Client) -> None:
    decide(client)
    text = client.get("/metrics").text
    assert 'surefoot_decisions_total{experiment="shop",source="baseline"}' in text
    assert "surefoot_http_request_duration_seconds_bucket" in text
    assert 'surefoot_experiment_pending{experiment="shop"}' in text


def test_creating_an_experiment_again_opens_it(client: httpx.Client) -> None:
    """As an app does that starts again: the same settings are no conflict, whatever its mode is by now."""
    body = {"name": "again", "mode": "guarded", "settings": POLICY, "reward_unit": "clicks"}
    assert client.post("/v1/experiments", json=body).status_code == 201
    client.put("/v1/experiments/again/mode", json={"mode": "paused", "reason": "a look"}).raise_for_status()
    again = client.post("/v1/experiments", json=body)
    assert (again.status_code, again.json()["mode"], again.json()["events"]) == (200, "paused", 2)
    other = client.post("/v1/experiments", json=body | {"reward_unit": "EUR"})
    assert (other.status_code, other.json()["type"]) == (409, "/problems/experiment-exists")
    assert "reward_unit differ" in other.json()["detail"]
