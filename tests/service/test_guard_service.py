"""A guard over HTTP: coins from the system, metrics by name, and questions of the other kind refused with advice."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.audit import audit
from surefoot.client import Client
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from tests.service.servers import ACTIONS, Apart, create, running

METRICS = {
    "quality": {"kind": "floor", "low": 0, "high": 1, "alpha": 0.3},
    "cost": {"kind": "ceiling", "low": 0, "high": 2, "alpha": 0.4, "reserve": 9.0, "default": 0.5},
}
ASKED: dict[str, Any] = {"baseline": "big", "proposal": {"model": "small", "temperature": 0.3}}
MODELS, SEVERAL, USERS = (f"/v1/experiments/{name}" for name in ("models", "several", "users"))


@pytest.fixture(scope="module")
def guards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("guards")
    settings = Settings(database=str(folder / "shop.journal"))
    with running(settings) as address, httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
        create(client)
        create(client, "models", policy="Guard", settings={"alpha": 0.3, "delta": 0.2}, description="big or small")
        create(client, "several", policy="Guard", settings={"delta": 0.2, "metrics": METRICS})
        create(client, "users", policy="Guard", settings={"alpha": 0.3, "delta": 0.2, "unit_window": 5})
        yield client


def ask(client: httpx.Client, path: str = MODELS, **asked: Any) -> dict[str, Any]:
    answer = client.post(f"{path}/decisions", json={**ASKED, **asked})
    assert answer.status_code in (200, 201), answer.text
    found: dict[str, Any] = answer.json()
    return found


def refused(answer: httpx.Response, status: int = 422) -> str:
    assert answer.status_code == status, answer.text
    return str(answer.json()["detail"])


def test_an_answer_has_the_action_its_side_and_its_honest_propensity(guards: httpx.Client) -> None:
    found = [ask(guards) for _ in range(40)]
    assert {answer["source"] for answer in found} == {"learner", "baseline"}
    for answer in found:
        is_learner = answer["source"] == "learner"
        assert answer["action"] == (ASKED["proposal"] if is_learner else "big")
        assert answer["probability"] == (answer["share"] if is_learner else 1.0 - answer["share"])
        assert (answer["binds"], "unit" in answer, answer["mode"]) == ("reward", False, "guarded")
        assert answer["share"] <= answer["allowed"]
        assert answer["margin"] >= 0.0
        assert "the coin chose the" in answer["explanation"]


def test_the_same_id_has_the_same_coin_and_another_question_is_a_conflict(guards: httpx.Client) -> None:
    first = ask(guards, decision_id="same", context={"who": 3})
    for _ in range(10):
        assert ask(guards, decision_id="same", context={"who": 3}) == {**first, "is_repeat": True}
    other = guards.post(f"{MODELS}/decisions", json={**ASKED, "proposal": 3, "decision_id": "same"})
    assert "was asked before" in refused(other, 409)


def test_a_decision_is_read_with_its_coin_its_question_and_its_banks(guards: httpx.Client) -> None:
    made = ask(guards, SEVERAL, decision_id="read", prediction={"quality": 0.5})
    found = guards.get(f"{SEVERAL}/decisions/read").json()
    assert found["answer"] == {**made, "is_repeat": True}
    round_ = found["round"]
    assert round_["request"] == {**ASKED, "prediction": {"quality": 0.5}}
    assert (round_["draw"] < round_["share"]) == (round_["source"] == "learner")
    assert {bank["metric"] for bank in round_["certificate"]["banks"]} == {"quality", "cost"}
    newest = guards.get(f"{SEVERAL}/decisions?limit=1").json()["decisions"]
    assert newest[0] == made


@pytest.mark.parametrize(
    ("path", "value", "status"),
    [
        (MODELS, 0.5, 200),
        (MODELS, {"reward": 0.5}, 200),
        (MODELS, 1.5, 422),
        (MODELS, {"clicks": 0.5}, 422),
        (SEVERAL, {"quality": 0.9, "cost": 1.4}, 200),
        (SEVERAL, {"cost": 1.4}, 200),
        (SEVERAL, 0.9, 422),
        (SEVERAL, {"cost": 2.5}, 422),
        (SEVERAL, {"cost": "much"}, 400),
    ],
)
def test_a_reward_is_a_number_or_a_number_for_each_metric(
    guards: httpx.Client, path: str, value: Any, status: int
) -> None:
    made = ask(guards, path)
    answer = guards.post(f"{path}/decisions/{made['decision_id']}/reward", json={"value": value})
    assert answer.status_code == status, answer.text
    if status == 200:
        assert answer.json()["value"] == value
        again = guards.post(f"{path}/decisions/{made['decision_id']}/reward", json={"value": value})
        assert again.json()["is_repeat"]
    elif answer.json()["type"] == "/problems/reward-out-of-range":
        assert "within their declared bounds" in answer.json()["detail"]


def test_batches_answer_each_entry_on_its_own(guards: httpx.Client) -> None:
    entries = [{**ASKED, "decision_id": f"batch-{n}"} for n in range(3)]
    entries[1]["baseline"] = None
    results = guards.post(f"{SEVERAL}/decision-batches", json={"decisions": entries}).json()["results"]
    assert [list(result) for result in results] == [["decision"], ["problem"], ["decision"]]
    assert "any JSON value but null" in results[1]["problem"]["detail"]
    rewards = [
        {"decision_id": "batch-0", "value": {"quality": 1.0}},
        {"decision_id": "batch-2", "value": {"clicks": 1.0}},
        {"decision_id": "batch-2", "value": {"quality": 0.25, "cost": 0.1}},
    ]
    receipts = guards.post(f"{SEVERAL}/reward-batches", json={"rewards": rewards}).json()["results"]
    assert [list(receipt) for receipt in receipts] == [["receipt"], ["problem"], ["receipt"]]
    assert "quality, cost" in receipts[1]["problem"]["detail"] or "cost, quality" in receipts[1]["problem"]["detail"]
    assert receipts[2]["receipt"]["value"] == {"quality": 0.25, "cost": 0.1}


def test_a_body_of_the_other_kind_is_refused_with_advice_and_changes_nothing(guards: httpx.Client) -> None:
    rounds = [guards.get(path).json()["rounds"] for path in (MODELS, "/v1/experiments/shop")]
    for path in ("decisions", "fallbacks"):
        guarded = guards.post(f"/v1/experiments/shop/{path}", json={**ASKED, "decision_id": "x"})
        assert "`actions` must be given, or the `catalogue`" in refused(guarded)
        rows = guards.post(f"{MODELS}/{path}", json={"actions": ACTIONS, "decision_id": "x"})
        assert "takes `baseline` and `proposal`, but got actions" in refused(rows)
    batch = guards.post("/v1/experiments/shop/decision-batches", json={"decisions": [{"actions": ACTIONS}, ASKED]})
    rows, pair = batch.json()["results"]
    assert (list(rows), pair["problem"]["errors"][0]["field"]) == (["decision"], "actions")
    rounds[1] += 1
    assert "`baseline` and `proposal`" in refused(guards.post(f"{MODELS}/catalogues", json={"actions": ACTIONS}))
    named = guards.post("/v1/experiments/shop/decisions/nobody/reward", json={"value": {"quality": 1.0}})
    assert "must be a number" in refused(named)
    assert [guards.get(path).json()["rounds"] for path in (MODELS, "/v1/experiments/shop")] == rounds


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({}, 422),
        ({"baseline": 1}, 422),
        ({**ASKED, "unit": ""}, 400),
        ({**ASKED, "more": 1}, 400),
        ([], 400),
        (3, 400),
    ],
)
def test_incomplete_and_malformed_requests_are_refused(guards: httpx.Client, body: Any, status: int) -> None:
    assert refused(guards.post(f"{MODELS}/decisions", json=body), status)


@pytest.mark.parametrize("path", ["decisions", "fallbacks", "decision-batches"])
@pytest.mark.parametrize(
    ("depth", "status"), [(60, (201, 200)), (61, (422, 200)), (900, (422, 200)), (100_000, (422,))]
)
def test_actions_that_are_nested_too_deeply_are_refused(
    guards: httpx.Client, path: str, depth: int, status: tuple[int, ...]
) -> None:
    body = f'{{"decision_id": "{path}-{depth}", "baseline": 1, "proposal": {"[" * depth}{"]" * depth}}}'
    body = f'{{"decisions": [{body}]}}' if path == "decision-batches" else body
    answer = guards.post(f"{MODELS}/{path}", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code in status, answer.text
    assert ("at most 60 deep" in answer.text) == (60 < depth < 1000)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"alpha": 0.1, "delta": 0.1, "seed": 3}, "come from the system"),
        ({"delta": 0.1}, "`alpha` must be given"),
        ({"alpha": 0.1, "delta": 0.1, "dim": 3}, "dim"),
        ({"delta": 0.1, "metrics": {"quality": {"kind": "roof", "low": 0, "high": 1, "alpha": 0.1}}}, "'quality'"),
        ({"delta": 0.1, "metrics": METRICS, "reward_bounds": "ab"}, "settings"),
        ({"alpha": 0.1, "delta": 0.1, "schedule": 5}, "settings"),
    ],
)
def test_settings_that_a_guard_does_not_take_are_named(
    guards: httpx.Client, settings: dict[str, Any], words: str
) -> None:
    body = {"name": "bad", "policy": "Guard", "settings": settings}
    assert words in refused(guards.post("/v1/experiments", json=body))


def test_a_unit_keeps_its_side_over_its_visits(guards: httpx.Client) -> None:
    first = ask(guards, USERS, unit="ann")
    again = ask(guards, USERS, unit="ann", proposal="tiny")
    assert (again["round"], again["source"], again["share"]) == (first["round"], first["source"], first["share"])
    assert again["is_visit"]
    assert not {"is_visit"} & set(first)
    assert not {"binds", "margin"} & set(again)
    assert "Another visit of unit 'ann'" in again["explanation"]
    assert "unit_window" in refused(guards.post(f"{MODELS}/decisions", json={**ASKED, "unit": "ann"}))
    standing = guards.get(USERS).json()["guard"]
    assert (standing["visits"], standing["open_units"]) == (1, 1)


def test_a_fallback_is_booked_as_the_baselines(guards: httpx.Client) -> None:
    booked = guards.post(f"{MODELS}/fallbacks", json={**ASKED, "decision_id": "alone"})
    assert booked.status_code == 201
    found = booked.json()
    assert (found["action"], found["source"], found["probability"], found["share"]) == ("big", "baseline", 1.0, 0.0)
    assert found["is_fallback"]
    assert guards.post(f"{MODELS}/fallbacks", json={**ASKED, "decision_id": "alone"}).status_code == 200
    assert refused(guards.post(f"{MODELS}/fallbacks", json=ASKED))


def test_the_summary_says_share_banks_who_binds_and_the_lift_without_an_interval(guards: httpx.Client) -> None:
    create(guards, "lift", policy="Guard", settings={"delta": 0.2, "metrics": METRICS})
    path = "/v1/experiments/lift"
    for _ in range(120):
        made = ask(guards, path)
        value = {"quality": 0.9, "cost": 0.4} if made["source"] == "learner" else {"quality": 0.6, "cost": 0.8}
        guards.post(f"{path}/decisions/{made['decision_id']}/reward", json={"value": value}).raise_for_status()
    found = guards.get(path).json()
    standing, metrics = found["guard"], found["guard"]["metrics"]
    assert (found["floor"], found["total_reward"]) == (None, None)
    assert standing["promise"] == "mean"
    assert 0.0 < standing["share"] <= standing["allowed"]
    assert metrics["quality"]["lift"] == pytest.approx(0.5)
    assert metrics["cost"]["learner_mean"] == pytest.approx(0.4)
    assert (metrics["cost"]["kind"], metrics["cost"]["alpha"]) == ("ceiling", 0.4)
    assert standing["binds"] in metrics
    points = guards.get(f"{path}/history").json()["points"]
    assert points[-1]["guard"] == standing
    assert guards.get(f"{path}/beliefs").json()["kind"] == "none"


def test_the_summary_of_other_policies_has_no_guard(guards: httpx.Client) -> None:
    assert guards.get("/v1/experiments/shop").json()["guard"] is None


def test_assumptions_alarms_and_metrics_speak_of_the_guard(guards: httpx.Client) -> None:
    found = {one["setting"]: one for one in guards.get(f"{SEVERAL}/assumptions").json()["assumptions"]}
    assert found["quality.alpha"]["text"].endswith("at least 0.7 times the baseline's, at every moment.")
    assert found["cost.bounds"]["value"] == [0.0, 2.0]
    assert "nobody foresees it" in found["coin"]["text"]
    made = ask(guards, USERS, unit="bob")
    guards.post(f"{USERS}/decisions/{made['decision_id']}/reward", json={"value": 7})
    alarms = guards.get(f"{USERS}/alarms").json()["alarms"]
    assert any("outside of the declared bounds" in alarm["text"] for alarm in alarms)
    ask(guards)
    for path in (MODELS, SEVERAL):  # metrics are of what was last looked at
        guards.get(path)
    page = guards.get("/metrics").text
    assert 'surefoot_guard_share{experiment="models"}' in page
    assert 'surefoot_guard_differing_share{experiment="models"}' in page
    assert 'surefoot_guard_bank{experiment="several",metric="cost"}' in page


def test_the_live_stream_shows_a_guard(guards: httpx.Client) -> None:
    ask(guards)
    with guards.stream("GET", f"{MODELS}/live") as answer:
        data = next(line for line in answer.iter_lines() if line.startswith("data: "))
    assert '"share":' in data
    assert '"guard":{' in data


def test_a_restart_keeps_every_coin_and_the_picture(tmp_path: Path) -> None:
    settings = Settings(database=str(tmp_path / "shop.journal"))
    with running(settings) as address, httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
        create(client, "models", policy="Guard", settings={"alpha": 0.3, "delta": 0.2})
        made = [ask(client, decision_id=str(number)) for number in range(10)]
    with running(settings) as address, httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
        assert [ask(client, decision_id=str(number)) for number in range(10)] == [
            {**one, "is_repeat": True} for one in made
        ]
        assert [point["rounds"] for point in client.get(f"{MODELS}/history").json()["points"]][-1] == 10
        assert len(client.get(f"{MODELS}/decisions").json()["decisions"]) == 10


def test_a_guards_void_keeps_its_coin_and_takes_no_nesting_that_a_journal_cannot_hold(guards: httpx.Client) -> None:
    made = guards.post(f"{MODELS}/decisions", json={**ASKED, "decision_id": "not-played"}).json()
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert refused(guards.post(f"{MODELS}/decisions/not-played/void", json={"action": deep}), 422)
    said = guards.post(
        f"{MODELS}/decisions/not-played/void", json={"action": {"model": "middle"}, "reason": "sold out"}
    )
    assert said.json() == {"decision_id": "not-played", "head": said.json()["head"]}
    found = guards.get(f"{MODELS}/decisions/not-played").json()["answer"]
    assert (found["action"], found["is_voided"]) == ({"model": "middle"}, True)
    assert [found[name] for name in ("source", "share", "probability")] == [
        made[name] for name in ("source", "share", "probability")
    ]


def test_coins_that_cannot_be_kept_are_the_servers_fault_and_the_shop_goes_on(tmp_path: Path) -> None:
    settings, folder = Settings(database=str(tmp_path / "shop.journal")), tmp_path / "shop.journal.coins"
    with running(settings) as address, httpx.Client(base_url=address, timeout=120, trust_env=False) as client:
        folder.write_text("in the way")
        create(client, "models", policy="Guard", settings={"alpha": 0.3, "delta": 0.2})
        away = client.post(f"{MODELS}/decisions", json=ASKED)
        assert (away.status_code, away.json()["type"]) == (503, "/problems/unavailable")
        assert str(tmp_path) not in away.text
        assert client.get(MODELS).json()["rounds"] == 0
        with Client(address, timeout=0.3) as shop:
            assert shop.decide("models", **ASKED, decision_id="alone").is_fallback
            folder.unlink()
            assert shop.flush(20)
            assert not shop.later.refused
        assert ask(client)["round"] == 2
    with open_journal(settings.database) as journal:
        assert audit(journal, "models").is_clean


def test_the_secrets_of_coins_lie_where_the_settings_say_and_outlive_the_server(tmp_path: Path) -> None:
    path, coins = tmp_path / "shop.journal", tmp_path / "elsewhere"
    for _ in range(2):
        with Apart(tmp_path, environment={**os.environ, "SUREFOOT_COINS": str(coins)}) as server:
            with httpx.Client(base_url=server.address, timeout=120, trust_env=False) as client:
                if not coins.exists():
                    create(client, "models", policy="Guard", settings={"alpha": 0.3, "delta": 0.2, "reserve": 9.0})
                ask(client)
            assert server.stop() == 0
        assert {one.stat().st_mode & 0o777 for one in coins.iterdir()} == {0o600}
    assert not path.with_name("shop.journal.coins").exists()
    with open_journal(path) as journal:
        report = audit(journal, "models")
    assert report.is_clean
    assert (report.tally.coin_blocks, report.coins.coins) == (1, 2), "the second server goes on with the first's block"  # type: ignore[union-attr]
