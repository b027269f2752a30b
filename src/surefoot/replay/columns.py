"""Which columns of a table mean what, and the rounds whose rows pass every check.

Columns that nobody named are context where all of them are known before the action. Left out, with a reason: what
cannot be a number or one of a few labels (dates, free text, ids), and what looks as if it was known only after the
action, as revenue beside clicks does: a column with one value wherever there was no reward would tell a learner the
answer where it has another. Whoever wants such a column names it.
"""

import difflib
import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.arrays import LARGEST, Matrix, Vector
from surefoot.errors import LogError
from surefoot.linear.encoding import (
    GAP,
    GAP_WORDS,
    MOST_LEVELS,
    CategoricalColumn,
    Column,
    Encoder,
    NumericColumn,
    label_of,
    text_of,
)
from surefoot.replay.log import BadRows
from surefoot.replay.table_files import Frame, TableFile

TRUTHS = {"true": "1", "false": "0"}
KEYS = ("action", "reward", "propensity", "baseline", "id", "offered", "features")  # of single columns


@dataclass(frozen=True, slots=True)
class Columns:
    """Which columns of a table hold what.

    Parameters
    ----------
    action : str
        The action that was played; in a table of labels, without `reward`, the right one.
    reward : str or None
        Its reward.
    propensity : str, optional
        Probability with which it was chosen.
    context : tuple of str
        Columns of the context, or patterns such as "x*".
    categorical : tuple of str
        Context columns whose numbers are labels.
    hashed : mapping of str to int
        Context columns of very many labels, such as user agents, and into how many buckets they are hashed.
    baseline : str, optional
        The action that the baseline would have played.
    id : str, optional
        A column that must not repeat.
    offered : str, optional
        The actions that could be played in the row, where that changes: a list, or names separated by |.
    features : str, optional
        A column of lists, one list of numbers per action; then `context` is not needed, and actions are numbers from 0.
    is_guess : bool
        Whether nobody named the context: columns that cannot be one, or look as if they were known only after the
        action, are then left out.

    Examples
    --------
    >>> Columns(action="arm", reward="click", context=("x*",)).needed
    ['arm', 'click', 'x*']
    """

    action: str = "action"
    reward: str | None = "reward"
    propensity: str | None = None
    context: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    baseline: str | None = None
    id: str | None = None
    offered: str | None = None
    features: str | None = None
    is_guess: bool = False
    hashed: Mapping[str, int] = field(default_factory=dict)

    @property
    def needed(self) -> list[str]:
        """Every column that is read."""
        single = [getattr(self, key) for key in KEYS]
        return list(dict.fromkeys([*(name for name in single if name), *self.context]))


def resolved(columns: Columns, header: Sequence[str], path: object) -> Columns:
    """The columns with patterns replaced by what they match in the header of the table at `path`."""
    context: list[str] = []
    for pattern in columns.context:
        # The exact name first: a column may have a * or a [ in its own.
        matches = [name for name in header if name == pattern] or fnmatch.filter(header, pattern)
        context += [name for name in matches if name not in context] or _missing([pattern], header, path)
    context += [name for name in columns.hashed if name not in context]
    named = {item.name: getattr(columns, item.name) for item in fields(columns)}
    single = [named[key] for key in KEYS if named[key]]
    absent = [name for name in [*single, *columns.hashed] if name not in header]
    if absent:
        _missing(absent, header, path)
    if taken := [name for name in columns.hashed if name in single]:
        raise LogError(
            f"`hashed` columns must be part of the context, but {taken[0]!r} is the action, its reward or another "
            "column with a meaning. Take it out of `hashed`."
        )
    if columns.hashed and columns.features:
        raise LogError("`hashed` needs a context, but the features of every action come from a column of lists.")
    return Columns(**{**named, "context": tuple(context)})


def is_written(columns: Columns, name: str) -> bool:
    """Whether what counts of a column is how its values are written: labels of the context, actions and ids."""
    if name in (columns.action, columns.baseline, columns.offered, columns.id):
        return True
    return name in columns.context and is_categorical(columns, name)


