"""What an edge cannot hand in it does not decide; and a server lets only so many in."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from surefoot.client import ServiceError, remote_hub
from surefoot.errors import InputError, JournalUnavailableError
from surefoot.service.settings import Limits
from surefoot.service.tokens import TokenFile
from tests.service.servers import POLICY, running
from tests.sharing.edges import ROWS, Shop, Way, chain_of, lease_of, new_keys, play, settings_of, visit, warmed
from tests.sharing.experiments import findings


def test_a_decision_that_fits_into_no_request_is_refused(shop: Shop) -> None:
    big: dict[str, Any] = {"features": np.tile(ROWS, (20_000, 1))} if shop.kind == "rows" else {"proposal": "x" * 10**6}
    with shop.edge() as edge:
        most = lease_of(edge).event_bytes
        with pytest.raises(InputError, match="at most"):
            visit(edge, **big)
        assert edge.status().rounds == 0
        # Up to what a number may take; what it takes is less.
        rows: dict[str, Any] = {"features": np.tile(ROWS, (most // 150, 1))}
        answer = visit(edge, **(rows if shop.kind == "rows" else {"proposal": "x" * (most - 2000)}))
        edge.abandon(answer.decision_id)
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_everything_is_sent_whatever_the_size_of_its_events(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_hub, "MOST_SENT", 2000)
    with shop.edge() as edge:
        for _ in range(3):
            play(edge, 1)
            visit(edge, **({"features": np.tile(ROWS, (100, 1))} if shop.kind == "rows" else {"proposal": "x" * 5000}))
        edge.leases.renew()
        edge.leases.hub.prepare(edge.journal.view(edge.name))
        assert [event.hash for event in shop.chain()] == [event.hash for event in chain_of(edge)]


def test_an_edge_has_left_once_the_service_has_its_last_event(shop: Shop) -> None:
    way = Way()
    with shop.edge(way=way) as edge:
        warmed(edge)
        take = edge.leases.hub.take

        def lossy(*args: Any, **kwargs: Any) -> Any:
            way.loses_answers = True
            return take(*args, **kwargs)

        edge.leases.hub.take = lossy
        with pytest.raises(JournalUnavailableError):
            edge.leases.leave()
        assert not edge.leases.has_left
        way.loses_answers, edge.leases.hub.take = False, take
        edge.leases.leave()
        assert edge.leases.has_left
    assert shop.shards["till"]["is_away"]
    assert findings(shop.audit()) == []


def test_a_server_lets_only_so_many_edges_in(tmp_path: Path) -> None:
    new_keys(tmp_path)
    with running(settings_of(tmp_path, limits=Limits(edges=2))) as address:
        shop = Shop(address, tmp_path, tmp_path)
        shop.create()
        with shop.edge("a") as edge:  # beside the server itself
            with pytest.raises(ServiceError, match="At most 2 shards"):
                shop.opened("b")
            edge.leases.leave()
        with shop.edge("b") as edge:
            assert play(edge, 1) == 0
        assert shop.shards.keys() == {"a", "b", "server"}


def test_a_token_lets_only_so_many_edges_in(tmp_path: Path) -> None:
    new_keys(tmp_path)
    tokens = TokenFile(tmp_path / "tokens")
    admin, *callers = (tokens.create([role], owner=role) for role in ("admin", "decide", "decide"))
    settings = settings_of(tmp_path, tokens=str(tokens.path), limits=Limits(edges_per_token=1))
    with running(settings) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:

        def ask(path: str, body: Any, secret: str) -> httpx.Response:
            return client.post(f"/v1/experiments{path}", json=body, headers={"authorization": f"Bearer {secret}"})

        body = {"name": "shop", "policy": "SafeLUCB", "settings": POLICY, "ledger": "sharded"}
        assert ask("", body, admin).status_code == 201
        answers = [
            ask("/shop/edges", {"shard": name, "token": "ab" * 16}, secret)
            for name, secret in (("a", callers[0]), ("a", callers[0]), ("b", callers[0]), ("b", callers[1]))
        ]
    assert [one.status_code for one in answers] == [201, 201, 422, 201]
    assert "edges_per_token" in answers[2].json()["detail"]


def test_names_end_where_they_end(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop()
    for wrong in ({"shard": "till\n"}, {"shard": ""}, {"token": "ab" * 16 + "\n"}, {"token": ""}, {"other": 1}):
        body = {"shard": "till", "token": "ab" * 16, **wrong}
        assert shop.ask("POST", f"/v1/experiments/{shop.name}/edges", body).status_code in (400, 422)
    assert shop.shards.keys() == {"server"}


def test_nobody_waits_for_a_shard_that_there_is_not(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop()
    answer = shop.ask("POST", f"/v1/experiments/{shop.name}/shards/none/loss", {"reason": "gone"})
    assert answer.status_code == 422
    assert "none has joined as 'none'" in answer.json()["detail"]
