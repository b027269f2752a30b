"""Slow clients, half-open connections, huge bodies, ids that do not exist: memory stays flat, and others are served."""

import asyncio
import contextlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

from surefoot.experiment import Experiment, kinds
from surefoot.experiment.beliefs import Beliefs
from surefoot.experiment.configuration import Configuration
from surefoot.linear.encoding import Encoder, NumericColumn
from surefoot.service.problems import KINDS, ProblemError
from surefoot.service.server import BUSY, Connections
from surefoot.service.settings import Limits, Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import ACTIONS, POLICY, Apart, create, running

SHOP, JSON = "/v1/experiments/shop", {"content-type": "application/json"}

QUICK = 5.0  # seconds: how long an honest caller may have to wait meanwhile, on a busy machine


class Abused(Apart):
    """A server with short deadlines, and its memory."""

    @property
    def megabytes(self) -> float:
        assert self.process is not None
        return float(psutil.Process(self.process.pid).memory_info().rss / 2**20)

    def serves(self) -> None:
        """An honest caller is served, and soon."""
        began = time.monotonic()
        answer = httpx.post(
            f"{self.address}/v1/experiments/shop/decisions", json={"actions": ACTIONS}, timeout=30, trust_env=False
        )
        assert answer.status_code == 201
        assert time.monotonic() - began < QUICK

    def dial(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Abused]:
    folder: Path = tmp_path_factory.mktemp("abuse")
    config = folder / "service.toml"
    config.write_text("[limits]\nhead_seconds = 2.0\nbody_seconds = 2.0\n")
    with Abused(folder, config=config) as server:
        with httpx.Client(base_url=server.address, timeout=120, trust_env=False) as client:
            create(client)
            for _ in range(50):
                server.serves()
        yield server


