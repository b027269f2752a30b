"""A clock that is wrong stops an edge for no longer than it is wrong, and puts no expiry off."""

import time
from collections.abc import Callable

import pytest

from surefoot.client import ServiceError
from surefoot.errors import AssumptionError
from tests.sharing.edges import Shop, chain_of, lease_of, play, visit, warmed
from tests.sharing.experiments import findings


class Clock:
    """A clock that somebody sets."""

    ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


def test_a_system_clock_that_is_set_while_an_edge_runs_moves_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.edge() as edge:
        warmed(edge)
        now = time.time
        for jump in (3600.0, -3600.0):
            with monkeypatch.context() as system:
                system.setattr(time, "time", lambda jump=jump: now() + jump)
                play(edge, 5)
        lease = lease_of(edge)
        assert abs(chain_of(edge)[-1].time - now()) < 60.0
        edge.leases.renew()
        assert lease_of(edge).number == lease.number + 1
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_a_clock_that_is_ahead_is_told_until_that_time_has_come(shop: Shop) -> None:
    clock = Clock()
    with shop.edge(clock=clock) as edge:
        warmed(edge)
        clock.ahead = 5.0
        play(edge, 2)
        with pytest.raises(ServiceError, match="clock"):
            edge.leases.renew()
        clock.ahead = 0.0
        time.sleep(max(0.0, chain_of(edge)[-1].time - time.time()))
        edge.leases.renew()
        play(edge, 2)
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_a_clock_that_is_behind_has_its_rounds_counted_and_not_learned(new_shop: Callable[..., Shop]) -> None:
    shop, clock = new_shop(), Clock()
    with shop.edge(clock=clock) as edge:
        play(edge, 2)
        edge.leases.renew()
        clock.ahead = -30.0
        play(edge, 5)
        with pytest.raises(ServiceError, match="clock"):
            edge.leases.renew()
        assert play(edge, 2) == 0
        clock.ahead = 0.0
        edge.leases.renew()
        play(edge, 2)
        edge.leases.renew()
    untimed = [b'"untimed":true' in event.payload for event in shop.chain() if event.kind == "lease_ended"]
    assert untimed.count(True) == 1
    assert findings(shop.audit()) == []


@pytest.mark.parametrize("ahead", [30.0, -30.0])
def test_an_edge_does_not_begin_by_a_wrong_clock(shop: Shop, ahead: float) -> None:
    clock = Clock()
    clock.ahead = ahead
    with pytest.raises(AssumptionError, match="Set it"):
        shop.opened(clock=clock)
    clock.ahead = 0.0
    with shop.edge(clock=clock) as edge:
        play(edge, 2)
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_a_restart_by_a_clock_that_was_set_does_not_put_the_expiry_off(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    with shop.edge() as edge:
        warmed(edge)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() - 3600.0)
    with shop.edge() as again:
        assert abs(again.clock() - now()) < 0.5
        steady, late = time.clock_gettime, lease_of(again).expires - now() + 1.0
        monkeypatch.setattr(time, "clock_gettime", lambda kind: steady(kind) + late)
        answer = visit(again)
        assert (answer.source, answer.is_held) == ("baseline", True)
