"""Tables in pieces: the needed columns of a CSV, JSON lines or Parquet file, with the line of every row.

Blocks that are in order go through polars whole. A block with anything odd is read again row by row, which is slow and
knows the reason.
"""

import csv
import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.errors import LogError
from surefoot.replay.text_blocks import line_blocks

ROWS = 131_072  # of a Parquet file at a time


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Some rows of a table; `bad` are those that could not even be split into columns."""

    table: pl.DataFrame
    lines: NDArray[np.int64]
    bad: list[tuple[int, str]] = field(default_factory=list)


class CsvFile:
    """A CSV file with a header (`.tsv` with tabs); every value comes as text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._separator = "\t" if ".tsv" in path.suffixes else ","
        first = next(line_blocks(path, quoted=True, size=2**16), (1, b""))[1]
        # "-sig", because spreadsheets write a byte order mark that would become part of the first name.
        reader = csv.reader(io.StringIO(first.decode("utf-8-sig", "replace"), newline=""), delimiter=self._separator)
        self.header: list[str] = next(reader, [])
        self._head_lines = reader.line_num
        if not any(self.header):
            raise LogError(f"`{path}` must begin with a header line, but it is empty.")
        twice = sorted({name for name in self.header if name and self.header.count(name) > 1})
        if twice:
            raise LogError(f"Column names of `{path}` must differ, but the header has {twice} more than once.")

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """All rows, in order."""
        blocks = line_blocks(self.path, quoted=True)
        block: tuple[int, bytes] | None = next(blocks, None)
        while block is not None:
            # One block ahead, since only the last may end in the middle of a row.
            following = next(blocks, None)
            line, data = block
            if line == 1:
                line, data = self._without_header(data)
            if data.strip():
                yield self._frame(line, data, columns, is_last=following is None)
            block = following

    def _without_header(self, data: bytes) -> tuple[int, bytes]:
        at = 0
        for _ in range(self._head_lines):
            at = data.find(b"\n", at) + 1 or len(data)
        return 1 + self._head_lines, data[at:]

    def _frame(self, line: int, data: bytes, columns: Sequence[str], *, is_last: bool) -> Frame:
        names = [name or f"column {i + 1}" for i, name in enumerate(self.header)]
        try:
            table = pl.read_csv(
                data, has_header=False, separator=self._separator, schema=dict.fromkeys(names, pl.String)
            )
        except pl.exceptions.PolarsError:
            return self._slowly(line, data, columns)
        # Quoted line breaks and blank lines put rows out of step with lines, which messages must name.
        in_step = table.height == data.count(b"\n") + (not data.endswith(b"\n"))
        # polars fills up a row that breaks off.
        cut_off = is_last and table[-1, -1] is None
        table = table.select(columns)
        if not in_step or cut_off or any(table.null_count().row(0)):
            return self._slowly(line, data, columns)
        return Frame(table, np.arange(line, line + table.height))

    def _slowly(self, line: int, data: bytes, columns: Sequence[str]) -> Frame:
        text = data.decode("utf-8", "replace")
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=self._separator)
        places = [self.header.index(name) for name in columns]
        rows: list[list[str | None]] = []
        lines: list[int] = []
        bad: list[tuple[int, str]] = []
        begins = 0
        for cells in _cells(reader, line, bad):
            at, begins = line + begins, reader.line_num
            if not cells:
                continue
            if len(cells) != len(self.header):
                bad.append((at, f"has {len(cells)} fields, the header has {len(self.header)}"))
            # What decoding with "replace" leaves of bytes that are not UTF-8.
            elif "\ufffd" in "".join(cells):
                bad.append((at, "is not valid UTF-8"))
            else:
                rows.append([cells[place] or None for place in places])
                lines.append(at)
        table = pl.DataFrame(rows, schema=dict.fromkeys(columns, pl.String), orient="row")
        return Frame(table, np.array(lines, dtype=np.int64), bad)


def _cells(reader: Any, line: int, bad: list[tuple[int, str]]) -> Iterator[list[str]]:
    while True:
        try:
            yield next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            bad.append((line + reader.line_num - 1, f"is not CSV: {error}"))


