"""A proxy in trouble: a model that is mistyped, a journal or a hub that is away, models that fail, callers who go."""

import asyncio
import itertools
import json
import logging
import os
import signal
import sqlite3
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import surefoot
from surefoot.audit import audit
from surefoot.errors import JournalConflictError, JournalUnavailableError
from surefoot.experiment import Experiment
from surefoot.journal import open_journal
from surefoot.rounds import decode, events
from tests.integrations.model_server import ModelServer, model_server
from tests.integrations.proxies import (
    FORKS,
    GUARD,
    MANY,
    answer_of,
    configuration,
    free_port,
    proxy,
    served,
    started,
    wait_until,
)
from tests.integrations.test_litellm import block
from tests.journal.servers import PostgresServer, new_database, running_server
from tests.service.servers import Apart
from tests.sharing.edges import Shop, environment_of, new_keys

DECISION = "x-surefoot-decision-id"
OWN = "surefoot.integrations.litellm.guard"


def recorded(folder: Path, kind: str) -> list[Any]:
    """What events of a kind say."""
    forms: dict[str, Any] = {
        events.ROUND: events.PairRound,
        events.VOIDED: events.Voided,
        events.ABANDONED: events.Abandoned,
    }
    forms[events.REWARD] = events.Reward
    with open_journal(folder / "chat.journal") as journal:
        report = audit(journal, "chat")
        assert report.is_clean, report.findings
        return [decode(event, forms[kind]) for event in journal.view("chat").read() if event.kind == kind]


def test_a_proxy_that_would_not_guard_is_refused_at_its_start(tmp_path: Path) -> None:
    plain = configuration("http://127.0.0.1:9", "http://127.0.0.1:9", {"journal": "chat.journal", **GUARD})
    beside = "chat, litellm_params: {model: openai/small"
    wrong = {
        "must have both openai/bigg and openai/small": ('"baseline": "openai/big"', '"baseline": "openai/bigg"'),
        "must have both openai/big and openai/smal,": ('"proposal": "openai/small"', '"proposal": "openai/smal"'),
        "but got chat: ['openai/big'], chit: ['openai/small']": (beside, beside.replace("chat", "chit")),
        f"`router_settings` must have `plugins: [{OWN}]`": (f"plugins: [{OWN}], ", ""),
        f"`litellm_settings` must have `callbacks: [{OWN}]`": (f"callbacks: [{OWN}]", ""),
        "`scorer` must be a function": ('"journal"', '"scorer": "judges.fair", "journal"'),
    }
    proxies = []
    for number, change in enumerate(wrong.values()):
        config = plain.replace(*change)
        assert config != plain
        (folder := tmp_path / str(number)).mkdir()
        proxies.append((folder, started(folder, config)[0]))
    for words, (folder, process) in zip(wrong, proxies, strict=True):
        process.join(60)
        assert process.exitcode not in (None, 0)
        log = (folder / "proxy.log").read_text()
        assert "ConfigError" in log
        assert words in log
        assert not (folder / "chat.journal").exists()


def mistyped(big: str, small: str) -> tuple[dict[str, list[str]], list[str]]:
    """Who answers in an app of one's own, by what is mistyped or missing; and what the log says."""
    import litellm

    from surefoot.integrations.litellm import GuardedModels

    lines = list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("surefoot.litellm").addHandler(handler)
    groups = {"chat": ["big", "small"], "mini": ["small"], "other": ["small", "spare"], "same": ["big", "spare"]}
    model_list = [
        {
            "model_name": group,
            "litellm_params": {
                "model": f"openai/{model}", "api_base": small if model == "small" else big, "api_key": "none"
            },
        }
        for group, models in groups.items()
        for model in models
    ]  # fmt: skip
    answers = dict[str, list[str]]()

    async def ask(group: str, **models: str) -> None:
        guard = surefoot.Guard(alpha=0.4, delta=0.05)
        chat = surefoot.Experiment.create(surefoot.open_journal("memory:"), "chat", guard, mode="guarded")
        names: dict[str, Any] = {"baseline": "openai/big", "proposal": "openai/small"} | models
        router = litellm.Router(model_list=model_list, plugins=[GuardedModels(chat, **names)])
        asked = [router.acompletion(group, messages=[{"role": "user", "content": "Hi"}]) for _ in range(40)]
        key = f"{group} {' '.join(models)}".strip()
        answers[key] = sorted({each.choices[0].message.content for each in await asyncio.gather(*asked)})

    async def main() -> None:
        await ask("chat", baseline="openai/bigg")
        await ask("chat", proposal="openai/smal")
        for group in groups:
            await ask(group)

    asyncio.run(main())
    return answers, lines


