"""Connections that are open, by the address they came from: where there are too many, the one idle longest makes room.

So a caller that opens connections and says nothing takes none from others, and a probe is always let in.
"""

from collections.abc import Iterable
from typing import Protocol

from surefoot.service.settings import Limits


class Connection(Protocol):
    """What is known of a connection here."""

    @property
    def idle_since(self) -> float | None:
        """Since when it has asked for nothing; None where a request is under way."""

    def drop(self) -> None:
        """Close it."""


class Connections:
    """All connections of one server."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._by_address: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, address: str, connection: Connection) -> bool:
        """Take a connection; false if no other is idle that could make room for it."""
        ours = self._by_address.setdefault(address, {})
        has_room = len(ours) < self._limits.connections_per_address or _drop_idle([ours])
        has_room = has_room and (self._count < self._limits.connections or _drop_idle(self._by_address.values()))
        ours[connection] = None
        self._count += 1
        return has_room

    def remove(self, address: str, connection: Connection) -> None:
        """Forget a connection that was closed."""
        ours = self._by_address.get(address, {})
        if connection in ours:
            del ours[connection]
            self._count -= 1
        if not ours:
            self._by_address.pop(address, None)


def _drop_idle(groups: Iterable[dict[Connection, None]]) -> bool:
    idle = [(one.idle_since, at, one) for at, one in enumerate(one for group in groups for one in group)]
    oldest = min(((since, at, one) for since, at, one in idle if since is not None), default=None)
    if oldest is not None:
        oldest[2].drop()
    return oldest is not None
