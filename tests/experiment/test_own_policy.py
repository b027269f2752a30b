"""A policy of one's own in an experiment: journalled, reopened to the bit, and not audited, which is said."""

import copy
from pathlib import Path

import numpy as np
import pytest

import surefoot
from surefoot.audit import audit
from surefoot.errors import ConfigError
from surefoot.journal import Journal
from surefoot.policies.policy import Policy
from tests.own_policy import EpsilonGreedy


def played(journal: Journal, rounds: int) -> surefoot.Experiment:
    shop = surefoot.Experiment.create(journal, "shop", EpsilonGreedy(dim=2, epsilon=0.4, seed=3), mode="guarded",
                                      snapshot_every=7)  # fmt: skip
    play(shop, rounds, start=0)
    return shop


def play(shop: surefoot.Experiment, rounds: int, *, start: int) -> list[tuple[int, str]]:
    answers: list[tuple[int, str]] = []
    for t in range(start, start + rounds):
        rng = np.random.default_rng(t)
        rows = rng.random((4, 2)) / 2
        answer = shop.decide(rows.tolist(), baseline=1, decision_id=f"visit-{t}")
        assert answer.action is not None
        if t % 5:
            shop.reward(f"visit-{t}", float(rows[answer.action] @ [0.3, 0.6]))
        answers.append((answer.action, answer.source))
    return answers


def test_it_is_journalled_and_reopened_to_the_bit(tmp_path: Path) -> None:
    here, there = (surefoot.open_journal(str(tmp_path / name)) for name in ("a.db", "b.db"))
    for journal in (here, there):
        played(journal, 30)
    go_on, again = surefoot.Experiment.open(here, "shop"), surefoot.Experiment.open(there, "shop")
    # One of them in one go, the other opened in between.
    first = play(go_on, 20, start=30)
    second = play(again, 10, start=30)
    second += play(surefoot.Experiment.open(there, "shop"), 10, start=40)
    assert first == second
    assert {source for _, source in first} == {"learner"}
    assert surefoot.Experiment.open(there, "shop").status().rounds == 50


def test_an_experiment_whose_class_is_not_imported_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    journal = surefoot.open_journal("memory:")
    played(journal, 3)
    registry = copy.copy(Policy._registry)
    del registry["EpsilonGreedy"]
    monkeypatch.setattr(Policy, "_registry", registry)
    with pytest.raises(ConfigError, match=r"'EpsilonGreedy'.*known once its module is imported"):
        surefoot.Experiment.open(journal, "shop")


def test_the_audit_says_which_policies_it_knows() -> None:
    journal = surefoot.open_journal("memory:")
    played(journal, 3)
    report = audit(journal, "shop")
    assert any("the audit knows" in finding.text and "'EpsilonGreedy'" in finding.text for finding in report.findings)
