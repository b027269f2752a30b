"""The server is killed while a shop decides at the edge, comes back, and finds everything in order."""

import os
import threading
import time
from pathlib import Path
from typing import Any

import httpx

from surefoot.audit import audit_shards
from surefoot.journal import open_journal
from tests.edge.edges import ROWS, Shop, findings, new_edge, new_keys, options_of, play
from tests.service.servers import Apart


def test_the_shop_goes_on_deciding_while_the_server_is_dead(tmp_path: Path) -> None:
    new_keys(tmp_path)
    told = {f"SUREFOOT_{name.upper()}": str(value) for name, value in options_of(tmp_path).items()}
    with Apart(tmp_path, environment={**os.environ, **told}, database=tmp_path / "own.db") as server:
        Shop(server.address, tmp_path, tmp_path).create()
        options: dict[str, Any] = {"in_background": True, "every": 50, "seconds": 0.2, "timeout": 2.0}
        with new_edge(server.address, tmp_path, **options) as edge:
            is_done, learner, slowest = threading.Event(), list[bool](), list[float]()

            def visit() -> None:
                while not is_done.is_set():
                    began = time.perf_counter()
                    learner.append(edge.decide(ROWS, baseline=0).source == "learner")
                    slowest.append(time.perf_counter() - began)
                    time.sleep(0.002)

            while play(edge, 10) < 10:
                time.sleep(0.05)
            visitor = threading.Thread(target=visit)
            visitor.start()
            time.sleep(0.3)
            with edge._renewing:  # not between a hand-in and its answer, when nobody can know what the lease is worth
                server.kill()
            before = len(learner)
            time.sleep(1.5)
            during = learner[before:]
            assert len(during) > 200
            assert all(during)
            server.start()
            deadline = time.monotonic() + 30.0
            # In order again once entries of the outage have arrived, and a new lease with them.
            while edge.lease_error is not None or edge.unsent > 60:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            is_done.set()
            visitor.join()
            for number in range(1, edge.rounds + 1):
                edge.reward(f"till:{number}", 0.52)
            edge.renew()
            rounds = edge.rounds
        found = httpx.get(f"{server.address}/v1/experiments/shop/shards", trust_env=False).json()
        assert found["leased"] <= found["pot"]
        assert server.stop() == 0
    assert max(slowest) < 1.0  # nobody waited for the server, which was away for longer
    with open_journal(str(tmp_path / "hub.db")) as hub, open_journal(str(tmp_path / "own.db")) as own:
        report = audit_shards(hub, "shop", {"server": own})
    assert findings(report) == []
    assert report.is_clean
    assert report.shards["till"].tally.decisions == rounds
