"""Edits of a journal that leave the hashes alone: the chain shows and names every one."""

import shutil
from pathlib import Path

import pytest

from surefoot.audit import audit
from surefoot.journal import open_journal
from tests.experiment.tampering import Row, Tamper, first, forged, is_learner, load, save, swap


def edit_a_feature(rows: list[Row]) -> int:
    row = first(rows, "round", is_learner)
    row["payload"]["request"]["features"][0][0] += 1e-12
    return int(row["number"])


def edit_a_reward(rows: list[Row]) -> int:
    row = first(rows, "reward", after=50)
    row["payload"]["values"]["reward"] += 0.001
    return int(row["number"])


def edit_a_number_of_a_proof(rows: list[Row]) -> int:
    row = first(rows, "round", after=80)
    row["payload"]["certificate"]["proof"]["pieces"][0]["bound"] += 0.01
    return int(row["number"])


def edit_a_time(rows: list[Row]) -> int:
    rows[40]["time"] += 0.25
    return 41


def edit_a_key(rows: list[Row]) -> int:
    row = first(rows, "round", after=30)
    row["key"] = "d:somebody-else"
    return int(row["number"])


def change_a_kind(rows: list[Row]) -> int:
    row = first(rows, "snapshot")
    row["kind"] = "mode"
    return int(row["number"])


def swap_two_events(rows: list[Row]) -> int:
    swap(rows, 30, 31)
    return 31


def drop_an_event(rows: list[Row]) -> int:
    del rows[60]
    return 62


def drop_several_events(rows: list[Row]) -> int:
    del rows[60:64]
    return 65


def drop_the_last_event(rows: list[Row]) -> int:
    rows.pop()
    return 0


def drop_the_first_event(rows: list[Row]) -> int:
    rows.pop(0)
    return 2


def append_a_copy(rows: list[Row]) -> int:
    rows.append({**rows[50], "number": rows[-1]["number"] + 1, "key": None})
    return int(rows[-1]["number"])


def replace_a_hash(rows: list[Row]) -> int:
    rows[70]["hash"] = "f" * 64
    return 71


def change_the_mode(rows: list[Row]) -> int:
    row = first(rows, "mode")
    row["payload"]["mode"] = "paused"
    return int(row["number"])


def write_nonsense(rows: list[Row]) -> int:
    rows[45]["payload"] = {"nonsense": True}
    return 46


BY_HASH: dict[Tamper, str] = {
    edit_a_feature: "hash",
    edit_a_reward: "hash",
    edit_a_number_of_a_proof: "hash",
    edit_a_time: "hash",
    edit_a_key: "hash",
    change_a_kind: "hash",
    swap_two_events: "hash",
    drop_an_event: "number",
    drop_several_events: "number",
    drop_the_last_event: "head",
    drop_the_first_event: "number",
    append_a_copy: "previous",
    replace_a_hash: "hash",
    change_the_mode: "hash",
    write_nonsense: "hash",
}


@pytest.mark.parametrize("tamper", BY_HASH, ids=lambda tamper: tamper.__name__)
def test_the_hashes_show_it(tamper: Tamper, honest: Path, tmp_path: Path) -> None:
    touched, report = forged(honest, "arrival", tamper, tmp_path, rehash=False)
    assert any(found.event == touched and found.what == BY_HASH[tamper] for found in report.findings), [
        *report.findings
    ]


def test_the_files_are_clean_before_anybody_touches_them(honest: Path, tmp_path: Path) -> None:
    for name in ("arrival", "window", "known"):
        for rehash in (False, True):
            _, report = forged(honest, name, lambda rows: 0, tmp_path, rehash=rehash)
            assert report.is_clean, [*report.findings]


def test_an_end_that_was_cut_off_with_its_head_is_found_by_a_head_kept_elsewhere(honest: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.db"
    shutil.copy(honest / "arrival.db", path)
    rows = load(path)
    kept = rows[-1]["hash"]
    save(path, rows[:-4], head=(rows[-5]["number"], rows[-5]["hash"]))
    with open_journal(path, read_only=True) as journal:
        assert audit(journal, "shop").is_clean  # a shorter chain is a chain
        assert [found.what for found in audit(journal, "shop", expect=kept).findings] == ["expected"]
        assert audit(journal, "shop", expect=rows[20]["hash"]).is_clean
