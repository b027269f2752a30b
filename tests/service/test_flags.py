"""Experiments as flags: OpenFeature's own provider against a real server, bulk polls, and a rollout's gate."""

import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from openfeature import api
from openfeature.client import OpenFeatureClient
from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.exception import ErrorCode
from openfeature.flag_evaluation import FlagEvaluationDetails, Reason
from typer.testing import CliRunner

from surefoot.cli.commands import app
from surefoot.service.routes.decisions import Handlers
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from tests.service.servers import create, running

FLAGS = "/ofrep/v1/evaluate/flags"
EXAMPLES = Path(__file__).parents[2] / "examples"
GUARD = {"alpha": 0.4, "delta": 0.2, "unit_window": 200}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    database = str(tmp_path_factory.mktemp("flags") / "shop.journal")
    # The one command of the documentation.
    command = ["experiment", "create", database, "new-checkout", "--policy", "Guard", "--actions", "[false, true]"]
    settings = [f"{name}={value}" for name, value in GUARD.items()]
    made = CliRunner().invoke(
        app, [*command, *(part for one in settings for part in ("--set", one)), "--mode", "guarded"]
    )
    assert made.exit_code == 0, made.output
    with running(Settings(database=database)) as address, httpx.Client(base_url=address, timeout=60) as client:
        create(client)
        for name, more in (
            ("greeting", {"actions": ["Hello", {"text": "Hi", "size": 3}], "settings": GUARD}),
            ("each-visit", {"actions": [1, 2.5], "settings": {"alpha": 0.4, "delta": 0.2}}),
            ("shadow", {"actions": ["old", "new"], "settings": GUARD, "mode": "shadow"}),
            ("no-flag", {"settings": GUARD}),
        ):
            create(client, name, policy="Guard", **more)
        yield client


@pytest.fixture(scope="module")
def flags(server: httpx.Client) -> OpenFeatureClient:
    api.set_provider(OFREPProvider(str(server.base_url)))
    return api.get_client()


def details(flags: OpenFeatureClient, user: str) -> FlagEvaluationDetails[bool]:
    return flags.get_boolean_details("new-checkout", False, EvaluationContext(user))


def events(server: httpx.Client, name: str = "new-checkout") -> int:
    return int(server.get(f"/v1/experiments/{name}").json()["events"])


def test_the_first_page_of_the_documentation(tmp_path: Path) -> None:
    """Every command and program of it up to the first reward, but for pip and the port."""
    page = (Path(__file__).parents[2] / "docs" / "openfeature.md").read_text()
    make, reward = re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
    program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    pip, create, serve = make.replace("\\\n", "").splitlines()
    assert (pip.partition("  ")[0], serve) == ("pip install '.[service]' openfeature-provider-ofrep", "surefoot serve")
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}

    def run(command: list[str]) -> str:
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(["bash", "-ec", create])
    with running(Settings(database=str(tmp_path / "surefoot.journal"))) as address:
        (tmp_path / "app.py").write_text(program.replace("http://localhost:8080", address))
        value, variant, _ = run(["python", "app.py"]).split()
        assert (value, variant) in (("False", "baseline"), ("True", "proposal"))
        command = reward.replace("localhost:8080", address) + "\necho; echo $DECISION_ID"
        receipt, decision_id = run(["bash", "-ec", command]).split()
        assert json.loads(receipt)["decision_id"] == decision_id


def test_a_user_keeps_the_side_of_its_coin(flags: OpenFeatureClient) -> None:
    sides = {f"user-{at}": details(flags, f"user-{at}") for at in range(40)}
    assert {one.value for one in sides.values()} == {False, True}
    for user, first in sides.items():
        again = details(flags, user)
        assert (again.value, again.variant) == (first.value, "proposal" if first.value else "baseline")
        assert first.reason == again.reason == Reason.SPLIT
        assert again.flag_metadata["share"] == first.flag_metadata["share"] != 0.0
        assert again.flag_metadata["decision_id"] != first.flag_metadata["decision_id"]


def test_a_reward_is_sent_with_the_decision_id_of_the_metadata(flags: OpenFeatureClient, server: httpx.Client) -> None:
    decision_id = details(flags, "buyer").flag_metadata["decision_id"]
    reward = server.post(f"/v1/experiments/new-checkout/decisions/{decision_id}/reward", json={"value": 0.5})
    assert reward.status_code == 200


