"""How often a call is tried, for both clients: until its time is up, with growing pauses."""

import random
import time

import httpx

from surefoot.client.requests import problem
from surefoot.client.service_error import ServiceError

RETRIED = frozenset({408, 429, 502, 503, 504})
UNSETTLED = (401, 403)  # a token may be renewed, so what it was refused for is sent again


class LostError(Exception):
    """No usable answer in time."""

    def __init__(self, error: ServiceError) -> None:
        super().__init__(str(error))
        self.error = error


class Attempts:
    """The attempts of one call within so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._deadline, self._failed = time.monotonic() + seconds, 0

    @property
    def left(self) -> float:
        """Seconds that the next attempt may take."""
        return max(0.001, self._deadline - time.monotonic())

    def refused(self, answer: httpx.Response) -> float:
        """Seconds to wait after an answer that another attempt may improve."""
        return self._rest(problem(answer))

    def failed(self, error: httpx.HTTPError) -> float:
        """Seconds to wait after an attempt without any answer."""
        return self._rest(ServiceError(f"The service must answer, but did not: {type(error).__name__}."))

    def _rest(self, error: ServiceError) -> float:
        rest = pause(self._failed)
        if time.monotonic() + rest >= self._deadline:
            raise LostError(error)
        self._failed += 1
        return rest


def pause(attempt: int) -> float:
    """Seconds before the next attempt: exponential backoff with jitter."""
    return float(min(2.0, 0.02 * 2**attempt) * random.uniform(0.5, 1.0))
