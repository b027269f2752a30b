"""Rank and Reward, as users of Azure Personalizer have them in their code: point the endpoint at an experiment.

The first action is what the app does today, the baseline. An event that is ranked with `deferActivation` may never be
shown, so that the learner has no say in it: the baseline is ranked first, and the round counts when it is activated.
"""

from collections import OrderedDict
from typing import Annotated, Any

import msgspec
from litestar import Request, Response, post
from litestar.handlers import HTTPRouteHandler
from msgspec import Meta

from surefoot.errors import DecisionConflictError, DecisionError, InputError
from surefoot.experiment import Question
from surefoot.ids import new_id
from surefoot.service import request_models
from surefoot.service.authorization import visit_of
from surefoot.service.feature_hashing import hashed
from surefoot.service.handlers import Handlers
from surefoot.service.metrics import Metrics
from surefoot.service.problems import Fault, ProblemError
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.request_bodies import body_of
from surefoot.service.routes.route_options import EventId, ExperimentName, Version, guarded, problems

TAGS = ["personalizer"]
BASE = "/v1/experiments/{name:str}/personalizer/{version:str}"
MOST_DEFERRED, MOST_NUMBERS = 10_000, 5_000_000  # events, and features of all of them together
ABOUT = ("unknown-experiment", "broken-assumption", "busy", "outcome-unknown")


class RankableAction(msgspec.Struct):
    """An action and its features, in nested JSON."""

    id: Annotated[str, Meta(min_length=1, max_length=200)]
    features: list[dict[str, Any]] = []


class RankRequest(msgspec.Struct):
    """Rank actions; the first of them is what would be shown today."""

    actions: Annotated[list[RankableAction], Meta(min_length=1)]
    contextFeatures: list[dict[str, Any]] = []  # noqa: N815
    excludedActions: list[str] = []  # noqa: N815
    eventId: request_models.Identifier | None = None  # noqa: N815
    deferActivation: bool = False  # noqa: N815


class RankedAction(msgspec.Struct):
    """An action, and the probability with which it is shown: decisions here are not drawn, so 1 or 0."""

    id: str
    probability: float


class RankResponse(msgspec.Struct):
    """`rewardActionId` is to be shown, and its reward to be sent for `eventId`."""

    ranking: list[RankedAction]
    eventId: str  # noqa: N815
    rewardActionId: str  # noqa: N815


class RewardRequest(msgspec.Struct):
    """The reward of what was shown."""

    value: float


