"""Who is asking, and what the log and the metrics should know of a request; and the guard that routes are marked with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from litestar.connection import ASGIConnection
from litestar.handlers.base import BaseRouteHandler

from surefoot.service.problems import ProblemError
from surefoot.service.tokens import ROLES, Role

KEY = "surefoot.visit"


@dataclass(slots=True)
class Visit:
    """One request, as it is passed along in the ASGI scope.

    token:    id of the token, never the token itself; None where there was none
    notes:    what the log line says besides, such as the decision's id
    """

    request_id: str
    roles: frozenset[Role] = frozenset()
    token: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)


OPEN = frozenset(ROLES)


def visit_of(scope: Any) -> Visit:
    """The visit that a scope belongs to."""
    found: Visit = scope[KEY]
    return found


def needs(role: Role) -> Callable[[ASGIConnection[Any, Any, Any, Any], BaseRouteHandler], None]:
    """A guard: only a token of this role, or an admin's, may pass."""

    def guard(connection: ASGIConnection[Any, Any, Any, Any], _: BaseRouteHandler) -> None:
        roles = visit_of(connection.scope).roles
        if role not in roles and "admin" not in roles:
            raise ProblemError("not-allowed", f"This needs a token of the role {role!r}.")

    return guard
