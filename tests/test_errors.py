"""Every error knows which field its rule is about, wherever it was raised and whoever raised it again."""

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import AlarmError, InputError, JournalConflictError, SurefootError

SETTINGS: dict[str, Any] = {
    "dim": 2, "delta": 0.1, "noise": 1.0, "ridge": 0.3, "theta_bound": 1.0, "feature_bound": 1.0,
}  # fmt: skip


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ("`features` must be finite, but row 1 is [nan, 0.0].", "features"),
        ("`0 <= baseline < 5` must hold for 5 actions, but got baseline=7.", "baseline"),
        ("`1e-100 <= feature_bound <= 1e100` must hold.", "feature_bound"),
        ("A set given as `baseline` must hold at least one row, but `rows` is empty.", "baseline"),
        ("`low < high` must hold in reward_bounds, but got (1, 0).", None),
        ("`noise` or `reward_bounds` must be given.", "noise"),
        ("`` must be a name, but got nothing.", None),
        ("There must be an alarm to acknowledge, but none is on.", None),
        ("", None),
    ],
)
def test_the_field_is_the_one_name_in_the_first_backticks(message: str, field: str | None) -> None:
    for kind in (InputError, AlarmError, JournalConflictError):
        assert kind(message).field == field
    assert SurefootError().field is None


def test_an_error_that_is_copied_pickled_or_raised_again_keeps_its_field() -> None:
    error = InputError("`rewards` must be finite.")
    again = type(error)(*error.args), copy.copy(error), pickle.loads(pickle.dumps(error))
    assert [one.field for one in again] == ["rewards"] * 3


@pytest.mark.parametrize(
    ("call", "field"),
    [
        (lambda: surefoot.UCB(arms=1), "arms"),
        (lambda: surefoot.Guard(alpha=1.5, delta=0.1), "alpha"),
        (lambda: surefoot.LUCB(**{**SETTINGS, "ridge": 0.0}), "ridge"),
        (lambda: surefoot.LUCB(**{**SETTINGS, "feature_bound": 1e101}), "feature_bound"),
        (lambda: surefoot.CLUCB2(alpha=0.1, **SETTINGS).decide(np.eye(2), baseline=2), "baseline"),
        (lambda: surefoot.CLUCB2(alpha=0.1, **SETTINGS).decide(np.eye(3), baseline=0), "features"),
    ],
)
def test_what_a_caller_got_wrong_is_named(call: Callable[[], Any], field: str) -> None:
    with pytest.raises(SurefootError) as caught:
        call()
    assert caught.value.field == field
