"""For those who run the service: is it alive, is it ready, what does it count, and what do its problems mean."""

import asyncio
import time
from typing import Any

import msgspec
from litestar import MediaType, Request, Response, get
from litestar.handlers import HTTPRouteHandler
from litestar.openapi.datastructures import ResponseSpec

from surefoot.service.authorization import visit_of
from surefoot.service.health import Health
from surefoot.service.metrics import Metrics
from surefoot.service.problems import KINDS, ProblemError
from surefoot.service.registry import Registry
from surefoot.service.routes.route_options import TOKEN, ProblemWord, guarded, problems
from surefoot.service.tokens import ROLES, Role, TokenFile

TAGS = ["operations"]
EXPIRES_SOON = 14 * 86_400.0  # seconds; the alert says the same


class Life(msgspec.Struct):
    """That the process answers."""

    status: str


class Access(msgspec.Struct):
    """What the caller may do; `is_open` where nobody is asked for a token. Events name the caller as `by` says.

    `experiments` are the only ones that the token is for; null for all. `expiring` are ids of tokens that expire within
    two weeks, and when, in seconds since 1970: the caller's own, and for an admin everybody's.
    """

    roles: list[Role]
    is_open: bool
    by: str = ""
    experiments: list[str] | None = None
    expiring: dict[str, float] = {}


class ProblemKind(msgspec.Struct):
    """What a problem's type stands for."""

    type: str
    title: str
    status: int
    advice: str


def routes(registry: Registry, metrics: Metrics, tokens: TokenFile | None) -> list[HTTPRouteHandler]:
    """The handlers."""

    @get("/livez", tags=TAGS, operation_id="isAlive")
    async def livez() -> Life:
        """Whether the process answers."""
        return Life("alive")

    @get(
        "/readyz",
        tags=TAGS,
        operation_id="isReady",
        responses={503: ResponseSpec(Health, description="Not ready", generate_examples=False)},
    )
    async def readyz() -> Response[Health]:
        """Whether a decision would be durable now; and what is known of the clock and of damaged experiments."""
        found = registry.health.read()
        return Response(found, status_code=200 if found.status == "ready" else 503)

    @get(
        "/metrics",
        **guarded("metrics", TAGS, "readMetrics"),
        media_type=MediaType.TEXT,
        responses=problems(),
    )
    async def read_metrics() -> Response[str]:
        """Metrics in Prometheus' text format."""
        # In a thread, but none of those that may wait for the journal.
        page = await asyncio.to_thread(metrics.page)
        return Response(page.decode(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @get("/v1/access", security=TOKEN, tags=TAGS, operation_id="readAccess", responses=problems())
    async def access(request: Request[Any, Any, Any]) -> Access:
        """What the caller's token allows."""
        visit = visit_of(request.scope)
        roles = [role for role in ROLES if role in visit.roles or "admin" in visit.roles]
        only = None if visit.experiments is None else sorted(visit.experiments)
        soon, sees_all = time.time() + EXPIRES_SOON, "admin" in visit.roles
        expiries = {} if tokens is None else tokens.expiries()
        expiring = {one: at for one, at in expiries.items() if at < soon and (sees_all or one == visit.token)}
        return Access(roles, registry.settings.is_open, visit.by, only, expiring)

    @get(
        "/problems/{word:str}",
        tags=TAGS,
        operation_id="explainProblem",
        responses=problems(),
    )
    async def explain(word: ProblemWord) -> ProblemKind:
        """What a problem's type stands for, and what to do about it."""
        if word not in KINDS:
            raise ProblemError("not-found")
        status, title, advice = KINDS[word]
        return ProblemKind(f"/problems/{word}", title, status, advice)

    return [livez, readyz, read_metrics, access, explain]
