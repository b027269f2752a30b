"""Callers of the real proxy, which is killed in the middle of their requests: no decision is lost or drawn again."""

import asyncio
import itertools
import multiprocessing
import os
import random
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.audit import audit
from surefoot.journal import open_journal
from surefoot.rounds import decode, events
from tests.integrations.model_server import model_server
from tests.integrations.test_litellm import ENVIRONMENT, KEY, free_port

CALLERS, UNITS = 8, 40
CONFIG = """
model_list:
  - {{model_name: chat, litellm_params: {{model: openai/big, api_base: "{big}", api_key: none}}}}
  - {{model_name: chat, litellm_params: {{model: openai/small, api_base: "{small}", api_key: none}}}}
router_settings: {{plugins: [surefoot.integrations.litellm.guard]}}
litellm_settings: {{callbacks: [surefoot.integrations.litellm.guard]}}
callback_settings:
  surefoot:
    {{journal: chat.journal, name: chat, mode: guarded, baseline: openai/big, proposal: openai/small, deadline: 600,
     goal: save, delta: 0.05, unit_window: 100000, metrics: {{quality: {{kind: floor, low: 0, high: 1, alpha: 0.4}}}}}}
"""
FORKS = multiprocessing.get_context("forkserver")  # imports once, and forks the proxies from there


def serve(folder: str, port: int) -> None:
    """A proxy, until it is killed."""
    from litellm.proxy.proxy_cli import run_server

    os.chdir(folder)
    os.environ |= ENVIRONMENT | {"LITELLM_MASTER_KEY": KEY}
    log = os.open("proxy.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    run_server.main(["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(port)])


class Callers:
    """Sessions that ask again, with the same id, until they are answered; and who answered."""

    def __init__(self, url: str) -> None:
        self.url, self.answers, self.units, self.again = url, dict[str, str](), dict[str, str](), 0
        self.is_over = False

    async def ask(self, http: httpx.AsyncClient, caller: int) -> None:
        for n in itertools.count():
            if self.is_over:
                return
            decision_id = f"{caller}.{n}"
            unit = self.units[decision_id] = f"session-{random.Random(decision_id).randrange(UNITS)}"
            metadata = {"decision_id": decision_id, "session_id": unit}
            body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], "metadata": metadata}
            response = await self._post(http, "/v1/chat/completions", body)
            assert response.headers["x-surefoot-decision-id"] == decision_id
            answer = response.json()["choices"][0]["message"]["content"]
            assert self.answers.setdefault(decision_id, answer) == answer
            await self._post(http, "/surefoot/rewards", {"decision_id": decision_id, "value": 0.01})

    async def _post(self, http: httpx.AsyncClient, path: str, body: Any) -> httpx.Response:
        while True:
            try:
                response = await http.post(path, json=body)
            except httpx.HTTPError:  # killed, or not yet there again
                self.again += 1
                await asyncio.sleep(0.02)
            else:
                assert response.status_code == 200, response.text
                return response


async def kills(folder: Path, times: int) -> Callers:
    rng, port = random.Random(times), free_port()
    callers = Callers(f"http://127.0.0.1:{port}")
    headers = {"Authorization": f"Bearer {KEY}"}
    async with httpx.AsyncClient(base_url=callers.url, headers=headers, timeout=600) as http:
        asking = [asyncio.create_task(callers.ask(http, caller)) for caller in range(CALLERS)]
        for life in range(times + 1):
            proxy = FORKS.Process(target=serve, args=(str(folder), port), daemon=True)
            proxy.start()
            goal = len(callers.answers) + 1 + rng.randrange(3 * CALLERS)
            while len(callers.answers) < goal:
                assert proxy.is_alive(), (folder / "proxy.log").read_text()[-3000:]
                for caller in asking:
                    if caller.done():
                        caller.result()
                await asyncio.sleep(0.005)
            await asyncio.sleep(rng.uniform(0.0, 0.02))
            if life == times:
                callers.is_over = True
                await asyncio.gather(*asking)
            proxy.kill()
            await asyncio.to_thread(proxy.join)
    return callers


def check(folder: Path, callers: Callers) -> None:
    """Each answer is in the journal once, as it was given; a session has one side in it, and one for its callers."""
    decided, sides = dict[str, str](), dict[str, set[str]]()
    with open_journal(folder / "chat.journal") as journal:
        for event in journal.view("chat").read():
            if event.kind in (events.ROUND, events.VISIT):
                record = decode(event, events.PairRound)
                assert record.decision_id not in decided
                decided[record.decision_id] = record.action.removeprefix("openai/")
                sides.setdefault(callers.units[record.decision_id], set()).add(decided[record.decision_id])
            assert event.kind != events.VOIDED
        report = audit(journal, "chat")
    assert report.is_clean, report.findings
    assert decided == callers.answers
    assert all(len(side) == 1 for side in sides.values()), sides
    assert {side for (side,) in sides.values()} == {"big", "small"}


@pytest.mark.parametrize("times", [5, pytest.param(300, marks=pytest.mark.long)])
def test_a_killed_proxy_loses_no_decision_and_no_session_sees_both_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)  # LiteLLM reads it when it is imported
    FORKS.set_forkserver_preload(["litellm.proxy.proxy_cli", "litellm.proxy.proxy_server"])
    with model_server("big") as big, model_server("small") as small:
        (tmp_path / "config.yaml").write_text(CONFIG.format(big=big.url, small=small.url))
        callers = asyncio.run(kills(tmp_path, times))
    assert callers.again >= times
    check(tmp_path, callers)
