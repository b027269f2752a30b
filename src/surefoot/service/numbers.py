"""Numbers as JSON can tell them."""

import math


def finite(value: float) -> float | None:
    """A number, or null where it is not finite.

    >>> finite(0.5), finite(math.nan)
    (0.5, None)
    """
    return float(value) if math.isfinite(value) else None


def ends(interval: tuple[float, float]) -> tuple[float | None, float | None]:
    """Both ends of an interval."""
    return finite(interval[0]), finite(interval[1])