class JsonLinesFile:
    """One JSON object a line; a value is a number, a text, or a list of numbers."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._types: dict[str, Any] = {}
        for _, data in line_blocks(path, size=2**16):
            for text in data.splitlines():
                self._look_at(text)
            break
        self.header = list(self._types)
        if not self.header:
            raise LogError(f"`{path}` must hold one JSON object a line, but no line of its beginning is one.")

    def _look_at(self, text: bytes) -> None:
        try:
            row = json.loads(text)
        except ValueError:
            return
        for name, value in row.items() if isinstance(row, dict) else ():
            self._types.setdefault(name, _type_of(value))

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """All rows, in order."""
        types = {name: self._types[name] for name in columns}
        for line, data in line_blocks(self.path):
            try:
                table = pl.read_ndjson(data, schema=types)
            except pl.exceptions.PolarsError:
                yield _json_slowly(line, data, types)
                continue
            in_step = table.height == data.count(b"\n") + (not data.endswith(b"\n"))
            if in_step and not any(table.null_count().row(0)):
                yield Frame(table, np.arange(line, line + table.height))
            else:
                yield _json_slowly(line, data, types)


def _type_of(value: Any) -> Any:
    if isinstance(value, list):
        return pl.List(_type_of(value[0]) if value else pl.Float64)
    return pl.String if isinstance(value, str) else pl.Float64


def _json_slowly(line: int, data: bytes, types: dict[str, Any]) -> Frame:
    rows: list[list[Any]] = []
    lines: list[int] = []
    bad: list[tuple[int, str]] = []
    for at, text in enumerate(data.split(b"\n"), start=line):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
            if not isinstance(row, dict):
                raise ValueError("it is not an object")
            rows.append([_as(types[name], row.get(name), name) for name in types])
            lines.append(at)
        except ValueError as error:
            bad.append((at, f"is not a row of JSON: {error}"))
    return Frame(pl.DataFrame(rows, schema=types, orient="row"), np.array(lines, dtype=np.int64), bad)


def _as(kind: Any, value: Any, name: str) -> Any:
    """The value as its column's type, or a ValueError that says what is wrong with it."""
    if value is None:
        return None
    try:
        if isinstance(kind, pl.List):
            return [_as(kind.inner, entry, name) for entry in value]
        if kind == pl.String:
            return value if isinstance(value, str) else json.dumps(value)
        return float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name} must be a {'list' if isinstance(kind, pl.List) else 'number'}, not {value!r}"
        ) from None


class ParquetFile:
    """A Parquet file; lines are its rows, counted from 1."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.header = list(pl.read_parquet_schema(path))
        except (pl.exceptions.PolarsError, OSError) as error:
            raise LogError(
                f"`{path}` must be a whole Parquet file, but it cannot be read: {str(error).splitlines()[0]}. "
                "Fetch it again."
            ) from None

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """All rows, in order."""
        line, scan = 1, pl.scan_parquet(self.path).select(columns)
        try:
            # Slice by slice: a stream of batches reads ahead without end where its reader is slower than the disk.
            rows = int(scan.select(pl.len()).collect().item())
            for start in range(0, rows, ROWS):
                table = scan.slice(start, ROWS).collect()
                yield Frame(table, np.arange(line, line + table.height))
                line += table.height
        except pl.exceptions.PolarsError as error:
            raise LogError(
                f"`{self.path}` must be whole, but it is damaged after row {line - 1:,}: {str(error).splitlines()[0]}."
            ) from None


TableFile = CsvFile | JsonLinesFile | ParquetFile


def open_table(path: Path, format_: str) -> TableFile:
    """The reader of a format."""
    kinds: dict[str, type[TableFile]] = {"csv": CsvFile, "jsonl": JsonLinesFile, "parquet": ParquetFile}
    if not path.exists():
        raise LogError(f"`{path}` must be a log, but there is no such file. Check the path.")
    return kinds[format_](path)
