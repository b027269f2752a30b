"""A log in several files of one kind: they are read in the order given, as if they were one."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from surefoot.errors import LogError
from surefoot.replay.shared_file import WHOLE, Span, shown_path
from surefoot.replay.table_reader import Frame, JsonLinesFile, TableFile, open_table


class ManyFiles:
    """Tables one after the other; their lines are counted on from file to file."""

    def __init__(self, paths: Sequence[Path], format_: str) -> None:
        self._files = [open_table(path, format_) for path in paths]
        first = self._files[0]
        self.path, self.header = shown_path(paths), first.header
        for file in self._files[1:]:
            if isinstance(file, JsonLinesFile) and isinstance(first, JsonLinesFile):
                file.as_in(first)
            missing = [name for name in self.header if name not in file.header]
            if missing:
                raise LogError(
                    f"All files of a log must have the same columns, but `{file.path}` lacks {', '.join(missing)}, "
                    f"which `{first.path}` has."
                )

    def spans(self) -> list[Span]:
        """Parts that workers can read beside each other."""
        return [span._replace(file=place) for place, file in enumerate(self._files) for span in file.spans()]

    def as_text(self, names: Sequence[str]) -> None:
        """Read columns as they are written, where a format has types."""
        for file in self._files:
            if isinstance(file, JsonLinesFile):
                file.as_text(names)

    def frames(self, columns: Sequence[str], span: Span = WHOLE) -> Iterator[Frame]:
        """All rows in order, or those of a span with the lines of its own file."""
        if span.file >= 0:
            file = self._files[span.file]
            yield from (replace(frame, file=file.path.name) for frame in file.frames(columns, span))
            return
        before = 0
        for file in self._files:
            last = 0
            for frame in file.frames(columns):
                last = max(last, frame.last_line)
                bad = [(before + line, why) for line, why in frame.bad]
                yield Frame(frame.table, before + frame.lines, bad, file.path.name, before)
            before += last


def open_tables(paths: Sequence[Path], format_: str) -> TableFile:
    """The reader of one file, or of several."""
    return open_table(paths[0], format_) if len(paths) == 1 else ManyFiles(paths, format_)