def is_categorical(columns: Columns, name: str) -> bool:
    """Whether a context column was declared to hold labels."""
    if name in columns.hashed or name in columns.categorical:
        return True
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in columns.categorical)


def guess_columns(header: Sequence[str]) -> Columns:
    """The mapping that a header suggests: our own names, or those of the Open Bandit files and dictionaries."""
    if {"item_id", "click", "propensity_score"} <= set(header):
        context = [name for name in header if name == "position" or name.startswith("user_feature")]
        return Columns("item_id", "click", "propensity_score", tuple(context), tuple(context))  # all known before
    propensity = next((name for name in ("propensity", "pscore") if name in header), None)
    own = {
        "action",
        "reward",
        propensity,
        "baseline",
        "id",
        "features",
        "offered",
        "",
        "timestamp",
    }  # "" is pandas' index
    return Columns(
        propensity=propensity,
        context=tuple(name for name in header if name not in own) if "features" not in header else (),
        categorical=("position",),
        baseline="baseline" if "baseline" in header else None,
        id="id" if "id" in header else None,
        offered="offered" if "offered" in header else None,
        features="features" if "features" in header else None,
        is_guess=True,
    )


def _missing(names: Iterable[str], header: Sequence[str], path: object) -> Any:
    listed = ", ".join(repr(name) for name in names)
    # Names that share a few letters by chance are no help: a column of countries is no action.
    close = difflib.get_close_matches(next(iter(names)), header, n=1, cutoff=0.7)
    hint = f"Did you mean {close[0]!r}?" if close else "Name yours (`Columns(...)`, or --action, --reward and so on)."
    raise LogError(f"`{path}` must have the column(s) {listed}, but its columns are {', '.join(header)}. {hint}")


