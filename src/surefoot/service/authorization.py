"""Who is asking, what is logged of a request, and the guard that routes are marked with."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from litestar import Request

from surefoot.service.problems import ProblemError
from surefoot.service.tokens import ROLES, Role

KEY = "surefoot.visit"


@dataclass(slots=True)
class RequestScope:
    """One request, as it is passed along in the ASGI scope.

    token:    id of the token, never the token itself; None where there was none
    notes:    what the log line says besides, such as the decision's id
    """

    request_id: str
    roles: frozenset[Role] = frozenset()
    token: str | None = None
    notes: dict[str, Any] = field(default_factory=dict)


OPEN = frozenset(ROLES)


def visit_of(scope: Any) -> RequestScope:
    """The visit that a scope belongs to."""
    found: RequestScope = scope[KEY]
    return found


def needs(role: Role) -> Callable[[Request[Any, Any, Any]], Awaitable[None]]:
    """What a route is marked with as `before_request`: only a token of this role, or an admin's, may pass.

    (Litestar's own guards copy the whole handler for every request.)
    """

    async def guard(request: Request[Any, Any, Any]) -> None:
        roles = visit_of(request.scope).roles
        if role not in roles and "admin" not in roles:
            raise ProblemError("not-allowed", f"This needs a token of the role {role!r}.")

    return guard
