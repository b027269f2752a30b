"""The same bits everywhere: between builds, threads and teams, and as the table in the repository says."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot import core
from surefoot.simulation import PaperWorld, Spec, simulate
from tests.core.digests import digests

TABLE = Path(__file__).with_name("digests.json")
SAID: dict[str, str] = json.loads(TABLE.read_text())


def in_process(build: str, *arguments: str) -> Any:
    command = [sys.executable, "-m", "tests.core.digests", *arguments]
    environment = {**os.environ, "SUREFOOT_CORE": build}
    root = Path(__file__).parents[2]
    return json.loads(subprocess.run(command, env=environment, cwd=root, capture_output=True, check=True).stdout)


@pytest.mark.parametrize("build", core.runnable())
def test_every_build_gives_the_bits_of_the_table(build: str) -> None:
    """Where the mathematics change on purpose: `python -m tests.core.digests > tests/core/digests.json`."""
    assert in_process(build) == SAID


@pytest.mark.parametrize("lanes", [1, 4, 8, 32])
def test_every_team_gives_the_bits_of_the_table(lanes: int) -> None:
    assert digests(lanes) == SAID


def test_any_number_of_threads_gives_the_same_bits() -> None:
    specs = [Spec("CLUCB", alpha=0.1), Spec("SafeLUCB", alpha=0.1)]
    one, *others = (simulate(PaperWorld(), specs, runs=45, horizon=60, threads=threads) for threads in (1, 2, 4))
    for other in others:
        for a, b in zip(one, other, strict=True):
            assert all(np.array_equal(a.measures[name], b.measures[name]) for name in a.measures)
            assert np.array_equal(a.violations, b.violations)
