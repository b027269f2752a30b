"""Leases and journals that were forged, altered, copied or used twice are refused, here or by the service."""

import hashlib
import itertools
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from surefoot.client import ServiceError
from surefoot.errors import ConfigError, JournalBusyError, JournalReadOnlyError
from surefoot.experiment import lease_renewal
from surefoot.experiment.edge_upload import UploadedEvent
from surefoot.experiment.operator_words import go_over
from surefoot.journal import canonical, file, open_journal
from surefoot.journal.events import START, next_event
from surefoot.journal.signatures import PublicKey, SigningKey
from surefoot.policies.coin import coin_of
from surefoot.rounds.events import BLOCK, Mode, edge_chain
from surefoot.sharing.edge_messages import SIGNED, JoinEdge, SignedLease, coin_secret, lease_proof
from tests.sharing.edges import (
    Shop,
    Way,
    chain_of,
    crash,
    lease_of,
    lets_the_learner_play,
    new_keys,
    play,
    visit,
    warmed,
)
from tests.sharing.experiments import GUARD, GuardWorld, findings

RESERVE = GUARD["reserve"]
TOKEN = "ab" * 16


def granted_to(shop: Shop, shard: str = "till", token: str = TOKEN) -> tuple[SignedLease, str]:
    """A signed lease, as the service sends it, and the hub's first hash."""
    path = f"/v1/experiments/{shop.name}/edges"
    link = shop.ask("GET", path).json()["link"]
    answer = shop.ask("POST", path, msgspec.to_builtins(JoinEdge(shard, token)))
    assert answer.status_code == 201, answer.text
    return msgspec.convert(answer.json()["lease"], SignedLease), link


