"""Which columns of a table mean what, and the checks that every row passes before it counts."""

import difflib
import fnmatch
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from surefoot.arrays import LARGEST, Matrix, Vector
from surefoot.errors import LogError
from surefoot.linear.encoding import GAP, GAP_WORDS, label_of, text_of
from surefoot.replay.table_reader import Frame

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

    def resolve(self, header: Sequence[str], path: object) -> "Columns":
        """Replace patterns by the columns that they match.

        Parameters
        ----------
        header : sequence of str
            The table's columns.
        path : object
            The table, for messages.

        Returns
        -------
        Columns
            Without patterns.

        Raises
        ------
        LogError
            If a column is missing.
        """
        context: list[str] = []
        for pattern in self.context:
            # The exact name first: a column may have a * or a [ in its own.
            found = [name for name in header if name == pattern] or fnmatch.filter(header, pattern)
            context += [name for name in found if name not in context] or _missing([pattern], header, path)
        context += [name for name in self.hashed if name not in context]
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        single = [given[key] for key in KEYS if given[key]]
        absent = [name for name in [*single, *self.hashed] if name not in header]
        if absent:
            _missing(absent, header, path)
        if taken := [name for name in self.hashed if name in single]:
            raise LogError(
                f"`hashed` columns must be part of the context, but {taken[0]!r} is the action, its reward or another "
                "column with a meaning. Take it out of `hashed`."
            )
        if self.hashed and self.features:
            raise LogError("`hashed` needs a context, but the features of every action come from a column of lists.")
        return Columns(**{**given, "context": tuple(context)})

    @property
    def needed(self) -> list[str]:
        """Every column that is read."""
        single = [getattr(self, key) for key in KEYS]
        return list(dict.fromkeys([*(name for name in single if name), *self.context]))

    def is_written(self, name: str) -> bool:
        """Whether what counts of a column is how its values are written: labels of the context, actions and ids.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        bool
            True for labels, actions and ids.
        """
        if name in (self.action, self.baseline, self.offered, self.id):
            return True
        return name in self.context and self.is_categorical(name)

    def is_categorical(self, name: str) -> bool:
        """Whether a context column was declared to hold labels.

        Parameters
        ----------
        name : str
            The column.

        Returns
        -------
        bool
            True for labels.
        """
        if name in self.hashed or name in self.categorical:
            return True
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.categorical)


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
        given = self.table[name]
        if isinstance(given.dtype, (pl.List, pl.Array)):
            raise LogError(f"Column {name!r} must hold one number a row, but it holds lists. Map it as a context.")
        values = given.str.strip_chars() if given.dtype == pl.String else given
        if words and values.dtype == pl.String:
            values = values.str.to_lowercase().replace(words)
        numbers = values.cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
        missing = given.is_null().to_numpy()
        self.refuse(missing, f"{name} is missing")
        with np.errstate(invalid="ignore"):
            # Written so that NaN is wrong, too.
            wrong = ~(np.abs(numbers) <= LARGEST) & ~missing
        self.refuse(wrong, f"{name} must be a finite number, not {{}}", given)
        return numbers

    def number_or_gap(self, name: str) -> Vector:
        """A column of numbers, NaN where there is none."""
        given = self.table[name]
        values = given.str.strip_chars() if given.dtype == pl.String else given
        gaps = values.is_null()
        if values.dtype == pl.String:
            gaps |= values.str.to_lowercase().is_in(list(GAP_WORDS)).fill_null(True)
        elif values.dtype.is_float():
            gaps |= values.is_nan().fill_null(True)
        numbers = values.cast(pl.Float64, strict=False).to_numpy().astype(np.float64)
        with np.errstate(invalid="ignore"):
            self.refuse(
                ~(np.abs(numbers) <= LARGEST) & ~gaps.to_numpy(), f"{name} must be a finite number, not {{}}", given
            )
        return np.where(gaps.to_numpy(), np.nan, numbers)

    def label_or_gap(self, name: str) -> pl.Series:
        """A column of labels as text, null where there is none."""
        given = self.table[name]
        if given.dtype.is_nested() or given.dtype == pl.Object:
            raise LogError(
                f"Column {name!r} must hold one label a row, but it holds lists or objects. Take it apart into columns."
            )
        return pl.select(_as_text(given, given)).to_series()

    def label(self, name: str) -> pl.Series:
        """A column of names, as text; 2.0 and 2 are the same name, and so are True and true."""
        labels = _named(self.label_or_gap(name))
        self.refuse((labels.is_null() | (labels == "")).fill_null(True).to_numpy(), f"{name} is missing")
        return labels

    def label_lists(self, name: str) -> pl.Series:
        """A column of lists of labels; in text they are separated by |."""
        given = self.table[name]
        self.refuse(given.is_null().to_numpy(), f"{name} is missing")
        lists = given if isinstance(given.dtype, (pl.List, pl.Array)) else self.label_or_gap(name).str.split("|")
        lists = lists.arr.to_list() if isinstance(lists.dtype, pl.Array) else lists
        labels = lists.list.eval(_as_text(pl.element(), lists.explode(), named_text))
        gaps = labels.list.eval(pl.element().is_null() | (pl.element() == "")).list.any().fill_null(False)
        self.refuse(gaps.to_numpy(), f"{name} holds an action without a name")
        return labels

    def numbers(self, name: str, width: int | None) -> tuple[Matrix, int]:
        """A column of lists of the same length, of finite numbers."""
        given = self.table[name]
        given = given.arr.to_list() if isinstance(given.dtype, pl.Array) else given
        if not isinstance(given.dtype, pl.List):
            raise LogError(f"Column {name!r} must hold a list of numbers a row, but it holds single values.")
        lengths = given.list.len().fill_null(0).to_numpy()
        wide = int(lengths[0]) if width is None and lengths.size else width or 0
        wrong = lengths != wide
        self.refuse(given.is_null().to_numpy(), f"{name} is missing")
        self.refuse(wrong, f"{name} must be a list of {wide} numbers, as in the rows before")
        filled = np.zeros((given.len(), wide))
        flat = given.filter(pl.Series(~wrong)).explode().cast(pl.Float64, strict=False).to_numpy()
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
