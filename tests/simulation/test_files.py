"""Files appear whole or not at all."""

import os
import stat
from pathlib import Path

import pytest

from surefoot.atomic_files import is_left_behind, whole_file


def test_a_file_takes_its_place_only_when_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")
    with whole_file(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")
    with pytest.raises(TypeError), whole_file(path) as file:
        file.writelines([b"half", None])  # type: ignore[list-item]
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["table.csv"]


def test_a_new_file_may_be_read_as_any_other(tmp_path: Path) -> None:
    with whole_file(tmp_path / "ours") as file:
        file.write(b"1")
    (tmp_path / "plain").write_bytes(b"1")
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("ours", "plain")]
    assert modes[0] == modes[1]


def test_what_a_kill_leaves_behind_is_recognised(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    with whole_file(path):
        (name,) = os.listdir(tmp_path)
    assert is_left_behind(name, path)
    assert not is_left_behind("settings.json", path)
    assert not is_left_behind(".settings.json.backup", path)
