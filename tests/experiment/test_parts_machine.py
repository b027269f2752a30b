"""Rewards in parts, in any order, with duplicates, conflicts, restarts and windows, against whole rewards.

The reference is a guard of the library, without journal and parts: what was accepted of a round is observed at once,
when it is complete or when its window closes.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import httpx
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import surefoot
from surefoot.audit import audit
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.rounds.format import pack
from surefoot.service.settings import Settings
from tests.experiment.worlds import Clock
from tests.service.servers import running

VALUES = {"quality": (0.9, 0.2), "latency": (3.0, 8.0), "cost": (0.4, 0.0)}
SUBSETS = [(*VALUES,), *((name,) for name in VALUES), ("cost", "quality"), ("latency", "quality")]
WINDOW, ROUNDS = 30.0, 3


def guard(settle_after: int | None, default: float | None) -> surefoot.Guard:
    metrics = {  # in the order of the journal
        "cost": surefoot.ceiling(0, 2, alpha=0.3, default=default, reserve=10),
        "latency": surefoot.ceiling(0, 10, alpha=0.4, reserve=50),
        "quality": surefoot.floor(0, 1, alpha=0.3, reserve=5),
    }
    return surefoot.Guard(delta=0.2, metrics=metrics, seed=7, settle_after=settle_after)


class InProcess:
    """An experiment in this process, which is opened anew from a snapshot or from its events."""

    def __init__(self, window: float | None, policy: surefoot.Guard) -> None:
        self.journal, self.clock = open_journal("memory:"), Clock()
        self.live = Experiment.create(
            self.journal, "models", policy, mode="guarded", reward_window=window, clock=self.clock, snapshot_every=5
        )

    def decide(self, number: int) -> dict[str, Any]:
        self.live.decide(baseline="big", proposal="small", decision_id=f"visit-{number}")
        return msgspec.to_builtins(self.live.round(f"visit-{number}"))  # type: ignore[no-any-return]

    def reward(self, number: int, values: dict[str, float]) -> str | None:
        receipt = self.live.reward(f"visit-{number}", values)
        return "repeat" if receipt.is_repeat else receipt.refused

    def reopen(self) -> None:
        self.live = Experiment.open(self.journal, "models", clock=self.clock, snapshot_every=5)

    def check(self, reference: surefoot.Guard) -> None:
        self.live.close_windows()
        ours, theirs = self.live.policy_state(), reference.state()
        for part in ("rounds", "banks", "lifts", "booked"):
            assert pack(ours[part]) == pack(theirs[part]), part

    def finish(self) -> None:
        state = pack(self.live.policy_state())
        self.reopen()
        assert pack(self.live.policy_state()) == state
        assert [finding.text for finding in audit(self.journal, "models").findings] == []


class OverHttp:
    """An experiment of a service, whose coins are its own."""

    def __init__(self, http: httpx.Client, policy: surefoot.Guard) -> None:
        self.http, self.clock, self.at = http, Clock(), f"/v1/experiments/{uuid4()}"
        settings = {name: value for name, value in policy.settings.items() if name != "seed" and value is not None}
        body = {"name": self.at[16:], "policy": "Guard", "mode": "guarded", "settings": settings}
        http.post("/v1/experiments", json=body).raise_for_status()

    def decide(self, number: int) -> dict[str, Any]:
        body = {"decision_id": f"visit-{number}", "baseline": "big", "proposal": "small"}
        self.http.post(f"{self.at}/decisions", json=body).raise_for_status()
        return self.http.get(f"{self.at}/decisions/visit-{number}").json()["round"]  # type: ignore[no-any-return]

    def reward(self, number: int, values: dict[str, float]) -> str | None:
        answer = self.http.post(f"{self.at}/decisions/visit-{number}/reward", json={"value": values}).json()
        if "type" in answer:
            word = answer["type"].removeprefix("/problems/").removesuffix("-decision").removeprefix("reward-")
            return str(word.replace("-", "_"))
        return "repeat" if answer.get("is_repeat") else None

    def reopen(self) -> None:
        """Another server's turn would need another server."""

    def check(self, reference: surefoot.Guard) -> None:
        metrics = self.http.get(self.at).json()["guard"]["metrics"]
        assert {name: one["bank"] for name, one in metrics.items()} == reference.banks

    def finish(self) -> None:
        """The journal is audited with its server."""


