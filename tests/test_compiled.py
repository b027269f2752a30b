"""Compiled code on disk never outlives the sources it was made from, and counts from the front."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest

from surefoot.counting import Compiler

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


def test_a_computed_index_counts_from_the_front_and_a_constant_one_as_in_python() -> None:
    def pick(x: Any, table: Any, i: int, j: int) -> float:
        table[i, j] = x[i]
        return float(table[i, j] + x[-1] + table[0, j:].sum())

    x, table = np.arange(4.0), np.zeros((4, 3))
    checked: Any = numba.njit(pick, pipeline_class=Compiler, boundscheck=True)
    assert checked(x, table, 2, 1) == pick(x, np.zeros((4, 3)), 2, 1)
    for bad in ((-1, 1), (2, -1), (4, 0)):
        with pytest.raises(IndexError):
            checked(x, table, *bad)