def test_values_of_every_type(flags: OpenFeatureClient) -> None:
    found: list[Any] = []
    while len({str(one) for one in found}) < 2:
        found.append(flags.get_object_value("greeting", {}, EvaluationContext(f"user-{len(found)}")))
    assert {"text": "Hi", "size": 3} in found  # the other is a text, which is no object: the default
    assert flags.get_string_details("shadow", "default", EvaluationContext("user-1")).reason == Reason.DISABLED
    assert flags.get_string_value("shadow", "default", EvaluationContext("user-1")) == "old"
    values = {flags.get_float_value("each-visit", 0.0, EvaluationContext()) for _ in range(60)}
    assert 2.5 in values, "without a unit_window every evaluation has a coin of its own"


@pytest.mark.parametrize(
    ("name", "context", "code", "words"),
    [
        ("no-such", EvaluationContext("user-1"), ErrorCode.FLAG_NOT_FOUND, "no-such"),
        ("no-flag", EvaluationContext("user-1"), ErrorCode.FLAG_NOT_FOUND, "actions"),
        ("shop", EvaluationContext("user-1"), ErrorCode.FLAG_NOT_FOUND, "actions"),
        ("new-checkout", EvaluationContext(), ErrorCode.TARGETING_KEY_MISSING, "targetingKey"),
        ("new-checkout", EvaluationContext("u" * 300), ErrorCode.INVALID_CONTEXT, "unit"),
    ],
)
def test_errors_are_those_of_openfeature(
    flags: OpenFeatureClient, server: httpx.Client, name: str, context: EvaluationContext, code: ErrorCode, words: str
) -> None:
    before = events(server)
    found = flags.get_boolean_details(name, True, context)
    assert (found.value, found.reason, found.error_code) == (True, Reason.ERROR, code)
    assert words in str(found.error_message)
    assert events(server) == before


def test_a_body_that_is_no_json_is_a_parse_error(server: httpx.Client) -> None:
    for path in (f"{FLAGS}/new-checkout", FLAGS):
        answer = server.post(path, content=b"{", headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["errorCode"]) == (400, "PARSE_ERROR")
    assert server.post(FLAGS, json={"context": {}}).json()["errorCode"] == "TARGETING_KEY_MISSING"


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ([], "PARSE_ERROR"),
        (None, "PARSE_ERROR"),
        ("text", "PARSE_ERROR"),
        ({"context": 17}, "PARSE_ERROR"),
        ({"context": {"targetingKey": "\ud800"}}, "PARSE_ERROR"),
        ({"context": {"targetingKey": 17}}, "TARGETING_KEY_MISSING"),
        ({"context": {"targetingKey": ["user-1"]}}, "TARGETING_KEY_MISSING"),
    ],
)
def test_a_body_of_another_shape_is_an_error_of_openfeature(server: httpx.Client, body: Any, code: str) -> None:
    before = events(server)
    for path, keyed in ((f"{FLAGS}/new-checkout", {"key"}), (FLAGS, set[str]())):
        answer = server.post(path, content=json.dumps(body), headers={"Content-Type": "application/json"})
        assert (answer.status_code, answer.json()["errorCode"]) == (400, code)
        assert answer.json().keys() == {"errorCode", "errorDetails"} | keyed
    assert events(server) == before


def test_a_body_that_is_not_read_is_an_error_of_openfeature(server: httpx.Client) -> None:
    """Too large, of another type, or nested too deep."""
    large, json_type = b'{"context": "' + b"x" * 2_000_000 + b'"}', {"Content-Type": "application/json"}
    deep = b'{"context": {"a": ' + b"[" * 100_000
    for path, key in ((f"{FLAGS}/new-checkout", "new-checkout"), (FLAGS, None)):
        for content, headers in ((large, json_type), (b"{}", {"Content-Type": "text/plain"}), (deep, json_type)):
            answer = server.post(path, content=content, headers=headers)
            assert answer.status_code == 400
            assert answer.json().keys() >= {"errorCode", "errorDetails"}
            assert (answer.json()["errorCode"], answer.json().get("key")) == ("PARSE_ERROR", key)


def test_without_the_service_the_callers_default_is_served() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))  # and does not listen
        api.set_provider(OFREPProvider(f"http://127.0.0.1:{closed.getsockname()[1]}", timeout=1), "down")
        found = details(api.get_client("down"), "user-1")
    assert (found.value, found.reason) == (False, Reason.ERROR)


