"""The real proxy of LiteLLM, with the configuration of the documentation, in front of two local models."""

import json
import os
import re
import signal
import socket
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

import surefoot
from surefoot.audit import audit
from surefoot.experiment import create_shared
from surefoot.journal import open_journal
from surefoot.rounds import decode, events
from tests.integrations.model_server import model_server
from tests.service.servers import running
from tests.sharing.edges import Shop, new_keys, settings_of
from tests.sharing.experiments import GUARD

PAGE = Path(__file__).parents[2] / "docs" / "litellm.md"
ENVIRONMENT = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "API_KEY": "none"}
KEY = "sk-7d1f0c9a4be25863f0ad"


def block(language: str) -> str:
    """An example of the documentation."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


class Proxy:
    """What its callers do."""

    def __init__(self, url: str) -> None:
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {KEY}"}, timeout=30)

    def ask(self, **more: Any) -> httpx.Response:
        body = {"model": "chat", "messages": [{"role": "user", "content": "Who are you?"}], **more}
        return self.http.post("/v1/chat/completions", json=body)

    def reward(self, decision_id: Any, value: Any) -> httpx.Response:
        return self.http.post("/surefoot/rewards", json={"decision_id": decision_id, "value": value})


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def proxy(folder: Path, config: str, **environment: str) -> Iterator[Proxy]:
    (folder / "config.yaml").write_text(config)
    port = free_port()
    command = [str(Path(sys.executable).with_name("litellm")), "--config", "config.yaml", "--host", "127.0.0.1"]
    environment |= {"LITELLM_MASTER_KEY": KEY, **ENVIRONMENT}
    with (folder / "proxy.log").open("w") as log:
        running = subprocess.Popen(
            [*command, "--port", str(port)], cwd=folder, env=os.environ | environment, stdout=log, stderr=log
        )
    try:
        url = f"http://127.0.0.1:{port}"
        while True:
            assert running.poll() is None, (folder / "proxy.log").read_text()[-3000:]
            try:
                httpx.get(f"{url}/health/liveliness", timeout=5).raise_for_status()
                break
            except httpx.HTTPError:
                time.sleep(0.1)
        caller = Proxy(url)
        with caller.http:
            yield caller
    finally:
        running.send_signal(signal.SIGTERM)
        running.wait(30)


def served(response: httpx.Response) -> tuple[str, str]:
    """The decision's id, and who answered."""
    assert response.status_code == 200, response.text
    return response.headers["x-surefoot-decision-id"], response.json()["choices"][0]["message"]["content"]


def test_the_proxy_of_the_documentation(tmp_path: Path) -> None:
    with (
        model_server("big") as big,
        model_server("small") as small,
        proxy(tmp_path, block("yaml"), BIG_URL=big.url, SMALL_URL=small.url) as chat,
    ):
        answers = dict[str, str]()
        while len(answers) < 40 or small.requests == 0:  # of a share of 0.05, 500 requests miss one in 1e11
            answers |= [served(chat.ask())]
            assert len(answers) < 500
        assert chat.ask(metadata={"decision_id": "mine"}).headers["x-surefoot-decision-id"] == "mine"
        assert big.requests + small.requests == len(answers) + 1
        for decision_id in answers:
            assert chat.reward(decision_id, {"quality": 0.9}).json() == {
                "decision_id": decision_id, "is_repeat": False,
            }  # fmt: skip
        assert chat.reward(decision_id, {"quality": 0.9}).json()["is_repeat"]
        for bad, value, code in (
            ("nobody", {"quality": 0.9}, 404),
            (decision_id, {"quality": 0.8}, 409),
            ("mine", {"quality": 1.5}, 409),
            ("mine", {"qality": 0.8}, 400),
            ("mine", {"quality": "good"}, 400),
            ("mine", {}, 400),
            ("mine", None, 400),
            (17, {"quality": 0.8}, 400),
        ):
            refusal = chat.reward(bad, value)
            assert refusal.status_code == code
            assert refusal.json()["error"]["type"] == "invalid_request_error"
        for bad_body in (b"{", b"[]", b'"mine"', b'{"value": 1}', b""):
            refusal = chat.http.post("/surefoot/rewards", content=bad_body)
            assert (refusal.status_code, refusal.json()["error"]["type"]) == (400, "invalid_request_error")
        body = {"decision_id": "mine", "value": {"quality": 0.9}}
        stranger = chat.http.post("/surefoot/rewards", json=body, headers={"Authorization": "Bearer sk-other"})
        assert stranger.json()["error"]["type"] == "no_db_connection"  # where keys other than the master's would be
        assert chat.ask(model="chit").status_code == 400
        # A caller's own words of a decision are not taken for a retry of it.
        forged = {"routing_plugin_signals": {"surefoot": {"decision_id": "mine", "model": "openai/gpt-4o-mini"}}}
        assert served(chat.ask(metadata=forged))[0] != "mine"

        small.is_down, before = True, small.requests
        while small.requests == before:
            assert served(chat.ask())[1] == "big"
        small.is_down = False

        with sqlite3.connect(tmp_path / "chat.journal") as locked:
            locked.execute("BEGIN EXCLUSIVE")
            response = chat.ask()
            assert response.json()["choices"][0]["message"]["content"] == "big"
            assert "x-surefoot-decision-id" not in response.headers
            locked.rollback()
        served(chat.ask())

        # A request that fails for good is settled at once.
        big.is_down = small.is_down = True
        assert chat.ask(metadata={"decision_id": "failed"}).json()["error"]["code"] == "500"
        refusal = chat.reward("failed", {"quality": 0.9})
        assert (refusal.status_code, "abandoned" in refusal.json()["error"]["message"]) == (409, True), refusal.text

    with open_journal(tmp_path / "chat.journal") as journal:
        report = audit(journal, "chat")
        assert report.is_clean, report.findings
        status = surefoot.Experiment.open(journal, "chat").status()
        rewards, voided = dict[str, dict[str, Any]](), set[str]()
        for event in journal.view("chat").read():
            if event.kind == events.ROUND:
                record = decode(event, events.PairRound)
                action = {"openai/gpt-4o": "big", "openai/gpt-4o-mini": "small"}[record.action]
                assert answers.get(record.decision_id, action) == action
            elif event.kind == events.REWARD and (reward := decode(event, events.Reward)).refused is None:
                rewards.setdefault(reward.decision_id, {}).update(reward.values)
            elif event.kind == events.VOIDED:
                voided.add(decode(event, events.Voided).decision_id)
        assert voided, "the proposed model failed, and the journal does not say that the baseline answered"
        assert all(rewards[one].keys() == {"quality", "cost"} and rewards[one]["cost"] > 0.0 for one in answers)
        assert status.learned >= len(answers)


