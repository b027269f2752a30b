"""Calling the service: `Client` and `AsyncClient`, typed, with retries that are safe and a fallback to the baseline."""

from surefoot.client.asynchronous import AsyncClient
from surefoot.client.client import Client
from surefoot.client.errors import ServiceError
from surefoot.client.told import Decision, Receipt

__all__ = ["AsyncClient", "Client", "Decision", "Receipt", "ServiceError"]