def test_a_bulk_poll_opens_no_second_round_and_says_when_nothing_has_changed(server: httpx.Client) -> None:
    body = {"context": {"targetingKey": "poller"}}
    first = server.post(FLAGS, json=body)
    found = {one["key"]: one for one in first.json()["flags"]}
    assert set(found) == {"greeting", "new-checkout", "shadow"}, "flags without units are not for polls"
    before = [events(server, name) for name in found]
    for _ in range(5):
        again = server.post(FLAGS, json=body)
        assert again.json() == first.json()
        same = server.post(FLAGS, json=body, headers={"If-None-Match": again.headers["ETag"]})
        assert (same.status_code, same.content) == (304, b"")
    assert [events(server, name) for name in found] == before
    # One evaluation is a visit of the same unit, and has its side.
    one = server.post(f"{FLAGS}/new-checkout", json=body).json()
    assert one["value"] == found["new-checkout"]["value"]
    other = server.post(
        FLAGS, json={"context": {"targetingKey": "other"}}, headers={"If-None-Match": first.headers["ETag"]}
    )
    assert other.status_code == 200


def test_the_gate_is_what_the_guard_allows(server: httpx.Client) -> None:
    path = "/v1/experiments/new-checkout/gate"
    gate = server.get(path, params={"share": 0.25}).json()
    assert gate["is_open"] is True
    assert gate["share"] <= gate["allowed"]
    assert server.get(path, params={"share": 0.999}).json()["is_open"] is False
    assert server.get("/v1/experiments/shadow/gate", params={"share": 0.01}).json()["is_open"] is False
    for share in ("0", "1.5", "nan", "much", None):
        assert server.get(path, params={"share": share} if share else {}).status_code in (400, 422)
    assert server.get("/v1/experiments/shop/gate", params={"share": 0.25}).status_code == 422
    assert server.get("/v1/experiments/nobody/gate", params={"share": 0.25}).status_code == 404


