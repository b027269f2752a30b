"""Whatever is sent as a question, it is read or refused: mutated as bytes and as JSON, down the one way in."""

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from surefoot.errors import SurefootError
from surefoot.experiment import Configuration, Experiment
from surefoot.experiment.kinds import Ask
from surefoot.linear.encoding import CategoricalColumn, Encoder, NumericColumn
from surefoot.policies import UCB, Guard, SafeLUCB
from surefoot.service.catalogues import Catalogues
from surefoot.service.problems import ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.requests import READ_DECIDE, Decide, read_body
from surefoot.service.settings import Settings
from tests.service.servers import ACTIONS, POLICY
from tests.service.test_bad_input import BODIES

SEEDS = [
    json.dumps(one).encode()
    for one in (
        {
            "actions": ACTIONS,
            "baseline": "red",
            "baseline_reward": 0.3,
            "decision_id": "visit-1",
            "confirms": ["a", "b"],
        },
        {"actions": [{"id": "a"}, {"id": "b"}], "baseline": 1, "baseline_reward": [0.1, 0.2]},
        {"catalogue": "0" * 64, "context_features": [0.1, 0.2], "baseline": 0},
        {"baseline": "old", "proposal": {"model": "new", "share": 0.5}, "unit": "user-17", "prediction": 0.4},
        {"baseline": [1, None, "x"], "proposal": 2, "prediction": {"reward": 0.4}, "context": {"person": "amy"}},
        {"context": {"age": 30, "plan": "free", "colour": None}, "baseline": "small", "actions": [{"id": "small"}]},
    )
] + [body if isinstance(body, bytes) else json.dumps(body).encode() for body, _, _ in BODIES.values()]
WHOLE = 6  # of them, which some experiment can read
READ_NAMES = Decide.__struct_fields__
PIECES = [
    b"null", b"true", b"-0", b"1e308", b"-1e308", b"1e400", b"5e-324", b"NaN", b"9" * 40, b"0.1", b"-1", b"1.0", b"[]",
    b"{}", b"[[]]", b'""', b'"\\u0000"', b'"\\ud800"', b'"\xf0\x9f\x98\x80"', b'"\xff"', b'"' + b"x" * 300 + b'"',
    b"[" * 2000, b'{"a":' * 2000, b",", b":", b"]", b"}", b'"id"', b'"features":[1]', b'"proposal":1', b'"unit":""',
    b'"baseline":-1', b'"context":{"age":"old"}', b'"actions":[]', b'"decision_id":"a b"', b"\x00", b"\xef\xbb\xbf",
]  # fmt: skip


def mutated(rng: random.Random, seed: bytes) -> bytes:
    """A body after a few accidents: bytes changed, cut, repeated, put in, and parts of another one."""
    body = bytearray(seed)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        start = rng.randrange(len(body) + 1)
        end = min(len(body), start + rng.choice((0, 1, 2, 8, 40)))
        match rng.randrange(6):
            case 0 if start < len(body):
                body[start] = rng.randrange(256)
            case 1:
                del body[start:end]
            case 2:
                body[start:start] = body[start:end]
            case 3:
                body[start:end] = rng.choice(PIECES)
            case 4:  # in place of a whole value
                colon = body.find(b":", start)
                body[colon + 1 : max(colon + 1, body.find(b",", colon))] = rng.choice(PIECES)
            case _:
                other = rng.choice(SEEDS)
                at = rng.randrange(len(other) + 1)
                body[start:] = other[at:]
    return bytes(body)


