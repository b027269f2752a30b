"""Real proxies of LiteLLM in processes of their own, which import it once and are forked from there; and callers."""

import json
import multiprocessing
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "API_KEY": "none"}
KEY = "sk-7d1f0c9a4be25863f0ad"
CONFIG = """
model_list:
  - {{model_name: chat, litellm_params: {{model: openai/big, api_base: "{big}", api_key: none}}}}
  - {{model_name: chat, litellm_params: {{model: openai/small, api_base: "{small}", api_key: none}}}}
router_settings: {{plugins: [surefoot.integrations.litellm.guard], disable_cooldowns: true}}
litellm_settings: {{callbacks: [surefoot.integrations.litellm.guard]}}
callback_settings: {{surefoot: {settings}}}
"""
MODELS = {"name": "chat", "baseline": "openai/big", "proposal": "openai/small", "deadline": 60}
GUARD = {"mode": "guarded", "alpha": 0.4, "delta": 0.05}
MANY = 30  # coins of at least 0.4: all fall on one side in 2e-7 of all runs
FORKS = multiprocessing.get_context("forkserver")  # preloaded in conftest


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def serve(folder: str, port: int, environment: dict[str, str] | None = None) -> None:
    """A proxy, until it is killed."""
    os.chdir(folder)
    os.environ |= ENVIRONMENT | {"LITELLM_MASTER_KEY": KEY} | (environment or {})
    log = os.open("proxy.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    from litellm.proxy.proxy_cli import run_server

    run_server.main(["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)])


class Proxy:
    """What its callers do."""

    def __init__(self, url: str, folder: Path) -> None:
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30)
        self.folder = folder

    def ask(self, **more: Any) -> httpx.Response:
        return self.http.post("/v1/chat/completions", json=self.body(**more))

    def body(self, **more: Any) -> dict[str, Any]:
        return {"model": "chat", "messages": [{"role": "user", "content": "Who are you?"}], **more}

    def reward(self, decision_id: Any, value: Any) -> httpx.Response:
        return self.http.post("/surefoot/rewards", json={"decision_id": decision_id, "value": value})

    @property
    def log(self) -> str:
        return (self.folder / "proxy.log").read_text()


def started(folder: Path, config: str, environment: dict[str, str] | None = None) -> tuple[Any, str]:
    """The process of a proxy, and its address."""
    (folder / "config.yaml").write_text(config)
    port = free_port()
    process = FORKS.Process(target=serve, args=(str(folder), port, environment), daemon=True)
    process.start()
    return process, f"http://127.0.0.1:{port}"


@contextmanager
def proxy(folder: Path, config: str, **environment: str) -> Iterator[Proxy]:
    process, url = started(folder, config, environment)
    try:
        while True:
            assert process.is_alive(), (folder / "proxy.log").read_text()[-3000:]
            try:
                httpx.get(f"{url}/health/liveliness", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.05)
        caller = Proxy(url, folder)
        with caller.http:
            yield caller
    finally:
        process.terminate()
        process.join(30)


def served(response: httpx.Response) -> tuple[str, str]:
    """The decision's id, and who answered."""
    return response.headers["x-surefoot-decision-id"], answer_of(response)


def answer_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    return str(response.json()["choices"][0]["message"]["content"])


def configuration(big: str, small: str, settings: dict[str, Any]) -> str:
    """The configuration of the documentation, by the models' addresses."""
    return CONFIG.format(big=big, small=small, settings=json.dumps(MODELS | settings))


def wait_until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)
