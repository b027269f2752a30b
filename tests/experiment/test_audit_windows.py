"""Forgeries with all hashes computed anew, of windows, refusals, catalogues, times and snapshots."""

from pathlib import Path

import pytest

from tests.experiment.tampering import Row, Tamper, assert_named, first, is_learner


def default_passed_off_as_a_reward(rows: list[Row]) -> int:
    row = first(rows, "settled", lambda p: any(is_missing for *_, is_missing in p["windows"]), after=60)
    next(window for window in row["payload"]["windows"] if window[2])[2] = False
    return int(row["number"])


def windows_in_another_order(rows: list[Row]) -> int:
    one = first(rows, "settled", after=60)
    two = first(rows, "settled", after=one["number"])
    one["payload"]["windows"], two["payload"]["windows"] = two["payload"]["windows"], one["payload"]["windows"]
    return int(one["number"])


def window_that_closed_too_early(rows: list[Row]) -> int:
    one = first(rows, "settled", after=60)
    two = first(rows, "settled", after=one["number"])
    one["payload"]["windows"] += two["payload"]["windows"]
    rows.remove(two)
    return int(one["number"])


def dropped_window(rows: list[Row]) -> int:
    row = first(rows, "settled", after=60)
    rows.remove(row)
    return int(row["number"])


def reward_in_a_window(rows: list[Row]) -> int:
    learner = {row["payload"]["decision_id"] for row in rows if row["kind"] == "round" and is_learner(row["payload"])}
    row = first(rows, "reward", lambda p: p["decision_id"] in learner)
    row["payload"]["values"]["reward"] += 0.1
    return int(row["number"])


def refused_reward_that_is_accepted(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: bool(p.get("refused")))
    del row["payload"]["refused"]
    return int(row["number"])


def reward_that_is_refused(rows: list[Row]) -> int:
    row = first(rows, "reward", lambda p: not p.get("refused"), after=60)
    row["payload"]["refused"], row["key"] = "too_late", None
    return int(row["number"])


def row_of_a_catalogue(rows: list[Row]) -> int:
    row = first(rows, "catalogue")
    row["payload"]["rows"][0][0] *= 1.001
    return int(row["number"])


def time_that_runs_backwards(rows: list[Row]) -> int:
    rows[60]["time"] -= 100.0
    return 61


def snapshot_of_another_state(rows: list[Row]) -> int:
    row = first(rows, "snapshot")
    row["payload"]["number"] -= 1
    return int(row["number"])


WITH_WINDOWS: dict[Tamper, tuple[str, int]] = {
    default_passed_off_as_a_reward: ("settled", 0),
    windows_in_another_order: ("window", 0),
    window_that_closed_too_early: ("window", 0),
    dropped_window: ("window", 9),
    reward_in_a_window: ("proposal", 30),
    refused_reward_that_is_accepted: ("reward", 0),
    reward_that_is_refused: ("refused", 0),
    row_of_a_catalogue: ("catalogue", 0),
    time_that_runs_backwards: ("time", 0),
    snapshot_of_another_state: ("snapshot", 0),
}


@pytest.mark.parametrize("tamper", WITH_WINDOWS, ids=lambda tamper: tamper.__name__)
def test_windows_catalogues_and_times_are_held_to_account(tamper: Tamper, honest: Path, tmp_path: Path) -> None:
    check, later = WITH_WINDOWS[tamper]
    assert_named(honest, "window", tamper, tmp_path, check=check, later=later)