def experiments(journal: Any) -> Iterator[Experiment]:
    told: dict[str, Any] = {**POLICY, "reward_range": (0.0, 1.0)}
    yield Experiment.create(journal, "rows", SafeLUCB(**told), mode="guarded", sealed=True)
    yield Experiment.create(journal, "arms", UCB(arms=2), mode="guarded")
    yield Experiment.create(journal, "pair", Guard(alpha=0.1, delta=0.05, unit_window=60), mode="guarded", sealed=True)
    numbers: dict[str, Any] = {"alpha": 0.1, "delta": 0.01, "noise": 0.5, "ridge": 1.0, "theta_bound": 1.0}
    columns = (NumericColumn("age", 0.0, 100.0), CategoricalColumn("plan", ("free", "paid")))
    configuration = Configuration(
        "CLUCB2", **numbers, feature_bound=2.0, baseline_reward=0.3, actions=("small", "large"), baseline="small",
        encoder=Encoder(columns),
    )  # fmt: skip
    yield Experiment.create(journal, "configured", configuration, mode="guarded")


VALUES: list[Any] = [
    None, True, 0, -1, 1, 2**63, 0.5, -0.0, 1e308, 5e-324, "", "a", "red", "a b", "\0", "x" * 300, [], [[]], {},
    {"a": 1}, [0.1, 0.2], [1, 2, 3], [1e308, 1e308], [-1, 1], {"id": "a"}, {"id": "a", "features": [0.1, 0.2]},
    {"reward": 2},
]  # fmt: skip
NAMES = [*READ_NAMES, "id", "features", "age", "plan", "person", "reward"]


def altered(rng: random.Random, value: Any) -> Any:
    """A value with another one somewhere inside it, or without a part."""
    if rng.random() < 0.3 or not isinstance(value, (dict, list)):
        return rng.choice(VALUES)
    if isinstance(value, dict):
        name = rng.choice([*value, rng.choice(NAMES)])
        return {**value, name: altered(rng, value.get(name))} if rng.random() < 0.8 else {**value} | {name: None}
    parts = [*value]
    if parts and rng.random() < 0.7:
        at = rng.randrange(len(parts))
        parts[at] = altered(rng, parts[at])
    else:
        parts += rng.choice(([rng.choice(VALUES)], parts[:1], parts))
    return parts


def of_altered(rng: random.Random) -> bytes:
    """A question that is JSON, and in places something else than one."""
    value = json.loads(rng.choice(SEEDS[:WHOLE]))
    for _ in range(rng.choice((1, 1, 2, 3))):
        value = {**value, (name := rng.choice([*value, rng.choice(NAMES)])): altered(rng, value.get(name))}
    return json.dumps(value).encode()


async def read_all(folder: Path, count: int, seed: int) -> Counter[str]:
    """What became of so many bodies: each is read, or refused in words of ours."""
    rng, outcomes = random.Random(seed), Counter[str]()
    registry = Registry(Settings(database=str(folder / "fuzz.journal")))
    registry.open()
    catalogues = Catalogues(registry)
    found = experiments(registry.journal)
    opened = [OpenExperiment(one, registry.journal, registry.executor, registry.settings) for one in found]
    for _ in range(count):
        body = of_altered(rng) if rng.random() < 0.5 else mutated(rng, rng.choice(SEEDS))
        where = rng.choice(opened)
        try:
            ask = where.experiment.read(await catalogues.arguments(where, read_body(READ_DECIDE, body)))
            assert isinstance(ask, Ask)
            outcomes["read"] += 1
        except ProblemError as refusal:
            outcomes[f"{refusal.problem.status} {refusal.problem.type}"] += 1
        except SurefootError as error:
            outcomes[type(error).__name__] += 1
        except Exception as error:
            raise AssertionError(f"{where.name}: {body!r}") from error
    registry.executor.shutdown()
    registry.journal.close()
    return outcomes


@pytest.mark.parametrize("count", [20_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_a_mutated_body_is_read_or_refused_in_our_words(count: int, tmp_path: Path) -> None:
    outcomes = asyncio.run(read_all(tmp_path, count, seed=count))
    assert sum(outcomes.values()) == count
    assert not any(word.startswith("5") for word in outcomes)
    assert min(outcomes[word] for word in ("read", "400 /problems/malformed", "InputError")) > count // 200, outcomes
