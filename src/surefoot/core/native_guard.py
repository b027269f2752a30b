"""The guard's part of the core, with types: its settings, banks, step and runs, and the bets of a watch."""

import copyreg
from typing import Any

from surefoot.core import native

RATE_GRID, HORIZON, SHIFTS = native.RATE_GRID, native.HORIZON, native.SHIFTS
MetricSettings, SideEstimate, Bank = native.MetricSettings, native.SideEstimate, native.Bank
GuardSettings, GuardBooks, GuardRuns = native.GuardSettings, native.GuardBooks, native.GuardRuns
Bets, Drift = native.Bets, native.Drift
available, allowed, free_share, coin_luck = native.available, native.allowed, native.free_share, native.coin_luck
read_banks = native.read_banks

_TOLD = ("sign", "alpha", "low", "most_baseline", "event", "reserve", "is_played", "coin_event")


def _settings(told: dict[str, Any]) -> Any:
    return MetricSettings(**told)


# By functions of this module: a pickle must not name the build of one machine.
copyreg.pickle(MetricSettings, lambda one: (_settings, ({name: getattr(one, name) for name in _TOLD},)))
