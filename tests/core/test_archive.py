"""What the core saves it takes back to the bit, and goes on as if nothing had happened."""

from typing import Any

import numpy as np
import pytest

from surefoot.core import native
from tests.core.structs import PARTS, STRUCTS, arms, policy, rows_of


@pytest.mark.parametrize("name", STRUCTS)
def test_a_struct_is_saved_and_taken_back_to_the_bit(name: str) -> None:
    struct = STRUCTS[name]
    used, other = struct.make(), struct.make()
    struct.use(used)
    saved = struct.save(used)
    assert saved.tobytes() != struct.save(other).tobytes() or name.startswith("memory")
    struct.load(other, saved)
    assert struct.save(other).tobytes() == saved.tobytes()


@pytest.mark.parametrize("name", STRUCTS)
def test_every_number_that_is_saved_comes_back(name: str) -> None:
    """One number at a time: none stands for another, and none is dropped."""
    struct = STRUCTS[name]
    state = struct.make()
    saved = struct.save(state).ravel()
    for place in range(saved.size):
        changed = saved.copy()
        changed[place] += 1.0
        try:
            struct.load(state, changed)
        except native.DamagedState:  # a dimension, or a kind, that cannot be another
            continue
        is_flag = changed[place] == 2.0 and struct.save(state).ravel()[place] == 1.0  # what is true stays true
        found = struct.save(state).ravel()
        assert is_flag or found.tobytes() == changed.tobytes()


@pytest.mark.parametrize("dim", [1, 3, 4])
def test_a_policy_restored_from_its_parts_goes_on_to_the_bit(dim: int) -> None:
    first, second = policy(dim), policy(dim)
    play(first, 20)
    for part in PARTS:
        getattr(second, part).load(getattr(first, part).save())
    assert play(first, 60) == play(second, 60)
    for part in PARTS:
        assert getattr(first, part).save().tobytes() == getattr(second, part).save().tobytes()


def play(core: Any, rounds: int) -> list[tuple[int, bool, float, float]]:
    rng, said = np.random.default_rng(8), []
    for _ in range(rounds):
        rows = rows_of(core.ridge.dim) * rng.uniform(0.5, 1.0, size=(5, 1))
        *_, evidence = core.decide(rows, False, 1, 0.0, 0.2, 0.9, native.FREE)
        core.learn(evidence.features, float(rng.uniform()), evidence.is_learner)
        said.append((evidence.action, evidence.is_learner, evidence.guaranteed, evidence.required))
    return said


@pytest.mark.parametrize("rule", ["UCB", "ConservativeUCB"])
def test_arms_restored_go_on_to_the_bit(rule: str) -> None:
    first, second = arms(rule), arms(rule)
    first.learn(1, 0.7)
    second.load(first.save().ravel())
    for round_ in range(9, 60):
        said = first.decide(0, round_, native.FREE)
        assert said == second.decide(0, round_, native.FREE)
        first.learn(said[0], 0.01 * round_)
        second.learn(said[0], 0.01 * round_)
    assert first.save().tobytes() == second.save().tobytes()


@pytest.mark.parametrize("dim", [3, 4])
def test_a_copy_is_its_own(dim: int) -> None:
    core = policy(dim)
    for part in PARTS:
        copy = getattr(core, part).copy()
        before = copy.save().tobytes()
        assert before == getattr(core, part).save().tobytes()
        play(core, 5)
        assert copy.save().tobytes() == before
        getattr(core, part).assign(copy)
        assert getattr(core, part).save().tobytes() == before
