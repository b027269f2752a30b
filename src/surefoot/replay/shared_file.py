"""A log's file on whichever machine it is read, and the spans by which several workers read it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from surefoot.errors import LogError


class Span(NamedTuple):
    """A part of a file that begins with a row: bytes of a text or rows of a table, its first line, and which file."""

    start: int = 0
    stop: int | None = None
    line: int = 1
    file: int = -1  # of several; without a number, all of them


WHOLE = Span()


def shown_path(paths: Sequence[Path]) -> str:
    """What messages and reports call a log of one file, or of several."""
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


class SharedFile:
    """A file that workers find under the same path; what they read there must be what was sent to be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._size: int | None = None  # where the work was sent from

    def __getstate__(self) -> dict[str, Any]:
        if not self.path.exists():
            raise LogError(f"`{self.path}` must stay where it is while it is read, but it is gone. Put it back.")
        # A worker is in another folder than the program that sends it work.
        return {**self.__dict__, "path": self.path.absolute(), "_size": self.path.stat().st_size}

    def check(self) -> None:
        """Refuse another file of the same name."""
        if self._size is None:
            return
        size = self.path.stat().st_size if self.path.exists() else None
        if size != self._size:
            raise LogError(
                f"`{self.path}` must be the same file for all workers, but for one it "
                f"{'is missing' if size is None else f'has {size:,} bytes'}, and {self._size:,} where the work comes "
                "from. Put it into a folder that all of them share."
            )
