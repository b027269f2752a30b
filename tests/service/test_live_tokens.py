"""A live stream ends with its token."""

import time
from pathlib import Path

import httpx
import pytest

from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.page_browser import Tab
from tests.service.servers import create, running

SECONDS = 3.0


@pytest.mark.parametrize("how", ["expires", "is revoked"])
def test_a_stream_ends_when_its_token(how: str, tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    admin = {"authorization": f"Bearer {file.create(['admin'])}"}
    with (
        running(Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))) as address,
        httpx.Client(base_url=address, headers=admin, trust_env=False, timeout=60) as client,
    ):
        create(client)
        expires = time.time() + SECONDS if how == "expires" else None
        reader = {"authorization": f"Bearer {file.create(['read'], expires=expires)}"}
        time.sleep(0.6)  # a server looks at the file twice a second
        # One that stays open says nothing for fifteen seconds, which ends the test by `timeout`.
        with client.stream("GET", "/v1/experiments/shop/live", headers=reader, timeout=2 * SECONDS) as stream:
            lines = stream.iter_lines()
            assert next(lines) == "event: update"
            if how == "is revoked":
                file.revoke(file.all()[-1].id)
            assert all(not line.startswith("event") for line in lines)
        assert client.get("/v1/experiments/shop", headers=reader).status_code == 401
        with client.stream("GET", "/v1/experiments/shop/live") as stream:
            assert next(stream.iter_lines()) == "event: update", "other tokens go on"


@pytest.mark.parametrize("broken", [b"", b'[{"id": "3f9c', b"\xff\xfe", b"{}", None])
def test_a_broken_token_file_keeps_the_last_good_tokens(broken: bytes | None, tmp_path: Path) -> None:
    file = TokenFile(tmp_path / "tokens")
    known = file.create(["admin"], expires=time.time() + 1000.0)
    admin = {"authorization": f"Bearer {known}"}
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        with httpx.Client(base_url=address, headers=admin, trust_env=False, timeout=60) as operator:
            create(operator)
        assert "surefoot_tokens_readable 1.0" in client.get("/metrics", headers=admin).text
        whole = file.path.read_bytes()
        file.path.unlink() if broken is None else file.path.write_bytes(broken)
        time.sleep(0.6)  # a server looks at the file twice a second
        stranger = client.get("/v1/experiments", headers={"authorization": "Bearer surefoot_00000000_new"})
        assert (stranger.status_code, stranger.json()["type"]) == (503, "/problems/tokens-unreadable")
        assert "retry-after" in stranger.headers
        assert str(tmp_path) not in stranger.text
        assert client.get("/v1/experiments/shop", headers=admin).status_code == 200
        page = client.get("/metrics", headers=admin).text
        assert "surefoot_tokens_readable 0.0" in page
        assert f'surefoot_token_expiry_timestamp_seconds{{token="{known.split("_")[1]}"}}' in page
        file.path.write_bytes(whole)
        time.sleep(0.6)
        assert client.get("/v1/experiments", headers={"authorization": "Bearer surefoot_0_new"}).status_code == 401
        assert "surefoot_tokens_readable 1.0" in client.get("/metrics", headers=admin).text


def test_tokens_that_expire_soon_are_on_the_page_of_whoever_can_renew_them(tab: Tab, tmp_path: Path) -> None:
    file, day = TokenFile(tmp_path / "tokens"), 86_400.0
    admin, late = file.create(["admin"]), file.create(["decide"], expires=time.time() + 30 * day)
    soon, own = (file.create([role], expires=time.time() + 3 * day) for role in ("decide", "read"))
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens"))
    with running(settings) as address:
        for token, ids in ((admin, {soon, own}), (own, {own}), (late, set())):
            log_in = {"authorization": f"Bearer {token}"}
            told = httpx.get(f"{address}/v1/access", headers=log_in, trust_env=False).json()
            assert set(told["expiring"]) == {one.split("_")[1] for one in ids}
        tab.call("Network.enable")
        tab.call("Network.setExtraHTTPHeaders", headers={"Authorization": f"Bearer {admin}"})
        tab.open(address)
        tab.wait("document.getElementById('expiring').textContent.includes('expire soon')", seconds=60.0)
        text = tab.text()
        assert [one.split("_")[1] in text for one in (soon, own, late)] == [True, True, False]
        assert tab.complaints == []
