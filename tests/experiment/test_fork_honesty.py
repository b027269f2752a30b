"""What a fork must not wash away: an alarm, a reward out of bounds, rounds that were erased, where it came from."""

import sys
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.audit.report import rows
from surefoot.errors import ConfigError, DecisionError, DecisionSettledError, InputError
from surefoot.experiment import Experiment, fork
from surefoot.experiment.fork import carried_rounds
from surefoot.experiment.removal import delete
from surefoot.journal import Journal, canonical, open_journal

ROWS = [[0.6, 0.1], [0.9, 0.3]]
TOLD: dict[str, Any] = {"dim": 2, "delta": 0.01, "noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
WHY = "another alpha"


def played(journal: Journal, rewards: list[float], **settings: Any) -> Experiment:
    shop = Experiment.create(journal, "shop", surefoot.SafeLUCB(alpha=0.1, **TOLD), mode="guarded", **settings)
    for n, value in enumerate(rewards):
        shop.decide(ROWS, baseline=0, decision_id=f"v{n}")
        shop.reward(f"v{n}", value)
    return shop


def rewritten(journal: Journal, name: str, forged: str, **changes: Any) -> None:
    """Another experiment, with the first event of this one and other words in it."""
    created = next(journal.read(name)).value() | changes
    journal.create(forged, canonical(created), time=0.0)


def test_an_experiment_whose_alarm_is_on_is_not_forked() -> None:
    with open_journal("memory:") as journal:
        shop = played(journal, [0.4, 7.0, 0.4], reward_bounds=(0.0, 1.0))
        for _ in range(2):  # before and after somebody said to stay on the baseline
            with pytest.raises(ConfigError, match=r"alarm must be off .* A reward of 7 came in"):
                fork(journal, "shop", "washed", reason=WHY, reward_bounds=None)
            shop.acknowledge("stay", reason="we look into it")
        assert journal.names() == ["shop"]


def test_the_audit_finds_a_fork_that_was_made_while_the_alarm_was_on() -> None:
    with open_journal("memory:") as journal:
        shop = played(journal, [0.4, 0.4], reward_bounds=(0.0, 1.0))
        fork(journal, "shop", "again", reason=WHY)
        assert audit(journal, "again").is_clean
        shop.decide(ROWS, baseline=0, decision_id="bad")
        shop.reward("bad", 7.0)
        head = journal.head("shop")
        origin = {"experiment": "shop", "number": head.number, "hash": head.hash, "rounds": 3, "reason": WHY}
        history = {"features": [ROWS[0]] * 3, "rewards": [0.4, 0.4, 7.0]}
        rewritten(journal, "again", "washed", origin=origin, history=history, reward_bounds=None)
        assert [one.what for one in audit(journal, "washed").findings] == ["fork"]


def test_an_experiment_in_use_is_forked_where_it_was_read_to(monkeypatch: pytest.MonkeyPatch) -> None:
    with open_journal("memory:") as journal:
        shop = played(journal, [0.4] * 5)

        def meanwhile(view: Any) -> Any:
            """Another caller's round, before the events are read."""
            shop.decide(ROWS, baseline=0, decision_id="late")
            shop.reward("late", 0.2)
            return carried_rounds(view)

        monkeypatch.setattr(sys.modules[fork.__module__], "carried_rounds", meanwhile)
        made = fork(journal, "shop", "again", reason=WHY)
        assert made.carried == 6
        assert audit(journal, "again").is_clean, list(audit(journal, "again").findings)


@pytest.mark.parametrize("declared", ["experiment", "policy"])
def test_a_history_outside_of_the_declared_bounds_is_refused_and_found(declared: str) -> None:
    bounds, table = (0.0, 1.0), np.array([ROWS[0]] * 2)
    policy = surefoot.SafeLUCB(alpha=0.1, **TOLD, reward_bounds=bounds if declared == "policy" else None)
    given: dict[str, Any] = {"reward_bounds": bounds} if declared == "experiment" else {}
    with open_journal("memory:") as journal:
        with pytest.raises(ConfigError, match=r"must lie within reward_bounds=\(0, 1\), but got 7"):
            Experiment.create(journal, "shop", policy, history=(table, [0.4, 7.0]), **given)
        Experiment.create(journal, "shop", policy, history=(table, [0.0, 1.0]), **given)
        rewritten(journal, "shop", "forged", history={"features": table.tolist(), "rewards": [0.4, 7.0]})
        assert audit(journal, "shop").is_clean
        assert "history" in audit(journal, "forged").findings.counts


@pytest.mark.parametrize("what", ["ghost", "later", "rewritten"])
def test_a_fork_of_what_never_was_is_found(what: str) -> None:
    with open_journal("memory:") as journal:
        played(journal, [0.4] * 5)
        fork(journal, "shop", "again", reason=WHY)
        created, head = next(journal.read("again")).value(), journal.head("shop")
        delete(journal, "shop", by="ops", reason="the contract has ended")
        assert audit(journal, "again").is_clean, "its tombstone says that it was there"
        origin = created["origin"]
        if what == "ghost":
            origin["experiment"] = "nobody"
        elif what == "later":
            origin["number"] = head.number + 1
        else:
            origin["hash"] = "ab" * 32
        rewritten(journal, "again", "forged", origin=origin)
        assert [one.what for one in audit(journal, "forged").findings] == ["fork"]


@pytest.mark.parametrize("sealed", [False, True])
def test_a_fork_begins_with_the_right_reward(sealed: bool) -> None:
    with open_journal("memory:") as journal:
        shop = played(journal, [0.4, 0.9, 0.3], sealed=sealed, history=(np.array(ROWS), np.array([0.2, 0.1])))
        with pytest.raises(DecisionSettledError, match="`corrections`"):
            shop.correct("v1", 0.2, reason="counted twice")
        made = fork(journal, "shop", "again", corrections={"v1": 0.2}, reason="counted twice")
        created = made.experiment.settings
        assert created.history is not None
        assert created.history.rewards == [0.2, 0.1, 0.4, 0.2, 0.3]
        assert created.origin is not None
        assert created.origin.corrections == ((1, 0.2),)
        report = audit(journal, "again")
        assert report.is_clean, list(report.findings)
        assert "1 of their rewards corrected" in dict(rows(report))["forked from 'shop'"]
        origin = next(journal.read("again")).value()["origin"]
        for number, corrections in enumerate([[], [[1, 0.3]], [[0, 0.2]], [[3, 0.2]], [[1, 0.2], [1, 0.2]]]):
            rewritten(journal, "again", f"forged-{number}", origin={**origin, "corrections": corrections})
            assert [one.what for one in audit(journal, f"forged-{number}").findings] == ["fork"]


@pytest.mark.parametrize("corrections", [{"nobody": 0.2}, {"v1": np.inf}, {"v1": "much"}, {"open": 0.2}, {"v1": 7.0}])
def test_a_bad_correction_forks_nothing(corrections: dict[str, Any]) -> None:
    with open_journal("memory:") as journal:
        shop = played(journal, [0.4, 0.9], reward_bounds=(0.0, 1.0))
        shop.decide(ROWS, baseline=0, decision_id="open")
        with pytest.raises((DecisionError, InputError, ConfigError), match="must"):
            fork(journal, "shop", "again", corrections=corrections, reason="counted twice")
        assert journal.names() == ["shop"]
