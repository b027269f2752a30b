"""Who is asking, what is logged of a request, and the guard that routes are marked with."""

from asyncio import Future
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from litestar import Request

from surefoot.errors import SurefootError
from surefoot.service.jwt_issuer import JwtIssuer, refusal
from surefoot.service.problems import ProblemError
from surefoot.service.settings import Settings
from surefoot.service.tokens import ROLES, Role, Token, TokenFile

KEY = "surefoot.visit"
METRICS: frozenset[Role] = frozenset(("metrics",))
ABOUT_ALL = (["metrics"], ["v1", "head"])  # paths that tell of every experiment


@dataclass(slots=True)
class RequestScope:
    """One request, as it is passed along in the ASGI scope.

    token:       id of the token, never the token itself; None where there was none
    by:          whom events name: the token's owner, with its id
    experiments: the only ones that it may be used for; None for all
    notes:       what the log line says besides, such as the decision's id
    find:        looks the presented token up again; None where nobody is asked for one
    charge:      counts the entries of a batch as so many requests
    waits_for:   the decision that it waits for, which nobody needs once the caller has hung up
    """

    request_id: str
    roles: frozenset[Role] = frozenset()
    token: str | None = None
    by: str = ""
    experiments: frozenset[str] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    find: Callable[[], Token] | None = None
    charge: Callable[[int], None] = lambda count: None
    waits_for: Future[Any] | None = None

    def admit(self, token: Token) -> None:
        """Act with a token that was presented."""
        self.token, self.roles, self.by = token.id, frozenset(token.roles), token.by
        self.experiments = frozenset(token.experiments) if token.experiments else None

    def is_still_admitted(self, role: Role, path: str) -> bool:
        """Whether the request would be let in now: an answer that goes on must not outlive its token."""
        if self.find is None:
            return True
        try:
            self.admit(self.find())
            self.check_role(role)
            self.check_path(path)
        except (ProblemError, SurefootError):
            return False
        return True

    def may_see(self, experiment: str) -> bool:
        """Whether the token is for this experiment, too."""
        return self.experiments is None or experiment in self.experiments

    def check_role(self, role: Role) -> None:
        """Refuse a token of another role."""
        if role not in self.roles and "admin" not in self.roles:
            raise ProblemError("not-allowed", f"This needs a token of the role {role!r}.")

    def check_path(self, path: str) -> None:
        """Refuse a token for other experiments, or for metrics alone; what is about all is not for it either."""
        if self.experiments is None and self.roles != METRICS:
            return
        # As routes are found: any number of slashes is one.
        parts = [part for part in path.split("/") if part]
        if self.roles == METRICS and parts != ["metrics"]:
            raise ProblemError("not-allowed", "This token is for metrics alone.")
        if self.experiments is None:
            return
        is_other = parts[:2] == ["v1", "experiments"] and len(parts) > 2 and parts[2] not in self.experiments
        if is_other or parts in ABOUT_ALL:
            raise ProblemError("not-allowed", f"This token is for {', '.join(sorted(self.experiments))} alone.")


class LogIns:
    """Whoever presents something: a token of the file, or a log-in of the company's own issuer."""

    def __init__(self, settings: Settings) -> None:
        self.tokens = None if settings.tokens is None else TokenFile(settings.tokens)
        self.issuer = None if settings.oidc is None else JwtIssuer(settings.oidc)

    def find(self, presented: str | None) -> Token:
        """What was presented, as a token; a `ProblemError` says why there is none."""
        if self.issuer is not None:
            self.issuer.refresh()
            if presented is not None and presented.count(".") == 2:
                return self.issuer.find(presented)
        if presented is None:
            raise refusal("")
        token = None if self.tokens is None else self.tokens.find(presented)
        if token is not None:
            return token
        if self.tokens is not None and self.tokens.error is not None:  # it may be a new one
            raise ProblemError("tokens-unreadable")
        raise refusal("The token is not known here, was revoked, or has expired.")


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
        visit_of(request.scope).check_role(role)

    return guard
