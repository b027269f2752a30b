"""What a page shows of an experiment: its picture, its last decisions, its beliefs, its alarms; and all of it, live."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import msgspec
from litestar import Request, get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from surefoot.experiment import Answer, GuardAnswer
from surefoot.service import response_models
from surefoot.service.alarms import Alarm, Alarms, alarms_of
from surefoot.service.assumptions import Assumptions, assumptions_of
from surefoot.service.authorization import visit_of
from surefoot.service.changes import Changes, changes_of
from surefoot.service.coefficients import Beliefs
from surefoot.service.guard_models import GuardDecided, guard_decided
from surefoot.service.history import GuardPoint, Point
from surefoot.service.problems import ProblemError, encode
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.routes.route_options import EventNumber, ExperimentName, Limit, guarded, problems

TAGS = ["reading"]
LOOK_SECONDS, BREATH_SECONDS = 0.5, 15.0  # between two looks at an experiment, and two signs of life


class Picture(msgspec.Struct):
    """Where an experiment stood over time, oldest first."""

    points: list[Point]


class GuardPicture(msgspec.Struct):
    """Where a guard stood over time, oldest first."""

    points: list[GuardPoint]


class Decisions(msgspec.Struct):
    """The last decisions, the newest first."""

    decisions: list[response_models.Decided]


class GuardDecisions(msgspec.Struct):
    """The last decisions of a guard, the newest first."""

    decisions: list[GuardDecided]


class Live(msgspec.Struct):
    """One message of the live stream; the first holds everything, later ones only points and decisions that are new."""

    summary: response_models.Summary
    points: list[Point]
    decisions: list[response_models.Decided]
    beliefs: Beliefs
    alarms: list[Alarm]


class GuardLive(msgspec.Struct):
    """One message of the live stream of a guard, as `Live`; `beliefs` are of kind "none"."""

    summary: response_models.Summary
    points: list[GuardPoint]
    decisions: list[GuardDecided]
    beliefs: Beliefs
    alarms: list[Alarm]


def routes(registry: Registry, stopping: asyncio.Event) -> list[HTTPRouteHandler]:
    """The handlers."""
    unknown = problems("unknown-experiment")
    following: set[object] = set()

    async def seen(name: str) -> OpenExperiment:
        opened = await registry.find(name)
        await registry.run(opened.look)
        return opened

    @get("/v1/experiments/{name:str}/history", **guarded("read", TAGS, "readHistory"), responses=unknown)
    async def history(name: ExperimentName) -> Picture | GuardPicture:
        """Floor, guaranteed and estimated reward over time; of a guard its share and its banks."""
        opened = await seen(name)
        points: Any = opened.history.points
        return GuardPicture(points) if opened.is_guard else Picture(points)

    @get("/v1/experiments/{name:str}/decisions", **guarded("read", TAGS, "listDecisions"), responses=unknown)
    async def decisions(
        name: ExperimentName, limit: Limit = 20, until: EventNumber = None
    ) -> Decisions | GuardDecisions:
        """The last decisions, each with the sentence that explains it; `until` an event, those that were last then."""
        opened = await registry.find(name)
        read = partial(opened.newest, limit) if until is None else partial(opened.until, until, limit)
        found: Any = [told(answer) for answer in await registry.run(read)]
        return GuardDecisions(found) if opened.is_guard else Decisions(found)

    @get("/v1/experiments/{name:str}/beliefs", **guarded("read", TAGS, "readBeliefs"), responses=unknown)
    async def beliefs(name: ExperimentName, until: EventNumber = None) -> Beliefs:
        """What the learner believes: each coordinate of theta, or each arm, with its interval; `until` an event, then.

        The past is kept of up to 40 coordinates or arms; of more it is of kind "none".
        """
        opened = await registry.find(name)
        return await registry.run(opened.beliefs, until)

    @get("/v1/experiments/{name:str}/alarms", **guarded("read", TAGS, "readAlarms"), responses=unknown)
    async def alarms(name: ExperimentName) -> Alarms:
        """What somebody should look at."""
        opened = await registry.find(name)
        return Alarms(alarms_of(await registry.run(opened.look)))

    @get("/v1/experiments/{name:str}/changes", **guarded("read", TAGS, "readChanges"), responses=unknown)
    async def changes(name: ExperimentName, limit: Limit = 20) -> Changes:
        """Who did what: creation, modes, answers to alarms, erasures, corrections, voids; the newest first."""
        await registry.find(name)
        return Changes(await registry.run(lambda: changes_of(registry.journal.view(name), limit)))

    @get("/v1/experiments/{name:str}/assumptions", **guarded("read", TAGS, "readAssumptions"), responses=unknown)
    async def assumptions(name: ExperimentName) -> Assumptions:
        """What the guarantee rests on."""
        return Assumptions(assumptions_of((await registry.find(name)).experiment.settings))

    @get(
        "/v1/experiments/{name:str}/live",
        **guarded("read", TAGS, "followExperiment"),
        media_type="text/event-stream",
        responses=problems("unknown-experiment", "busy"),
    )
    async def live(name: ExperimentName, request: Request[Any, Any, Any]) -> Stream:
        """Server-sent events: an `update` (`Live`, `GuardLive`) at once, and then whenever something has happened.

        The stream ends when the token expires or is revoked.
        """
        opened = await registry.find(name)
        if len(following) >= registry.settings.limits.live:
            raise ProblemError("busy", "Too many pages follow experiments already.", Retry_After="10")
        visit, path = visit_of(request.scope), request.scope["path"]
        updates = follow(opened, lambda: visit.is_still_admitted("read", path))
        return Stream(updates, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def follow(opened: OpenExperiment, is_admitted: Callable[[], bool]) -> AsyncIterator[bytes]:
        # Counted from here on, not in `live`: a stream that never starts would never be taken off again.
        ticket, events, told = object(), -1, 0.0
        following.add(ticket)
        try:
            while is_admitted() and not stopping.is_set():
                status = await registry.run(opened.look)
                if status.events != events:
                    yield b"event: update\ndata: " + encode(await registry.run(message, opened, events)) + b"\n\n"
                    events, told = status.events, time.monotonic()
                elif time.monotonic() - told > BREATH_SECONDS:
                    # A comment, which pages ignore; proxies close connections that say nothing.
                    yield b": still here\n\n"
                    told = time.monotonic()
                await _until(stopping, LOOK_SECONDS)
        finally:
            following.discard(ticket)

    def message(opened: OpenExperiment, after: int) -> Live | GuardLive:
        status = opened.look()
        kind: Any = GuardLive if opened.is_guard else Live
        found: Live | GuardLive = kind(
            summary=response_models.summary(status, opened.experiment.settings),
            points=opened.history.since(after),
            decisions=[told(answer) for answer in opened.newest(20, after=after)],
            beliefs=opened.beliefs(),
            alarms=alarms_of(status),
        )
        return found

    return [history, decisions, beliefs, alarms, changes, assumptions, live]


def told(answer: Answer | GuardAnswer) -> response_models.Decided | GuardDecided:
    """A decision with its whole sentence."""
    if isinstance(answer, GuardAnswer):
        return guard_decided(answer)
    return response_models.decided(answer, response_models.explained(answer))


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
