"""A server that says it serves does, and its first experiment needs no time to get ready."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.bare_python import SETTINGS
from tests.service.servers import ACTIONS

ARMS = {"actions": [{"id": name} for name in ("old", "new", "other")]}
QUESTIONS: dict[str, dict[str, Any]] = {
    "LUCB": {"actions": ACTIONS},
    "CLUCB": {"actions": ACTIONS, "baseline_reward": 0.5},
    "CLUCB2": {"actions": ACTIONS},
    "SafeLUCB": {"actions": ACTIONS},
    "UCB": ARMS,
    "ConservativeUCB": ARMS,
    "Guard": {"baseline": "old", "proposal": "new"},
}
SECONDS = 1.0


@contextmanager
def said_to_serve(folder: Path) -> Iterator[str]:
    """The address of a new process, from the moment at which its log says that it serves."""
    command = ["-m", "surefoot", "serve", "--database", str(folder / "shop.journal"), "--port", "0"]
    with subprocess.Popen([sys.executable, *command], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            said = next(entry for line in process.stderr if (entry := json.loads(line))["event"] == "serving")
            yield f"http://127.0.0.1:{said['port']}"
        finally:
            process.terminate()
            process.communicate(timeout=60)


OTHERS = [pytest.param(policy, marks=pytest.mark.long) for policy in QUESTIONS if policy not in ("SafeLUCB", "Guard")]


@pytest.mark.parametrize("policy", ["SafeLUCB", "Guard", *OTHERS])
def test_the_first_experiment_of_a_new_server_is_there_within_a_second(policy: str, tmp_path: Path) -> None:
    settings = eval(f"dict({SETTINGS[policy]})")
    body = {"name": "shop", "mode": "guarded", "policy": policy, "settings": settings}
    with said_to_serve(tmp_path) as address, httpx.Client(base_url=address, trust_env=False, timeout=60) as client:
        began = time.perf_counter()
        created = client.post("/v1/experiments", json=body)
        decided = client.post("/v1/experiments/shop/decisions", json=QUESTIONS[policy])
        took = time.perf_counter() - began
        ready = client.get("/readyz")
    assert (created.status_code, decided.status_code, ready.status_code) == (201, 201, 200), created.text + decided.text
    assert took < SECONDS


def test_a_server_that_cannot_listen_does_not_say_that_it_serves(tmp_path: Path) -> None:
    with said_to_serve(tmp_path) as address:
        port = address.rpartition(":")[2]
        command = [sys.executable, "-m", "surefoot", "serve", "--database", str(tmp_path / "other"), "--port", port]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert '"serving"' not in done.stderr
    assert "address already in use" in done.stderr
