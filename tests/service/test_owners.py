"""Who did it: tokens have owners, whom events name; they expire, and may be for one experiment alone."""

import multiprocessing
import time
from pathlib import Path

import httpx
import pytest

from surefoot.audit import audit
from surefoot.errors import ConfigError
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import ACTIONS, POLICY, create, running

SHOP = "/v1/experiments/shop"


def bearer(secret: str) -> dict[str, str]:
    return {"authorization": f"Bearer {secret}"}


def test_every_word_names_the_owner_of_its_token(tmp_path: Path) -> None:
    database, file = str(tmp_path / "shop.journal"), TokenFile(tmp_path / "tokens")
    headers = bearer(file.create(["admin"], owner="Ada Lovelace"))
    ada = f"Ada Lovelace ({file.all()[0].id})"
    with (
        running(Settings(database=database, tokens=str(tmp_path / "tokens"))) as address,
        httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60) as client,
    ):
        create(client)
        assert client.get("/v1/access").json()["by"] == ada
        for n in range(3):
            client.post(f"{SHOP}/decisions", json={"decision_id": f"v{n}", "actions": ACTIONS})
        said = client.post(f"{SHOP}/decisions/v0/void", json={"action": "red", "reason": "sold out"})
        assert (said.status_code, "is_repeat" in said.json()) == (200, False)
        client.post(f"{SHOP}/decisions/v1/abandon", json={"reason": "lost"})
        for n in range(500):
            asked = {"decision_id": f"w{n}", "actions": ACTIONS}
            if client.post(f"{SHOP}/decisions", json=asked).json()["source"] == "learner":
                break
            client.post(f"{SHOP}/decisions/w{n}/reward", json={"value": 0.9 if n % 2 else 0.7})
        assert client.post(f"{SHOP}/fallbacks", json=asked).json()["is_voided"]
        client.put(f"{SHOP}/mode", json={"mode": "paused", "reason": "a pause"})
        client.post(f"{SHOP}/erasures", json={"decision_ids": ["v2"], "reason": "asked by letter"})
    with open_journal(database, read_only=True) as journal:
        told = {event.kind: event.value().get("by") for event in journal.read("shop")}
        voided = [event.value() for event in journal.read("shop") if event.kind == "voided"]
        assert [one["by"] for one in voided] == [ada, ada], "a fallback is somebody's word, too"
        assert audit(journal, "shop").is_clean
    assert {kind: told[kind] for kind in ("created", "voided", "abandoned", "mode", "erased")} == dict.fromkeys(
        ("created", "voided", "abandoned", "mode", "erased"), ada
    )


def test_a_token_that_has_expired_is_refused(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    secret, lasting = file.create(["read"], expires=time.time() + 0.4), file.create(["read"])
    assert file.find(secret) is not None
    time.sleep(0.5)
    assert file.find(secret) is None
    assert file.find(lasting) is not None
    with pytest.raises(ConfigError, match="still to come"):
        file.create(["read"], expires=time.time() - 1.0)


def test_a_token_for_one_experiment_is_for_no_other(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    admin, scoped = file.create(["admin"]), file.create(["admin"], experiments=["shop"])
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        client.headers = httpx.Headers(bearer(admin))
        create(client)
        create(client, "winter")
        client.headers = httpx.Headers(bearer(scoped))
        asked = {"actions": ACTIONS}
        assert client.post(f"{SHOP}/decisions", json=asked).status_code == 201
        others = [
            client.post("/v1/experiments/winter/decisions", json=asked),
            client.post("/v1/experiments/winter/decision-batches", json={"decisions": [asked]}),
            client.get("/v1/experiments/winter"),
            client.put("/v1/experiments/winter/mode", json={"mode": "paused"}),
            client.get("/v1/experiments/winter/head"),
            client.post("/v1/experiments", json={"name": "summer", "settings": POLICY}),
            client.get("/metrics"),
            client.get("/v1/head"),
        ]
        assert [answer.status_code for answer in others] == [403] * len(others)
        assert {answer.json()["type"] for answer in others} == {"/problems/not-allowed"}
        assert [one["name"] for one in client.get("/v1/experiments").json()["experiments"]] == ["shop"]
        assert client.get("/v1/access").json()["experiments"] == ["shop"]
        for path in ("%77inter/decisions", "/winter/decisions", "winter//decisions", "//winter/head", "winter/"):
            refused = [client.post(f"/v1/experiments/{path}", json=asked), client.get(f"/v1/experiments/{path}")]
            assert not [answer for answer in refused if answer.status_code < 400], f"however it is spelt: {path}"
        for path in ("//v1/experiments/winter", "/v1//experiments/winter", "//metrics", "/metrics/", "/v1//head"):
            assert client.get(f"{address}{path}").status_code == 403


def _create(path: Path) -> None:
    for _ in range(5):
        TokenFile(path).create(["read"])


def test_tokens_that_are_created_at_once_all_survive(tmp_path: Path) -> None:
    path, context = tmp_path / "tokens", multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.map(_create, [path] * 4)
    assert len(TokenFile(path).all()) == 20


def test_a_file_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    path.write_text(f'[{{"id":"3f9c21aa","roles":["read"],"hash":"{"0" * 64}","created":1.0,"note":""}}]')
    assert TokenFile(path).all()[0].by == "3f9c21aa"
