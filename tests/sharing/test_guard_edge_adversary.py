"""Coins drawn again, rounds left out, leases used twice: whoever would gain is refused, by service or audit."""

import hashlib
import itertools
import shutil
import sqlite3
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest
from surefoot.edge import GuardEdge, edge_log
from surefoot.edge.bundle import BankHead, BundleHead, OpenedBank, coins_secret, read_head, sign
from surefoot.edge.edge_entries import Drawn, LeaseHandedIn, PlayedEntry, Rewarded, framed, read_entries
from surefoot.edge.edge_messages import HandInEntries
from surefoot.leases import GuardShard

from surefoot.client import ServiceError
from surefoot.errors import ConfigError, JournalCorruptedError
from surefoot.journal import canonical, open_journal
from surefoot.journal.events import START, next_event
from surefoot.journal.signatures import PublicKey, SigningKey
from surefoot.policies import coin
from tests.edge.conftest import NUMBERS
from tests.edge.edges import crash, findings
from tests.edge.guard_edges import RESERVE, GuardShop, World
from tests.edge.test_edge_adversary import rewritten
from tests.leases.test_guard_fleets import DELTA, FLEETS, WORLDS, Run
from tests.policies.safe_runs import most_allowed


@pytest.fixture
def guarded(server: tuple[str, Path], tmp_path: Path) -> Iterator[GuardShop]:
    made = GuardShop(*server, tmp_path, f"attacked{next(NUMBERS)}")
    made.create()
    yield made
    made.ask("POST", f"/v1/experiments/{made.name}/shards/server/departure")


def changed(kind: Any, **values: Any) -> Callable[[Any], Any]:
    return lambda entry: msgspec.structs.replace(entry, **values) if isinstance(entry, kind) else entry


def hand_in(edge: GuardEdge, entries: list[Any], **extra: Any) -> None:
    bundle = edge._journal.bundle.bundle
    told: dict[str, Any] = {"token": edge._journal.token, "head": bundle.head, "signature": bundle.signature}
    told |= {"follows": edge._journal.follows, "sent": time.time(), "entries": b"".join(map(framed, entries))}
    edge._service.hand_in(edge.shard, HandInEntries(**{**told, **extra}))


def test_the_service_refuses_a_coin_a_share_or_an_expiry_that_the_lease_does_not_give(guarded: GuardShop) -> None:
    with guarded.guard() as edge:
        World(1).play(edge, 8)
        honest: list[Any] = [entry for entry, _ in read_entries(edge._journal.part(10**9).data)]
        drawn = [one for one in honest if isinstance(one, Drawn)]
        flipped = {one.round: not one.is_learner for one in drawn}

        def turned(entry: Any) -> Any:
            if isinstance(entry, Drawn):
                return msgspec.structs.replace(entry, is_learner=flipped[entry.round])
            return entry

        lies = {
            "draws for": [
                list(map(turned, honest)),
                list(map(changed(Drawn, share=0.05), honest)),
                list(map(changed(Drawn, is_learner=True, share=1.0), honest)),
                [one for one in honest if not (isinstance(one, Drawn | Rewarded) and one.round == 3)],
            ],
            "expires at": [list(map(changed(Drawn, is_expired=True), honest))],  # one could choose which have a coin
            "JSON": [list(map(changed(Drawn, proposal=b"{"), honest))],
            "metrics": [list(map(changed(Rewarded, value={"other": 1.0}), honest))],
            "out_of_range": [list(map(changed(Rewarded, value={"reward": 7.0}), honest))],
            "repeat": [[*honest, msgspec.structs.replace(honest[-1], moment=honest[-1].moment + 0.001)]],
        }
        before = edge._journal.follows
        for match, wrongs in lies.items():
            for wrong in wrongs:
                with pytest.raises(ServiceError, match=match):
                    hand_in(edge, wrong)
        with pytest.raises(ServiceError, match="moved"):  # void, once the reward is known
            hand_in(edge, [*honest, PlayedEntry(1, time.time(), b'"third"')])
        with pytest.raises(ServiceError, match="signed"):
            hand_in(edge, honest, head=edge._journal.bundle.bundle.head.replace(b"guarded", b"shadow "))
        assert edge._journal.follows == before
        edge.renew()
    report = guarded.audit()
    assert findings(report) == []
    assert report.shards["app"].tally.decisions == 8


