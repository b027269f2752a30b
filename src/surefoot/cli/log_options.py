"""Options that every command about a log shares."""

import fnmatch
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from surefoot.errors import ConfigError
from surefoot.linear.encoding import Column, Encoder, HashedColumn, NumericColumn
from surefoot.replay.columns import Columns, guess_columns
from surefoot.replay.item_table import read_items
from surefoot.replay.open_log import kind_of
from surefoot.replay.table_reader import open_table

LogArgument = Annotated[
    list[Path], typer.Argument(help="Parquet, CSV, JSON lines (.gz too) or VW's DSJSON; several files make one log.")
]
BaselineOption = Annotated[str, typer.Option(help="Today's action, or 'logged' for the strategy that wrote the log.")]
ActionColumn = Annotated[str | None, typer.Option("--action", help="Column of the action that was played.")]
RewardColumn = Annotated[str | None, typer.Option("--reward", help="Column of its reward.")]
PropensityColumn = Annotated[
    str | None, typer.Option("--propensity", help="Column of the probability with which it was chosen.")
]
Context = Annotated[
    list[str] | None, typer.Option("--context", help="Context columns or patterns: age,plan,x*; or repeat it.")
]
Categorical = Annotated[list[str] | None, typer.Option(help="Context columns whose numbers are labels.")]
BaselineColumn = Annotated[str | None, typer.Option(help="Column of the action that the baseline would play.")]
OfferedColumn = Annotated[
    str | None,
    typer.Option("--offered", help="Column of the actions that could be played, where they change: a list, or a|b."),
]
IdColumn = Annotated[str | None, typer.Option("--id", help="Column of ids, which must not repeat.")]
ActionFeatures = Annotated[
    Path | None,
    typer.Option(
        help="CSV with a line per action: its name, then numbers or labels, to be multiplied with the context."
    ),
]
Hashed = Annotated[
    list[str] | None,
    typer.Option(
        "--hash", help="Context column with very many labels, and buckets: user_agent:64; repeat for several."
    ),
]
RewardBounds = Annotated[
    str | None,
    typer.Option("--reward-bounds", help="Bounds that no single reward leaves, such as 0,1."),
]
Exploration = Annotated[
    float | None,
    typer.Option("--exploration", help="LUCB's radius as a constant (LinUCB's alpha), which costs its regret bound."),
]
Uniform = Annotated[bool, typer.Option("--uniform", help="Every action had the same probability.")]
EstimatePropensities = Annotated[
    bool,
    typer.Option("--estimate-propensities", help="Estimate the propensity of each action from the context."),
]
FormatOption = Annotated[str | None, typer.Option(help="parquet, csv, jsonl or dsjson; by the file's name by default.")]
MaxBad = Annotated[int, typer.Option(help="Number of bad rows to skip before giving up.")]


def columns_of(
    paths: Sequence[Path],
    format_: str | None,
    action: str | None,
    reward: str | None,
    propensity: str | None,
    context: list[str] | None,
    categorical: list[str] | None,
    baseline: str | None,
    id_: str | None,
    label: str | None = None,
    offered: str | None = None,
    hashed: list[str] | None = None,
) -> Columns | None:
    """The columns that were named, completed from the header; None if none was named."""
    given = (action, reward, propensity, context, categorical, baseline, id_, label, offered, hashed)
    if format_ not in (None, "parquet", "csv", "jsonl", "dsjson"):
        raise ConfigError(f"`--format` must be parquet, csv, jsonl or dsjson, but got {format_!r}.")
    if not any(given):
        return None
    kind = format_ or kind_of(paths)
    if kind == "dsjson":
        raise ConfigError(
            "Columns must not be named for DSJSON (--action, --context, --hash and so on): its names are fixed."
        )
    header = open_table(paths[0], kind).header
    context, categorical = separate(context, header), separate(categorical, header)
    guessed = guess_columns(header)
    named = {name for name in (action, reward, propensity, baseline, id_, label, offered) if name}
    left = tuple(name for name in guessed.context if name not in named)
    return Columns(
        action=action or guessed.action,
        reward=None if label else reward or guessed.reward,
        propensity=propensity or guessed.propensity,
        context=tuple(context) if context else left,
        categorical=(*(categorical or ()), *guessed.categorical),
        baseline=baseline or guessed.baseline,
        id=id_ or guessed.id,
        offered=offered or guessed.offered,
        features=None if context else guessed.features,
        is_guess=guessed.is_guess and not context,
        hashed=_parse_hashes(hashed or []),
    )