def routes(registry: Registry, handlers: Handlers, metrics: Metrics) -> list[HTTPRouteHandler]:
    """The handlers."""
    limits = registry.settings.limits
    deferred: OrderedDict[tuple[str, str], Question] = OrderedDict()
    numbers = 0

    def question(opened: OpenExperiment, data: RankRequest) -> Question:
        if opened.is_guard:
            raise InputError("`actions` are not ranked by a guard: POST its `baseline` and `proposal` to /decisions.")
        names = [action.id for action in data.actions]
        if len(names) > limits.actions:
            rule = f"at most {limits.actions} actions are taken, but got {len(names)}"
            raise ProblemError("invalid", f"In `actions`, {rule}.", [Fault("actions", rule)])
        if data.excludedActions:
            raise InputError("`excludedActions` must be empty: leave out actions that must not be shown.")
        settings = opened.experiment.settings.settings
        features = None
        if "dim" in settings:
            actions = [(action.id, action.features) for action in data.actions]
            bound = float(settings["feature_bound"])
            features = hashed(data.contextFeatures, actions, dim=int(settings["dim"]), bound=bound)
        return Question(features, 0, None, data.eventId or new_id(), names)

    @post(
        f"{BASE}/rank",
        **guarded("decide", TAGS, "rank", body=(RankRequest,)),
        responses=problems(*ABOUT, "decision-conflict", body=True),
    )
    async def rank(name: ExperimentName, version: Version, request: Request[Any, Any, Any]) -> RankResponse:
        """Decide which action to show."""
        data = await body_of(request, RankRequest)
        opened = await registry.find(name)
        # In a thread, since hashing many features takes long enough to hold up other requests.
        asked = await registry.run(question, opened, data)
        event_id, names = str(asked.decision_id), list(asked.actions or ())
        chosen = 0
        if data.deferActivation:
            if await registry.run(is_active, opened, event_id):
                raise DecisionConflictError(f"An event is deferred before it is shown, but {event_id!r} is active.")
            keep(name, event_id, asked)
        else:
            answer = await opened.queue.ask(asked)
            metrics.decided(name, answer)
            chosen = answer.action
        visit_of(request.scope).notes.update(experiment=name, decision_id=event_id)
        order = [chosen, *(index for index in range(len(names)) if index != chosen)]
        ranking = [RankedAction(names[index], 1.0 if index == chosen else 0.0) for index in order]
        return RankResponse(ranking, event_id, names[chosen])

    def is_active(opened: OpenExperiment, event_id: str) -> bool:
        try:
            opened.experiment.find(event_id)
        except DecisionError:
            return False
        return True

    def keep(name: str, event_id: str, asked: Question) -> None:
        nonlocal numbers
        numbers += size_of(asked) - size_of(deferred.pop((name, event_id), None))
        deferred[name, event_id] = asked
        while len(deferred) > MOST_DEFERRED or numbers > MOST_NUMBERS:
            numbers -= size_of(deferred.popitem(last=False)[1])

    def forget(name: str, event_id: str) -> None:
        nonlocal numbers
        numbers -= size_of(deferred.pop((name, event_id), None))

    @post(
        f"{BASE}/events/{{event_id:str}}/activate",
        **guarded("decide", TAGS, "activate"),
        status_code=204,
        responses=problems(*ABOUT, "unknown-decision", "decision-conflict", "invalid"),
    )
    async def activate(
        name: ExperimentName, version: Version, event_id: EventId, request: Request[Any, Any, Any]
    ) -> None:
        """Say that a deferred event was shown: from now on its round counts. An active one stays as it is."""
        opened = await registry.find(name)
        asked = deferred.get((name, event_id))
        # Ranked again meanwhile and so decided, perhaps for the learner: that is what was shown.
        if asked is not None and await registry.run(is_active, opened, event_id):
            forget(name, event_id)
            asked = None
        # Active already, or unknown, which `find` refuses.
        if asked is None:
            await registry.run(opened.experiment.find, event_id)
            if opened.experiment.settings.confirm_within is not None:
                await registry.run(opened.experiment.confirm, [event_id])
            return
        answer = await registry.run(
            opened.experiment.book,
            asked.features,
            baseline=0,
            decision_id=event_id,
            actions=asked.actions,
            by=visit_of(request.scope).by,
        )
        # Only once it is booked: a call that failed may be repeated.
        forget(name, event_id)
        metrics.decided(name, answer)

    @post(
        f"{BASE}/events/{{event_id:str}}/reward",
        **guarded("decide", TAGS, "rewardEvent", body=(RewardRequest,)),
        status_code=204,
        responses=problems(
            *ABOUT, "unknown-decision", "reward-conflict", "reward-too-late", "reward-out-of-range", body=True
        ),
    )
    async def reward(
        name: ExperimentName,
        version: Version,
        event_id: EventId,
        request: Request[Any, Any, Any],
    ) -> Response[None]:
        """Hand in the reward of what was shown."""
        data = await body_of(request, RewardRequest)
        await handlers.hand_in(name, event_id, data.value, visit_of(request.scope))
        return Response(None, status_code=204)

    return [rank, activate, reward]


def size_of(asked: Question | None) -> int:
    """How many numbers a question holds."""
    return 0 if asked is None else int(getattr(asked.features, "size", 1))