def test_half_open_and_slow_connections_are_closed_in_time(server: Abused) -> None:
    before = server.megabytes
    silent = [server.dial() for _ in range(100)]
    headless = [server.dial() for _ in range(100)]
    bodiless = [server.dial() for _ in range(100)]
    for one in headless:
        one.sendall(b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n")
    for one in bodiless:
        one.sendall(
            b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
        )
    server.serves()
    deadline = time.monotonic() + 20
    answers = [_last_words(one, deadline) for one in (*silent, *headless, *bodiless)]
    assert all(answer == b"" for answer in answers[:200])
    assert all(b" 408 " in answer and b"/problems/timeout" in answer for answer in answers[200:])
    server.serves()
    assert server.megabytes < before + 40


def _last_words(connection: socket.socket, deadline: float) -> bytes:
    """What the server says before it hangs up."""
    connection.settimeout(max(0.1, deadline - time.monotonic()))
    found = b""
    with connection:
        while chunk := connection.recv(65536):
            found += chunk
            if b"\r\n\r\n" in found and b"}" in found.partition(b"\r\n\r\n")[2]:
                break
    return found


def test_huge_bodies_are_refused_without_being_read(server: Abused) -> None:
    before = server.megabytes
    for head in (b"Content-Length: 100000000000\r\n", b"Transfer-Encoding: chunked\r\n"):
        with server.dial() as connection:
            connection.sendall(
                b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                b"Content-Type: application/json\r\n" + head + b"\r\n"
            )
            answer = _flood(connection)
        assert b" 413 " in answer
    server.serves()
    assert server.megabytes < before + 40


def _flood(connection: socket.socket) -> bytes:
    """Send until the server has had enough, 20 megabytes at most, and return what it said."""
    block = b"ffff\r\n" + b" " * 0xFFFF + b"\r\n"
    connection.setblocking(False)
    sent, found, deadline = 0, b"", time.monotonic() + 20
    while sent < 20_000_000 and not found and time.monotonic() < deadline:
        try:
            sent += connection.send(block)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:  # it has closed; what it said before may still be there to read
            sent = 20_000_000
        try:
            found += connection.recv(65536)
        except (BlockingIOError, OSError):
            continue
    return found


def test_ten_thousand_unknown_ids_leave_memory_flat(server: Abused) -> None:
    async def flood(count: int, prefix: str) -> None:
        limits = httpx.Limits(max_connections=16)
        async with httpx.AsyncClient(base_url=server.address, timeout=60, trust_env=False, limits=limits) as client:
            for n in range(0, count, 500):
                rewards = [{"decision_id": f"{prefix}-{n + k}", "value": 1.0} for k in range(500)]
                path = "/v1/experiments/shop/reward-batches"
                found = (await client.post(path, json={"rewards": rewards})).json()["results"]
                assert all(entry["problem"]["type"] == "/problems/unknown-decision" for entry in found)
            names = [f"{prefix}-{n}" for n in range(count // 20)]
            answers = await asyncio.gather(*(client.get(f"/v1/experiments/{name}") for name in names))
            assert {answer.status_code for answer in answers} == {404}

    asyncio.run(flood(2_000, "before"))
    before = server.megabytes
    events = httpx.get(f"{server.address}/v1/experiments/shop", trust_env=False).json()["events"]
    asyncio.run(flood(10_000, "after"))
    server.serves()
    assert server.megabytes < before + 40
    after = httpx.get(f"{server.address}/v1/experiments/shop", trust_env=False).json()["events"]
    assert after - events < 300  # refusals beyond the first hundred of an hour are only counted


def test_a_head_that_does_not_end_is_refused_before_a_token_is_read(server: Abused) -> None:
    before = server.megabytes
    line = b"X-Filler: " + b"x" * 4000 + b"\r\n"
    for start in (b"GET /livez HTTP/1.1\r\nHost: 127.0.0.1\r\n", b"GET /livez HTTP/1.1\r\nX-Endless: "):
        with server.dial() as connection:
            connection.sendall(start)
            found, sent = b"", 0
            with contextlib.suppress(OSError):
                while sent < 80_000_000 and not found:
                    connection.sendall(line if start.endswith(b"\r\n") else b"x" * 4000)
                    sent += 4000
                    connection.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        found = connection.recv(65536)
                    connection.settimeout(30)
            assert sent < 8_000_000  # what the kernel holds on the way, at most
            assert not found or (b" 431 " in found and b"/problems/head-too-large" in found)
    server.serves()
    assert server.megabytes < before + 40


CHUNKED = (
    b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    b"Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
)


@pytest.mark.parametrize("start", [b"2\r\n{}\r\n0\r\n", b"2\r\n{}\r\n0\r\nx-endless: ", b"2;x=", b""])
def test_trailers_extensions_and_blank_lines_that_do_not_end_are_refused(server: Abused, start: bytes) -> None:
    before = server.megabytes
    block = (b"x: 1\r\n" if start.endswith(b"0\r\n") else b"x" if start else b"\r\n") * 8000
    with server.dial() as connection:
        sent = 0
        with contextlib.suppress(OSError):
            connection.sendall(CHUNKED + start if start else b"")
            while sent < 40_000_000:
                connection.sendall(block)
                sent += len(block)
        assert sent < 20_000_000  # what the kernel holds on the way, at most
    server.serves()
    assert server.megabytes < before + 40


def test_a_token_in_a_trailer_is_none(tmp_path: Path) -> None:
    token = TokenFile(tmp_path / "tokens").create(["admin"])
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))
    with running(settings) as address:
        port = int(address.rpartition(":")[2])
        head = CHUNKED.replace(b"/v1/experiments/shop/decisions", b"/v1/experiments")
        trailer = b"Authorization: Bearer %s\r\n\r\n" % token.encode()
        with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
            connection.sendall(head + b"2\r\n{}\r\n0\r\n" + trailer)
            assert b" 401 " in _last_words(connection, time.monotonic() + 20)


def test_one_request_at_a_time(server: Abused) -> None:
    before, ask = server.megabytes, b"GET /v1/experiments/shop HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    for more in (ask, ask * 300_000, b"nonsense\r\n\r\n"):  # up to 20 MB
        with server.dial() as connection:
            found = b""
            with contextlib.suppress(OSError):  # it is closed while we still send
                connection.sendall(ask + more)
            with contextlib.suppress(OSError):
                while chunk := connection.recv(65536):
                    found += chunk
        assert found.count(b"HTTP/1.1 ") <= 1
        if len(more) < 1000:
            assert found.startswith(b"HTTP/1.1 200")  # the first is answered, and told that no other will be
            assert b"\r\nconnection: close\r\n" in found
    server.serves()
    assert server.megabytes < before + 40


def test_refused_requests_whose_bodies_never_come_take_no_room(server: Abused) -> None:
    head = b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n"
    refused = list[socket.socket]()
    for _ in range(1100):  # more than one address may have
        one = server.dial()
        one.sendall(head)
        refused.append(one)
    server.serves()
    deadline = time.monotonic() + 20
    with contextlib.suppress(ConnectionResetError):
        assert b" 415 " in _last_words(refused[-1], deadline)
    refused[-2].settimeout(20)
    with contextlib.suppress(ConnectionResetError):
        while refused[-2].recv(65536):  # in the end it is closed
            pass
    for one in refused:
        one.close()


def test_a_body_that_comes_after_its_refusal_is_read_away(server: Abused) -> None:
    head = b"POST /nowhere HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: text/plain\r\nContent-Length: 9\r\n\r\n"
    with server.dial() as connection:
        for _ in range(3):  # and the connection is as good as before
            connection.sendall(head)
            assert b" 415 " in connection.recv(65536)
            connection.sendall(b"123456789")


# What java.net.http.HttpClient of JDK 17 sends of itself: head and body are two writes.
JAVA = (
    b"POST /v1/experiments/shop/decisions HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: %d\r\n"
    b"Host: 127.0.0.1\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\nUpgrade: h2c\r\n"
    b"User-Agent: Java-http-client/17.0.15\r\nContent-Type: application/json\r\n\r\n"
)


@pytest.mark.parametrize("is_apart", [False, True])
def test_an_offer_of_another_protocol_is_passed_over(server: Abused, is_apart: bool) -> None:
    body = json.dumps({"actions": ACTIONS}).encode()
    with server.dial() as connection:
        for _ in range(3):
            connection.sendall(JAVA % len(body) if is_apart else JAVA % len(body) + body)
            if is_apart:
                time.sleep(0.05)
                connection.sendall(body)
            assert connection.recv(65536).startswith(b"HTTP/1.1 201 ")
        connection.sendall(b"CONNECT other:443 HTTP/1.1\r\nHost: other\r\nUpgrade: h2c\r\nConnection: upgrade\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 400 ")
        assert connection.recv(65536) == b""


@pytest.mark.skipif(shutil.which("javac") is None, reason="there is no JDK here")
def test_javas_own_client_is_served(server: Abused, tmp_path: Path) -> None:
    source = tmp_path / "Ask.java"
    source.write_text(
        """import java.net.URI; import java.net.http.*;
        class Ask { public static void main(String[] args) throws Exception {
            var client = HttpClient.newHttpClient();
            var request = HttpRequest.newBuilder(URI.create(args[0])).header("Content-Type", "application/json")
                .POST(HttpRequest.BodyPublishers.ofString(args[1])).build();
            for (int n = 0; n < 3; n++)
                System.out.println(client.send(request, HttpResponse.BodyHandlers.ofString()).statusCode());
        } }"""
    )
    way = f"{server.address}{SHOP}/decisions"
    ran = subprocess.run(
        ["java", str(source), way, json.dumps({"actions": ACTIONS})], capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["201"] * 3


def test_idle_connections_take_no_room_from_others(server: Abused) -> None:
    idle = [server.dial() for _ in range(1100)]  # more than one address may have
    for _ in range(5):
        assert httpx.get(f"{server.address}/readyz", trust_env=False, timeout=QUICK).status_code == 200
    server.serves()
    for one in idle:
        one.close()


def test_a_request_under_way_is_never_dropped_for_another() -> None:
    class One:
        def __init__(self, since: float | None) -> None:
            self.idle_since, self.is_dropped = since, False

        def drop(self) -> None:
            self.is_dropped = True

    connections = Connections(Limits(connections=4, connections_per_address=2))
    busy, late, early = One(None), One(7.0), One(3.0)
    assert connections.add("a", busy)
    assert connections.add("a", late)
    assert connections.add("a", One(None))  # the idle one of the same address makes room
    assert (busy.is_dropped, late.is_dropped) == (False, True)
    connections.remove("a", late)
    assert not connections.add("a", One(None))
    assert connections.add("b", early)
    assert connections.add("c", One(None))
    assert early.is_dropped
    assert len(connections) == 5  # with those that are being closed


def test_a_map_that_makes_rows_beyond_the_limit_is_refused_before_they_are_made(server: Abused) -> None:
    with httpx.Client(base_url=server.address, timeout=30, trust_env=False) as client:
        actions = [{"id": str(n), "features": [0.1] * 10} for n in range(1000)]
        body = {"kind": "interactions", "context_dim": 10_000, "context_bound": 1.0}
        before = server.megabytes
        began = time.monotonic()
        way = "/v1/experiments/shop/catalogues"
        refused = client.post(way, json={"actions": actions, "feature_map": body})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "feature_map.context_dim")
        assert time.monotonic() - began < QUICK
        assert server.megabytes < before + 60


WIDE = {
    "actions": [{"id": str(n), "features": [0.1] * 9} for n in range(1000)],
    "feature_map": {"kind": "interactions", "context_dim": 98, "context_bound": 10.0},
}


def test_others_are_served_while_large_rows_are_made(tmp_path: Path) -> None:
    config = tmp_path / "service.toml"
    config.write_text("[limits]\nbody_bytes = 30_000_000\n")
    with (
        Abused(tmp_path, config=config) as server,
        httpx.Client(base_url=server.address, timeout=60, trust_env=False) as client,
    ):
        settings = {**POLICY, "dim": 990, "feature_bound": 200.0}
        assert client.post("/v1/experiments", json={"name": "wide", "settings": settings}).status_code == 201
        registered = client.post("/v1/experiments/wide/catalogues", json=WIDE)
        assert registered.json()["dim"] == 990
        asked = {"catalogue": registered.json()["catalogue"], "context_features": [0.1] * 98}
        with ThreadPoolExecutor(4) as pool:
            wide = [pool.submit(client.post, "/v1/experiments/wide/decisions", json=asked) for _ in range(4)]
            probes = []
            while not all(one.done() for one in wide):
                began = time.monotonic()
                assert httpx.get(f"{server.address}/livez", trust_env=False, timeout=30).status_code == 200
                probes.append(time.monotonic() - began)
        assert {one.result().status_code for one in wide} == {201}
        assert max(probes) < QUICK


def test_a_small_request_cannot_fill_the_disk(tmp_path: Path) -> None:
    file = tmp_path / "shop.journal"
    age = NumericColumn("age", 0.0, 100.0)
    numbers: Any = {"alpha": 0.1, "delta": 0.01, "noise": 0.5, "ridge": 1.0, "theta_bound": 1.0, "feature_bound": 2.0}
    names = tuple(map(str, range(400)))
    configuration = Configuration(
        "CLUCB2", **numbers, baseline_reward=0.3, actions=names, baseline="0", encoder=Encoder((age,))
    )
    settings = {**POLICY, "dim": 990, "feature_bound": 200.0}
    told = Settings(database=str(file), limits=Limits(body_bytes=30_000_000))
    with running(told) as address, httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        for body in (
            {"name": "wide", "settings": settings},
            {"name": "configured", "configuration": configuration.to_toml()},
        ):
            assert client.post("/v1/experiments", json=body).status_code == 201
        catalogue = client.post("/v1/experiments/wide/catalogues", json=WIDE).json()["catalogue"]
    with (
        running(Settings(database=str(file))) as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as client,
    ):
        refused = client.post("/v1/experiments/wide/catalogues", json=WIDE)
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "catalogue")
        asked = {"catalogue": catalogue, "context_features": [0.1] * 98}
        before = client.get("/v1/experiments/wide").json()["events"]
        for name, body in (("wide", asked), ("configured", {"context": {"age": 30}, "baseline": "0"})):
            refused = client.post(f"/v1/experiments/{name}/decisions", json=body)
            assert len(refused.request.content) < 640
            assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "catalogue"), refused.text
        assert client.get("/v1/experiments/wide").json()["events"] == before


