"""Calling the service: `Client` and `AsyncClient`, typed, with safe retries and a fallback to the baseline.

`RemoteHub` is for apps that decide in their own process; it alone needs the library with its core.
"""

from typing import TYPE_CHECKING

from surefoot._lazy import lazy

try:
    import httpx as httpx
except ImportError as error:
    raise ImportError("The client needs httpx. Install it with: pip install 'surefoot[client]'") from error

from surefoot.client.calls import ServiceError as ServiceError
from surefoot.client.client import AsyncClient as AsyncClient
from surefoot.client.client import Client as Client
from surefoot.rounds import Answer as Answer
from surefoot.rounds import Receipt as Receipt
from surefoot.rounds.answers import EventHead as EventHead

if TYPE_CHECKING:
    from surefoot.client.remote_hub import RemoteHub as RemoteHub

__getattr__, __dir__ = lazy(__name__, {"remote_hub": ("RemoteHub",)})

__all__ = ["Answer", "AsyncClient", "Client", "EventHead", "Receipt", "RemoteHub", "ServiceError"]
