"""Open a log by its name, for the command line and for programs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from surefoot.arrays import count
from surefoot.errors import ConfigError, LogError
from surefoot.linear.encoding import Encoder
from surefoot.replay.batch import Log
from surefoot.replay.columns import Columns
from surefoot.replay.dsjson import DsjsonLog
from surefoot.replay.log_files import LOGGED, Format, TableLog, format_of
from surefoot.replay.many_files import open_tables
from surefoot.replay.table_reader import DataFrameTable
from surefoot.replay.text_blocks import line_blocks
from surefoot.simulation.workers import Where

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
    on: Where = None,
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
    on : str or concurrent.futures.Executor, optional
        Where the first pass runs, file by file and block by block, such as "local:4", "ray" or "dask://host:port"; in
        this thread by default.

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
        on=on,
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
