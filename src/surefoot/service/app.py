"""The app: routes over the registry, problems for errors, and the middleware around it all."""

import asyncio
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme, Tag
from litestar.types import Receive, Scope, Send

import surefoot
from surefoot.errors import SurefootError
from surefoot.experiment import Status
from surefoot.service import page
from surefoot.service.authorization import KEY, visit_of
from surefoot.service.catalogues import Catalogues
from surefoot.service.connections import Connections
from surefoot.service.handlers import Handlers
from surefoot.service.logs import RequestLog, log, standard_error
from surefoot.service.metrics import Metrics
from surefoot.service.middleware import Middleware, as_problem
from surefoot.service.openapi import DocumentPlugin, methods_of
from surefoot.service.problems import MEDIA_TYPE, Fault, Problem, ProblemError, problem
from surefoot.service.registry import Registry
from surefoot.service.requests import too_deep
from surefoot.service.routes import decisions, experiments, flags, heads, monitoring, operations, shards
from surefoot.service.settings import Settings
from surefoot.service.tokens import TokenFile
from surefoot.service.trusted_clock import TrustedClock

DESCRIPTION = """Safe decisions over HTTP: a learner plays only what is proved to keep the declared share of what the
baseline would have earned. Every decision is durable before it is answered, and may be asked for again with the same
`decision_id`. Errors are problem details (RFC 9457), whose `type` is stable and explained at its own address."""


class Service:
    """The ASGI app of one server. `stopping` ends live streams, which would otherwise delay a stop."""

    def __init__(
        self,
        settings: Settings,
        *,
        write: Callable[[bytes], object] | None = standard_error,
        clock: TrustedClock | None = None,
    ) -> None:
        self.requests = RequestLog(write if settings.log in ("debug", "info") else None)
        self.settings, self.stopping = settings, asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.connections = Connections(settings.limits)
        self.registry = Registry(settings, clock=clock)
        tokens = None if settings.tokens is None else TokenFile(settings.tokens)
        registry = self.registry
        self.metrics = Metrics(self._statuses, registry.health, registry.heads, registry.waiting, tokens)
        self.catalogues = Catalogues(self.registry)
        self.handlers = Handlers(self.registry, self.catalogues, self.metrics)
        self.litestar = _litestar(self)
        self._middleware: Any = Middleware(self.litestar, self.handlers, settings, self.metrics, self.requests, tokens)
        if "opentelemetry.sdk" in sys.modules:  # whoever loads it wants spans
            from surefoot.integrations.otel import TracedApp

            self._middleware = TracedApp(self._middleware, KEY)

    async def start(self) -> None:
        """Open the journal."""
        self._loop = asyncio.get_running_loop()
        await self.registry.start()

    def stop(self) -> None:
        """End live streams; may be called from any thread, and from a signal handler."""
        if self._loop is not None and not self._loop.is_closed():
            # An asyncio.Event must be set in its own loop.
            self._loop.call_soon_threadsafe(self.stopping.set)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve."""
        await self._middleware(scope, receive, send)

    def _statuses(self) -> list[Status]:
        return [status for _, status in self.registry.looked()]


def create_app(settings: Settings, *, write: Callable[[bytes], object] | None = standard_error) -> Service:
    """The ASGI app of a server with these settings, for `serve` or for another ASGI server.

    Parameters
    ----------
    settings : Settings
        The server's settings.
    write : callable, optional
        Where request logs go, as bytes; standard error by default, None for nowhere.

    Returns
    -------
    Service
        The app.

    Raises
    ------
    ConfigError
        If no server can run with these settings.

    Examples
    --------
    >>> create_app(Settings(), write=None).settings.port
    8080
    """
    settings.check()
    return Service(settings, write=write)


def _litestar(service: Service) -> Litestar:
    registry, metrics = service.registry, service.metrics

    @asynccontextmanager
    async def lifespan(_: Litestar) -> AsyncIterator[None]:
        await service.start()
        try:
            yield
        finally:
            service.stopping.set()
            # Streams are told to end first, since they read the journal; the last lines of the log come behind it.
            await registry.stop()
            service.requests.flush()

    return Litestar(
        [
            *experiments.routes(registry, service.catalogues),
            *decisions.routes(registry, service.handlers),
            *flags.routes(registry, service.handlers),
            *monitoring.routes(registry, service.stopping),
            *heads.routes(registry),
            *operations.routes(registry, metrics),
            *shards.routes(registry),
            *page.handlers(),
        ],
        lifespan=[lifespan],
        exception_handlers={
            ProblemError: _on_problem,
            SurefootError: _on_error,
            HTTPException: _on_refusal,
            RecursionError: _on_depth,
            Exception: _on_mistake,
        },
        request_max_body_size=None,  # the middleware has counted
        openapi_config=OpenAPIConfig(
            title="surefoot",
            version=surefoot.__version__,
            description=DESCRIPTION,
            path="/openapi.json",
            render_plugins=[DocumentPlugin(path="/")],
            components=Components(
                security_schemes={"token": SecurityScheme(type="http", scheme="bearer", description="A token.")}
            ),
            tags=[
                Tag("experiments", "Create, read and steer experiments."),
                Tag("decisions", "What an app calls: decisions, and their rewards."),
                Tag("flags", "Experiments as flags of OpenFeature, by its protocol OFREP."),
                Tag("shards", "Servers and edges that share one promise."),
                Tag("reading", "What a page shows."),
                Tag("operations", "For those who run the service."),
            ],
        ),
        logging_config=None,  # Litestar would set up logging over ours
    )


def _answer(request: Request[Any, Any, Any], what: Problem, headers: dict[str, str] | None = None) -> Response[bytes]:
    named = msgspec.structs.replace(what, request_id=visit_of(request.scope).request_id)
    body = msgspec.json.encode(named)
    return Response(body, status_code=what.status, media_type=MEDIA_TYPE, headers=headers)


def _on_problem(request: Request[Any, Any, Any], error: ProblemError) -> Response[bytes]:
    return _answer(request, error.problem, error.headers)


def _on_error(request: Request[Any, Any, Any], error: SurefootError) -> Response[bytes]:
    refusal = as_problem(error)
    return _answer(request, refusal.problem, refusal.headers)


def _on_depth(request: Request[Any, Any, Any], error: RecursionError) -> Response[bytes]:
    return _answer(request, too_deep().problem)


WORDS = {401: "no-token", 403: "not-allowed", 404: "not-found", 405: "method-not-allowed", 413: "too-large"}


def _on_refusal(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
    if error.status_code >= 500:
        return _on_mistake(request, error)
    extra = error.extra if isinstance(error.extra, list) else []
    faults = [Fault(str(entry.get("key", "body")), str(entry.get("message", ""))) for entry in extra]
    word = WORDS.get(error.status_code, "malformed")
    # Without a detail the problem gives its own advice, in place of Litestar's words.
    detail = "" if word in ("not-found", "method-not-allowed") else error.detail
    headers = dict(error.headers or {})
    if word == "method-not-allowed":
        headers["Allow"] = ", ".join(methods_of(request.app, request.scope["path"]))
    return _answer(request, problem(word, detail, faults), headers)


def _on_mistake(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    log.error("unexpected error", exc_info=error, extra={"request_id": visit_of(request.scope).request_id})
    return _answer(request, problem("internal"))
