"""A clock that is set, ahead or back, stops no edge for longer than it is wrong, and puts no expiry off."""

import time
from typing import Any

import msgspec
import pytest

from surefoot.client import ServiceError
from surefoot.edge import edge_log
from surefoot.edge.edge_entries import LeaseHandedIn, framed, read_entries
from surefoot.edge.edge_messages import HandInEntries
from surefoot.errors import AssumptionError
from tests.edge.edges import ROWS, Shop, findings, play, warmed


class Clock:
    """A clock that somebody sets."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


@pytest.mark.parametrize("jump", [3600.0, -3600.0])
def test_a_clock_that_jumped_and_is_right_again_costs_nothing(shop: Shop, jump: float) -> None:
    clock = Clock()
    with shop.edge(clock=clock) as edge:
        warmed(edge)
        clock.ahead = jump
        play(edge, 5)
        clock.ahead = 0.0
        play(edge, 5)
        lease = edge._journal.shard.lease.number
        edge.renew()
        assert edge._journal.shard.lease.number == lease + 1
        assert play(edge, 5) == 5
        edge.renew()
    assert findings(shop.audit()) == []


def test_a_clock_that_stays_wrong_is_told_until_it_is_set(shop: Shop) -> None:
    clock = Clock()
    with shop.edge(clock=clock) as edge:
        warmed(edge)
        clock.ahead = 30.0
        play(edge, 5)
        with pytest.raises(ServiceError, match="clock"):
            edge.renew()
        assert play(edge, 2) == 0
        clock.ahead = 0.0
        edge.renew()
        assert play(edge, 2) == 2
        edge.renew()
    entries = [entry for entry, _ in read_entries((shop.folder / "till.log").read_bytes())]
    assert [entry.is_untimed for entry in entries if isinstance(entry, LeaseHandedIn)][-2:] == [True, False]
    assert findings(shop.audit()) == []


def test_an_edge_does_not_begin_by_a_wrong_clock(shop: Shop) -> None:
    clock = Clock()
    for clock.ahead in (30.0, -30.0):
        with pytest.raises(AssumptionError, match="Set it"):
            shop.edge(clock=clock)
    clock.ahead = 0.0
    with shop.edge(clock=clock) as edge:
        play(edge, 2)
        edge.renew()
    assert findings(shop.audit()) == []


def test_every_lease_goes_by_the_clock_that_the_service_agreed_with(shop: Shop) -> None:
    clock = Clock()
    with shop.edge(clock=clock) as edge:
        play(edge, 1)
    with shop.edge(clock=clock) as again:
        until, clock.ahead = again._until, 0.3
        again.renew()
        assert again._until > until
        assert time.monotonic() + again._offset - time.time() == pytest.approx(0.3, abs=0.1)


def test_entries_from_the_future_are_refused_before_they_are_in_the_chain(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 2)
        bundle, honest = edge._journal.bundle.bundle, edge._journal.part(10**9).data
        later = [msgspec.structs.replace(entry, moment=entry.moment + 3600) for entry, _ in read_entries(honest)]  # type: ignore[union-attr]
        told: dict[str, Any] = {"head": bundle.head, "signature": bundle.signature, "sent": time.time()}
        given = HandInEntries(
            token=edge._journal.token, follows=edge._journal.follows, entries=b"".join(map(framed, later)), **told
        )
        with pytest.raises(ServiceError, match="moment="):
            edge._service.hand_in("till", given)
        edge.renew()
    assert findings(shop.audit()) == []


def test_a_restart_by_a_clock_that_was_set_does_not_put_the_expiry_off(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = Clock()
    with shop.edge(clock=clock) as edge:
        warmed(edge)
        until = edge._until
    clock.ahead = -3600.0
    with shop.edge(clock=clock) as again:
        assert again._until == until
        assert abs(again._now() - time.time()) < 0.5
        monkeypatch.setattr(time, "monotonic", lambda: until)
        assert "expired" in again.decide(ROWS, baseline=0).explanation


def test_another_boot_goes_by_the_clock(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    with shop.edge() as edge:
        play(edge, 2)
        until = edge._until
    monkeypatch.setattr(edge_log, "BOOT", shop.folder / "none")
    with shop.edge() as again:
        assert again._until != until
        assert abs(again._until - until) < 60.0
