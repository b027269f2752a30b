"""Clients against a real server: typed answers, retries that are safe, and a shop that goes on without the service."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import httpx
import pytest

from surefoot.client import Answer, AsyncClient, Client, Receipt, ServiceError
from surefoot.client.offline_queue import Entry, OfflineQueue
from surefoot.errors import ConfigError, InputError
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import POLICY, free_port, running

ROWS = {"blue": [0.6, 0.1], "red": [0.9, 0.3]}
NOBODY = "http://127.0.0.1:9"
EASY = {"small": [0.3, 0.0], "large": [0.9, 0.0], "middle": [0.5, 0.0]}


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("client")
    with running(Settings(database=str(folder / "shop.journal"))) as address:
        with Client(address, patience=120) as client:
            client.create_experiment("shop", POLICY, mode="guarded")
        yield address


def test_a_client_decides_and_rewards(address: str) -> None:
    with Client(address, timeout=10) as client:
        decision = client.decide("shop", ROWS, baseline="red", decision_id="visit-1", context={"page": "home"})
        assert (decision.action_id, decision.source, decision.is_fallback) == ("red", "baseline", False)
        assert client.reward("shop", "visit-1", 0.5).is_accepted
        assert client.reward("shop", "visit-1", 0.5).is_repeat
        assert client.reward("shop", "visit-1", 0.6).refused == "conflict"
        assert client.reward("shop", "nobody", 0.6).refused == "unknown"
        assert client.decide("shop", ROWS, baseline="red", decision_id="visit-1", context={"page": "home"}).is_repeat
        assert client.decision("shop", "visit-1")["round"]["request"]["context"] == {"page": "home"}
        assert client.experiment("shop")["rounds"] >= 1


def test_an_async_client_does_the_same(address: str) -> None:
    async def visit() -> None:
        async with AsyncClient(address, timeout=10) as client:
            made = await asyncio.gather(*(client.decide("shop", ROWS) for _ in range(20)))
            assert len({decision.decision_id for decision in made}) == 20
            receipts = await asyncio.gather(*(client.reward("shop", one.decision_id, 1.0) for one in made))
            assert all(receipt.is_accepted and not receipt.is_queued for receipt in receipts)

    asyncio.run(visit())


def test_catalogues_are_registered_and_used(address: str) -> None:
    with Client(address, timeout=10) as client:
        catalogue = client.register("shop", ROWS)
        assert client.decide("shop", catalogue=catalogue, baseline="red").action_id == "red"


def test_mistakes_of_the_caller_are_raised_and_not_hidden_by_a_fallback(address: str) -> None:
    with Client(address, timeout=10) as client:
        with pytest.raises(ServiceError, match="dim=2") as caught:
            client.decide("shop", {"blue": [1.0]})
        assert (caught.value.status, caught.value.type) == (422, "/problems/invalid")
        with pytest.raises(ServiceError) as caught:
            client.decide("shop", ROWS, decision_id="v" * 201)
        assert caught.value.status == 400


def test_a_dead_service_never_breaks_the_shop(tmp_path: Path) -> None:
    port = free_port()
    with Client(f"http://127.0.0.1:{port}", timeout=0.2) as client:
        decisions = [client.decide("shop", ROWS, baseline="red", decision_id=f"visit-{n}") for n in range(5)]
        assert {decision.action_id for decision in decisions} == {"red"}
        assert all(decision.is_fallback for decision in decisions)
        assert all(client.reward("shop", one.decision_id, 1.0).is_queued for one in decisions)
        assert len(client.later) == 10
        client.close(0.1)


def test_a_dead_service_never_breaks_an_asynchronous_shop_either() -> None:
    async def visit() -> None:
        async with AsyncClient(f"http://127.0.0.1:{free_port()}", timeout=0.2) as client:
            decision = await client.decide("shop", ROWS, baseline="red")
            assert (decision.action_id, decision.is_fallback) == ("red", True)
            assert (await client.reward("shop", decision.decision_id, 1.0)).is_queued
            await client.close(0.1)
            assert len(client.later) == 2
        assert len(client.later) == 2  # closed before, with both still waiting

    asyncio.run(visit())


def test_rounds_that_were_played_alone_are_booked_when_the_service_is_back(address: str) -> None:
    lost = _Flaky(address)
    with Client(address, timeout=0.3, transport=lost) as client:
        before = client.experiment("shop")
        lost.is_down = True
        decision = client.decide("shop", ROWS)
        receipt = client.reward("shop", decision.decision_id, 1.0)
        assert (decision.is_fallback, receipt.is_queued) == (True, True)
        lost.is_down = False
        assert client.flush(20)
        after = client.experiment("shop")
        assert len(client.later) == 0
        assert list(client.later.refused) == []
        assert after["fallback_rounds"] == before["fallback_rounds"] + 1
        assert after["rewards"] == before["rewards"] + 1


def test_an_answer_that_was_lost_is_asked_for_again_and_the_round_counts_once(address: str) -> None:
    lost = _Flaky(address, loses_answers=2)
    with Client(address, timeout=20, transport=lost) as client:
        before = client.experiment("shop")["rounds"]
        decision = client.decide("shop", ROWS)
        assert (decision.is_repeat, decision.is_fallback) == (True, False)
        assert client.experiment("shop")["rounds"] == before + 1


def test_a_learners_decision_that_was_not_heard_of_is_moved_to_the_baseline(address: str) -> None:
    lost = _Flaky(address, loses_answers=10**6)
    with Client(address, timeout=0.3, transport=lost) as client:
        before = client.experiment("shop")
        decision = client.decide("shop", EASY, baseline_reward=0.2, decision_id="unsure")
        assert (decision.decision_id, decision.action_id, decision.is_fallback) == ("unsure", "small", True)
        # Asked again before the service has heard of it, it is still what was played.
        lost.loses_answers = 0
        assert client.decide("shop", EASY, baseline_reward=0.2, decision_id="unsure").action_id == "small"
        assert client.reward("shop", "unsure", 0.25).is_accepted
        assert client.flush(20)
        found = client.decision("shop", "unsure")["answer"]
        assert ("is_fallback" in found, found["is_voided"], found["source"]) == (False, True, "baseline")
        after = client.experiment("shop")
        assert [after[name] - before[name] for name in ("rounds", "voided", "rewards")] == [1, 1, 1]
        assert after["learner_rounds"] == before["learner_rounds"]
        assert client.decide("shop", EASY, baseline_reward=0.2, decision_id="unsure").action_id == "small"
        assert not client.later.refused


def test_a_question_that_arrives_after_its_fallback_decides_nothing(address: str) -> None:
    lost = _Flaky(address)
    with Client(address, timeout=0.3, transport=lost) as client:
        lost.is_down = True
        assert client.decide("shop", EASY, baseline_reward=0.2, decision_id="overtaken").is_fallback
        lost.is_down = False
        assert client.flush(20)
        before = client.experiment("shop")["rounds"]
        late = client.decide("shop", EASY, baseline_reward=0.2, decision_id="overtaken")
        assert (late.source, late.is_repeat) == ("baseline", True)
        assert client.experiment("shop")["rounds"] == before


def test_what_was_played_instead_is_said_now_or_when_the_service_is_back(address: str) -> None:
    way = _Flaky(address)
    with Client(address, timeout=0.3, transport=way) as client:
        for name in ("now", "later"):
            assert client.decide("shop", EASY, baseline_reward=0.2, decision_id=name).source == "learner"
        assert not client.void("shop", "now", reason="it was sold out").is_repeat
        assert client.void("shop", "now", "small").is_repeat
        way.is_down = True
        assert client.void("shop", "later", "middle").is_queued
        way.is_down = False
        # The reward must not overtake the word about its round: after it, that would be refused.
        assert client.reward("shop", "later", 0.5).is_queued
        assert client.flush(20)
        assert client.decision("shop", "later")["answer"]["action_id"] == "middle"
        assert not client.later.refused
        with pytest.raises(ServiceError) as caught:
            client.void("shop", "later", "large")
        assert caught.value.type == "/problems/decision-conflict"


def test_an_asynchronous_client_says_what_was_played_instead_too(address: str) -> None:
    async def visit() -> None:
        async with AsyncClient(address, timeout=10) as client:
            made = await client.decide("shop", EASY, baseline_reward=0.2)
            assert not (await client.void("shop", made.decision_id, "middle")).is_repeat
            assert (await client.decision("shop", made.decision_id))["answer"]["is_voided"]
        async with AsyncClient(NOBODY, timeout=0.05) as away:
            assert (await away.void("shop", "visit")).is_queued
            await away.close(0.0)

    asyncio.run(visit())


class _Flaky(httpx.BaseTransport):
    """The way to the server, down or with answers that get lost."""

    def __init__(self, address: str, *, loses_answers: int = 0) -> None:
        self.is_down, self.loses_answers = False, loses_answers
        self.way = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if self.is_down:
            raise httpx.ConnectError("down")
        answer = self.way.handle_request(request)
        if self.loses_answers and request.url.path.endswith("/decisions"):
            self.loses_answers -= 1
            answer.read()
            raise httpx.ReadTimeout("lost")
        return answer

    def close(self) -> None:
        self.way.close()


def test_what_waits_is_bounded_and_what_is_dropped_is_counted() -> None:
    later = OfflineQueue(3)
    for n in range(5):
        later.put(Entry("shop", "fallbacks", str(n), {}))
    assert (len(later), later.lost) == (3, 2)
    first = later.peek()
    assert first is not None
    assert first.decision_id == "2"


def test_a_client_must_know_where_the_service_is_and_what_the_baseline_is() -> None:
    with pytest.raises(ConfigError, match="url"):
        Client("127.0.0.1:8080")
    with Client(NOBODY, timeout=0.05) as client:
        with pytest.raises(InputError, match="baseline"):
            client.decide("shop", ROWS, baseline="green")
        with pytest.raises(InputError, match="actions"):
            client.decide("shop", catalogue="0" * 64)


def test_without_httpx_the_client_says_what_to_install() -> None:
    code = "import sys; sys.modules['httpx'] = None; import surefoot; surefoot.Client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: The client needs httpx. Install it with: pip install 'surefoot[client]'" in done.stderr


@pytest.mark.parametrize(
    "answer",
    [
        httpx.Response(401, json={"type": "/problems/no-token", "status": 401}),
        httpx.Response(403, json={"type": "/problems/not-allowed", "status": 403}),
        httpx.Response(500, json={"type": "/problems/internal", "status": 500}),
        httpx.Response(520, text="<html>"),
        httpx.Response(404, json={"type": "/problems/unknown-experiment", "status": 404}),
        httpx.Response(404, json={"type": "/problems/unknown-catalogue", "status": 404}),
        httpx.Response(404, text="the proxy knows no such host"),
        httpx.Response(302, headers={"location": "https://login.example"}),
        httpx.Response(200, text="<html>sign in</html>"),
        httpx.Response(200, json={}),
        httpx.Response(200, content=b"\xff"),
        httpx.Response(200, json={"results": []}),
        httpx.Response(200, json=[1]),
    ],
    ids=lambda answer: f"{answer.status_code}-{answer.content[:20]!r}",
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_is_not_the_callers_mistake_plays_the_baseline_and_is_reported(
    answer: httpx.Response, is_async: bool, caplog: pytest.LogCaptureFixture
) -> None:
    reports = list[tuple[str, int]]()

    def on_failure(experiment: str, error: ServiceError) -> None:
        reports.append((experiment, error.status))
        raise RuntimeError("the pager is down")

    def respond(request: httpx.Request) -> httpx.Response:
        return httpx.Response(answer.status_code, content=answer.content, headers=answer.headers)

    async def visit() -> tuple[Answer, Receipt, int, int]:
        transport = httpx.MockTransport(respond)
        async with AsyncClient(NOBODY, timeout=0.2, on_failure=on_failure, transport=transport) as shop:
            decision = await shop.decide("shop", ROWS, baseline="red", decision_id="visit-1")
            receipt = await shop.reward("shop", "visit-2", 1.0)
            await shop.close(0.0)
            return decision, receipt, len(shop.later), shop.failures["shop"]

    def visit_blocking() -> tuple[Answer, Receipt, int, int]:
        with Client(NOBODY, timeout=0.2, on_failure=on_failure, transport=httpx.MockTransport(respond)) as shop:
            decision = shop.decide("shop", ROWS, baseline="red", decision_id="visit-1")
            receipt = shop.reward("shop", "visit-2", 1.0)
            shop.close(0.0)
            return decision, receipt, len(shop.later), shop.failures["shop"]

    decision, receipt, waiting, failures = asyncio.run(visit()) if is_async else visit_blocking()
    assert (decision.action_id, decision.is_fallback, receipt.is_queued, waiting) == ("red", True, True, 2)
    assert failures == len(reports) >= 2
    assert set(reports) == {("shop", answer.status_code)}
    assert len([one for one in caplog.records if one.levelname == "WARNING"]) == 1, "one line for one outage"
    assert "`on_failure` raised" in caplog.text


@pytest.mark.parametrize("status", [429, 503])
def test_a_client_stays_away_as_long_as_it_is_told(status: int) -> None:
    asked = list[float]()

    def respond(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith("/decisions"):
            asked.append(time.monotonic())
        return httpx.Response(status, headers={"retry-after": "1"}, json={"type": "/problems/busy"})

    with Client(NOBODY, timeout=0.9, transport=httpx.MockTransport(respond)) as hurried:
        began = time.monotonic()
        assert hurried.decide("shop", ROWS).is_fallback
        assert (len(asked), time.monotonic() - began < 0.9) == (1, True), "the baseline at once: it cannot wait so long"
        hurried.close(0.0)
    asked.clear()
    with Client(NOBODY, timeout=3.5, transport=httpx.MockTransport(respond)) as patient:
        assert patient.decide("shop", ROWS).is_fallback
        patient.close(0.0)
    assert 2 <= len(asked) <= 4
    assert all(later - earlier >= 1.0 for earlier, later in pairwise(asked))


def test_a_refused_token_drops_no_round(tmp_path: Path) -> None:
    file, path = TokenFile(tmp_path / "tokens"), str(tmp_path / "tokens")
    admin, expired = file.create(["admin"]), "surefoot_00000000_expired"
    with running(Settings(database=str(tmp_path / "shop.journal"), tokens=path)) as address:
        with Client(address, token=admin, patience=60) as operator:
            operator.create_experiment("shop", POLICY, mode="guarded")
        with Client(address, token=expired, timeout=5) as shop:
            assert shop.decide("shop", ROWS, decision_id="alone").is_fallback
            assert not shop.flush(0.5)
            assert len(shop.later) == 1, "a refused token is no reason to drop a round"
            with pytest.raises(ServiceError, match="token") as caught:
                shop.experiment("shop")
            assert caught.value.status == 401
            shop.close(0.0)


def test_an_experiment_that_was_deleted_and_a_catalogue_that_was_restored_away_break_no_shop(tmp_path: Path) -> None:
    reports = list[str]()
    journal = str(tmp_path / "shop.journal")
    with (
        running(Settings(database=journal)) as address,
        Client(address, timeout=30, on_failure=lambda _, error: reports.append(error.type)) as shop,
    ):
        shop.create_experiment("shop", POLICY, mode="guarded")
        shop.create_experiment("other", POLICY, mode="guarded")
        catalogue = shop.register("other", ROWS)
        lost = shop.decide("shop", catalogue=catalogue, baseline="red", decision_id="lost")
        assert (lost.is_fallback, lost.action_id) == (True, "red")
        gone = shop.decide("gone", ROWS, decision_id="gone")
        assert (gone.is_fallback, gone.action_id) == (True, "blue")
        assert shop.reward("gone", "gone", 1.0).is_queued
        assert shop.decide("shop", ROWS, decision_id="well").round == 1
        assert shop.flush(30.0), "what is refused for good holds nothing up"
        assert len(shop.later.refused) == 3
        with pytest.raises(ServiceError) as refused:
            shop.experiment("gone")
        assert refused.value.status == 404
    assert set(reports) == {"/problems/unknown-experiment", "/problems/unknown-catalogue"}
