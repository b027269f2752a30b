"""Rewards from a table: one row for each decision, and a column for each metric.

Sending the same file again sends nothing twice: a value that was accepted is only repeated. So a run that was
interrupted is continued by running it again.
"""

import csv
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import InputError
from surefoot.values import Value

ID = "decision_id"
BATCH = 500  # rewards that are made durable together, and that the service takes at once
READ = 50_000  # rows of a Parquet file that are in memory at once
Row = tuple[str, dict[str, float]]


class Verdict(Value, frozen=True):
    """What became of one reward: `refused` says why it does not count, `is_repeat` that it had come before."""

    refused: str | None = None
    is_repeat: bool = False


class Refusal(msgspec.Struct):
    """A row that does not count, and why, as it is written beside the file."""

    decision_id: Any
    values: dict[str, Any]
    reason: str


class Sent(Value, frozen=True):
    """How many rewards were accepted, how many of them had come before, and how many rows were refused."""

    accepted: int
    repeats: int
    refused: int


def refusals_of(file: Path) -> Path:
    """Where rows of a file that are refused are written, with the reason."""
    return file.with_name(f"{file.name}.refused.jsonl")


def send_rewards(
    file: Path | str,
    send: Callable[[Sequence[Row]], Sequence[Verdict]],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Sent:
    """Send the rewards of a Parquet, CSV or JSON-lines file; what is refused is written beside it, as it is known.

    Parameters
    ----------
    file : Path or str
        Rows with a `decision_id`, and a number in the column of each metric that is known; an empty cell may follow in
        another file. A linear reward has the column `reward`.
    send : callable
        Sends decisions with their rewards by metric, and says what became of each.
    progress : callable
        Is told how many of all rows are done.

    Returns
    -------
    Sent
        How many were accepted, and how many were not.

    Raises
    ------
    InputError
        If the file cannot be read as such a table; nothing was sent.
    """
    place = Path(file)
    # The whole file before the first reward: one that breaks off in the middle must not be sent by half.
    total = sum(1 for _ in _rows(place))
    rows, accepted, repeats, refused = _rows(place), 0, 0, 0
    refusals_of(place).unlink(missing_ok=True)  # of an earlier run
    while group := [(row, _read(row)) for row in islice(rows, BATCH)]:
        verdicts = iter(send([read for _, read in group if not isinstance(read, str)]))
        lines = list[bytes]()
        for row, read in group:
            verdict = Verdict(read) if isinstance(read, str) else next(verdicts)
            if verdict.refused is not None:
                values = {name: value for name, value in row.items() if name != ID}
                lines.append(msgspec.json.encode(Refusal(row.get(ID), values, verdict.refused)) + b"\n")
            else:
                accepted, repeats = accepted + 1, repeats + verdict.is_repeat
        if lines:
            with refusals_of(place).open("ab") as out:
                out.writelines(lines)
        refused += len(lines)
        progress(accepted + refused, total)
    return Sent(accepted, repeats, refused)


def _read(row: dict[str, Any]) -> Row | str:
    """A row's decision and rewards, or why there are none."""
    decision_id = row.get(ID)
    if decision_id in (None, ""):
        return "no decision_id"
    values = {name: value for name, value in row.items() if name != ID and value is not None}
    wrong = [name for name, value in values.items() if isinstance(value, bool) or not isinstance(value, int | float)]
    if wrong:
        return f"{wrong[0]} is not a number"
    if not all(abs(value) <= sys.float_info.max for value in values.values()):  # nan, too, and whole numbers too large
        return "out_of_range"
    return (str(decision_id), values) if values else "no reward"


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    readers = {".parquet": _parquet, ".csv": _csv, ".jsonl": _json_lines}
    if file.suffix not in readers:
        raise InputError(f"Rewards are in a file that ends in {', '.join(readers)}, but got {file.name!r:.80}.")
    if not file.is_file():
        raise InputError(f"There must be a file of rewards at {file}, but there is none.")
    return readers[file.suffix](file)


def _parquet(file: Path) -> Iterator[dict[str, Any]]:
    import polars as pl

    try:
        table = pl.scan_parquet(file)
        _check_columns(file, table.collect_schema().names())
        for at in range(0, table.select(pl.len()).collect().item(), READ):
            yield from table.slice(at, READ).collect().iter_rows(named=True)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{file} must be a Parquet file: {error}.") from None


def _csv(file: Path) -> Iterator[dict[str, Any]]:
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            table = csv.DictReader(lines, strict=True)
            _check_columns(file, table.fieldnames or [])
            for row in table:
                if None in row:
                    raise InputError(f"Line {table.line_num} of {file} must have a column for each value.")
                yield {name: text or None if name == ID else _number(text) for name, text in row.items()}
    except (csv.Error, UnicodeDecodeError) as error:
        raise InputError(f"{file} must be a CSV file: {error}.") from None


def _number(text: str | None) -> Any:
    try:
        return None if text is None or not text.strip() else float(text)
    except ValueError:
        return text


def _json_lines(file: Path) -> Iterator[dict[str, Any]]:
    decode = msgspec.json.Decoder(dict[str, Any]).decode
    with file.open("rb") as lines:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = decode(line)
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise InputError(f"Line {number} of {file} must be a JSON object: {error}.") from None
            _check_columns(f"Line {number} of {file}", row)
            yield row


def _check_columns(place: Any, columns: Any) -> None:
    if len(set(columns)) < len(columns):
        raise InputError(f"{place} must have its columns each once, but has {', '.join(columns)!r:.200}.")
    if ID not in columns or len(columns) < 2:
        raise InputError(f"{place} must have {ID} and a metric such as reward, but has {', '.join(columns)!r:.200}.")
