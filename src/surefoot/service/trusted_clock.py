"""The time that events are stamped with and windows close by: the system's clock, unless it jumps.

Times of a chain never run backwards, so one event from a clock that is years ahead would stamp all later ones, and
close every window with its default. The system's clock is compared with one that cannot be set; on a jump time goes on
at that one's pace until the two agree again. On PostgreSQL it begins with the server's clock, which all writers share.
"""

import time
from collections.abc import Callable
from functools import partial

# Seconds of a clock that nobody can set, which counts while the machine is suspended.
steady_time = partial(time.clock_gettime, getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class TrustedClock:
    """Seconds since 1970.

    tolerance: seconds by which the system's clock may differ from what it must be by now, before it is not believed
    """

    def __init__(
        self,
        tolerance: float,
        *,
        wall: Callable[[], float] = time.time,
        steady: Callable[[], float] = steady_time,
    ) -> None:
        self._tolerance, self._wall, self._steady = tolerance, wall, steady
        self._base = wall() - steady()

    def __call__(self) -> float:
        """The time."""
        wall, expected = self._wall(), self._base + self._steady()
        return wall if abs(wall - expected) <= self._tolerance else expected

    @property
    def offset(self) -> float:
        """By how many seconds the system's clock is ahead of what it must be by now."""
        return self._wall() - self._base - self._steady()

    @property
    def is_off(self) -> bool:
        """Whether the system's clock is not believed."""
        return abs(self.offset) > self._tolerance

    def follow(self) -> None:
        """Take over small corrections, as a time server makes them: together they may grow beyond the tolerance."""
        if not self.is_off:
            self._base += self.offset

    def start_from(self, other: float) -> None:
        """Begin with a clock that others share: at the start it is not known which of the two is wrong."""
        if abs(other - self()) > self._tolerance:
            self._base = other - self._steady()

    def agrees(self, other: float) -> bool:
        """Whether another clock tells the same time."""
        return abs(other - self()) <= self._tolerance
