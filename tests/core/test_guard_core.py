"""The guard in the core: the same bits from every build, pickles, and damaged arrays."""

import hashlib
import os
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import surefoot
from surefoot import Guard, ceiling, floor
from surefoot.core import VARIABLE, runnable
from surefoot.core.native import Bank, Bets, GuardBooks, GuardRuns, read_banks
from surefoot.errors import StateError

BUILDS = runnable()
METRICS = {"quality": floor(0, 1, alpha=0.1), "cost": ceiling(0.2, 2, alpha=0.3, reserve=4.0)}


def digest() -> str:
    """Of two metrics over 3,000 rounds, of ten runs with late rewards, and of a watch's bets."""
    guard, rng = Guard(delta=0.05, seed=3, metrics=METRICS, promise="played"), np.random.default_rng(3)
    for _ in range(3000):
        decision = guard.decide(baseline=0, proposal=1)
        quality, cost = rng.random(2) * (0.9 if decision.action else 0.7)
        guard.observe(decision, {"quality": quality, "cost": 0.2 + cost})
    runs, shares, bets = GuardRuns(guard.step_settings, runs=10, delay=3), np.zeros(10), Bets()
    for round_ in range(500):
        runs.share(shares)
        runs.step(shares, rng.random(10) < shares, rng.random((10, 2)))
        bets.bet(bool(round_ % 2), float(rng.normal()), float(round_))
    state = guard.state()
    parts = (state["banks"], state["lifts"], runs.held(), bets.save(), bets.log_evidence(0.3, 0.5, 1.0, 1.5))
    return hashlib.sha256(b"".join(np.asarray(part).tobytes() for part in parts)).hexdigest()


@pytest.mark.parametrize("build", BUILDS)
def test_every_build_gives_the_same_bits(build: str) -> None:
    command = [sys.executable, "-c", "from tests.core.test_guard_core import digest; print(digest())"]
    done = subprocess.run(
        command, env={**os.environ, VARIABLE: build}, capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.strip() == digest()


def test_a_decision_keeps_its_proof_in_a_pickle() -> None:
    guard = Guard(alpha=0.1, delta=0.05, seed=1)
    decision = guard.decide(baseline=0, proposal=1)
    again = pickle.loads(pickle.dumps(decision))
    assert repr(again.certificate.proof) == repr(decision.certificate.proof)
    assert b"_x86_64" not in pickle.dumps(decision)  # a machine may have another build
    surefoot.check(again.certificate.proof)


def test_members_are_saved_in_the_order_of_their_names() -> None:
    names = ["bound", "carried", "owed", "entered", "coins", "played"]
    sides = [
        (side, name) for side in ("learner", "baseline") for name in ("count", "mean", "spread", "rewards", "overall")
    ]
    bank = Bank()
    bank.load(np.arange(28.0))
    assert [getattr(bank, name) for name in names] == list(range(6))
    assert [getattr(getattr(bank, side), name) for side, name in sides] == list(range(6, 16))
    assert bank.wealth == list(range(16, 28))


@pytest.mark.parametrize("shape", [(0,), (27,), (29,), (2, 14)])
def test_an_array_of_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    bank = Bank()
    with pytest.raises((ValueError, TypeError)):
        bank.load(np.zeros(shape))
    with pytest.raises(StateError, match="`banks` must have shape"):
        Guard.from_state({**Guard(delta=0.05, metrics=METRICS).state(), "banks": np.zeros(shape)})
    with pytest.raises(StateError, match="`lifts` must have shape"):
        Guard.from_state({**Guard(delta=0.05, metrics=METRICS).state(), "lifts": np.zeros(shape)})


def test_rounds_of_another_size_are_refused_and_change_nothing() -> None:
    books = GuardBooks(Guard(alpha=0.1, delta=0.05).step_settings)
    plan = books.plan(0.1)
    before = books.save()
    bad: list[tuple[Any, Any]] = [
        *((short, (0.5,)) for short in (plan[:-1], plan[:-8], plan + b"0", b"", plan[:3])),
        (plan, ()),
        (plan, (0.5, 0.5)),
    ]
    for given, rewards in bad:
        with pytest.raises(ValueError, match="must hold"):
            books.enter(given, False, rewards)
    with pytest.raises(ValueError, match="must hold"):
        books.plan(0.1, [0.5, 0.5])
    for size in (1, 8, len(books.snapshot) - 1):
        with pytest.raises(ValueError, match="must hold"):
            read_banks(books.snapshot[:size])
    runs = GuardRuns(books.settings, runs=3, delay=0)
    for sizes in ((2, 3, 3), (3, 4, 3), (3, 3, 1)):
        shares, sides, rewards = np.zeros(sizes[0]), np.zeros(sizes[1], dtype=np.bool_), np.zeros((sizes[2], 1))
        with pytest.raises(ValueError, match="must hold"):
            runs.step(shares, sides, rewards)
    assert (books.save() == before).all()
