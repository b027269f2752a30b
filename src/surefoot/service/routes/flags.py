"""Experiments as flags: OFREP, by which every SDK of OpenFeature evaluates them, and the gate of a rollout controller.

A flag is an experiment of a guard that was created with its two `actions`. The targeting key is the unit, where the
guard has a `unit_window`: it keeps its side for so many rounds. Evaluating one flag is a decision, for each of which a
reward may come. A bulk evaluation, which SDKs repeat by a timer, decides once for each unit and flag, and then says the
same again until the unit's window is over.
"""

import asyncio
import hashlib
from dataclasses import replace
from typing import Annotated, Any, Literal

import msgspec
from litestar import Request, Response, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import HeaderParameter, PathParameter, QueryParameter

from surefoot.errors import InputError, JournalNotFoundError
from surefoot.rounds import Answer
from surefoot.service.authorization import RequestScope, visit_of
from surefoot.service.problems import ProblemDetails, ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.requests import body_of
from surefoot.service.routes.decisions import ROLE, Handlers
from surefoot.service.routes.route_options import ExperimentName, also, guarded, problems

TAGS = ["flags"]
PATH = "/ofrep/v1/evaluate/flags"
ErrorCode = Literal["FLAG_NOT_FOUND", "PARSE_ERROR", "TARGETING_KEY_MISSING", "INVALID_CONTEXT"]
FlagKey = Annotated[str, PathParameter(description="The experiment's name.")]  # one too long is no flag, either
Share = Annotated[float, QueryParameter(description="The share that the next step needs.", gt=0.0, le=1.0)]
KnownTag = Annotated[str, HeaderParameter(name="If-None-Match", description="The ETag of the last answer.")]


class Evaluate(msgspec.Struct):
    """What a flag is evaluated for: `targetingKey` is whom rewards belong to; nothing else is looked at."""

    context: dict[str, Any] = {}


class Evaluation(msgspec.Struct):
    """A flag's value, by the coin of its guard.

    `variant` is "proposal" or "baseline"; `reason` is "SPLIT", or "DISABLED" while the experiment holds the baseline.
    `metadata` has the `decision_id`, by which rewards are sent, and the `share` that the proposal had.
    """

    key: str
    value: Any
    variant: str
    reason: str
    metadata: dict[str, str | float]


class Evaluations(msgspec.Struct):
    """All flags that a unit has a side of."""

    flags: list[Evaluation]


class EvaluationFailure(msgspec.Struct, rename="camel", omit_defaults=True):
    """Why a flag, or all of them, cannot be evaluated."""

    error_code: ErrorCode
    error_details: str
    key: str | None = None


class Gate(msgspec.Struct):
    """Whether the guard allows a share now, as the web metric of Argo Rollouts reads it.

    `share` is what the next proposal would get, `allowed` the most that is proved to be safe, `binds` the metric that
    allows least. In shadow and paused mode, and while the alarm is on, the gate is closed. `is_costing` says that the
    proposal was shown to do worse, at 95%.
    """

    is_open: bool
    is_costing: bool
    share: float
    allowed: float
    binds: str
    rounds: int


