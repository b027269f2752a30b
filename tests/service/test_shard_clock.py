"""A server that is a shard starts by the clock that shards share."""

import pytest

import surefoot
from surefoot.service.settings import Settings
from surefoot.service.shared_experiments import SharedExperiments
from surefoot.service.trusted_clock import TrustedClock


def test_a_shard_starts_from_the_clock_of_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = surefoot.open_journal("memory:")
    monkeypatch.setattr(hub, "clock", lambda: 10_000.0)
    monkeypatch.setattr("surefoot.service.shared_experiments.open_journal", lambda address: hub)
    clock = TrustedClock(10.0, wall=lambda: 6_400.0, steady=lambda: 5.0)  # an hour behind
    shards = SharedExperiments(Settings(hub="memory:", shard="a"), clock)
    shards.open()
    assert clock() == 10_000.0
    shards.close()
