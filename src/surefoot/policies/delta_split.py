"""How the chance to fail, delta, is split between everything that may fail, so that one promise covers it all.

A guard gives each of its metrics the same part. Of a linear policy false alarms of the watch take theirs first, if it
has one. Of the rest the first start gets 0.9 and the k-th restart 0.1 2^-k, which add up to 1; each pays for its
confidence sets and, where it is used, the bound on the realised sum (docs/mathematics.md, "Alarms and restarts").
"""

from collections.abc import Mapping
from typing import Any

from surefoot.linear.radius import BY_LIKELIHOOD

REALISED_SHARE = 0.1  # for the bound on the realised sum
RESTART_SHARE = 0.1  # kept for restarts
WATCH_SHARE = 0.1  # for false alarms of the watch, spent only with a holdout


def delta_of(delta: float, restarts: int, share: float = RESTART_SHARE) -> float:
    """What may be spent after so many restarts, a share of delta being kept for them.

    >>> round(sum(delta_of(0.05, k) for k in range(60)), 12)
    0.05
    """
    return delta * (1.0 - share) if restarts == 0 else delta * share * 2.0**-restarts


def spend_delta(core: Any, settings: Mapping[str, Any], delta: float, *, restarts: int) -> None:
    """Split delta between the confidence sets and, where it is used, the realised sum, after so many restarts."""
    share = settings["realised_share"] if settings["gate"] == "facts" else 0.0  # events of their own: each its share
    left = delta_of(delta, restarts, settings["restart_share"])
    core.sum_delta, sets = share * left, (1.0 - share) * left
    core.delta = sets / 2 if settings["radius"] == "best" else sets
    core.likelihood_delta = core.delta if settings["radius"] in BY_LIKELIHOOD else 0.0
