"""A guard at the edge: coins under a lease of the bank, reported later, decided again by the service, and audited."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from surefoot.edge import Edge, base_edge_journal
from surefoot.edge.edge_entries import Drawn, read_entries

from surefoot.client import ServiceError
from surefoot.errors import DecisionConflictError, DecisionError, DecisionSettledError, InputError
from tests.edge.conftest import NUMBERS
from tests.edge.edges import ROWS, crash, findings
from tests.edge.guard_edges import ALPHA, RESERVE, GuardShop, World

WINDOW = 0.4


@pytest.fixture
def guarded(server: tuple[str, Path], tmp_path: Path) -> Iterator[GuardShop]:
    made = GuardShop(*server, tmp_path, f"models{next(NUMBERS)}")
    made.create()
    yield made
    made.ask("POST", f"/v1/experiments/{made.name}/shards/server/departure")


def another(guarded: GuardShop, **extra: Any) -> GuardShop:
    made = GuardShop(guarded.address, guarded.keys, guarded.folder, f"models{next(NUMBERS)}")
    made.create(**extra)
    return made


def merged(*edges: Any) -> None:
    """Renew until the bank has what the edges handed in: the server must have handed in, too."""
    deadline = time.monotonic() + 60.0
    while any(edge._journal.shard.lease.merged < edge.rounds for edge in edges):
        assert time.monotonic() < deadline
        for edge in edges:
            edge.renew()
        time.sleep(0.02)


def test_an_edge_plays_the_proposal_within_its_lease_and_the_bank_earns(guarded: GuardShop) -> None:
    world, shop = World(1), another(guarded, settings={"ramp": "auto"})
    with shop.guard() as edge:
        amount = edge._journal.shard.lease.amounts[0]
        assert 0.0 < amount < RESERVE
        first = world.visit(edge, 0.9, 0.5)
        assert first.share == edge._journal.shard._since[0].share > 0.0
        assert first.probability == (first.share if first.source == "learner" else 1.0 - first.share)
        learner = 0
        for _ in range(12):
            learner += world.play(edge, 50)
            merged(edge)
        assert learner > 120  # 280 as a rule: every run has coins of its own
        assert edge._journal.shard.lease.amounts[0] > 1.5 * amount
        assert world.least >= -RESERVE
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["app"].tally.decisions == 601
    assert report.hub.tally.learner == report.shards["app"].tally.learner == learner + (first.source == "learner")
    shop.ask("POST", f"/v1/experiments/{shop.name}/shards/server/departure")


def test_while_the_service_is_away_a_lease_is_spent_and_then_only_what_is_free(guarded: GuardShop) -> None:
    world = World(2)
    with guarded.guard(every=10**6) as edge:
        shares = [world.visit(edge, 0.0, 1.0, is_paid=False).share for _ in range(60)]
        assert shares[0] > 0.9
        assert shares[-1] == pytest.approx(ALPHA, abs=1e-6)
        assert world.least == pytest.approx(-edge._journal.shard.lease.amounts[0])  # all of it, and no more
        edge.renew()
    assert findings(guarded.audit()) == []


def test_a_killed_edge_goes_on_with_the_coins_that_it_had(guarded: GuardShop) -> None:
    """Whoever ends the process cannot have a coin drawn again."""
    world, edge = World(3), guarded.guard()
    made = [world.visit(edge, 0.9, 0.5, decision_id=f"visit-{n}") for n in range(30)]
    policy = edge._journal.shard.policy
    coin = policy._draw(31)
    crash(edge)
    with guarded.guard() as again:
        assert again.rounds == 30
        assert again.decide(baseline="old", proposal="new", decision_id="visit-7").is_repeat
        for n, one in enumerate(made):
            known = again.decide(baseline="old", proposal="new", decision_id=f"visit-{n}")
            assert (known.source, known.share, known.probability) == (one.source, one.share, one.probability)
        with pytest.raises(DecisionConflictError):
            again.decide(baseline="old", proposal="other", decision_id="visit-7")
        assert again._journal.shard.policy._draw(31) == coin
        assert (coin < again.share) == (world.visit(again, 0.9, 0.5).source == "learner")
        again.renew()
    assert findings(guarded.audit()) == []


KILLED = """
import sys
from pathlib import Path
from tests.edge.guard_edges import GuardShop
address, keys, folder, name = sys.argv[1:]
edge = GuardShop(address, Path(keys), Path(folder), name).guard(in_background=True, every=50)
while True:
    made = edge.decide(baseline="old", proposal="new")
    print(made.round, made.source, made.share, flush=True)
    edge.reward(made.decision_id, 1.0 if made.source == "learner" else 0.5)
