"""Sweeps: policies x alphas x worlds x seeds into one table, resumable after any interruption.

Every finished chunk of runs is a file. A sweep that was stopped, by Ctrl-C or by a kill, continues from those files
with the same call, on the same workers or on others, and ends with the same table as one that was never stopped.
"""

import hashlib
import json
import math
import os
import types
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from surefoot.atomic_files import whole_file
from surefoot.core import native
from surefoot.errors import ConfigError
from surefoot.simulation.engine import (
    MEASURES,
    ChunkTask,
    Outcome,
    check_scale,
    chunks_of,
    default_checkpoints,
    outcome,
)
from surefoot.simulation.policy_specs import Spec, as_specs
from surefoot.simulation.result_folder import LocalFolder, Place, ResultFolder, folder_at, npy
from surefoot.simulation.workers import Progress, Where, available_memory, completed, is_of_this_process, workers_on
from surefoot.simulation.worlds import World

if TYPE_CHECKING:
    import polars as pl
import tomllib
from collections.abc import Collection, Mapping

from surefoot.hints import nearest
from surefoot.linear.radius import RADII
from surefoot.safety.constraints import Constraint
from surefoot.safety.gates import GATES, OPTIMISMS
from surefoot.simulation.rewards import Bernoulli, Bounded, Gaussian, Rewards
from surefoot.simulation.worlds import WORLDS, Baseline

COPIES = 8  # of a policy's counts that there must be room for while its rows are made
FORMAT = 1  # of the files in which chunks are kept
QUANTILES = {"q05": 0.05, "q25": 0.25, "q50": 0.5, "q75": 0.75, "q95": 0.95}

Columns: TypeAlias = dict[str, list[Any]]
COLUMNS = {
    "world": str,
    "policy": str,
    "alpha": float,
    "seed": int,
    "runs": int,
    "horizon": int,
    "round": int,
    "measure": str,
    "watched": float,
    "mean": float,
    "stderr": float,
    **dict.fromkeys(QUANTILES, float),
}


