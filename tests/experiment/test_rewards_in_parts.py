"""Metrics of one decision that come one after the other: it learns once, by all of them, and the audit agrees."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import pytest

import surefoot
from surefoot.audit import audit
from surefoot.errors import DecisionSettledError
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import Journal, open_journal

METRICS = {
    "quality": surefoot.floor(0, 1, alpha=0.1),
    "latency": surefoot.ceiling(0, 10, alpha=0.2),
    "cost": surefoot.ceiling(0, 2, alpha=0.1),
}
WHOLE = {"quality": 0.9, "latency": 3.0, "cost": 0.4}


class Clock:
    now = 1_754_000_000.0

    def __call__(self) -> float:
        return self.now


def guard(**settings: Any) -> surefoot.Guard:
    chosen: dict[str, Any] = {"delta": 0.05, "metrics": METRICS, "seed": 7} | settings
    return surefoot.Guard(**chosen)


def create(journal: Journal, policy: surefoot.Guard, **settings: Any) -> Experiment:
    return Experiment.create(journal, "models", policy, mode="guarded", **settings)


def decide(experiment: Experiment, *ids: str) -> None:
    for one in ids:
        experiment.decide(baseline="big", proposal="small", decision_id=one)


def known(experiment: Experiment) -> Any:
    status = experiment.status()
    return status.pending, status.guard, experiment.policy_state()["banks"].tobytes()


@pytest.fixture
def journal() -> Iterator[Journal]:
    """What is written here must stand before the audit."""
    with open_journal("memory:") as opened:
        yield opened
        assert [finding.text for finding in audit(opened, "models").findings] == []


@pytest.mark.parametrize("order", list(permutations(WHOLE)))
@pytest.mark.parametrize("window", [None, 60.0])
def test_parts_in_any_order_come_to_the_same_as_all_at_once(
    journal: Journal, order: tuple[str, ...], window: float | None
) -> None:
    clock = Clock()
    models = create(journal, guard(), reward_window=window, clock=clock, snapshot_every=1)
    once = create(open_journal("memory:"), guard(), reward_window=window, clock=clock)
    for one in (models, once):
        decide(one, "a", "b")
    for name in order:
        assert models.reward("a", {name: WHOLE[name]}).is_accepted
        assert models.reward("a", {name: WHOLE[name]}).is_repeat
        assert models.reward("a", {name: WHOLE[name] / 2}).refused == "conflict"
        models = Experiment.open(journal, "models", clock=clock, snapshot_every=1)  # from a snapshot between the parts
    assert once.reward("a", WHOLE).is_accepted
    clock.now += 0.0 if window is None else 60.0
    for one in (models, once):
        one.close_windows()
    assert known(models) == known(once)
    assert models.status().pending == (1 if window is None else 0)


def test_a_round_that_lacks_a_metric_is_open_and_counts_at_its_worst(journal: Journal) -> None:
    models = create(journal, guard())
    decide(models, "a")
    before = known(models)
    models.reward("a", {"quality": 0.9, "cost": 0.4})
    assert known(models) == before
    models.reward("a", {"latency": 3.0})
    assert known(models) != before


def test_a_default_counts_where_a_window_closes_and_never_before_what_was_measured() -> None:
    """Were a metric with a default not waited for, whoever sends it last would choose the default instead."""
    default = METRICS | {"cost": surefoot.ceiling(0, 2, alpha=0.1, default=2.0)}
    banks = list[bytes]()
    for order in (("quality", "latency", "cost"), ("cost", "latency", "quality"), ("quality", "latency")):
        journal = open_journal("memory:")
        models = create(journal, guard(metrics=default, settle_after=2))
        decide(models, "a")
        for name in order:
            assert models.reward("a", {name: WHOLE[name]}).is_accepted
        assert models.status().pending == int("cost" not in order)
        decide(models, "b", "c", "d")
        assert audit(journal, "models").is_clean
        banks.append(models.policy_state()["banks"].tobytes())
    assert banks[0] == banks[1] != banks[2]


def test_a_window_of_rounds_closes_by_the_metrics_that_came(journal: Journal) -> None:
    """Were they replaced by what is missing, whoever holds the last metric back would choose which rewards count."""
    banks = list[bytes]()
    for sent in ({"quality": 0.1}, {"quality": 0.9}, {}):
        own = open_journal("memory:")
        for where in (journal, own) if not banks else (own,):
            models = create(where, guard(settle_after=2))
            decide(models, "a")
            if sent:
                assert models.reward("a", sent).is_accepted
            decide(models, "b", "c", "d")
            assert models.reward("a", {"latency": 1.0}).refused == "too_late"
        assert audit(own, "models").is_clean
        banks.append(models.policy_state()["banks"].tobytes())
    assert len(set(banks)) == 3


def test_what_came_counts_in_a_round_that_is_abandoned(journal: Journal) -> None:
    """Were it dropped, whoever knows one metric could choose by its value which rounds count."""
    banks = set[bytes]()
    for place, sent in ((journal, 9.0), (open_journal("memory:"), 1.0), (open_journal("memory:"), None)):
        models = create(place, guard())
        decide(models, "a")
        if sent is not None:
            models.reward("a", {"latency": sent})
            with pytest.raises(DecisionSettledError):
                models.void("a", "other")
        assert models.abandon("a", reason="the quality was never measured")
        assert (models.status().pending, models.reward("a", {"quality": 1.0}).refused) == (0, "abandoned")
        assert audit(place, "models").is_clean
        banks.add(models.policy_state()["banks"].tobytes())
    assert len(banks) == 3


def test_a_part_can_be_corrected_until_the_round_is_learned(journal: Journal) -> None:
    models, right = create(journal, guard()), create(open_journal("memory:"), guard())
    for one in (models, right):
        decide(one, "a")
    models.reward("a", {"latency": 9.0, "cost": 0.4})
    assert models.correct("a", {"latency": 3.0}, reason="seconds, not tenths")
    models.reward("a", {"quality": 0.9})
    right.reward("a", WHOLE)
    assert known(models) == known(right)
    decide(models, "b")
    models.reward("b", WHOLE)
    with pytest.raises(DecisionSettledError):
        models.correct("b", {"quality": 0.8}, reason="too late")


def test_all_metrics_of_a_units_visit_come_at_once(journal: Journal) -> None:
    floors = {"sales": surefoot.floor(0, 1, alpha=0.1), "views": surefoot.floor(0, 1, alpha=0.1)}
    models = create(journal, guard(metrics=floors, unit_window=3))
    models.decide(baseline="big", proposal="small", unit="user-1", decision_id="a")
    assert models.reward("a", {"sales": 0.5}).is_accepted
    assert models.reward("a", {"views": 0.5}).refused == "conflict"
    decide(models, "b", "c", "d")


def test_a_shard_hands_in_a_reward_once_it_is_whole() -> None:
    hub, own = open_journal("memory:"), open_journal("memory:")
    create_shared(hub, "models", guard(seed=None), mode="guarded", skew=1.0)
    berlin = Experiment.join(hub, "models", own, shard="berlin", in_background=False, seconds=3600.0)
    decide(berlin, "a")
    assert berlin.leases is not None
    berlin.leases.renew()
    for name, value in WHOLE.items():
        assert berlin.leases.status().pending == 1
        berlin.reward("a", {name: value})
        berlin.leases.renew()
    assert berlin.leases.status().pending == 0
