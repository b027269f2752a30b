"""Clients of a guard: honest propensities, rewards by metric, and the baseline for certain where nobody answers."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from surefoot.client import Answer, AsyncClient, Client, ServiceError
from surefoot.errors import InputError
from surefoot.service.settings import Settings
from tests.client.test_client import NOBODY, _Flaky
from tests.service.servers import POLICY, running

METRICS = {
    "quality": {"kind": "floor", "low": 0, "high": 1, "alpha": 0.3},
    "cost": {"kind": "ceiling", "low": 0, "high": 2, "alpha": 0.4, "reserve": 9.0},
}
SMALL = {"model": "small", "temperature": 0.3}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("guard-client")
    with running(Settings(database=str(folder / "shop.journal"))) as address:
        with Client(address, patience=300) as client:
            client.create_experiment("shop", POLICY, mode="guarded")
            client.create_experiment("models", {"alpha": 0.3, "delta": 0.2}, policy="Guard", mode="guarded")
            client.create_experiment("several", {"delta": 0.2, "metrics": METRICS}, policy="Guard", mode="guarded")
            units = {"alpha": 0.3, "delta": 0.2, "unit_window": 5}
            client.create_experiment("users", units, policy="Guard", mode="guarded")
        yield address


def test_a_client_of_a_guard_decides_and_rewards(address: str) -> None:
    with Client(address, timeout=10) as client:
        made = [client.decide("models", baseline="big", proposal=SMALL) for _ in range(30)]
        assert {one.source for one in made} == {"learner", "baseline"}
        for one in made:
            assert one.action == (SMALL if one.source == "learner" else "big")
            assert one.share is not None
            assert one.probability == (one.share if one.source == "learner" else 1.0 - one.share)
            assert client.reward("models", one.decision_id, 0.75).is_accepted
        again = client.decide("models", baseline="big", proposal=SMALL, decision_id=made[0].decision_id)
        assert (again.is_repeat, again.action, again.share) == (True, made[0].action, made[0].share)
        assert client.experiment("models")["guard"]["binds"] == "reward"


def test_rewards_go_by_metric_and_an_unknown_one_is_raised(address: str) -> None:
    with Client(address, timeout=10) as client:
        made = client.decide("several", baseline=1, proposal=2, prediction={"quality": 0.5})
        with pytest.raises(ServiceError, match="clicks") as caught:
            client.reward("several", made.decision_id, {"clicks": 1.0})
        assert caught.value.type == "/problems/invalid"
        assert client.reward("several", made.decision_id, {"quality": 7.0}).refused == "out_of_range"
        receipt = client.reward("several", made.decision_id, {"quality": 0.9, "cost": 1.4})
        assert (receipt.is_accepted, receipt.value) == (True, {"quality": 0.9, "cost": 1.4})
        assert client.reward("several", made.decision_id, {"quality": 0.9, "cost": 1.4}).is_repeat
        assert client.reward("several", made.decision_id, {"quality": 0.8}).refused == "conflict"


def test_an_async_client_of_a_guard_does_the_same(address: str) -> None:
    async def visit() -> None:
        async with AsyncClient(address, timeout=10) as client:
            made = await asyncio.gather(*(client.decide("users", baseline=0, proposal=1, unit="ann") for _ in range(4)))
            assert len({(one.round, one.source) for one in made}) == 1
            assert sorted(one.is_visit for one in made) == [False, True, True, True]
            assert (await client.reward("users", made[0].decision_id, 0.25)).is_accepted

    asyncio.run(visit())


def test_where_nobody_answers_the_baseline_is_played_with_certainty() -> None:
    with Client(NOBODY, timeout=0.05) as client:
        made = client.decide("models", baseline={"model": "big"}, proposal=SMALL, unit="ann", decision_id="alone")
        assert made == Answer(
            decision_id="alone",
            action={"model": "big"},
            source="baseline",
            unit="ann",
            explanation=made.explanation,
            is_held=True,
            is_fallback=True,
        )
        assert made.probability == 1.0
        assert client.reward("models", "alone", {"quality": 0.5}).is_queued
        assert len(client.later) == 2
        with pytest.raises(InputError, match="baseline"):
            client.decide("models", baseline=None, proposal=SMALL)
        client.close(0.0)


def test_a_round_that_was_played_alone_is_booked_when_the_service_is_back(address: str) -> None:
    way = _Flaky(address)
    with Client(address, timeout=0.3, transport=way) as client:
        way.is_down = True
        made = client.decide("several", baseline="big", proposal=SMALL, decision_id="outage")
        assert (made.decision_id, made.action, made.probability, made.is_fallback) == ("outage", "big", 1.0, True)
        assert client.reward("several", "outage", {"quality": 0.5, "cost": 0.5}).is_queued
        way.is_down = False
        assert client.flush(20)
        found = client.decision("several", "outage")["answer"]
        assert (found["is_fallback"], found["source"], found["share"]) == (True, "baseline", 0.0)
        assert client.reward("several", "outage", {"quality": 0.5, "cost": 0.5}).is_repeat
        assert not client.later.refused


@pytest.mark.parametrize(("experiment", "unit"), [("models", None), ("users", "bob")])
def test_a_round_that_was_not_heard_of_keeps_its_coin(address: str, experiment: str, unit: str | None) -> None:
    way, made = _Flaky(address), list[Answer]()
    with Client(address, timeout=0.1, transport=way) as client:
        for n in range(40):
            way.loses_answers = 10**6
            asked: dict[str, Any] = {"unit": unit and f"{unit}-{n}", "decision_id": f"u{n}"}
            made.append(client.decide(experiment, baseline="big", proposal=SMALL, **asked))
            way.loses_answers = 0
            assert client.flush(20)
        assert {(one.action, one.is_fallback) for one in made} == {("big", True)}
        found = [client.decision(experiment, one.decision_id)["answer"] for one in made]
        assert {one["source"] for one in found} == {"learner", "baseline"}
        assert all(one.get("is_voided", False) == (one["source"] == "learner") for one in found)
        assert all(one["probability"] == one["share"] for one in found if one["source"] == "learner")
        assert {one["action"] for one in found} == {"big"}
        assert client.reward(experiment, "u39", 1.0).is_accepted
        assert not client.later.refused


def test_a_question_of_the_other_kind_is_raised_with_advice(address: str) -> None:
    with Client(address, timeout=10) as client:
        with pytest.raises(ServiceError, match="`actions` must be given, or the `catalogue`"):
            client.decide("shop", baseline="blue", proposal="red")
        with pytest.raises(ServiceError, match="takes `baseline` and `proposal`, but got actions"):
            client.decide("models", ["blue", "red"])
        with pytest.raises(TypeError, match="clicks"):
            client.decide("models", baseline=1, proposal=2, clicks=3)
