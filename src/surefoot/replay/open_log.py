"""Open a log by its name: the one door for the command line and for programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from surefoot.errors import ConfigError
from surefoot.replay.batch import Log
from surefoot.replay.columns import Columns
from surefoot.replay.dsjson import DsjsonLog
from surefoot.replay.encoding import Encoder
from surefoot.replay.log_files import LOGGED, Format, TableLog, format_of
from surefoot.replay.text_blocks import line_blocks


def read_log(
    path: str | Path,
    *,
    format: Format | None = None,  # noqa: A002 - the word that users know
    columns: Columns | None = None,
    baseline: str = LOGGED,
    actions: Sequence[str] | None = None,
    encoder: Encoder | None = None,
    action_features: Mapping[str, Sequence[float]] | None = None,
    max_bad: int = 0,
) -> Log:
    """A log in a file: Parquet, CSV, JSON lines or VW's DSJSON, told by its name unless `format` is given.

    Nothing is read twice into memory: a log may be larger than it. One pass over it finds actions and ranges.
    """
    place = Path(path)
    kind = format or format_of(place)
    if kind == "dsjson" or (kind == "jsonl" and format is None and _is_dsjson(place)):
        if columns is not None or action_features is not None:
            raise ConfigError("`columns` and `action_features` must not be given for DSJSON, whose names are fixed.")
        return DsjsonLog(place, max_bad=max_bad)
    return TableLog(
        place,
        format=kind,
        columns=columns,
        baseline=baseline,
        actions=actions,
        encoder=encoder,
        action_features=action_features,
        max_bad=max_bad,
    )


def _is_dsjson(path: Path) -> bool:
    if not path.exists():
        return False
    return b'"_label_cost"' in next(line_blocks(path, size=2**16), (1, b""))[1]
