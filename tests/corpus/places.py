"""Where a day can be played: a process, a service, a shard, an edge. Only this file knows their interfaces."""

import hashlib
import itertools
import secrets
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec
import pytest

from surefoot.audit import audit, audit_shards
from surefoot.client import Client, RemoteHub, ServiceError
from surefoot.client.calls import problem
from surefoot.errors import ConfigError
from surefoot.experiment import Experiment, coins, create_shared, fork
from surefoot.experiment.export import pair_rounds, row_rounds
from surefoot.journal import open_journal
from surefoot.policies.by_name import make_policy
from surefoot.rounds import Answer, Receipt
from surefoot.rounds.events import edge_chain
from surefoot.service import edges
from surefoot.service.responses import ProvedDecision
from surefoot.service.settings import Settings
from tests.service.servers import running
from tests.sharing.edges import new_keys, options_of

STATUS = (
    "rounds", "learner_rounds", "baseline_rounds", "held_rounds", "allowed_share", "floor", "margin", "worst_margin",
    "worst_round", "pending", "waiting", "rewards", "learned", "abandoned", "voided", "total_reward",
    "estimated_reward", "estimated_baseline", "refused", "is_refuted", "debt",
)  # fmt: skip
TALLY = ("decisions", "learner", "rewards", "learned", "abandoned", "voided", "is_refuted")
NAME = "shop"


@contextmanager
def seeded_coins(seed: int) -> Iterator[None]:
    """Coins that fall the same in every run, wherever they are drawn: their secrets follow from a seed."""
    numbers = itertools.count()

    def secret(*words: Any) -> bytes:
        return hashlib.sha256(f"{seed} {words[-1]}".encode()).digest()

    drawn = SimpleNamespace(token_bytes=lambda _: secret(next(numbers)), token_hex=secrets.token_hex)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(coins, "secrets", drawn)
        patched.setattr(edges, "coin_secret", secret)
        yield


