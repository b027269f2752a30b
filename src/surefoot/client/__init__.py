"""Calling the service: `Client` and `AsyncClient`, typed, with safe retries and a fallback to the baseline."""

try:
    import httpx as httpx
except ImportError as error:
    raise ImportError("The client needs httpx. Install it with: pip install 'surefoot[client]'") from error

from surefoot.client.async_client import AsyncClient
from surefoot.client.client import Client
from surefoot.client.models import Decision, EventHead, GuardDecision, Receipt, Voided
from surefoot.client.service_error import ServiceError

__all__ = ["AsyncClient", "Client", "Decision", "EventHead", "GuardDecision", "Receipt", "ServiceError", "Voided"]