class Model:
    """The experiment, and beside it what was accepted and the guard that observes it."""

    def __init__(self, place: Any, window: str | None, reference: surefoot.Guard) -> None:
        self.place, self.window, self.guard = place, window, reference
        self.came = dict[int, dict[str, float]]()
        self.opened = dict[int, float]()
        self.settled = set[int]()

    def settle(self, number: int) -> None:
        self.guard.observe(number, self.came[number])
        self.settled.add(number)

    def close_windows(self) -> None:
        for number, time in self.opened.items():
            if self.window == "seconds" and number not in self.settled and time + WINDOW <= self.place.clock.now:
                self.settle(number)

    def decide(self) -> None:
        number = len(self.came) + 1
        record = self.place.decide(number)
        known = {name: record[name] for name in ("share", "draw", "source")}
        self.guard.recall(baseline="big", proposal="small", **known)
        self.came[number], self.opened[number] = {}, self.place.clock.now
        due = number - ROUNDS
        if self.window == "rounds" and due in self.came and due not in self.settled:
            self.settle(due)

    def reward(self, back: int, names: tuple[str, ...], which: int) -> None:
        number = len(self.came) - back
        sent = {name: VALUES[name][which] for name in names}
        assert self.place.reward(number, sent) == self.expected(number, sent)

    def expected(self, number: int, sent: dict[str, float]) -> str | None:
        """What comes of it; what is accepted is kept."""
        if number not in self.came:
            return "unknown"
        came = self.came[number]
        if any(came.get(name, value) != value for name, value in sent.items()):
            return "conflict"
        if sent.keys() <= came.keys():
            return "repeat"
        if number in self.settled:
            return "too_late"
        came |= sent
        if self.window != "seconds" and len(came) == len(VALUES):
            self.settle(number)
        return None

    def wait(self, seconds: float) -> None:
        self.place.clock.now += seconds

    def reopen(self) -> None:
        self.place.reopen()

    def play(self, steps: list[Any]) -> None:
        for name, *arguments in [("decide",), *steps]:
            self.close_windows()
            getattr(self, name)(*arguments)
            self.close_windows()
            self.place.check(self.guard)
        self.place.finish()


SENT = st.tuples(st.just("reward"), st.integers(0, 3), st.sampled_from(SUBSETS), st.sampled_from((0, 0, 0, 1)))
OTHERS = st.sampled_from((("decide",), ("decide",), ("decide",), ("reopen",), ("wait", 7.0), ("wait", 30.0)))


STEPS = st.lists(SENT | OTHERS, min_size=15, max_size=40)


@pytest.mark.parametrize("window", [None, "seconds", "rounds"])
@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(default=st.sampled_from((None, 1.5)), steps=STEPS)
def test_any_sequence_of_parts_comes_to_the_same_as_whole_rewards(
    window: str | None, default: float | None, steps: list[Any]
) -> None:
    policy = guard(ROUNDS if window == "rounds" else None, default)
    Model(InProcess(WINDOW if window == "seconds" else None, policy), window, guard(None, default)).play(steps)


@pytest.fixture(scope="module")
def http(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    path = str(tmp_path_factory.mktemp("parts") / "shop.db")
    with (
        running(Settings(database=path)) as address,
        httpx.Client(base_url=address, timeout=60, trust_env=False) as client,
    ):
        yield client
    with open_journal(path, read_only=True) as journal:
        assert [finding.text for name in journal.names() for finding in audit(journal, name).findings] == []


@settings(max_examples=6, deadline=None, derandomize=True, database=None)
@given(window=st.sampled_from((None, "rounds")), steps=STEPS)
def test_parts_over_http_come_to_the_same_as_whole_rewards(
    http: httpx.Client, window: str | None, steps: list[Any]
) -> None:
    Model(OverHttp(http, guard(ROUNDS if window == "rounds" else None, None)), window, guard(None, None)).play(steps)
