"""Forks and corrections over HTTP: who did it, what is lost, and what is refused."""

from pathlib import Path

import httpx

from surefoot.audit import audit
from surefoot.journal import open_journal
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import ACTIONS, create, running

SHOP = "/v1/experiments/shop"


def test_a_fork_and_a_correction_over_http(tmp_path: Path) -> None:
    database, file = str(tmp_path / "shop.journal"), TokenFile(tmp_path / "tokens")
    secret = file.create(["admin"], owner="Ada")
    ada = file.all()[0].by
    with (
        running(Settings(database=database, tokens=str(tmp_path / "tokens"))) as address,
        httpx.Client(
            base_url=address, headers={"authorization": f"Bearer {secret}"}, trust_env=False, timeout=60
        ) as client,
    ):
        create(client)
        for n in range(6):
            client.post(f"{SHOP}/decisions", json={"decision_id": f"v{n}", "actions": ACTIONS})
        for n in (0, 1, 2, 4):
            client.post(f"{SHOP}/decisions/v{n}/reward", json={"value": 0.5})
        # The reward of v4 waits for that of v3, so that it can still be mended.
        mended = client.post(f"{SHOP}/decisions/v4/correction", json={"value": 0.4, "reason": "counted twice"}).json()
        assert (set(mended), mended["decision_id"]) == ({"decision_id", "head"}, "v4")
        late = client.post(f"{SHOP}/decisions/v0/correction", json={"value": 0.4, "reason": "counted twice"})
        assert (late.status_code, late.json()["type"]) == (409, "/problems/decision-settled")
        asked = {
            "name": "bolder",
            "settings": {"alpha": 0.3},
            "corrections": {"v0": 0.4},
            "reason": "more may be risked",
        }
        unknown = client.post(f"{SHOP}/forks", json={**asked, "corrections": {"nobody": 0.4}})
        assert (unknown.status_code, unknown.json()["type"]) == (404, "/problems/unknown-decision")
        made = client.post(f"{SHOP}/forks", json=asked)
        assert made.status_code == 201, made.text
        assert made.json()["carried"] == 3
        assert any("waits for an earlier one: 3." in sentence for sentence in made.json()["lost"])
        assert client.get("/v1/experiments/bolder").json()["mode"] == "shadow"
        told = client.get("/v1/experiments/bolder/settings").json()
        assert (told["forked_from"], told["by"], told["history_rows"]) == ("shop", ada, 3)
        assert client.post(f"{SHOP}/forks", json=asked).status_code == 409
        assert client.post(f"{SHOP}/forks", json={**asked, "name": "x", "settings": {"alhpa": 1}}).status_code == 422
        assert client.post(f"{SHOP}/forks", json={"name": "y"}).status_code == 400
        huge = {**asked, "name": "z", "settings": {"dim": 100_000}}
        assert client.post(f"{SHOP}/forks", json=huge).status_code == 422
    with open_journal(database, read_only=True) as journal:
        assert journal.names() == ["bolder", "shop"]
        assert all(audit(journal, name).is_clean for name in journal.names())
        assert next(journal.read("bolder")).value()["by"] == ada
        assert next(journal.read("bolder")).value()["history"]["rewards"] == [0.4, 0.5, 0.5]
        assert [event.value()["by"] for event in journal.read("shop") if event.kind == "corrected"] == [ada]