def test_a_poll_decides_for_all_flags_at_once(server: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    decide, waiting = Handlers.decide, asyncio.Barrier(3)

    async def together(self: Handlers, *args: Any) -> Any:
        await asyncio.wait_for(waiting.wait(), 20)
        return await decide(self, *args)

    monkeypatch.setattr(Handlers, "decide", together)
    poll = server.post(FLAGS, json={"context": {"targetingKey": "newcomer"}})
    assert [one["key"] for one in poll.json()["flags"]] == ["greeting", "new-checkout", "shadow"]


def test_first_polls_at_the_same_time_say_the_same(server: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    decide, waiting = Handlers.decide, asyncio.Barrier(6)

    async def together(self: Handlers, *args: Any) -> Any:
        await asyncio.wait_for(waiting.wait(), 20)
        return await decide(self, *args)

    monkeypatch.setattr(Handlers, "decide", together)
    body = {"context": {"targetingKey": "two-tabs"}}
    with ThreadPoolExecutor(2) as tabs:
        first, second = tabs.map(lambda _: server.post(FLAGS, json=body), range(2))
    assert first.json() == second.json() == server.post(FLAGS, json=body).json()
    assert first.headers["ETag"] == second.headers["ETag"]


def test_a_tag_is_one_of_those_that_are_known(server: httpx.Client) -> None:
    body = {"context": {"targetingKey": "tagged"}}
    tag = server.post(FLAGS, json=body).headers["ETag"]
    for known, status in ((f'"other", W/{tag}', 304), (f'{tag},"other"', 304), (f"x{tag}x", 200), (tag[1:-1], 200)):
        assert server.post(FLAGS, json=body, headers={"If-None-Match": known}).status_code == status, known


def measured(metric: Any, gate: Any) -> str:
    """What Argo Rollouts makes of a measurement, if both of its conditions name a field."""
    failed, succeeded = (
        gate[metric[name].removeprefix("result.")] for name in ("failureCondition", "successCondition")
    )
    return "failed" if failed else "successful" if succeeded else "inconclusive"


def test_the_rollout_of_the_examples_asks_the_gate_before_every_step(server: httpx.Client) -> None:
    template, rollout = yaml.safe_load_all((EXAMPLES / "argo_rollouts.yaml").read_text())
    (metric,) = template["spec"]["metrics"]
    web, found = metric["provider"]["web"], set[str]()
    assert {arg["name"] for arg in template["spec"]["args"]} == {"share", "token"}
    # It is measured until the gate is open, and never fails for being closed.
    assert (web["jsonPath"], metric["consecutiveSuccessLimit"]) == ("{$}", 1)
    assert not metric.keys() & {"count", "failureLimit"}
    assert metric["inconclusiveLimit"] * 10 == 7 * 24 * 60
    steps = rollout["spec"]["strategy"]["canary"]["steps"]
    weights = [step["setWeight"] for step in steps if "setWeight" in step] + [95]  # after the last step it is 100
    assert len(steps) == 2 * len(weights) - 1
    for weight, step in zip(weights, steps[::2], strict=True):
        assert step["analysis"]["templates"] == [{"templateName": template["metadata"]["name"]}]
        (share,) = step["analysis"]["args"]
        assert (share["name"], float(share["value"])) == ("share", weight / 100)
        url = web["url"].replace("{{args.share}}", share["value"]).replace("checkout", "new-checkout")
        found.add(measured(metric, server.get(url.removeprefix("http://surefoot:8080")).json()))
    assert found == {"successful", "inconclusive"}


def test_a_gate_fails_once_the_proposal_is_shown_to_do_worse(server: httpx.Client) -> None:
    create(server, "worse", policy="Guard", settings={"alpha": 0.5, "delta": 0.2}, actions=[1, 2])
    template, _ = yaml.safe_load_all((EXAMPLES / "argo_rollouts.yaml").read_text())
    metric, path = template["spec"]["metrics"][0], "/v1/experiments/worse"
    for _ in range(10):
        batch = server.post(f"{path}/decision-batches", json={"decisions": [{}] * 100}).json()["results"]
        rewards = [
            {"decision_id": one["decision"]["decision_id"], "value": float(one["decision"]["action"] == 1)}
            for one in batch
        ]
        server.post(f"{path}/reward-batches", json={"rewards": rewards})
        gate = server.get(f"{path}/gate", params={"share": 0.99}).json()
        if gate["is_costing"]:
            break
        assert measured(metric, gate) == "inconclusive"
    assert measured(metric, gate) == "failed"


ARGO = """
import type {{ IAnalysisTemplate }} from '@kubernetes-models/argo-rollouts/argoproj.io/v1alpha1/AnalysisTemplate';
import type {{ IRollout }} from '@kubernetes-models/argo-rollouts/argoproj.io/v1alpha1/Rollout';
import {{ AnalysisTemplate }} from '@kubernetes-models/argo-rollouts/argoproj.io/v1alpha1/AnalysisTemplate';
import {{ Rollout }} from '@kubernetes-models/argo-rollouts/argoproj.io/v1alpha1/Rollout';
const template: IAnalysisTemplate = {};
const rollout: IRollout = {};
new AnalysisTemplate(template).validate();
new Rollout(rollout).validate();
console.log('valid');
"""
ARGO_PACKAGES = ("@kubernetes-models/argo-rollouts@2.0.0", "typescript@5.9.3")


def checked(folder: Path, template: Any, rollout: Any) -> str:
    """What the types of Argo Rollouts say, which know every field, and their schemas."""
    (folder / "rollout.mts").write_text(ARGO.format(json.dumps(template), json.dumps(rollout)))
    compiler = str(folder / "node_modules" / ".bin" / "tsc")
    types = [compiler, "--module", "nodenext", "--strict", str(folder / "rollout.mts")]
    done = subprocess.run(types, capture_output=True, text=True)
    return done.stdout or subprocess.run(["node", folder / "rollout.mjs"], capture_output=True, text=True).stdout


@pytest.mark.long
@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed: apt-get install nodejs npm")
def test_the_rollout_of_the_examples_is_one_of_argo_rollouts(tmp_path: Path) -> None:
    install = ["npm", "install", "--silent", "--prefix", str(tmp_path), *ARGO_PACKAGES]
    subprocess.run(install, check=True, capture_output=True)
    template, rollout = yaml.safe_load_all((EXAMPLES / "argo_rollouts.yaml").read_text())
    assert checked(tmp_path, template, rollout) == "valid\n"
    metric = template["spec"]["metrics"][0]
    metric["successCriterion"] = metric.pop("successCondition")
    assert "successCriterion" in checked(tmp_path, template, rollout)


def test_a_token_for_other_experiments_sees_no_flag(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    admin, other = tokens.create(["admin"]), tokens.create(["decide"], experiments=["greeting"])
    settings = Settings(database=str(tmp_path / "shop.journal"), tokens=str(tmp_path / "tokens.json"))
    with running(settings) as address, httpx.Client(base_url=address, timeout=60) as client:
        client.headers["Authorization"] = f"Bearer {admin}"
        for name in ("greeting", "new-checkout"):
            create(client, name, policy="Guard", actions=[1, 2], settings=GUARD)
        body, own = {"context": {"targetingKey": "me"}}, {"Authorization": f"Bearer {other}"}
        assert client.post(f"{FLAGS}/greeting", json=body, headers=own).status_code == 200
        assert client.post(f"{FLAGS}/new-checkout", json=body, headers=own).status_code == 403
        listed = client.post(FLAGS, json=body, headers=own).json()["flags"]
        assert [one["key"] for one in listed] == ["greeting"]
        assert client.post(FLAGS, json=body, headers={"Authorization": ""}).status_code == 401


NODE = """
import { OpenFeature } from '@openfeature/server-sdk';
import { OFREPProvider } from '@openfeature/ofrep-provider';
await OpenFeature.setProviderAndWait(new OFREPProvider({ baseUrl: process.argv[2] }));
const flags = OpenFeature.getClient();
const context = { targetingKey: 'from-javascript' };
const found = [];
for (let at = 0; at < 3; at++) found.push(await flags.getBooleanDetails('new-checkout', false, context));
found.push(await flags.getBooleanDetails('no-such', true, context));
console.log(JSON.stringify(found));
"""
BROWSER = """
import { OpenFeature } from '@openfeature/web-sdk';
import { OFREPWebProvider } from '@openfeature/ofrep-web-provider';
const context = { targetingKey: process.argv[3] };
await OpenFeature.setContext(context);
await OpenFeature.setProviderAndWait(new OFREPWebProvider({ baseUrl: process.argv[2], pollInterval: 50 }));
const flags = OpenFeature.getClient();
const found = [];
for (let at = 0; at < 3; at++) {
  found.push(flags.getBooleanDetails('new-checkout', false));
  await new Promise((wake) => setTimeout(wake, 200));
}
console.log(JSON.stringify(found));
await OpenFeature.close();
"""
PACKAGES = (
    "@openfeature/server-sdk@1.23.0",
    "@openfeature/ofrep-provider@0.1.3",
    "@openfeature/web-sdk@1.10.0",
    "@openfeature/ofrep-web-provider@0.4.3",
)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the providers for JavaScript."""
    folder = tmp_path_factory.mktemp("node")
    subprocess.run(["npm", "install", "--silent", "--prefix", folder, *PACKAGES], check=True, capture_output=True)
    return folder


def run_node(folder: Path, program: str, *args: str) -> Any:
    """What a program prints as JSON."""
    (folder / "flags.mjs").write_text(program)
    done = subprocess.run(["node", folder / "flags.mjs", *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.long
@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed: apt-get install nodejs npm")
def test_the_javascript_provider(server: httpx.Client, node: Path) -> None:
    *found, unknown = run_node(node, NODE, str(server.base_url))
    assert len({one["value"] for one in found}) == 1
    assert {one["reason"] for one in found} == {"SPLIT"}
    assert len({one["flagMetadata"]["decision_id"] for one in found}) == 3
    assert (unknown["value"], unknown["errorCode"]) == (True, "FLAG_NOT_FOUND")


@pytest.mark.long
@pytest.mark.skipif(shutil.which("npm") is None, reason="Node is not installed: apt-get install nodejs npm")
def test_the_javascript_provider_of_browsers_polls_one_round(server: httpx.Client, node: Path) -> None:
    before = events(server)
    found = run_node(node, BROWSER, str(server.base_url), "from-a-browser")
    assert len({one["flagMetadata"]["decision_id"] for one in found}) == 1
    assert {one["variant"] for one in found} == {"proposal" if found[0]["value"] else "baseline"}
    assert "errorCode" not in found[0]
    assert events(server) == before + 1
    assert server.post(FLAGS, json={"context": {"targetingKey": "from-a-browser"}}).status_code == 200
    assert events(server) == before + 1
