"""What is a request of its own, and whose: cached answers, counted tokens, sessions and users, ids that come again."""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import httpx
import pytest

from surefoot.audit import audit
from surefoot.journal import open_journal
from surefoot.rounds import decode, events
from tests.integrations.model_server import ModelServer, model_server
from tests.integrations.proxies import MANY, answer_of, configuration, proxy, served, wait_until
from tests.integrations.test_litellm import block

DECISION = "x-surefoot-decision-id"
EVEN = {"journal": "chat.journal", "mode": "guarded", "alpha": 0.4, "delta": 0.05, "min_holdout": 0.3, "ramp": "gate"}
CACHE = "litellm_settings: {cache: true, cache_params: {type: local}, "


def rounds(folder: Path) -> list[Any]:
    """The rounds and visits of a journal that its audit finds clean."""
    with open_journal(folder / "chat.journal") as journal:
        report = audit(journal, "chat")
        assert report.is_clean, report.findings
        found = [event for event in journal.view("chat").read() if event.kind in (events.ROUND, events.VISIT)]
        return [decode(event, events.PairRound) for event in found]


@pytest.mark.parametrize("unit_window", [None, 1000])
def test_a_cached_answer_is_of_the_model_that_the_coin_chose(
    tmp_path: Path, big: ModelServer, small: ModelServer, unit_window: int | None
) -> None:
    config = configuration(big.url, small.url, EVEN | {"unit_window": unit_window})
    with proxy(tmp_path, config.replace("litellm_settings: {", CACHE)) as chat:
        answers = dict[str, str]()
        for session in range(MANY):
            for more in ({}, {"cache": {"namespace": "tenant"}}):
                for _ in range(2):
                    decision_id, answer = served(chat.ask(metadata={"session_id": f"s{session}"}, **more))
                    answers[decision_id] = answer
        assert (big.requests, small.requests) == (2, 2)  # in each namespace once
    assert {one.decision_id: one.action.removeprefix("openai/") for one in rounds(tmp_path)} == answers


