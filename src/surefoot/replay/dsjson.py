"""VW's DSJSON: one event a line, with a shared context, a list of actions, and a cost for the one that was played.

Names and values are hashed into `dim` numbers, as VW does it: constant, shared features, action features and every
product of a shared and an action feature; each row is then divided by its length. The first action of an event is
the baseline, as VW's own counterfactual reports have it. Costs are negative rewards.

As in VW, names that begin with an underscore are no features, but the words of a `_text` are; and events that say
`_skipLearn` are left out. Where events were dropped with different chances when they were logged (`pdrop`), those that
were dropped less often are thinned until all have the same chance: what is left is a smaller log, drawn evenly.
"""

import hashlib
import json
import math
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.arrays import Vector, count
from surefoot.errors import LogError
from surefoot.replay.columns import SeenIds
from surefoot.replay.log import BATCH_NUMBERS, BadRows, Batch, Log
from surefoot.replay.table_files import line_blocks, shown_path

Weights = dict[str, float]


class DsjsonLog(Log):
    """Events of a DSJSON file; events with fewer actions than the longest repeat their first one, which is harmless.

    A repeated row ties with the one it repeats, and ties go to the first.
    """

    def __init__(
        self, path: str | Path | Sequence[Path], *, dim: int = 32, actions: int | None = None, max_bad: int = 0
    ) -> None:
        paths = [Path(path)] if isinstance(path, (str, Path)) else list(path)
        self._files, self._path = paths, shown_path(paths)
        self.name = Path(self._path).name
        self.dim = count("dim", dim, least=2, hint="dim is the number of hashed features.")
        self.bad, self.feature_bound = BadRows(max_bad), 1.0 + 1e-9
        for each in paths:
            if not each.exists():
                raise LogError(f"`{each}` must be a log, but there is no such file. Check the path.")
        self._chance = 0.0  # with which every event was logged once they are thinned; not known before the first pass
        seen = [(len(event.rows), event.propensity, event.chance, event.draw()) for event in self._events(hashed=False)]
        if not seen:
            raise LogError(f"`{self._path}` must have at least one usable event, but it has none.")
        self._chance = min(chance for *_, chance, _ in seen)
        events = [(size, p) for size, p, chance, draw in seen if draw * chance < self._chance]
        self.rows = len(events)
        self.propensity_range = min(p for _, p in events), max(p for _, p in events)
        self.actions = tuple(str(slot) for slot in range(1, (actions or max(size for size, _ in events)) + 1))

    def batches(self) -> Iterator[Batch]:
        """All events, in order."""
        size = max(1, BATCH_NUMBERS // (self.dim * len(self.actions)))
        waiting: list[_Event] = []
        for event in self._events(hashed=True):
            waiting.append(event)
            if len(waiting) == size:
                yield self._batch(waiting)
                waiting = []
        if waiting:
            yield self._batch(waiting)

    def _batch(self, events: list["_Event"]) -> Batch:
        features = np.zeros((len(events), len(self.actions), self.dim))
        for t, event in enumerate(events):
            features[t] = event.rows[0]
            features[t, : len(event.rows)] = event.rows
        return Batch(
            features,
            np.array([event.action for event in events], dtype=np.int64),
            np.array([[event.reward] for event in events]),
            np.array([event.propensity for event in events]),
            np.zeros(len(events), dtype=np.int64),
            np.array([event.line for event in events], dtype=np.int64),
        )

    def _events(self, *, hashed: bool) -> Iterator["_Event"]:
        # Of this pass alone: another thread may be on its own way through the log.
        self.bad = bad = BadRows(self.bad.limit)
        seen, dim = SeenIds(), self.dim if hashed else 0
        for line, text in self._lines():
            try:
                event = _Event(line, json.loads(text), dim)
                if hashed and len(event.rows) > len(self.actions):
                    raise ValueError(f"has {len(event.rows)} actions, more than {len(self.actions)}")
                if event.id and seen.repeated(_digest(event.id))[0]:
                    raise ValueError(f"EventId {event.id!r} was used by an event before")
            except (ValueError, KeyError, TypeError) as error:
                reason = f"{error} is missing" if isinstance(error, KeyError) else str(error)
                bad.add([(line, reason)], self._path)
                continue
            if not event.is_skipped and (not self._chance or event.draw() * event.chance < self._chance):
                yield event

    def _lines(self) -> Iterator[tuple[int, bytes]]:
        """Lines that are not blank, counted on from file to file."""
        before = 0
        for file in self._files:
            last = 0
            for first, data in line_blocks(file):
                for line, text in enumerate(data.split(b"\n"), start=first):
                    if text.strip():
                        last = line
                        yield before + line, text
            before += last


class _Event:
    def __init__(self, line: int, data: Any, dim: int) -> None:
        if not isinstance(data, Mapping):
            raise ValueError("is not an object")
        self.line, self.id = line, str(data.get("EventId", ""))
        self.reward = -_number("_label_cost", data["_label_cost"])
        self.propensity = _number("_label_probability", data["_label_probability"])
        if not 0 < self.propensity <= 1:
            raise ValueError(f"0 < _label_probability <= 1 must hold, not {self.propensity:g}")
        dropped = _number("pdrop", data.get("pdrop", 0.0))
        if not 0 <= dropped < 1:
            raise ValueError(f"0 <= pdrop < 1 must hold, not {dropped:g}")
        self.chance = 1.0 - dropped
        self.is_skipped = data.get("_skipLearn") is True
        choices = data["c"]["_multi"]
        # One counts from 0, the other from 1.
        self.action = int(data["_labelIndex"]) if "_labelIndex" in data else int(data["_label_Action"]) - 1
        if not 0 <= self.action < len(choices):
            raise ValueError(f"action {self.action + 1} is not one of the {len(choices)} of this event")
        shared = _flat(data["c"])
        self.rows = [hash_row(shared, _flat(choice), dim) if dim else np.zeros(0) for choice in choices]

    def draw(self) -> float:
        """A number of its own in [0, 1), the same in every pass over the log."""
        return int(_digest(f"{self.id} {self.line}")[0] >> np.uint64(11)) / 2**53


def hash_row(shared: Weights, action: Weights, dim: int) -> Vector:
    """phi(x, a) by hashing, of length 1."""
    row = np.zeros(dim)
    pairs = {f"{left}^{right}": x * y for left, x in shared.items() for right, y in action.items()}
    for name, value in {"constant": 1.0, **shared, **action, **pairs}.items():
        # Python's own hash differs from process to process. Place and sign come from opposite ends of it.
        digest = zlib.crc32(name.encode())
        row[digest % dim] += value if digest & 0x80000000 else -value
    length = math.sqrt(float(row @ row))
    return row / length if length > 0 else row


def _flat(namespaces: Any, above: str = "") -> Weights:
    """Names and values of a JSON object: numbers as they are, texts and truths as 1 under their own name."""
    weights: Weights = {}
    items = namespaces.items() if isinstance(namespaces, Mapping) else enumerate(namespaces)
    for key, value in items:
        name = f"{above}{key}"
        if str(key).startswith("_"):
            if key == "_text":
                weights |= {f"{above}{word}": 1.0 for word in str(value).split()}
            continue
        if isinstance(value, (Mapping, list)):
            weights |= _flat(value, f"{name}|")
        elif isinstance(value, (bool, str)):
            weights[f"{name}={value}"] = 1.0
        elif value is not None:
            weights[name] = _number(name, value)
    return weights


def _number(name: str, value: Any) -> float:
    if isinstance(value, (bool, str)) or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number, not {value!r}")
    return float(value)


def _digest(name: str) -> Any:
    return np.frombuffer(hashlib.blake2b(name.encode(), digest_size=8).digest(), dtype=np.uint64)