class Clock:
    """A clock that moves when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def shared(policy: str, settings: dict[str, Any]) -> dict[str, Any]:
    """With a reserve, so that a shard has something to spend from the start."""
    return {**settings, "constraint": {"name": "reserve", "granted": 20.0}} if policy == "SafeLUCB" else settings


def answer_of(answer: Any) -> dict[str, Any]:
    entry = {"id": answer.decision_id, "round": answer.round, "source": answer.source, "action": answer.action}
    return {**entry, "share": getattr(answer, "share", None)}


def status_of(status: Any) -> dict[str, Any]:
    entry = {name: getattr(status, name) for name in STATUS}
    if status.guard is not None:
        metrics = status.guard.metrics.items()
        entry |= {"share": status.guard.share, "allowed": status.guard.allowed}
        entry |= {"banks": {name: one.bank for name, one in metrics}}
        entry |= {"lifts": {name: [one.lift_low, one.lift_high] for name, one in metrics}}
    return entry


def alarm_of(status: Any) -> list[Any]:
    """What is wrong, and what waits for a word."""
    known = (status.alarm, status.alarm_round, status.refused, status.unconfirmed, status.pending, status.waiting)
    return [*known, status.margin, status.worst_margin, status.debt]


def verdict_of(report: Any) -> dict[str, Any]:
    return {"is_clean": report.is_clean, **{name: getattr(report.tally, name) for name in TALLY}}


def rows_of(journal: Any, name: str, is_guard: bool) -> list[Any]:
    """What the journal holds of every decision and its certificate."""
    if is_guard:
        keys: tuple[str, ...] = ("round", "source", "share", "draw", "allowed", "binds", "margin", "rewards", "is_held")
        return [[row.get(key) for key in keys] for row in pair_rounds(journal, name)]
    keys = ("round", "source", "action", "guaranteed", "required", "proposal", "reward", "is_held")
    return [[row.get(key) for key in keys] for row in row_rounds(journal, name)]


class Process:
    """An experiment in this process, on SQLite."""

    def __init__(self, folder: Path, policy: str, settings: dict[str, Any], **options: Any) -> None:
        self.clock, self.path, self.is_guard = Clock(), folder / "shop.db", policy == "Guard"
        self.journal = open_journal(self.path)
        new, options = make_policy(policy, settings), {"mode": "guarded", "clock": self.clock, **options}
        self.shop = Experiment.create(self.journal, NAME, new, snapshot_every=40, **options)

    def tick(self) -> None:
        self.clock.now += 1.0

    def wait(self, seconds: float) -> None:
        self.clock.now += seconds

    def decide(self, request: dict[str, Any], decision_id: str) -> dict[str, Any]:
        arguments = dict(request)
        if "rows" in arguments:
            arguments["features"] = arguments.pop("rows")
        return answer_of(self.shop.decide(**arguments, decision_id=decision_id))

    def reward(self, decision_id: str, value: Any) -> Any:
        return self.shop.reward(decision_id, value).refused

    def abandon(self, decision_id: str) -> Any:
        return self.shop.abandon(decision_id, reason="lost")

    def void(self, decision_id: str) -> Any:
        return self.shop.void(decision_id, reason="late")

    def correct(self, decision_id: str, value: Any) -> Any:
        return self.shop.correct(decision_id, value, reason="misread")

    def confirm(self, decision_ids: list[str]) -> Any:
        return self.shop.confirm(decision_ids)

    def acknowledge(self, response: Any) -> Any:
        return self.shop.acknowledge(response, reason="looked into")

    def erase(self, decision_ids: list[str]) -> Any:
        return self.shop.erase(decision_ids, reason="asked for")

    def alarm(self) -> Any:
        return alarm_of(self.shop.status())

    def set_mode(self, mode: Any) -> None:
        self.shop.set_mode(mode, reason="because")

    def renew(self) -> None:
        """Nothing: there is no lease."""

    def fork(self, name: str) -> None:
        fork(self.shop.journal, self.shop.name, name, reason="anew")

    def export(self) -> list[Any]:
        return rows_of(self.shop.journal, self.shop.name, self.is_guard)

    def close(self) -> None:
        self.journal.close()

    def restart(self) -> None:
        self.close()
        self.journal = open_journal(self.path)
        self.shop = Experiment.open(self.journal, NAME, clock=self.clock, snapshot_every=40)

    def end(self) -> dict[str, Any]:
        status, report = status_of(self.shop.status()), verdict_of(audit(self.journal, NAME))
        return {"status": status, "audit": report, "decisions": rows_of(self.journal, NAME, self.is_guard)}


class Shard(Process):
    """One of two shards that share a floor; the other one is idle and hands in with it."""

    def __init__(self, folder: Path, policy: str, settings: dict[str, Any], **options: Any) -> None:
        self.clock, self.folder, self.is_guard = Clock(), folder, policy == "Guard"
        self.hub = open_journal(folder / "hub.db")
        create_shared(
            self.hub,
            NAME,
            make_policy(policy, shared(policy, settings)),
            mode="guarded",
            skew=1.0,
            clock=self.clock,
            **options,
        )
        self.journals: dict[str, Any] = {}
        self.join()

    def join(self) -> None:
        self.journals = {name: open_journal(self.folder / f"{name}.db") for name in ("own", "other")}
        options: dict[str, Any] = {"every": 10**9, "seconds": 1e9, "in_background": False, "clock": self.clock}
        self.shop, self.other = (
            Experiment.join(self.hub, NAME, journal, shard=name, **options) for name, journal in self.journals.items()
        )

    def close(self) -> None:
        self.hub.close()
        for journal in self.journals.values():
            journal.close()

    def restart(self) -> None:
        for journal in self.journals.values():
            journal.close()
        self.join()

    def renew(self) -> None:
        self.clock.now += 0.1
        for shop in (self.other, self.shop):
            assert shop.leases is not None
            shop.leases.renew()

    def end(self) -> dict[str, Any]:
        self.renew()
        report = audit_shards(self.hub, NAME, self.journals)
        verdict = {"hub": verdict_of(report.hub), **{name: verdict_of(one) for name, one in report.shards.items()}}
        assert self.shop.leases is not None
        coordinator = self.shop.leases.hub.look(lambda state, _: state.coordinator)
        pot = coordinator.pot.totals() if self.is_guard else coordinator.pot.proved
        day = {"status": status_of(self.shop.status()), "pot": pot, "audit": verdict}
        return {**day, "decisions": rows_of(self.journals["own"], NAME, self.is_guard)}


class Requests:
    """The verbs of an experiment as requests to a service; actions are called by their numbers."""

    def __init__(self, address: str) -> None:
        self.http = httpx.Client(base_url=f"{address}/v1/experiments/{NAME}", trust_env=False, timeout=60)

    def ask(self, path: str, body: Any, kind: Any = dict, method: str = "POST") -> Any:
        response = self.http.request(method, path, json=body)
        if response.is_error:
            raise problem(response)
        return msgspec.json.decode(response.content, type=kind)

    def decide(self, path: str = "decisions", **request: Any) -> Answer:
        if "proposal" not in request:
            rows = request.pop("features", [None] * 3)
            request["actions"] = [{"id": str(number), "features": row} for number, row in enumerate(rows)]
        answer: Answer = self.ask(path, request, Answer)
        return answer

    def book(self, *, by: str, **request: Any) -> Answer:
        return self.decide("fallbacks", **request)

    def reward(self, decision_id: str, value: Any) -> Receipt:
        receipt: Receipt = self.ask(f"decisions/{decision_id}/reward", {"value": value}, Receipt)
        return receipt

    def abandon(self, decision_id: str, **why: Any) -> bool:
        return not self.ask(f"decisions/{decision_id}/abandon", why, Receipt).is_repeat

    def void(self, decision_id: str, **why: Any) -> bool:
        return not self.ask(f"decisions/{decision_id}/void", why, Receipt).is_repeat

    def correct(self, decision_id: str, value: Any, *, reason: str, by: str) -> bool:
        body = {"value": value, "reason": reason}
        return not self.ask(f"decisions/{decision_id}/correction", body, Receipt).is_repeat

    def confirm(self, decision_ids: list[str]) -> int:
        return int(self.ask("confirmations", {"decision_ids": decision_ids})["confirmed"])

    def acknowledge(self, response: str, *, reason: str, by: str) -> None:
        self.ask("acknowledgements", {"response": response, "reason": reason})

    def set_mode(self, mode: str, *, reason: str, by: str) -> None:
        self.ask("mode", {"mode": mode, "reason": reason}, method="PUT")

    def erase(self, decision_ids: list[str], *, reason: str, by: str) -> int:
        return int(self.ask("erasures", {"decision_ids": decision_ids, "reason": reason})["erased"])

    def find(self, decision_id: str) -> Answer:
        read: ProvedDecision = self.ask(f"decisions/{decision_id}", None, ProvedDecision, "GET")
        return read.answer

    def status(self) -> Any:
        return SimpleNamespace(**self.ask("", None, method="GET"))


class Served:
    """A service on SQLite, asked over HTTP by our client."""

    def __init__(self, folder: Path, policy: str, settings: dict[str, Any], **extra: Any) -> None:
        self.folder, self.is_guard, self.policy = folder, policy == "Guard", policy
        self.stack, self.names = ExitStack(), ["a", "b", "c"]
        self.start()
        body = {"name": NAME, "policy": policy, "settings": settings, "mode": "guarded", **extra}
        response = httpx.post(self.address + "/v1/experiments", json=body, trust_env=False, timeout=60)
        if response.status_code != 201:
            self.close()
            raise problem(response)

    def post(self, path: str, body: Any, method: str = "POST") -> Any:
        answer = httpx.request(method, self.address + path, json=body, trust_env=False, timeout=60)
        assert answer.status_code < 300, answer.text
        return answer.json()

    def start(self) -> None:
        self.address = self.stack.enter_context(running(Settings(database=str(self.folder / "shop.db"))))
        self.client = self.stack.enter_context(Client(self.address, timeout=30.0))
        self.shop = Requests(self.address)
        self.stack.callback(self.shop.http.close)

    def fork(self, name: str) -> None:
        self.shop.ask("forks", {"name": name, "reason": "anew"})

    def export(self) -> list[Any]:
        with open_journal(self.folder / "shop.db", read_only=True) as journal:
            return rows_of(journal, NAME, self.is_guard)

    def tick(self) -> None:
        """Nothing: the server has its own clock."""

    renew = tick

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def decide(self, request: dict[str, Any], decision_id: str) -> dict[str, Any]:
        if self.is_guard:
            answer = self.client.decide(NAME, **request, decision_id=decision_id)
        elif "rows" in request:
            named = dict(zip(self.names, request["rows"], strict=True))
            answer = self.client.decide(NAME, named, baseline=self.names[0], decision_id=decision_id)
        else:
            offered = [{"id": name} for name in self.names]
            body = {"actions": offered, "baseline": self.names[request["baseline"]], "decision_id": decision_id}
            response = self.post(f"/v1/experiments/{NAME}/decisions", body)
            return {**{key: response[key] for key in ("round", "source", "action")}, "id": decision_id, "share": None}
        return answer_of(answer)

    def reward(self, decision_id: str, value: Any) -> Any:
        return self.client.reward(NAME, decision_id, value).refused

    def abandon(self, decision_id: str) -> Any:
        try:
            return self.client.abandon(NAME, decision_id, reason="lost") is not None
        except ServiceError as error:
            return error.status

    def void(self, decision_id: str) -> Any:
        try:
            return not self.client.void(NAME, decision_id, reason="late").is_repeat
        except ServiceError as error:
            return error.status

    def set_mode(self, mode: str) -> None:
        self.post(f"/v1/experiments/{NAME}/mode", {"mode": mode, "reason": "because"}, "PUT")

    def close(self) -> None:
        self.stack.close()

    def restart(self) -> None:
        self.close()
        self.stack = ExitStack()
        self.start()

    def end(self) -> dict[str, Any]:
        self.stack.close()
        with open_journal(self.folder / "shop.db") as journal:
            status = status_of(Experiment.open(journal, NAME).status())
            day = {"status": status, "audit": verdict_of(audit(journal, NAME))}
            return {**day, "decisions": rows_of(journal, NAME, self.is_guard)}


class AtEdge(Process):
    """An app's own shard under a signed lease."""

    def __init__(self, folder: Path, policy: str, settings: dict[str, Any], **extra: Any) -> None:
        self.folder, self.is_guard, self.stack = folder, policy == "Guard", ExitStack()
        new_keys(folder)
        options = {**options_of(folder), "lease_seconds": 1e6, "window_seconds": 1e6}
        self.address = self.stack.enter_context(running(Settings(**options)))
        declared = shared(policy, settings)
        body = {"name": NAME, "policy": policy, "settings": declared, "mode": "guarded", "ledger": "sharded", **extra}
        body["skew"] = 60.0  # a join may take long on a busy machine
        answer = httpx.post(self.address + "/v1/experiments", json=body, trust_env=False, timeout=60)
        if answer.status_code != 201:
            self.stack.close()
            raise ConfigError(answer.json()["detail"])
        self.start()

    def start(self) -> None:
        self.journal = open_journal(f"file:{self.folder}/till.log", sync=False)
        self.hub = RemoteHub(self.address, key=self.folder / "head.pub")
        options: dict[str, Any] = {"every": 10**9, "seconds": 1e9, "in_background": False}
        self.shop = Experiment.join(self.hub, NAME, self.journal, shard="till", **options)
        assert self.shop.leases is not None
        self.shop.leases.look_after = lambda: None  # type: ignore[method-assign]  # leases last until they are renewed

    def tick(self) -> None:
        """Nothing: clocks are the system's."""

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)

    def set_mode(self, mode: str) -> None:
        """Nothing: a mode comes with a lease, when the server's own shard has renewed its."""

    def renew(self) -> None:
        assert self.shop.leases is not None
        self.shop.leases.renew()

    def stop(self) -> None:
        self.hub.close()
        self.journal.close()

    def close(self) -> None:
        self.stop()
        self.stack.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    def end(self) -> dict[str, Any]:
        self.renew()
        self.stop()
        self.stack.close()
        with open_journal(self.folder / "hub.db") as hub, open_journal(self.folder / "own.db") as own:
            report = audit_shards(hub, NAME, {"server": own})
            verdict = {"hub": verdict_of(report.hub), "till": verdict_of(report.shards["till"])}
            return {"audit": verdict, "decisions": rows_of(hub, edge_chain(NAME, "till"), self.is_guard)}


def opens(kind: Any) -> Any:
    @contextmanager
    def opened(folder: Path, policy: str, settings: dict[str, Any], **options: Any) -> Iterator[Any]:
        yield kind(folder, policy, settings, **options)

    return opened


PLACES = {"process": opens(Process), "service": opens(Served), "shard": opens(Shard), "edge": opens(AtEdge)}
