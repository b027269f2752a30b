"""Decisions, fallbacks and rewards: what an app calls."""

from typing import Any

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from surefoot.rounds import Answer, Receipt
from surefoot.service import requests
from surefoot.service.authorization import RequestScope, visit_of
from surefoot.service.handlers import ROLE, Handlers
from surefoot.service.registry import Registry
from surefoot.service.requests import body_of
from surefoot.service.responses import Confirmation, DecisionRead, Outcomes
from surefoot.service.routes.route_options import DecisionId, ExperimentName, also, guarded, problems

TAGS = ["decisions"]
ABOUT = ("unknown-experiment", "broken-assumption", "busy", "outcome-unknown")
REWARDS = ("unknown-decision", "reward-conflict", "reward-too-late", "reward-abandoned", "reward-out-of-range")


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
    async def decide_batch(name: ExperimentName, request: Request[Any, Any, Any]) -> Outcomes:
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
    async def read_decision(name: ExperimentName, decision_id: DecisionId) -> DecisionRead:
        """A decision, with the sentence that explains it, what was asked, and the whole proof."""
        experiment = (await registry.find(name)).experiment
        answer = await registry.run(experiment.find, decision_id)
        return DecisionRead(answer, await registry.run(experiment.round, decision_id))

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/reward",
        **guarded(ROLE, TAGS, "reward", body=requests.Reward),
        status_code=200,
        responses=problems(*ABOUT, *REWARDS, body=True),
    )
    async def reward(name: ExperimentName, decision_id: DecisionId, request: Request[Any, Any, Any]) -> Receipt:
        """Send the reward of a decision, metrics together or as they come; the same value twice is once."""
        value = (await body_of(request, requests.Reward)).value
        return await handlers.reward(name, decision_id, value, visit_of(request.scope))

    @post(
        "/v1/experiments/{name:str}/reward-batches",
        **guarded(ROLE, TAGS, "rewardBatch", body=requests.RewardBatch),
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def reward_batch(name: ExperimentName, request: Request[Any, Any, Any]) -> Outcomes:
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
        """Replace a reward that was measured wrongly, until it was learned; afterwards only a fork begins anew."""
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