def test_a_log_with_another_coin_is_not_gone_on_with(guarded: GuardShop) -> None:
    with guarded.guard() as edge:
        World(2).play(edge, 5)
    rewritten(guarded.folder / "app.log", changed(Drawn, is_learner=True))
    with pytest.raises(JournalCorruptedError, match="its coin is"):
        guarded.guard()


def test_a_bundle_with_other_coins_another_log_or_another_purpose_is_refused(guarded: GuardShop) -> None:
    with guarded.guard() as edge:
        bundle, key = edge._journal.bundle.bundle, PublicKey(guarded.keys / "head.pub")
        meant = {"experiment": guarded.name, "shard": "app", "token": edge._journal.token}
        assert OpenedBank(bundle, key, **meant).lease().amounts == edge._journal.shard.lease.amounts
        for coins in (None, bytes(32), bundle.coins[:-1]):  # type: ignore[index]
            with pytest.raises(ConfigError, match="coins"):
                OpenedBank(msgspec.structs.replace(bundle, coins=coins), key, **meant)
        for other in ({"token": "ab" * 16}, {"shard": "else"}, {"experiment": "else"}):
            with pytest.raises(ConfigError, match="for this log"):
                OpenedBank(bundle, key, **{**meant, **other})
        for place in range(0, len(bundle.head), 23):
            forged = bundle.head[:place] + bytes([bundle.head[place] ^ 1]) + bundle.head[place + 1 :]
            with pytest.raises(ConfigError, match="signed"):
                OpenedBank(msgspec.structs.replace(bundle, head=forged), key, **meant)
        with pytest.raises(ConfigError, match="signed"):  # a bank is no floor
            read_head(bundle.head, bundle.signature, key, BundleHead)
        with pytest.raises(ConfigError, match="used once"):
            edge._journal.accept(bundle, time.time())
        World(3).play(edge, 3)
        edge._journal.end_lease(time.time(), is_untimed=False)
        with pytest.raises(ConfigError, match="used once"):
            edge._journal.accept(bundle, time.time())
        head = msgspec.json.decode(bundle.head, type=BankHead)
        lease = msgspec.structs.replace(head.lease, number=2)
        late = msgspec.structs.replace(head, lease=lease, expires=time.time() - 1.0)
        signed = sign(late, bundle.state, SigningKey(guarded.keys / "head.key"), coins=bundle.coins)
        with pytest.raises(ConfigError, match="expired"):
            edge._journal.accept(signed, time.time())
        edge.renew()


def test_every_lease_has_coins_of_its_own_which_the_hub_does_not_show(guarded: GuardShop) -> None:
    key = SigningKey(guarded.keys / "head.key")
    told = "00" * 32, "app", "11" * 32
    secrets = {coins_secret(key, *told, lease) for lease in (1, 2)}
    secrets |= {coins_secret(key, "22" * 32, *told[1:], 1), coins_secret(key, told[0], "b", told[2], 1)}
    assert len(secrets) == 4
    assert coins_secret(key, *told, 1) in secrets
    with guarded.guard() as edge:
        secret = edge._journal.bundle.coins
        with open_journal(str(guarded.keys / "hub.db"), read_only=True) as hub:
            written = b"".join(event.payload for event in hub.read(guarded.name))
            written += b"".join(event.payload for event in hub.read(f"{guarded.name}@app"))
        assert hashlib.sha256(secret).hexdigest().encode() in written
        assert secret.hex().encode() not in written  # until the lease has ended
        assert (guarded.folder / "app.log").stat().st_mode & 0o777 == 0o600


