"""Who would find a sealed person again, hide a decision, or keep an honest journal from being used."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

import surefoot
from surefoot.audit import ExpectedHead, audit, audit_journal
from surefoot.errors import ConfigError, DecisionError, InputError
from surefoot.experiment import Experiment
from surefoot.experiment.removal import archive, delete
from surefoot.experiment.sealing import reference
from surefoot.journal import Journal, open_journal
from surefoot.journal.copying import backup, copy_experiment
from surefoot.journal.events import JOURNAL
from surefoot.journal.journal_chain import lost_heads
from surefoot.service.history import MOST_READ, RecentDecisions
from surefoot.service.preflight import check_heads

TOLD: dict[str, Any] = {"by": "ops", "reason": "a test"}


def arms(journal: Journal, name: str = "shop") -> Experiment:
    return Experiment.create(journal, name, surefoot.UCB(arms=2), mode="guarded", sealed=True)


def guarded(journal: Journal) -> Experiment:
    return Experiment.create(
        journal, "shop", surefoot.Guard(alpha=0.1, delta=0.05, unit_window=5), mode="guarded", sealed=True
    )


@pytest.mark.parametrize(
    "forgery",
    [
        "UPDATE private SET alias = CASE alias WHEN 'a' THEN 'x' ELSE alias END",
        "UPDATE private SET person = 'nobody'",
        "UPDATE private SET salt = CAST(salt || substr(text, 1, 3) AS BLOB), text = CAST(substr(text, 4) AS BLOB)",
    ],
    ids=["alias", "person", "salt"],
)
def test_names_beside_the_chain_cannot_be_changed(forgery: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    with open_journal(path) as journal:
        arms(journal).decide(decision_id="a", context={"person": "ada"})
        assert audit(journal, "shop").is_clean
    with sqlite3.connect(path) as tables:
        tables.execute(forgery)
    with open_journal(path) as journal:
        assert "private" in audit(journal, "shop").findings.counts


def test_a_decision_is_about_one_person() -> None:
    with open_journal("memory:") as journal:
        experiment = guarded(journal)
        before = journal.head("shop")
        with pytest.raises(InputError, match="must be the unit"):
            experiment.decide(baseline="A", proposal="B", unit="session", context={"person": "ada"})
        assert journal.head("shop") == before


def test_an_id_that_looks_like_a_reference_hides_nothing() -> None:
    with open_journal("memory:") as journal:
        experiment = arms(journal)
        experiment.decide(decision_id="a", context={"person": "ada"})
        ref = reference(list(journal.read("shop"))[-1])
        experiment.erase(person="ada")
        with pytest.raises(InputError, match="must not look like"):
            experiment.decide(decision_id=ref)
        assert experiment.reward(ref, 1.0).is_accepted


def test_an_id_of_many_digits_is_nobodys() -> None:
    with open_journal("memory:") as journal, pytest.raises(DecisionError, match="has no decision"):
        arms(journal).find("9" * 25)


def test_what_is_named_is_erased_however_much_else_is() -> None:
    with open_journal("memory:") as journal:
        experiment = arms(journal)
        for n in range(1_001):
            experiment.decide(decision_id=f"ada-{n}", context={"person": "ada"})
        experiment.decide(decision_id="late", context={"person": "bob"})
        assert experiment.erase(["late"], person="ada") == 1_002
        with pytest.raises(DecisionError, match="has no decision"):
            experiment.find("late")


def test_another_action_in_place_of_an_erased_one_stays_out_of_the_chain() -> None:
    with open_journal("memory:") as journal:
        experiment = guarded(journal)
        experiment.decide(baseline="A", proposal="B", unit="ada", decision_id="v")
        ref = reference(list(journal.read("shop"))[-1])
        experiment.erase(person="ada")
        with pytest.raises(InputError, match="are erased"):
            experiment.void(ref, "secret")
        assert all(b"secret" not in event.payload for event in journal.read("shop"))


def test_a_resumed_copy_forgets_what_was_erased_meanwhile() -> None:
    with open_journal("memory:") as source, open_journal("memory:") as target:
        experiment = arms(source)
        for n in range(20):
            experiment.decide(decision_id=str(n), context={"person": "bob" if n % 3 else "ada"})
        copy_experiment(source, target, "shop")
        experiment.erase(person="bob")
        copy_experiment(source, target, "shop")
        there = [number for number, _ in target.view("shop").privates(0, 100)]
        assert there == [number for number, _ in source.view("shop").privates(0, 100)]
        assert len(there) == 7
        assert audit(target, "shop").is_clean


def test_the_list_of_recent_decisions_forgets_with_the_journal() -> None:
    with open_journal("memory:") as journal:
        experiment = arms(journal)
        recent = RecentDecisions(experiment.kind)
        for n in range(10):
            experiment.decide(decision_id=f"bob-{n}", context={"person": "bob"})
        recent.catch_up(journal, "shop")
        assert len(recent.newest()) == 10
        experiment.erase(person="bob")
        for n in range(MOST_READ + 1):
            experiment.reward(f"bob-{n}", 1.0)  # of nobody any more, and each is noted
        recent.catch_up(journal, "shop")
        assert recent.newest() == []


def test_an_honest_removal_keeps_no_server_from_starting(tmp_path: Path) -> None:
    with open_journal("memory:") as journal:
        arms(journal).decide(decision_id="a")
        arms(journal, "winter").decide(decision_id="a")
        head = journal.head("winter")
        heads = tmp_path / "heads.jsonl"
        heads.write_text(f'{{"experiment":"winter","number":{head.number},"hash":"{head.hash}","time":1.0}}\n')
        delete(journal, "winter", **TOLD)
        check_heads(journal, str(heads))
        # One that had another history was not the one that was removed.
        assert lost_heads(journal, {"winter": head._replace(hash="0" * 64)})
        forged = ExpectedHead("winter", head.number, "0" * 64)
        assert "removed" in audit_journal(journal, expect=[forged]).findings.counts


def test_the_journals_own_chain_stays(tmp_path: Path) -> None:
    with open_journal("memory:") as journal:
        arms(journal)
        delete(journal, "shop", **TOLD)
        with pytest.raises(ConfigError, match="must stay"):
            delete(journal, JOURNAL, **TOLD)
        with pytest.raises(ConfigError, match="must stay"):
            archive(journal, JOURNAL, tmp_path / "archive.db", **TOLD)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("left", ["-wal", "-journal"])
def test_a_copy_is_not_put_beside_the_last_changes_of_another(left: str, tmp_path: Path) -> None:
    with open_journal(tmp_path / "shop.db") as journal:
        arms(journal).decide(decision_id="a")
    (tmp_path / f"copy.db{left}").write_bytes(b"of another")
    with pytest.raises(ConfigError, match=f"copy.db{left} exists"):
        backup(tmp_path / "shop.db", tmp_path / "copy.db")
