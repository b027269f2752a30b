"""What was declared: settings that a policy does not take are found, so that no report promises what nobody checked."""

import inspect
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.audit import Report, audit
from surefoot.audit.declarations import SETTINGS
from surefoot.audit.report import as_markdown, promise, verdict
from surefoot.experiment import Experiment, create_shared
from surefoot.journal import Journal, canonical, open_journal
from surefoot.policies import Policy
from tests.experiment.worlds import Clock

KNOWN: dict[str, Any] = {"dim": 2, "delta": 0.05, "noise": 0.1, "theta_bound": 1.0, "feature_bound": 1.0}
POLICIES: dict[str, Any] = {
    "LUCB": lambda: surefoot.LUCB(**KNOWN, ridge=1.0),
    "CLUCB": lambda: surefoot.CLUCB(**KNOWN, ridge=1.0, alpha=0.2),
    "CLUCB2": lambda: surefoot.CLUCB2(**KNOWN, ridge=1.0, alpha=0.2),
    "SafeLUCB": lambda: surefoot.SafeLUCB(**KNOWN, alpha=0.2),
    "UCB": lambda: surefoot.UCB(arms=2),
    "ConservativeUCB": lambda: surefoot.ConservativeUCB(arms=2, alpha=0.2, delta=0.05),
    "Guard": lambda: surefoot.Guard(alpha=0.2, delta=0.05),
}


def retold(source: Journal, *, settings: Mapping[str, Any], name: str = "shop") -> Journal:
    """The same chain with other settings in its first event, and all hashes computed again."""
    journal, (first, *rest) = open_journal("memory:"), list(source.view(name).read())
    created = msgspec.json.decode(first.payload)
    created["settings"].update(settings)
    journal.create(name, canonical(created), time=first.time)
    for event in rest:
        append(journal, event.kind, event.payload, time=event.time, key=event.key)
    return journal


def append(journal: Journal, kind: str, payload: bytes, *, time: float, key: str | None = None) -> None:
    journal.transact("shop", lambda transaction: transaction.append(kind, payload, time=time, key=key))


def played(policy: Policy, rounds: int = 20) -> Journal:
    journal, rng = open_journal("memory:"), np.random.default_rng(3)
    shop = Experiment.create(journal, "shop", policy, mode="guarded", clock=Clock())
    rows = np.array([[0.6, 0.0], [0.0, 0.9]])
    for _ in range(rounds):
        if isinstance(policy, surefoot.Guard):
            answer = shop.decide(baseline="old", proposal="new")
        elif "arms" in policy.settings:
            answer = shop.decide(np.eye(2), baseline=0)
        else:
            answer = shop.decide(
                rows, baseline=0, **({"baseline_reward": 0.3} if type(policy).__name__ == "CLUCB" else {})
            )
        shop.reward(answer.decision_id, float(rng.random()))
    return journal


@pytest.mark.parametrize("name", POLICIES)
def test_the_audit_knows_the_settings_of_every_policy(name: str) -> None:
    # `actions` of SafeLUCB only tells the other settings.
    assert set(inspect.signature(getattr(surefoot, name)).parameters) - {"actions"} == SETTINGS[name]


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("LUCB", {"alpha": 0.1}),
        ("UCB", {"alpha": 0.1}),
        ("CLUCB", {"constraint": "stagewise"}),
        ("CLUCB2", {"constraint": {"name": "checkpoints", "every": 5}}),
        ("ConservativeUCB", {"constraint": "stagewise"}),
        ("Guard", {"constraint": "stagewise"}),
        ("SafeLUCB", {"gate": {}}),
        ("SafeLUCB", {"nesting": "exact"}),
    ],
)
def test_what_a_policy_does_not_take_is_found_and_promises_nothing(name: str, settings: dict[str, Any]) -> None:
    honest = played(POLICIES[name]())
    assert audit(honest, "shop").is_clean
    report = audit(retold(honest, settings=settings), "shop")
    assert set(report.findings.counts) == {"settings"}
    assert "no policy takes the settings" in promise(report)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("SafeLUCB", {"constraint": "stagewise"}),
        ("SafeLUCB", {"constraint": {"name": "checkpoints", "every": 5}}),
        ("SafeLUCB", {"misspecification": 0.1}),
        ("SafeLUCB", {"settle_after": 5}),
        ("Guard", {"promise": "played"}),
        ("Guard", {"seed": 7}),
        ("Guard", {"unit_window": 5}),
    ],
)
def test_what_shards_cannot_share_is_found(name: str, settings: dict[str, Any]) -> None:
    hub = open_journal("memory:")
    create_shared(hub, "shop", POLICIES[name](), mode="guarded", clock=Clock())
    report = audit(retold(hub, settings=settings), "shop")
    assert report.findings.counts["settings"] >= 1
    assert "no policy takes the settings" in promise(report)


