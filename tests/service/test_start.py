"""A server that cannot start says why in one sentence, and ends with exit code 2; `config check` says it beforehand."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from surefoot.journal import open_journal
from surefoot.service.tokens import TokenFile
from tests.cli.shell import shell
from tests.service.servers import Apart, free_port


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        found.listen()
        yield int(found.getsockname()[1])


def run(*args: object, folder: Path) -> tuple[int, list[str]]:
    code, _, said = shell(*args, folder=folder)
    return code, said.splitlines()


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--database", "nowhere/shop.db"), "There must be a journal at nowhere/shop.db"),
        (("--database", "postgresql://me:secret@127.0.0.1:1/shop"), "PostgreSQL: connection failed"),
        (("--database", "text.db"), "It is not a SQLite file"),
        (("--database", "held.db"), "another has held.db open"),
        (("--database", "mysql://db/shop"), "but got 'mysql'"),
        (("--host", "0.0.0.0"), "Without tokens `host` must be a loopback address"),
    ],
)
def test_what_keeps_a_server_from_starting_is_one_sentence(
    options: tuple[str, ...], sentence: str, tmp_path: Path
) -> None:
    (tmp_path / "text.db").write_text("hello")
    with open_journal(tmp_path / "held.db"):
        code, said = run("serve", "--port", free_port(), *options, folder=tmp_path)
    assert code == 2
    (only,) = said
    assert only.startswith("surefoot: ")
    assert sentence in only
    assert "secret" not in only


def test_a_port_that_is_taken_is_named(taken: int, tmp_path: Path) -> None:
    code, said = run("serve", "--port", taken, folder=tmp_path)
    assert (code, len(said)) == (2, 1)
    assert f"listen at 127.0.0.1:{taken}, but address already in use" in said[0]
    assert list(tmp_path.iterdir()) == []  # nothing was made


def test_a_server_that_is_told_to_stop_ends_with_0(tmp_path: Path) -> None:
    server = Apart(tmp_path)
    server.start()
    assert server.process is not None
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60) == 0
    events = [json.loads(line)["event"] for line in server.log.read_text().splitlines() if '"event"' in line]
    assert (events.count("serving"), events[-1]) == (1, "stopped")


def test_a_server_prints_the_address_to_open_once_it_answers_there(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "surefoot", "serve", "--port", "0"]
    with subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        said = process.stdout.readline().split()
        assert "<title>surefoot</title>" in httpx.get(said[1], trust_env=False).text
        process.terminate()
    assert (said[0], " ".join(said[2:])) == ("Open", "in a browser. Ctrl-C stops the server.")


def test_a_token_file_that_is_missing_is_said_at_once_and_read_when_it_is_made(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    with Apart(tmp_path, tokens=file) as server:
        (said,) = (line for line in server.log.read_text().splitlines() if '"no token file"' in line)
        assert json.loads(said)["tokens"] == str(file)
        token = TokenFile(file).create(["read"])
        headers = {"authorization": f"Bearer {token}"}
        assert httpx.get(f"{server.address}/v1/experiments", headers=headers, trust_env=False).status_code == 200


def checked(folder: Path, **settings: object) -> tuple[int, str]:
    file = folder / "service.toml"
    file.write_text("\n".join(f"{name} = {json.dumps(value)}" for name, value in settings.items()))
    done = shell("config", "check", "--config", file, folder=folder)
    return done.code, done.out + done.err


def test_what_a_server_needs_is_checked_without_starting_one(taken: int, tmp_path: Path) -> None:
    port = free_port()
    code, said = checked(tmp_path, database="shop.db", port=port)
    assert (code, "is not there yet" in said, f"Port {port} of 127.0.0.1 is free" in said) == (0, True, True)
    assert not (tmp_path / "shop.db").exists()
    with open_journal(tmp_path / "shop.db") as journal:
        journal.create("shop", b"{}", time=0.0)
        # A server that runs holds it: reading is what can be tried.
        code, said = checked(tmp_path, database="shop.db", port=port)
        assert (code, "has 1 experiment." in said) == (0, True)
    code, said = checked(tmp_path, database="nowhere/shop.db", port=port)
    assert (code, "must lie in a folder" in said) == (2, True)
    code, said = checked(tmp_path, database="postgresql://me:secret@127.0.0.1:1/shop", port=port)
    assert (code, "connection failed" in said, "secret" in said) == (2, True, False)
    code, said = checked(tmp_path, database="shop.db", port=taken)
    assert (code, "address already in use" in said) == (2, True)
    code, said = checked(tmp_path, database="shop.db", port=port, tokens="none.tokens")
    assert (code, "there is none at none.tokens" in said) == (2, True)
    TokenFile(tmp_path / "some.tokens").create(["read"])
    code, said = checked(tmp_path, database="shop.db", port=port, tokens="some.tokens")
    assert (code, "has 1 token." in said) == (0, True)


def test_probes_take_head(client: httpx.Client) -> None:
    for path in ("/livez", "/readyz"):
        asked, got = client.head(path), client.get(path)
        assert (asked.status_code, asked.content) == (200, b"")
        assert asked.headers["content-type"] == got.headers["content-type"]
    assert client.head("/v1/experiments").status_code == 405


def test_a_bad_id_in_a_batch_refuses_that_one_alone(client: httpx.Client) -> None:
    body = {"actions": [{"id": "a", "features": [0.1, 0.1]}], "decision_id": "good"}
    assert client.post("/v1/experiments/shop/decisions", json=body).status_code == 201
    ids = ["", "good", "x" * 201, "nobody", "a\u0000b"]
    rewards = [{"decision_id": one, "value": 1.0} for one in ids]
    found = client.post("/v1/experiments/shop/reward-batches", json={"rewards": rewards})
    assert found.status_code == 200
    told = [one.get("problem", {}).get("type", "accepted") for one in found.json()["results"]]
    assert told == [
        "/problems/invalid",
        "accepted",
        "/problems/invalid",
        "/problems/unknown-decision",
        "/problems/invalid",
    ]
