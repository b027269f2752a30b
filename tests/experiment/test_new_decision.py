"""A decision that was just written: its bytes are those of its record, and what is read of it later is the same."""

import itertools
import math
import os
from contextlib import suppress
from typing import Any

import msgspec
import numpy as np
import pytest

import surefoot
from surefoot.core import native
from surefoot.errors import SurefootError
from surefoot.experiment import Experiment, kinds
from surefoot.journal import open_journal
from surefoot.journal.private_text import new_salt
from surefoot.rounds.events import ModeName, RowsRequest
from surefoot.safety.facts import ROUNDING
from tests.experiment.worlds import safe_policy

SETTINGS: dict[str, dict[str, Any]] = {
    "ball": {"noise": 0.3, "gate": "joint"},
    "ledger": {"noise": 0.05, "gate": "ledger"},
    "range": {"noise": 0.05, "reward_range": (0.0, 1.0), "reward_floor": 0.1},
    "likelihood": {"reward_bounds": (0.0, 1.0)},
}


@pytest.mark.parametrize("scale", [0.3, 3e-4, 7e-9])  # numbers with and without an exponent
@pytest.mark.parametrize("kind", SETTINGS)
@pytest.mark.parametrize(("mode", "dim", "sealed"), [("guarded", 4, True), ("guarded", 3, False), ("shadow", 4, True)])
def test_the_core_writes_a_round_as_its_record_is_written(
    monkeypatch: pytest.MonkeyPatch, kind: str, scale: float, mode: ModeName, dim: int, sealed: bool
) -> None:
    def payloads() -> list[bytes]:
        rng, salts = np.random.default_rng(5), itertools.count()
        monkeypatch.setattr(kinds, "new_salt", lambda: b"%016d" % next(salts))
        common: dict[str, Any] = {"alpha": 0.1, "delta": 0.05, "theta_bound": 1.0, "feature_bound": 3.0}
        policy = surefoot.SafeLUCB(dim=dim, **common, **SETTINGS[kind])
        journal = open_journal("memory:")
        shop = Experiment.create(journal, "shop", policy, mode=mode, sealed=sealed, clock=lambda: 7.5)
        for at in range(40):
            rows = np.abs(rng.normal(size=(6, dim))) * scale
            rows[2] = [1.0, -0.0, 2e-17, 0.1 + 0.2][:dim]
            known = None if at % 7 else 0.05  # now and then what only objects tell
            with suppress(SurefootError):
                shop.decide(rows, baseline=1, baseline_reward=known, decision_id=f"visit-{at}")
                shop.reward(f"visit-{at}", float(rng.random() < 0.4))
        return [event.payload for event in journal.read("shop")][1:]

    by_core, write = list[Any](), native.certificate_json

    def noted(*args: Any) -> Any:
        by_core.append(args)
        return write(*args)

    monkeypatch.setattr(native, "certificate_json", noted)
    quick, count = payloads(), len(by_core)
    assert count > 20
    monkeypatch.setattr(kinds, "_evidence", lambda decision: None)
    assert quick == payloads()
    assert len(by_core) == count


def test_what_pieces_miss_is_summed_exactly() -> None:
    rng = np.random.default_rng(8)
    for _ in range(300):
        count, dim = rng.integers(0, 5), rng.integers(1, 9)
        size = 10.0 ** rng.uniform(-150, 140)
        question, pieces = rng.normal(size=dim) * size, rng.normal(size=(count, dim)) * size
        parts = [question.tolist(), *(-pieces).tolist()]
        missing = math.hypot(*map(math.fsum, zip(*parts, strict=True)))
        lengths = math.fsum(math.hypot(*part) for part in parts)
        expected = -0.7 * (missing * (1 + ROUNDING) + ROUNDING * lengths)
        assert native.given_away(question, pieces, 0.7) == pytest.approx(expected, rel=4e-16)
        bounds = [*question.tolist(), 0.0]
        assert native.sum_below(bounds) in (total := math.fsum(bounds), math.nextafter(total, -math.inf))
        assert native.sum_below(bounds) <= total


@pytest.mark.parametrize("sealed", [True, False])
def test_a_record_that_is_read_later_is_the_one_that_was_written(sealed: bool) -> None:
    journal = open_journal("memory:")
    shop = Experiment.create(journal, "shop", safe_policy(), mode="guarded", sealed=sealed)
    request: dict[str, Any] = {"baseline": "a", "actions": ["a", "b"], "context": {"age": None}}
    first, again = (shop.decide([[0.6, 0.1], [0.3, 0.6]], **request, decision_id="visit-1") for _ in range(2))
    assert again == msgspec.structs.replace(first, is_repeat=True)
    record = shop.round("visit-1").request
    assert isinstance(record, RowsRequest)
    assert (record.features, record.actions) == ([[0.6, 0.1], [0.3, 0.6]], ["a", "b"])
    assert (record.baseline, record.context) == (0, {"age": None})


def test_salts_differ_also_in_a_forked_process() -> None:
    drawn = [new_salt() for _ in range(1000)]
    assert len(set(drawn)) == 1000
    assert {len(salt) for salt in drawn} == {16}
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writing, new_salt())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(reading, 16) not in [new_salt() for _ in range(300)]