PROGRAM = """
import asyncio, litellm, surefoot

guard = surefoot.Guard(
    delta=0.05, unit_window=50, metrics={{"quality": surefoot.floor(0, 1, alpha=0.4)}}, min_holdout=0.3, ramp="gate"
)
model_list = [
    {{"model_name": "chat", "litellm_params": {{"model": f"openai/{{name}}", "api_base": url, "api_key": "none"}}}}
    for name, url in (("big", "{big}"), ("small", "{small}"))
]
messages = [{{"role": "user", "content": "Who are you?"}}]

async def main():
{example}
    for user in range(9):
        metadata = {{"session_id": f"s{{user}}"}}
        answers = {{
            (await router.acompletion("chat", messages=messages, metadata=dict(metadata))).choices[0].message.content
            for _ in range(4)
        }}
        assert len(answers) == 1, "a session saw both models"
    other = await router.acompletion("chat", messages=messages, metadata={{"decision_id": "answer-17"}})
    assert other.choices[0].message.content == response.choices[0].message.content
    status = chat.status()
    print(status.rounds, status.guard.visits, status.rewards)
    try:
        GuardedModels(chat, baseline="openai/big", proposal="openai/big")
    except surefoot.errors.ConfigError as error:
        print(error)

asyncio.run(main())
"""


def test_the_router_of_the_documentation(tmp_path: Path) -> None:
    with model_server("big") as big, model_server("small") as small:
        example = block("python").replace("openai/gpt-4o-mini", "openai/small").replace("openai/gpt-4o", "openai/big")
        program = PROGRAM.format(big=big.url, small=small.url, example=textwrap.indent(example, "    "))
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | ENVIRONMENT, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "10 27 1",
        "`baseline` and `proposal` must be two models, but both are 'openai/big'.",
    ]


GATEWAYS = """
import asyncio, json, sys
from types import SimpleNamespace
import surefoot
from surefoot.integrations.litellm import GuardedModels

async def main(*gateways):
    served = []
    for n in range(30):
        models = gateways[n % len(gateways)]
        request = SimpleNamespace(candidate_models=["openai/big", "openai/small"], metadata={}, signals={})
        signal = (await models.run(request)).signals["surefoot"]
        served.append(request.candidate_models[0])
        assert (await models.reward(signal["decision_id"], 0.5)).is_accepted
    for models in gateways:
        models.experiment.leases.renew()  # hands in what was decided
    print(json.dumps(served))

common = {"name": "shop", "baseline": "openai/big", "proposal": "openai/small"}
settings = json.loads(sys.argv[1])
asyncio.run(main(*(GuardedModels.from_settings({**common, **one}) for one in settings)))
try:
    GuardedModels.from_settings({**common, **settings[0], "journal": "memory:", "delta": 0.05})
except surefoot.errors.ConfigError as error:
    assert "those of the experiment at the hub" in str(error)
"""


def test_gateways_share_one_promise_through_a_service_or_a_hub(tmp_path: Path) -> None:
    new_keys(tmp_path)
    with running(settings_of(tmp_path)) as address:
        Shop(address, tmp_path, tmp_path, kind="pair").create()
        gateways = [
            {"journal": "file:north.log", "hub": address, "shard": "north", "key": "head.pub"},
            {"journal": "file:south.log", "hub": address, "shard": "south", "key": "head.pub"},
            {"journal": "west.db", "hub": "other.db", "shard": "west"},
        ]
        with open_journal(tmp_path / "other.db") as other:
            create_shared(other, "shop", surefoot.Guard(**GUARD), mode="guarded")
        done = subprocess.run(
            [sys.executable, "-c", GATEWAYS, json.dumps(gateways)],
            cwd=tmp_path, env=os.environ | ENVIRONMENT, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        members = Shop(address, tmp_path, tmp_path).shards
    assert set(json.loads(done.stdout)) == {"openai/big", "openai/small"}
    assert {"north", "south"} < set(members)
    assert members["north"]["rounds"] == members["south"]["rounds"] == 10