def test_of_two_images_of_one_disk_both_have_the_same_coins_and_one_is_refused(
    guarded: GuardShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edge_log, "_identity", lambda file: "same")
    with guarded.guard() as edge:
        World(4).play(edge, 5)
        for name in ("log", "log.mark"):
            shutil.copy(guarded.folder / f"app.{name}", guarded.folder / f"copy.{name}")
        with guarded.guard(log=guarded.folder / "copy.log") as copy:
            ours = [edge.decide(baseline="old", proposal="new") for _ in range(6)]
            theirs = [copy.decide(baseline="old", proposal="new") for _ in range(6)]
            assert [one.source for one in ours] == [one.source for one in theirs]
            edge.renew()
            with pytest.raises(ServiceError, match="copy"):
                copy.renew()
    assert findings(guarded.audit()) == []


def test_a_hub_that_does_not_know_a_lease_it_signed_was_put_back_and_pauses_all(guarded: GuardShop) -> None:
    key = SigningKey(guarded.keys / "head.key")
    with guarded.guard() as edge:
        head = msgspec.json.decode(edge._journal.bundle.bundle.head, type=BankHead)
        ahead = msgspec.structs.replace(head, lease=msgspec.structs.replace(head.lease, number=9))
        signed = sign(ahead, b"", key)
        with pytest.raises(ServiceError, match="older copy took its place"):
            hand_in(edge, [], head=signed.head, signature=signed.signature)
        edge.renew()
        assert edge.decide(baseline="old", proposal="new").share == 0.0
        assert edge._head.mode == "paused"
    assert findings(guarded.audit()) == []


def test_a_double_report_changes_nothing(guarded: GuardShop) -> None:
    with guarded.guard() as edge:
        World(5).play(edge, 6)
        part, follows = edge._journal.part(10**9), edge._journal.follows
        honest = [entry for entry, _ in read_entries(part.data)]
        for _ in range(3):  # as if answers were lost
            hand_in(edge, honest, follows=follows)
        with pytest.raises(ServiceError, match="differ"):
            hand_in(edge, list(map(changed(Drawn, decision_id="another"), honest)), follows=follows)
        with pytest.raises(ServiceError, match="differ"):
            # One that no round has had: the coins are random, and all rewards may have been 1.
            hand_in(edge, list(map(changed(Rewarded, value={"reward": 0.5}), honest)), follows=follows)
        edge.renew()
    report = guarded.audit()
    assert findings(report) == []
    assert (report.shards["app"].tally.decisions, report.hub.tally.decisions) == (6, 6)


def test_rounds_that_were_left_out_at_the_end_stay_paid_for(guarded: GuardShop) -> None:
    """An edge that is never heard of again: its lease is not leased to anybody else."""
    edge, world = guarded.guard(every=10**6), World(6)
    for _ in range(10):
        world.visit(edge, 0.0, 1.0, is_paid=False)
    amount = edge._journal.shard.lease.amounts[0]
    crash(edge)
    with guarded.guard("second", every=10**6) as other:
        for _ in range(40):
            world.visit(other, 0.0, 1.0, is_paid=False)
        assert other._journal.shard.lease.amounts[0] <= RESERVE - amount
        assert world.least >= -RESERVE
        other.renew()
    assert findings(guarded.audit()) == []


def forged(path: Path, chains: dict[str, Callable[[str, dict[str, Any]], None]]) -> None:
    """Change payloads of chains in a file, and compute all hashes anew."""
    with sqlite3.connect(path) as file:
        for name, change in chains.items():
            (experiment,) = file.execute("SELECT id FROM experiments WHERE name = ?", (name,)).fetchone()
            told = "SELECT number, kind, time, payload, key FROM events WHERE experiment = ? ORDER BY number"
            head = START
            for number, kind, moment, payload, key in file.execute(told, (experiment,)).fetchall():
                record = msgspec.json.decode(payload)
                change(kind, record)
                if kind == "snapshot":
                    record.update(hash=head.hash)
                event = next_event(name, head, kind=kind, payload=canonical(record), time=moment, key=key)
                values = event.payload, event.previous, event.hash, experiment, number
                file.execute(
                    "UPDATE events SET payload = ?, previous = ?, hash = ? WHERE experiment = ? AND number = ?", values
                )
                head = event.head
            file.execute("UPDATE experiments SET hash = ? WHERE id = ?", (head.hash, experiment))
    file.close()