def test_a_small_batch_cannot_fill_the_disk_either(tmp_path: Path) -> None:
    wide = {**WIDE, "actions": WIDE["actions"][:30]}  # type: ignore[index]
    settings = {**POLICY, "dim": 990, "feature_bound": 200.0}
    with (
        running(Settings(database=str(tmp_path / "shop.journal"))) as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as client,
    ):
        assert client.post("/v1/experiments", json={"name": "wide", "settings": settings}).status_code == 201
        catalogue = client.post("/v1/experiments/wide/catalogues", json=wide).json()["catalogue"]
        way, one = "/v1/experiments/wide/decision-batches", {"catalogue": catalogue, "context_features": [0.1] * 98}
        assert "problem" not in client.post(way, json={"decisions": [one]}).json()["results"][0]
        before = client.get("/v1/experiments/wide").json()["events"]
        refused = client.post(way, json={"decisions": [one] * 2})
        assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "catalogue"), refused.text
        assert client.get("/v1/experiments/wide").json()["events"] == before


def test_a_batch_counts_as_many_requests_as_it_has_entries(tmp_path: Path) -> None:
    settings = Settings(database=str(tmp_path / "shop.journal"), limits=Limits(rate=0.001, burst=12))
    with running(settings) as address, httpx.Client(base_url=address, timeout=30, trust_env=False) as client:
        create(client)
        batch = {"decisions": [{"actions": ACTIONS}] * 10}
        assert client.post(f"{SHOP}/decision-batches", json=batch).status_code == 200
        assert [client.get("/v1/access").status_code for _ in range(2)] == [200, 429]
        rewards = {"rewards": [{"decision_id": "a", "value": 1}] * 10}
        assert client.post(f"{SHOP}/reward-batches", json=rewards).status_code == 429