def test_in_an_app_no_proposal_plays_beside_other_models_without_its_guard(
    big: ModelServer, small: ModelServer
) -> None:
    with ProcessPoolExecutor(1, mp_context=FORKS) as fork:
        answers, lines = fork.submit(mistyped, big.url, small.url).result()
    assert answers == {
        "chat baseline": ["big"],
        "chat proposal": ["big"],
        "chat": ["big", "small"],
        "mini": ["small"],  # asked for by its name, and nothing else to choose
        "other": ["big"],
        "same": ["big"],
    }
    assert lines == [
        "openai/small does not answer for the models openai/big, openai/small, which lack openai/bigg.",
        "openai/big alone answers for the models openai/big, openai/small, which lack openai/smal.",
        "openai/small does not answer for the models openai/small, openai/spare, which lack openai/big.",
        "openai/big alone answers for the models openai/big, openai/spare, which lack openai/small.",
    ]


def test_a_proxy_goes_on_while_postgresql_is_away_and_after_it_is_back(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    with running_server() as server:
        address = new_database(server)
        config = configuration(big.url, small.url, {"journal": address, **GUARD})
        for life in ("first", "second"):
            if life == "second":
                crash(server)
            (folder := tmp_path / life).mkdir()
            with proxy(folder, config) as chat:
                if life == "first":
                    decision_id, _ = served(chat.ask())
                    crash(server)
                for _ in range(30):
                    response = chat.ask()
                    assert (answer_of(response), DECISION in response.headers) == ("big", False)
                assert 0 < chat.log.count("away" if life == "second" else "could not decide") < 20
                refusal = chat.reward(decision_id, 0.5)  # to be sent again
                assert (refusal.status_code, "reward" in refusal.json()["error"]["message"]) == (503, life == "second")
                server.start()
                wait_until(lambda: DECISION in chat.ask().headers)
                wait_until(lambda: served(chat.ask())[1] == "small")
                assert chat.reward(decision_id, 0.5).status_code == 200
        with open_journal(address) as journal:
            report = audit(journal, "chat")
            assert report.is_clean, report.findings


def crash(server: PostgresServer) -> None:
    os.kill(server.get_pid() or 0, signal.SIGQUIT)
    wait_until(lambda: not (server.pgdata / "postmaster.pid").exists())


def test_a_proxy_starts_while_its_hub_is_away_and_joins_once_it_is_there(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    new_keys(tmp_path)
    port = free_port()
    hub = {"hub": f"http://127.0.0.1:{port}", "shard": "north", "key": str(tmp_path / "head.pub")}
    with proxy(tmp_path, configuration(big.url, small.url, {"journal": "file:north.log", **hub})) as chat:
        response = chat.ask()
        assert (answer_of(response), DECISION in response.headers) == ("big", False)
        assert "surefoot's journal is away, and openai/big answers until it is back" in chat.log
        server = Apart(tmp_path, environment=environment_of(tmp_path), database=tmp_path / "own.db")
        server.port = server.options["port"] = port
        server.address = f"http://127.0.0.1:{port}"
        with server:
            Shop(server.address, tmp_path, tmp_path, name="chat", kind="pair").create()
            wait_until(lambda: DECISION in chat.ask().headers)
            assert "surefoot's journal is back" in chat.log


def test_an_experiment_of_other_settings_behind_a_journal_that_comes_back_is_said_once(tmp_path: Path) -> None:
    """And the baseline answers."""
    with ProcessPoolExecutor(1, mp_context=FORKS) as fork:
        assert fork.submit(begun_late).result() == 1


def begun_late() -> int:
    from surefoot.integrations import litellm

    litellm.REST, lines = 0.01, list[str]()
    handler = logging.Handler()
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logging.getLogger("surefoot.litellm").addHandler(handler)
    tries = itertools.count()

    def opened() -> Experiment:
        if next(tries) == 0:
            raise JournalUnavailableError("It is away.")
        raise JournalConflictError("It was created otherwise.")

    models = litellm.GuardedModels(opened, baseline="openai/big", proposal="openai/small")
    while next(tries) < 50:
        time.sleep(0.01)
    metadata = {"model_group": "chat"}
    request = SimpleNamespace(candidate_models=["openai/big", "openai/small"], metadata=metadata, signals={})
    assert asyncio.run(models.run(request)).candidate_models == ["openai/big"]
    return sum("created otherwise" in line for line in lines)


def test_while_a_journal_hangs_few_requests_wait_and_what_is_decided_late_is_settled(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    settings = {"journal": "chat.journal", "deadline": 0.2, **GUARD}
    with proxy(tmp_path, configuration(big.url, small.url, settings)) as chat:
        answers = dict[str, str]()

        def is_decided() -> bool:
            if is_so := DECISION in (response := chat.ask()).headers:  # perhaps not in time, on a busy machine
                answers.update([served(response)])
            return is_so

        wait_until(lambda: is_decided() and len(answers) == 20)
        with sqlite3.connect(tmp_path / "chat.journal") as locked:
            locked.execute("BEGIN EXCLUSIVE")
            for at in range(40):
                assert answer_of(chat.ask(metadata={"decision_id": f"late-{at}"})) == "big"
            locked.rollback()
        assert 1 <= chat.log.count("surefoot could not decide") < 20
        wait_until(is_decided)
    rounds = {one.decision_id: one.action for one in recorded(tmp_path, events.ROUND)}
    late = rounds.keys() - answers.keys()
    assert late
    assert late == {one.decision_id for one in recorded(tmp_path, events.ABANDONED)}
    voided = {one.decision_id for one in recorded(tmp_path, events.VOIDED)}
    assert voided == {name for name in late if rounds[name] == "openai/small"}


def test_a_request_whose_caller_hangs_up_while_it_is_decided_leaves_no_open_round(tmp_path: Path) -> None:
    with ProcessPoolExecutor(1, mp_context=FORKS) as fork:
        fork.submit(hung_up, tmp_path).result()
    assert {one.decision_id for one in recorded(tmp_path, events.ROUND)} == {"gone"}
    assert {one.decision_id for one in recorded(tmp_path, events.ABANDONED)} == {"gone"}


def hung_up(folder: Path) -> None:
    from surefoot.integrations.litellm import GuardedModels

    async def main() -> None:
        journal = surefoot.open_journal(folder / "chat.journal")
        chat = Experiment.create(journal, "chat", surefoot.Guard(alpha=0.4, delta=0.05), mode="guarded")
        models = GuardedModels(chat, baseline="openai/big", proposal="openai/small", deadline=60)
        metadata = {"model_group": "chat", "decision_id": "gone"}
        request = SimpleNamespace(
            candidate_models=["openai/big", "openai/small"], metadata=metadata, signals=dict[str, Any]()
        )
        with sqlite3.connect(folder / "chat.journal") as locked:
            locked.execute("BEGIN EXCLUSIVE")
            asking = asyncio.create_task(models.run(request))
            for _ in range(5):  # until it waits for the journal
                await asyncio.sleep(0)
            asking.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asking
            locked.rollback()
        await asyncio.to_thread(wait_until, lambda: chat.status().abandoned == 1)
        journal.close()

    asyncio.run(main())


def test_a_session_keeps_its_model_when_a_request_has_failed(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    settings = {"journal": "chat.journal", "unit_window": 1000, **GUARD}
    with proxy(tmp_path, configuration(big.url, small.url, settings)) as chat:

        def side(session: int) -> str:
            return answer_of(chat.ask(metadata={"session_id": f"s{session}"}))

        sides = [side(session) for session in range(MANY)]
        assert set(sides) == {"big", "small"}
        big.status = small.status = 400  # which is not tried again
        for session in range(MANY):
            assert chat.ask(metadata={"session_id": f"s{session}"}).status_code == 400
        big.status = small.status = 200
        assert [side(session) for session in range(MANY)] == sides
    assert len(recorded(tmp_path, events.ROUND)) == MANY


def test_another_model_group_answers_where_a_group_has_failed(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    with model_server("spare") as spare:
        params = f"{{model: openai/spare, api_base: {spare.url}, api_key: none}}"
        config = configuration(big.url, small.url, {"journal": "chat.journal", **GUARD}).replace(
            "router_settings: {",
            f"  - {{litellm_params: {params}, model_name: backup}}\nrouter_settings: {{fallbacks: [chat: [backup]], ",
        )
        big.status = small.status = 400
        with proxy(tmp_path, config) as chat:
            for _ in range(MANY):
                response = chat.ask()
                assert (answer_of(response), DECISION in response.headers) == ("spare", False)
            big.status = small.status = 200
            served(chat.ask())
    assert {one.action for one in recorded(tmp_path, events.ROUND)} == {"openai/big", "openai/small"}
    assert len(recorded(tmp_path, events.ABANDONED)) == MANY


def test_after_one_failure_a_model_is_asked_again_at_once(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    """By `disable_cooldowns`: LiteLLM would keep it from all requests, and those of its side would have no other."""
    settings = {"journal": "chat.journal", "mode": "shadow", "alpha": 0.4, "delta": 0.05}
    with proxy(tmp_path, configuration(big.url, small.url, settings)) as chat:
        big.status = 429
        assert chat.ask().status_code == 429
        big.status = 200
        assert answer_of(chat.ask()) == "big"


def test_a_cost_that_litellm_does_not_know_is_said_once(tmp_path: Path, big: ModelServer, small: ModelServer) -> None:
    metrics = {"cost": {"kind": "ceiling", "low": 0, "high": 1, "alpha": 0.1, "reserve": 1}}
    settings = {"journal": "chat.journal", "mode": "shadow", "delta": 0.05, "metrics": metrics}
    with proxy(tmp_path, configuration(big.url, small.url, settings)) as chat:
        for _ in range(5):
            served(chat.ask())
        wait_until(lambda: "LiteLLM knows no cost of big, and counts 0.0" in chat.log)
    assert chat.log.count("LiteLLM knows no cost") == 1


JUDGE = """
import asyncio, threading

def fair(kwargs, response):
    question, answer = kwargs["messages"][-1]["content"], response.choices[0].message.content
    assert threading.current_thread() is not threading.main_thread()
    if question == "fail":
        raise ValueError("no idea")
    return {"quality": 0.75 if answer == "big" else 0.25}

async def slow(kwargs, response):
    await asyncio.sleep(0.01)
    return fair_values(response)

def fair_values(response):
    return {"quality": 0.75 if response.choices[0].message.content == "big" else 0.25}
"""


@pytest.mark.parametrize("scorer", ["judges.fair", "judges.slow", "judge.score"])
def test_a_scorer_of_ones_own_measures_each_answer(
    tmp_path: Path, big: ModelServer, small: ModelServer, scorer: str
) -> None:
    (tmp_path / "judges.py").write_text(JUDGE)
    (tmp_path / "judge.py").write_text(block("python"))  # of the documentation
    metrics = {"quality": {"kind": "floor", "low": 0, "high": 1, "alpha": 0.4}}
    settings = {"journal": "chat.journal", "mode": "guarded", "delta": 0.05, "metrics": metrics}
    settings |= {"scorer": scorer}
    with proxy(tmp_path, configuration(big.url, small.url, settings)) as chat:
        answers = dict(served(chat.ask(stream=False)) for _ in range(20))
        if scorer == "judges.fair":
            asked = chat.http.post(
                "/v1/chat/completions", json=chat.body(messages=[{"role": "user", "content": "fail"}])
            )
            failed, _ = served(asked)
            wait_until(lambda: f"the scorer failed on {failed}, whose round waits for feedback" in chat.log)
            assert not chat.reward(failed, {"quality": 0.5}).json()["is_repeat"]
            answers[failed] = "waited"
        for decision_id, name in answers.items():
            value = 0.9 if scorer == "judge.score" else {"big": 0.75, "small": 0.25, "waited": 0.5}[name]
            wait_until(lambda: chat.reward(decision_id, {"quality": value}).json().get("is_repeat"))  # noqa: B023
    rewards = recorded(tmp_path, events.REWARD)
    assert len(rewards) == len(answers)
    assert all(one.refused is None for one in rewards)


def test_a_stream_has_its_decision_in_the_header_and_its_cost_at_the_end(
    tmp_path: Path, big: ModelServer, small: ModelServer
) -> None:
    big.name, small.name = "gpt-4o", "gpt-4o-mini"
    metrics = {"cost": {"kind": "ceiling", "low": 0, "high": 1, "alpha": 0.1, "reserve": 1}}
    metrics |= {"latency": {"kind": "ceiling", "low": 0, "high": 100, "alpha": 0.1, "reserve": 1}}
    settings = {"journal": "chat.journal", "mode": "guarded", "delta": 0.05, "metrics": metrics}
    config = configuration(big.url, small.url, settings).replace("openai/big", "openai/gpt-4o")
    with proxy(tmp_path, config.replace("openai/small", "openai/gpt-4o-mini")) as chat:
        whole = list[str]()
        for _ in range(3):
            with chat.http.stream("POST", "/v1/chat/completions", json=chat.body(stream=True)) as stream:
                whole.append(stream.headers[DECISION])
                text = "".join(
                    (json.loads(line[6:])["choices"] or [{"delta": {}}])[0]["delta"].get("content") or ""
                    for line in stream.iter_lines()
                    if line.startswith("data: {")
                )
                assert text in ("gpt-4o", "gpt-4o-mini")
        # A caller who hangs up in the middle.
        big.may_finish.clear()
        small.may_finish.clear()
        with chat.http.stream("POST", "/v1/chat/completions", json=chat.body(stream=True)) as stream:
            broken = stream.headers[DECISION]
            next(stream.iter_bytes())
        big.may_finish.set()
        small.may_finish.set()
        served_after = served(chat.ask())[0]
        wait_until(lambda: len(recorded_rewards(tmp_path)) >= 5)
    rewards = {one.decision_id: one.values for one in recorded(tmp_path, events.REWARD)}
    for decision_id in (*whole, served_after):
        assert rewards[decision_id]["cost"] > 0.0
        assert rewards[decision_id]["latency"] > 0.0
    assert broken in rewards


def recorded_rewards(folder: Path) -> list[Any]:
    with open_journal(folder / "chat.journal", read_only=True) as journal:
        return [event for event in journal.view("chat").read() if event.kind in (events.REWARD, events.ABANDONED)]
