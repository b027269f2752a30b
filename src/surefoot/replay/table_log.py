"""A log in a table: opened by its name, surveyed once, and read batch by batch.

The survey sees actions, the ranges of columns, propensities and the rows that are no use.
"""

import csv
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.arrays import count
from surefoot.errors import ConfigError, LogError
from surefoot.experiment.configuration import ALWAYS, column_names
from surefoot.hints import nearest
from surefoot.linear.encoding import (
    MOST_LEVELS,
    CategoricalColumn,
    Column,
    Encoder,
    HashedColumn,
    NumericColumn,
    label_of,
)
from surefoot.linear.features import map_of
from surefoot.replay.columns import (
    Columns,
    LoggedRounds,
    RowReader,
    check_asked,
    guess_columns,
    is_written,
    left_out,
    named_text,
    resolved,
)
from surefoot.replay.dsjson import DsjsonLog
from surefoot.replay.log import BATCH_NUMBERS, BadRows, Batch, Log, RowMaker, batch_rows, span
from surefoot.replay.table_files import DataFrameTable, JsonLinesFile, ManyFiles, TableFile, line_blocks, open_tables


class ColumnRanges:
    """What a first pass over the log has seen of its contexts, from which an encoder is made.

    Of a column that is `hashed` into so many buckets nothing needs to be remembered.
    """

    def __init__(self, hashed: Mapping[str, int] | None = None) -> None:
        self._seen: dict[str, tuple[float, float] | set[str] | HashedColumn] = {}
        self._gaps: set[str] = set()
        self._hashed = {name: HashedColumn(name, buckets) for name, buckets in (hashed or {}).items()}

    def look_at(self, contexts: pl.DataFrame) -> None:
        """Take in some rows."""
        for name, values in contexts.to_dict().items():
            if values.len() == 0:
                continue
            if name in self._hashed:
                self._seen[name] = self._hashed[name]
            elif values.dtype == pl.String:
                levels = self._seen.setdefault(name, set())
                assert isinstance(levels, set)
                levels.update(label_of(text) for text in values.unique().to_list())
                _few(name, levels)
            else:
                numbers = values.to_numpy()
                self._gaps |= {name} if np.isnan(numbers).any() else set()
                range_ = self._seen.get(name, (math.inf, -math.inf))
                assert isinstance(range_, tuple)
                low, high = range_
                # A column of nothing but gaps has no range, and its number is 0 throughout.
                least, most = np.fmin.reduce(numbers), np.fmax.reduce(numbers)
                self._seen[name] = (float(np.fmin(low, least)), float(np.fmax(high, most)))

    def encoder(self) -> Encoder:
        """The encoder for all that was seen."""
        return Encoder(tuple(self._part(name, seen) for name, seen in self._seen.items()))

    def _part(self, name: str, seen: tuple[float, float] | set[str] | HashedColumn) -> Column:
        if isinstance(seen, HashedColumn):
            return seen
        if isinstance(seen, set):
            return CategoricalColumn(name, tuple(sort_labels(seen)))
        return _numeric(name, seen, name in self._gaps)


def _numeric(name: str, seen: tuple[float, float], has_gaps: bool) -> NumericColumn:
    low, high = seen if math.isfinite(seen[0]) else (0.0, 0.0)
    return NumericColumn(name, low, high, has_gaps)


def _few(name: str, levels: set[str]) -> None:
    if len(levels) > MOST_LEVELS:
        raise ConfigError(
            f"A column of labels must have at most {MOST_LEVELS} different ones, but {name!r} has more. "
            f"Hash them (`--hash {name}:64`, `Columns(hashed=...)`), group the rare ones, or leave the column out."
        )


def sort_labels(labels: Sequence[str] | set[str]) -> list[str]:
    """By number where all are whole numbers, else by name."""
    if all(label.lstrip("-").isdigit() for label in labels):
        return sorted(labels, key=int)
    return sorted(labels)


MOST_ACTIONS = 1_000