def test_beliefs_are_worked_out_once_for_all_who_ask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = list[int]()

    def slow(state: Any) -> Beliefs:
        asked.append(1)
        time.sleep(0.1)
        return Beliefs("coordinate", 0.99, len(asked), [])

    monkeypatch.setattr(kinds, "coordinates", slow)
    settings = Settings(database=str(tmp_path / "shop.journal"))
    with running(settings) as address, httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        create(client)
        way = f"{SHOP}/beliefs"
        with ThreadPoolExecutor(8) as pool:
            found = [one.result() for one in [pool.submit(client.get, way) for _ in range(8)]]
        assert {one.json()["observations"] for one in found} == {1}
        client.post(f"{SHOP}/decisions", json={"actions": ACTIONS})
        assert client.get(way).json()["observations"] == 1  # at most a fiftieth of the time
        latest = time.monotonic() + 30
        while client.get(way).json()["observations"] == 1:
            assert time.monotonic() < latest
            time.sleep(0.5)


def test_nothing_is_decided_for_callers_that_have_hung_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    began, released, submit = threading.Event(), threading.Event(), Experiment.submit_asks

    def held(self: Experiment, *args: Any) -> Any:
        began.set()
        released.wait(60)
        return submit(self, *args)

    def slow(self: Experiment, asks: Any, executor: Any) -> Any:
        return executor.submit(lambda: held(self, asks, executor).result())

    settings = Settings(database=str(tmp_path / "shop.journal"))
    with running(settings) as address, httpx.Client(base_url=address, timeout=60, trust_env=False) as client:
        monkeypatch.setattr(Experiment, "submit_asks", slow)
        create(client)
        body = json.dumps({"actions": ACTIONS}).encode()
        with ThreadPoolExecutor(1) as pool:
            patient = pool.submit(client.post, f"{SHOP}/decisions", content=body, headers=JSON)
            assert began.wait(60)
            callers = [socket.create_connection(("127.0.0.1", int(address.rpartition(":")[2]))) for _ in range(300)]
            for one in callers:
                one.sendall(JAVA % len(body) + body)
            waiting = 'surefoot_queue_size{experiment="shop",verb="decide"} 301.0'
            deadline = time.monotonic() + 60
            while waiting not in httpx.get(f"{address}/metrics", trust_env=False, timeout=60).text:
                assert time.monotonic() < deadline
            for one in callers:
                one.close()
            gone = 'route="/v1/experiments/{name}/decisions",status="408"} 300.0'
            while gone not in httpx.get(f"{address}/metrics", trust_env=False, timeout=60).text:
                assert time.monotonic() < deadline
            released.set()
            assert patient.result().status_code == 201
        assert client.post(f"{SHOP}/decisions", json={"actions": ACTIONS}).json()["round"] == 2


def test_every_refusal_that_will_pass_says_when_to_come_again() -> None:
    passing = [word for word, (status, *_) in KINDS.items() if status in (429, 503)]
    assert len(passing) > 4
    assert all("Retry-After" in ProblemError(word).headers for word in passing)
    assert b"\r\nretry-after: " in BUSY


def test_probes_know_no_limit(tmp_path: Path) -> None:
    settings = Settings(database=str(tmp_path / "shop.journal"), limits=Limits(rate=0.001, burst=1))
    with running(settings) as address, httpx.Client(base_url=address, timeout=30, trust_env=False) as client:
        assert {client.get("/readyz").status_code for _ in range(20)} == {200}
        assert [client.get("/v1/access").status_code for _ in range(2)] == [200, 429]
        assert client.get("/livez").status_code == 200
