"""The mode of an experiment that is shared: said once, and every shard goes over to it with its next lease."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit_shards
from surefoot.errors import ConfigError, JournalUnavailableError, ModeError
from surefoot.experiment import Experiment, create_shared, lease_renewal
from surefoot.experiment.lease_renewal import Leases, adopt_mode
from surefoot.journal import Journal
from surefoot.sharing import hub as hub_module
from surefoot.sharing.hub import SharedMode
from tests.experiment.tampering import Row
from tests.sharing.experiments import RESERVE, Away, Fleet, GuardFleet, GuardWorld, of_shard, play
from tests.sharing.forgery import forge
from tests.sharing.shards import SETTINGS, World


def source(world: World, shop: Any) -> str:
    answer: str = shop.decide(world.rows, baseline=world.baseline).source
    return answer


def fleet_in(folder: Path, hub: Any) -> tuple[Fleet, World]:
    return Fleet(folder, hub, constraint=RESERVE), World(np.random.default_rng(21))


def test_a_pause_holds_here_at_once_and_elsewhere_from_the_next_lease_on(tmp_path: Path, hub: Journal) -> None:
    fleet, world = fleet_in(tmp_path, hub)
    a, b = fleet.join("a", every=1000), fleet.join("b", every=1000)
    for shop in (a, b):
        play(world, shop, 3)
        shop.leases.renew()
    assert a.set_mode("paused", reason="the till is broken", by="ops") == "guarded"
    assert (source(world, a), source(world, b)) == ("baseline", "learner")
    b.leases.renew()
    assert (source(world, b), b.status().mode) == ("baseline", "paused")
    c = fleet.join("c", every=1000)  # joined later
    assert c.status().mode == "paused"
    assert b.set_mode("guarded", reason="it is mended") == "paused"
    assert (source(world, b), source(world, a)) == ("learner", "baseline")
    a.leases.renew()
    assert source(world, a) == "learner"
    again = fleet.join("a", every=1000)
    assert again.status().mode == "guarded"
    assert [event.kind for event in hub.read("shop")].count("mode") == 2
    b.leases.renew()
    again.leases.renew()
    assert fleet.audit().is_clean
    fleet.close()


def test_a_pause_holds_while_the_hub_is_away_and_is_passed_on_by_whoever_opens_the_shard_again(
    tmp_path: Path, hub: Journal
) -> None:
    away: Any = Away(hub)
    fleet, world = fleet_in(tmp_path, away)
    a, b = fleet.join("a", every=1000), fleet.join("b", every=1000)
    away.is_away = True
    assert a.set_mode("paused") == "guarded"
    assert source(world, a) == "baseline"
    with pytest.raises(JournalUnavailableError):
        a.set_mode("guarded")
    assert a.status().mode == "paused"
    away.is_away = False
    b.set_mode("guarded")  # which knows of no pause
    again = fleet.join("a", every=1000)  # the server has died since
    assert again.status().mode == "paused"
    again.leases.renew()
    b.leases.renew()
    assert (source(world, again), source(world, b)) == ("baseline", "baseline")
    again.set_mode("guarded")
    b.leases.renew()
    assert (source(world, again), source(world, b)) == ("learner", "learner")
    b.leases.renew()
    again.leases.renew()
    assert fleet.audit().is_clean
    fleet.close()


def test_a_pause_said_twice_does_not_stay_for_good(tmp_path: Path, hub: Journal) -> None:
    away: Any = Away(hub)
    fleet, world = fleet_in(tmp_path, away)
    a, b = fleet.join("a", every=1000), fleet.join("b", every=1000)
    a.set_mode("paused")
    away.is_away = True
    a.set_mode("paused")
    away.is_away = False
    a.leases.renew()
    b.set_mode("guarded")
    a.leases.renew()
    assert source(world, a) == "learner"
    fleet.close()


def test_an_answer_that_was_under_way_undoes_neither_a_pause_nor_a_newer_word(tmp_path: Path, hub: Journal) -> None:
    away: Any = Away(hub)
    fleet, _ = fleet_in(tmp_path, away)
    a = fleet.join("a", every=1000)
    a.set_mode("paused")
    a.set_mode("guarded")
    said = [event.number for event in hub.read("shop") if event.kind == "mode"]
    a.transact(lambda turn: adopt_mode(turn, "paused", said[0]))  # granted before the second was said
    assert a.status().mode == "guarded"
    away.is_away = True
    a.set_mode("paused")
    a.transact(lambda turn: adopt_mode(turn, "guarded", said[1] + 1))  # by another server, meanwhile
    assert a.status().mode == "paused"
    fleet.close()


def answered_late(monkeypatch: pytest.MonkeyPatch, shop: Any, meanwhile: Callable[[], None]) -> None:
    """Have the next answer of the hub to a change of the mode arrive after something else."""
    real = shop.leases.hub.set_mode

    def slow(mode: Any, **told: Any) -> SharedMode:
        answer: SharedMode = real(mode, **told)
        monkeypatch.setattr(shop.leases.hub, "set_mode", real)
        meanwhile()
        return answer

    monkeypatch.setattr(shop.leases.hub, "set_mode", slow)


@pytest.mark.parametrize("start", ["guarded", "paused"])
def test_a_resume_under_way_does_not_undo_a_pause_of_another_server(
    start: str, tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, world = fleet_in(tmp_path, hub)
    a, b = fleet.join("a", every=1000), fleet.join("b", every=1000)
    if start == "paused":
        a.set_mode("paused")

    def meanwhile() -> None:
        b.leases.renew()
        b.set_mode("paused", reason="fire")
        a.leases.renew()

    answered_late(monkeypatch, a, meanwhile)
    a.set_mode("guarded")
    a.leases.renew()
    assert (a.status().mode, source(world, a)) == ("paused", "baseline")
    b.leases.renew()
    a.leases.renew()
    assert fleet.audit().is_clean
    fleet.close()


def test_a_resume_under_way_does_not_undo_a_pause_of_the_same_server(
    tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    away: Any = Away(hub)
    fleet, world = fleet_in(tmp_path, away)
    a = fleet.join("a", every=1000)
    a.set_mode("paused")

    def meanwhile() -> None:
        away.is_away = True
        a.set_mode("paused", reason="fire")
        away.is_away = False

    answered_late(monkeypatch, a, meanwhile)
    a.set_mode("guarded")
    assert (a.status().mode, source(world, a)) == ("paused", "baseline")
    a.leases.renew()
    a.leases.renew()
    assert (a.status().mode, a.leases.hub.set_mode("paused", reason="", by="").mode) == ("paused", "paused")
    assert [event.kind for event in hub.read("shop")].count("mode") == 3  # the others were told of it
    fleet.close()


def test_a_pause_holds_at_once_while_a_resume_waits_for_the_hub(
    tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet, world = fleet_in(tmp_path, hub)
    a = fleet.join("a", every=1000)
    a.set_mode("paused")
    said = threading.Thread(target=a.set_mode, args=("paused",), kwargs={"reason": "fire"})

    def meanwhile() -> None:
        said.start()
        own, deadline = fleet.journals["a"], time.monotonic() + 5
        while "fire" not in str(own.view("shop").latest("mode")) and time.monotonic() < deadline:
            time.sleep(0.001)
        said.join(0.05)  # where nobody waited for the resume, it would be done

    answered_late(monkeypatch, a, meanwhile)
    a.set_mode("guarded")
    said.join()
    assert (a.status().mode, source(world, a)) == ("paused", "baseline")
    assert of_shard(a, lambda state: state.unshared) is None
    fleet.close()


def test_a_word_that_changes_nothing_here_makes_older_ones_old(tmp_path: Path, hub: Journal) -> None:
    fleet, _ = fleet_in(tmp_path, hub)
    a, b = fleet.join("a", every=1000), fleet.join("b", every=1000)
    a.set_mode("paused")
    b.leases.renew()
    b.set_mode("guarded")
    b.set_mode("paused")
    a.leases.renew()
    said = [event.number for event in hub.read("shop") if event.kind == "mode"]
    a.transact(lambda turn: adopt_mode(turn, "guarded", said[1]))
    assert a.status().mode == "paused"
    assert fleet.audit().is_clean
    fleet.close()


def test_a_server_that_leaves_passes_its_pause_on_first(tmp_path: Path, hub: Journal) -> None:
    away: Any = Away(hub)
    fleet, _ = fleet_in(tmp_path, away)
    a, b = fleet.join("a", every=1000), fleet.join("b", every=1000)
    away.is_away = True
    a.set_mode("paused", reason="fire")
    with pytest.raises(JournalUnavailableError):
        a.leases.leave()
    away.is_away = False
    a.leases.leave()
    b.leases.renew()
    assert b.status().mode == "paused"
    b.set_mode("guarded")
    away.is_away = True
    with pytest.raises(JournalUnavailableError):
        a.set_mode("paused")  # which nobody would pass on any more
    fleet.close()


def test_what_no_experiment_does_is_refused_and_changes_nothing(tmp_path: Path, hub: Journal) -> None:
    fleet, world = fleet_in(tmp_path, hub)
    a = fleet.join("a", every=1000)
    for mode in ("shadow", "asleep"):
        with pytest.raises(ModeError):
            a.set_mode(mode)
    assert source(world, a) == "learner"
    assert "mode" not in [event.kind for event in hub.read("shop")]
    fleet.close()


def test_the_mode_is_in_the_hub_s_snapshot(tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "SNAPSHOT_ROUNDS", 20)
    fleet, world = fleet_in(tmp_path, hub)
    a = fleet.join("a")
    a.set_mode("paused")
    play(world, a, 60)
    kinds = [event.kind for event in hub.read("shop")]
    assert kinds.index("mode") < kinds.index("snapshot")
    assert fleet.join("b").status().mode == "paused"
    fleet.close()


def test_a_mode_that_nobody_said_is_found(tmp_path: Path) -> None:
    with surefoot.open_journal(f"sqlite:///{tmp_path}/hub.db") as hub:
        fleet, world = fleet_in(tmp_path, hub)
        a, b = fleet.join("a"), fleet.join("b")
        a.set_mode("paused")
        for shop in (a, b):
            shop.leases.renew()
            play(world, shop, 5)
            shop.leases.renew()
        assert fleet.audit().is_clean
        fleet.close()

    def name_another(rows: list[Row]) -> None:
        next(row["payload"] for row in rows if row["kind"] == "mode")["shared"] -= 1

    forge(tmp_path / "b.db", name_another)
    journals = {name: surefoot.open_journal(f"sqlite:///{tmp_path}/{name}.db") for name in ("hub", "a", "b")}
    report = audit_shards(journals.pop("hub"), "shop", journals)
    assert report.hub.findings.counts["mode"] == 1


def test_a_shard_that_lets_the_learner_in_by_itself_is_found(
    tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leases, "is_due", False)
    fleet = GuardFleet(tmp_path, hub, mode="shadow")
    world, a = GuardWorld(1), fleet.join("a", every=1000)
    a.leases.renew()
    a.leases.renew()
    assert fleet.audit().is_clean
    Experiment.open(fleet.journals["a"], "shop", clock=fleet.clock).set_mode("guarded")  # nobody told the hub
    assert world.play(a, 300) > 0
    a.leases.renew()
    report = fleet.audit()
    assert "names none" in next(str(one) for one in report.shards["a"].findings)
    assert report.hub.findings.counts["mode"] == 1
    assert audit_shards(hub, "shop", {}).hub.findings.counts["mode"] == 1  # also without the shard's own chain
    fleet.close()


@pytest.mark.parametrize("is_resumed", [False, True])
def test_a_shard_that_leaves_a_pause_out_is_found(
    is_resumed: bool, tmp_path: Path, hub: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Leases, "is_due", False)
    fleet, world = fleet_in(tmp_path, hub)
    a, b = fleet.join("a"), fleet.join("b")
    b.set_mode("paused")
    assert play(world, a, 5) > 0  # under the lease from before, which is right
    with monkeypatch.context() as forged:
        forged.setattr(lease_renewal, "adopt_mode", lambda *told: None)
        a.leases.renew()
    assert fleet.audit().is_clean
    played = play(world, a, 20)
    assert played > 0
    if is_resumed:  # too late for those rounds
        b.set_mode("guarded")
    a.leases.renew()
    a.leases.renew()
    report = fleet.audit()
    assert report.shards["a"].findings.counts["mode"] == played
    assert report.hub.findings.counts["mode"] == (not is_resumed)
    fleet.close()


def test_a_resume_within_a_lease_lets_the_learner_in(tmp_path: Path, hub: Journal) -> None:
    fleet, world = fleet_in(tmp_path, hub)
    a = fleet.join("a", every=1000)
    a.set_mode("paused")
    a.leases.renew()
    assert play(world, a, 5) == 0
    a.set_mode("guarded")
    assert play(world, a, 5) > 0
    a.leases.renew()
    assert fleet.audit().is_clean
    fleet.close()


def test_shards_have_the_names_of_features(tmp_path: Path, hub: Journal) -> None:
    policy = surefoot.SafeLUCB(**SETTINGS)
    with pytest.raises(ConfigError, match="3 different names"):
        create_shared(hub, "shop", policy, feature_names=["price"])
    create_shared(hub, "shop", policy, feature_names=["price", "colour", "size"])
    with surefoot.open_journal("memory:") as own:
        shop = Experiment.join(hub, "shop", own, shard="a", in_background=False)
        assert shop.settings.feature_names == ["price", "colour", "size"]
        assert audit_shards(hub, "shop", {"a": own}).is_clean
