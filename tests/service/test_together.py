"""Several servers on one PostgreSQL: one ledger, whichever of them is asked."""

import asyncio
from contextlib import ExitStack
from pathlib import Path

from surefoot.audit import audit
from surefoot.client import AsyncClient, Client
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.rounds import Answer, events
from tests.journal.servers import PostgresServer, new_database
from tests.service.servers import POLICY, Apart
from tests.service.test_kills import reward_of, rows_of


async def visit(address: str, prefix: str, visits: int) -> list[Answer]:
    async with AsyncClient(address, timeout=60) as client:

        async def one(decision_id: str) -> Answer:
            made = await client.decide("shop", rows_of(decision_id), decision_id=decision_id)
            assert (await client.reward("shop", decision_id, reward_of(decision_id))).is_accepted
            return made

        return await asyncio.gather(*(one(f"{prefix}.{n}") for n in range(visits)))


def test_two_servers_share_an_experiment_and_the_audit_is_clean(tmp_path: Path, server: PostgresServer) -> None:
    database, visits = new_database(server), 60
    with ExitStack() as stack:
        servers = []
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            servers.append(stack.enter_context(Apart(tmp_path / name, database=database)))
        with Client(servers[0].address, patience=120) as client:
            client.create_experiment("shop", POLICY, mode="guarded")
        with Client(servers[1].address, patience=120, timeout=60) as other:  # the other one finds it by itself
            assert other.experiment("shop")["rounds"] == 0

        async def visit_both() -> list[Answer]:
            found = await asyncio.gather(*(visit(one.address, one.log.parent.name, visits) for one in servers))
            return [decision for some in found for decision in some]

        told = asyncio.run(visit_both())
        with Client(servers[0].address, patience=60) as client:
            assert client.experiment("shop")["rounds"] == 2 * visits
        with Client(servers[1].address, patience=60, timeout=60) as other:
            repeated = other.decide("shop", rows_of("a.0"), decision_id="a.0")
            assert repeated.is_repeat
    with open_journal(database) as journal:
        rounds = [event for event in journal.read("shop") if event.kind == events.ROUND]
        assert len(rounds) == len({decision.round for decision in told}) == 2 * visits
        assert Experiment.open(journal, "shop").status().rewards == 2 * visits
        report = audit(journal, "shop")
    assert report.is_clean, list(report.findings)