class RowChecker:
    """Reads one frame, and notes the first thing that is wrong with each row."""

    def __init__(self, frame: Frame) -> None:
        self.table, self.lines = frame.table, frame.lines
        self.reasons: dict[int, str] = {}

    def refuse(self, wrong: NDArray[np.bool_], reason: str, values: pl.Series | None = None) -> None:
        """Note a reason for every row that is wrong and had none before; {} in it stands for the row's value."""
        for at in np.flatnonzero(wrong):
            shown = None if values is None else values[int(at)]
            self.reasons.setdefault(int(at), reason.format(repr(shown)))

    def reward(self, name: str) -> Vector:
        """A column of finite numbers, or of TRUE and FALSE, which are 1 and 0."""
        return self.number(name, TRUTHS)

    def number(self, name: str, words: Mapping[str, str] | None = None) -> Vector:
        """A column of finite numbers, or of words that stand for one."""
        column = self.table[name]
        if isinstance(column.dtype, (pl.List, pl.Array)):
            raise LogError(f"Column {name!r} must hold one number a row, but it holds lists. Map it as a context.")
        values = column.str.strip_chars() if column.dtype == pl.String else column
        if words and values.dtype == pl.String:
            values = values.str.to_lowercase().replace(words)
        numbers = values.cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
        missing = column.is_null().to_numpy()
        self.refuse(missing, f"{name} is missing")
        with np.errstate(invalid="ignore"):
            # Written so that NaN is wrong, too.
            wrong = ~(np.abs(numbers) <= LARGEST) & ~missing
        self.refuse(wrong, f"{name} must be a finite number, not {{}}", column)
        return numbers

    def number_or_gap(self, name: str) -> Vector:
        """A column of numbers, NaN where there is none."""
        column = self.table[name]
        values = column.str.strip_chars() if column.dtype == pl.String else column
        gaps = values.is_null()
        if values.dtype == pl.String:
            gaps |= values.str.to_lowercase().is_in(list(GAP_WORDS)).fill_null(True)
        elif values.dtype.is_float():
            gaps |= values.is_nan().fill_null(True)
        numbers = values.cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
        with np.errstate(invalid="ignore"):
            self.refuse(
                ~(np.abs(numbers) <= LARGEST) & ~gaps.to_numpy(), f"{name} must be a finite number, not {{}}", column
            )
        return np.where(gaps.to_numpy(), np.nan, numbers)

    def label_or_gap(self, name: str) -> pl.Series:
        """A column of labels as text, null where there is none."""
        column = self.table[name]
        if column.dtype.is_nested() or column.dtype == pl.Object:
            raise LogError(
                f"Column {name!r} must hold one label a row, but it holds lists or objects. Take it apart into columns."
            )
        return pl.select(_as_text(column, column)).to_series()

    def label(self, name: str) -> pl.Series:
        """A column of names, as text; 2.0 and 2 are the same name, and so are True and true."""
        labels = _named(self.label_or_gap(name))
        self.refuse((labels.is_null() | (labels == "")).fill_null(True).to_numpy(), f"{name} is missing")
        return labels

    def label_lists(self, name: str) -> pl.Series:
        """A column of lists of labels; in text they are separated by |."""
        column = self.table[name]
        self.refuse(column.is_null().to_numpy(), f"{name} is missing")
        lists = column if isinstance(column.dtype, (pl.List, pl.Array)) else self.label_or_gap(name).str.split("|")
        lists = lists.arr.to_list() if isinstance(lists.dtype, pl.Array) else lists
        labels = lists.list.eval(_as_text(pl.element(), lists.explode(), named_text))
        gaps = labels.list.eval(pl.element().is_null() | (pl.element() == "")).list.any().fill_null(False)
        self.refuse(gaps.to_numpy(), f"{name} holds an action without a name")
        return labels

    def numbers(self, name: str, width: int | None) -> tuple[Matrix, int]:
        """A column of lists of the same length, of finite numbers."""
        column = self.table[name]
        column = column.arr.to_list() if isinstance(column.dtype, pl.Array) else column
        if not isinstance(column.dtype, pl.List):
            raise LogError(f"Column {name!r} must hold a list of numbers a row, but it holds single values.")
        lengths = column.list.len().fill_null(0).to_numpy()
        wide = int(lengths[0]) if width is None and lengths.size else width or 0
        wrong = lengths != wide
        self.refuse(column.is_null().to_numpy(), f"{name} is missing")
        self.refuse(wrong, f"{name} must be a list of {wide} numbers, as in the rows before")
        filled = np.zeros((column.len(), wide))
        flat = column.filter(pl.Series(~wrong)).explode().cast(pl.Float64, strict=False).to_numpy()
        filled[~wrong] = flat.reshape(-1, wide) if wide else filled[~wrong]
        self.refuse(np.asarray(~np.isfinite(filled).all(axis=1)), f"{name} must hold finite numbers")
        return filled, wide


def named_text(value: Any) -> str | None:
    """The name that a value stands for: as a label, but "none" and "NA" are names like any other."""
    text = text_of(value)
    named = label_of(text)
    return text if named == GAP else named


def _named(labels: pl.Series) -> pl.Series:
    return pl.select(_as_text(labels, labels, named_text)).to_series()


def _as_text(values: pl.Series | pl.Expr, among: pl.Series, rule: Callable[[Any], str | None] = text_of) -> pl.Expr:
    """Values as text, kind by kind: whether a label is found must not depend on the rows around it."""
    kinds = among.unique()
    # A Python number would widen one of single precision, and show digits that nobody wrote.
    each = kinds.to_numpy() if kinds.dtype == pl.Float32 else kinds.to_list()
    here = values if isinstance(values, pl.Expr) else pl.lit(values)
    return here.replace_strict(kinds, [rule(value) for value in each], return_dtype=pl.String)


def read_propensities(check: RowChecker, name: str | None) -> Vector:
    """Logged chances: above 0 and at most 1; NaN where there are none."""
    if name is None:
        return np.full(check.table.height, np.nan)
    numbers = check.number(name)
    with np.errstate(invalid="ignore"):
        wrong = ~((numbers > 0) & (numbers <= 1)) & np.isfinite(numbers)
    check.refuse(wrong, f"0 < {name} <= 1 must hold for a propensity, not {{}}", check.table[name])
    return numbers


