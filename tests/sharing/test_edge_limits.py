"""What an edge cannot hand in it does not decide, and what the service cannot read it refuses in words."""

import time
from pathlib import Path
from typing import Any

import httpx
import msgspec
import numpy as np
import pytest

from surefoot.client import ServiceError
from surefoot.edge import edge_renewal
from surefoot.edge.edge_entries import Decided, framed, read_entries
from surefoot.edge.edge_messages import EdgeLease, HandInEntries, JoinEdge
from surefoot.errors import InputError, JournalUnavailableError
from surefoot.service.settings import Limits
from surefoot.service.tokens import TokenFile
from tests.edge.edges import ROWS, Shop, findings, new_keys, play, settings_of, warmed
from tests.service.servers import POLICY, running


def test_a_decision_that_fits_into_no_request_is_refused(shop: Shop) -> None:
    many = np.tile(ROWS, (20_000, 1))
    with shop.edge() as edge:
        for actions in (many, {f"{n:0100}": row for n, row in enumerate(many[:7000])}):
            with pytest.raises(InputError, match="fit into one request"):
                edge.decide(actions)
        assert edge.rounds == 0
        most = (edge._head.entry_bytes - 2000) // 16
        edge.decide(many[:most], baseline=0)
        with pytest.raises(InputError, match="fit into one request"):
            edge.decide(many[: most + 1], baseline=0)
        edge.abandon("till:1")
        edge.renew()
    assert findings(shop.audit()) == []


def test_everything_is_sent_whatever_the_size_of_its_entries(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(edge_renewal, "PART", 2000)
    with shop.edge() as edge:
        for _ in range(3):
            play(edge, 1)
            edge.decide(np.tile(ROWS, (100, 1)), baseline=0)
        edge.renew()
        assert (edge._journal.shard.lease.number, edge.unsent) == (2, 1)


def test_an_edge_has_left_once_the_service_has_its_last_entry(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.edge() as edge:
        warmed(edge)
        taken, leaving = edge._service.hand_in, list[HandInEntries]()

        def lossy(shard: str, given: HandInEntries) -> EdgeLease:
            leaving.extend([given] * given.leaves)
            if given.leaves and len(leaving) == 2:
                raise JournalUnavailableError("away")
            return taken(shard, given)

        monkeypatch.setattr(edge_renewal, "PART", 200)
        monkeypatch.setattr(edge._service, "hand_in", lossy)
        sent = edge._send

        def busy(*, leaves: bool = False) -> Any:
            told = sent(leaves=leaves)
            if not leaves:
                play(edge, 5)  # so that the end comes after several requests
            return told

        monkeypatch.setattr(edge, "_send", busy)
        with pytest.raises(JournalUnavailableError):
            edge.leave()
        left = [edge._has_left]
        edge.leave()
        assert [*left, edge._has_left] == [False, True]
    found = shop.ask("GET", f"/v1/experiments/{shop.name}/shards").json()["shards"]
    assert [one["is_away"] for one in found if one["name"] == "till"] == [True]
    assert findings(shop.audit()) == []


def test_a_server_lets_only_so_many_edges_in(tmp_path: Path) -> None:
    new_keys(tmp_path)
    with running(settings_of(tmp_path, limits=Limits(edges=2))) as address:
        shop = Shop(address, tmp_path, tmp_path)
        shop.create()
        with shop.edge("a") as edge:  # beside the server itself
            with pytest.raises(ServiceError, match="At most 2 shards"):
                shop.edge("b")
            edge.leave()
        with shop.edge("b") as edge:
            assert play(edge, 1) == 0
        assert {shard["name"] for shard in shop.ask("GET", "/v1/experiments/shop/shards").json()["shards"]} == {
            "a", "b", "server",
        }  # fmt: skip


def test_a_token_lets_only_so_many_edges_in(tmp_path: Path) -> None:
    new_keys(tmp_path)
    file = TokenFile(tmp_path / "tokens")
    admin, *callers = (file.create([role], owner=role) for role in ("admin", "decide", "decide"))
    settings = settings_of(tmp_path, tokens=str(file.path), limits=Limits(edges_per_token=1))
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:

        def ask(path: str, body: Any, secret: str) -> httpx.Response:
            return client.post(f"/v1/experiments{path}", json=body, headers={"authorization": f"Bearer {secret}"})

        body = {"name": "shop", "settings": POLICY, "ledger": "sharded"}
        assert ask("", body, admin).status_code == 201
        found = [
            ask("/shop/edges", {"shard": name, "token": "ab" * 16}, secret)
            for name, secret in (("a", callers[0]), ("a", callers[0]), ("b", callers[0]), ("b", callers[1]))
        ]
    assert [one.status_code for one in found] == [201, 201, 422, 201]
    assert "edges_per_token" in found[2].json()["detail"]


def test_rows_that_are_none_are_refused_in_words(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 1)
        bundle = edge._journal.bundle.bundle
        honest = [entry for entry, _ in read_entries(edge._journal.part(10**9).data)]
        for wrong in ({"actions": 10**18}, {"actions": 3}, {"actions": 2**63 - 1}):
            lie = [msgspec.structs.replace(e, rows=b"", **wrong) if isinstance(e, Decided) else e for e in honest]
            told: dict[str, Any] = {"head": bundle.head, "signature": bundle.signature, "sent": time.time()}
            entries, follows = b"".join(map(framed, lie)), edge._journal.follows
            with pytest.raises(ServiceError, match="rows") as refused:
                edge._service.hand_in(
                    "till", HandInEntries(token=edge._journal.token, follows=follows, entries=entries, **told)
                )
            assert refused.value.status == 422
        edge.renew()


def test_names_and_secrets_end_where_they_end(shop: Shop) -> None:
    for wrong in ({"shard": "till\n"}, {"token": "ab" * 16 + "\n"}, {"catalogue": "ab" * 32 + "\n"}):
        body = {"shard": "till", "token": "ab" * 16, **wrong}
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(body, JoinEdge)
        assert shop.ask("POST", f"/v1/experiments/{shop.name}/edges", body).status_code == 400


def test_nobody_waits_for_a_shard_that_there_is_not(shop: Shop) -> None:
    answer = shop.ask("POST", f"/v1/experiments/{shop.name}/shards/none/loss", {"reason": "gone"})
    assert answer.status_code == 422
    assert "none has joined as 'none'" in answer.json()["detail"]
