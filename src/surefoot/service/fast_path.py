"""The fast path for the two requests that an app makes all the time: one decision, one reward.

It has the same structs, rules and answers as their routes, which describe them in the OpenAPI document and take over if
a request is unusual; but it goes straight from the bytes to the handlers and back. The layers in between cost more than
half of what a decision takes.
"""

import re
from typing import Any

import msgspec
from litestar.types import Receive

from surefoot.service import request_models
from surefoot.service.authorization import RequestScope
from surefoot.service.handlers import Handlers
from surefoot.service.problems import ProblemError
from surefoot.service.request_bodies import read_body

PATHS = re.compile(r"/v1/experiments/(?P<name>[^/]{1,200})/decisions(?:/(?P<id>[^/]{1,200})/reward)?")
TEMPLATES = ("/v1/experiments/{name}/decisions", "/v1/experiments/{name}/decisions/{decision_id}/reward")
_reward = msgspec.json.Decoder(request_models.Reward).decode
_encode = msgspec.json.Encoder().encode


class FastPath:
    """Serves these two requests, and nothing else."""

    def __init__(self, handlers: Handlers, most: int) -> None:
        self._handlers, self._most = handlers, most

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
        visit.check_role("decide")
        body = await _body(receive, self._most)
        if decision_id is None:
            status, decided = await self._handlers.decide(name, body, visit)
            return status, _encode(decided)
        return 200, _encode(await self._handlers.reward(name, decision_id, read_body(_reward, body).value, visit))


async def _body(receive: Receive, most: int) -> bytes:
    message: Any = await receive()
    body: bytes = message.get("body", b"")
    while message.get("more_body", False) and len(body) <= most:
        message = await receive()
        body += message.get("body", b"")
    if len(body) > most:
        # The rest of the body is still on its way: this connection cannot take another request.
        raise ProblemError("too-large", f"A body has at most {most} bytes.", Connection="close")
    return body
