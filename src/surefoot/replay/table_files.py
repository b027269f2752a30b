"""The files of a log, in pieces: the needed columns of CSV, JSON lines or Parquet, with the line of every row.

Blocks that are in order go through polars whole. A block with anything odd is read again row by row, which is slow and
knows the reason.
"""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, Protocol, cast

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.errors import LogError
from surefoot.linear.encoding import text_of


def shown_path(paths: Sequence[Path]) -> str:
    """What messages and reports call a log of one file, or of several."""
    return str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"


BLOCK_BYTES = 8 * 2**20
LONGEST = 64 * 2**20  # bytes of one row: beyond it, a quote that never closes is the likelier story


def line_blocks(path: Path, *, quoted: bool = False, size: int | None = None) -> Iterator[tuple[int, bytes]]:
    """Blocks that end where a line ends; with `quoted`, never at a line's end inside quotes."""
    size = size or BLOCK_BYTES
    carry, line = b"", 1
    with _open(path) as file:
        while True:
            more = _read(file, size, path, line)
            if not more:
                break
            carry += more
            cut = _cut(carry, quoted=quoted)
            if cut:
                yield line, carry[:cut]
                line += carry.count(b"\n", 0, cut)
                carry = carry[cut:]
            elif len(carry) > LONGEST:
                raise LogError(
                    f"A row of `{path}` must end within {LONGEST // 2**20} MB, but the one that begins at line {line:,}"
                    " does not. Look for a quote that is never closed."
                )
    if carry:
        yield line, carry


def _cut(block: bytes, *, quoted: bool) -> int:
    """Where the last whole row ends."""
    end = block.rfind(b"\n") + 1
    # An odd number of quotes before a line's end means that it stands inside of them.
    while quoted and end and block.count(b'"', 0, end) % 2:
        end = block.rfind(b"\n", 0, end - 1) + 1
    return end


def _open(path: Path) -> IO[bytes]:
    try:
        return cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise LogError(f"`{path}` must be a log that can be read, but it cannot: {error.strerror}.") from None


def _read(file: IO[bytes], size: int, path: Path, line: int) -> bytes:
    try:
        return file.read(size)
    except (EOFError, zlib.error, OSError) as error:
        raise LogError(
            f"`{path}` must be whole, but it breaks off or is damaged after line {line:,}: {error}. Fetch it again."
        ) from None


ROWS = 131_072  # of a Parquet file at a time
LONGEST_FIELD = 2**31 - 1  # characters in CSV
# What polars makes of numbers in JSON that Python writes otherwise (-0.0, 1e-7), of half a character, and of objects.
ODD = r"\x00|^-0$|^-?0\.0000|^[{\[]"
# Whole numbers are exact in both, unless they were written as floats, such as 1e23.
LONG, LONG_FLOAT = r"^-?[0-9]{17}", r"[:,\[][ \t]*-?[0-9]+(?:\.[0-9]*)?[eE]|[0-9]{17}\."


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """Some rows of a table; `bad` are those that could not even be split into columns.

    Of several files, `file` is the one, and `before` the number of lines of those before it.
    """

    table: pl.DataFrame
    lines: NDArray[np.int64]
    bad: list[tuple[int, str]] = field(default_factory=list)
    file: str = ""
    before: int = 0

    @property
    def last_line(self) -> int:
        """Of those that are here."""
        return max([int(self.lines[-1]) if self.lines.size else 0, *(line for line, _ in self.bad)])


class TableFile(Protocol):
    """What a log asks of a table, in one file or in several."""

    path: Any
    header: list[str]

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """All rows, in order."""
        ...


class CsvFile:
    """A CSV file with a header (`.tsv` with tabs); every value comes as text."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._separator = "\t" if ".tsv" in path.suffixes else ","
        _allow_long_fields()
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
        for line, data in line_blocks(self.path, quoted=True):
            if line == 1:
                line, data = self._without_header(data)
            if data.strip():
                yield self._frame(line, data, columns)

    def _without_header(self, data: bytes) -> tuple[int, bytes]:
        at = 0
        for _ in range(self._head_lines):
            at = data.find(b"\n", at) + 1 or len(data)
        return 1 + self._head_lines, data[at:]

    def _frame(self, line: int, data: bytes, columns: Sequence[str]) -> Frame:
        names = [name or f"column {i + 1}" for i, name in enumerate(self.header)]
        try:
            table = pl.read_csv(
                data, has_header=False, separator=self._separator, schema=dict.fromkeys(names, pl.String)
            )
        except pl.exceptions.PolarsError:
            return self._slowly(line, data, columns)
        # Quoted line breaks and blank lines put rows out of step with lines, which messages must name.
        in_step = table.height == data.count(b"\n") + (not data.endswith(b"\n"))
        # polars fills up a row that breaks off; one that is whole has a last field.
        may_break_off = table.to_series(-1).null_count() > 0
        if not in_step or may_break_off:
            return self._slowly(line, data, columns)
        return Frame(table.select(columns), np.arange(line, line + table.height))

    def _slowly(self, line: int, data: bytes, columns: Sequence[str]) -> Frame:
        _allow_long_fields()
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


def _allow_long_fields() -> None:
    """Let Python's reader take fields as long as polars does; the limit is one for all threads, and never lowered."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_FIELD))


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
        self._types = {name: kind or pl.Float64 for name, kind in self._types.items()}
        self.header = list(self._types)
        if not self.header:
            raise LogError(f"`{path}` must hold one JSON object a line, but no line of its beginning is one.")

    def _look_at(self, text: bytes) -> None:
        try:
            row = json.loads(text)
        except ValueError:
            return
        for name, value in row.items() if isinstance(row, dict) else ():
            # A gap says nothing of what its column holds.
            if self._types.get(name) is None:
                self._types[name] = None if value is None else _type_of(value)

    def as_in(self, other: "JsonLinesFile") -> None:
        """Take over what another file's beginning says of the columns, for one log has one kind of each."""
        self._types, self.header = other._types, other.header

    def as_text(self, names: Iterable[str]) -> None:
        """Read columns as they are written: a number of 19 digits is no float, and true is not 1."""
        for name in names:
            if name in self._types:
                self._types[name] = pl.List(pl.String) if _is_list(self._types[name]) else pl.String

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
            if in_step and not any(table.null_count().row(0)) and not _may_read_differently(table, data):
                yield Frame(table, np.arange(line, line + table.height))
            else:
                yield _json_slowly(line, data, types)