def routes(registry: Registry, handlers: Handlers) -> list[HTTPRouteHandler]:
    """The handlers."""

    @post(
        PATH + "/{name:str}",
        **guarded(ROLE, TAGS, "evaluateFlag", body=Evaluate),
        status_code=200,
        responses=problems("busy", "outcome-unknown", body=True)
        | also(400, EvaluationFailure, "The context is malformed, or lacks a targeting key.")
        | also(404, EvaluationFailure, "No flag has this key."),
    )
    async def evaluate(name: FlagKey, request: Request[Any, Any, Any]) -> Response[Any]:
        """Evaluate one flag: a decision, which is durable before it is answered."""
        visit = visit_of(request.scope)
        if not visit.may_see(name):
            raise ProblemError("not-allowed", "This token is for other experiments.")
        opened = await flag(name)
        if opened is None:
            return _failure(404, "FLAG_NOT_FOUND", f"No experiment {name!r:.80} was created with `actions`.", name)
        try:
            context = (await body_of(request, Evaluate)).context
        except ProblemError as error:
            return _failure(400, "PARSE_ERROR", error.problem.detail, name)
        unit = _unit(context)
        if _has_units(opened) and unit is None:
            return _failure(400, "TARGETING_KEY_MISSING", NO_KEY, name)
        try:
            answer = await decide(name, unit if _has_units(opened) else None, visit)
        except InputError as error:
            return _failure(400, "INVALID_CONTEXT", str(error), name)
        return Response(_evaluation(name, answer))

    @post(
        PATH,
        **guarded(ROLE, TAGS, "evaluateFlags", body=Evaluate),
        status_code=200,
        responses=problems("busy", "outcome-unknown", body=True)
        | also(200, Evaluations, "Every flag with units.")
        | also(304, None, "Nothing has changed since the answer with this ETag.")
        | also(400, EvaluationFailure, "The context is malformed, or lacks a targeting key."),
    )
    async def evaluate_all(request: Request[Any, Any, Any], known: KnownTag = "") -> Response[Any]:
        """Evaluate every flag with units for one of them; its coin falls once, however often it is asked for."""
        visit = visit_of(request.scope)
        try:
            unit = _unit((await body_of(request, Evaluate)).context)
        except ProblemError as error:
            return _failure(400, "PARSE_ERROR", error.problem.detail)
        if unit is None:
            return _failure(400, "TARGETING_KEY_MISSING", NO_KEY)
        visit.waits_for = asyncio.gather(*(side(name, unit, visit) for name in await registry.names()))
        try:
            found = Evaluations([one for one in await visit.waits_for if one is not None])
        except InputError as error:
            return _failure(400, "INVALID_CONTEXT", str(error))
        tag = f'"{hashlib.sha256(msgspec.json.encode(found)).hexdigest()[:32]}"'
        if tag in [one.strip().removeprefix("W/") for one in known.split(",")]:
            return Response(None, status_code=304, headers={"ETag": tag})
        return Response(found, headers={"ETag": tag})

    @get(
        "/v1/experiments/{name:str}/gate",
        **guarded("read", TAGS, "readGate"),
        responses=problems("unknown-experiment", "invalid"),
    )
    async def gate(name: ExperimentName, share: Share) -> Gate:
        """Whether a guard allows a share: what a rollout controller asks before its next step."""
        opened = await registry.find(name)
        status = await registry.run(opened.look)
        if status.guard is None:
            raise InputError(f"A gate is that of a guard, but {name!r} has the policy {status.policy}.")
        guard = status.guard
        is_open = status.mode == "guarded" and not status.is_refuted and guard.share >= share
        is_costing = status.lift is not None and status.lift.is_costing
        return Gate(is_open, is_costing, guard.share, guard.allowed, guard.binds, status.rounds)

    async def side(name: str, unit: str, visit: RequestScope) -> Evaluation | None:
        """The side of a unit, whose coin falls now if it never did; None where there is no such flag."""
        opened = await flag(name) if visit.may_see(name) else None
        if opened is None or not _has_units(opened):
            return None
        answer = await registry.run(opened.experiment.find_unit, unit)
        if answer is None:
            visited = await decide(name, unit, replace(visit, notes={}))
            # Of first polls at the same time one opens the round; all must say the same, as later ones do.
            answer = await registry.run(opened.experiment.find_unit, unit) or visited
        else:
            handlers.evaluated(name, answer)
        return _evaluation(name, answer)

    async def flag(name: str) -> OpenExperiment | None:
        try:
            opened = await registry.find(name)
        except (JournalNotFoundError, InputError):
            return None
        return opened if opened.experiment.settings.actions is not None else None

    async def decide(name: str, unit: str | None, visit: RequestScope) -> Answer:
        try:
            return await handlers.decide(name, msgspec.json.encode({} if unit is None else {"unit": unit}), visit)
        except ProblemError as error:
            if error.problem.status in (400, 422):  # a unit that is none
                raise InputError(error.problem.detail) from None
            raise

    return [evaluate, evaluate_all, gate]


NO_KEY = "`targetingKey` must be in the context: a text that names whom the rewards belong to."


def unreadable(path: str, problem: ProblemDetails) -> EvaluationFailure | None:
    """What OpenFeature's SDKs are answered where a body is refused before it is read: too large, or no JSON."""
    if problem.status not in (413, 415) or not path.startswith(PATH):
        return None
    key = path.removeprefix(PATH).removeprefix("/") or None
    return EvaluationFailure("PARSE_ERROR", problem.detail or problem.title, key)


def _has_units(opened: OpenExperiment) -> bool:
    return opened.experiment.settings.settings.get("unit_window") is not None


def _unit(context: dict[str, Any]) -> str | None:
    unit = context.get("targetingKey")
    return unit if isinstance(unit, str) and unit else None


def _evaluation(name: str, answer: Answer) -> Evaluation:
    metadata: dict[str, str | float] = {"decision_id": answer.decision_id, "share": answer.share or 0.0}
    variant = "proposal" if answer.source == "learner" else "baseline"
    return Evaluation(name, answer.action, variant, "DISABLED" if answer.is_held else "SPLIT", metadata)


def _failure(status: int, code: ErrorCode, details: str, key: str | None = None) -> Response[EvaluationFailure]:
    return Response(EvaluationFailure(code, details, key), status_code=status)
