"""Requests that the server itself makes, each within one deadline: an answer that drips must not hold anything up."""

import asyncio
import ssl
from functools import lru_cache
from urllib.parse import urlsplit

import httpx

from surefoot.service.settings import is_loopback

MOST_BYTES = 1_000_000


async def fetch(url: str, *, seconds: float, body: bytes | None = None, content_type: str = "") -> bytes:
    """What an address answers to GET, or to POST where there is a body; redirects are not followed.

    Parameters
    ----------
    url : str
        The address. Proxies of the environment are used, but not for this machine itself.
    seconds : float
        From looking up the name to the last byte of the answer.
    body : bytes, optional
        What is sent.
    content_type : str
        What the body is.

    Returns
    -------
    bytes
        The answer.

    Raises
    ------
    OSError
        If there is no whole answer in time, or one that is no success.
    ValueError
        If it is too large.
    """
    headers = {"accept-encoding": "identity"} | ({"content-type": content_type} if body is not None else {})
    is_here = is_loopback(urlsplit(url).hostname or "")
    try:
        async with (
            asyncio.timeout(seconds),
            httpx.AsyncClient(verify=_trust(), trust_env=not is_here) as client,
            client.stream("GET" if body is None else "POST", url, content=body, headers=headers) as answer,
        ):
            answer.raise_for_status()
            found = bytearray()
            async for part in answer.aiter_raw():
                found += part
                if len(found) > MOST_BYTES:
                    raise ValueError(f"it has more than {MOST_BYTES:,} bytes")
            return bytes(found)
    except TimeoutError:
        raise TimeoutError(f"no whole answer within {seconds:g} seconds") from None
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        raise OSError(f"{type(error).__name__}: {error}") from None


@lru_cache(1)
def _trust() -> ssl.SSLContext:
    """The authorities that this machine trusts, a company's own among them; read once, for it takes a while."""
    return ssl.create_default_context()
