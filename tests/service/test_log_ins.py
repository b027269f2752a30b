"""Who was let in and who was not: the trail of the tokens, and refusals in the log with the address they came from."""

import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.errors import ConfigError
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import running


def test_every_change_of_the_tokens_leaves_a_line_without_a_secret(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    token = file.create(["decide"], owner="shop backend", experiments=["shop"], expires=time.time() + 60)
    kept = file.all()[0]
    file.revoke(kept.id)
    created, revoked = (json.loads(line) for line in file.trail.read_text().splitlines())
    assert (created["change"], revoked["change"]) == ("created", "revoked")
    for line in (created, revoked):
        assert (line["id"], line["roles"], line["owner"]) == (kept.id, ["decide"], "shop backend")
        assert line["experiments"] == ["shop"]
        assert line["by"]
        assert line["time"].startswith("20")
    text = file.trail.read_text()
    assert kept.hash not in text
    assert token.split("_", 2)[2] not in text
    assert file.trail.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_noted_is_not_done(tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    file.create(["admin"])
    before = file.path.read_bytes()
    file.trail.unlink()
    file.trail.mkdir()
    for change in (lambda: file.create(["admin"]), lambda: file.revoke(file.all()[0].id)):
        with pytest.raises(ConfigError, match=r"must be noted in .*tokens.trail"):
            change()
    assert file.path.read_bytes() == before


def lines_of(lines: list[bytes]) -> list[dict[str, Any]]:
    time.sleep(0.3)  # requests are logged together, a moment later
    return [json.loads(line) for line in b"".join(lines).splitlines()]


def bearer(token: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}"}


@pytest.mark.parametrize("level", ["info", "error"])
def test_refusals_are_logged_with_their_address_at_every_level(level: Any, tmp_path: Path) -> None:
    file, lines = TokenFile(tmp_path / "tokens"), list[bytes]()
    reader, other = file.create(["read"]), file.create(["read"], experiments=["winter"])
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(file.path), log=level)
    with running(settings, lines) as address, httpx.Client(base_url=address, trust_env=False) as client:
        for headers in ({}, bearer("surefoot_00000000_nobody"), bearer(reader)):
            client.get("/metrics", headers=headers)
        client.get("/v1/head", headers=bearer(other))
        client.get("/v1/experiments", headers=bearer(reader))
        found = [line for line in lines_of(lines) if line["route"] != "/readyz"]
    refused = [(line["status"], line["token"]) for line in found if line["level"] == "warning"]
    assert refused == [(401, None), (401, None), (403, reader.split("_")[1]), (403, other.split("_")[1])]
    reasons = [line["reason"] for line in found if line["level"] == "warning"]
    assert ["not known here" in reasons[1], "role 'metrics'" in reasons[2], "winter alone" in reasons[3]] == [True] * 3
    assert {line["address"] for line in found if line["level"] == "warning"} == {"127.0.0.1"}
    rest = [line for line in found if line["level"] == "info"]
    assert [line["status"] for line in rest] == ([200] if level == "info" else [])
    assert all("address" not in line for line in rest)


@pytest.mark.parametrize(("proxies", "address"), [([], "127.0.0.1"), (["127.0.0.1"], "203.0.113.9")])
def test_a_proxy_is_believed_only_where_it_is_named(proxies: list[str], address: str, tmp_path: Path) -> None:
    file, lines = TokenFile(tmp_path / "tokens"), list[bytes]()
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(file.path), proxies=proxies)
    with running(settings, lines) as server:
        # What stands left of the last address is the caller's own claim.
        httpx.get(f"{server}/v1/access", headers={"x-forwarded-for": "192.0.2.1, 203.0.113.9"}, trust_env=False)
        (line,) = (line for line in lines_of(lines) if line["status"] == 401)
    assert line["address"] == address


def test_a_file_that_was_edited_by_hand_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    ours, theirs = TokenFile(tmp_path / "tokens"), TokenFile(tmp_path / "tokens")
    kept, gone = (ours.create(["read"]).split("_")[1] for _ in range(2))
    theirs.find("")
    assert not caplog.records, "what is there at the start is no change"
    entries = [entry for entry in json.loads(ours.path.read_bytes()) if entry["id"] != gone]
    ours.path.write_text(json.dumps([{**entry, "roles": ["admin"]} for entry in entries]))
    time.sleep(0.6)  # a server looks at the file twice a second
    theirs.find("")
    found = {(record.message, record.__dict__["token"]) for record in caplog.records}
    assert found == {("a token was revoked", gone), ("a token is new", kept)}