@pytest.mark.parametrize("part", ["message", "signature", "state"])
def test_a_lease_with_any_bit_changed_is_refused(shop: Shop, part: str) -> None:
    lease, link = granted_to(shop)
    key = PublicKey(shop.keys / "head.pub")
    assert lease.read(shop.name, link, "till", key).lease.shard == "till"
    content = getattr(lease, part)
    data = content.encode() if isinstance(content, str) else content
    for place in range(0, len(data), max(1, len(data) // 40)):
        altered: Any = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
        forged = msgspec.structs.replace(lease, **{part: altered.decode() if part == "signature" else altered})
        with pytest.raises(ConfigError, match=r"signed"):
            forged.read(shop.name, link, "till", key)


def test_a_lease_of_another_key_edge_experiment_or_hub_is_refused(shop: Shop) -> None:
    new_keys(shop.folder, "other")
    lease, link = granted_to(shop)
    key, foreign = PublicKey(shop.keys / "head.pub"), PublicKey(shop.folder / "other.pub")
    with pytest.raises(ConfigError, match="signed"):
        lease.read(shop.name, link, "till", foreign)
    for meant in (("else", link, "till"), (shop.name, "00" * 32, "till"), (shop.name, link, "else")):
        with pytest.raises(ConfigError, match="for edge"):
            lease.read(*meant, key)
    with pytest.raises(ConfigError, match="signed"):
        shop.opened("new", key=shop.folder / "other.pub")


def test_a_head_cannot_stand_for_a_lease(shop: Shop) -> None:
    lease, _ = granted_to(shop)
    key = SigningKey(shop.keys / "head.key")
    assert not key.has_signed(lease.signature, lease.message)
    assert key.has_signed(lease.signature, SIGNED + lease.message)


def test_coins_that_a_lease_does_not_commit_to_are_refused(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop("pair")
    lease, link = granted_to(shop)
    key = PublicKey(shop.keys / "head.pub")
    for secrets in ([], [bytes(32), *lease.secrets[1:]], lease.secrets[::-1], lease.secrets[:-1]):
        with pytest.raises(ConfigError, match="coins"):
            msgspec.structs.replace(lease, secrets=secrets).read(shop.name, link, "till", key)


def test_a_lease_is_used_once(shop: Shop) -> None:
    """Whoever stands between the two sends an older lease again, which is signed: only the baseline plays."""
    with shop.edge() as edge:
        hub, take = edge.leases.hub, edge.leases.hub.take
        warmed(edge)
        old = list[Any]()

        def noted(*args: Any, **kwargs: Any) -> Any:
            old.append(take(*args, **kwargs))
            return old[0]

        hub.take = noted
        edge.leases.renew()
        lease = lease_of(edge).number
        play(edge, 3)
        edge.leases.renew()
        assert lease_of(edge).number == lease
        assert play(edge, 20) == 0
        hub.take = take
        edge.leases.renew()
        assert lease_of(edge).number == lease + 1
        assert lets_the_learner_play(edge)
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_a_copy_of_a_journal_is_refused(shop: Shop) -> None:
    log = shop.journal_of("till")
    with shop.edge() as edge:
        play(edge, 5)
        with pytest.raises(JournalBusyError):
            shop.opened()
        for name in ("log", "log.mark"):
            shutil.copy(shop.folder / f"till.{name}", shop.folder / f"copy.{name}")
        with pytest.raises(JournalReadOnlyError, match="copy"):
            shop.opened(path=shop.folder / "copy.log")
    kept = log.read_bytes()
    log.unlink()
    log.write_bytes(kept)  # as from a backup
    with pytest.raises(JournalReadOnlyError, match="copy"):
        shop.opened()


@pytest.mark.parametrize("is_opened_late", [False, True])
def test_of_two_machines_with_one_journal_the_second_to_hand_in_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, is_opened_late: bool
) -> None:
    """Where the file system tells nothing, such as for the image of a whole disk; both have the same coins."""
    monkeypatch.setattr(file, "_identity", lambda _: (1, 1))
    with shop.edge() as edge:
        warmed(edge)
        edge.journal.probe()
        for name in ("log", "log.mark"):
            shutil.copy(shop.folder / f"till.{name}", shop.folder / f"copy.{name}")
        if is_opened_late:  # when the service has more of the first one's events
            visit(edge, decision_id="early")
            edge.leases.hub.prepare(edge.journal.view(edge.name))
        with shop.edge(path=shop.folder / "copy.log") as copy:
            for n in range(5):
                ours, theirs = (visit(one, decision_id=f"visit-{n}") for one in (edge, copy))
                assert is_opened_late or (ours.source, ours.action) == (theirs.source, theirs.action)
            edge.leases.renew()
            with pytest.raises((ServiceError, ConfigError), match="copy"):
                copy.leases.renew()
        for n in range(5):
            edge.abandon(f"visit-{n}")
        play(edge, 5)
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_another_journal_cannot_take_an_edges_name(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 2)
        with pytest.raises(ServiceError, match="joined with"):
            shop.opened(path=shop.folder / "new.log")
        edge.leases.renew()
    with pytest.raises(ServiceError, match="joined with"):
        shop.opened("server")  # the server's own


def test_nobody_else_begins_the_chain_of_an_edge(shop: Shop) -> None:
    """Whoever has a token for decisions, and knows the edge's name."""
    with shop.edge() as edge:
        play(edge, 2)
        first = shop.uploaded(edge)
        own = msgspec.json.decode(first[0].payload)
        stranger = UploadedEvent("created", None, first[0].time, canonical({**own, "token": TOKEN}))
        answer = shop.upload(edge, [stranger], token=TOKEN)
        assert answer.status_code == 422
        assert "joined with" in answer.json()["detail"]
        edge.leases.renew()
    assert findings(shop.audit()) == []


def changed(kinds: str, change: Callable[[Any], Any]) -> Callable[[list[UploadedEvent]], list[UploadedEvent]]:
    """Alter the payloads of all events of a kind."""

    def altered(uploaded: list[UploadedEvent]) -> list[UploadedEvent]:
        out = []
        for one in uploaded:
            payload = msgspec.json.decode(one.payload)
            if one.kind == kinds:
                change(payload)
            out.append(msgspec.structs.replace(one, payload=canonical(payload)))
        return out

    return altered


def flip(payload: Any) -> None:
    payload["source"] = "baseline" if payload["source"] == "learner" else "learner"
    if "action" in payload:
        payload["action"] = payload["certificate"]["proposal"] if payload["action"] == 0 else 0


def without_round_2(uploaded: list[UploadedEvent]) -> list[UploadedEvent]:
    return [one for one in uploaded if b'"round":2' not in one.payload]


def reward_again(uploaded: list[UploadedEvent]) -> list[UploadedEvent]:
    last = next(one for one in reversed(uploaded) if one.kind == "reward")
    return [*uploaded, last]


def void_what_is_paid(uploaded: list[UploadedEvent]) -> list[UploadedEvent]:
    """Or bad rounds of the learner would be the baseline's afterwards."""
    last = next(one for one in reversed(uploaded) if one.kind == "round")
    decision_id = msgspec.json.decode(last.payload)["decision_id"]
    voided = canonical({"decision_id": decision_id, "action": 1, "reason": "", "by": ""})
    return [*uploaded, UploadedEvent("voided", f"v:{decision_id}", uploaded[-1].time, voided)]


def go_back(uploaded: list[UploadedEvent]) -> list[UploadedEvent]:
    return [*uploaded[:-1], msgspec.structs.replace(uploaded[-1], time=1.0)]


def come_late(uploaded: list[UploadedEvent]) -> list[UploadedEvent]:
    return [*uploaded[:-1], msgspec.structs.replace(uploaded[-1], time=time.time() + 3600.0)]


def add(kind: str, payload: Any, key: str | None = None) -> Callable[[list[UploadedEvent]], list[UploadedEvent]]:
    return lambda uploaded: [*uploaded, UploadedEvent(kind, key, uploaded[-1].time, canonical(payload))]


LIES: dict[str, Callable[[list[UploadedEvent]], list[UploadedEvent]]] = {
    "another side": changed("round", flip),
    "another certificate": changed("round", lambda it: it["certificate"].update(margin=1.0, allowed=1.0)),
    "held though it was not": changed("round", lambda it: it.update(is_held=True)),
    "another mode": changed("round", lambda it: it.update(mode="paused")),
    "a round left out": without_round_2,
    "a reward twice": reward_again,
    "a reward out of all bounds": changed("reward", lambda it: it.update(values={"reward": "inf"})),
    "a reward of no metric": changed("reward", lambda it: it.update(values={"other": 1.0})),
    "a reward of no decision": changed("reward", lambda it: it.update(decision_id="nobody")),
    "a void once the reward is known": void_what_is_paid,
    "time running back": go_back,
    "the future": come_late,
    "a mode that nobody said": add("mode", {"mode": "guarded", "shared": 1}),
    "a resume by itself": add("mode", {"mode": "guarded", "shared": 0}),
    "a pause by itself": add("mode", {"mode": "paused", "reason": "fire", "by": "", "shared": 0}),
    "an answer to an alarm": add("acknowledged", {"response": "renew", "reason": "x"}),
    "a lease that nobody granted": changed("leased", lambda it: it.update(amounts=[1e6])),
    "a second lease": add(
        "leased",
        {
            "shard": "till",
            "number": 2,
            "amounts": [9.0],
            "since": 0.0,
            "watermark": 0.0,
            "merged": 0,
            "learned": 0,
            "digest": "00" * 32,
        },
    ),
    "the end of another lease": add("lease_ended", {"lease": 2}),
    "rows that are none": add("catalogue", {"digest": "00" * 32, "rows": [[0.1], [0.1, 0.2]]}, "c:" + "00" * 32),
    "another catalogue": add("catalogue", {"digest": "00" * 32, "rows": [[0.1, 0.2]]}, "c:" + "00" * 32),
    "what is no event": add("round", {"x": 1}),
    "an unknown kind": add("anything", {}),
    "another experiment": changed("created", lambda it: it["settings"].update(alpha=0.9)),
}
OF_COINS: dict[str, Callable[[list[UploadedEvent]], list[UploadedEvent]]] = {
    "another coin": changed("round", lambda it: it.update(draw=it["draw"] / 2.0)),
    "another share": changed("round", lambda it: it.update(share=0.05)),
    "coins of other rounds": changed("coins", lambda it: it.update(first=1000)),
    "a forecast without a context": changed("round", lambda it: it.update(forecast={"reward": 0.4})),
    "coins of nobody": changed("coins", lambda it: it.update(commitment="00" * 32)),
    "a secret of no block": changed("coins", lambda it: it.update(revealed=[[99, "00" * 32]])),
    "a secret that is none": changed("coins", lambda it: it.update(revealed=[[2, "xx"]])),
    "no block of coins": lambda uploaded: [one for one in uploaded if one.kind != "coins"],
    "another id, which has another coin": changed("round", lambda it: it.update(decision_id=it["decision_id"] + "x")),
}


@pytest.mark.parametrize(
    ("kind", "lie"),
    [*(("rows", lie) for lie in LIES), *(("pair", lie) for lie in (*LIES, *OF_COINS))],
)
def test_the_service_refuses_what_the_lease_does_not_decide(new_shop: Callable[..., Shop], kind: str, lie: str) -> None:
    shop = new_shop(kind)
    with shop.edge() as edge:
        play(edge, 6)
        honest = shop.uploaded(edge)
        assert changed("", lambda it: None)(honest) == honest
        answer = shop.upload(edge, {**LIES, **OF_COINS}[lie](honest))
        assert 400 <= answer.status_code < 500, answer.text
        assert "must" in answer.json()["detail"]
        edge.leases.renew()
        play(edge, 2)
        edge.leases.renew()
        assert [event.hash for event in shop.chain()] == [event.hash for event in chain_of(edge)][: len(shop.chain())]
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 8


@pytest.mark.parametrize("is_undone", [False, True])
def test_an_edge_that_passes_over_a_pause_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, is_undone: bool
) -> None:
    path = f"/v1/experiments/{shop.name}/mode"
    with shop.edge() as edge:
        warmed(edge)
        for mode in ("paused", "guarded", "paused"):
            assert shop.ask("PUT", path, {"mode": mode, "reason": "fire"}).status_code == 200
        if is_undone:  # by an older word of the hub
            edge.leases.renew()
            with open_journal(str(shop.keys / "hub.db"), read_only=True) as hub:
                older = [event.number for event in hub.read(shop.name) if event.kind == "mode"][1]
            resume = Mode(mode="guarded", reason="as where the shards meet", shared=older)
            edge.transact(lambda turn: go_over(turn, resume))
        else:
            with monkeypatch.context() as forged:
                forged.setattr(lease_renewal, "adopt_mode", lambda *args: None)
                edge.leases.renew()
        assert visit(edge).mode == "guarded"
        with pytest.raises(ServiceError, match="must be what"):
            edge.leases.renew()
    assert findings(shop.audit()) == []


def test_the_service_refuses_what_does_not_follow(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 4)
        honest = shop.uploaded(edge)
        assert shop.upload(edge, honest).status_code < 300
        for wrong in (
            {"token": TOKEN}, {"follows": len(honest) + 3}, {"follows": -1}, {"lease": 7}, {"lease": 7, "proof": ""},
            {"events": b"\x00"}, {"events": msgspec.msgpack.encode([[1, 2]])},
        ):  # fmt: skip
            answer = shop.upload(edge, honest, **wrong)
            assert 400 <= answer.status_code < 500, (wrong, answer.text)
        for _ in range(3):  # as if answers were lost
            assert shop.upload(edge, honest).status_code < 300
        other = [*honest[:-1], msgspec.structs.replace(honest[-1], payload=honest[-1].payload.replace(b"0.", b"1.", 1))]
        assert "copy" in shop.upload(edge, other).json()["detail"]
        edge.leases.renew()
    report = shop.audit()
    assert findings(report) == []
    assert (report.shards["till"].tally.decisions, report.hub.tally.decisions) == (4, 4)


def test_a_hub_that_does_not_know_a_lease_it_granted_was_put_back_and_pauses_all(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 3)
        state: Any = edge.known_state
        key, link = SigningKey(shop.keys / "head.key"), edge.settings.hub or ""
        for proof in ("", "00" * 32, lease_proof(key, link, "till", TOKEN, 9), state.shard.lease.proof):
            assert "was not" in shop.upload(edge, [], lease=9, proof=proof).json()["detail"]
        edge.leases.renew()
        assert visit(edge).mode == "guarded"  # whoever cannot prove it pauses nobody
        proof = lease_proof(key, link, "till", state.shard.token, 9)
        assert "older copy took its place" in shop.upload(edge, [], lease=9, proof=proof).json()["detail"]
        edge.leases.renew()
        answer = visit(edge)
        assert (answer.mode, answer.source) == ("paused", "baseline")
        edge.leases.renew()
    assert findings(shop.audit()) == []


def test_blocks_have_coins_of_their_own_which_the_hub_does_not_show(new_shop: Callable[..., Shop]) -> None:
    shop = new_shop("pair")
    key = SigningKey(shop.keys / "head.key")
    secrets = {coin_secret(key, hub, shard, block) for hub in ("00", "11") for shard in "ab" for block in range(3)}
    assert len(secrets) == 12
    with shop.edge() as edge:
        play(edge, 5)
        edge.leases.renew()
        secret = coin_secret(key, edge.settings.hub or "", "till", 0)
        commitment = hashlib.sha256(secret).hexdigest()
        assert lease_of(edge).coins[0] == commitment
        for round_ in ("visit-a", "visit-b"):
            answer = visit(edge, decision_id=round_)
            drawn: Any = edge.round(round_)
            assert drawn.draw == coin_of(secret, answer.round)
        with open_journal(str(shop.keys / "hub.db"), read_only=True) as hub:
            chains = (shop.name, edge_chain(shop.name, "till"))
            written = b"".join(event.payload for name in chains for event in hub.read(name))
        assert commitment.encode() in written
        assert secret.hex().encode() not in written
        assert shop.journal_of("till").stat().st_mode & 0o777 == 0o600


def test_rounds_that_were_never_handed_in_stay_paid_for(new_shop: Callable[..., Shop]) -> None:
    """An edge that is never heard of again: its lease is not leased to anybody else."""
    shop, world = new_shop("pair"), GuardWorld(6)
    edge = shop.opened()
    for _ in range(10):
        world.visit(edge, 0.0, 1.0, is_paid=False, proposal="new")
    amount = lease_of(edge).amounts[0]
    crash(edge)
    with shop.edge("second") as other:
        for _ in range(40):
            world.visit(other, 0.0, 1.0, is_paid=False, proposal="new")
        assert lease_of(other).amounts[0] <= RESERVE - amount
        assert world.least >= -RESERVE
        other.leases.renew()
    assert findings(shop.audit()) == []


def rewrite(path: Path, chains: dict[str, Callable[[str, dict[str, Any]], None]]) -> None:
    """Change payloads of chains in a file, and compute all hashes anew."""
    with sqlite3.connect(path) as journal:
        for name, change in chains.items():
            (experiment,) = journal.execute("SELECT id FROM experiments WHERE name = ?", (name,)).fetchone()
            rows = "SELECT number, kind, time, payload, key FROM events WHERE experiment = ? ORDER BY number"
            head = START
            for number, kind, moment, payload, key in journal.execute(rows, (experiment,)).fetchall():
                record = msgspec.json.decode(payload)
                change(kind, record)
                if kind == "snapshot":
                    record.update(hash=head.hash)
                event = next_event(name, head, kind=kind, payload=canonical(record), time=moment, key=key)
                values = event.payload, event.previous, event.hash, experiment, number
                update = "UPDATE events SET payload = ?, previous = ?, hash = ? WHERE experiment = ? AND number = ?"
                journal.execute(update, values)
                head = event.head
            journal.execute("UPDATE experiments SET hash = ? WHERE id = ?", (head.hash, experiment))
    journal.close()


def redraw(number: int, kind: str, payload: dict[str, Any]) -> None:
    """Another coin in a round that the baseline won, in the edge's chain and where the shards meet."""
    if kind == "round" and payload["round"] == number:
        payload["draw"] = 0.5 + payload["draw"] / 2.0
    if kind == "handed_in" and payload["shard"] == "till":
        for made in payload["rounds"]:
            if made[0] == number:
                made[4] = 0.5 + made[4] / 2.0


def other_secret(_: int, kind: str, payload: dict[str, Any]) -> None:
    if kind == "coins" and payload.get("revealed"):
        payload["revealed"] = [[number, "00" * 32] for number, _ in payload["revealed"]]


@pytest.mark.parametrize(("insider", "what"), [(redraw, "draw"), (other_secret, "secret")])
def test_the_audit_finds_a_coin_that_an_insider_drew_again(
    new_shop: Callable[..., Shop], insider: Any, what: str
) -> None:
    """Whoever can write to the journal, and computes all hashes anew: the hub knew the hash before the coins fell."""
    shop = new_shop("pair")
    with shop.edge() as edge:
        play(edge, 20)
        answer = visit(edge)
        while answer.source != "baseline":
            edge.abandon(answer.decision_id)
            answer = visit(edge)
        edge.abandon(answer.decision_id)
        while edge.status().rounds < BLOCK + 5:  # so that the first block is over, and its secret revealed
            play(edge, 50)
        edge.leases.renew()
    assert findings(shop.audit()) == []
    for name in ("hub.db", "own.db"):
        with sqlite3.connect(shop.keys / name) as journal:
            journal.execute("VACUUM INTO ?", (str(shop.folder / name),))
        journal.close()
    changes = partial(insider, answer.round)
    rewrite(shop.folder / "hub.db", {shop.name: changes, edge_chain(shop.name, "till"): changes})
    assert what in {found for _, found, _ in findings(shop.audit_of(shop.folder))}


@pytest.mark.parametrize("life", ["killed", "background"])
def test_a_killed_process_has_lost_nothing_that_it_answered(shop: Shop, life: str) -> None:
    told = dict[str, str]()
    command = [sys.executable, "-c", KILLED, shop.address, str(shop.keys), str(shop.folder), shop.name, shop.kind, life]
    for _ in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            lines = list(itertools.islice(process.stdout, 120))
            process.kill()
            lines += process.stdout.read().splitlines()[:-1]
        told |= dict(line.split() for line in lines)
    with shop.edge() as edge:
        for decision_id, source in told.items():
            assert edge.find(decision_id).source == source
        edge.leases.renew()
        rounds = edge.status().rounds
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == rounds >= len(told)


KILLED = """
import sys, time
from pathlib import Path
from tests.sharing.edges import Shop, reward_of, visit
address, keys, folder, name, kind, life = sys.argv[1:]
in_background = life == "background"
edge = Shop(address, Path(keys), Path(folder), name, kind).opened(in_background=in_background, every=50, seconds=0.2)
while True:
    answer = visit(edge)
    print(answer.decision_id, answer.source, flush=True)
    edge.reward(answer.decision_id, reward_of(edge, answer))
    time.sleep(0.001)
"""


def test_a_lease_that_ended_is_handed_in_by_the_next_process(shop: Shop) -> None:
    way = Way()
    edge = shop.opened(way=way)
    warmed(edge)
    lease, hub = lease_of(edge).number, edge.leases.hub
    hub.take = lambda *args, **kwargs: (_ for _ in ()).throw(ConnectionError)
    with pytest.raises(ConnectionError):
        edge.leases.renew()
    assert play(edge, 20) == 0  # the lease may be somebody else's by now
    crash(edge)
    with shop.edge() as again:
        assert lease_of(again).number == lease + 1
        assert lets_the_learner_play(again)
        again.leases.renew()
    assert findings(shop.audit()) == []


def test_coins_are_uniform_and_independent_of_rounds_and_secrets() -> None:
    drawn = [coin_of(bytes([k]) * 32, n) for k in range(40) for n in range(1, 251)]
    assert all(0.0 <= one < 1.0 for one in drawn)
    counts = [sum(k / 20 <= one < (k + 1) / 20 for one in drawn) for k in range(20)]
    assert sum((one - 500) ** 2 / 500 for one in counts) < 50.8  # chi-square of 19 at 1 - 1e-4
    pairs = list(itertools.pairwise(drawn))
    assert abs(sum((a - 0.5) * (b - 0.5) for a, b in pairs) / len(pairs) * 12.0) < 0.045
