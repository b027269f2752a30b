"""Bundles and logs that were forged, altered, copied or used twice are refused, here or by the service."""

import itertools
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from surefoot.client import ServiceError
from surefoot.edge import Edge, base_edge_journal, edge_log
from surefoot.edge.bundle import FORMAT, Bundle, BundleHead, OpenedBundle, digest_of, sign
from surefoot.edge.edge_entries import Closed, Decided, Rewarded, framed, read_entries
from surefoot.edge.edge_messages import HandInEntries
from surefoot.errors import ConfigError, JournalBusyError, JournalCorruptedError, JournalError, SurefootError
from surefoot.journal.signatures import PublicKey, SigningKey
from tests.edge.edges import ROWS, Shop, crash, findings, new_keys, play, warmed

TOKEN = "ab" * 16


def newest(edge: Edge) -> Bundle:
    return edge._journal.bundle.bundle


@pytest.mark.parametrize("part", ["head", "signature", "state"])
def test_a_bundle_with_any_bit_changed_is_refused(shop: Shop, part: str) -> None:
    with shop.edge() as edge:
        bundle, key = newest(edge), PublicKey(shop.keys / "head.pub")
        meant = {"experiment": shop.name, "shard": "till", "token": edge._journal.token}
        assert OpenedBundle(bundle, key, **meant).lease().shard == "till"
        content = getattr(bundle, part)
        data = content.encode() if isinstance(content, str) else content
        for place in range(0, len(data), max(1, len(data) // 40)):
            altered: Any = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
            forged = msgspec.structs.replace(bundle, **{part: altered.decode() if part == "signature" else altered})
            with pytest.raises(ConfigError, match=r"signed|altered"):
                OpenedBundle(forged, key, **meant)


def test_a_bundle_of_another_key_log_edge_or_experiment_is_refused(shop: Shop) -> None:
    new_keys(shop.folder, "other")
    with shop.edge() as edge:
        bundle, token = newest(edge), edge._journal.token
        key, foreign = PublicKey(shop.keys / "head.pub"), PublicKey(shop.folder / "other.pub")
        meant = {"experiment": shop.name, "shard": "till", "token": token}
        with pytest.raises(ConfigError, match="signed"):
            OpenedBundle(bundle, foreign, **meant)
        for other in ({"token": TOKEN}, {"shard": "else"}, {"experiment": "else"}):
            with pytest.raises(ConfigError, match="for this log"):
                OpenedBundle(bundle, key, **{**meant, **other})
    with pytest.raises(ConfigError, match="signed"):
        shop.edge("new", key=shop.folder / "other.pub")


def test_a_lease_is_used_once_and_not_after_it_expired(shop: Shop) -> None:
    with shop.edge() as edge:
        first = newest(edge)
        play(edge, 3)
        with pytest.raises(ConfigError, match="used once"):
            edge._journal.accept(first, time.time())
        edge.renew()
        with pytest.raises(ConfigError, match="used once"):
            edge._journal.accept(first, time.time())
        edge._journal.end_lease(time.time(), is_untimed=False)
        head = msgspec.json.decode(newest(edge).head, type=BundleHead)
        lease = msgspec.structs.replace(head.lease, number=head.lease.number + 1)
        old = msgspec.structs.replace(head, lease=lease, expires=time.time() - 1.0)
        with pytest.raises(ConfigError, match="expired"):
            edge._journal.accept(sign(old, newest(edge).state, SigningKey(shop.keys / "head.key")), time.time())
        edge.renew()


def test_a_head_cannot_stand_for_a_lease(shop: Shop) -> None:
    with shop.edge() as edge:
        key = SigningKey(shop.keys / "head.key")
        bundle = newest(edge)
        assert not key.has_signed(bundle.signature, bundle.head)
        assert key.has_signed(bundle.signature, FORMAT + bundle.head)


def test_a_copy_of_a_log_is_refused(shop: Shop) -> None:
    log = shop.folder / "till.log"
    with shop.edge() as edge:
        warmed(edge)
        with pytest.raises(JournalBusyError, match="open once"):
            shop.edge()
        shutil.copy(log, shop.folder / "copy.log")
        with pytest.raises(ConfigError, match="copy"):
            shop.edge(log=shop.folder / "copy.log")
    kept = log.read_bytes()
    log.unlink()
    log.write_bytes(kept)  # as from a backup
    with pytest.raises(ConfigError, match="copy"):
        shop.edge()


def test_of_two_machines_with_one_log_the_second_to_hand_in_is_refused(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the file system tells nothing, such as for the image of a whole disk."""
    monkeypatch.setattr(edge_log, "_identity", lambda file: "same")
    with shop.edge() as edge:
        warmed(edge)
        for name in ("log", "log.mark"):
            shutil.copy(shop.folder / f"till.{name}", shop.folder / f"copy.{name}")
        with shop.edge(log=shop.folder / "copy.log") as copy:
            copy.decide(ROWS, baseline=1)
            play(edge, 5)
            edge.renew()
            with pytest.raises(ServiceError, match="copy"):
                copy.renew()
            play(edge, 5)
            edge.renew()
    assert findings(shop.audit()) == []


def test_another_log_cannot_take_an_edges_name(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 2)
        with pytest.raises(ServiceError, match="joined with"):
            shop.edge(log=shop.folder / "new.log")
    with pytest.raises(ServiceError, match="joined with"):
        shop.edge("server")  # the server's own


def rewritten(path: Path, change: Any) -> None:
    """The log with its entries changed, checksums and all, in the same file."""
    entries = [entry for entry, _ in read_entries(path.read_bytes())]
    with path.open("r+b") as file:
        file.truncate()
        file.write(b"".join(framed(change(entry)) for entry in entries))


def test_a_log_that_says_another_action_is_not_gone_on_with(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 5)

    def change(entry: Any) -> Any:
        return msgspec.structs.replace(entry, action=2, is_learner=True) if isinstance(entry, Decided) else entry

    rewritten(shop.folder / "till.log", change)
    with pytest.raises(JournalCorruptedError, match="altered"):
        shop.edge()


def test_a_log_with_any_bit_flipped_is_refused(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 5)
    path = shop.folder / "till.log"
    whole = path.read_bytes()
    ends = [end for _, end in read_entries(whole)]
    for place in [*range(0, len(whole), 331), *ends[:-1], *(end + 3 for end in ends[:-1]), len(whole) - 1]:
        data = bytearray(whole)
        data[place] ^= 0x40
        path.write_bytes(data)
        with pytest.raises(JournalCorruptedError, match="altered"):
            shop.edge()
        assert path.read_bytes() == data  # and left as it is


def given(edge: Edge, *, entries: bytes, **extra: Any) -> HandInEntries:
    told: dict[str, Any] = {"head": newest(edge).head, "signature": newest(edge).signature, "sent": time.time()}
    return HandInEntries(
        **{"token": edge._journal.token, "follows": edge._journal.follows, "entries": entries, **told, **extra}
    )


def test_the_service_refuses_what_the_lease_does_not_decide(shop: Shop) -> None:
    with shop.edge() as edge:
        play(edge, 4)
        honest = [entry for entry, _ in read_entries(edge._journal.part(10**9).data)]
        before = edge._journal.follows
        lies = [
            [msgspec.structs.replace(one, action=2) if isinstance(one, Decided) else one for one in honest],
            [msgspec.structs.replace(one, moment=1.0) for one in honest],
            [one for one in honest if not (isinstance(one, Decided) and one.round == 2)],
            [*honest, honest[-1]],
            [msgspec.structs.replace(one, rows=b"\0" * 7) if isinstance(one, Decided) else one for one in honest],
        ]  # fmt: skip
        for lie in lies:
            with pytest.raises(ServiceError, match="must"):
                edge._service.hand_in("till", given(edge, entries=b"".join(map(framed, lie))))
        whole = b"".join(map(framed, honest))
        wrongs: list[dict[str, Any]] = [
            {"token": TOKEN}, {"signature": "00" * 64}, {"entries": whole[:-3]}, {"entries": whole + b"x"},
            {"follows": before + 3}, {"follows": 0}, {"head": newest(edge).head.replace(b"guarded", b"shadow ")},
        ]  # fmt: skip
        for wrong in wrongs:
            with pytest.raises(ServiceError, match="must"):
                edge._service.hand_in("till", given(edge, **{"entries": whole, **wrong}))
        assert edge._journal.follows == before
        edge.renew()
        play(edge, 2)
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 6


def test_what_was_cut_short_was_never_answered_and_is_left_out(shop: Shop) -> None:
    edge = shop.edge()
    warmed(edge)
    crash(edge)
    path = shop.folder / "till.log"
    for tail in (b"\x40", framed(Closed())[:-1], framed(Rewarded(7, 1.0, 1.0))[:11], b"\0" * 4096):
        with path.open("ab") as file:
            file.write(tail)
        again = shop.edge()
        assert again.rounds == 140
        crash(again)
    with shop.edge() as again:
        assert play(again, 3) == 3
        again.renew()
    assert findings(shop.audit()) == []


def test_after_a_power_cut_a_log_goes_on_only_if_the_disk_had_everything(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    boots = tmp_path / "boot"
    boots.write_text("first")
    monkeypatch.setattr(edge_log, "BOOT", boots)
    for shard, sync in (("loose", False), ("synced", True), ("closed", False)):
        edge = shop.edge(shard, sync=sync)
        play(edge, 3)
        if shard == "closed":
            edge.close()
        else:
            crash(edge)
    boots.write_text("second")
    with pytest.raises(ConfigError, match="switched off"):
        shop.edge("loose")
    for shard in ("synced", "closed"):
        with shop.edge(shard) as edge:
            assert edge.rounds == 3


def test_a_log_that_cannot_be_written_plays_the_baseline_and_counts_nothing(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    edge = shop.edge()
    warmed(edge)

    def full(file: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr("surefoot.edge.edge_log.os.write", full)
        for _ in range(3):
            made = edge.decide(ROWS, baseline=0)
            assert (made.action, made.source, made.is_fallback) == (0, "baseline", True)
            assert "not counted" in made.explanation
        assert edge.reward(made.decision_id, 1.0).refused == "unknown"
    made = edge.decide(ROWS, baseline=0)  # what the shard has counted is not in the log
    assert made.source == "baseline"
    edge.close()
    with shop.edge() as again:
        assert again.rounds == 140
        assert play(again, 3) == 3
        again.renew()
    assert findings(shop.audit()) == []


def test_a_long_log_begins_anew_and_goes_on_to_the_bit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(base_edge_journal, "LARGEST_LOG", 20_000)
    with shop.edge() as edge:
        for turn in itertools.count():
            play(edge, 20)
            waits = edge.decide(ROWS, baseline=0)
            edge.renew()
            play(edge, 2)
            if turn == 12:
                break
            edge.reward(waits.decision_id, 0.8)
        assert (shop.folder / "till.log").stat().st_size < 40_000
        state = edge._journal.shard.state()
    with shop.edge() as again:
        restored = again._journal.shard.state()
        assert restored["moment"] == state["moment"]
        assert msgspec.msgpack.encode(restored["policy"]["rounds"]) == msgspec.msgpack.encode(state["policy"]["rounds"])
        assert again.reward(waits.decision_id, 0.8).is_accepted
        play(again, 5)
        again.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == 13 * 23 + 5


KILLED = """
import sys, time
from tests.edge.edges import MEANS, ROWS, new_edge
from pathlib import Path
edge = new_edge(sys.argv[1], Path(sys.argv[2]), key=sys.argv[3], experiment=sys.argv[4], in_background=True, every=50)
while True:
    made = edge.decide(ROWS, baseline=0)
    print(made.decision_id, made.action, flush=True)
    edge.reward(made.decision_id, float(MEANS[made.action]))
    time.sleep(0.001)
"""


def test_a_killed_edge_has_lost_nothing_that_it_answered(shop: Shop) -> None:
    command = [sys.executable, "-c", KILLED, shop.address, str(shop.folder), str(shop.keys / "head.pub"), shop.name]
    told = dict[int, int]()
    for life in range(2):
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            for line in itertools.islice(process.stdout, 100 * (life + 1)):
                number, action = line.split()
                told[int(number.removeprefix("till:"))] = int(action)
            process.kill()
            for line in process.stdout.read().splitlines()[:-1]:
                number, action = line.split()
                told[int(number.removeprefix("till:"))] = int(action)
    written = {
        entry.round: entry.action
        for entry, _ in read_entries((shop.folder / "till.log").read_bytes())
        if isinstance(entry, Decided)
    }
    assert written.items() >= told.items()
    with shop.edge() as edge:
        assert edge.rounds >= max(told)
        edge.renew()
    report = shop.audit()
    assert findings(report) == []
    assert report.shards["till"].tally.decisions == len(written)


def test_errors_of_the_log_are_of_this_package(tmp_path: Path, shop: Shop) -> None:
    (tmp_path / "text").write_text("this is no log, but long enough to look like a frame of one")
    for path in (tmp_path / "text", tmp_path / "none" / "such", tmp_path):
        with pytest.raises(SurefootError):
            shop.edge(log=path)
    assert digest_of(b"") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert issubclass(JournalCorruptedError, JournalError)


def test_without_its_packages_an_edge_says_what_to_install() -> None:
    without = "import sys; sys.modules['httpx'] = None; import surefoot.edge.edge_chain"  # a server needs none
    script = f"{without}; from surefoot.edge import Edge"
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert found.stderr.strip().endswith("pip install 'surefoot[edge]'")
