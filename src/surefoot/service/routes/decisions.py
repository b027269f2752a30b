"""Decisions, fallbacks and rewards: what an app calls."""

import sys
from collections.abc import Callable, Sequence
from typing import Any

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from surefoot.errors import SurefootError
from surefoot.experiment.kinds import Ask
from surefoot.rounds import Answer, Receipt
from surefoot.service import requests
from surefoot.service.authorization import RequestScope, visit_of
from surefoot.service.catalogues import Catalogues, refuse_bytes
from surefoot.service.metrics import Metrics
from surefoot.service.problems import REFUSED, ProblemDetails, ProblemError, of_error, problem
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.requests import READ_BATCH, READ_DECIDE, RewardValue, body_of, read_body
from surefoot.service.responses import BatchResult, BatchResults, Confirmation, ProvedDecision
from surefoot.service.routes.route_options import DecisionId, ExperimentName, also, guarded, problems
from surefoot.service.tokens import Role

TAGS = ["decisions"]
ABOUT = ("unknown-experiment", "broken-assumption", "busy", "outcome-unknown")
REWARDS = ("unknown-decision", "reward-conflict", "reward-too-late", "reward-abandoned", "reward-out-of-range")
ROLE: Role = "decide"  # of those who send decisions and rewards


class Handlers:
    """What serves decisions and rewards."""

    def __init__(self, registry: Registry, catalogues: Catalogues, metrics: Metrics) -> None:
        self._registry, self._catalogues, self._metrics = registry, catalogues, metrics
        self.evaluated: Callable[[str, Answer], None] = lambda name, answer: None
        if "opentelemetry.sdk" in sys.modules:  # whoever loads it wants spans
            from surefoot.integrations.otel import evaluated

            self.evaluated = evaluated

    async def decide(self, name: str, body: bytes, visit: RequestScope) -> Answer:
        """One decision."""
        opened = await self._registry.find(name)
        ask = await self._read(opened, read_body(READ_DECIDE, body))
        # Hundreds may wait at once: what they were read from would take their place in the processor's cache.
        del body
        visit.waits_for = opened.queue.decisions.put([ask])
        (result,) = await visit.waits_for
        if isinstance(result, SurefootError):
            raise result
        return self._tell(name, result, visit)

    async def decide_all(self, name: str, body: bytes, visit: RequestScope) -> BatchResults:
        """Many decisions, each answered on its own."""
        opened = await self._registry.find(name)
        batch = read_body(READ_BATCH, body).decisions
        self._refuse_batch(batch, visit)
        read, numbers = list[Ask | SurefootError | ProblemDetails](), 0
        for entry in batch:
            read.append(await self._read_or_error(opened, entry))
            numbers += _made_numbers(entry, read[-1])
            refuse_bytes(numbers, self._registry.settings.limits)
        asks = [entry for entry in read if isinstance(entry, Ask)]
        visit.waits_for = opened.queue.decisions.put(asks)
        answers = iter(await visit.waits_for)
        results = [next(answers) if isinstance(entry, Ask) else entry for entry in read]
        visit.notes.update(experiment=name, decisions=len(results))
        return BatchResults([self._result(name, result) for result in results])

    async def book(self, name: str, body: bytes, visit: RequestScope) -> Answer:
        """A round that the caller played on its own."""
        opened = await self._registry.find(name)
        arguments = await self._catalogues.arguments(opened, read_body(READ_DECIDE, body))
        return self._tell(name, await self._registry.run(opened.experiment.book, by=visit.by, **arguments), visit)

    async def reward(self, name: str, decision_id: str, value: RewardValue, visit: RequestScope) -> Receipt:
        """One reward; a refusal is a problem."""
        opened = await self._registry.find(name)
        receipt = await opened.queue.reward(decision_id, value)
        visit.notes.update(experiment=name, refused=receipt.refused)
        if receipt.refused != "unknown":  # an id that does not exist may be anything
            visit.notes["decision_id"] = decision_id
        self._metrics.rewarded(name, receipt)
        if receipt.refused is not None:
            raise ProblemError.of(_refusal(receipt))
        return receipt

    async def reward_all(self, name: str, rewards: Sequence[requests.NamedReward], visit: RequestScope) -> BatchResults:
        """Many rewards, each accepted or refused on its own."""
        self._refuse_batch(rewards, visit)
        opened = await self._registry.find(name)
        faults = [_fault(opened, entry) for entry in rewards]
        sound = [(entry.decision_id, entry.value) for entry, fault in zip(rewards, faults, strict=True) if not fault]
        receipts = iter(await opened.queue.reward_all(sound))
        visit.notes.update(experiment=name, rewards=len(rewards))
        return BatchResults([self._result(name, fault or next(receipts)) for fault in faults])

    async def _read(self, opened: OpenExperiment, body: requests.Decide) -> Ask:
        arguments = await self._catalogues.arguments(opened, body)
        ask = opened.experiment.read(arguments)
        refuse_bytes(_made_numbers(body, ask), self._registry.settings.limits)
        return ask

    async def _read_or_error(
        self, opened: OpenExperiment, body: requests.Decide
    ) -> Ask | SurefootError | ProblemDetails:
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
        return self._decided(name, answer)

    def _decided(self, name: str, answer: Answer) -> Answer:
        self._metrics.decided(name, answer)
        self.evaluated(name, answer)
        return answer

    def _result(self, name: str, result: Answer | Receipt | SurefootError | ProblemDetails) -> BatchResult:
        if isinstance(result, Answer):
            return BatchResult(decision=self._decided(name, result))
        if isinstance(result, Receipt):
            self._metrics.rewarded(name, result)
            return BatchResult(receipt=result) if result.refused is None else BatchResult(problem=_refusal(result))
        return BatchResult(problem=result if isinstance(result, ProblemDetails) else of_error(result))

    def _refuse_batch(self, entries: Sequence[Any], visit: RequestScope) -> None:
        most = self._registry.settings.limits.batch
        if len(entries) > most:
            raise ProblemError("too-large", f"At most {most} are taken at once, but got {len(entries)}.")
        visit.charge(len(entries) - 1)  # the request itself was the first


