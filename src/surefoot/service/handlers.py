"""Decisions and rewards, from the request to the answer, for the routes and for the fast path.

The fast path serves the two requests that an app makes all the time, one decision and one reward, without the layers of
the framework, which cost more than half of what a decision takes. Their routes describe them in the OpenAPI document,
and take over if a request is unusual; both read, authorise and refuse in the same way.
"""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import msgspec
from litestar.types import Receive

from surefoot.errors import SurefootError
from surefoot.experiment.kinds import Ask
from surefoot.rounds import Answer, Receipt
from surefoot.service import requests
from surefoot.service.authorization import RequestScope
from surefoot.service.catalogues import Catalogues, arguments_of
from surefoot.service.metrics import Metrics
from surefoot.service.problems import REFUSED, Problem, ProblemError, of_error, problem
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.requests import RewardValue, decoder, read_body
from surefoot.service.responses import Outcome, Outcomes
from surefoot.service.tokens import Role

READ_DECIDE, READ_BATCH = decoder(requests.Decide), decoder(requests.DecideBatch)
READ_REWARD = decoder(requests.Reward)
MOST_AT_ONCE = 20_000  # numbers of a decision's rows that are made in the event loop
PATHS = re.compile(r"/v1/experiments/(?P<name>[^/]{1,200})/decisions(?:/(?P<id>[^/]{1,200})/reward)?")
TEMPLATES = ("/v1/experiments/{name}/decisions", "/v1/experiments/{name}/decisions/{decision_id}/reward")
ROLE: Role = "decide"  # of those who send decisions and rewards
_encode = msgspec.json.Encoder().encode


