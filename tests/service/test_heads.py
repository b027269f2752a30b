"""Receipts: every answer has one, clients keep them, heads leave the journal signed, a rewritten one is found."""

import asyncio
import json
import logging
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.audit import ExpectedHead, audit, audit_journal
from surefoot.audit.chain import read_expected
from surefoot.client import AsyncClient, Client
from surefoot.errors import ConfigError, ReceiptError
from surefoot.journal import Head, open_journal
from surefoot.journal.events import JOURNAL
from surefoot.journal.signatures import PublicKey, SigningKey
from surefoot.service import head_keeper
from surefoot.service.logs import JsonFormatter
from surefoot.service.settings import Settings
from tests.service.servers import ACTIONS, POLICY, Apart, create, running
from tests.sharing.edges import new_keys

ROWS = {"blue": [0.6, 0.1], "red": [0.9, 0.3]}
GUARD = {"alpha": 0.1, "delta": 0.05}


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A key as OpenSSL makes it; the public part is beside it."""
    path = tmp_path / "head.key"
    subprocess.run(["openssl", "genpkey", "-algorithm", "ed25519", "-out", path], check=True, capture_output=True)
    subprocess.run(["openssl", "pkey", "-in", path, "-pubout", "-out", path.with_suffix(".pub")], check=True)
    return path


def head_of(body: dict[str, Any]) -> tuple[int, str]:
    return body["head"]["number"], body["head"]["hash"]


@pytest.mark.parametrize("policy", ["SafeLUCB", "Guard"])
def test_every_answer_that_acknowledges_an_event_has_its_receipt(policy: str, database: str) -> None:
    is_guard = policy == "Guard"
    asked: dict[str, Any] = {"baseline": "old", "proposal": "new"} if is_guard else {"actions": ACTIONS}
    value: Any = {"reward": 0.5} if is_guard else 0.5
    shop = "/v1/experiments/shop"
    with running(Settings(database=database)) as address, httpx.Client(base_url=address, trust_env=False) as client:
        made = {"policy": policy, "settings": GUARD if is_guard else POLICY}
        told = client.post("/v1/experiments", json={"name": "shop", "mode": "guarded", **made}).json()
        receipts = [(told["events"], told["head_hash"])]
        receipts.append(head_of(client.post(f"{shop}/decisions", json={"decision_id": "a", **asked}).json()))
        again = client.post(f"{shop}/decisions", json={"decision_id": "a", **asked}).json()
        assert head_of(again) == receipts[-1]
        batch = client.post(f"{shop}/decision-batches", json={"decisions": [{"decision_id": "b", **asked}]}).json()
        receipts.append(head_of(batch["results"][0]["decision"]))
        receipts.append(head_of(client.post(f"{shop}/fallbacks", json={"decision_id": "c", **asked}).json()))
        receipts.append(head_of(client.post(f"{shop}/decisions/a/reward", json={"value": value}).json()))
        again = client.post(f"{shop}/decisions/a/reward", json={"value": value}).json()
        assert again["is_repeat"]
        assert head_of(again) == receipts[-1]
        sent = client.post(f"{shop}/reward-batches", json={"rewards": [{"decision_id": "b", "value": value}]}).json()
        receipts.append(head_of(sent["results"][0]["receipt"]))
        receipts.append(head_of(client.post(f"{shop}/decisions/c/abandon", json={}).json()))
        client.post(f"{shop}/decisions", json={"decision_id": "d", **asked})
        played: Any = "new" if is_guard else "red"
        receipts.append(head_of(client.post(f"{shop}/decisions/d/void", json={"action": played}).json()))
        told = client.put(f"{shop}/mode", json={"mode": "paused"}).json()
        receipts.append((told["events"], told["head_hash"]))
        for number, hash_ in receipts:
            assert client.get(f"{shop}/head", params={"number": number}).json()["hash"] == hash_
        assert client.get(f"{shop}/head").json()["number"] == receipts[-1][0]
        assert client.get(f"{shop}/head", params={"number": 99}).status_code == 404
        for address in (f"{shop}/head", "/v1/head"):
            wrong = client.get(address, params={"numbr": 1})
            assert (wrong.status_code, "`number` alone, but got 'numbr'" in wrong.text) == (422, True)
        assert client.get("/v1/experiments/@journal").status_code == 404
    with open_journal(database, read_only=True) as journal:
        assert {event.head for event in journal.read("shop")} >= set(receipts)
        report = audit(journal, "shop", expect=[Head(*one) for one in receipts])
    assert report.is_clean
    assert report.heads == len(set(receipts))
    assert [number for number, _ in receipts] == sorted({number for number, _ in receipts}), "each has its own event"


def test_both_clients_keep_receipts_and_find_an_older_copy_out(database: str, tmp_path: Path) -> None:
    kept, copy = tmp_path / "receipts.jsonl", f"{database}.copy"
    with running(Settings(database=database)) as address:
        with Client(address, receipts=kept, timeout=30) as client:
            client.create_experiment("shop", POLICY, mode="guarded")
            client.decide("shop", ROWS, decision_id="first")
        with Client(address, receipts=kept, timeout=30) as client:
            before = client.heads.newest("shop")
            assert before is not None
            assert before.number == 2, "a new client goes on with the file of the last"

            async def visit() -> None:
                async with AsyncClient(address, timeout=30) as other:
                    assert await other.check("shop") is None
                    decision = await other.decide("shop", ROWS, decision_id="second")
                    assert await other.check("shop") == decision.head
                    assert decision.head is not None

            asyncio.run(visit())
            receipt = client.reward("shop", "second", 0.5)
            assert client.check("shop") == receipt.head
    shutil.copy(database, copy)
    with running(Settings(database=database)) as address, Client(address, receipts=kept, timeout=30) as client:
        client.decide("shop", ROWS, decision_id="third")
        assert client.check("shop") is not None
    with running(Settings(database=copy)) as address, Client(address, receipts=kept, timeout=30) as client:
        with pytest.raises(ReceiptError, match=r"is gone.*an older copy was restored"):
            client.check("shop")
        # The older copy goes on, and gives the same number to another event.
        client.decide("shop", ROWS, decision_id="other")
        with pytest.raises(ReceiptError, match="has"):
            client.check("shop")
    with open_journal(copy, read_only=True) as journal:
        expected = audit_journal(journal, expect=read_expected(kept)).expected["shop"]
        assert "expected" in audit(journal, "shop", expect=expected).findings.counts


def test_a_disk_that_is_gone_does_not_keep_a_client_from_playing(database: str, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    kept = tmp_path / "disk" / "receipts.jsonl"
    with running(Settings(database=database)) as address, Client(address, receipts=kept, timeout=30) as client:
        shutil.rmtree(kept.parent)
        client.create_experiment("shop", POLICY, mode="guarded")
        assert not client.decide("shop", ROWS).is_fallback
        assert client.heads.unwritten > 0


def test_a_file_of_something_else_is_no_file_of_receipts(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("hello")
    with pytest.raises(ConfigError, match="`receipts` must be a file of this client's"):
        Client("http://127.0.0.1:9", receipts=tmp_path / "notes")


class _Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.setFormatter(JsonFormatter())

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


@pytest.fixture
def lines() -> Iterator[list[str]]:
    logger, handler = logging.getLogger("surefoot.service"), _Lines()
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")
    yield handler.lines
    logger.removeHandler(handler)
    logger.setLevel(level)


def posted(received: list[bytes]) -> HTTPServer:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["content-length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def test_heads_leave_the_journal_signed(database: str, tmp_path: Path, key: Path, lines: list[str]) -> None:
    heads, received = tmp_path / "heads.jsonl", list[bytes]()
    server = posted(received)
    settings = Settings(
        database=database,
        heads=str(heads),
        heads_url=f"http://127.0.0.1:{server.server_port}/heads",
        head_seconds=0.1,
        signing_key=str(key),
    )
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        assert client.get("/v1/head").status_code == 404
        create(client)
        create(client, "blue")
        deadline = time.monotonic() + 60
        while (told := client.get("/v1/head")).status_code == 404:
            assert time.monotonic() < deadline
        own = told.json()
    server.shutdown()
    server.server_close()
    found, public = read_expected(heads), PublicKey(key.with_suffix(".pub"))
    assert {one.experiment for one in found} == {"shop", "blue", JOURNAL}
    assert all(one.is_signed_by(public) for one in found)
    assert b"".join(received) == heads.read_bytes()
    assert heads.stat().st_mode & 0o777 == 0o600, "for its owner alone"
    logged = tmp_path / "server.log"
    logged.write_text("\n".join(lines))
    assert read_expected(logged) == found
    assert ExpectedHead(**own).is_signed_by(public)
    with open_journal(database, read_only=True) as journal:
        whole = audit_journal(journal, expect=[*found, ExpectedHead(**own)], keys=[public])
        assert whole.is_clean, [*whole.findings]
        assert whole.signed == len(found) + 1
        assert audit(journal, "shop", expect=whole.expected["shop"]).is_clean
        forged = ExpectedHead("shop", found[0].number, "00" * 32, found[0].time, found[0].signature)
        assert [one.what for one in audit_journal(journal, expect=[forged], keys=[public]).findings] == ["signature"]
        assert "signature" not in audit_journal(journal, expect=found, keys=[public]).findings.counts


def test_heads_of_a_key_that_was_changed_are_checked_with_both(database: str, tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    for name in ("old", "new"):
        new_keys(tmp_path, name)
        key = tmp_path / f"{name}.key"
        settings = Settings(database=database, heads=str(heads), signing_key=str(key))
        with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
            create(client, name)
            assert client.get(f"/v1/experiments/{name}/head").json()["key"] == SigningKey(key).name
    old, new = (PublicKey(tmp_path / f"{name}.pub") for name in ("old", "new"))
    kept = read_expected(heads)
    assert {one.key for one in kept} == {old.name, new.name}
    with open_journal(database, read_only=True) as journal:
        assert audit_journal(journal, expect=kept, keys=[old, new]).is_clean
        findings = [*audit_journal(journal, expect=kept, keys=[new]).findings]
    assert len(findings) == sum(one.key == old.name for one in kept) > 0
    assert all(f"names the key {old.name}, which is not among these" in one.text for one in findings)


def test_heads_are_tried_again_whatever_their_address_answers(database: str, lines: list[str]) -> None:
    answers = [
        b"",
        b"HTTP/1.1 nonsense\r\n\r\n",
        b"\xff\r\n\r\n",
        b"HTTP/1.1 500 No\r\n\r\n",
        b"HTTP/1.1 302 Go\r\nLocation: x:y\r\n\r\n",
    ]
    tries = list[bytes]()

    def answer() -> None:
        with suppress(OSError):  # closed at the end
            for words in chain(answers, repeat(b"HTTP/1.1 204 Thanks\r\n\r\n")):
                with listening.accept()[0] as one:
                    tries.append(one.recv(65536))
                    one.sendall(words)

    def metric(name: str) -> float:
        page = client.get("/metrics").text
        return float(next(line.split()[1] for line in page.splitlines() if line.startswith(f"{name} ")))

    with socket.create_server(("127.0.0.1", 0)) as listening:
        where = f"http://127.0.0.1:{listening.getsockname()[1]}/heads"
        settings = Settings(database=database, heads_url=where, head_seconds=0.2)
        with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
            create(client)  # while nobody takes the head
            assert client.post("/v1/experiments/shop/decisions", json={"actions": ACTIONS}).status_code == 201
            threading.Thread(target=answer, daemon=True).start()
            deadline = time.monotonic() + 60
            while len(tries) <= len(answers):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            assert metric("surefoot_heads_failures_total") == len(answers)
            assert metric("surefoot_heads_age_seconds") < 30
    assert sum("heads could not be kept" in line for line in lines) >= len(answers)


def test_nothing_is_noted_where_nothing_has_moved(database: str, tmp_path: Path) -> None:
    heads = tmp_path / "heads.jsonl"
    settings = Settings(database=database, heads=str(heads), head_seconds=0.02)
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        create(client)
        time.sleep(0.6)
    # The experiment as created, and after the snapshot of the stop; the journal's own chain with each.
    names = [json.loads(line)["experiment"] for line in heads.read_text().splitlines()]
    assert names == ["shop", JOURNAL, "shop", JOURNAL]


@pytest.mark.parametrize("content", [None, "nonsense"])
def test_a_key_that_cannot_be_read_is_a_sentence(content: str | None, database: str, tmp_path: Path) -> None:
    path = tmp_path / "head.key"
    if content is not None:
        path.write_text(content)
    with (
        pytest.raises(ConfigError, match=r"There must be an Ed25519 private key in PEM form"),
        running(Settings(database=database, signing_key=str(path))),
    ):
        pass


@contextmanager
def dripping() -> Iterator[str]:
    """An address whose answer goes on for good, a byte at a time."""
    ended = threading.Event()

    def drip(one: socket.socket) -> None:
        with suppress(OSError), one:
            one.recv(65536)
            one.sendall(b"HTTP/1.1 200 OK\r\nX-a: ")
            while not ended.wait(0.2):
                one.sendall(b"a")

    def accept() -> None:
        with suppress(OSError):  # closed at the end
            while True:
                threading.Thread(target=drip, args=(listening.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/heads"
        ended.set()
        listening.shutdown(socket.SHUT_RDWR)


def test_an_answer_that_drips_ends_at_the_deadline_and_holds_nothing_up(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(head_keeper, "POST_SECONDS", 1.0)
    heads = tmp_path / "heads.jsonl"
    with dripping() as where:
        settings = Settings(database=database, heads=str(heads), heads_url=where, head_seconds=0.3)
        with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
            create(client)
            asked = {"decision_id": "a", "actions": ACTIONS, "context": {"person": "amy"}}
            client.post("/v1/experiments/shop/decisions", json=asked)
            await_(lambda: "surefoot_heads_failures_total 0.0" not in client.get("/metrics").text)
            erased = client.post("/v1/experiments/shop/erasures", json={"person": "amy", "reason": "a letter"})
            assert erased.status_code == 200
            await_(lambda: Path(f"{heads}.erased").exists())
            lines = heads.read_text().splitlines()
            assert len(set(lines)) == len(lines), "a retry writes no head to the file again"
            with open_journal(database, read_only=True) as journal:
                noted = [event.payload for event in journal.read(JOURNAL)]
            assert len({*noted}) == len(noted), "nor to the journal"


def test_a_stop_does_not_wait_for_an_address_that_drips(tmp_path: Path) -> None:
    with dripping() as where:
        config = tmp_path / "service.toml"
        config.write_text(f'heads_url = "{where}"\nhead_seconds = 0.2\n')
        with Apart(tmp_path, config=config) as server:
            with httpx.Client(base_url=server.address, trust_env=False, timeout=60) as client:
                create(client)
                time.sleep(1.0)
            assert server.stop() == 0


def await_(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