def routes(registry: Registry, handlers: Handlers) -> list[HTTPRouteHandler]:
    """The handlers."""

    async def receipt(name: str, decision_id: str, is_changed: bool, visit: RequestScope) -> Receipt:
        visit.notes.update(experiment=name, decision_id=decision_id, is_changed=is_changed)
        return Receipt(decision_id=decision_id, is_repeat=not is_changed, head=await registry.head(name))

    @post(
        "/v1/experiments/{name:str}/decisions",
        **guarded(ROLE, TAGS, "decide", body=requests.Decide),
        responses=also(200, Answer, "The decision was made before, by the same request.")
        | problems(*ABOUT, "decision-conflict", "unknown-catalogue", body=True),
    )
    async def decide(name: ExperimentName, request: Request[Any, Any, Any]) -> Response[Answer]:
        """Decide one round; it is durable before it is answered."""
        answer = await handlers.decide(name, await request.body(), visit_of(request.scope))
        return Response(answer, status_code=200 if answer.is_repeat else 201)

    @post(
        "/v1/experiments/{name:str}/decision-batches",
        **guarded(ROLE, TAGS, "decideBatch", body=requests.DecideBatch),
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def decide_batch(name: ExperimentName, request: Request[Any, Any, Any]) -> BatchResults:
        """Decide many rounds, each answered on its own, with a decision or with a problem."""
        return await handlers.decide_all(name, await request.body(), visit_of(request.scope))

    @post(
        "/v1/experiments/{name:str}/fallbacks",
        **guarded(ROLE, TAGS, "bookFallback", body=requests.Decide),
        responses=also(200, Answer, "It was booked before.")
        | problems(*ABOUT, "decision-conflict", "decision-settled", "unknown-catalogue", body=True),
    )
    async def fallback(name: ExperimentName, request: Request[Any, Any, Any]) -> Response[Answer]:
        """Book a round in which the caller played the baseline on its own; one that was decided meanwhile is voided.

        Its `decision_id` must be given.
        """
        answer = await handlers.book(name, await request.body(), visit_of(request.scope))
        return Response(answer, status_code=200 if answer.is_repeat else 201)

    @get(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}",
        **guarded("read", TAGS, "readDecision"),
        responses=problems("unknown-experiment", "unknown-decision", "invalid"),
    )
    async def read_decision(name: ExperimentName, decision_id: DecisionId) -> ProvedDecision:
        """A decision, with the sentence that explains it, what was asked, and the whole proof."""
        experiment = (await registry.find(name)).experiment
        answer = await registry.run(experiment.find, decision_id)
        return ProvedDecision(answer, await registry.run(experiment.round, decision_id))

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/reward",
        **guarded(ROLE, TAGS, "reward", body=requests.SendReward),
        status_code=200,
        responses=problems(*ABOUT, *REWARDS, body=True),
    )
    async def reward(name: ExperimentName, decision_id: DecisionId, request: Request[Any, Any, Any]) -> Receipt:
        """Send the reward of a decision, metrics together or as they come; the same value twice is once."""
        value = (await body_of(request, requests.SendReward)).value
        return await handlers.reward(name, decision_id, value, visit_of(request.scope))

    @post(
        "/v1/experiments/{name:str}/reward-batches",
        **guarded(ROLE, TAGS, "rewardBatch", body=requests.RewardBatch),
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def reward_batch(name: ExperimentName, request: Request[Any, Any, Any]) -> BatchResults:
        """Send many rewards, each accepted or refused on its own."""
        data = await body_of(request, requests.RewardBatch)
        return await handlers.reward_all(name, data.rewards, visit_of(request.scope))

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/abandon",
        **guarded(ROLE, TAGS, "abandonDecision", body=requests.Abandon),
        status_code=200,
        responses=problems(*ABOUT, "unknown-decision", "decision-settled", body=True),
    )
    async def abandon(name: ExperimentName, decision_id: DecisionId, request: Request[Any, Any, Any]) -> Receipt:
        """Say that a decision's reward will never be learned, so that no other waits for it."""
        data, visit = await body_of(request, requests.Abandon), visit_of(request.scope)
        experiment = (await registry.find(name)).experiment
        is_new = await registry.run(experiment.abandon, decision_id, reason=data.reason, by=visit.by)
        return await receipt(name, decision_id, is_new, visit)

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/void",
        **guarded(ROLE, TAGS, "voidDecision", body=requests.Void),
        status_code=200,
        responses=problems(*ABOUT, "unknown-decision", "decision-settled", "decision-conflict", body=True),
    )
    async def void(name: ExperimentName, decision_id: DecisionId, request: Request[Any, Any, Any]) -> Receipt:
        """Say what was really played, so that the ledger is about that; until a reward of the round has come."""
        data, visit = await body_of(request, requests.Void), visit_of(request.scope)
        experiment = (await registry.find(name)).experiment
        is_moved = await registry.run(experiment.void, decision_id, data.action, reason=data.reason, by=visit.by)
        return await receipt(name, decision_id, is_moved, visit)

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/correction",
        **guarded("admin", TAGS, "correctReward", body=requests.Correct),
        status_code=200,
        responses=problems(*ABOUT, "unknown-decision", "decision-settled", "decision-conflict", body=True),
    )
    async def correct(name: ExperimentName, decision_id: DecisionId, request: Request[Any, Any, Any]) -> Receipt:
        """Replace a reward that was measured wrongly, until it was learned; after that only a fork can."""
        data, visit = await body_of(request, requests.Correct), visit_of(request.scope)
        experiment = (await registry.find(name)).experiment
        is_changed = await registry.run(experiment.correct, decision_id, data.value, reason=data.reason, by=visit.by)
        return await receipt(name, decision_id, is_changed, visit)

    @post(
        "/v1/experiments/{name:str}/confirmations",
        **guarded(ROLE, TAGS, "confirmDecisions", body=requests.Confirm),
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def confirm(name: ExperimentName, request: Request[Any, Any, Any]) -> Confirmation:
        """Say of decisions that they were played; a request can say it of earlier ones, too (`confirms`)."""
        data = await body_of(request, requests.Confirm)
        experiment = (await registry.find(name)).experiment
        confirmed = await registry.run(experiment.confirm, data.decision_ids)
        visit_of(request.scope).notes.update(experiment=name, confirmed=confirmed)
        return Confirmation(confirmed, await registry.head(name))

    return [decide, decide_batch, fallback, read_decision, reward, reward_batch, abandon, void, correct, confirm]


def _made_numbers(body: requests.Decide, ask: Any) -> int:
    """Numbers of the rows of a round that nobody sent: they were made of a context."""
    are_sent = body.actions is not None and body.actions[0].features is not None
    return 0 if are_sent or not isinstance(ask, Ask) or ask.rows is None else int(ask.rows.size)


def _fault(opened: OpenExperiment, entry: requests.NamedReward) -> ProblemDetails | None:
    """What is wrong with the metrics that a reward names, so that one mistake does not refuse the whole batch."""
    try:
        opened.experiment.read_rewards(entry.decision_id, entry.value)
    except SurefootError as error:
        return of_error(error)
    return None


def _refusal(receipt: Receipt) -> ProblemDetails:
    """The problem that a refused reward is."""
    assert receipt.refused is not None
    detail = f"Decision {receipt.decision_id!r:.80} got {receipt.value!r:.200}."
    if receipt.refused == "out_of_range":
        detail += " Values must be finite, and those of a guard within their declared bounds."
    return problem(REFUSED[receipt.refused], detail)
