"""The server is killed while an app decides at the edge, comes back, and finds everything in order."""

import threading
import time
from pathlib import Path

import pytest

from surefoot.audit import audit_shards
from surefoot.journal import open_journal
from tests.service.servers import Apart
from tests.sharing.edges import Shop, environment_of, new_keys, play, reward_of, visit
from tests.sharing.experiments import findings


@pytest.mark.parametrize("kind", ["rows", "pair"])
def test_an_edge_goes_on_deciding_while_the_server_is_dead(tmp_path: Path, kind: str) -> None:
    new_keys(tmp_path)
    with Apart(tmp_path, environment=environment_of(tmp_path), database=tmp_path / "own.db") as server:
        shop = Shop(server.address, tmp_path, tmp_path, kind=kind)
        shop.create()
        with shop.edge(in_background=True, every=50, seconds=0.2) as edge:
            is_done, sources, slowest = threading.Event(), list[str](), list[float]()

            def visits() -> None:
                while not is_done.is_set():
                    began = time.perf_counter()
                    answer = visit(edge)
                    slowest.append(time.perf_counter() - began)
                    sources.append(answer.source)
                    edge.reward(answer.decision_id, reward_of(edge, answer))
                    time.sleep(0.002)

            deadline = time.monotonic() + 60.0
            while play(edge, 10) < (10 if kind == "rows" else 1):
                assert time.monotonic() < deadline
                time.sleep(0.05)
            visitor = threading.Thread(target=visits)
            visitor.start()
            time.sleep(0.3)
            with (
                edge.leases.renewal_lock
            ):  # not between a hand-in and its answer, when nobody knows what the lease is worth
                server.kill()
            before = len(sources)
            time.sleep(1.5)
            during = sources[before:]
            assert len(during) > 100
            assert kind == "pair" or set(during) == {"learner"}
            assert edge.leases.error is not None
            server.start()
            deadline = time.monotonic() + 30.0
            while edge.leases.error is not None:
                assert time.monotonic() < deadline
                time.sleep(0.05)
            is_done.set()
            visitor.join()
            while not edge.leases.renew():
                time.sleep(0.05)
            rounds = edge.status().rounds
            edge.leases.renewal_lock.acquire()
        told = shop.ask("GET", "/v1/experiments/shop/shards").json()["hub"]
        assert told["leased"]["reward"] <= max(0.0, told["pots"]["reward"])
        assert server.stop() == 0
    assert max(slowest) < 1.0  # nobody waited for the server, which was away for longer
    with open_journal(str(tmp_path / "hub.db")) as hub, open_journal(str(tmp_path / "own.db")) as own:
        report = audit_shards(hub, "shop", {"server": own})
    assert findings(report) == []
    assert report.is_clean
    assert report.shards["till"].tally.decisions == rounds
