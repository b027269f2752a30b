"""How many requests a second one caller may send."""

import time
from collections import OrderedDict

from surefoot.service.problems import ProblemError

MOST_CALLERS = 10_000  # whose rates are remembered


class RateLimiter:
    """A token bucket for each caller: `burst` requests at once, `rate` a second in the long run; 0 is no limit."""

    def __init__(self, rate: float, burst: int) -> None:
        self._rate, self._burst = rate, float(burst)
        # By caller: the time of the last request, and what was left then.
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def charge(self, caller: str, count: int) -> None:
        """Count what a request that was let in holds besides: it may leave a debt, which later ones wait for."""
        if self._rate and caller in self._buckets:
            when, left = self._buckets[caller]
            self._buckets[caller] = (when, left - count)

    def spend(self, caller: str) -> None:
        """Take one, or refuse."""
        if not self._rate:
            return
        now = time.monotonic()
        # Taken out and put in again at the end: whoever has been quiet longest is forgotten first.
        when, left = self._buckets.pop(caller, (now, self._burst))
        left = min(self._burst, left + (now - when) * self._rate)
        self._buckets[caller] = (now, left - 1.0 if left >= 1.0 else left)
        while len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        if left < 1.0:
            seconds = str(max(1, round((1.0 - left) / self._rate)))
            raise ProblemError("too-many-requests", Retry_After=seconds)