ODD: dict[str, tuple[str, dict[str, Any]]] = {
    "metrics of numbers": ("Guard", {"metrics": {"a": 5}}),
    "metrics in a list": ("Guard", {"metrics": ["a"]}),
    "no metrics": ("Guard", {"metrics": {}}),
    "a schedule of lists": ("Guard", {"schedule": [[1]]}),
    "a window of letters": ("Guard", {"settle_after": "a"}),
    "more dimensions than memory": ("SafeLUCB", {"dim": 10**6}),
    "more arms than memory": ("ConservativeUCB", {"arms": 10**15}),
    "a constraint that is a number": ("SafeLUCB", {"constraint": 5}),
    "a range of three": ("SafeLUCB", {"reward_range": [0, 1, 2]}),
    "a delta of letters": ("SafeLUCB", {"delta": "0.1"}),
}


def odd_report(name: str) -> Report:
    policy, settings = ODD[name]
    return audit(retold(played(POLICIES[policy](), 3), settings=settings), "shop")


@pytest.mark.parametrize("name", ODD)
def test_settings_that_nothing_can_be_made_of_end_in_findings_and_a_report(name: str) -> None:
    report = odd_report(name)
    assert not report.is_clean
    assert "Nothing that could be kept" in as_markdown(report)
    assert report.as_dict()["findings"]


@pytest.mark.parametrize(
    ("kind", "payload", "what"),
    [
        ("mode", {"mode": "paused", "lost": -5}, "payload"),
        ("voided", b'{"decision_id":"x","action":' + b"[" * 5000 + b"]" * 5000 + b"}", "payload"),
        ("mode", {"mode": "paused", "lost": 10**12}, None),
    ],
)
def test_events_that_nothing_can_be_made_of_are_findings(kind: str, payload: Any, what: str | None) -> None:
    journal = played(POLICIES["Guard"](), 3)
    append(journal, kind, payload if isinstance(payload, bytes) else canonical(payload), time=2e9)
    assert set(audit(journal, "shop").findings.counts) == ({what} if what else set())


def test_declarations_so_large_that_rounding_hides_everything_are_found() -> None:
    """Every round is a worthless arm's, by proofs worth far less than nothing: all within what rounding may do."""
    policy = surefoot.SafeLUCB(
        dim=2,
        alpha=0.1,
        delta=0.01,
        noise=0.5,
        theta_bound=1e14,
        feature_bound=1.0,
        reward_range=(0.0, 1.0),
        optimism="facts",
    )
    journal, rng = open_journal("memory:"), np.random.default_rng(1)
    Experiment.create(journal, "shop", policy, mode="guarded", clock=Clock())
    base, bad, played_, displaced = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.zeros(2), np.zeros(2)
    for number in range(1, 61):
        played_, displaced = played_ + bad, displaced + base
        facts = (
            ("declared range, over the learner's rounds", played_, 0.0, 1.0),
            ("largest reward of the baseline where the learner played", -displaced, -float(number), 0.9),
        )
        pieces = [
            {
                "fact": {"kind": "linear", "name": name, "normal": normal.tolist(), "level": level},
                "vector": (weight * normal).tolist(),
                "bound": weight * level,
            }
            for name, normal, level, weight in facts
        ]
        proof = {"question": (played_ - 0.9 * displaced).tolist(), "value": 0.5, "pieces": pieces}
        round_ = {
            "kind": "rows", "decision_id": f"d{number}", "round": number, "mode": "guarded", "source": "learner",
            "request": {"features": [base.tolist(), bad.tolist()], "baseline": 0}, "action": 1,
            "certificate": {"guaranteed": 0.5, "required": 0.0, "proposal": 1, "optimism": 1.0, "proof": proof},
        }  # fmt: skip
        append(journal, "round", canonical(round_), time=2e9 + number, key=f"d:d{number}")
        reward = {"decision_id": f"d{number}", "values": {"reward": float(rng.normal(0.0, 0.1))}}
        append(journal, "reward", canonical(reward), time=2e9 + number, key=f"r:d{number}")
    assert set(audit(journal, "shop").findings.counts) == {"rounding"}


def test_a_verdict_is_open_where_callers_played_what_nobody_proved() -> None:
    policy = surefoot.SafeLUCB(**KNOWN, alpha=0.1, reward_range=(0.0, 1.0))
    shop = Experiment.create(open_journal("memory:"), "shop", policy, mode="guarded", clock=Clock())
    for number in range(20):
        answer = shop.decide([[1.0, 0.0], [0.0, 1.0]], baseline=0, decision_id=f"d{number}")
        if answer.action == 0:
            shop.void(f"d{number}", action=1, reason="the shelf was empty")
        shop.reward(f"d{number}", 0.0)
    report = audit(shop.journal, "shop")
    assert report.is_clean
    assert report.as_dict()["unproved_rounds"] == report.tally.learner == 20
    assert verdict(report).startswith("That is open.")
