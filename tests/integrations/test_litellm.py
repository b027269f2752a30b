"""The real proxy of LiteLLM, with the configuration of the documentation, in front of two local models."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import yaml

import surefoot
from surefoot.audit import audit
from surefoot.experiment import create_shared
from surefoot.journal import open_journal
from surefoot.rounds import decode, events
from tests.integrations.model_server import model_server
from tests.integrations.proxies import ENVIRONMENT, KEY, Proxy, proxy, served
from tests.service.servers import running
from tests.sharing.edges import Shop, new_keys, settings_of
from tests.sharing.experiments import GUARD

PAGE = Path(__file__).parents[2] / "docs" / "litellm.md"


def block(language: str, number: int = 0) -> str:
    """An example of the documentation."""
    return str(re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(), re.DOTALL)[number])


def walk(number: int, chat: Proxy) -> str:
    """What a command of the documentation prints, with the proxy of the test."""
    command = block("sh", number).replace("http://localhost:4000", str(chat.http.base_url).rstrip("/"))
    environment = {"LITELLM_MASTER_KEY": KEY, "PATH": os.environ["PATH"]}
    return subprocess.run(["bash", "-ec", command], env=environment, capture_output=True, text=True, check=True).stdout


def test_the_proxy_of_the_documentation(tmp_path: Path) -> None:
    config = block("yaml").replace("name: chat,", "name: chat, deadline: 60,")  # on a busy machine
    with (
        model_server("big") as big,
        model_server("small") as small,
        proxy(tmp_path, config, BIG_URL=big.url, SMALL_URL=small.url) as chat,
    ):
        first = walk(1, chat)
        (first_id,) = re.findall(r"x-surefoot-decision-id: (\S+)", first)
        answers = {first_id: json.loads(first.splitlines()[-1])["choices"][0]["message"]["content"]}
        assert '"is_repeat":false' in walk(2, chat)
        assert chat.reward(first_id, {"quality": 0.9}).json()["is_repeat"]
        while len(answers) < 40 or small.requests == 0:  # of a share of 0.05, 500 requests miss one in 1e11
            answers |= [served(chat.ask())]
            assert len(answers) < 500
        assert chat.ask(metadata={"decision_id": "mine"}).headers["x-surefoot-decision-id"] == "mine"
        assert big.requests + small.requests == len(answers) + 1
        for decision_id in list(answers)[1:]:
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

        small.status, before = 500, small.requests
        while small.requests == before:
            assert served(chat.ask())[1] == "big"
        small.status = 200

        # A request that fails for good is settled at once.
        big.status = small.status = 500
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
        assert status.reward_unit == {"cost": "USD"}


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
    await router.acompletion("chat", messages=messages, metadata={{"decision_id": "answer-17"}})  # a request of its own
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
        example = (
            block("python", 1).replace("openai/gpt-4o-mini", "openai/small").replace("openai/gpt-4o", "openai/big")
        )
        example = example.replace('"openai/small")', '"openai/small", deadline=60)')  # on a busy machine
        program = PROGRAM.format(big=big.url, small=small.url, example=textwrap.indent(example, "    "))
        done = subprocess.run(
            [sys.executable, "-c", program], cwd=tmp_path, env=os.environ | ENVIRONMENT, capture_output=True, text=True
        )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.splitlines() == [
        "11 27 1",
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
        candidates, metadata = ["openai/gpt-4o", "openai/gpt-4o-mini"], {"model_group": "chat"}
        request = SimpleNamespace(candidate_models=candidates, metadata=metadata, signals={})
        signal = (await models.run(request)).signals["surefoot"]
        served.append(request.candidate_models[0])
        assert (await models.reward(signal["decision_id"], 0.5)).is_accepted
    for models in gateways:
        while not models.experiment.leases.renew():  # hands in what was decided; another thread may be doing so
            await asyncio.sleep(0.01)
    print(json.dumps(served))

common = {"name": "chat", "deadline": 60, "baseline": "openai/gpt-4o", "proposal": "openai/gpt-4o-mini"}
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
        Shop(address, tmp_path, tmp_path, name="chat", kind="pair").create()
        north = yaml.safe_load(block("yaml", 1))["callback_settings"]["surefoot"]  # of the documentation
        assert north["hub"] == "https://surefoot.example"
        gateways = [
            {**north, "hub": address},
            {"journal": "file:south.log", "hub": address, "shard": "south", "key": "head.pub"},
            {"journal": "west.db", "hub": "other.db", "shard": "west"},
        ]
        with open_journal(tmp_path / "other.db") as other:
            create_shared(other, "chat", surefoot.Guard(**GUARD), mode="guarded")
        done = subprocess.run(
            [sys.executable, "-c", GATEWAYS, json.dumps(gateways)],
            cwd=tmp_path, env=os.environ | ENVIRONMENT, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr[-3000:]
        members = Shop(address, tmp_path, tmp_path, name="chat").shards
    assert set(json.loads(done.stdout)) == {"openai/gpt-4o", "openai/gpt-4o-mini"}
    assert {"north", "south"} < set(members)
    assert members["north"]["rounds"] == members["south"]["rounds"] == 10
