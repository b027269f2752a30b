"""A void that is refused changes nothing, of what is charged above all."""

from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.errors import InputError
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.linear.actions import Catalogue
from tests.experiment.worlds import Clock

ROWS = np.array([[0.6, 0.1], [0.9, 0.3]])
TOLD: dict[str, Any] = {"dim": 2, "delta": 0.01, "noise": 0.1, "theta_bound": 1.0, "feature_bound": 1.0}


def overdue(features: Any, within: float = 20.0) -> tuple[Experiment, list[str]]:
    """An experiment in which the learner's rounds were never confirmed, and their ids."""
    clock, journal = Clock(), open_journal("memory:")
    policy = surefoot.SafeLUCB(alpha=0.1, reward_range=(0.0, 1.0), **TOLD)
    shop = Experiment.create(journal, "shop", policy, mode="guarded", confirm_within=within, clock=clock)
    found = list[str]()
    for n in range(80):
        clock.now += 1.0
        answer = shop.decide(features, baseline=0, baseline_reward=0.3, decision_id=f"d{n}")
        if answer.source == "learner":
            found.append(answer.decision_id)
        else:
            shop.reward(answer.decision_id, 0.3)
    clock.now += 100.0
    shop.close_windows()
    return shop, found


@pytest.mark.parametrize("features", [ROWS, Catalogue(ROWS)], ids=["rows", "catalogue"])
@pytest.mark.parametrize("action", [2, 999, -1, "red", 1.0])
def test_a_refused_void_leaves_the_charge(features: Any, action: Any) -> None:
    shop, late = overdue(features)
    before = shop.status()
    assert before.unconfirmed == len(late) > 0
    with pytest.raises(InputError, match="`action` must be a row that was offered"):
        shop.void(late[0], action)
    after = shop.status()
    assert (after.unconfirmed, after.debt, after.events) == (before.unconfirmed, before.debt, before.events)


def test_what_the_policy_itself_refuses_leaves_the_charge(monkeypatch: pytest.MonkeyPatch) -> None:
    shop, late = overdue(ROWS, within=200.0)
    before = shop.status()

    def refuse(*_: Any, **__: Any) -> None:
        raise InputError("The row is too long.")

    with monkeypatch.context() as patched:
        patched.setattr(surefoot.SafeLUCB, "void", refuse)
        with pytest.raises(InputError, match="too long"):
            shop.void(late[-1])
    assert (shop.status().voided, shop.status().events) == (0, before.events)
    assert shop.void(late[-1])
    assert shop.status().voided == 1


def test_an_arm_that_there_is_not_cannot_have_been_played() -> None:
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", surefoot.UCB(arms=2))
    shop.decide(baseline=0, decision_id="one")
    with pytest.raises(InputError, match="`action` must be a row that was offered"):
        shop.void("one", 2)
    assert audit(journal, "shop").is_clean
