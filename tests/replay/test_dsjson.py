"""VW's DSJSON: what its special names mean."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binom

from surefoot.errors import LogError
from surefoot.replay import read_log
from surefoot.replay.dsjson import hash_row
from tests.replay.test_readers import dsjson, whole


def test_events_that_were_not_learned_from_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "log.dsjson"
    events = [dsjson(1, 1), dsjson(2, 2, _skipLearn=True), dsjson(3, 3, _skipLearn=False)]
    path.write_text("\n".join(json.dumps(event) for event in events))
    log = read_log(path)
    assert (log.rows, log.bad.count, whole(log).lines.tolist()) == (2, 0, [1, 3])
    path.write_text(json.dumps(events[1]))
    with pytest.raises(LogError, match="at least one usable event"):
        read_log(path)


def test_names_with_an_underscore_are_no_features_and_words_are(tmp_path: Path) -> None:
    event = dsjson(1, 1)
    event["c"] |= {"_tag": "x", "title": {"_text": "big red", "_note": 3}}
    path = tmp_path / "log.dsjson"
    path.write_text(json.dumps(event))
    row = whole(read_log(path)).features[0, 1]
    shared = {"user|lang=de": 1.0, "user|visits": 3.0, "title|big": 1.0, "title|red": 1.0}
    np.testing.assert_array_equal(row, hash_row(shared, {"item|kind=sport": 1.0}, 32))


def test_events_that_were_dropped_less_often_are_thinned(tmp_path: Path) -> None:
    path, number = tmp_path / "log.dsjson", 3_000
    events = [dsjson(i, 1 + i % 3, pdrop=0.6 if i % 2 else 0.2) for i in range(number)]
    path.write_text("\n".join(json.dumps(event) for event in events))
    log = read_log(path)
    lines = whole(log).lines
    assert log.rows == lines.size
    often = int((lines % 2 == 0).sum())  # events count from 0 and lines from 1
    assert often == number // 2
    # Logged with chance 0.8, and left with 0.4.
    low, high = binom.ppf([1e-6, 1 - 1e-6], number // 2, 0.5)
    assert low <= lines.size - often <= high
    np.testing.assert_array_equal(whole(log).lines, lines)
    # The same chance for all of them thins nothing.
    path.write_text("\n".join(json.dumps(event | {"pdrop": 0.6}) for event in events))
    assert read_log(path).rows == number
    path.write_text(json.dumps(events[0] | {"pdrop": 1.0}))
    with pytest.raises(LogError, match="0 <= pdrop < 1 must hold, not 1"):
        read_log(path)