def test_tokens_are_counted_without_a_round(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    with proxy(tmp_path, configuration(big.url, small.url, EVEN)) as chat:
        for path in ("/utils/token_counter", "/v1/messages/count_tokens"):
            for _ in range(10):
                chat.http.post(path, json=chat.body()).raise_for_status()
        served(chat.ask())
    assert len(rounds(tmp_path)) == 1


def text_of(response: httpx.Response) -> str:
    """What a model says on `/v1/messages` or `/v1/responses`."""
    assert response.status_code == 200, response.text
    body = response.json()
    content = body["content"] if "content" in body else body["output"][0]["content"]
    return str(content[0]["text"])


def test_a_session_keeps_its_model_on_every_endpoint(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    config = configuration(big.url, small.url, EVEN | {"unit_window": 1000})
    with proxy(tmp_path, config.replace("litellm_settings: {", CACHE)) as chat:
        answers = dict[str, str]()
        for session in range(MANY):
            metadata = {"session_id": f"s{session}", "decision_id": f"messages-{session}"}
            said = chat.http.post("/v1/messages", json=chat.body(max_tokens=9, metadata=metadata))
            metadata |= {"decision_id": f"responses-{session}"}
            written = chat.http.post("/v1/responses", json={"model": "chat", "input": "Hi", "metadata": metadata})
            asked = chat.ask(metadata={"session_id": f"s{session}"})
            assert len({text_of(said), text_of(written), answer_of(asked)}) == 1, "a session saw both models"
            assert said.headers[DECISION] == f"messages-{session}"
            assert written.headers[DECISION] == f"responses-{session}"
            answers[f"messages-{session}"] = text_of(said)
        assert set(answers.values()) == {"big", "small"}
    record = {one.decision_id: one.action.removeprefix("openai/") for one in rounds(tmp_path)}
    assert answers.items() <= record.items()
    assert len(record) == 3 * MANY


def test_the_owner_of_the_master_key_is_no_unit(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    with proxy(tmp_path, configuration(big.url, small.url, EVEN | {"unit_window": 1000})) as chat:
        assert {served(chat.ask())[1] for _ in range(40)} == {"big", "small"}
        assert len({served(chat.ask(user="bob"))[1] for _ in range(10)}) == 1


def test_an_id_that_comes_again_is_another_request(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    """Or one coin would decide for as many as like."""
    with proxy(tmp_path, configuration(big.url, small.url, EVEN)) as chat:
        answers = [served(chat.ask(metadata={"decision_id": "same"})) for _ in range(40)]
    assert answers[0][0] == "same"
    assert len(dict(answers)) == 40
    assert {answer for _, answer in answers} == {"big", "small"}
    with proxy(tmp_path, configuration(big.url, small.url, EVEN)) as chat:  # perhaps killed before it had answered
        assert served(chat.ask(metadata={"decision_id": "same"})) == answers[0]
        assert served(chat.ask(metadata={"decision_id": "same"}))[0] != "same"
    assert len(rounds(tmp_path)) == 41


def test_an_id_that_is_none_is_said_in_one_line(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    with proxy(tmp_path, configuration(big.url, small.url, EVEN)) as chat:
        for bad in ("x" * 300, "a b\n"):
            response = chat.ask(metadata={"decision_id": bad})
            assert (answer_of(response), DECISION in response.headers) == ("big", False)
        said = [line for line in chat.log.splitlines() if "openai/big answers" in line]
        assert [line.count("`decision_id`") for line in said] == [1, 1], said
        assert "Traceback" not in chat.log
        deep = chat.http.post("/surefoot/rewards", content=b"[" * 100_000)
        assert (deep.status_code, deep.json()["error"]["type"]) == (400, "invalid_request_error")


def test_a_retry_is_not_cached_as_the_answer_of_the_model_that_failed(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    config = configuration(big.url, small.url, EVEN)
    with proxy(tmp_path, config.replace("litellm_settings: {", CACHE)) as chat:
        small.status = 500
        while small.requests == 0:
            assert answer_of(chat.ask()) == "big"
        small.status = 200
        answers = dict(served(chat.ask()) for _ in range(40))
        for _ in range(2):
            streams = [chat.http.post("/v1/chat/completions", json=chat.body(stream=True)) for _ in range(20)]
            for stream in streams:
                letters = re.findall(r'"content": ?"(\w+)"', stream.text)
                answers[stream.headers[DECISION]] = "".join(letters)
    record = {one.decision_id: one.action.removeprefix("openai/") for one in rounds(tmp_path)}
    assert set(answers.values()) == {"big", "small"}
    assert answers.items() <= record.items()


def test_a_caller_cannot_pass_for_a_retry_of_anothers_request(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    metrics = {"cost": {"kind": "ceiling", "low": 0, "high": 1, "alpha": 0.1, "reserve": 1}}
    settings = {"journal": "chat.journal", "mode": "guarded", "delta": 0.05, "metrics": metrics}
    with proxy(tmp_path, configuration(big.url, small.url, settings)) as chat, ThreadPoolExecutor(1) as victim:
        big.may_finish.clear()
        small.may_finish.clear()
        asking = victim.submit(chat.ask, metadata={"decision_id": "victim"})
        wait_until(lambda: big.requests + small.requests == 1)
        signal = {"decision_id": "victim", "model": "openai/small"}
        with ThreadPoolExecutor(1) as attacker:
            forged = attacker.submit(chat.ask, metadata={"routing_plugin_signals": {"surefoot": signal}})
            wait_until(lambda: big.requests + small.requests == 2)
            big.may_finish.set()
            small.may_finish.set()
        assert served(forged.result())[0] != "victim"
        assert served(asking.result())[0] == "victim"
        wait_until(lambda: settled(tmp_path) == 2)


def test_a_mirrored_request_neither_opens_a_round_nor_settles_one(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    with model_server("mirror") as mirror:
        config = configuration(big.url, small.url, EVEN).replace("api_key: none", "api_key: none, silent_model: other")
        params = f"{{model: openai/mirror, api_base: {mirror.url}, api_key: none}}"
        own = f"  - {{litellm_params: {params}, model_name: other}}\n"
        own += own.replace("other", "guarded").replace("api_key: none", "api_key: none, silent_model: chat")
        with proxy(tmp_path, config.replace("router_settings", own + "router_settings")) as chat:
            answers = dict(served(chat.ask()) for _ in range(10))
            wait_until(lambda: mirror.requests == 10)
            assert all(chat.reward(decision_id, 0.5).status_code == 200 for decision_id in answers)
            assert DECISION not in chat.ask(model="guarded").headers
            wait_until(lambda: big.requests + small.requests == 11)
    assert len(rounds(tmp_path)) == 10


def test_an_answer_whose_caller_has_hung_up_is_scored(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    """Its round would hold up all that is learned later."""
    (tmp_path / "judge.py").write_text(block("python"))  # of the documentation
    metrics = {"quality": {"kind": "floor", "low": 0, "high": 1, "alpha": 0.4}}
    settings = {"journal": "chat.journal", "mode": "guarded", "delta": 0.05, "metrics": metrics}
    with proxy(tmp_path, configuration(big.url, small.url, settings | {"scorer": "judge.score"})) as chat:
        big.may_finish.clear()
        small.may_finish.clear()
        for _ in range(3):
            before = big.requests + small.requests
            caller = HTTPConnection(chat.http.base_url.host, chat.http.base_url.port)
            caller.request("POST", "/v1/chat/completions", json.dumps(chat.body()), dict(chat.http.headers))
            wait_until(lambda: big.requests + small.requests > before)  # noqa: B023
            caller.close()
        big.may_finish.set()
        small.may_finish.set()
        wait_until(lambda: settled(tmp_path) == 3)


def settled(folder: Path) -> int:
    with open_journal(folder / "chat.journal", read_only=True) as journal:
        return sum(event.kind in (events.REWARD, events.ABANDONED) for event in journal.view("chat").read())


def test_a_prompt_too_long_for_the_proposal_is_answered_by_the_baseline(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    config = configuration(big.url, small.url, EVEN).replace("plugins:", "enable_pre_call_checks: true, plugins:")
    limits = '"{}", api_key: none}}, model_info: {{max_input_tokens: {}}}}}'
    for server, most in ((big, 100_000), (small, 20)):
        config = config.replace(f'"{server.url}", api_key: none}}}}', limits.format(server.url, most))
    with proxy(tmp_path, config) as chat:
        answers = {answer_of(chat.ask()) for _ in range(20)}
        long = [{"role": "user", "content": "word " * 200}]
        found = [chat.ask(messages=long) for _ in range(12)]
        assert {answer_of(one) for one in found} == {"big"}
    assert answers == {"big", "small"}
