"""What a page shows of an experiment: its picture, its last decisions, its beliefs, its alarms; and all of it, live."""

import asyncio
import time
from collections.abc import AsyncIterator

import msgspec
from litestar import get
from litestar.handlers import HTTPRouteHandler
from litestar.response import Stream

from surefoot.experiment import Answer
from surefoot.service import response_models
from surefoot.service.alarms import Alarm, Alarms, Assumptions, alarms_of, assumptions_of
from surefoot.service.coefficients import Beliefs, beliefs_of
from surefoot.service.history import Point
from surefoot.service.problems import ProblemError, encode
from surefoot.service.registry import Room, Rooms
from surefoot.service.routes.parameters import ExperimentName, Limit
from surefoot.service.routes.route_options import guarded, problems

TAGS = ["reading"]
LOOK_SECONDS, BREATH_SECONDS = 0.5, 15.0  # between two looks at an experiment, and two signs of life


class Picture(msgspec.Struct):
    """Where an experiment stood over time, oldest first."""

    points: list[Point]


class Decisions(msgspec.Struct):
    """The last decisions, the newest first."""

    decisions: list[response_models.Decided]


class Live(msgspec.Struct):
    """One message of the live stream; the first holds everything, later ones only points and decisions that are new."""

    summary: response_models.Summary
    points: list[Point]
    decisions: list[response_models.Decided]
    beliefs: Beliefs
    alarms: list[Alarm]


def routes(rooms: Rooms, stopping: asyncio.Event) -> list[HTTPRouteHandler]:
    """The handlers."""
    unknown = problems("unknown-experiment")
    following: set[object] = set()

    async def seen(name: str) -> Room:
        room = await rooms.find(name)
        await rooms.run(room.look)
        return room

    @get("/v1/experiments/{name:str}/history", **guarded("read", TAGS, "readHistory"), responses=unknown)
    async def history(name: ExperimentName) -> Picture:
        """Floor, guaranteed and estimated reward over time."""
        return Picture((await seen(name)).picture.points)

    @get("/v1/experiments/{name:str}/decisions", **guarded("read", TAGS, "listDecisions"), responses=unknown)
    async def decisions(name: ExperimentName, limit: Limit = 20) -> Decisions:
        """The last decisions, each with the sentence that explains it."""
        return Decisions([told(answer) for answer in await rooms.run((await rooms.find(name)).newest, limit)])

    @get("/v1/experiments/{name:str}/beliefs", **guarded("read", TAGS, "readBeliefs"), responses=unknown)
    async def beliefs(name: ExperimentName) -> Beliefs:
        """What the learner believes: each coordinate of theta, or each arm, with its interval."""
        room = await rooms.find(name)
        return await rooms.run(lambda: beliefs_of(room.experiment.policy_state()))

    @get("/v1/experiments/{name:str}/alarms", **guarded("read", TAGS, "readAlarms"), responses=unknown)
    async def alarms(name: ExperimentName) -> Alarms:
        """What somebody should look at."""
        room = await rooms.find(name)
        return Alarms(alarms_of(await rooms.run(room.look)))

    @get("/v1/experiments/{name:str}/assumptions", **guarded("read", TAGS, "readAssumptions"), responses=unknown)
    async def assumptions(name: ExperimentName) -> Assumptions:
        """What the guarantee rests on."""
        return Assumptions(assumptions_of((await rooms.find(name)).experiment.settings))

    @get(
        "/v1/experiments/{name:str}/live",
        **guarded("read", TAGS, "followExperiment"),
        media_type="text/event-stream",
        responses=problems("unknown-experiment", "busy"),
    )
    async def live(name: ExperimentName) -> Stream:
        """Server-sent events: an `update` (see `Live`) at once, and then whenever something has happened."""
        room = await rooms.find(name)
        if len(following) >= rooms.settings.limits.live:
            raise ProblemError("busy", "Too many pages follow experiments already.", Retry_After="10")
        return Stream(follow(room), media_type="text/event-stream", headers={"Cache-Control": "no-store"})

    async def follow(room: Room) -> AsyncIterator[bytes]:
        ticket, events, told = object(), -1, 0.0
        following.add(ticket)
        try:
            while not stopping.is_set():
                status = await rooms.run(room.look)
                if status.events != events:
                    yield b"event: update\ndata: " + encode(await rooms.run(message, room, events)) + b"\n\n"
                    events, told = status.events, time.monotonic()
                elif time.monotonic() - told > BREATH_SECONDS:
                    yield b": still here\n\n"
                    told = time.monotonic()
                await _until(stopping, LOOK_SECONDS)
        finally:
            following.discard(ticket)

    def message(room: Room, after: int) -> Live:
        status = room.look()
        return Live(
            summary=response_models.summary(status, room.experiment.settings),
            points=room.picture.since(after),
            decisions=[told(answer) for answer in room.newest(20, after=after)],
            beliefs=beliefs_of(room.experiment.policy_state()),
            alarms=alarms_of(status),
        )

    return [history, decisions, beliefs, alarms, assumptions, live]


def told(answer: Answer) -> response_models.Decided:
    """A decision with its whole sentence."""
    return response_models.decided(answer, response_models.explained(answer))


async def _until(event: asyncio.Event, seconds: float) -> None:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except TimeoutError:
        return
