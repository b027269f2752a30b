"""How much memory is left to programs, also in a container, where files that were read do not count as used."""

import os
from pathlib import Path


def available_memory() -> int:
    """What programs may still take, in bytes: of the machine, and of a container where it has a limit."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        found = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        found = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([found, *_left_in_container()])


def _left_in_container(folder: Path = Path("/sys/fs/cgroup")) -> list[int]:
    try:
        limit, used = ((folder / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        return [] if limit == "max" else [int(limit) - int(used) + _given_up_on_demand(folder)]
    except (OSError, ValueError):
        return []


def _given_up_on_demand(folder: Path) -> int:
    """Files that were read and are kept in case they are read again: counted as used, but free to whoever needs it."""
    try:
        told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(told.get("inactive_file", 0))
    except (OSError, ValueError):
        return 0