@dataclass(slots=True)
class TableSurvey:
    """What was found so far."""

    reader: RowReader
    rows: int = 0
    longest: float = 0.0
    propensity_range: tuple[float, float] = (np.inf, -np.inf)
    labels: set[str] = field(default_factory=set)
    ranges: ColumnRanges = field(init=False)

    def __post_init__(self) -> None:
        self.ranges = ColumnRanges(self.reader.columns.hashed)

    def look_at(self, rounds: LoggedRounds) -> None:
        """Take in some rows."""
        self.rows += len(rounds.rewards)
        if len(rounds.rewards):
            self._widen(span(rounds.propensities))
        self.labels.update(rounds.actions.unique().to_list())
        if rounds.baselines is not None:
            self.labels.update(rounds.baselines.unique().to_list())
        self._check_actions()
        if rounds.offered is not None:
            self.labels.update(rounds.offered.explode().drop_nulls().unique().to_list())
        self.ranges.look_at(rounds.contexts)
        if rounds.features is not None and rounds.features.size:
            self.longest = max(self.longest, float(np.linalg.norm(rounds.features, axis=2).max()))

    def _widen(self, found: tuple[float, float]) -> None:
        low, high = self.propensity_range
        # NaN in one place is NaN in all: where chances are logged, a row without one is refused.
        self.propensity_range = (min(found[0], low), max(found[1], high)) if found[0] > 0 else found

    def _check_actions(self) -> None:
        if len(self.labels) > MOST_ACTIONS:
            raise LogError(
                f"`{self.reader.columns.action}` must name at most {MOST_ACTIONS:,} actions, but `{self.reader.path}` "
                "has more. Is it the right column?"
            )

    @property
    def actions(self) -> tuple[str, ...]:
        """All that were played, offered or today's; where features are logged, one for each row of them."""
        shape = self.reader.features_shape
        return tuple(sort_labels(self.labels if shape is None else {str(i) for i in range(shape[0])}))

    @property
    def encoder(self) -> Encoder:
        """How contexts become numbers."""
        return self.ranges.encoder()


def survey(reader: RowReader, labels: Sequence[str], bad: BadRows) -> TableSurvey:
    """Look at the whole table; bad rows are counted in `bad`."""
    seen = TableSurvey(reader)
    for rounds in reader.rounds(bad, labels):
        seen.look_at(rounds)
    if seen.rows == 0:
        raise LogError(f"`{reader.path}` must have at least one usable row, but it has none.")
    return seen


Format = Literal["parquet", "csv", "jsonl", "dsjson"]
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".dsjson": "dsjson",
}  # fmt: skip
LOGGED = "logged"