class Handlers:
    """What serves decisions and rewards."""

    def __init__(self, registry: Registry, catalogues: Catalogues, metrics: Metrics) -> None:
        self._registry, self._catalogues, self._metrics = registry, catalogues, metrics
        self._limits = registry.settings.limits

    async def quick(self, scope: Any, receive: Receive, visit: RequestScope) -> tuple[int, bytes] | None:
        """Status and body; None if the request must take its route. Refusals are raised."""
        if scope["method"] != "POST":
            return None
        match = PATHS.fullmatch(scope["path"])
        if match is None:
            return None
        name, decision_id = match.groups()
        # Set before anything is refused, so that refusals are counted under their route as well.
        scope["path_template"] = TEMPLATES[decision_id is not None]
        visit.check_role(ROLE)
        body = await _body(receive)
        if decision_id is not None:
            return 200, _encode(await self.reward(name, decision_id, read_body(READ_REWARD, body).value, visit))
        answer = await self.decide(name, body, visit)
        return 200 if answer.is_repeat else 201, _encode(answer)

    async def decide(self, name: str, body: bytes, visit: RequestScope) -> Answer:
        """One decision."""
        opened = self._registry.open_experiments.get(name) or await self._registry.find(name)
        ask = await self._read(opened, read_body(READ_DECIDE, body))
        # Hundreds may wait at once: what they were read from would take their place in the processor's cache.
        del body
        visit.waits_for = waits_for = opened.queue.submit(ask)
        try:
            (result,) = await waits_for
        except asyncio.CancelledError:
            if waits_for.cancelled():  # by the connection, which is closed
                raise ProblemError("timeout") from None
            raise
        if isinstance(result, SurefootError):
            raise result
        return self._tell(name, result, visit)

    async def decide_all(self, name: str, body: bytes, visit: RequestScope) -> Outcomes:
        """Many decisions, each answered on its own."""
        opened = await self._registry.find(name)
        batch = read_body(READ_BATCH, body).decisions
        self._refuse_batch(batch)
        read = [await self._read_or_error(opened, entry) for entry in batch]
        asks = [entry for entry in read if isinstance(entry, Ask)]
        answers = iter(await opened.queue.answer_all(asks))
        results = [next(answers) if isinstance(entry, Ask) else entry for entry in read]
        visit.notes.update(experiment=name, decisions=len(results))
        return Outcomes([self._outcome(name, result) for result in results])

    async def book(self, name: str, body: bytes, visit: RequestScope) -> Answer:
        """A round that the caller played on its own."""
        opened = await self._registry.find(name)
        arguments = await self._arguments(opened, read_body(READ_DECIDE, body))
        return self._tell(name, await self._registry.run(opened.experiment.book, by=visit.by, **arguments), visit)

    async def reward(self, name: str, decision_id: str, value: RewardValue, visit: RequestScope) -> Receipt:
        """One reward; a refusal is a problem."""
        opened = self._registry.open_experiments.get(name) or await self._registry.find(name)
        receipt = await opened.queue.reward(decision_id, value)
        visit.notes.update(experiment=name, refused=receipt.refused)
        if receipt.refused != "unknown":  # an id that does not exist may be anything
            visit.notes["decision_id"] = decision_id
        self._metrics.rewarded(name, receipt)
        if receipt.refused is not None:
            raise ProblemError.of(_refusal(receipt))
        return receipt

    async def reward_all(self, name: str, rewards: Sequence[requests.NamedReward], visit: RequestScope) -> Outcomes:
        """Many rewards, each accepted or refused on its own."""
        self._refuse_batch(rewards)
        opened = await self._registry.find(name)
        faults = [_fault(opened, entry) for entry in rewards]
        sound = [(entry.decision_id, entry.value) for entry, fault in zip(rewards, faults, strict=True) if not fault]
        receipts = iter(await opened.queue.reward_all(sound))
        visit.notes.update(experiment=name, rewards=len(rewards))
        return Outcomes([self._outcome(name, fault or next(receipts)) for fault in faults])

    async def _read(self, opened: OpenExperiment, body: requests.Decide) -> Ask:
        return opened.experiment.read(await self._arguments(opened, body))

    async def _arguments(self, opened: OpenExperiment, body: requests.Decide) -> dict[str, Any]:
        arguments = body.arguments()
        if not opened.takes_rows:
            return arguments
        digest = arguments.pop("catalogue", None)
        known = None if digest is None else await self._catalogues.find(opened, digest)
        # Rows that take long to make would keep every other caller waiting.
        if known is not None and known.size > MOST_AT_ONCE:
            return await self._registry.run(arguments_of, arguments, known, self._limits)
        return arguments_of(arguments, known, self._limits, is_configured=opened.is_configured)

    async def _read_or_error(self, opened: OpenExperiment, body: requests.Decide) -> Ask | SurefootError | Problem:
        try:
            return await self._read(opened, body)
        except SurefootError as error:
            return error
        except ProblemError as error:
            return error.problem

    def _tell(self, name: str, answer: Answer, visit: RequestScope) -> Answer:
        visit.notes.update(
            experiment=name,
            decision_id=answer.decision_id,
            event_number=0 if answer.head is None else answer.head.number,
            source=answer.source,
            is_repeat=answer.is_repeat,
        )
        self._metrics.decided(name, answer)
        return answer

    def _outcome(self, name: str, result: Answer | Receipt | SurefootError | Problem) -> Outcome:
        if isinstance(result, Answer):
            self._metrics.decided(name, result)
            return Outcome(decision=result)
        if isinstance(result, Receipt):
            self._metrics.rewarded(name, result)
            return Outcome(receipt=result) if result.refused is None else Outcome(problem=_refusal(result))
        return Outcome(problem=result if isinstance(result, Problem) else of_error(result))

    def _refuse_batch(self, entries: Sequence[Any]) -> None:
        most = self._limits.batch
        if len(entries) > most:
            raise ProblemError("too-large", f"At most {most} are taken at once, but got {len(entries)}.")


def _fault(opened: OpenExperiment, entry: requests.NamedReward) -> Problem | None:
    """What is wrong with the metrics that a reward names, so that one mistake does not refuse the whole batch."""
    try:
        opened.experiment.read_rewards(entry.decision_id, entry.value)
    except SurefootError as error:
        return of_error(error)
    return None


def _refusal(receipt: Receipt) -> Problem:
    """The problem that a refused reward is."""
    assert receipt.refused is not None
    detail = f"Decision {receipt.decision_id!r:.80} got {receipt.value!r:.200}."
    if receipt.refused == "out_of_range":
        detail += " Values must be finite, and those of a guard within their declared bounds."
    return problem(REFUSED[receipt.refused], detail)


async def _body(receive: Receive) -> bytes:
    message: Any = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    return body
