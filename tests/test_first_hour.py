"""What somebody meets in the first hour in Python: reprs that say what matters, text that is not taken for numbers."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot.errors import ConfigError, InputError, JournalConflictError, ProofError

ROWS = [[0.6, 0.1], [0.2, 0.3]]


def safe(**changed: Any) -> surefoot.SafeLUCB:
    settings = {"dim": 2, "alpha": 0.1, "delta": 0.01, "noise": 0.5, "theta_bound": 1.0, "feature_bound": 1.0}
    return surefoot.SafeLUCB(**(settings | changed))


def guard(**changed: Any) -> surefoot.Guard:
    return surefoot.Guard(**({"alpha": 0.1, "delta": 0.05, "seed": 0} | changed))


@pytest.mark.parametrize(
    "make",
    [
        lambda: safe(alpha="0.1"),
        lambda: safe(dim="2"),
        lambda: safe(noise="0.5"),
        lambda: safe(reward_range=("0", "1")),
        lambda: safe(theta_bound=b"1"),
        lambda: guard(alpha="0.1"),
        lambda: guard(reward_bounds=("0", "1")),
        lambda: guard(seed="3"),
        lambda: guard(seed=3.0),
        lambda: safe(holdout=0.1, seed="3"),
        lambda: guard().observe(1, "1"),
        lambda: safe().decide([["0.6", "0.1"], ["0.2", "0.3"]], baseline=0),
        lambda: safe().decide(np.array([["0.6", "0.1"], ["0.2", "0.3"]]), baseline=0),
        lambda: surefoot.Disjoint(actions=3, context_dim=2, context_bound=1.0)(["0.1", "0.2"]),
    ],
)
def test_text_is_not_taken_for_a_number(make: Callable[[], Any]) -> None:
    with pytest.raises((ConfigError, InputError, surefoot.errors.DecisionError)):
        make()


@pytest.mark.parametrize("kind", ["linear", "arms", "guard"])
def test_a_reward_as_text_changes_nothing(kind: str) -> None:
    makers: dict[str, Callable[[], Any]] = {"linear": safe, "arms": lambda: surefoot.UCB(arms=2), "guard": guard}
    policy = makers[kind]()
    decision = {
        "linear": lambda: policy.decide(ROWS, baseline=0),
        "arms": policy.decide,
        "guard": lambda: policy.decide(baseline="today", proposal="new"),
    }[kind]()
    with pytest.raises(InputError, match=r"must be a number, but got '0\.5'"):
        policy.observe(decision, "0.5")
    policy.observe(decision, 0.5)


@pytest.mark.parametrize("settings", [{"reward_window": "5"}, {"reward_bounds": ("0", "1")}])
def test_an_experiment_takes_no_text_for_a_number_either(settings: dict[str, Any]) -> None:
    journal = surefoot.open_journal("memory:")
    with pytest.raises((ConfigError, InputError)):
        surefoot.Experiment.create(journal, "shop", safe(), **settings)
    assert journal.names() == []


def test_reprs_say_what_matters(tmp_path: Path) -> None:
    policy = guard()
    decision = policy.decide(baseline="today", proposal="new")
    assert repr(decision) == "GuardDecision(action='today', source='baseline', round=1, probability=0.9, share=0.1)"
    assert repr(policy) == "Guard(alpha=0.1, delta=0.05, seed=0, rounds=1)"
    assert repr(safe().decide(ROWS, baseline=0)) == "Decision(action=0, source='baseline', round=1, probability=1)"
    shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", guard(), mode="guarded")
    shop.decide(baseline="today", proposal="new")
    assert repr(shop) == "Experiment('shop', policy='Guard', mode='guarded', rounds=1)"
    rows, phi = surefoot.Catalogue([[0.6, 0.0]]), surefoot.Disjoint(actions=3, context_dim=2, context_bound=1.5)
    assert repr(rows) == "Catalogue(actions=1, dim=2)"
    assert repr(phi) == "Disjoint(actions=3, context_dim=2, context_bound=1.5, dim=9)"
    with surefoot.open_journal(tmp_path / "shop.journal") as journal:
        assert repr(journal) == f"SqliteJournal('{tmp_path / 'shop.journal'}')"
    client = surefoot.Client("http://127.0.0.1:9", token="sf_secret")
    assert repr(client) == "Client('http://127.0.0.1:9', queued=0)"
    client.close(0.0)
    said = repr(shop.status())
    assert said.startswith("Status('shop', policy='Guard', mode='guarded', rounds=1, learner_share=")
    assert "share=0.1" in said
    assert len(said) < 200


def printed() -> dict[str, Any]:
    """What a first hour prints, where the numbers are long or not known."""
    decision = safe(noise=0.1).decide(np.eye(2) / 3, baseline=0)
    models = surefoot.Experiment.create(surefoot.open_journal("memory:"), "models", guard(), mode="guarded")
    before = models.status()
    for _ in range(30):
        models.reward(models.decide(baseline="big", proposal="small").decision_id, 1 / 3)
    status = models.status()
    assert before.guard is not None
    return {
        "policy": safe(noise=0.1), "certificate": decision.certificate, "before": before, "status": status,
        "guard": status.guard, "lift": status.lift, "metric": before.guard.metrics["reward"],
    }  # fmt: skip


@pytest.mark.parametrize("name", printed())
def test_reprs_show_no_nan_and_no_digits_that_nobody_reads(name: str) -> None:
    text = repr(printed()[name])
    assert "nan" not in text
    assert not re.search(r"\d\.\d{9}", text), text


def test_a_decision_is_checked_as_its_proof_is() -> None:
    rng, policy, sides = np.random.default_rng(0), safe(noise=0.1), set[str]()
    for _ in range(120):
        decision = policy.decide([[0.6, 0.0], [0.0, 1.0]], baseline=0)
        surefoot.check(decision)
        surefoot.check(decision.certificate)
        policy.observe(decision, (0.3, 0.8)[decision.action] + 0.1 * rng.normal())
        sides.add(decision.source)
    assert sides == {"baseline", "learner"}
    surefoot.check(guard().decide(baseline="today", proposal="new"))
    for nothing in ("a proof", None, object()):
        with pytest.raises(ProofError, match="must be a proof, or a decision that carries one"):
            surefoot.check(nothing)
    shop = surefoot.Experiment.create(surefoot.open_journal("memory:"), "shop", guard(), mode="guarded")
    answer = shop.decide(baseline="today", proposal="new", decision_id="visit-1")
    with pytest.raises(ProofError, match="keeps its proofs in the journal: check them by `surefoot audit`"):
        surefoot.check(answer)


@pytest.mark.parametrize("kind", ["linear", "guard"])
def test_one_call_creates_or_continues(kind: str, tmp_path: Path) -> None:
    make: Callable[..., Any] = safe if kind == "linear" else guard

    def start(policy: Any, **settings: Any) -> surefoot.Experiment:
        return surefoot.Experiment.create(journal, "shop", policy, or_open=True, **settings)

    with surefoot.open_journal(tmp_path / "shop.journal") as journal:
        shop = start(make(), mode="guarded", reward_unit="clicks")
        question = {"features": ROWS, "baseline": 0} if kind == "linear" else {"baseline": "today", "proposal": "new"}
        shop.decide(**question, decision_id="visit-1")
    with surefoot.open_journal(tmp_path / "shop.journal") as journal:
        assert start(make(), mode="shadow", reward_unit="clicks", by="me").status().rounds == 1
        with pytest.raises(JournalConflictError, match="but settings differ"):
            start(make(alpha=0.2), reward_unit="clicks")
        with pytest.raises(JournalConflictError, match="but reward_unit differ"):
            start(make())
        with pytest.raises(JournalConflictError, match="shop"):
            surefoot.Experiment.create(journal, "shop", make(), reward_unit="clicks")