"""


def test_a_killed_process_has_lost_nothing_that_it_answered(guarded: GuardShop) -> None:
    command = [sys.executable, "-c", KILLED, guarded.address, str(guarded.keys), str(guarded.folder), guarded.name]
    told = dict[int, tuple[str, float]]()
    for life in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in process.stdout:
                number, source, share = line.split()
                told[int(number)] = source, float(share)
                if len(told) >= 150 * (life + 1):
                    break
            process.kill()
    written = {
        entry.round: ("learner" if entry.is_learner else "baseline", entry.share)
        for entry, _ in read_entries((guarded.folder / "app.log").read_bytes())
        if isinstance(entry, Drawn)
    }
    assert written.items() >= told.items()
    with guarded.guard() as edge:
        edge.renew()
    report = guarded.audit()
    assert findings(report) == []
    assert report.shards["app"].tally.decisions == len(written)


def test_void_is_intention_to_treat_and_may_come_after_the_hand_in(guarded: GuardShop) -> None:
    world = World(4)
    with guarded.guard() as edge:
        made = [world.visit(edge, 0.9, 0.5, is_paid=False, decision_id=f"visit-{n}") for n in range(12)]
        learner = next(one for one in made if one.source == "learner")
        before = edge._journal.shard.policy.state()["banks"].tolist(), edge._journal.shard._since[:]
        assert edge.void(learner.decision_id) is True
        assert (edge._journal.shard.policy.state()["banks"].tolist(), edge._journal.shard._since) == before
        assert edge.void(learner.decision_id) is edge.void(learner.decision_id, "old") is False
        assert edge.void(learner.decision_id, "old") is False
        with pytest.raises(DecisionConflictError, match="once"):
            edge.void(learner.decision_id, "third")
        again = edge.decide(baseline="old", proposal="new", decision_id=learner.decision_id)
        assert (again.action, again.is_voided) == ("old", True)
        assert (again.source, again.share, again.probability) == ("learner", learner.share, learner.probability)
        other = next(one for one in made if one is not learner)
        edge.renew()  # handed in
        assert edge.void(other.decision_id, {"third": 1}) is True
        assert edge.void(other.decision_id, {"third": 1}) is False
        for one in made:
            assert edge.reward(one.decision_id, 0.5).is_accepted
        with pytest.raises(DecisionSettledError):
            edge.void(made[-1].decision_id if made[-1] not in (learner, other) else made[-2].decision_id, "third")
        with pytest.raises(DecisionError, match="none has the id"):
            edge.void("nobody")
        edge.renew()
    report = guarded.audit()
    assert findings(report) == []
    assert report.shards["app"].tally.voided == 2


@pytest.mark.parametrize("begins_anew", [False, True])
def test_windows_metrics_predictions_and_own_ids_come_through(
    guarded: GuardShop, monkeypatch: pytest.MonkeyPatch, begins_anew: bool
) -> None:
    metrics = {
        "revenue": {"kind": "floor", "low": 0.0, "high": 2.0, "alpha": 0.1, "reserve": 4.0, "default": 0.5},
        "refunds": {"kind": "ceiling", "low": 0.1, "high": 1.0, "alpha": 0.2, "reserve": 3.0},
    }
    settings = {"alpha": None, "reserve": 0.0, "metrics": metrics}
    shop = another(guarded, settings=settings, reward_window=WINDOW)
    if begins_anew:
        monkeypatch.setattr(base_edge_journal, "LARGEST_LOG", 0)
    edge = shop.guard()
    for turn in range(12):
        asked: Any = {"revenue": 0.7} if turn % 2 else {"revenue": 0.7, "refunds": 0.2}
        made = edge.decide(baseline=["old", 1], proposal={"new": turn}, prediction=asked, decision_id=f"visit-{turn}")
        if turn % 3:
            assert edge.reward(made.decision_id, {"revenue": 1.0, "refunds": 0.1}).is_accepted
            assert edge.reward(made.decision_id, {"revenue": 1.0, "refunds": 0.1}).is_repeat
            assert edge.reward(made.decision_id, {"revenue": 1.5, "refunds": 0.1}).refused == "conflict"
        if turn == 5:
            edge.renew()
    with pytest.raises(InputError, match="must name its metrics"):
        edge.reward("visit-0", 1.0)
    assert edge.reward("visit-0", {"revenue": 2.5}).refused == "out_of_range"
    crash(edge)
    time.sleep(WINDOW)
    with shop.guard() as again:
        assert again.decide(baseline=["old", 1], proposal={"new": 0}, prediction={"revenue": 0.7, "refunds": 0.2},
                            decision_id="visit-0").is_repeat  # fmt: skip
        assert again.reward("visit-0", {"revenue": 1.0}).refused == "too_late"
        again.renew()
        assert not again._journal.shard.policy.pending
        again.leave()
    report = shop.audit()
    assert findings(report) == []
    tally = report.shards["app"].tally
    assert (tally.decisions, tally.defaults) == (12, 4)
    shop.ask("POST", f"/v1/experiments/{shop.name}/shards/server/departure")


def test_a_pause_and_the_expiry_hold_the_baseline(guarded: GuardShop, monkeypatch: pytest.MonkeyPatch) -> None:
    with guarded.guard() as edge:
        monkeypatch.setattr(edge, "_clock", lambda: edge.expires + 1.0)
        monkeypatch.setattr(edge, "_half", 1e9)
        made = edge.decide(baseline="old", proposal="new")
        assert (made.share, made.is_fallback, made.is_held) == (0.0, True, True)
        assert "expired" in made.explanation
    other = another(guarded)
    with other.guard("second") as edge:
        assert edge.decide(baseline="old", proposal="new").share > 0.5
        other.ask("PUT", f"/v1/experiments/{other.name}/mode", {"mode": "paused", "reason": "enough"})
        edge.renew()
        made = edge.decide(baseline="old", proposal="new")
        assert (made.share, made.is_held, made.mode, edge.share) == (0.0, True, "paused", 0.0)
        edge.renew()
    assert findings(other.audit()) == []
    other.ask("POST", f"/v1/experiments/{other.name}/shards/server/departure")


def test_an_edge_of_another_kind_is_told_before_it_joins(guarded: GuardShop) -> None:
    with pytest.raises(ServiceError, match="GuardEdge"):
        guarded.edge("till")
    with guarded.guard("till") as edge:  # the name is free
        assert edge.rounds == 0
    shop = GuardShop(guarded.address, guarded.keys, guarded.folder, f"shop{next(NUMBERS)}")
    super(GuardShop, shop).create()
    with pytest.raises(ServiceError, match=r"surefoot\.edge\.Edge"):
        shop.guard("app2")
    with shop.edge("app2") as plain:
        assert isinstance(plain, Edge)
        assert plain.decide(ROWS, baseline=0).round == 1
    shop.ask("POST", f"/v1/experiments/{shop.name}/shards/server/departure")


def test_bad_questions_change_nothing(guarded: GuardShop) -> None:
    with guarded.guard() as edge:
        bad: list[dict[str, Any]] = [
            {"baseline": None}, {"proposal": None}, {"proposal": float("nan")}, {"prediction": "x"},
            {"prediction": {"other": 0.5}}, {"decision_id": ""}, {"decision_id": "app:3"}, {"proposal": object()},
            {"proposal": "x" * 10**6},
        ]  # fmt: skip
        for wrong in bad:
            with pytest.raises(InputError):
                edge.decide(**{"baseline": "old", "proposal": "new", **wrong})
        assert (edge.rounds, edge.unsent) == (0, 1)  # the lease that began
        same = edge.decide(baseline="old", proposal="old")
        assert (same.share, same.source) == (0.0, "baseline")
        with pytest.raises(InputError, match="number"):
            edge.reward(same.decision_id, [])  # type: ignore[arg-type]
        assert edge.reward(same.decision_id, 0.5).is_accepted
        assert edge.reward(same.decision_id, 0.5).refused == "conflict"
        edge.renew()
    assert findings(guarded.audit()) == []


def test_a_fork_plays_the_baseline_and_counts_nothing(guarded: GuardShop) -> None:
    with guarded.guard() as edge:
        child = os.fork()
        if child == 0:
            made = edge.decide(baseline="old", proposal="new")
            os._exit(0 if (made.source, made.share, made.is_fallback) == ("baseline", 0.0, True) else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert edge.decide(baseline="old", proposal="new").share > 0.5