SURE_ROWS = 100  # below this, values that all differ are no sign of an id
DISTINCT = 0.95  # share of different whole numbers from which on they count as ids
LEAKING, FEWEST = 0.98, 5  # share of the rows that must agree, and how many must have a reward
BY_CHANCE = 1e-6  # for rows that differ to have a reward, all of them
ID_NAME = re.compile(r"(^|_)(id|uuid|guid|key|index)$", re.IGNORECASE)
DATE = r"^\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?$"


def left_out(table: pl.DataFrame, names: Sequence[str], *, action: str, reward: str | None) -> dict[str, str]:
    """The columns that are no context, by the first rows of a table, and why."""
    reasons = {name: _unfit(name, table[name]) or _leak(table, name, action, reward) for name in names}
    return {name: reason for name, reason in reasons.items() if reason is not None}


def check_asked(table: pl.DataFrame, names: Sequence[str]) -> None:
    """Refuse dates and objects that were asked for: what of them matters, only their owner knows."""
    for name in names:
        if table[name].dtype == pl.Object or isinstance(table[name].dtype, pl.Struct):
            raise LogError(
                f"A context column must hold numbers or labels, but {name!r} holds objects. Add what matters of them "
                "as columns of their own."
            )
        if table[name].dtype.is_temporal():
            raise LogError(
                f"A context column must hold numbers or labels, but {name!r} holds dates or times. Add what matters of "
                "them, such as the hour or the weekday, as a column of its own."
            )


def _unfit(name: str, values: pl.Series) -> str | None:
    if values.dtype.is_temporal():
        return "holds dates or times"
    if values.dtype == pl.Object or isinstance(values.dtype, pl.Struct):
        return "holds objects, not values"
    shown = values.drop_nulls()
    if shown.len() == 0 or isinstance(values.dtype, (pl.List, pl.Array)):
        return None
    if ID_NAME.search(name):
        return "is named as an id"
    if shown.dtype == pl.String and shown.str.contains(DATE).all():
        return "holds dates or times"
    is_whole = shown.dtype.is_integer() or (shown.dtype == pl.String and shown.str.contains(r"^-?\d+$").all())
    if is_whole and shown.len() >= SURE_ROWS and shown.n_unique() >= DISTINCT * shown.len():
        return "holds whole numbers that hardly repeat, as ids do"
    is_text = shown.dtype == pl.String and shown.cast(pl.Float64, strict=False).null_count() > shown.len() // 2
    if is_text and shown.n_unique() > MOST_LEVELS:
        return f"has more than {MOST_LEVELS} different labels; --hash {name}:64 takes it"
    return None


def _leak(table: pl.DataFrame, name: str, action: str, reward: str | None) -> str | None:
    """A column that follows the reward rather than the context."""
    if reward is None or name in (action, reward) or isinstance(table[name].dtype, (pl.List, pl.Array)):
        return None
    paid, values = table[reward].cast(pl.String), table[name].cast(pl.String).fill_null("")
    usual = paid.drop_nulls().mode()
    if usual.len() == 0:
        return None
    rewarded = (paid != usual[0]).fill_null(False)
    without, with_ = values.filter(~rewarded), values.filter(rewarded)
    if with_.len() < FEWEST or without.len() < FEWEST:
        return None
    common = without.mode()[0]
    agrees, differs = ((without == common).sum() / without.len(), (with_ != common).sum() / with_.len())
    if min(agrees, differs) >= LEAKING:
        return f"changes with {reward}, as if it was known only after the action"
    # What follows in a part of these rows alone, as a sale follows some of the visits.
    changed = (with_ != common).sum()
    if agrees == 1.0 and (with_.len() / values.len()) ** changed < BY_CHANCE:
        return f"changes only with {reward}, as if it was known only after the action"
    return None


