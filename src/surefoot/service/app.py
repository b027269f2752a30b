"""The app: what every request passes on its way in and every answer on its way out, and the routes between them.

In: an id, the host or the token, the rate, the size. Out: security headers, one line in the log, one count in the
metrics. Of what a caller sent, only method and route are logged. Decisions and rewards, which apps send all the time,
are served here without the layers of the framework, which cost more than half of what a decision takes; their routes
describe them in the OpenAPI document, and serve other spellings of their addresses in the same way.
"""

import asyncio
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import msgspec
from litestar import Litestar, Request, Response
from litestar.exceptions import HTTPException
from litestar.openapi import OpenAPIConfig
from litestar.openapi.spec import Components, SecurityScheme, Tag
from litestar.types import Message, Receive, Send

import surefoot
from surefoot.errors import SurefootError
from surefoot.rounds import Answer, Receipt
from surefoot.service import page
from surefoot.service.authorization import KEY, OPEN, LogIns, RequestScope, visit_of
from surefoot.service.catalogues import Catalogues
from surefoot.service.logs import RequestLog, log, standard_error
from surefoot.service.metrics import Metrics
from surefoot.service.openapi import DocumentPlugin, methods_of
from surefoot.service.problems import MEDIA_TYPE, Fault, ProblemDetails, ProblemError, encode, of_error, problem
from surefoot.service.rate_limit import RateLimiter
from surefoot.service.registry import Registry
from surefoot.service.requests import READ_REWARD, read_body, too_deep
from surefoot.service.routes import decisions, experiments, flags, heads, monitoring, operations, shards
from surefoot.service.routes.decisions import ROLE, Handlers
from surefoot.service.settings import Settings, is_loopback
from surefoot.service.trusted_clock import TrustedClock

DESCRIPTION = """Safe decisions over HTTP: a learner plays only what is proved to keep the declared share of what the
baseline would have earned. Every decision is durable before it is answered, and may be asked for again with the same
`decision_id`. Errors are problem details (RFC 9457), whose `type` is stable and explained at its own address."""

# The page loads nothing from elsewhere, and nobody may frame it; plotly writes style attributes into its charts.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; "
    "frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
]
# Answers that hold data only, and are never shown as a page.
BRIEF = [
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
]
DATA = [(b"content-type", b"application/json"), *BRIEF]
PROBES = ("/livez", "/readyz")
PUBLIC = ("/livez", "/readyz", "/api", "/openapi.json", "/static/", "/problems/", "/favicon.ico")
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
PATHS = re.compile(r"/v1/experiments/(?P<name>[^/]{1,200})/decisions(?:/(?P<id>[^/]{1,200})/reward)?")
TEMPLATES = ("/v1/experiments/{name}/decisions", "/v1/experiments/{name}/decisions/{decision_id}/reward")
REFUSALS: tuple[type[Exception], ...] = (ProblemError, SurefootError, asyncio.QueueFull)


