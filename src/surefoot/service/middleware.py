"""The middleware: what every request passes on its way in and every answer on its way out, matched by a route or not.

In: an id, the token, the rate. Out: security headers, one line in the log, one count in the metrics. Of what a caller
sent, only method and route are logged.
"""

import secrets
import time
from functools import partial
from typing import Any

import msgspec
from litestar import Litestar
from litestar.types import Message, Receive, Send

from surefoot.errors import SurefootError
from surefoot.service.authorization import KEY, OPEN, RequestScope
from surefoot.service.handlers import Handlers
from surefoot.service.logs import RequestLog, log
from surefoot.service.metrics import Metrics
from surefoot.service.openapi import methods_of
from surefoot.service.problems import MEDIA_TYPE, ProblemError, encode, of_error
from surefoot.service.rate_limit import RateLimiter
from surefoot.service.settings import Settings, is_loopback
from surefoot.service.tokens import TokenFile

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
PUBLIC = ("/livez", "/readyz", "/openapi.json", "/static/", "/problems/", "/favicon.ico")


class Middleware:
    """The ASGI app around the app."""

    def __init__(
        self,
        app: Litestar,
        handlers: Handlers,
        settings: Settings,
        metrics: Metrics,
        requests: RequestLog,
        tokens: TokenFile | None,
    ) -> None:
        self._handlers, self._requests = handlers, requests
        self._app, self._settings, self._metrics = app, settings, metrics
        self._tokens = tokens
        self._rates = RateLimiter(settings.limits.rate, settings.limits.burst)
        # Drawn once: a prefix and a count are as unique as random ids, and cost nothing.
        self._prefix = secrets.token_hex(4)
        self._count = 0

    async def __call__(self, scope: Any, receive: Receive, send: Send) -> None:
        """Serve one connection."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        self._count += 1
        visit = RequestScope(f"{self._prefix}-{self._count}")
        scope[KEY] = visit
        out = _Response(send, visit)
        try:
            headers = dict(scope["headers"])
            self._admit(scope, headers, visit)
            _refuse_media_type(scope["method"], headers)
            if scope["method"] == "OPTIONS" and (allowed := methods_of(self._app, scope["path"])):
                await out.allow(allowed)
                return
            timely = _RequestBody(receive, headers, self._settings.limits.body_bytes).receive
            if scope["method"] == "HEAD" and scope["path"] in PROBES:
                # Answered as a GET: uvicorn knows by its own scope that no body is to be sent.
                scope = {**scope, "method": "GET"}
            quick = await self._handlers.quick(scope, timely, visit)
            if quick is not None:
                await out.answer(*quick)
            else:
                await self._app(scope, timely, out.send)
        except ProblemError as error:
            await out.refuse(error)
        except SurefootError as error:
            await out.refuse(as_problem(error))
        except Exception:
            log.exception("unexpected error", extra={"request_id": visit.request_id})
            # Once the head is sent no other answer can follow.
            if not out.status:
                await out.refuse(ProblemError("internal"))
        finally:
            self._note(scope, visit, out.status, time.perf_counter() - began)

    def _admit(self, scope: Any, headers: dict[bytes, bytes], visit: RequestScope) -> None:
        if scope["path"] in PROBES:  # no limit must keep a server from being found well
            return
        address = (scope.get("client") or ("", 0))[0]
        if self._tokens is None:
            self._refuse_host(headers)
            visit.roles = OPEN
            self._rates.spend(address)
            return
        presented = _presented(headers)
        token = None if presented is None else self._tokens.find(presented)
        # Before a wrong token is refused, so that guessing is limited, too.
        self._rates.spend(address if token is None else token.id)
        if token is not None:
            visit.find = partial(self._tokens.find, str(presented))
            visit.admit(token)
            visit.check_path(scope["path"])
        elif scope["path"] != "/" and not scope["path"].startswith(PUBLIC):
            if self._tokens.error is not None:  # it may be a new one
                raise ProblemError("tokens-unreadable")
            raise ProblemError("no-token", WWW_Authenticate='Bearer realm="surefoot"')

    def _refuse_host(self, headers: dict[bytes, bytes]) -> None:
        """Refuse DNS rebinding: pages of other sites must not reach a server without tokens under a name of theirs."""
        # Latin-1 decodes any bytes, so that a strange header is refused and not an error of ours.
        host = headers.get(b"host", b"").decode("latin-1")
        name = host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]
        origin = headers.get(b"origin", b"").decode("latin-1").lower()
        if not is_loopback(name.lower()) or (origin and origin.partition("://")[2] != host.lower()):
            raise ProblemError("wrong-host")

    def _note(self, scope: Any, visit: RequestScope, status: int, seconds: float) -> None:
        route = scope.get("path_template") or "unmatched"
        # Words that callers make up would fill the metrics with series.
        method = scope["method"] if scope["method"] in METHODS else "other"
        self._metrics.answered(method, route, status, seconds)
        self._requests.note(
            {
                "request_id": visit.request_id,
                "method": method,
                "route": route,
                "status": status,
                "seconds": round(seconds, 6),
                "token": visit.token,
                **(visit.notes if self._settings.log_ids else _without_ids(visit.notes)),
            }
        )


def _without_ids(notes: dict[str, Any]) -> dict[str, Any]:
    """What is logged of a request unless callers' own words are asked for."""
    return {name: note for name, note in notes.items() if name != "decision_id"}


METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _RequestBody:
    """The body of a request, up to a size; one that ends early came too slowly, or not at all."""

    def __init__(self, receive: Receive, headers: dict[bytes, bytes], most: int) -> None:
        self._receive, self._is_whole, self._size, self._most = receive, False, 0, most
        declared = headers.get(b"content-length", b"0")
        self._check(int(declared) if declared.isdigit() else 0)

    def _check(self, size: int) -> None:
        if size > self._most:
            # The rest of the body is still on its way: this connection cannot take another request.
            raise ProblemError("too-large", f"A body has at most {self._most} bytes.", Connection="close")

    async def receive(self) -> Any:
        message: Any = await self._receive()
        self._size += len(message.get("body", b""))
        self._check(self._size)
        if message["type"] == "http.disconnect" and not self._is_whole:
            raise ProblemError("timeout", Connection="close")
        self._is_whole = self._is_whole or not message.get("more_body", False)
        return message


class _Response:
    """The answer, with the headers that every answer has."""

    def __init__(self, send: Send, visit: RequestScope) -> None:
        self._send, self._visit, self.status = send, visit, 0

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            message["headers"] = [*message["headers"], *HEADERS, (b"x-request-id", self._visit.request_id.encode())]
        await self._send(message)

    async def allow(self, methods: list[str]) -> None:
        headers = [(b"allow", ", ".join(methods).encode()), (b"content-length", b"0")]
        await self.send({"type": "http.response.start", "status": 204, "headers": headers})
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    async def answer(self, status: int, body: bytes) -> None:
        named = ((b"content-length", b"%d" % len(body)), (b"x-request-id", self._visit.request_id.encode()))
        self.status = status
        await self._send({"type": "http.response.start", "status": status, "headers": [*DATA, *named]})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})

    async def refuse(self, error: ProblemError) -> None:
        found = error.problem
        body = encode(msgspec.structs.replace(found, request_id=self._visit.request_id))
        headers = [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
        headers += [(b"content-type", MEDIA_TYPE.encode()), (b"content-length", str(len(body)).encode())]
        await self.send({"type": "http.response.start", "status": found.status, "headers": headers})
        await self._send({"type": "http.response.body", "body": body, "more_body": False})


def as_problem(error: SurefootError) -> ProblemError:
    """The answer to an error of the library; failures on our side are only logged."""
    found = of_error(error)
    if found.status >= 500:
        log.error("the journal failed", extra={"error": type(error).__name__, "detail": str(error)})
    return ProblemError.of(found)


def _refuse_media_type(method: str, headers: dict[bytes, bytes]) -> None:
    """A body must be declared as JSON, which the form of another site cannot do without a preflight request."""
    has_body = headers.get(b"content-length", b"0") != b"0" or b"transfer-encoding" in headers
    media = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    if method in ("POST", "PUT", "PATCH") and has_body and media != b"application/json":
        raise ProblemError("media-type")


def _presented(headers: dict[bytes, bytes]) -> str | None:
    scheme, _, token = headers.get(b"authorization", b"").decode("latin-1").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None
