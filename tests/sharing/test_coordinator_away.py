"""The place where shards meet does not answer: they go on within their leases, then play the baseline, then recover."""

import time
from collections.abc import Iterator
from typing import Any, Literal

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit_shards
from surefoot.errors import JournalError
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import open_journal
from tests.journal.proxy import Proxy
from tests.journal.servers import PostgresServer, new_database
from tests.sharing.shards import SETTINGS, World

Outage = Literal["frozen", "cut"]


@pytest.fixture
def hub(server: PostgresServer) -> Iterator[tuple[Proxy, str]]:
    """A proxy, and the address past it."""
    direct = new_database(server)
    proxy = Proxy(direct)
    yield proxy, direct
    proxy.close()


def visit(world: World, shop: Experiment, sources: list[str], slowest: list[float]) -> None:
    began = time.perf_counter()
    answer = shop.decide(world.rows, baseline=world.baseline)
    slowest.append(time.perf_counter() - began)
    sources.append(answer.source)
    shop.reward(answer.decision_id, world.played(answer.action))


def outlast(hub: tuple[Proxy, str], outage: Outage, seconds: float) -> None:
    proxy, direct = hub
    world = World(np.random.default_rng(7))
    settings: dict[str, Any] = {**SETTINGS, "constraint": {"name": "reserve", "granted": 6.0}}
    slowest = list[float]()
    with open_journal(proxy.url) as place, open_journal("memory:") as one, open_journal("memory:") as two:
        create_shared(place, "shop", surefoot.SafeLUCB(**settings), mode="guarded", skew=5.0)
        journals = {"a": one, "b": two}
        shops: list[Any] = [
            Experiment.join(place, "shop", journal, shard=shard, every=40, seconds=0.2)
            for shard, journal in journals.items()
        ]
        proxy.is_silent, proxy.is_cut = outage == "frozen", outage == "cut"
        until, away = time.monotonic() + seconds, [list[str](), list[str]()]
        while time.monotonic() < until:
            for shop, sources in zip(shops, away, strict=True):
                visit(world, shop, sources, slowest)
            time.sleep(0.005)
        assert all(sources[:3] == ["learner"] * 3 for sources in away)
        for sources in away:  # the leases are spent, but for what rounds of the baseline have earned since
            assert sources[-100:].count("baseline") > 70
        assert world.least > -6.0
        if outage == "cut":
            assert all(isinstance(shop.leases.error, JournalError) for shop in shops)
        proxy.is_silent = proxy.is_cut = False
        deadline, after = time.monotonic() + 30.0, [list[str](), list[str]()]
        while not all(set(sources[-10:]) == {"learner"} for sources in after):
            assert time.monotonic() < deadline
            for shop, sources in zip(shops, after, strict=True):
                visit(world, shop, sources, slowest)
            time.sleep(0.005)
        for shop in shops:
            while not shop.leases.renew():
                time.sleep(0.01)
        assert max(slowest) < 1.0  # no decision waited for the hub
        assert world.least > -6.0
        with open_journal(direct) as straight:
            assert audit_shards(straight, "shop", journals).is_clean


@pytest.mark.parametrize("outage", ["frozen", "cut"])
def test_shards_go_on_without_their_coordinator_and_recover(hub: tuple[Proxy, str], outage: Outage) -> None:
    outlast(hub, outage, 2.0)


@pytest.mark.long
@pytest.mark.parametrize("outage", ["frozen", "cut"])
def test_a_minute_without_the_coordinator(hub: tuple[Proxy, str], outage: Outage) -> None:
    outlast(hub, outage, 60.0)
