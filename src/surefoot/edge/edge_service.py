"""The service, as an edge reaches it."""

import os

import httpx
import msgspec

from surefoot.client.requests import EXPERIMENTS, problem
from surefoot.client.service_error import ServiceError
from surefoot.edge.edge_messages import EdgeLease, HandInEntries, JoinEdge
from surefoot.errors import ConfigError, JournalUnavailableError


class EdgeService:
    """Two calls: to join, and to hand in."""

    def __init__(
        self, url: str | None, token: str | None, experiment: str, timeout: float, transport: httpx.BaseTransport | None
    ) -> None:
        address = (url or os.environ.get("SUREFOOT_URL", "")).rstrip("/")
        if not address.startswith(("http://", "https://")):
            raise ConfigError(f"`url` must be the service's address, such as https://shop.example, but got {url!r}.")
        secret = token or os.environ.get("SUREFOOT_TOKEN")
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {secret}"} if secret else {})
        self._http = httpx.Client(
            base_url=address, headers=headers, timeout=timeout, transport=transport, trust_env=False
        )
        self._path = f"{EXPERIMENTS}/{experiment}/edges"

    def join(self, asked: JoinEdge) -> EdgeLease:
        """The first lease."""
        return self._post(self._path, asked)

    def hand_in(self, shard: str, given: HandInEntries) -> EdgeLease:
        """Hand in entries; the next lease, if these were the last of one."""
        return self._post(f"{self._path}/{shard}/entries", given)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def _post(self, path: str, body: JoinEdge | HandInEntries) -> EdgeLease:
        try:
            answer = self._http.post(path, content=msgspec.json.encode(body))
        except httpx.HTTPError as error:
            raise JournalUnavailableError(f"The service must be reached to renew a lease, but: {error}.") from None
        if answer.status_code >= 400:
            raise problem(answer)
        try:
            return msgspec.json.decode(answer.content, type=EdgeLease)
        except msgspec.MsgspecError as error:
            text = f"The service must answer with a lease, but: {error}. Is something between it and the edge?"
            raise ServiceError(text, type="", status=answer.status_code, problem={}) from None
