"""Rows of a table that passed every check, ready to become a batch."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.arrays import Vector
from surefoot.errors import LogError
from surefoot.linear.encoding import GAP_WORDS, CategoricalColumn, Column, Encoder, NumericColumn
from surefoot.replay.batch import BadRows
from surefoot.replay.columns import Columns, RowChecker, read_propensities
from surefoot.replay.seen_ids import SeenIds
from surefoot.replay.shared_file import WHOLE, Span
from surefoot.replay.table_reader import Frame, TableFile


@dataclass(frozen=True, slots=True, eq=False)
class LoggedRounds:
    """Rows that passed: labels as text, numbers as floats; `features` (rounds, actions, dim) where they are logged.

    `last_line` is that of all rows, whether they passed or not.
    """

    lines: NDArray[np.int64]
    actions: pl.Series
    rewards: Vector
    propensities: Vector
    baselines: pl.Series | None
    contexts: pl.DataFrame
    features: NDArray[np.float64] | None
    ids: pl.Series | None
    offered: pl.Series | None = None
    last_line: int = 0


class RowReader:
    """Reads the rounds of a table file; what kind a context column is, an encoder says, or else its first frame."""

    def __init__(self, file: TableFile, columns: Columns, encoder: Encoder | None = None) -> None:
        self._file, self.columns = file, columns
        self._parts: dict[str, Column] = {} if encoder is None else {part.name: part for part in encoder.parts}
        self._kinds: dict[str, int | str] = {}
        self.features_shape: tuple[int, int] | None = None

    @property
    def path(self) -> object:
        """Where the table is read from."""
        return self._file.path

    def spans(self) -> list[Span]:
        """Parts that workers can read beside each other: all as one where an id must not repeat."""
        return [WHOLE] if self.columns.id else self._file.spans()

    def prepare(self) -> None:
        """Look at the first frame, which decides the kinds of columns for whoever reads another span."""
        next(self.rounds(BadRows(limit=None), ()), None)

    def rounds(self, bad: BadRows, labels: Sequence[str], span: Span = WHOLE) -> Iterator[LoggedRounds]:
        """The rows that pass every check, frame by frame; the others are counted in `bad`.

        Where `labels` are given, other actions are refused.
        """
        seen = SeenIds() if self.columns.id else None
        for frame in self._file.frames(self.columns.needed, span):
            check = RowChecker(frame)
            rounds = self._read(check, labels)
            if seen is not None and rounds.ids is not None:
                repeated = np.zeros(check.table.height, dtype=np.bool_)
                # A bad row does not use up its id: it may be there again, mended.
                good = np.array([at not in check.reasons for at in range(check.table.height)], dtype=np.bool_)
                repeated[good] = seen.repeated(rounds.ids.filter(pl.Series(good)).hash().to_numpy())
                check.refuse(repeated, f"{self.columns.id} {{}} was used by a row before", rounds.ids)
            found = sorted([*frame.bad, *((int(frame.lines[at]), why) for at, why in check.reasons.items())])
            if found:
                bad.add([(line, f"{why}{_place(frame, line)}") for line, why in found], self._file.path)
            yield replace(_without(rounds, check.reasons), last_line=frame.last_line)

    def _read(self, check: RowChecker, labels: Sequence[str]) -> LoggedRounds:
        columns = self.columns
        actions = check.label(columns.action)
        features = self._read_features(check) if columns.features else None
        if features is not None:
            labels = [str(i) for i in range(features.shape[1])]
        baselines = check.label(columns.baseline) if columns.baseline else None
        for name, series in ((columns.action, actions), (columns.baseline, baselines)):
            if labels and series is not None:
                unknown = ~series.is_in(list(labels)).fill_null(True).to_numpy()
                check.refuse(unknown, f"{name} {{}} is not one of the {len(labels)} actions", series)
        offered = self._read_offers(check, labels, actions, baselines) if columns.offered else None
        return LoggedRounds(
            check.lines,
            actions,
            check.reward(columns.reward) if columns.reward else np.ones(check.table.height),
            read_propensities(check, columns.propensity),
            baselines,
            self._read_contexts(check),
            features,
            check.label(columns.id) if columns.id else None,
            offered,
        )

    def _read_offers(
        self, check: RowChecker, labels: Sequence[str], actions: pl.Series, baselines: pl.Series | None
    ) -> pl.Series:
        name = self.columns.offered
        assert name is not None
        offered = check.label_lists(name)
        for column, played in ((self.columns.action, actions), (self.columns.baseline, baselines)):
            if played is not None:
                table = pl.DataFrame({"one": played, "all": offered})
                within = table.select(pl.col("all").list.contains(pl.col("one"))).to_series().fill_null(True)
                check.refuse(~within.to_numpy(), f"{column} {{}} is not among those of {name}", played)
        if labels:
            known = offered.list.eval(pl.element().is_in(list(labels))).list.all().fill_null(True)
            check.refuse(~known.to_numpy(), f"{name} {{}} has one that is not among the {len(labels)} actions", offered)
        return offered

    def _read_contexts(self, check: RowChecker) -> pl.DataFrame:
        found: dict[str, pl.Series | Vector] = {}
        for name in self.columns.context:
            kind = self._kinds.setdefault(name, self._kind_of(name, check.table[name]))
            if isinstance(kind, int):
                values, wide = check.numbers(name, kind if kind > 0 else None)
                self._kinds[name] = wide
                found |= {f"{name}[{j}]": values[:, j] for j in range(wide)}
            else:
                found[name] = self._read_column(check, name, kind)
        return pl.DataFrame(found)

    def _read_column(self, check: RowChecker, name: str, kind: str) -> pl.Series | Vector:
        values = check.label_or_gap(name) if kind == "label" else check.number_or_gap(name)
        if name in self._parts and not self._parts[name].has_gaps:
            gaps = np.isnan(values) if isinstance(values, np.ndarray) else _gaps(self._parts[name], values)
            check.refuse(gaps, f"{name} is missing, and its encoder was fitted to a log without gaps there")
        return values

    def _kind_of(self, name: str, values: pl.Series) -> int | str:
        part = self._parts.get(name)
        if not self._parts or part is None:
            entries = [entry for entry in self._parts if entry.startswith(f"{name}[")]
            return len(entries) or _kind_of(values, self.columns.is_categorical(name))
        if isinstance(part, NumericColumn) and (
            values.dtype.is_nested() or (values.dtype == pl.String and _reads_as_text(values))
        ):
            shown = next(iter(values.drop_nulls().head(1).to_list()), None)
            raise LogError(
                f"Column {name!r} must hold numbers, for which its encoder was made, but `{self.path}` has "
                f"{'lists' if values.dtype.is_nested() else 'text'} there, such as {shown!r:.60}. "
                "Mend the log, or fit to it anew (`surefoot fit-baseline`)."
            )
        return "number" if isinstance(part, NumericColumn) else "label"

    def _read_features(self, check: RowChecker) -> NDArray[np.float64]:
        assert self.columns.features is not None
        given, name = check.table[self.columns.features], self.columns.features
        if self.features_shape is None:
            first = given.drop_nulls().head(1).to_list()
            try:
                self.features_shape = (len(first[0]), len(first[0][0]))
            except (IndexError, TypeError):
                raise LogError(f"Column {name!r} must hold one list of numbers per action, a list of lists.") from None
        actions, dim = self.features_shape
        right = given.list.eval(pl.element().list.len() == dim).list.all() & (given.list.len() == actions)
        wrong = ~right.fill_null(False).to_numpy()
        check.refuse(wrong, f"{name} must hold {actions} lists of {dim} numbers, as in the first row")
        filled = np.zeros((given.len(), actions, dim))
        flat = given.filter(pl.Series(~wrong)).explode().explode().cast(pl.Float64, strict=False).to_numpy()
        filled[~wrong] = flat.reshape(-1, actions, dim)
        check.refuse(np.asarray(~np.isfinite(filled).all(axis=(1, 2))), f"{name} must hold finite numbers")
        return filled


def _gaps(part: Column, values: pl.Series) -> NDArray[np.bool_]:
    """Where labels are missing, or a word for a gap stands in their place."""
    words = [text for text in values.unique().to_list() if isinstance(part, CategoricalColumn) and part.refuses(text)]
    return np.asarray(values.is_in(words, nulls_equal=True).to_numpy())


def _place(frame: Frame, line: int) -> str:
    """Of several files, which one, and where in it."""
    return f" ({frame.file}, line {line - frame.before:,})" if frame.file else ""


def _kind_of(values: pl.Series, categorical: bool) -> int | str:
    """number, label, or for lists their length (0: not yet known), from the first frame."""
    if categorical or isinstance(values.dtype, (pl.Categorical, pl.Enum)):
        return "label"
    if isinstance(values.dtype, (pl.List, pl.Array)):
        return 0
    if values.dtype == pl.String and _reads_as_text(values):
        return "label"
    return "number"


def _reads_as_text(values: pl.Series) -> bool:
    """Whether most values are no numbers: a few bad ones do not turn a column of numbers into labels."""
    stripped = values.drop_nulls().str.strip_chars()
    shown = stripped.filter(~stripped.str.to_lowercase().is_in(list(GAP_WORDS))).head(1_000)
    numbers = shown.cast(pl.Float64, strict=False)
    return numbers.null_count() > shown.len() // 2


def _without(rounds: LoggedRounds, bad: Mapping[int, str]) -> LoggedRounds:
    if not bad:
        return rounds
    keep = np.ones(len(rounds.rewards), dtype=np.bool_)
    keep[list(bad)] = False
    kept = pl.Series(keep)
    return replace(
        rounds,
        lines=rounds.lines[keep],
        actions=rounds.actions.filter(kept),
        rewards=rounds.rewards[keep],
        propensities=rounds.propensities[keep],
        baselines=None if rounds.baselines is None else rounds.baselines.filter(kept),
        # A table without columns has no rows to filter.
        contexts=rounds.contexts.filter(kept) if rounds.contexts.width else rounds.contexts,
        features=None if rounds.features is None else rounds.features[keep],
        ids=None if rounds.ids is None else rounds.ids.filter(kept),
        offered=None if rounds.offered is None else rounds.offered.filter(kept),
    )
