"""The demo: one command, a story that takes a minute, and nothing left behind."""

import math
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import psutil  # type: ignore[import-untyped]
import pytest

import surefoot
from surefoot.errors import ConfigError
from surefoot.service.demo_llm import bill, judged_answers
from surefoot.service.demo_server import run
from surefoot.service.demo_shop import CHOICES, ShopChoice
from tests.service.page_browser import browser

COMMAND = [sys.executable, "-m", "surefoot.cli", "demo"]


@contextmanager
def demo(folder: Path, *options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The demo in a process of its own, with `folder` for its temporary files; and its address."""
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONWARNINGS": "ignore", "PYTHONUNBUFFERED": "1"}
    with subprocess.Popen([*COMMAND, *options], stdout=subprocess.PIPE, text=True, env=env) as process:
        try:
            yield process, address_of(process)
        finally:
            if process.poll() is None:
                process.kill()


def status_of(address: str, name: str) -> Any:
    return httpx.get(f"{address}/v1/experiments/{name}", timeout=60).json()


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def address_of(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            return found.group()
    raise AssertionError(f"the demo said no address, and ended with {process.wait()}")


@pytest.mark.parametrize("sign", [signal.SIGINT, None])
def test_the_demo_ends_when_told_to_and_leaves_nothing(tmp_path: Path, sign: signal.Signals | None) -> None:
    with demo(tmp_path, *(["--seconds", "2"] if sign is None else [])) as (process, address):
        assert list(tmp_path.glob("surefoot-demo-*/demo.journal*"))
        listening = [c.laddr for c in psutil.Process(process.pid).net_connections() if c.status == psutil.CONN_LISTEN]
        assert [place.ip for place in listening] == ["127.0.0.1"]
        names = [found["name"] for found in httpx.get(f"{address}/v1/experiments", timeout=60).json()["experiments"]]
        assert names == [choice.name for choice in CHOICES]
        if sign is not None:
            process.send_signal(sign)
        assert process.stdout is not None
        rest = process.stdout.read()
        assert process.wait(60) == 0
        assert "Ended after" in rest
    assert list(tmp_path.iterdir()) == []


def test_a_port_that_is_taken_is_refused_with_a_word_on_what_to_do() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ConfigError, match=f"`port` must be free, but {port} is not .*; 0 takes a free one"):
            run(port=port)


@pytest.mark.parametrize(("setting", "value"), [("rate", 0.0), ("rate", math.nan), ("seconds", 0.0), ("seconds", -1.0)])
def test_a_demo_that_could_not_run_is_refused(setting: str, value: float) -> None:
    with pytest.raises(ConfigError, match=f"`{setting} > 0` must hold"):
        run(**{setting: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_what_the_demo_declares_is_true_of_its_shop(choice: ShopChoice) -> None:
    declared = choice.experiment(window=1.0)["settings"]
    theta, (low, high) = np.array([*choice.means, *choice.slopes]), declared["reward_range"]
    assert np.linalg.norm(theta) <= declared["theta_bound"]
    assert declared["noise"] >= (high - low) / 2  # a reward within [low, high] is sub-Gaussian with half of its width
    for visitor in (-1, 1):
        rows = choice.rows(visitor)
        assert np.linalg.norm(rows, axis=1).max() <= declared["feature_bound"]
        chances = [choice.chance(action, visitor=visitor) for action in range(len(rows))]
        np.testing.assert_allclose(rows @ theta, chances)
        assert low <= min(chances) <= max(chances) <= high


def test_the_bill_falls_above_its_floor(tmp_path: Path) -> None:
    said = r"mistral-large: ([\d,]+) decisions, \$([\d.]+) of \$[\d.]+ saved \((\d+)%\), quality ([\d.]+)%"
    with demo(tmp_path, "llm", "--rate", "200") as (process, address), browser() as chromium, chromium.tab() as tab:
        assert process.stdout is not None
        lines = iter(process.stdout)
        while True:
            found = re.search(said, next(lines))
            if found and float(found[2]) > 0.0:
                break
        assert float(found[4]) > 95.0
        status = status_of(address, "mistral-large")
        tab.open(f"{address}/#/mistral-large")
        tab.wait("document.getElementById('tiles').innerText.includes(\"of today's bill\")")
        tiles = tab.run("document.getElementById('tiles').innerText")
        saved = re.search(r"Saved so far\n\$([\d.]+)\n(\d+)% of today's bill", tiles)
        kept = re.search(r"Of quality kept\n([\d.]+)%\nestimated; 95% is promised", tiles)
        risk = tab.run("document.getElementById('risk').innerText")
        lost = re.search(r"Quality: at most 5% may be lost\. (?:At worst ([\d.]+)% is lost so far|None of it)", risk)
        assert saved, tiles
        assert kept, tiles
        assert lost, risk
        assert float(lost[1] or 0.0) <= 5.0
        assert float(saved[1]) > 0.0
        assert float(kept[1]) > 90.0  # an estimate
        assert tab.complaints == []
        process.send_signal(signal.SIGINT)
        assert "Ended after" in "".join(lines)
        assert process.wait(60) == 0
    assert (status["reward_unit"], status["lift"]["metric"]) == ({"cost": "USD"}, "cost")
    assert status["guard"]["metrics"]["cost"]["learner_mean"] < status["guard"]["metrics"]["cost"]["baseline_mean"] / 9
    assert 0.0 < status["guard"]["metrics"]["quality"]["learner_mean"] <= 1.0


def test_what_the_bill_declares_is_true_of_its_answers() -> None:
    answers = judged_answers()
    assert answers.scores.shape == answers.dollars.shape == (3609, 3)
    assert answers.scores.min() >= 0.0
    assert answers.scores.max() <= 1.0
    assert answers.dollars.min() >= 0.0
    world = bill()
    assert sorted(world.visitors(np.random.default_rng(1))) == list(range(3609))
    assert {choice.experiment(window=1.0)["actions"][1] for choice in world.choices} < set(answers.models)


def test_a_bill_without_its_answers_names_their_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'surefoot\[bill\]'"):
        bill()


@pytest.mark.parametrize("seed", range(3))
def test_the_learner_goes_from_its_baseline_to_free_play_within_a_minute(seed: int) -> None:
    """The same policy and the same world without the service: 1,500 visitors are a minute of the demo."""
    choice, random = CHOICES[0], np.random.default_rng(seed)
    policy = surefoot.SafeLUCB(**choice.experiment(window=1.0)["settings"])
    sources, earned, baseline, late = [], 0.0, 0.0, list[tuple[surefoot.Decision, float]]()
    for _ in range(1500):
        visitor = int(random.choice((-1, 1)))
        decision = policy.decide(choice.rows(visitor), baseline=0)
        chance = choice.chance(decision.action, visitor=visitor)
        late.append((decision, float(random.random() < chance)))
        if len(late) > 40:  # as many wait for their window to close
            policy.observe(*late.pop(0))
        sources.append(decision.source)
        earned, baseline = earned + chance, baseline + choice.chance(0, visitor=visitor)
        assert earned >= 0.9 * baseline - 1e-9
    assert sources[:100].count("learner") <= 20
    assert sources[-100:].count("learner") == 100