def _may_read_differently(table: pl.DataFrame, data: bytes) -> bool:
    """Whether polars may have written something in another way than `text_of` does, or what is no text at all."""
    has_long = False
    for name, kind in table.schema.items():
        if kind in (pl.String, pl.List(pl.String)):
            texts = table[name].explode() if _is_list(kind) else table[name]
            if texts.str.contains(ODD).any():
                return True
            has_long |= texts.str.contains(LONG).any()
    # By polars, whose search is ten times as quick as Python's.
    return has_long and pl.Series([data.decode("utf-8", "replace")]).str.contains(LONG_FLOAT).any()


def _is_list(kind: Any) -> bool:
    return isinstance(kind, pl.List)


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
    if kind == pl.String and isinstance(value, (dict, list)):
        raise ValueError(f"{name} must be one text, number or truth value, not {value!r:.60}")
    try:
        if _is_list(kind):
            return [_as(kind.inner, entry, name) for entry in value]
        if kind == pl.String:
            return _text(value)
        return float(value)
    except UnicodeEncodeError:
        raise ValueError(f"{name} must be text, but holds half a character (a lone surrogate): {value!r:.60}") from None
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be a {'list' if _is_list(kind) else 'number'}, not {value!r}") from None


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        value.encode()  # half a character is no text
        return value
    return text_of(value)


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
                table = scan.slice(start, min(ROWS, rows - start)).collect()
                yield Frame(table, np.arange(line, line + table.height))
                line += table.height
        except pl.exceptions.PolarsError as error:
            raise LogError(
                f"`{self.path}` must be whole, but it is damaged after row {line - 1:,}: {str(error).splitlines()[0]}."
            ) from None


class DataFrameTable:
    """A table in memory: of polars or pandas, or anything that hands out Arrow; lines are its rows, counted from 1."""

    def __init__(self, table: object) -> None:
        self.path, self._table = "data frame", as_polars(table)
        self.header = self._table.columns

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """All rows, in order."""
        table = self._table.select(columns)
        for start in range(0, table.height, ROWS):
            part = table.slice(start, ROWS)
            yield Frame(part, np.arange(start + 1, start + 1 + part.height))


def as_polars(table: object) -> pl.DataFrame:
    """A table in memory as polars has it."""
    if isinstance(table, pl.LazyFrame):
        return table.collect()
    if isinstance(table, pl.DataFrame):
        return table
    if type(table).__module__.split(".")[0] == "pandas":
        # Column by column: pandas hands out Arrow only where pyarrow is installed.
        frame: Any = table
        return pl.DataFrame({str(name): _from_pandas(frame[name]) for name in frame.columns})
    if hasattr(table, "__arrow_c_stream__"):
        return pl.DataFrame(table)
    raise LogError(f"A log must be a file or a table of polars, pandas or Arrow, but got a {type(table).__name__}.")


def _from_pandas(column: Any) -> pl.Series:
    if isinstance(column.dtype, np.dtype) and column.dtype.kind in "biufM":
        return pl.Series(column.to_numpy(), nan_to_null=True)
    if column.dtype.name == "category":
        # Categories stay labels, also where they are numbers; code -1 is a gap.
        floats = _floats(column.cat.categories)
        texts = [*map(text_of, column.cat.categories if floats is None else floats), None]
        return pl.Series([texts[code] for code in column.cat.codes], dtype=pl.Categorical)
    if (floats := _floats(column)) is not None:
        return pl.Series(floats, nan_to_null=True)
    values = column.astype(object).where(column.notna(), None).tolist()
    try:
        return pl.Series(values)
    except (TypeError, UnicodeEncodeError, pl.exceptions.PolarsError):  # several types, or text that is none
        return pl.Series([text_of(value) for value in values], dtype=pl.String)


def _floats(values: Any) -> NDArray[np.floating[Any]] | None:
    """Floats of pandas in their own precision, which Python's would widen; None where they are something else."""
    kind = getattr(values.dtype, "numpy_dtype", values.dtype)
    if not isinstance(kind, np.dtype) or kind.kind != "f":
        return None
    return np.asarray(values.to_numpy(dtype=kind, na_value=np.nan))


def open_table(path: Path, format_: str) -> CsvFile | JsonLinesFile | ParquetFile:
    """The reader of a format."""
    kinds: dict[str, type[CsvFile | JsonLinesFile | ParquetFile]] = {
        "csv": CsvFile,
        "jsonl": JsonLinesFile,
        "parquet": ParquetFile,
    }
    if not path.exists():
        raise LogError(f"`{path}` must be a log, but there is no such file. Check the path.")
    return kinds[format_](path)


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

    def as_text(self, names: Sequence[str]) -> None:
        """Read columns as they are written, where a format has types."""
        for file in self._files:
            if isinstance(file, JsonLinesFile):
                file.as_text(names)

    def frames(self, columns: Sequence[str]) -> Iterator[Frame]:
        """All rows, in order."""
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
