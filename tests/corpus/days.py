"""Scripted days: what is asked and reported of an experiment, the same for every kind of policy in every place.

`python -m tests.corpus.days` plays all of them and records what came of it: decisions, receipts, status, banks and the
audit's verdict. The bytes of events are nobody's promise; all of this is.
"""

import gzip
import json
import math
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from surefoot.errors import SurefootError
from tests.corpus import places

RECORDED = Path(__file__).parent / "days.json.gz"
ROUNDS = 90

ROWS: dict[str, Any] = {
    "dim": 2, "alpha": 0.2, "delta": 0.05, "noise": 0.1, "theta_bound": 1.0, "feature_bound": 1.0, "ridge": 0.3,
    "reward_range": [0.0, 1.0],
}  # fmt: skip
ARMS: dict[str, Any] = {"arms": 3, "alpha": 0.3, "delta": 0.05, "noise": 0.2}
PAIR: dict[str, Any] = {"alpha": 0.1, "delta": 0.05, "reserve": 3.0, "ramp": "gate"}
METRICS: dict[str, Any] = {
    "delta": 0.05,
    "ramp": "gate",
    "metrics": {
        "quality": {"kind": "floor", "low": 0.0, "high": 1.0, "alpha": 0.2, "reserve": 4.0},
        "cost": {"kind": "ceiling", "low": 0.0, "high": 2.0, "alpha": 0.3, "reserve": 6.0, "default": 1.0},
    },
}
KINDS = {
    "rows": ("SafeLUCB", ROWS),
    "arms": ("ConservativeUCB", ARMS),
    "pair": ("Guard", PAIR),
    "metrics": ("Guard", METRICS),
}
WINDOW, ALARMS, CONFIRM = {"reward_window": 6.0}, {"reward_bounds": (0.0, 1.0)}, {"confirm_within": 3.0}
HARD_DAYS: dict[tuple[str, str, str], dict[str, Any]] = {
    ("windows", "rows", "process"): {**WINDOW, **ALARMS, "default_reward": 0.1, "sealed": True},
    ("windows", "arms", "process"): {**WINDOW, **ALARMS, "default_reward": 0.1},
    ("windows", "pair", "process"): {**WINDOW, "sealed": True},
    ("windows", "metrics", "process"): WINDOW,
    ("windows", "rows", "shard"): {**WINDOW, **ALARMS},
    ("windows", "metrics", "shard"): WINDOW,
    ("windows", "rows", "edge"): {"reward_window": 1e6},
    ("windows", "pair", "edge"): {"reward_window": 1e6},
    ("alarms", "rows", "process"): ALARMS,
    ("confirmations", "rows", "process"): {**ALARMS, **CONFIRM},
    ("alarms", "arms", "process"): ALARMS,
    ("alarms", "pair", "process"): {},
    ("alarms", "metrics", "process"): {"sealed": True},
    ("alarms", "rows", "shard"): ALARMS,
    ("alarms", "pair", "shard"): {},
    ("alarms", "rows", "edge"): {"reward_bounds": [0.0, 1.0]},
    ("alarms", "metrics", "edge"): {},
}
THETA = np.array([0.8, 0.4])


class Day:
    """One day of one kind: requests, rewards in any order, words about rounds, pauses and restarts."""

    def __init__(self, kind: str, place: Any, seed: int) -> None:
        self.kind, self.place, self.rng = kind, place, np.random.default_rng(seed)
        self.story: list[Any] = []
        self.waiting: list[tuple[str, str]] = []

    def play(self) -> list[Any]:
        for turn in range(ROUNDS):
            self.place.tick()
            self.decide(f"visit-{turn}")
            while len(self.waiting) > self.rng.integers(1, 6):
                self.settle(*self.waiting.pop(int(self.rng.integers(len(self.waiting)))))
            if turn in (15, 55):
                self.place.restart()
            if turn == 25:
                self.place.set_mode("paused")
            if turn == 30:
                self.place.set_mode("guarded")
            if turn % 20 == 19:
                self.place.renew()
        self.say("stranger", lambda: self.place.reward("nobody", self.reward("baseline")))
        for entry in self.waiting:
            self.settle(*entry)
        self.place.renew()
        return self.story

    def request(self) -> dict[str, Any]:
        if self.kind == "rows":
            rows = self.rng.uniform(0.05, 0.7, size=(3, 2))
            return {"rows": rows.tolist(), "baseline": 0}
        if self.kind == "arms":
            return {"baseline": 1}
        same = self.rng.random() < 0.1
        return {"baseline": "old", "proposal": "old" if same else "new"}

    def reward(self, source: str) -> Any:
        value = float(np.round(self.rng.random() * (1.0 if source == "learner" else 0.8), 6))
        return {"quality": value, "cost": round(2.0 * value, 6)} if self.kind == "metrics" else value

    def decide(self, name: str) -> None:
        request = self.request()
        answer = self.say("decide", lambda: self.place.decide(request, name))
        if isinstance(answer, dict):
            self.waiting.append((answer["id"], answer["source"]))
            if self.rng.random() < 0.1:
                self.say("again", lambda: self.place.decide(request, name))

    def settle(self, decision_id: str, source: str) -> None:
        luck, value = self.rng.random(), self.reward(source)
        if luck < 0.06:
            self.say("abandon", lambda: self.place.abandon(decision_id))
        elif luck < 0.12:
            self.say("void", lambda: self.place.void(decision_id))
            self.say("reward", lambda: self.place.reward(decision_id, value))
        else:
            self.say("reward", lambda: self.place.reward(decision_id, value))
            if luck > 0.95:
                self.say("repeat", lambda: self.place.reward(decision_id, value))

    def say(self, verb: str, call: Callable[[], Any]) -> Any:
        try:
            result = call()
        except SurefootError as error:
            result = type(error).__name__
        self.story.append([verb, result])
        return result


