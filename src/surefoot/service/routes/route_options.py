"""What routes are marked with: who may call them, what their addresses hold, and what problems they may give."""

from typing import Annotated, Any, NamedTuple

from litestar import Litestar
from litestar.openapi.datastructures import ResponseSpec
from litestar.params import PathParameter, QueryParameter
from litestar.routes import HTTPRoute

from surefoot.service.authorization import needs
from surefoot.service.problems import KINDS, ProblemDetails
from surefoot.service.tokens import Role

ExperimentName = Annotated[str, PathParameter(description="The experiment's name.", max_length=200)]
DecisionId = Annotated[str, PathParameter(description="The decision's id.", max_length=200)]
ProblemWord = Annotated[str, PathParameter(description="The last word of a problem's type.", max_length=100)]
EventNumber = Annotated[int | None, QueryParameter(description="The number of an event.", ge=1)]
Limit = Annotated[int, QueryParameter(description="How many at most.", ge=1, le=100)]


class Operation(NamedTuple):
    """Who may call a route, and what its body may be."""

    role: Role
    body: type[Any] | None


ALWAYS = (
    "no-token",
    "not-allowed",
    "timeout",
    "too-many-requests",
    "internal",
    "unavailable",
    "not-found",
    "tokens-unreadable",
)
TOKEN = [{"token": list[str]()}]
WITH_BODY = ("malformed", "too-large", "media-type", "invalid")


def guarded(role: Role, tags: list[str], operation_id: str, *, body: type[Any] | None = None) -> dict[str, Any]:
    """What a route for the tokens of one role is told of it: its name in the document, and what its body may be.

    Read back by `operations`: nothing of it is said a second time.
    """
    return {
        "before_request": needs(role),
        "security": TOKEN,
        "tags": tags,
        "operation_id": operation_id,
        "opt": {"role": role, "body": body},
    }


def operations(app: Litestar) -> dict[str, Operation]:
    """What the routes of an app were marked with, by their names in the document."""
    handlers = [one for route in app.routes if isinstance(route, HTTPRoute) for one in route.route_handlers]
    return {str(one.operation_id): Operation(**one.opt) for one in handlers if "role" in one.opt}


def problems(*words: str, body: bool = False) -> dict[int, ResponseSpec]:
    """The problems of a route, by status."""
    found: dict[int, list[str]] = {}
    for word in (*words, *ALWAYS, "malformed", *(WITH_BODY if body else ())):
        status, title, _ = KINDS[word]
        if title not in found.setdefault(status, []):
            found[status].append(title)
    return {status: _spec("; or: ".join(titles)) for status, titles in sorted(found.items())}


def also(status: int, kind: Any, description: str) -> dict[int, ResponseSpec]:
    """Another answer that a route may give."""
    return {status: ResponseSpec(data_container=kind, description=description, generate_examples=False)}


def _spec(description: str) -> ResponseSpec:
    return ResponseSpec(
        data_container=ProblemDetails,
        description=description,
        generate_examples=False,
        media_type="application/problem+json",
    )
