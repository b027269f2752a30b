"""Edges: apps that decide by themselves under a signed lease, and hand in their logs."""

from typing import Annotated, Any

from litestar import Request, post
from litestar.handlers import HTTPRouteHandler
from litestar.params import PathParameter

from surefoot.edge.edge_messages import EdgeLease, HandInEntries, JoinEdge
from surefoot.service.authorization import visit_of
from surefoot.service.catalogues import Catalogues
from surefoot.service.edge_leases import Edges
from surefoot.service.registry import Registry
from surefoot.service.request_bodies import body_of
from surefoot.service.routes.route_options import ExperimentName, guarded, problems

TAGS = ["edges"]
EdgeName = Annotated[str, PathParameter(description="The edge's name.", max_length=90)]


def routes(registry: Registry, catalogues: Catalogues) -> list[HTTPRouteHandler]:
    """The handlers."""
    edges = Edges(registry)

    @post(
        "/v1/experiments/{name:str}/edges",
        **guarded("decide", TAGS, "joinEdge", body=(JoinEdge,)),
        responses=problems("unknown-experiment", "not-sharded", "unknown-catalogue", body=True),
    )
    async def join(request: Request[Any, Any, Any], name: ExperimentName) -> EdgeLease:
        """Let an edge in, by a new name: its first lease, signed. The same again for the same token."""
        asked = await body_of(request, JoinEdge)
        opened = await registry.find(name)
        known = None if asked.catalogue is None else await catalogues.find(opened, asked.catalogue)
        actions = None if known is None else known.bundled()
        return await registry.run(edges.join, opened.experiment, asked, actions, by=visit_of(request.scope).by)

    @post(
        "/v1/experiments/{name:str}/edges/{shard:str}/entries",
        **guarded("decide", TAGS, "handInEntries", body=(HandInEntries,)),
        status_code=200,
        responses=problems("unknown-experiment", "not-sharded", "broken-assumption", body=True),
    )
    async def hand_in(request: Request[Any, Any, Any], name: ExperimentName, shard: EdgeName) -> EdgeLease:
        """Take in the next entries of an edge's log, decided once more; its next lease, once one is handed in whole."""
        given = await body_of(request, HandInEntries)
        return await registry.run(edges.take, (await registry.find(name)).experiment, shard, given)

    return [join, hand_in]