class SeenIds:
    """64-bit digests of ids in sorted runs of doubling length, so that a million ids cost twenty searches, not a set.

    Two different ids share a digest with a chance of about n^2 / 2^65: 3 in a million for ten million ids.
    """

    def __init__(self) -> None:
        self._runs: list[NDArray[np.uint64]] = []

    def repeated(self, digests: NDArray[np.uint64]) -> NDArray[np.bool_]:
        """Which of them came before, here or in an earlier call; all are remembered."""
        # Stable, so that of equal ones the first counts as new.
        order = np.argsort(digests, kind="stable")
        ordered = digests[order]
        again = np.zeros(digests.size, dtype=np.bool_)
        again[order[1:]] = ordered[1:] == ordered[:-1]
        for run in self._runs:
            place = np.searchsorted(run, digests)
            # Beyond the end; any entry will do for a comparison that fails.
            place[place == run.size] = 0
            again |= run[place] == digests
        self._remember(ordered)
        return again

    def _remember(self, ordered: NDArray[np.uint64]) -> None:
        if ordered.size:
            self._runs.append(ordered)
        while len(self._runs) > 1 and self._runs[-2].size <= 2 * self._runs[-1].size:
            merged = np.concatenate([self._runs.pop(), self._runs.pop()])
            merged.sort(kind="stable")
            self._runs.append(merged)


@dataclass(frozen=True, slots=True, eq=False)
class LoggedRounds:
    """Rows that passed: labels as text, numbers as floats; `features` (rounds, actions, dim) where they are logged."""

    lines: NDArray[np.int64]
    actions: pl.Series
    rewards: Vector
    propensities: Vector
    baselines: pl.Series | None
    contexts: pl.DataFrame
    features: NDArray[np.float64] | None
    ids: pl.Series | None
    offered: pl.Series | None = None


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

    def rounds(self, bad: BadRows, labels: Sequence[str]) -> Iterator[LoggedRounds]:
        """The rows that pass every check, frame by frame; the others are counted in `bad`.

        Where `labels` are given, other actions are refused.
        """
        seen = SeenIds() if self.columns.id else None
        for frame in self._file.frames(self.columns.needed):
            check = RowChecker(frame)
            rounds = self._read(check, labels)
            if seen is not None and rounds.ids is not None:
                repeated = np.zeros(check.table.height, dtype=np.bool_)
                # A bad row does not use up its id: it may be there again, corrected.
                good = np.array([at not in check.reasons for at in range(check.table.height)], dtype=np.bool_)
                repeated[good] = seen.repeated(rounds.ids.filter(pl.Series(good)).hash().to_numpy())
                check.refuse(repeated, f"{self.columns.id} {{}} was used by a row before", rounds.ids)
            problems = sorted([*frame.bad, *((int(frame.lines[at]), why) for at, why in check.reasons.items())])
            if problems:
                bad.add([(line, f"{why}{_place(frame, line)}") for line, why in problems], self._file.path)
            yield _without(rounds, check.reasons)

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
            return len(entries) or _kind_of(values, is_categorical(self.columns, name))
        if isinstance(part, NumericColumn) and (
            values.dtype.is_nested() or (values.dtype == pl.String and _reads_as_text(values))
        ):
            shown = next(iter(values.drop_nulls().head(1).to_list()), None)
            raise LogError(
                f"Column {name!r} must hold numbers, for which its encoder was made, but `{self.path}` has "
                f"{'lists' if values.dtype.is_nested() else 'text'} there, such as {shown!r:.60}. "
                "Correct the log, or fit to it again (`surefoot fit-baseline`)."
            )
        return "number" if isinstance(part, NumericColumn) else "label"

    def _read_features(self, check: RowChecker) -> NDArray[np.float64]:
        assert self.columns.features is not None
        column, name = check.table[self.columns.features], self.columns.features
        if self.features_shape is None:
            first = column.drop_nulls().head(1).to_list()
            try:
                self.features_shape = (len(first[0]), len(first[0][0]))
            except (IndexError, TypeError):
                raise LogError(f"Column {name!r} must hold one list of numbers per action, a list of lists.") from None
        actions, dim = self.features_shape
        right = column.list.eval(pl.element().list.len() == dim).list.all() & (column.list.len() == actions)
        wrong = ~right.fill_null(False).to_numpy()
        check.refuse(wrong, f"{name} must hold {actions} lists of {dim} numbers, as in the first row")
        filled = np.zeros((column.len(), actions, dim))
        flat = column.filter(pl.Series(~wrong)).explode().explode().cast(pl.Float64, strict=False).to_numpy()
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
