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

from surefoot.experiment import Status
from surefoot.experiment.beliefs import Beliefs
from surefoot.rounds import Answer
from surefoot.service.assumptions import Assumptions, assumptions_of
from surefoot.service.authorization import visit_of
from surefoot.service.changes import Changes, changes_of
from surefoot.service.notices import Notice, Notices, alarms_of
from surefoot.service.problems import ProblemError, encode
from surefoot.service.registry import OpenExperiment, Registry
from surefoot.service.routes.route_options import EventNumber, ExperimentName, Limit, guarded, problems

TAGS = ["reading"]
LOOK_SECONDS, BREATH_SECONDS = 0.5, 15.0  # between two looks at an experiment, and two signs of life


class Picture(msgspec.Struct):
    """Where an experiment stood over time, oldest first."""

    points: list[Status]


class Decisions(msgspec.Struct):
    """The last decisions, the newest first."""

    decisions: list[Answer]


class Live(msgspec.Struct):
    """One message of the live stream; the first holds everything, later ones of its lists only what is new."""

    status: Status
    points: list[Status]
    decisions: list[Answer]
    beliefs: Beliefs
    alarms: list[Notice]


def routes(registry: Registry, stopping: asyncio.Event) -> list[HTTPRouteHandler]:
    """The handlers."""
    unknown = problems("unknown-experiment")
    following: set[object] = set()

    @get("/v1/experiments/{name:str}/history", **guarded("read", TAGS, "readHistory"), responses=unknown)
    async def history(name: ExperimentName) -> Picture:
        """Floor, guaranteed and estimated reward over time; of a guard its share and its banks."""
        opened = await registry.find(name)
        await registry.run(opened.look)
        return Picture(opened.history.points)

    @get("/v1/experiments/{name:str}/decisions", **guarded("read", TAGS, "listDecisions"), responses=unknown)
    async def decisions(name: ExperimentName, limit: Limit = 20, until: EventNumber = None) -> Decisions:
        """The last decisions, each with the sentence that explains it; `until` an event, those that were last then."""
        opened = await registry.find(name)
        read = partial(opened.newest, limit) if until is None else partial(opened.until, until, limit)
        return Decisions(await registry.run(read))

    @get("/v1/experiments/{name:str}/beliefs", **guarded("read", TAGS, "readBeliefs"), responses=unknown)
    async def beliefs(name: ExperimentName, until: EventNumber = None) -> Beliefs:
        """What the learner believes: each coordinate of theta, or each arm, with its interval; `until` an event, then.

        The past is kept of up to 40 coordinates or arms; of more it is of kind "none".
        """
        opened = await registry.find(name)
        return await registry.run(opened.beliefs, until)

    @get("/v1/experiments/{name:str}/alarms", **guarded("read", TAGS, "readAlarms"), responses=unknown)
    async def alarms(name: ExperimentName) -> Notices:
        """What somebody should look at."""
        opened = await registry.find(name)
        return Notices(alarms_of(await registry.run(opened.look)))

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
        responses=problems("unknown-experiment"),
    )
    async def live(name: ExperimentName, request: Request[Any, Any, Any]) -> Stream:
        """Server-sent events: an `update` (`Live`) at once, and then whenever something has happened.

        The stream ends when the token expires or is revoked.
        """
        opened = await registry.find(name)
        if len(following) >= registry.settings.limits.live:
            raise ProblemError("too-many-requests", "Too many pages follow experiments already.", Retry_After="10")
        visit, path = visit_of(request.scope), request.scope["path"]
        updates = follow(opened, lambda: visit.is_still_admitted("read", path))
        return Stream(updates, media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def follow(opened: OpenExperiment, is_admitted: Callable[[], bool]) -> AsyncIterator[bytes]:
        # Counted from here on, not in `live`: a stream that never starts would never be taken off again.
        ticket, events, sent = object(), -1, 0.0
        following.add(ticket)
        try:
            while is_admitted() and not stopping.is_set():
                status = await registry.run(opened.look)
                if status.events != events:
                    yield b"event: update\ndata: " + encode(await registry.run(message, opened, events)) + b"\n\n"
                    events, sent = status.events, time.monotonic()
                elif time.monotonic() - sent > BREATH_SECONDS:
                    # A comment, which pages ignore; proxies close connections that say nothing.
                    yield b": still here\n\n"
                    sent = time.monotonic()
                await _until(stopping, LOOK_SECONDS)
        finally:
            following.discard(ticket)

    def message(opened: OpenExperiment, after: int) -> Live:
        status = opened.look()
        return Live(
            status=status,
            points=opened.history.since(after),
            decisions=opened.newest(20, after=after),
            beliefs=opened.beliefs(),
            alarms=alarms_of(status),
        )

    return [history, decisions, beliefs, alarms, changes, assumptions, live]


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
