"""Calling the service: `Client` and `AsyncClient`, typed, with retries that are safe and a fallback to the baseline."""

try:
    import httpx as httpx
except ImportError as error:
    raise ImportError("The client needs httpx. Install it with: pip install 'surefoot[client]'") from error

from surefoot.client.asynchronous import AsyncClient
from surefoot.client.client import Client
from surefoot.client.errors import ServiceError
from surefoot.client.told import Decision, Receipt

__all__ = ["AsyncClient", "Client", "Decision", "Receipt", "ServiceError"]
