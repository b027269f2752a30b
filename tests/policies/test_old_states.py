"""A state that an earlier version saved opens in every later one, and goes on as that version did."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.policies.base_policy import BasePolicy
from tests.policies.old_states import CASES, FOLDER, Player, full, plain, read

SMOOTHED = 1e-7  # of a bound by facts, before a search gave them all of the question
GUARANTEED, OPTIMISM = 2, 5
TOLERANCE = 1e-9  # another core has its own logarithm and order of sums, so last bits may differ


def same(ours: Any, kept: Any) -> bool:
    """Names and counts exactly, numbers closely."""
    if isinstance(kept, float):
        return bool(np.isclose(ours, kept, rtol=TOLERANCE, atol=TOLERANCE, equal_nan=True))
    return bool(ours == kept)


@pytest.mark.parametrize("name", CASES)
def test_an_old_state_opens_and_goes_on_as_it_did(name: str) -> None:
    kept = read(FOLDER / f"{name}.json.gz")
    policy = BasePolicy.from_state(kept["state"])
    assert (list(policy.pending), list(policy.waiting)) == (kept["pending"], kept["waiting"])
    assert {"restarts": policy.restarts, "alarm": policy.alarm.plain() if policy.alarm else {}} == {
        name: kept["state"][name] for name in ("restarts", "alarm")
    }
    decided = Player(CASES[name], policy, kept["late"]).play(len(kept["next"]))
    for number, (ours, theirs) in enumerate(zip(decided, kept["next"], strict=True), start=1):
        now = [*ours]
        if name.startswith("SafeLUCB"):
            # Bounds lost up to SMOOTHED to a smoothed corner, and no longer do: they may be better, never worse.
            for place, side in ((GUARANTEED, 1.0), (OPTIMISM, -1.0)):
                gained = side * (now[place] - theirs[place])
                now[place] = theirs[place] if 0.0 <= gained <= SMOOTHED * (1.0 + abs(theirs[place])) else now[place]
        assert all(map(same, now, theirs)), f"round {number} after the state was {theirs}, and is {ours}"


def test_no_state_is_kept_without_a_test() -> None:
    assert {path.name for path in FOLDER.iterdir()} == {f"{name}.json.gz" for name in CASES}


def test_the_kept_states_show_what_they_are_kept_for() -> None:
    """Both sides play, rewards wait, lists are short, an alarm is on: else they could not tell right from wrong."""
    kept = {name: read(FOLDER / f"{name}.json.gz") for name in CASES}
    sides = {name: {decided[1] for decided in one["next"]} for name, one in kept.items()}
    assert sum(found == {"learner", "baseline"} for found in sides.values()) >= 25
    assert sum(bool(one["waiting"]) for one in kept.values()) >= 25
    scores = [one["state"]["catalogue_scores"] for one in kept.values() if "catalogue_scores" in one["state"]]
    assert len(scores) == 3
    assert all(0 < one[-1, 0] <= 8 for one in scores)
    assert kept["SafeLUCB-alarm"]["state"]["alarm"]
    assert kept["SafeLUCB-relearned"]["state"]["restarts"] == 1
    assert sum(path.stat().st_size for path in FOLDER.iterdir()) < 250_000


def test_a_state_is_kept_to_the_bit(tmp_path: Path) -> None:
    state = {"a": np.array([[0.1, -0.0], [np.inf, 1 / 3]]), "b": {"c": np.array([True, False])}, "d": 0.1}
    again = full(plain(state))
    assert again["a"].tobytes() == state["a"].tobytes()  # type: ignore[attr-defined]
    assert again["b"]["c"].dtype == np.bool_