class TableLog(Log):
    """Rounds of a table.

    `baseline` is an action, or "logged": what was logged is what the baseline played. A column mapped as baseline goes
    first. Action features give `Interactions` of context and action; without them every action has a theta of its own
    (`Disjoint`), or, where there is no context, a mean of its own (`OneHot`).
    """

    def __init__(
        self,
        file: TableFile,
        *,
        columns: Columns | None = None,
        baseline: str = LOGGED,
        actions: Sequence[str] | None = None,
        encoder: Encoder | None = None,
        action_features: Mapping[str, Sequence[float]] | None = None,
        max_bad: int = 0,
    ) -> None:
        self._file, self._path, self.name = file, file.path, Path(file.path).name
        named = columns or guess_columns(self._file.header)
        named = named if encoder is None else _as_encoded(named, encoder, self._file.header)
        named = resolved(named, self._file.header, self._path)
        self.columns, self.left_out = self._fit_context(named)
        self.context = self.columns.context
        if isinstance(self._file, (JsonLinesFile, ManyFiles)):
            self._file.as_text([name for name in self.columns.needed if is_written(self.columns, name)])
        self.is_full = self.columns.reward is None
        self.has_offers = self.columns.offered is not None
        self._reader = RowReader(self._file, self.columns, encoder)
        self.bad = BadRows(max_bad)
        if action_features is not None:
            action_features = {str(named_text(action)): features for action, features in action_features.items()}
        self._given_actions = tuple(str(named_text(action)) for action in actions or action_features or ())
        seen = None
        if encoder is None or not self._given_actions:
            seen = survey(self._reader, self._given_actions, self.bad)
        self.encoder = encoder if encoder is not None else _of(seen).encoder
        self.actions = self._given_actions or _of(seen).actions
        self.rows = seen.rows if seen is not None else None
        self.propensity_range = seen.propensity_range if seen is not None else None
        self._longest = seen.longest if seen is not None else 0.0
        self._baseline = self._read_baseline(baseline)
        self.follows_log = self._baseline is None and self.columns.baseline is None
        self._prepare(action_features)

    def _fit_context(self, columns: Columns) -> tuple[Columns, dict[str, str]]:
        """The columns without those that are no context, and why they are none."""
        first = next(iter(self._file.frames(columns.needed)), None)
        if first is None:
            return columns, {}
        check_asked(first.table, tuple(columns.hashed) if columns.is_guess else columns.context)
        if not columns.is_guess:
            return columns, {}
        guessed = [name for name in columns.context if name not in columns.hashed]
        reasons = left_out(first.table, guessed, action=columns.action, reward=columns.reward)
        kept = tuple(name for name in columns.context if name not in reasons)
        return replace(columns, context=kept), reasons

    def _prepare(self, action_features: Mapping[str, Sequence[float]] | None) -> None:
        self._maker: RowMaker | None = None
        self.action_features = None if action_features is None else {k: tuple(v) for k, v in action_features.items()}
        if self._reader.features_shape is not None:
            self.dim = self._reader.features_shape[1]
            self.feature_bound = self._longest
            return
        width = self.encoder.dim
        self.phi = map_of(self.actions, width, action_features)
        self._maker = RowMaker(self.phi, width)
        self.blocks = self._maker.blocks
        self.dim, self.feature_bound = self.phi.dim, self.phi.bound * (1 + 1e-9)

    def _read_baseline(self, baseline: str) -> int | None:
        if baseline == LOGGED or self.columns.baseline is not None:
            return None
        baseline = str(named_text(baseline))
        if baseline not in self.actions:
            raise ConfigError(
                f"`baseline` must be one of the actions, or {LOGGED!r}, but got {baseline!r}. "
                f"{nearest(baseline, self.actions)}"
            )
        return self.actions.index(baseline)

    @property
    def baseline_row(self) -> int:
        """Row of the baseline's action, where that is the same in all rounds."""
        if self._baseline is None:
            raise ConfigError("`baseline` must be one action, but in this log it changes from row to row.")
        return self._baseline

    @property
    def weight_names(self) -> list[str]:
        """What each weight of theta belongs to."""
        if self._maker is None:
            return super().weight_names
        return column_names(self.phi, self.actions, self.encoder)

    @property
    def context_names(self) -> list[str]:
        """What each column of `contexts` holds."""
        return [ALWAYS, *self.encoder.names] if self.blocks else super().context_names

    def batches(self) -> Iterator[Batch]:
        """All rounds, in order; bad rows are counted afresh."""
        return self._read(is_compact=False)

    def compact_batches(self) -> Iterator[Batch]:
        """The same with contexts alone, where every action has a theta of its own."""
        return self._read(is_compact=self._maker is not None and self._maker.blocks > 0)

    def _read(self, *, is_compact: bool) -> Iterator[Batch]:
        # Of this pass alone: another thread may be on its own way through the log.
        self.bad = bad = BadRows(self.bad.limit)
        for rounds in self._reader.rounds(bad, self.actions):
            step = batch_rows(self.dim, len(self.actions), is_compact=is_compact)
            # Many wide actions leave a few rows to a batch: labels and contexts are read for many batches at once.
            stride = step * max(1, BATCH_NUMBERS // (step * max(1, self.encoder.dim)))
            for start in range(0, len(rounds.rewards), stride):
                yield from self._batches(rounds, slice(start, start + stride), step, is_compact=is_compact)

    def _batches(self, rounds: LoggedRounds, part: slice, step: int, *, is_compact: bool) -> Iterator[Batch]:
        contexts = self._contexts(rounds, part)
        actions = self._places(rounds.actions[part])
        rewards, lines = rounds.rewards[part].reshape(-1, 1), rounds.lines[part]
        if rounds.baselines is not None:
            baselines = self._places(rounds.baselines[part])
        else:
            baselines = actions if self._baseline is None else np.full(actions.size, self._baseline)
        mask = None if rounds.offered is None else self._mask(rounds.offered[part], baselines, lines)
        for start in range(0, actions.size, step):
            at = slice(start, start + step)
            yield Batch(
                self._features(contexts[at], is_compact=is_compact),
                actions[at],
                np.eye(len(self.actions))[actions[at]] if self.is_full else rewards[at],
                rounds.propensities[part][at],
                baselines[at],
                lines[at],
                None if mask is None else mask[at],
                self._maker.blocks if self._maker is not None and is_compact else 0,
            )

    def _features(self, contexts: NDArray[np.float64], *, is_compact: bool) -> NDArray[np.float64]:
        if self._maker is None:
            return np.ascontiguousarray(contexts)
        return self._maker.contexts(contexts) if is_compact else self._maker(contexts)

    def _contexts(self, rounds: LoggedRounds, part: slice) -> NDArray[np.float64]:
        """Encoded contexts, or the features that the log brings."""
        if rounds.features is not None:
            return rounds.features[part]
        if self.encoder.dim == 0:
            return np.zeros((len(rounds.rewards[part]), 0))  # a table without columns forgets how many rows it has
        return self.encoder.encode(rounds.contexts[part])

    def _mask(self, offered: pl.Series, baselines: NDArray[np.int64], lines: NDArray[np.int64]) -> NDArray[np.bool_]:
        mask = np.zeros((offered.len(), len(self.actions)), dtype=np.bool_)
        rows = np.repeat(np.arange(offered.len()), offered.list.len().to_numpy())
        mask[rows, self._places(offered.explode())] = True
        absent = ~mask[np.arange(len(mask)), baselines]
        if absent.any():
            at = int(np.argmax(absent))
            raise LogError(
                f"Today's action must be offered in every row, but {self.actions[baselines[at]]!r} is not in line "
                f"{lines[at]:,} of `{self._path}`. Map a column that has it for each row (`--baseline-column`)."
            )
        return mask

    def _places(self, labels: pl.Series) -> NDArray[np.int64]:
        places = labels.replace_strict(list(self.actions), list(range(len(self.actions))), return_dtype=pl.Int64)
        return np.ascontiguousarray(places.to_numpy())


def _as_encoded(columns: Columns, encoder: Encoder, header: Sequence[str]) -> Columns:
    """The context as an encoder knows it, whatever the log would suggest: its columns, and labels where it has them."""
    names = [part.name for part in encoder.parts]
    # An entry of a list is a part of its own.
    context = [name if name in header else re.sub(r"\[\d+\]$", "", name) for name in names]
    labels = [part.name for part in encoder.parts if not isinstance(part, NumericColumn)]
    hashed = {part.name: part.buckets for part in encoder.parts if isinstance(part, HashedColumn)}
    if columns.features:
        return columns
    named = tuple(dict.fromkeys(context))
    return replace(columns, context=named, categorical=tuple(labels), hashed=hashed, is_guess=False)


def _of(survey: TableSurvey | None) -> TableSurvey:
    assert survey is not None
    return survey


def format_of(path: Path) -> Format:
    """The format that a file's name tells."""
    if path.is_dir():
        raise ConfigError(f"A log must be a file, but `{path}` is a folder. Name the files in it: `{path}/*.csv`.")
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    kind = SUFFIXES.get(suffixes[-1] if suffixes else "")
    if kind is None:
        raise ConfigError(
            f"`format` must be given for `{path.name}`: parquet, csv, jsonl or dsjson. Its name does not tell."
        )
    return kind


NAMES = ("action", "item_id")  # of the column that names the action, beside the log's own


def read_items(path: Path, action: str | None = None) -> dict[str, tuple[float, ...]]:
    """Features of every action: numbers as they are, a label as 0s and a 1.

    The action is in the column that the header calls `action`, "action" or "item_id", else in the first. A column
    without a name, as pandas writes its index, is left out.
    """
    try:
        lines = [cells for cells in csv.reader(path.read_text(encoding="utf-8").splitlines()) if cells]
    except OSError as error:
        raise LogError(f"`{path}` must be a CSV file of actions, but cannot be read: {error.strerror}.") from None
    if not lines:
        raise LogError(f"`{path}` must have a line for every action, but it is empty.")
    for number, cells in enumerate(lines, start=1):
        if len(cells) != len(lines[0]) or len(cells) < 2:
            raise LogError(f"`{path}` must hold a name and features a line, but line {number} is {cells}.")
    key = next((lines[0].index(name) for name in (action, *NAMES) if name in lines[0]), None)
    has_header = key is not None or _is_header(lines)
    rows, place = lines[has_header:], key or 0
    names = [cells[place].strip() for cells in rows]
    for name in names:
        if names.count(name) > 1:
            raise LogError(f"`{path}` must hold every action once, but {name!r} occurs twice.")
    others = [at for at in range(len(lines[0])) if at != place and not (has_header and not lines[0][at].strip())]
    columns = [_read([cells[at].strip() for cells in rows], path, at, 1 + has_header) for at in others]
    return {name: tuple(value for column in columns for value in column[at]) for at, name in enumerate(names)}


def _is_header(lines: Sequence[Sequence[str]]) -> bool:
    """Whether a first line has a word above a column of numbers."""
    return len(lines) > 1 and any(
        not _is_number(lines[0][at]) and all(_is_number(cells[at]) for cells in lines[1:])
        for at in range(1, len(lines[0]))
    )


def _read(cells: Sequence[str], path: Path, at: int, first: int) -> list[list[float]]:
    numbers = [_is_number(cell) for cell in cells]
    if all(numbers):
        return [[float(cell)] for cell in cells]
    if any(numbers):
        odd = numbers.index(False)
        raise LogError(
            f"Column {at + 1} of `{path}` must hold numbers or labels and not both, but line {odd + first} has "
            f"{cells[odd]!r}."
        )
    levels = sorted(set(cells))
    if len(levels) > MOST_LEVELS:
        raise LogError(f"Column {at + 1} of `{path}` must have at most {MOST_LEVELS} labels, but has {len(levels)}.")
    return [[float(cell == level) for level in levels] for cell in cells]


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


FIRST = "1"  # the baseline of DSJSON


def read_log(
    path: str | Path | Sequence[str | Path] | object,
    *,
    format: Format | None = None,  # noqa: A002 - the word that users know
    columns: Columns | None = None,
    baseline: str = LOGGED,
    actions: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    action_features: Mapping[str, Sequence[float]] | None = None,
    max_bad: int = 0,
) -> Log:
    r"""Open a log: Parquet, CSV, JSON lines or DSJSON in one file or several, or a table of polars, pandas or Arrow.

    The log may be larger than memory: one pass over it finds actions and ranges, and it is then read in batches.

    Parameters
    ----------
    path : str, Path, sequence of them, or table
        The file, or several of one kind in the order of their rounds, or a table in memory; text files may be gzipped.
    format : {"parquet", "csv", "jsonl", "dsjson"}, optional
        By default told by the file's name and content.
    columns : Columns, optional
        Which columns hold what; by default guessed from the header.
    baseline : str
        The action played today, or "logged" if what was logged is the baseline.
    actions : sequence of str, optional
        Names of all actions; by default those in the log.
    encoder : Encoder, optional
        How contexts become numbers; by default fitted to the log.
    action_features : mapping of str to sequence of float, optional
        Features of every action, to be multiplied with the context.
    max_bad : int
        Unusable rows to leave out before giving up.

    Returns
    -------
    Log
        For `replay`, `fit_baseline` and `history`.

    Raises
    ------
    LogError
        If a file cannot be read or is given twice, a column is missing, or too many rows are unusable.
    ConfigError
        If `columns`, `action_features`, `encoder` or another baseline than the first action are given for DSJSON.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "log.csv"
    ...     _ = file.write_text("action,reward,age\nred,0.2,30\nblue,0.7,40\n")
    ...     log = read_log(file, baseline="red")
    >>> sorted(log.actions), log.rows
    (['blue', 'red'], 2)
    """
    count("max_bad", max_bad, least=0, hint="max_bad is how many bad rows may be skipped.")
    paths = _paths(path)
    kind = (format or kind_of(paths)) if paths else None
    if kind == "dsjson":
        if columns is not None or action_features is not None or encoder is not None:
            raise ConfigError(
                "`columns`, `action_features` and an encoder (`--config`) must not be given for DSJSON, whose names "
                "are fixed and whose features are hashed."
            )
        if baseline not in (LOGGED, FIRST):
            raise ConfigError(
                f"`baseline` must be {FIRST!r} for DSJSON, the first action of an event, but got {baseline!r}."
            )
        return DsjsonLog(paths, max_bad=max_bad)
    return TableLog(
        open_tables(paths, kind) if kind else DataFrameTable(path),
        columns=columns,
        baseline=baseline,
        actions=actions,
        encoder=encoder,
        action_features=action_features,
        max_bad=max_bad,
    )


def _paths(given: object) -> list[Path]:
    """The files of a log; none where it is a table in memory."""
    if isinstance(given, (str, Path)):
        return [Path(given)]
    if isinstance(given, (list, tuple)) and all(isinstance(each, (str, Path)) for each in given):
        if not given:
            raise ConfigError("A log must have at least one file, but got an empty list.")
        return _different([Path(each) for each in given])
    return []


def _different(paths: list[Path]) -> list[Path]:
    """The files, each of them once: however a path is spelt, a link included, its rounds were played once."""
    known: dict[object, Path] = {}
    for path in paths:
        about = path.stat() if path.exists() else None
        key = path.absolute() if about is None else (about.st_dev, about.st_ino)
        if key in known:
            first = known[key]
            came = f"`{path}` came twice" if first == path else f"`{first}` and `{path}` are the same file"
            raise LogError(
                f"A file of a log must be given once, but {came}: its rounds would count twice. Leave one out."
            )
        known[key] = path
    return paths


def kind_of(paths: Sequence[Path]) -> Format:
    """The format that all names tell; JSON lines with VW's labels are DSJSON."""
    kinds = {format_of(path) for path in paths}
    if len(kinds) > 1:
        raise ConfigError(f"All files of a log must be of one kind, but these are {' and '.join(sorted(kinds))}.")
    (kind,) = kinds
    return "dsjson" if kind == "jsonl" and _is_dsjson(paths[0]) else kind


def _is_dsjson(path: Path) -> bool:
    if not path.exists():
        return False
    return b'"_label_cost"' in next(line_blocks(path, size=2**16), (1, b""))[1]
