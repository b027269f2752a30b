"""The mathematics, compiled when the package is built: one extension module for each kind of processor.

The best one that this machine can run is imported as `surefoot.core.native`; all of them give the same bits.
SUREFOOT_CORE names another one: "x86_64", "x86_64_v3" or "x86_64_v4". SUREFOOT_CORE_DIR is a further folder to look for
it, for a build that is not installed, such as the one under sanitizers.
"""

import copyreg
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from surefoot.errors import ConfigError

VARIABLE, FOLDER = "SUREFOOT_CORE", "SUREFOOT_CORE_DIR"
# What each build needs beyond the one before it, as Linux lists it.
NEEDS = {
    "x86_64_v4": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "bmi2", "fma"},
    "x86_64_v3": {"avx2", "bmi1", "bmi2", "f16c", "fma", "movbe"},
    "x86_64": set[str](),
    "plain": set[str](),
}


if os.environ.get(FOLDER):
    __path__.append(os.environ[FOLDER])


def built() -> list[str]:
    """The builds that this package holds, best first; last those that are taken only where they are named."""
    here = {file.name.split(".")[0][1:] for folder in __path__ for file in Path(folder).glob("_*.so")}
    return [*(name for name in NEEDS if name in here), *sorted(here - NEEDS.keys())]


def _flags() -> set[str]:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return set()
    return next((set(line.split()) for line in lines if line.startswith("flags")), set())


def runnable() -> list[str]:
    """The builds that this machine can run, best first."""
    flags = _flags()
    return [name for name in built() if name in NEEDS and NEEDS[name] <= flags]


def _choose() -> str:
    builds, forced = built(), os.environ.get(VARIABLE)
    if forced:
        if forced not in builds:
            raise ConfigError(f"{VARIABLE} must be one of {', '.join(builds)}, but got {forced!r}.")
        return forced
    for name in runnable():
        return name
    raise ImportError("The compiled core of surefoot is missing. Build it with `make setup`, or install a wheel.")


name = _choose()
if TYPE_CHECKING:
    from surefoot.core import native as native  # native.pyi, which the build writes
else:
    native = importlib.import_module(f"surefoot.core._{name}")
    sys.modules[f"{__name__}.native"] = native


def _metric_settings(settings: dict[str, Any]) -> "native.MetricSettings":
    return native.MetricSettings(**settings)


def _bank(numbers: Any) -> "native.Bank":
    bank = native.Bank()
    bank.load(numbers)
    return bank


# Pickled by functions of this package: a pickle must not name the build of one machine.
_FIELDS = ("sign", "alpha", "low", "most_baseline", "event", "reserve", "is_played", "coin_event")
copyreg.pickle(native.MetricSettings, lambda one: (_metric_settings, ({name: getattr(one, name) for name in _FIELDS},)))
copyreg.pickle(native.Bank, lambda bank: (_bank, (bank.save(),)))
