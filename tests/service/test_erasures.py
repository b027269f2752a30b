"""Erasure over HTTP: by whom, what is left, what a server keeps in memory, and what its log never held."""

import time
from pathlib import Path

import httpx

from surefoot.audit import audit
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import ACTIONS, create, running

ADA = "Ada-Lovelace"
SHOP = "/v1/experiments/shop"


def visit(client: httpx.Client, decision_id: str) -> httpx.Response:
    body = {"decision_id": decision_id, "actions": ACTIONS, "context": {"person": ADA, "note": "of Ockham"}}
    return client.post(f"{SHOP}/decisions", json=body)


def test_a_person_is_erased_and_the_audit_names_the_token(tmp_path: Path) -> None:
    database, lines = str(tmp_path / "shop.journal"), list[bytes]()
    file = TokenFile(tmp_path / "tokens")
    token = file.create(["admin"])
    headers = {"authorization": f"Bearer {token}"}
    settings = Settings(database=database, tokens=str(tmp_path / "tokens"))
    with (
        running(settings, lines) as address,
        httpx.Client(base_url=address, headers=headers, trust_env=False, timeout=60) as client,
    ):
        create(client)
        for n in range(6):
            assert visit(client, f"{ADA}-{n}").status_code == 201
            client.post(f"{SHOP}/decisions/{ADA}-{n}/reward", json={"value": 0.5})
        assert ADA in client.get(f"{SHOP}/decisions").text
        assert client.post(f"{SHOP}/erasures", json={"person": ADA}).status_code == 400, "a reason is asked for"
        unknown = {"decision_ids": [f"{ADA}-1", "nobody"], "reason": "asked by letter"}
        assert client.post(f"{SHOP}/erasures", json=unknown).status_code == 404
        told = client.post(f"{SHOP}/erasures", json={"person": ADA, "reason": "asked by letter"}).json()
        assert told["erased"] == 6
        assert client.get(f"{SHOP}/head").json()["number"] == told["head"]["number"]
        assert ADA not in client.get(f"{SHOP}/decisions").text
        assert client.get(f"{SHOP}/decisions/{ADA}-1").status_code == 404
        assert client.get(SHOP).json()["learned"] == 6
    with open_journal(database, read_only=True) as journal:
        report = audit(journal, "shop")
        assert report.is_clean, list(report.findings)
        assert [(one.by, one.reason) for _, one in report.tally.erasures] == [(file.all()[0].id, "asked by letter")]
    for path in tmp_path.iterdir():
        assert ADA.encode() not in path.read_bytes()
    assert ADA.encode() not in b"".join(lines)


def test_ids_are_logged_where_that_is_asked_for(database: str) -> None:
    lines = list[bytes]()
    with (
        running(Settings(database=database, log_ids=True), lines) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        create(client)
        visit(client, "visit-1")
    assert b'"decision_id":"visit-1"' in b"".join(lines)


def test_what_is_older_than_the_server_keeps_is_erased(database: str) -> None:
    settings = Settings(database=database, retention_days=0.2 / 86_400, window_seconds=0.1)
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        create(client)
        create(client, "open", sealed=False)
        visit(client, "visit-1")
        deadline = time.monotonic() + 60
        while client.get(f"{SHOP}/decisions/visit-1").status_code != 404 and time.monotonic() < deadline:
            time.sleep(0.05)
        assert client.get(f"{SHOP}/decisions/visit-1").status_code == 404
        assert client.get("/v1/experiments").json()["damaged"] == []
    with open_journal(database, read_only=True) as journal:
        report = audit(journal, "shop")
        assert report.is_clean
        assert {one.by for _, one in report.tally.erasures} == {"retention_days"}


def test_an_experiment_that_is_not_sealed_says_why_nothing_can_be_erased(database: str) -> None:
    with (
        running(Settings(database=database)) as address,
        httpx.Client(base_url=address, trust_env=False, timeout=60) as client,
    ):
        create(client, sealed=False)
        answer = client.post(f"{SHOP}/erasures", json={"person": ADA, "reason": "asked by letter"})
    assert answer.status_code == 422
    assert "Only a sealed experiment" in answer.json()["detail"]
