"""Rewards from a table: one row for each decision, and a column for each metric.

Sending the same file again sends nothing twice: a value that was accepted is only repeated. So a run that was
interrupted is continued by running it again.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from surefoot.errors import InputError
from surefoot.values import Value

ID = "decision_id"
BATCH = 500  # rewards that are made durable together, and that the service takes at once
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
    """Rewards that were accepted, how many of them had come before, and the rows that were refused."""

    accepted: int
    repeats: int
    refusals: list[Refusal]


def send_rewards(
    file: Path | str,
    send: Callable[[Sequence[Row]], Sequence[Verdict]],
    *,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Sent:
    """Send the rewards of a Parquet, CSV or JSON-lines file.

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
        What was accepted, and what was not.

    Raises
    ------
    InputError
        If the file cannot be read as such a table; nothing was sent.
    """
    # The whole file before the first reward: one that breaks off in the middle must not be sent by half.
    rows = list(_rows(Path(file)))
    accepted = repeats = 0
    refusals = list[Refusal]()
    for at in range(0, len(rows), BATCH):
        group = [(row, _read(row)) for row in rows[at : at + BATCH]]
        sound = [read for _, read in group if not isinstance(read, str)]
        verdicts = iter(send(sound))
        for row, read in group:
            verdict = Verdict(read) if isinstance(read, str) else next(verdicts)
            if verdict.refused is not None:
                values = {name: value for name, value in row.items() if name != ID}
                refusals.append(Refusal(row.get(ID), values, verdict.refused))
            else:
                accepted, repeats = accepted + 1, repeats + verdict.is_repeat
        progress(min(at + BATCH, len(rows)), len(rows))
    return Sent(accepted, repeats, refusals)


def _read(row: dict[str, Any]) -> Row | str:
    """A row's decision and rewards, or why there are none."""
    decision_id = row.get(ID)
    if decision_id in (None, ""):
        return "no decision_id"
    values = {name: value for name, value in row.items() if name != ID and value is not None}
    wrong = [name for name, value in values.items() if isinstance(value, bool) or not isinstance(value, int | float)]
    if wrong:
        return f"{wrong[0]} is not a number"
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
        table = pl.read_parquet(file)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{file} must be a Parquet file: {error}.") from None
    _check_columns(file, table.columns)
    return table.iter_rows(named=True)


def _csv(file: Path) -> Iterator[dict[str, Any]]:
    import polars as pl

    try:
        # As text: an id such as 007 must stay as it is.
        table = pl.read_csv(file, infer_schema=False)
    except pl.exceptions.PolarsError as error:
        raise InputError(f"{file} must be a CSV file: {error}.") from None
    _check_columns(file, table.columns)
    for row in table.iter_rows(named=True):
        yield {name: text if name == ID else _number(text) for name, text in row.items()}


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
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                raise InputError(f"Line {number} of {file} must be a JSON object: {error}.") from None
            _check_columns(f"Line {number} of {file}", row)
            yield row


def _check_columns(place: Any, columns: Any) -> None:
    if ID not in columns or len(columns) < 2:
        raise InputError(f"{place} must have {ID} and a metric such as reward, but has {', '.join(columns)!r:.200}.")
