"""A log in a file: Parquet, CSV or JSON lines, read batch by batch through a column mapping."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.errors import ConfigError, LogError
from surefoot.experiment.configuration import ALWAYS, column_names
from surefoot.hints import nearest
from surefoot.linear.encoding import Encoder, HashedColumn, NumericColumn
from surefoot.linear.features import map_of
from surefoot.replay.batch import BATCH_NUMBERS, BadRows, Batch, Log, batch_rows
from surefoot.replay.columns import Columns, guess_columns, named_text
from surefoot.replay.context_columns import check_asked, left_out
from surefoot.replay.feature_rows import RowMaker
from surefoot.replay.logged_rounds import LoggedRounds, RowReader
from surefoot.replay.many_files import ManyFiles
from surefoot.replay.table_reader import JsonLinesFile, TableFile
from surefoot.replay.table_survey import TableSurvey, survey
from surefoot.simulation.workers import Where

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
        on: Where = None,
    ) -> None:
        self._file, self._path, self.name = file, file.path, Path(file.path).name
        named = columns or guess_columns(self._file.header)
        named = named if encoder is None else _as_encoded(named, encoder, self._file.header)
        named = named.resolve(self._file.header, self._path)
        self.columns, self.left_out = self._fit_context(named)
        self.context = self.columns.context
        if isinstance(self._file, (JsonLinesFile, ManyFiles)):
            self._file.as_text([name for name in self.columns.needed if self.columns.is_written(name)])
        self.is_full = self.columns.reward is None
        self.has_offers = self.columns.offered is not None
        self._reader = RowReader(self._file, self.columns, encoder)
        self.bad = BadRows(max_bad)
        if action_features is not None:
            action_features = {str(named_text(action)): features for action, features in action_features.items()}
        self._given_actions = tuple(str(named_text(action)) for action in actions or action_features or ())
        found = None
        if encoder is None or not self._given_actions:
            found = survey(self._reader, self._given_actions, self.bad, on)
        self.encoder = encoder if encoder is not None else _of(found).encoder
        self.actions = self._given_actions or _of(found).actions
        self.rows = found.rows if found is not None else None
        self.propensity_range = found.propensity_range if found is not None else None
        self._longest = found.longest if found is not None else 0.0
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
    found = SUFFIXES.get(suffixes[-1] if suffixes else "")
    if found is None:
        raise ConfigError(
            f"`format` must be given for `{path.name}`: parquet, csv, jsonl or dsjson. Its name does not tell."
        )
    return found