class Service:
    """The ASGI app of one server. `stopping` ends live streams, which would otherwise delay a stop."""

    def __init__(
        self,
        settings: Settings,
        *,
        write: Callable[[bytes], object] | None = standard_error,
        clock: TrustedClock | None = None,
    ) -> None:
        self.requests = RequestLog(write, settings.log)
        self.settings, self.stopping = settings, asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.registry = registry = Registry(settings, clock=clock)
        self.log_ins = LogIns(settings)
        self.metrics = Metrics(registry.statuses, registry.health, registry.heads, registry.waiting, self.log_ins)
        self.catalogues = Catalogues(registry)
        self.handlers = Handlers(registry, self.catalogues, self.metrics)
        self.litestar = _litestar(self)
        self._rates = RateLimiter(settings.limits.rate, settings.limits.burst)
        # Drawn once: a prefix and a count are as unique as random ids, and cost nothing.
        self._prefix, self._count = secrets.token_hex(4), 0

    async def start(self) -> None:
        """Open the journal."""
        self._loop = asyncio.get_running_loop()
        if self.log_ins.issuer is not None:
            self.log_ins.issuer.refresh()
        await self.registry.start()

    def stop(self) -> None:
        """End live streams; may be called from any thread, and from a signal handler."""
        if self._loop is not None and not self._loop.is_closed():
            # An asyncio.Event must be set in its own loop.
            self._loop.call_soon_threadsafe(self.stopping.set)

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.litestar(scope, receive, send)
            return
        began = time.perf_counter()
        self._count += 1
        visit = scope[KEY] = RequestScope(f"{self._prefix}-{self._count}")
        out = _Response(send, visit.request_id)
        try:
            self._admit(scope, visit)
            match = PATHS.fullmatch(scope["path"]) if scope["method"] == "POST" else None
            if match is None:
                await self._route(scope, await self._read(receive), receive, out)
                return
            name, decision_id = match.groups()
            # Set before anything is refused, so that refusals are counted under their route as well.
            scope["path_template"] = TEMPLATES[decision_id is not None]
            visit.check_role(ROLE)
            body = await self._read(receive)
            answer: Answer | Receipt
            if decision_id is None:
                answer = await self.handlers.decide(name, body, visit)
            else:
                answer = await self.handlers.reward(name, decision_id, read_body(READ_REWARD, body).value, visit)
            is_new = decision_id is None and not answer.is_repeat
            await out.whole(201 if is_new else 200, encode(answer), DATA)
        except REFUSALS as error:
            refusal = _refusal(error, visit)
            await out.refuse(refusal, flags.unreadable(scope["path"], refusal.problem))
        except asyncio.CancelledError:
            if visit.waits_for is None or not visit.waits_for.cancelled():
                raise
            await out.refuse(ProblemError("timeout"))  # its caller has hung up, who hears nothing of it
        except Exception:
            log.exception("unexpected error", extra={"request_id": visit.request_id})
            # Once the head is sent no other answer can follow.
            if not out.status:
                await out.refuse(ProblemError("internal"))
        finally:
            self._note(scope, visit, out.status, time.perf_counter() - began)

    def _admit(self, scope: Any, visit: RequestScope) -> None:
        """Refuse what its head alone says is not to be served."""
        path, headers = scope["path"], dict(scope["headers"])
        if path not in PROBES:  # no limit must keep a server from being found well
            address = (scope.get("client") or ("", 0))[0]
            if scope["method"] not in ("GET", "HEAD"):
                _refuse_other_sites(headers)
            if self.settings.is_open:
                _refuse_host(headers)
                visit.roles = OPEN
                self._spend(address, visit)
            elif path == "/" or path.startswith(PUBLIC):
                self._rates.spend(address)
            else:
                self._authorize(path, headers, address, visit)
        length = headers.get(b"content-length", b"0")
        has_body = scope["method"] in ("POST", "PUT", "PATCH") and (length != b"0" or b"transfer-encoding" in headers)
        # A body must be declared as JSON, which the form of another site cannot do without a preflight request.
        if has_body and headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            raise ProblemError("media-type")
        if length.isdigit() and int(length) > self.settings.limits.body_bytes:
            raise self._too_large()

    def _authorize(self, path: str, headers: dict[bytes, bytes], address: str, visit: RequestScope) -> None:
        visit.find, token = partial(self.log_ins.find, _presented(headers)), None
        try:
            token = visit.find()
        finally:  # of whoever is refused, too: guessing is limited
            self._spend(address if token is None else token.id, visit)
        visit.admit(token)
        visit.check_path(path)

    def _spend(self, caller: str, visit: RequestScope) -> None:
        self._rates.spend(caller)
        visit.charge = partial(self._rates.charge, caller)

    async def _read(self, receive: Receive) -> bytes:
        """The body, up to a size; one that ends early came too slowly, or not at all."""
        body, is_whole = bytearray(), False
        while not is_whole:
            message: Any = await receive()
            if message["type"] == "http.disconnect":
                raise ProblemError("timeout", Connection="close")
            body += message.get("body", b"")
            if len(body) > self.settings.limits.body_bytes:
                raise self._too_large()
            is_whole = not message.get("more_body", False)
        return bytes(body)

    def _too_large(self) -> ProblemError:
        # The rest of the body is still on its way: this connection cannot take another request.
        return ProblemError(
            "too-large", f"A body has at most {self.settings.limits.body_bytes} bytes.", Connection="close"
        )

    async def _route(self, scope: Any, body: bytes, receive: Receive, out: "_Response") -> None:
        """Serve by a route of the framework."""
        if scope["method"] == "OPTIONS" and (allowed := methods_of(self.litestar, scope["path"])):
            await out.whole(204, b"", [(b"allow", ", ".join(allowed).encode()), *HEADERS])
            return
        if scope["method"] == "HEAD" and scope["path"] in PROBES:
            # Answered as a GET: uvicorn knows by its own scope that no body is to be sent.
            scope = {**scope, "method": "GET"}
        whole: list[Any] = [{"type": "http.request", "body": body, "more_body": False}]

        async def received() -> Any:
            return whole.pop() if whole else await receive()

        await self.litestar(scope, received, out.send)

    def _note(self, scope: Any, visit: RequestScope, status: int, seconds: float) -> None:
        route = scope.get("path_template") or "unmatched"
        # Words that callers make up would fill the metrics with series.
        method = scope["method"] if scope["method"] in METHODS else "other"
        self.metrics.answered(method, route, status, seconds)
        fields = {
            "request_id": visit.request_id,
            "method": method,
            "route": route,
            "status": status,
            "seconds": round(seconds, 6),
            "token": visit.token,
            **visit.notes,
        }
        if status in (401, 403):  # elsewhere an address is personal data that nobody asked for
            fields["address"] = (scope.get("client") or ("", 0))[0]
        if not self.settings.log_ids:  # callers' own words are logged only where they are asked for
            fields.pop("decision_id", None)
        self.requests.note(fields)


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
            *operations.routes(registry, metrics, service.log_ins.tokens),
            *shards.routes(registry),
            *page.handlers(),
        ],
        lifespan=[lifespan],
        exception_handlers={
            **dict.fromkeys(REFUSALS, _on_refusal),
            HTTPException: _on_http,
            RecursionError: _on_depth,
            Exception: _on_mistake,
        },
        request_max_body_size=None,  # it was counted where it was read
        openapi_config=OpenAPIConfig(
            title="surefoot",
            version=surefoot.__version__,
            description=DESCRIPTION,
            path="/openapi.json",
            use_handler_docstrings=True,
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


def _answer(
    request: Request[Any, Any, Any], what: ProblemDetails, headers: dict[str, str] | None = None
) -> Response[bytes]:
    named = msgspec.structs.replace(what, request_id=visit_of(request.scope).request_id)
    body = msgspec.json.encode(named)
    return Response(body, status_code=what.status, media_type=MEDIA_TYPE, headers=headers)


def _on_refusal(request: Request[Any, Any, Any], error: Exception) -> Response[bytes]:
    refusal = _refusal(error, visit_of(request.scope))
    return _answer(request, refusal.problem, refusal.headers)


def _on_depth(request: Request[Any, Any, Any], error: RecursionError) -> Response[bytes]:
    return _answer(request, too_deep().problem)


WORDS = {401: "no-token", 403: "not-allowed", 404: "not-found", 405: "method-not-allowed", 413: "too-large"}


def _on_http(request: Request[Any, Any, Any], error: HTTPException) -> Response[bytes]:
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


class _Response:
    """The answer, with the headers that every answer has."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self.status = send, 0
        self._id = (b"x-request-id", request_id.encode())

    async def send(self, message: Message) -> None:
        """A message of the framework."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *HEADERS, self._id]
        await self._send(message)

    async def whole(self, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
        self.status = status
        headers = [*headers, (b"content-length", b"%d" % len(body)), self._id]
        await self._send({"type": "http.response.start", "status": status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def refuse(self, error: ProblemError, failure: flags.EvaluationFailure | None = None) -> None:
        headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        if failure is not None:
            await self.whole(400, encode(failure), [*headers, *DATA])
            return
        body = encode(msgspec.structs.replace(error.problem, request_id=self._id[1].decode()))
        await self.whole(error.problem.status, body, [*headers, (b"content-type", MEDIA_TYPE.encode()), *HEADERS])


def _refusal(error: Exception, visit: RequestScope) -> ProblemError:
    """The answer to an error; failures on our side are only logged."""
    if isinstance(error, ProblemError):
        if error.problem.status in (401, 403):
            visit.notes["reason"] = error.problem.detail
        return error
    if isinstance(error, asyncio.QueueFull):
        return ProblemError("busy", str(error))
    assert isinstance(error, SurefootError)
    answer = of_error(error)
    if answer.status >= 500:
        log.error("the journal failed", extra={"error": type(error).__name__, "detail": str(error)})
    return ProblemError.of(answer)


def _presented(headers: dict[bytes, bytes]) -> str | None:
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def _refuse_host(headers: dict[bytes, bytes]) -> None:
    """Refuse DNS rebinding: pages of other sites must not reach a server without tokens under a name of theirs."""
    # Latin-1 decodes any bytes, so that a strange header is refused and not an error of ours.
    host = headers.get(b"host", b"").decode("latin-1")
    name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
    if not is_loopback(name.lower()) or not _is_same_origin(headers):
        raise ProblemError("wrong-host")


def _refuse_other_sites(headers: dict[bytes, bytes]) -> None:
    """Refuse what the page of another site sends: a proxy that logs people in adds their log-in to that, too."""
    site = headers.get(b"sec-fetch-site")  # set by browsers alone, and true even where a proxy has changed the host
    if not _is_same_origin(headers) if site is None else site not in (b"same-origin", b"none"):
        raise ProblemError("other-site")


def _is_same_origin(headers: dict[bytes, bytes]) -> bool:
    """Whether a page of this server asks, or a program, which names no origin."""
    origin = headers.get(b"origin")
    return not origin or origin.lower().partition(b"://")[2] == headers.get(b"host", b"").lower()