def refuse_both(uniform: bool, estimated: bool) -> None:
    """Propensities are stated or estimated."""
    if uniform and estimated:
        raise ConfigError("`--uniform` states what `--estimate-propensities` estimates: give one of them.")


def separate(names: list[str] | None, known: Sequence[str]) -> list[str] | None:
    """Names that may be separated by commas, unless one with a comma is known."""
    if names is None:
        return None
    return [part for name in names for part in ([name] if name in known else map(str.strip, name.split(",")))]


def refuse_other_columns(
    encoder: Encoder, context: list[str] | None, categorical: list[str] | None, hashed: list[str] | None
) -> None:
    """Options that say otherwise than a configuration, which alone decides how a context is read."""
    names = [part.name for part in encoder.parts]
    labels = [part.name for part in encoder.parts if not isinstance(part, NumericColumn)]
    context, categorical = separate(context, names), separate(categorical, names)
    for option, given, known in (("--context", context, names), ("--categorical", categorical, labels)):
        if odd := [pattern for pattern in given or () if not any(_is_among(name, [pattern]) for name in known)]:
            raise ConfigError(_otherwise(option, odd[0], encoder))
    if context and (left := [name for name in names if not _is_among(name, context)]):
        raise ConfigError(_otherwise("--context", f"{', '.join(context)} without {left[0]}", encoder))
    for name, buckets in _parse_hashes(hashed or []).items():
        if HashedColumn(name, buckets) not in encoder.parts:
            raise ConfigError(_otherwise("--hash", f"{name}:{buckets}", encoder))


def _is_among(name: str, patterns: list[str]) -> bool:
    names = (name, re.sub(r"\[\d+\]$", "", name))  # an entry of a list is a column of its own
    return any(one == pattern or fnmatch.fnmatchcase(one, pattern) for one in names for pattern in patterns)


def _otherwise(option: str, given: str, encoder: Encoder) -> str:
    return (
        f"`{option}` must agree with the configuration, which says how a context is read, but got {given}. Its columns "
        f"are {', '.join(_told(part) for part in encoder.parts)}. Leave the option out, or fit anew."
    )


def _told(part: Column) -> str:
    kind = f"{part.buckets} buckets" if isinstance(part, HashedColumn) else "labels"
    return part.name if isinstance(part, NumericColumn) else f"{part.name} ({kind})"


def _parse_hashes(texts: list[str]) -> dict[str, int]:
    found = dict(map(_parse_hash, texts))
    if len(found) < len(texts):
        raise ConfigError(f"`--hash` must name every column once, but got {', '.join(texts)}.")
    return found


def _parse_hash(text: str) -> tuple[str, int]:
    name, _, buckets = text.rpartition(":")
    if not name or not buckets.isdecimal() or len(buckets) > 9:
        raise ConfigError(
            f"`--hash` must be a column and a number of buckets, such as user_agent:64, but got {text!r}."
        )
    return name, int(buckets)


def parse_pair(text: str | None) -> tuple[float, float] | None:
    """Two numbers between which rewards lie."""
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigError(f"`--reward-bounds` must be two numbers, such as 0,1, but got {text!r}.") from None
    if not low < high:
        raise ConfigError(f"`low < high` must hold for `--reward-bounds`, but got {text!r}.")
    return low, high


def read_action_features(path: Path | None, action: str | None = None) -> dict[str, tuple[float, ...]] | None:
    """Features of every action, from a table of its own: its name, then numbers, or labels as 0s and a 1."""
    return None if path is None else read_items(path, action)
