"""The demo's visitors: a thread that asks the service what to show and sends the clicks, as a shop would."""

import heapq
import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from surefoot.errors import ConfigError
from surefoot.service.demo_shop import CHOICES, Choice

HOST = "127.0.0.1"
WINDOW = 1.5  # seconds in which a click counts
REPORT_SECONDS = 5.0
PATIENCE = 900.0  # the first run on a machine compiles the policies, and small machines take long for it


class Visitors:
    """`rate` visitors a second until `stop` is called; `failure` is the error that ended them earlier."""

    def __init__(self, port: int, *, rate: float, seed: int, say: Callable[[str], None]) -> None:
        self.port, self.failure, self.counts = port, None, Counter[tuple[str, str]]()
        self._rate, self._random, self._say = rate, np.random.default_rng(seed), say
        self._clicks: list[tuple[float, str, str]] = []  # when, in which experiment, and of which decision
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
        for choice in CHOICES:
            self.ask("POST", "/v1/experiments", choice.experiment(window=WINDOW))
        self._say("A shop with simulated visitors: a learner starts beside what is played today.")
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
        due, report, number = began, began + REPORT_SECONDS, 0
        while not self._stopping.wait(max(0.0, due - now)):
            visitor, number = int(self._random.choice((-1, 1))), number + 1
            for choice in CHOICES:
                if number % choice.every == 0:
                    self._decide(choice, visitor)
            self._send_clicks()
            now = time.monotonic()
            due = max(due + 1 / self._rate, now)  # a slow machine has fewer visitors, not a crowd
            if now >= report:
                report += REPORT_SECONDS
                self._tell(now - began)

    def _decide(self, choice: Choice, visitor: int) -> None:
        answer = self.ask("POST", f"/v1/experiments/{choice.name}/decisions", choice.question(visitor))
        self.counts[choice.name, answer["source"]] += 1
        if self._random.random() < choice.chance(answer["action"], visitor=visitor):
            when = time.monotonic() + float(self._random.uniform(0.1, 0.6)) * WINDOW
            heapq.heappush(self._clicks, (when, choice.name, answer["decision_id"]))

    def _send_clicks(self) -> None:
        """Only clicks are reported: if none comes, the window closes and 0 is learned."""
        due = []
        while self._clicks and self._clicks[0][0] <= time.monotonic():
            due.append(heapq.heappop(self._clicks))
        for choice in CHOICES:
            rewards = [{"decision_id": decision, "value": 1.0} for _, name, decision in due if name == choice.name]
            if rewards:
                self.ask("POST", f"/v1/experiments/{choice.name}/reward-batches", {"rewards": rewards})

    def _tell(self, seconds: float) -> None:
        name = CHOICES[0].name
        found = self.ask("GET", f"/v1/experiments/{name}")
        margin = "no margin yet" if found["margin"] is None else f"margin {found['margin']:.1f}"
        share = f"{found['learner_share']:.0%} with the learner"
        self._say(f"{seconds:5.0f} s  {name}: {found['rounds']:,} decisions, {share}, {margin}")
