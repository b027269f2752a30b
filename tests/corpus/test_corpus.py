"""Scripted days come out as they were recorded, in every cell: the same decisions, ledgers, banks and verdicts."""

import gzip
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.corpus.days import RECORDED, days

KNOWN = json.loads(gzip.decompress(RECORDED.read_bytes()))


def differences(ours: Any, known: Any, place: str = "") -> Iterator[str]:
    """Where two days differ by more than another build of the core could make them."""
    if isinstance(known, dict) and isinstance(ours, dict) and known.keys() == ours.keys():
        for key in known:
            yield from differences(ours[key], known[key], f"{place}.{key}")
    elif isinstance(known, list) and isinstance(ours, list) and len(known) == len(ours):
        for index, pair in enumerate(zip(ours, known, strict=True)):
            yield from differences(*pair, f"{place}[{index}]")
    elif isinstance(known, float) and isinstance(ours, (int, float)):
        if not math.isclose(ours, known, rel_tol=1e-9, abs_tol=1e-9):
            yield f"{place}: {ours} and not {known}"
    elif ours != known:
        yield f"{place}: {ours!r:.200} and not {known!r:.200}"


@pytest.mark.parametrize(("name", "play"), list(days()), ids=[name for name, _ in days()])
def test_the_day_comes_out_as_recorded(name: str, play: Callable[[Path], Any], tmp_path: Path) -> None:
    assert list(differences(play(tmp_path), KNOWN[name]))[:5] == []
