"""Compiled code on disk never outlives the sources it was made from."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

USER = """
import numpy as np
from surefoot.compiled import compiled
from layout import {imports}

@compiled
def pick(array):
    return {body}

print(pick(np.array([10.0, 20.0])))
"""


def run(folder: Path) -> float:
    environment = {**os.environ, "PYTHONPATH": str(folder), "NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "-B", str(folder / "user.py")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=120)
    return float(done.stdout)


def write_later(path: Path, text: str) -> None:
    """Write a file with a time stamp that is visibly newer than before."""
    newer = path.stat().st_mtime + 10
    path.write_text(text)
    os.utime(path, (newer, newer))


@pytest.mark.parametrize(
    ("imports", "body", "before", "after"),
    [
        ("PLACE", "array[PLACE]", "PLACE = 0\n", "PLACE = 1\n"),
        ("place", "array[place()]", "{head}def place():\n    return 0\n", "{head}def place():\n    return 1\n"),
    ],
    ids=["a constant", "a compiled function"],
)
def test_a_change_in_what_was_imported_is_seen(
    tmp_path: Path, imports: str, body: str, before: str, after: str
) -> None:
    head = "from surefoot.compiled import compiled\n\n@compiled\n"
    (tmp_path / "user.py").write_text(USER.format(imports=imports, body=body))
    layout = tmp_path / "layout.py"
    layout.write_text(before.format(head=head))
    assert run(tmp_path) == 10.0
    assert run(tmp_path) == 10.0
    write_later(layout, after.format(head=head))
    assert run(tmp_path) == 20.0