class HardDay(Day):
    """Corrections, confirmations and erasures; rewards that come late, or break what was declared, and their alarms."""

    def __init__(self, kind: str, place: Any, seed: int) -> None:
        super().__init__(kind, place, seed)
        self.lost: list[str] = []

    def play(self) -> list[Any]:
        for turn in range(ROUNDS):
            self.place.tick()
            self.decide(f"visit-{turn}")
            if self.rng.random() < 0.1:
                self.say("void", lambda: self.place.void(self.waiting[-1][0]))
            while len(self.waiting) > self.rng.integers(1, 9):
                self.settle(*self.waiting.pop(int(self.rng.integers(len(self.waiting)))))
            if turn in (22, 40):
                self.say("breach", lambda: self.place.reward(self.waiting[-1][0], self.breach()))
            if turn in (26, 44):
                self.say("answer", partial(self.place.acknowledge, "relearn" if turn == 26 else "renew"))
            if turn == 33:
                self.place.restart()
            if turn == 70:
                ids = [f"visit-{number}" for number in range(0, 30, 3)]
                self.say("erase", partial(self.place.erase, ids))
            if turn % 10 == 9:
                while self.lost:
                    self.say("abandon", partial(self.place.abandon, self.lost.pop()))
                self.place.renew()
                self.say("alarm", self.place.alarm)
        self.place.restart()
        self.say("alarm", self.place.alarm)
        return self.story

    def breach(self) -> Any:
        return {"quality": 1.5, "cost": 2.5} if self.kind == "metrics" else 1.5

    def settle(self, decision_id: str, source: str) -> None:
        luck = self.rng.random()
        if luck < 0.3:
            self.say("confirm", lambda: self.place.confirm([decision_id, "nobody"]))
        if luck > 0.9:
            self.lost.append(decision_id)
            return
        super().settle(decision_id, source)
        if luck < 0.6:
            value = self.reward(source)
            self.say("correct", lambda: self.place.correct(decision_id, value))


def days() -> Iterator[tuple[str, Callable[[Path], Any]]]:
    """Every cell that there is, by its name."""
    for place, opens in places.PLACES.items():
        for kind, (policy, settings) in KINDS.items():
            if kind == "arms" and place in ("shard", "edge"):
                continue  # only SafeLUCB and Guard can be leased
            yield f"{kind} {place}", partial(played, opens=opens, kind=kind, policy=policy, settings=settings)
    for (name, kind, place), options in HARD_DAYS.items():
        policy, settings = KINDS[kind]
        if name == "confirmations":
            settings = places.shared(policy, settings)  # or the learner plays too late to be confirmed
        opens = partial(places.PLACES[place], **options)
        yield (
            f"{name} {kind} {place}",
            partial(played, opens=opens, kind=kind, policy=policy, settings=settings, day=HardDay),
        )


def played(folder: Path, opens: Any, kind: str, policy: str, settings: dict[str, Any], day: type[Day] = Day) -> Any:
    with places.seeded_coins(7), opens(folder, policy, settings) as place:
        story = day(kind, place, 11).play()
        return plain({"story": story, **place.end()})


def plain(value: Any) -> Any:
    """As JSON gives it back; numbers that are not finite as texts."""
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    if isinstance(value, (bool, str)) or value is None:
        return value
    if isinstance(value, (int, np.integer)):
        return int(value)
    number = float(value)
    return number if math.isfinite(number) else repr(number)


def main() -> None:
    recorded = {}
    for name, play in days():
        with tempfile.TemporaryDirectory() as folder:
            recorded[name] = play(Path(folder))
        print(name, len(recorded[name]["story"]), recorded[name]["audit"], file=sys.stderr)
    RECORDED.write_bytes(gzip.compress(json.dumps(recorded, sort_keys=True).encode(), mtime=0))


if __name__ == "__main__":
    main()
