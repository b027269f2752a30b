"""Decisions, fallbacks and rewards: what an app calls."""

from typing import Any

from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler

from surefoot.experiment import GuardAnswer
from surefoot.service import request_models, response_models
from surefoot.service.authorization import visit_of
from surefoot.service.guard_models import GuardDecided, GuardDecisionRead, GuardOutcomes, guard_decision_read
from surefoot.service.handlers import Handlers
from surefoot.service.registry import Registry
from surefoot.service.request_bodies import BATCH, DECIDE, FALLBACK, body_of, refuse_depth
from surefoot.service.routes.route_options import DecisionId, ExperimentName, also, guarded, problems

TAGS = ["decisions"]
ABOUT = ("unknown-experiment", "broken-assumption", "busy", "outcome-unknown")
REWARDS = ("unknown-decision", "reward-conflict", "reward-too-late", "reward-abandoned", "reward-out-of-range")


def routes(registry: Registry, handlers: Handlers) -> list[HTTPRouteHandler]:
    """The handlers."""

    @post(
        "/v1/experiments/{name:str}/decisions",
        **guarded("decide", TAGS, "decide", body=DECIDE),
        responses=also(
            200, response_models.Decided | GuardDecided, "The decision was made before, by the same question."
        )
        | problems(*ABOUT, "decision-conflict", "unknown-catalogue", body=True),
    )
    async def decide(
        name: ExperimentName, request: Request[Any, Any, Any]
    ) -> Response[response_models.Decided | GuardDecided]:
        """Decide one round; it is durable before it is answered."""
        status, decided = await handlers.decide(name, await request.body(), visit_of(request.scope))
        return Response(decided, status_code=status)

    @post(
        "/v1/experiments/{name:str}/decision-batches",
        **guarded("decide", TAGS, "decideBatch", body=BATCH),
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def decide_batch(
        name: ExperimentName, request: Request[Any, Any, Any]
    ) -> response_models.Outcomes | GuardOutcomes:
        """Decide many rounds, each answered on its own, with a decision or with a problem."""
        return await handlers.decide_all(name, await request.body(), visit_of(request.scope))

    @post(
        "/v1/experiments/{name:str}/fallbacks",
        **guarded("decide", TAGS, "bookFallback", body=FALLBACK),
        responses=also(200, response_models.Decided | GuardDecided, "It was booked before.")
        | problems(*ABOUT, "decision-conflict", "decision-settled", "unknown-catalogue", body=True),
    )
    async def fallback(
        name: ExperimentName, request: Request[Any, Any, Any]
    ) -> Response[response_models.Decided | GuardDecided]:
        """Book a round in which the caller played the baseline on its own; one that was decided meanwhile is voided."""
        status, decided = await handlers.book(name, await request.body(), visit_of(request.scope))
        return Response(decided, status_code=status)

    @get(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}",
        **guarded("read", TAGS, "readDecision"),
        responses=problems("unknown-experiment", "unknown-decision", "invalid"),
    )
    async def read_decision(
        name: ExperimentName, decision_id: DecisionId
    ) -> response_models.DecisionRead | GuardDecisionRead:
        """A decision, with the sentence that explains it, what was asked, and the whole proof."""
        opened = await registry.find(name)
        found = await registry.run(opened.experiment.find, decision_id)
        if isinstance(found, GuardAnswer):
            return guard_decision_read(found)
        return response_models.decision_read(found)

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/reward",
        **guarded("decide", TAGS, "reward", body=(request_models.Reward,)),
        status_code=200,
        responses=problems(*ABOUT, *REWARDS, body=True),
    )
    async def reward(
        name: ExperimentName,
        decision_id: DecisionId,
        request: Request[Any, Any, Any],
    ) -> response_models.Received:
        """Hand in the reward of a decision; the same value twice is once."""
        return await handlers.reward(name, decision_id, await request.body(), visit_of(request.scope))

    @post(
        "/v1/experiments/{name:str}/reward-batches",
        **guarded("decide", TAGS, "rewardBatch", body=(request_models.RewardBatch,)),
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def reward_batch(name: ExperimentName, request: Request[Any, Any, Any]) -> response_models.RewardOutcomes:
        """Hand in many rewards, each accepted or refused on its own."""
        data = await body_of(request, request_models.RewardBatch)
        return await handlers.reward_all(name, data.rewards, visit_of(request.scope))

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/abandon",
        **guarded("decide", TAGS, "abandonDecision", body=(request_models.Abandon,)),
        status_code=200,
        responses=problems(*ABOUT, "unknown-decision", "decision-settled", body=True),
    )
    async def abandon(
        name: ExperimentName,
        decision_id: DecisionId,
        request: Request[Any, Any, Any],
    ) -> response_models.Abandoned:
        """Say that a decision's reward will never be learned, so that no other waits for it."""
        data = await body_of(request, request_models.Abandon)
        opened, visit = await registry.find(name), visit_of(request.scope)
        is_new = await registry.run(opened.experiment.abandon, decision_id, reason=data.reason, by=visit.by)
        visit.notes.update(experiment=name, decision_id=decision_id)
        return response_models.Abandoned(decision_id, not is_new, await registry.head(name))

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/void",
        **guarded("decide", TAGS, "voidDecision", body=(request_models.Void,)),
        status_code=200,
        responses=problems(*ABOUT, "unknown-decision", "decision-settled", "decision-conflict", body=True),
    )
    async def void(
        name: ExperimentName,
        decision_id: DecisionId,
        request: Request[Any, Any, Any],
    ) -> response_models.Voided:
        """Say what was really played, so that the ledger is about that; until a reward of the round has come."""
        data = await body_of(request, request_models.Void)
        refuse_depth("action", data.action)
        opened, visit = await registry.find(name), visit_of(request.scope)
        told = {"reason": data.reason, "by": visit.by}
        is_moved = await registry.run(opened.experiment.void, decision_id, data.action, **told)
        visit.notes.update(experiment=name, decision_id=decision_id, is_moved=is_moved)
        return response_models.Voided(decision_id, is_moved, await registry.head(name))

    @post(
        "/v1/experiments/{name:str}/decisions/{decision_id:str}/correction",
        **guarded("admin", TAGS, "correctReward", body=(request_models.Correct,)),
        status_code=200,
        responses=problems(*ABOUT, "unknown-decision", "decision-settled", "decision-conflict", body=True),
    )
    async def correct(
        name: ExperimentName,
        decision_id: DecisionId,
        request: Request[Any, Any, Any],
    ) -> response_models.Correction:
        """Replace a reward that was measured wrongly, until it was learned; afterwards only a fork begins anew."""
        data = await body_of(request, request_models.Correct)
        opened, visit = await registry.find(name), visit_of(request.scope)
        told = {"reason": data.reason, "by": visit.by}
        is_changed = await registry.run(opened.experiment.correct, decision_id, data.value, **told)
        visit.notes.update(experiment=name, decision_id=decision_id, is_changed=is_changed)
        return response_models.Correction(decision_id, data.value, is_changed, await registry.head(name))

    @post(
        "/v1/experiments/{name:str}/confirmations",
        **guarded("decide", TAGS, "confirmDecisions", body=(request_models.Confirm,)),
        status_code=200,
        responses=problems(*ABOUT, body=True),
    )
    async def confirm(name: ExperimentName, request: Request[Any, Any, Any]) -> response_models.Confirmation:
        """Say of decisions that they were played; a question can say it of earlier ones, too (`confirms`)."""
        data = await body_of(request, request_models.Confirm)
        opened = await registry.find(name)
        confirmed = await registry.run(opened.experiment.confirm, data.decision_ids)
        visit_of(request.scope).notes.update(experiment=name, confirmed=confirmed)
        return response_models.Confirmation(confirmed, await registry.head(name))

    return [decide, decide_batch, fallback, read_decision, reward, reward_batch, abandon, void, correct, confirm]