def redraw(number: int, kind: str, payload: dict[str, Any]) -> None:
    """Another coin in a round that the baseline won, in the edge's chain and where the shards meet."""
    if kind == "guarded" and payload["round"] == number:
        payload["draw"] = 0.5 + payload["draw"] / 2.0
    if kind == "bank_handed_in" and payload["shard"] == "app" and payload["lease"] == 1:
        made = next(one for one in payload["rounds"] if one[0] == number)
        made[3] = 0.5 + made[3] / 2.0


def other_secret(_: int, kind: str, payload: dict[str, Any]) -> None:
    if kind == "lease_ended":
        payload["coins"] = "00" * 32


def no_secret(_: int, kind: str, payload: dict[str, Any]) -> None:
    if kind == "lease_ended":
        del payload["coins"]


@pytest.mark.parametrize("insider", [redraw, other_secret, no_secret])
def test_the_audit_finds_a_coin_that_an_insider_drew_again(guarded: GuardShop, insider: Any) -> None:
    """Whoever can write to the journal, and computes all hashes anew: the hub knew the hash before the coins fell."""
    with guarded.guard() as edge:
        world, made = World(7), None
        while made is None or made.round < 6 or made.source != "baseline":
            made = world.visit(edge, 0.9, 0.5)
        edge.renew()
    assert findings(guarded.audit()) == []
    copy = GuardShop(guarded.address, guarded.folder, guarded.folder, guarded.name)
    for name in ("hub.db", "own.db"):
        with sqlite3.connect(guarded.keys / name) as file:
            file.execute("VACUUM INTO ?", (str(guarded.folder / name),))
        file.close()
    chain = f"{guarded.name}@app"
    changes = partial(insider, made.round)
    forged(guarded.folder / "hub.db", {chain: changes} | ({guarded.name: changes} if insider is redraw else {}))
    found = [one for one in findings(copy._audit()) if one.what == "coin"]
    assert len(found) == 1
    assert insider is not redraw or "drawn again" in found[0].text


class EdgeShard(GuardShard):
    """A shard whose coins follow from a secret, as an edge's do."""

    def __init__(self, lease: Any, *, seed: int) -> None:
        super().__init__(lease)
        self.policy.coins = hashlib.sha256(str(seed).encode()).digest()


class EdgeRun(Run):
    """A fleet of edges: dead ones, late rewards, wrong clocks, in worlds that know everything but the coins."""

    shard = EdgeShard


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize("shards", FLEETS)
def test_a_fleet_of_edges_keeps_one_bank(shards: int, world: str) -> None:
    played = [EdgeRun(FLEETS[shards], world, 400, seed) for seed in range(6)]
    assert sum(run.play() < -1e-9 for run in played) <= most_allowed(6, DELTA)
    assert sum(run.learner for run in played) > 6 * 20


def test_coins_are_uniform_and_independent_of_rounds_and_secrets() -> None:
    drawn = [coin.coin_of(bytes([k]) * 32, n) for k in range(40) for n in range(1, 251)]
    assert all(0.0 <= one < 1.0 for one in drawn)
    counts = [sum(k / 20 <= one < (k + 1) / 20 for one in drawn) for k in range(20)]
    assert sum((one - 500) ** 2 / 500 for one in counts) < 50.8  # chi-square of 19 at 1 - 1e-4
    pairs = list(itertools.pairwise(drawn))
    assert abs(sum((a - 0.5) * (b - 0.5) for a, b in pairs) / len(pairs) * 12.0) < 0.045


def test_an_honest_log_that_was_killed_is_handed_in_by_the_next_process(guarded: GuardShop) -> None:
    edge = guarded.guard()
    World(8).play(edge, 12)
    edge._journal.end_lease(time.time(), is_untimed=False)
    assert edge.decide(baseline="old", proposal="new").share == 0.0  # the lease may be somebody else's by now
    crash(edge)
    with guarded.guard() as again:
        assert isinstance([one for one, _ in read_entries(again._journal.part(10**9).data)][-2], LeaseHandedIn)
        again.renew()
        assert again.decide(baseline="old", proposal="new").share > 0.0
        again.renew()
    assert findings(guarded.audit()) == []
