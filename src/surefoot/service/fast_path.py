"""The fast path for the two requests that an app makes all the time: one decision, one reward.

Their routes describe them in the OpenAPI document, and take over if a request is unusual. Both read the body, authorise
and refuse by the same handlers, and what is unlike in between is the layers of the framework, which cost more than half
of what a decision takes.
"""

import re
from typing import Any

import msgspec
from litestar.types import Receive

from surefoot.service.authorization import RequestScope
from surefoot.service.handlers import Handlers
from surefoot.service.routes.route_options import Operation

PATHS = re.compile(r"/v1/experiments/(?P<name>[^/]{1,200})/decisions(?:/(?P<id>[^/]{1,200})/reward)?")
TEMPLATES = ("/v1/experiments/{name}/decisions", "/v1/experiments/{name}/decisions/{decision_id}/reward")
_encode = msgspec.json.Encoder().encode


class FastPath:
    """Serves these two requests, and nothing else."""

    def __init__(self, handlers: Handlers, operations: dict[str, Operation]) -> None:
        self._handlers, self._roles = handlers, (operations["decide"].role, operations["reward"].role)

    async def answer(self, scope: Any, receive: Receive, visit: RequestScope) -> tuple[int, bytes] | None:
        """Status and body; None if the request must take its route. Refusals are raised."""
        if scope["method"] != "POST":
            return None
        found = PATHS.fullmatch(scope["path"])
        if found is None:
            return None
        name, decision_id = found.groups()
        # Set before anything is refused, so that refusals are counted under their route as well.
        scope["path_template"] = TEMPLATES[decision_id is not None]
        visit.check_role(self._roles[decision_id is not None])
        if decision_id is None:
            status, decided = await self._handlers.decide(name, await _body(receive), visit)
            return status, _encode(decided)
        return 200, _encode(await self._handlers.reward(name, decision_id, await _body(receive), visit))


async def _body(receive: Receive) -> bytes:
    message: Any = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False):
        message = await receive()
        body += message.get("body", b"")
    return body
