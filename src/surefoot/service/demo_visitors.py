"""The demo's visitors: a thread that asks the service for decisions and sends the rewards, as an application would."""

import heapq
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from surefoot.errors import ConfigError

HOST = "127.0.0.1"
WINDOW = 1.5  # seconds in which a reward comes
SEND_SECONDS, REPORT_SECONDS = 0.1, 5.0
PATIENCE = 900.0  # the first run on a machine compiles the policies, and small machines take long for it


class Choice(Protocol):
    """Something that is decided for every `every`-th visitor."""

    @property
    def name(self) -> str:
        """The experiment's name."""

    @property
    def every(self) -> int:
        """How many visitors share a decision."""

    def experiment(self, *, window: float) -> dict[str, Any]:
        """How the experiment is created, if its rewards come within so many seconds."""

    def question(self, visitor: int) -> dict[str, Any]:
        """What the service is asked for this visitor."""

    def reward(self, answer: Mapping[str, Any], visitor: int, random: np.random.Generator) -> Any:
        """What is reported of a decision; None where nothing is."""

    def progress(self, status: Mapping[str, Any]) -> str:
        """How it stands, for the terminal."""


@dataclass(frozen=True)
class Demo:
    """Who comes, how many a second as a rule, and what is decided for them; `greeting` says so."""

    greeting: str
    rate: float
    choices: Sequence[Choice]
    visitors: Callable[[np.random.Generator], Iterator[int]]


class Visitors:
    """`rate` visitors a second until `stop` is called; `failure` is the error that ended them earlier."""

    def __init__(self, world: Demo, port: int, *, rate: float | None, seed: int, say: Callable[[str], None]) -> None:
        self.port, self.failure, self.counts = port, None, Counter[tuple[str, str]]()
        self._world, self._rate = world, world.rate if rate is None else rate
        self._random, self._say = np.random.default_rng(seed), say
        self._rewards: list[tuple[float, str, str, Any]] = []  # when, in which experiment, of which decision, how much
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="visitors", daemon=True)
        self._connection = http.client.HTTPConnection(HOST, port, timeout=PATIENCE)

    failure: Exception | None

    def start(self, *, on_open: Callable[[], None], on_end: Callable[[], None]) -> None:
        """Start the visitors; `on_open` is called before the first, `on_end` if they cannot continue."""
        self._on_open, self._on_end = on_open, on_end
        self._thread.start()

    def stop(self) -> None:
        """Send no more visitors."""
        self._stopping.set()

    def join(self) -> None:
        """Wait until the last visitor is served."""
        self.stop()
        if self._thread.is_alive():
            self._thread.join(timeout=30)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """One request, and its answer."""
        data = None if body is None else json.dumps(body)
        self._connection.request(method, path, data, {"Content-Type": "application/json"})
        answer = self._connection.getresponse()
        found = json.loads(answer.read() or b"null")
        if answer.status >= 400:
            raise ConfigError(f"The demo's service must answer its visitors, but {path} gave {answer.status}: {found}.")
        return found

    def _run(self) -> None:
        try:
            self._open()
            self._on_open()
            self._visit()
        except Exception as error:  # a thread cannot raise to its starter, which looks here
            if not self._stopping.is_set():
                self.failure = error
                self._on_end()
        finally:
            self._connection.close()

    def _open(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while not self._is_ready():
            if self._stopping.wait(0.05) or time.monotonic() > deadline:
                raise ConfigError(f"The demo's service must become ready, but port {self.port} is not.")
        for choice in self._world.choices:
            self.ask("POST", "/v1/experiments", choice.experiment(window=WINDOW))
        self._say(self._world.greeting)
        self._say(f"Open http://{HOST}:{self.port}/ in a browser.")
        self._say("Ctrl-C ends the demo, and removes its journal.")

    def _is_ready(self) -> bool:
        try:
            self.ask("GET", "/readyz")
        except (ConfigError, OSError, http.client.HTTPException):
            self._connection.close()  # one that failed half-way cannot ask again
            return False
        return True

    def _visit(self) -> None:
        began = now = time.monotonic()
        due, send, report = began, began + SEND_SECONDS, began + REPORT_SECONDS
        for number, visitor in enumerate(self._world.visitors(self._random), start=1):
            if self._stopping.wait(max(0.0, due - now)):
                return
            for choice in self._world.choices:
                if number % choice.every == 0:
                    self._decide(choice, visitor)
            now = time.monotonic()
            if now >= send:
                send = now + SEND_SECONDS
                self._send_rewards()
            due = max(due + 1 / self._rate, now)  # a slow machine has fewer visitors, not a crowd
            if now >= report:
                report += REPORT_SECONDS
                self._report(now - began)
        while self._rewards and not self._stopping.wait(0.05):
            self._send_rewards()
        self._report(time.monotonic() - began)
        self._say("That was the last visitor. The page stays until Ctrl-C.")

    def _decide(self, choice: Choice, visitor: int) -> None:
        answer = self.ask("POST", f"/v1/experiments/{choice.name}/decisions", choice.question(visitor))
        self.counts[choice.name, answer["source"]] += 1
        if (value := choice.reward(answer, visitor, self._random)) is not None:
            when = time.monotonic() + float(self._random.uniform(0.1, 0.6)) * WINDOW
            heapq.heappush(self._rewards, (when, choice.name, answer["decision_id"], value))

    def _send_rewards(self) -> None:
        due = []
        while self._rewards and self._rewards[0][0] <= time.monotonic():
            due.append(heapq.heappop(self._rewards))
        for choice in self._world.choices:
            rewards = [{"decision_id": one, "value": value} for _, name, one, value in due if name == choice.name]
            if rewards:
                self.ask("POST", f"/v1/experiments/{choice.name}/reward-batches", {"rewards": rewards})

    def _report(self, seconds: float) -> None:
        for choice in self._world.choices:
            status = self.ask("GET", f"/v1/experiments/{choice.name}")
            self._say(f"{seconds:5.0f} s  {choice.name}: {status['rounds']:,} decisions, {choice.progress(status)}")