@dataclass(frozen=True)
class Part:
    """Some policies in one world with one seed: they share realisations and noise.

    Parameters
    ----------
    name : str
        Name of the world in the table.
    world : World
        Where realisations are drawn from.
    specs : sequence of Spec, str, Policy or callable
        The policies as in `simulate`, each with its own name or alpha. A folder recognises a policy of your own by its
        settings, its methods and the function that makes it, not by other functions that they call.
    runs : int
        Number of realisations.
    horizon : int
        Rounds of a run.
    seed : int
        Seed of the realisations.
    watched : sequence of float
        Alphas by which violations are counted, in addition to the policies' own.

    Raises
    ------
    ConfigError
        If a setting is invalid, two policies have the same name and alpha, or a policy refuses its settings.

    Examples
    --------
    >>> from surefoot.simulation import PaperWorld, Spec
    >>> Part("paper", PaperWorld(), [Spec("CLUCB", alpha=0.1)], runs=10, horizon=1000).alphas
    [0.1]
    """

    name: str
    world: World
    specs: Sequence[Any]
    runs: int
    horizon: int
    seed: int = 0
    watched: Sequence[float] = ()

    def __post_init__(self) -> None:
        check_scale(self.runs, self.horizon, self.seed)
        if self.seed >= 2**63:
            raise ConfigError(f"`seed` must be less than 2^63, as the table keeps it, but got seed={self.seed}.")
        if not self.specs:
            raise ConfigError("A sweep must have at least one policy.")
        object.__setattr__(self, "specs", as_specs(self.specs))
        for spec in self.specs:
            spec.check(self.world)
        self._check_names()
        self._check_settings()

    def _check_names(self) -> None:
        """Refuse two policies that the table could not tell apart."""
        names = [(spec.name, spec.alpha) for spec in self.specs]
        for name, alpha in names:
            if names.count((name, alpha)) > 1:
                policy = name if alpha is None else f"{name} with alpha {alpha:g}"
                raise ConfigError(
                    f"Every policy of a sweep must have its own name or alpha, but {policy} is there "
                    f"{names.count((name, alpha))} times. Give each a `name`."
                )

    def _check_settings(self) -> None:
        """Let every policy check its settings before any work is done."""
        # Some settings can only be judged in a world, by its bounds and dimension: better now than after an hour.
        (realisation,) = self.world.realisations(self.seed, [0])
        problem = realisation.problem(realisation.take(1))
        for spec in self.specs:
            spec.new_policy(problem)

    @property
    def alphas(self) -> list[float]:
        """The alphas by which violations are counted."""
        return sorted({*self.watched, *(spec.alpha for spec in self.specs if spec.alpha is not None)})

    @property
    def checkpoints(self) -> NDArray[np.int64]:
        """Rounds at which counts are kept."""
        return default_checkpoints(self.horizon)

    def describe(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data."""
        world = {f.name: plain(getattr(self.world, f.name)) for f in fields(self.world)}
        return {
            "name": self.name,
            "world": {"kind": type(self.world).__name__, **world},
            "policies": [self._describe_policy(spec) for spec in self.specs],
            "runs": self.runs,
            "horizon": self.horizon,
            "seed": self.seed,
            "watched": list(self.watched),
        }

    def _describe_policy(self, spec: Spec) -> dict[str, Any]:
        if not spec.is_own:
            return asdict(spec)
        (realisation,) = self.world.realisations(self.seed, [0])
        policy = spec.new_policy(realisation.problem(realisation.take(1)))
        settings = {name: repr(value) for name, value in getattr(policy, "settings", {}).items()}
        return {
            "name": spec.name,
            "alpha": spec.alpha,
            "knows_baseline": spec.knows_baseline,
            "factory": None if spec.is_object or isinstance(spec.policy, type) else plain(spec.policy),
            "class": {"kind": type(policy).__qualname__, "code": code_of(type(policy)), "settings": settings},
        }


@dataclass(frozen=True)
class Sweep:
    """Several parts that end in one table.

    Parameters
    ----------
    parts : sequence of Part
        What to simulate.
    title : str
        Title of the report.

    Examples
    --------
    >>> from surefoot.simulation import PaperWorld, Spec
    >>> part = Part("paper", PaperWorld(), [Spec("CLUCB", alpha=0.1)], runs=10, horizon=1000)
    >>> Sweep([part]).rounds
    10000
    """

    parts: Sequence[Part]
    title: str = "simulation"

    def describe(self) -> dict[str, Any]:
        """Everything that the result depends on, as plain data."""
        parts = [part.describe() for part in self.parts]
        # The code is a setting, too: chunks of two versions must not end in one table.
        return {"format": FORMAT, "code": code_of_results(), "title": self.title, "parts": parts}

    @property
    def rounds(self) -> int:
        """Rounds of all policies and runs together."""
        return sum(part.runs * part.horizon * len(part.specs) for part in self.parts)


@cache
def code_of_results() -> str:
    """A digest of the code that results depend on: the core's sources, and the modules of this package.

    Read once, and not the whole package: from a cold disk each file takes a millisecond or two.
    """
    digest = hashlib.sha256(native.SOURCES.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def claim_folder(sweep: Sweep, folder: ResultFolder) -> None:
    """Make the folder this sweep's, or raise if it holds a result of other settings, or of another version."""
    settings = json.dumps(sweep.describe(), indent=2, sort_keys=True).encode()
    present = folder.read("settings.json")
    if present == settings:
        return
    # Where writes are not atomic, a kill leaves the beginning of a file; this one is written before all others.
    is_cut_short = present is not None and settings.startswith(present) and folder.names() == ["settings.json"]
    if present is not None and not is_cut_short:
        other = "another version of surefoot" if _differs_in_code(present, sweep) else "other settings"
        raise ConfigError(
            f"`{folder}` must be empty or hold this very sweep, but it holds a result of {other}. "
            "Nothing was changed: choose another folder, or remove that one."
        )
    if present is None and folder.names():
        raise ConfigError(
            f"`{folder}` must be empty or hold this very sweep, but it holds other files. "
            "Nothing was changed: choose another folder."
        )
    folder.write("settings.json", settings)


def _differs_in_code(present: bytes, sweep: Sweep) -> bool:
    try:
        theirs = json.loads(present)
    except ValueError:
        return False
    ours: dict[str, Any] = json.loads(json.dumps(sweep.describe()))
    return isinstance(theirs, dict) and {**theirs, "code": ours["code"]} == ours


def run_sweep(
    sweep: Sweep, folder: Place, *, threads: int | None = None, progress: Progress | None = None, on: Where = None
) -> "pl.DataFrame":
    """Run what is not there yet, write results.csv and results.parquet, and return the table.

    Parameters
    ----------
    sweep : Sweep
        What to simulate.
    folder : str or Path
        Where chunks and results are kept; empty, or of this very sweep. Also an address of fsspec, such as
        "s3://bucket/sweep", to which workers write themselves.
    threads : int, optional
        All cores by default.
    progress : callable, optional
        Called with rounds done and rounds in all.
    on : str or concurrent.futures.Executor, optional
        Where the runs are played, in place of `threads`: "local:4", "ray", "ray://host:port", "dask://host:port", or an
        executor; the bits are the same everywhere.

    Returns
    -------
    polars.DataFrame
        One row per policy, checkpoint and measure, with mean, standard error and quantiles.

    Raises
    ------
    ConfigError
        If the folder holds other files, or a result of other settings or of another version of surefoot.
    WorkerError
        If the workers of `on` cannot be reached, or were lost too often.

    Examples
    --------
    >>> import tempfile
    >>> from surefoot.simulation import ArmsWorld, Baseline, Spec
    >>> world = ArmsWorld(actions=3, dim=3, baseline=Baseline(rank=2))
    >>> sweep = Sweep([Part("arms", world, [Spec("UCB")], runs=2, horizon=20)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run_sweep(sweep, folder, threads=1)
    >>> table["policy"].unique().to_list()
    ['UCB']
    """
    results = folder_at(folder)
    with workers_on(on, threads=threads) as executor:
        claim_folder(sweep, results)
        _play_missing(sweep, results, executor, progress or (lambda finished, whole: None))
    table = to_table(rows for part in sweep.parts for rows in _collect(part, results))
    with results.filled() as path:
        write_table(table, path, "results")
    return table


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptChunk(ChunkTask):
    """A chunk that is kept as a file: its worker writes it or, without a folder, sends it back."""

    name: str
    folder: ResultFolder | None

    @property
    def rounds(self) -> int:
        """Rounds of all policies and runs together."""
        return len(self.runs) * self.horizon * len(self.policies)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the array that is kept."""
        return len(self.policies), len(self.runs), self.checkpoints.size, len(MEASURES) + len(self.watched)

    def hand_in(self, counts: list[NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """Write the counts, or send them back."""
        if self.folder is None:
            return np.stack(counts)
        self.folder.write(self.name, *npy(counts))
        return None


def _play_missing(sweep: Sweep, folder: ResultFolder, executor: Executor, report: Progress) -> None:
    # Threads finish and write their chunks also after Ctrl-C. Others may have no folder of this name on their machine.
    is_shared = is_of_this_process(executor) or not isinstance(folder, LocalFolder)
    planned = [task for part in sweep.parts for task in _tasks(part, folder if is_shared else None)]
    there = folder.whole({task.name: task.shape for task in planned})
    tasks = [task for task in planned if task.name not in there]
    done, total = sum(task.rounds for task in planned if task.name in there), sweep.rounds
    report(done, total)
    with closing(completed(executor, tasks)) as answers:
        for place, counts in answers:
            if counts is not None:
                folder.write(tasks[place].name, *npy(counts))
            elif done == 0:
                _check_shared(tasks[place], folder)
            done += tasks[place].rounds
            report(done, total)


def _tasks(part: Part, folder: ResultFolder | None) -> Iterator[KeptChunk]:
    rest = (part.horizon, part.seed, part.alphas, part.checkpoints)
    for chunk, name in _names(part):
        yield KeptChunk(part.world, part.specs, chunk, *rest, name=name, folder=folder)


def _names(part: Part) -> Iterator[tuple[range, str]]:
    text = json.dumps([FORMAT, code_of_results(), part.describe()], sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    for chunk in chunks_of(part.runs):
        yield chunk, f"cells/{digest}-{chunk.start:06d}.npy"


def _check_shared(task: KeptChunk, folder: ResultFolder) -> None:
    """The first chunk that a worker wrote must be here: better now than after an hour."""
    if not folder.whole({task.name: task.shape}):
        raise ConfigError(
            f"`{folder}` must be a folder that workers share with this program, but what one wrote there is not here. "
            "Give an address that all of them can reach."
        )


def _collect(part: Part, folder: ResultFolder) -> Iterator[Columns]:
    """The rows of every policy; only as many at a time as memory has room for."""
    with folder.arrays([name for _, name in _names(part)]) as chunks:

        def rows(i: int, spec: Spec) -> Columns:
            counts = [chunk[i] for chunk in chunks]
            return columns_of(part.name, part.seed, outcome(spec, part.checkpoints, part.alphas, counts))

        room = available_memory() // (COPIES * sum(chunk[0].nbytes for chunk in chunks))
        with ThreadPoolExecutor(max(1, min(room, os.cpu_count() or 1, len(part.specs)))) as threads:
            yield from threads.map(rows, range(len(part.specs)), part.specs)


def measures_of(outcome: Outcome) -> Iterator[tuple[str, float | None, Any]]:
    """Every measure of the table: its name, the alpha that violations are judged by, and its values (runs, points)."""
    rounds = outcome.checkpoints.astype(np.float64)
    measures = outcome.measures
    yield "regret", None, measures["regret"]
    yield "regret_per_round", None, measures["regret"] / rounds
    yield "reward", None, measures["earned"]
    yield "baseline_reward", None, measures["owed"]
    yield "baseline_rounds", None, measures["baseline_rounds"]
    yield "baseline_share", None, measures["baseline_rounds"] / rounds
    yield "last_baseline_round", None, measures["last_baseline"]
    yield "worst_share", None, measures["worst_share"]
    own = [outcome.spec.alpha] if outcome.spec.alpha is not None else list(outcome.watched)
    for alpha in own:
        yield "violated_share", alpha, outcome.violations[:, :, outcome.watched.index(alpha)] / rounds


def columns_of(world: str, seed: int, outcome: Outcome) -> Columns:
    """The rows of one policy in one world, column by column."""
    rows: Columns = {name: [] for name in COLUMNS}
    points, rounds = len(outcome.checkpoints), outcome.checkpoints.tolist()
    for measure, watched, values in measures_of(outcome):
        runs = len(values)
        # A row for each point, so that every sum runs over numbers that lie side by side, as over one point alone.
        columns = np.ascontiguousarray(values.T)
        errors = columns.std(axis=1, ddof=1) / math.sqrt(runs) if runs > 1 else np.full(points, math.nan)
        quantiles = np.quantile(columns, list(QUANTILES.values()), axis=1).tolist()
        constants = {
            "world": world,
            "policy": outcome.spec.name,
            "alpha": outcome.spec.alpha,
            "seed": seed,
            "runs": runs,
            "horizon": rounds[-1],
            "measure": measure,
            "watched": watched,
        }
        new: Columns = {name: [value] * points for name, value in constants.items()}
        new |= {"round": rounds, "mean": columns.mean(axis=1).tolist(), "stderr": errors.tolist()}
        new |= zip(QUANTILES, quantiles, strict=True)
        for name in COLUMNS:
            rows[name] += new[name]
    return rows


def to_table(policies: Iterable[Columns]) -> "pl.DataFrame":
    """The rows of several policies, as a polars table."""
    import polars as pl

    rows: Columns = {name: [] for name in COLUMNS}
    for columns in policies:
        for name in COLUMNS:
            rows[name] += columns[name]
    # With a schema, since a column of None alone would have no type of its own.
    types = {str: pl.String, int: pl.Int64, float: pl.Float64}
    return pl.DataFrame(rows, schema={name: types[kind] for name, kind in COLUMNS.items()})


def write_table(table: "pl.DataFrame", folder: Path, name: str) -> None:
    """Write the table as CSV and as Parquet, each whole or not at all."""
    for suffix, write in ((".csv", table.write_csv), (".parquet", table.write_parquet)):
        with whole_file(folder / f"{name}{suffix}") as file:
            write(file)


def plain(value: Any) -> Any:
    """A setting as JSON can hold it; a function by its name and a digest of what it is made of."""
    if hasattr(value, "__dataclass_fields__"):
        return {"kind": type(value).__name__, **{f.name: plain(getattr(value, f.name)) for f in fields(value)}}
    if callable(value):
        return {"function": getattr(value, "__qualname__", type(value).__qualname__), "digest": digest(value)}
    if isinstance(value, np.ndarray):
        return value.tolist()
    return list(value) if isinstance(value, tuple) else value


def digest(function: Any) -> str:
    """What a function is made of: its code, its constants, its defaults and what it closes over."""
    code = getattr(function, "__code__", None)
    if code is None:
        raise ConfigError(f"A world's function must be a plain function to be kept in a folder, but got {function!r}.")
    cells = [repr(cell.cell_contents) for cell in function.__closure__ or ()]
    # The repr of a code object holds its address, which no other process would find again.
    consts = [c.co_code.hex() if isinstance(c, types.CodeType) else repr(c) for c in code.co_consts]
    parts = (code.co_code.hex(), consts, code.co_names, repr(function.__defaults__), cells)
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:16]


def code_of(kind: type) -> str:
    """A digest of the methods of a class and of its bases, those of surefoot and of Python left out."""
    parts = []
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] not in ("surefoot", "builtins", "abc", "typing"):
            own = {name: getattr(member, "__func__", member) for name, member in vars(base).items()}
            parts += [(name, digest(one)) for name, one in sorted(own.items()) if isinstance(one, types.FunctionType)]
    return hashlib.sha256(repr((kind.__qualname__, parts)).encode()).hexdigest()[:16]


REWARDS: dict[str, type[Rewards]] = {"gaussian": Gaussian, "bernoulli": Bernoulli, "bounded": Bounded}
SPEC_NUMBERS = ("delta", "ridge", "floor_share", "realised_share", "exploration")
SPEC_WORDS = {"radius": RADII, "gate": GATES, "optimism": OPTIMISMS}
SPEC_PAIRS = {"reward_bounds": "every single reward", "reward_range": "every mean reward"}
SPEC_KEYS = ("policy", "name", "alpha", *SPEC_NUMBERS, "knows_baseline", *SPEC_WORDS, *SPEC_PAIRS, "constraint")
TOP_KEYS = ("title", "runs", "horizon", "seed", "seeds", "watched", "worlds", "policies")


def read_sweep(path: Path) -> Sweep:
    """The sweep that a TOML file describes.

    Parameters
    ----------
    path : Path
        The file; docs/simulation.md shows its keys.

    Returns
    -------
    Sweep
        Ready for `run_sweep`.

    Raises
    ------
    ConfigError
        If the file is missing, is not TOML, or holds an unknown key or an invalid value.

    Examples
    --------
    >>> import tempfile
    >>> text = '''
    ... runs = 2
    ... horizon = 20
    ... worlds.small = {kind = "paper", actions = 20}
    ... policies = [{policy = "CLUCB", alpha = [0.05, 0.1]}]
    ... '''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sweep.toml"
    ...     _ = file.write_text(text)
    ...     sweep = read_sweep(file)
    >>> sweep.title, sweep.rounds
    ('sweep', 80)
    """
    try:
        data = tomllib.loads(path.read_text())
    except FileNotFoundError:
        raise ConfigError(f"`{path}` must be a TOML file, but there is none. Check the path.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"`{path}` must be valid TOML, but is not: {error}") from None
    return sweep_from(data, title=path.stem)


def sweep_from(data: Mapping[str, Any], *, title: str) -> Sweep:
    """The sweep that plain data describe."""
    _known("the file", data, TOP_KEYS)
    for key in ("runs", "horizon", "worlds", "policies"):
        if key not in data:
            raise ConfigError(f"`{key}` must be given, but the file has no such key.")
    if "seed" in data and "seeds" in data:
        raise ConfigError("`seed` and `seeds` must not be given together.")
    seeds = _list("seeds", data.get("seeds", [data.get("seed", 0)]))
    watched = tuple(_number("watched", alpha) for alpha in _list("watched", data.get("watched", [])))
    worlds = _table("worlds", data["worlds"])
    specs = [spec for entry in _list("policies", data["policies"], "tables ([[policies]])") for spec in _specs(entry)]
    parts = [
        Part(
            name=name,
            world=_world(name, entry),
            specs=specs,
            runs=data["runs"],
            horizon=data["horizon"],
            seed=seed,
            watched=watched,
        )
        for name, entry in worlds.items()
        for seed in seeds
    ]
    return Sweep(parts, title=str(data.get("title", title)))


def _world(name: str, entry: Any) -> World:
    where = f"worlds.{name}"
    table = dict(_table(where, entry))
    kind = _kind(where, table, WORLDS)
    if "baseline" in table:
        baseline = _table(f"{where}.baseline", table["baseline"])
        _known(f"{where}.baseline", baseline, ("rank", "action"))
        table["baseline"] = Baseline(**baseline)
    if "rewards" in table:
        rewards = dict(_table(f"{where}.rewards", table["rewards"]))
        table["rewards"] = _kind(f"{where}.rewards", rewards, REWARDS)(**rewards)
    world: World = kind(**table)
    return world


def _kind(where: str, table: dict[str, Any], kinds: Mapping[str, Any]) -> Any:
    """The class that a table names by its `kind`, which is taken out; what is left must be settings of that class."""
    kind = str(table.pop("kind", None))
    if kind not in kinds:
        raise ConfigError(f"`{where}.kind` must be known, but got {kind!r}. {nearest(kind, kinds)}")
    _known(where, table, [setting.name for setting in fields(kinds[kind])])
    return kinds[kind]


def _specs(entry: Any) -> list[Spec]:
    table = _table("policies", entry)
    _known("policies", table, SPEC_KEYS)
    if "policy" not in table:
        raise ConfigError("Each of `policies` must have a key `policy`, the name of the policy.")
    settings = {key: _setting(key, value) for key, value in table.items() if key != "alpha"}
    alphas = table["alpha"] if isinstance(table.get("alpha"), list) else [table.get("alpha")]
    return [Spec(alpha=None if alpha is None else _number("policies.alpha", alpha), **settings) for alpha in alphas]


def _setting(key: str, value: Any) -> Any:
    """One setting of a policy, of the right type; whether its value is valid is for the policy to say."""
    where = f"policies.{key}"
    if key in SPEC_NUMBERS:
        return _number(where, value)
    if key in SPEC_WORDS:
        return _word(where, value, SPEC_WORDS[key])
    if key in SPEC_PAIRS:
        if not isinstance(value, list) or len(value) != 2:
            raise ConfigError(
                f"`{where}` must be [low, high], between which {SPEC_PAIRS[key]} lies, but got {value!r}."
            )
        return tuple(_number(where, end) for end in value)
    if key == "constraint":
        return _constraint(where, value)
    kind, words = (bool, "true or false") if key == "knows_baseline" else (str, "a text")
    if not isinstance(value, kind) or value == "":
        raise ConfigError(f"`{where}` must be {words}, but got {value!r}.")
    return value


def _constraint(where: str, value: Any) -> Any:
    """A name, or a table with a name and the constraint's own settings."""
    table = value if isinstance(value, Mapping) else {"name": value}
    name = _word(f"{where}.name" if table is value else where, table.get("name"), Constraint.known)
    kind: Any = Constraint.known[name]
    own = [setting.name for setting in fields(kind)]
    _known(where, table, ("name", *own))
    for key in own:
        if key not in table:
            raise ConfigError(
                f"`{where}` {name!r} must say its {key!r}, but does not: {{name = {name!r}, {key} = ...}}."
            )
        _number(f"{where}.{key}", table[key])
    return dict(table) if own else name


def _number(where: str, value: Any) -> float:
    # `true` would pass for 1, since a bool is an int.
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigError(f"`{where}` must be a number, but got {value!r}.")
    return value


def _word(where: str, value: Any, known: Collection[str]) -> str:
    if not isinstance(value, str) or value not in known:
        raise ConfigError(f"`{where}` must be known, but got {value!r}. {nearest(str(value), known)}")
    return value


def _known(where: str, table: Mapping[str, Any], keys: Collection[str]) -> None:
    for key in table:
        if key not in keys:
            raise ConfigError(f"Every key of {where} must be known, but got {key!r}. {nearest(key, keys)}")


def _table(where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` must be a table of keys and values, but got {value!r}.")
    return value


def _list(where: str, value: Any, of: str = "numbers between brackets") -> list[Any]:
    if not isinstance(value, list):
        raise ConfigError(f"`{where}` must be a list of {of}, but got {value!r}.")
    return value
