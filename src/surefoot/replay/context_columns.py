"""Which columns of a table may serve as context when nobody said which: all that are known before the action.

Left out, with a reason: what cannot be a number or one of a few labels (dates, free text, ids), and what looks as if
it was known only after the action, as revenue beside clicks does: a column with one value wherever there was no reward
and other values wherever there was one would tell a learner the answer. Whoever wants such a column names it.
"""

import re
from collections.abc import Sequence

import polars as pl

from surefoot.errors import LogError
from surefoot.linear.encoding import MOST_LEVELS

SURE_ROWS = 100  # below this, values that all differ are no sign of an id
DISTINCT = 0.95  # share of different whole numbers from which on they count as ids
LEAKING, FEWEST = 0.98, 5  # share of the rows that must agree, and how many must have a reward
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
    agrees = (without == common).mean() or 0.0
    differs = (with_ != common).mean() or 0.0
    if isinstance(agrees, float) and isinstance(differs, float) and min(agrees, differs) >= LEAKING:
        return f"changes with {reward}, as if it was known only after the action"
    return None
