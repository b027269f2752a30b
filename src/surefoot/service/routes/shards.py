"""Shards that share a promise: who is there, what each may lose, and edges, which decide in an app's own process."""

from typing import Annotated, Any

import msgspec
from litestar import Request, get, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter

from surefoot.errors import DecisionError, InputError
from surefoot.experiment import HubStatus
from surefoot.service.authorization import visit_of
from surefoot.service.edges import Edges
from surefoot.service.problems import ProblemError
from surefoot.service.registry import Registry
from surefoot.service.requests import LoseShard, body_of
from surefoot.service.routes.route_options import ExperimentName, guarded, problems
from surefoot.service.shared_experiments import leases_of
from surefoot.sharing.edge_messages import EdgeOrigin, EdgeStanding, JoinEdge, UploadEvents

TAGS = ["shards"]
ShardName = Annotated[str, PathParameter(description="The shard's name.", max_length=200)]


class Shards(msgspec.Struct):
    """Who shares an experiment's promise; null where it has one ledger."""

    hub: HubStatus | None


def routes(registry: Registry) -> list[HTTPRouteHandler]:
    """The handlers."""
    edges = Edges(registry)

    @get(
        "/v1/experiments/{name:str}/shards",
        **guarded("read", TAGS, "readShards"),
        responses=problems("unknown-experiment"),
    )
    async def read(name: ExperimentName) -> Shards:
        """Who shares the experiment's floor, and what each of them is leased."""
        leases = (await registry.find(name)).experiment.leases
        return Shards(None if leases is None else await registry.run(leases.status))

    @post(
        "/v1/experiments/{name:str}/shards/{shard:str}/loss",
        **guarded("admin", TAGS, "loseShard", body=LoseShard),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "outcome-unknown", body=True),
    )
    async def lose(request: Request[Any, Any, Any], name: ExperimentName, shard: ShardName) -> Shards:
        """Stop waiting for the rounds of a shard or an edge that is gone; its lease stays charged."""
        data, visit = await body_of(request, LoseShard), visit_of(request.scope)
        leases = leases_of((await registry.find(name)).experiment)
        await registry.run(leases.hub.lose, shard, reason=data.reason, by=visit.by)
        visit.notes.update(experiment=name, shard=shard)
        return Shards(await registry.run(leases.status))

    @post(
        "/v1/experiments/{name:str}/shards/{shard:str}/departure",
        **guarded("admin", TAGS, "leaveFloor"),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "rounds-open", "outcome-unknown"),
    )
    async def leave(request: Request[Any, Any, Any], name: ExperimentName, shard: ShardName) -> Shards:
        """Have this server hand in its last rounds and leave for good: only the baseline plays here from then on."""
        experiment, visit = (await registry.find(name)).experiment, visit_of(request.scope)
        leases, own = leases_of(experiment), experiment.settings.shard
        if shard != own:
            raise InputError(
                f"A server leaves by itself, but {shard!r} was asked of {own!r}. Ask that one; one that is gone is "
                "lost (`loss`)."
            )
        try:
            await registry.run(leases.leave)
        except DecisionError as error:
            raise ProblemError("rounds-open", str(error)) from None
        visit.notes.update(experiment=name, shard=shard)
        return Shards(await registry.run(leases.status))

    @get(
        "/v1/experiments/{name:str}/edges",
        **guarded("decide", TAGS, "readHub"),
        responses=problems("unknown-experiment", "not-sharded"),
    )
    async def hub(name: ExperimentName) -> EdgeOrigin:
        """What an edge begins its chain with."""
        return await registry.run(edges.read, (await registry.find(name)).experiment)

    @post(
        "/v1/experiments/{name:str}/edges",
        **guarded("decide", TAGS, "joinEdge", body=JoinEdge),
        responses=problems("unknown-experiment", "not-sharded", body=True),
    )
    async def join(request: Request[Any, Any, Any], name: ExperimentName) -> EdgeStanding:
        """Let an edge in, by a new name: its first lease, signed. The same again for the same token."""
        data, experiment = await body_of(request, JoinEdge), (await registry.find(name)).experiment
        return await registry.run(edges.join, experiment, data, by=visit_of(request.scope).by)

    @post(
        "/v1/experiments/{name:str}/edges/{shard:str}/events",
        **guarded("decide", TAGS, "uploadEvents", body=UploadEvents),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "broken-assumption", body=True),
    )
    async def upload(request: Request[Any, Any, Any], name: ExperimentName, shard: ShardName) -> EdgeStanding:
        """Take in the next events of an edge, each made once more; its next lease, once one is handed in whole."""
        data, experiment = await body_of(request, UploadEvents), (await registry.find(name)).experiment
        return await registry.run(edges.take, experiment, shard, data)

    return [read, lose, leave, hub, join, upload]
