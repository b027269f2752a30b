"""Calling the service: `Client` and `AsyncClient`, typed, with safe retries and a fallback to the baseline."""

try:
    import httpx as httpx
except ImportError as error:
    raise ImportError("The client needs httpx. Install it with: pip install 'surefoot[client]'") from error

from surefoot.client.async_client import AsyncClient
from surefoot.client.calls import ServiceError
from surefoot.client.client import Client
from surefoot.rounds import Answer, Receipt
from surefoot.rounds.answers import EventHead

__all__ = ["Answer", "AsyncClient", "Client", "EventHead", "Receipt", "ServiceError"]
