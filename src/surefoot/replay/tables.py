"""A log in a file: Parquet, CSV or JSON lines, read batch by batch through a column mapping."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.arrays import Vector
from surefoot.errors import ConfigError, LogError
from surefoot.linear.features import Disjoint, FeatureMap, Interactions, OneHot
from surefoot.replay.batch import BadRows, Batch, Log, span, split
from surefoot.replay.columns import Check, Columns, Rounds, guess_columns, read_propensities
from surefoot.replay.encoding import Encoder, Ranges, sort_labels
from surefoot.replay.frames import Frame, TableFile, open_table
from surefoot.replay.ids import SeenIds
from surefoot.replay.rows import RowMaker
from surefoot.simulation.specs import nearest

Format = Literal["parquet", "csv", "jsonl", "dsjson"]
SUFFIXES: dict[str, Format] = {
    ".parquet": "parquet", ".pq": "parquet", ".csv": "csv", ".tsv": "csv",
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".dsjson": "dsjson",
}  # fmt: skip
LOGGED = "logged"
MOST_ACTIONS = 1_000


@dataclass(frozen=True, slots=True)
class Survey:
    """What a first pass over a table found."""

    rows: int
    actions: tuple[str, ...]
    encoder: Encoder
    propensity_range: tuple[float, float]


class TableLog(Log):
    """Rounds of a table.

    `baseline` is an action, or "logged": what was logged is what the baseline played. A column mapped as baseline goes
    first. Action features give `Interactions` of context and action; without them every action has a theta of its own
    (`Disjoint`), or, where there is no context, a mean of its own (`OneHot`).
    """

    def __init__(
        self,
        path: str | Path,
        *,
        format: Format = "csv",  # noqa: A002 - the word that users know
        columns: Columns | None = None,
        baseline: str = LOGGED,
        actions: Sequence[str] | None = None,
        encoder: Encoder | None = None,
        action_features: Mapping[str, Sequence[float]] | None = None,
        max_bad: int = 0,
    ) -> None:
        self._path, self.name = Path(path), Path(path).name
        self._file: TableFile = open_table(self._path, format)
        self.columns = (columns or guess_columns(self._file.header)).resolve(self._file.header, path)
        self._kinds: dict[str, int | str] = {}
        self._features_shape: tuple[int, int] | None = None
        self.bad = BadRows(max_bad)
        self._given_actions = tuple(actions or action_features or ())
        survey = self._survey() if encoder is None or not self._given_actions else None
        self.encoder = encoder if encoder is not None else _of(survey).encoder
        self.actions = self._given_actions or _of(survey).actions
        self.rows = survey.rows if survey is not None else None
        self.propensity_range = survey.propensity_range if survey is not None else None
        self._baseline = self._read_baseline(baseline)
        self.follows_log = self._baseline is None and self.columns.baseline is None
        self._prepare(action_features)

    def _prepare(self, action_features: Mapping[str, Sequence[float]] | None) -> None:
        self._maker: RowMaker | None = None
        self.action_features = None if action_features is None else {k: tuple(v) for k, v in action_features.items()}
        if self._features_shape is not None:
            self.dim = self._features_shape[1]
            self.feature_bound = self._longest
            return
        width = self.encoder.dim
        self.phi = map_of(self.actions, width, action_features)
        self._maker = RowMaker(self.phi, width)
        self.dim, self.feature_bound = self.phi.dim, self.phi.bound * (1 + 1e-9)

    def _read_baseline(self, baseline: str) -> int | None:
        if baseline == LOGGED or self.columns.baseline is not None:
            return None
        if baseline not in self.actions:
            raise ConfigError(
                f"`baseline` must be one of the actions, or {LOGGED!r}, but got {baseline!r}. "
                f"{nearest(baseline, list(self.actions))}"
            )
        return self.actions.index(baseline)

    @property
    def baseline_row(self) -> int:
        """Row of the baseline's action, where that is the same in all rounds."""
        if self._baseline is None:
            raise ConfigError("`baseline` must be one action, but in this log it changes from row to row.")
        return self._baseline

    def _survey(self) -> Survey:
        rows, labels, ranges, chances = 0, set[str](), Ranges(), (np.inf, -np.inf)
        self._longest = 0.0
        for rounds in self.rounds():
            rows += len(rounds.rewards)
            if len(rounds.rewards):
                low, high = span(rounds.propensities)
                chances = (min(low, chances[0]), max(high, chances[1])) if low > 0 else (low, high)
            labels.update(rounds.actions.unique().to_list())
            if rounds.baselines is not None:
                labels.update(rounds.baselines.unique().to_list())
            if len(labels) > MOST_ACTIONS:
                raise LogError(
                    f"`{self.columns.action}` must name at most {MOST_ACTIONS:,} actions, but `{self._path}` has more. "
                    "Is it the right column?"
                )
            ranges.look_at(rounds.contexts)
            if rounds.features is not None and rounds.features.size:
                self._longest = max(self._longest, float(np.linalg.norm(rounds.features, axis=2).max()))
        if rows == 0:
            raise LogError(f"`{self._path}` must have at least one usable row, but it has none.")
        if self._features_shape is not None:
            labels = {str(i) for i in range(self._features_shape[0])}
        return Survey(rows, tuple(sort_labels(labels)), ranges.encoder(), chances)

    def batches(self) -> Iterator[Batch]:
        """All rounds, in order; bad rows are counted afresh."""
        for rounds in self.rounds(labels=self.actions):
            features, keep = rounds.features, len(rounds.rewards)
            step = max(1, 2_000_000 // max(1, len(self.actions) * self.dim))
            for start in range(0, keep, step):
                yield from split(self._batch(rounds, slice(start, start + step), features))

    def _batch(self, rounds: Rounds, part: slice, features: NDArray[np.float64] | None) -> Batch:
        if features is None:
            assert self._maker is not None
            rounds_here = len(rounds.rewards[part])
            blank = np.zeros((rounds_here, 0))  # a table without columns forgets how many rows it has
            rows = self._maker(self.encoder.encode(rounds.contexts[part]) if self.encoder.dim else blank)
        else:
            rows = np.ascontiguousarray(features[part])
        actions = self._places(rounds.actions[part])
        if rounds.baselines is not None:
            baselines = self._places(rounds.baselines[part])
        else:
            baselines = actions if self._baseline is None else np.full(actions.size, self._baseline)
        return Batch(
            rows,
            actions,
            rounds.rewards[part].reshape(-1, 1),
            rounds.propensities[part],
            baselines,
            rounds.lines[part],
        )

    def _places(self, labels: pl.Series) -> NDArray[np.int64]:
        places = labels.replace_strict(list(self.actions), list(range(len(self.actions))), return_dtype=pl.Int64)
        return np.ascontiguousarray(places.to_numpy())

    def rounds(self, labels: Sequence[str] | None = None) -> Iterator[Rounds]:
        """The rows that pass every check, frame by frame; the others are counted in `bad`."""
        self.bad = BadRows(self.bad.limit)
        seen = SeenIds() if self.columns.id else None
        for frame in self._file.frames(self.columns.needed):
            check = Check(frame)
            rounds = self._read(check, labels or self._given_actions)
            if seen is not None and rounds.ids is not None:
                repeated = np.zeros(check.table.height, dtype=np.bool_)
                good = np.array([at not in check.reasons for at in range(check.table.height)], dtype=np.bool_)
                repeated[good] = seen.repeated(rounds.ids.filter(pl.Series(good)).hash().to_numpy())
                check.refuse(repeated, f"{self.columns.id} {{}} was used by a row before", rounds.ids)
            found = sorted([*frame.bad, *((int(frame.lines[at]), why) for at, why in check.reasons.items())])
            if found:
                self.bad.add(found, self._path)
            yield _without(rounds, check.reasons)

    def _read(self, check: Check, labels: Sequence[str]) -> Rounds:
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
        return Rounds(
            check.lines,
            actions,
            check.number(columns.reward),
            read_propensities(check, columns.propensity),
            baselines,
            self._read_contexts(check),
            features,
            check.label(columns.id) if columns.id else None,
        )

    def _read_contexts(self, check: Check) -> pl.DataFrame:
        found: dict[str, pl.Series | Vector] = {}
        for name in self.columns.context:
            kind = self._kinds.setdefault(name, _kind_of(check.table[name], self.columns.is_categorical(name)))
            if isinstance(kind, int):
                values, wide = check.numbers(name, kind if kind > 0 else None)
                self._kinds[name] = wide
                found |= {f"{name}[{j}]": values[:, j] for j in range(wide)}
            else:
                found[name] = check.label(name) if kind == "label" else check.number(name)
        return pl.DataFrame(found)

    def _read_features(self, check: Check) -> NDArray[np.float64]:
        assert self.columns.features is not None
        given, name = check.table[self.columns.features], self.columns.features
        if self._features_shape is None:
            first = given.drop_nulls().head(1).to_list()
            try:
                self._features_shape = (len(first[0]), len(first[0][0]))
            except (IndexError, TypeError):
                raise LogError(f"Column {name!r} must hold one list of numbers per action, a list of lists.") from None
        actions, dim = self._features_shape
        right = given.list.eval(pl.element().list.len() == dim).list.all() & (given.list.len() == actions)
        wrong = ~right.fill_null(False).to_numpy()
        check.refuse(wrong, f"{name} must hold {actions} lists of {dim} numbers, as in the first row")
        filled = np.zeros((given.len(), actions, dim))
        flat = given.filter(pl.Series(~wrong)).explode().explode().cast(pl.Float64, strict=False).to_numpy()
        filled[~wrong] = flat.reshape(-1, actions, dim)
        check.refuse(~np.isfinite(filled).all(axis=(1, 2)), f"{name} must hold finite numbers")
        return filled


def _kind_of(values: pl.Series, categorical: bool) -> int | str:
    """number, label, or for lists their length (0: not yet known), from the first frame."""
    if isinstance(values.dtype, (pl.List, pl.Array)):
        return 0
    if categorical or (values.dtype == pl.String and _reads_as_text(values)):
        return "label"
    return "number"


def _reads_as_text(values: pl.Series) -> bool:
    """Whether most values are no numbers: a few bad ones do not turn a column of numbers into labels."""
    shown = values.drop_nulls().head(1_000)
    numbers = shown.str.strip_chars().cast(pl.Float64, strict=False)
    return numbers.null_count() > shown.len() // 2


def map_of(actions: Sequence[str], width: int, action_features: Mapping[str, Sequence[float]] | None) -> FeatureMap:
    """The feature map of a table: products with the actions' own features where there are any."""
    if action_features is not None:
        table = [list(action_features[name]) for name in actions]
        return Interactions(table, context_dim=max(1, width), context_bound=1.0)
    if width == 0:
        return OneHot(actions=len(actions))
    return Disjoint(actions=len(actions), context_dim=width, context_bound=1.0)


def _without(rounds: Rounds, bad: Mapping[int, str]) -> Rounds:
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
        contexts=rounds.contexts.filter(kept) if rounds.contexts.width else rounds.contexts,
        features=None if rounds.features is None else rounds.features[keep],
        ids=None if rounds.ids is None else rounds.ids.filter(kept),
    )


def _of(survey: Survey | None) -> Survey:
    assert survey is not None
    return survey


def format_of(path: Path) -> Format:
    """The format that a file's name tells; JSON lines with VW's labels are DSJSON."""
    suffixes = [suffix for suffix in path.suffixes if suffix != ".gz"]
    found = SUFFIXES.get(suffixes[-1] if suffixes else "")
    if found is None:
        raise ConfigError(
            f"`format` must be given for `{path.name}`: parquet, csv, jsonl or dsjson. Its name does not tell."
        )
    return found


__all__ = ["Format", "Frame", "TableLog", "format_of"]
