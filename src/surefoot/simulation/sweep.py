"""Sweeps: policies x alphas x worlds x seeds into one table, resumable after any interruption.

Every finished chunk of runs is a file. A sweep that was stopped, by Ctrl-C or by a kill, continues from those files
with the same call, on the same workers or on others, and ends with the same table as one that was never stopped.
"""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import closing
from dataclasses import asdict, dataclass, fields
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.core import native
from surefoot.errors import ConfigError
from surefoot.simulation.available_memory import available_memory
from surefoot.simulation.contestants import Entrant, Entry, entrants
from surefoot.simulation.engine import MEASURES, ChunkTask, check_scale, chunks_of, default_checkpoints, outcome
from surefoot.simulation.object_runner import new_object
from surefoot.simulation.plain_settings import code_of, plain
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.result_folder import LocalFolder, Place, ResultFolder, folder_at, npy
from surefoot.simulation.result_table import Columns, columns_of, shown_name, to_table, write_table
from surefoot.simulation.workers import Where, completed, is_of_this_process, workers_on
from surefoot.simulation.worlds import World

if TYPE_CHECKING:
    import polars as pl

COPIES = 8  # of a policy's counts that there must be room for while its rows are made
FORMAT = 1  # of the files in which chunks are kept
Progress = Callable[[int, int], None]  # rounds done, rounds in all


@dataclass(frozen=True)
class Part:
    """Some policies in one world with one seed: they share realisations and noise.

    Parameters
    ----------
    name : str
        Name of the world in the table.
    world : World
        Where realisations are drawn from.
    specs : sequence of Spec, Contestant, Policy or callable
        The policies as in `simulate`, each with its own name or alpha. A folder knows a policy of your own by its
        settings, its methods and its factory, not by other functions that they call.
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
    specs: Sequence[Entry]
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
        for spec in self.entrants:
            spec.check(self.world)
        self._check_names()
        self._check_settings()

    def _check_names(self) -> None:
        """Refuse two policies that the table could not tell apart."""
        seen = [(shown_name(spec), spec.alpha) for spec in self.entrants]
        for name, alpha in seen:
            if seen.count((name, alpha)) > 1:
                called = name if alpha is None else f"{name} with alpha {alpha:g}"
                raise ConfigError(
                    f"Every policy of a sweep must have its own name or alpha, but {called} is there "
                    f"{seen.count((name, alpha))} times. Give each a `name`."
                )

    def _check_settings(self) -> None:
        """Let every policy check its settings before any work is done."""
        # Some settings can only be judged in a world, by its bounds and dimension: better now than after an hour.
        (realisation,) = self.world.realisations(self.seed, [0])
        problem = realisation.problem(realisation.take(1))
        for spec in self.entrants:
            new_object(spec, problem)

    @property
    def entrants(self) -> list[Entrant]:
        """The policies as specs and contestants."""
        return entrants(self.specs)

    @property
    def alphas(self) -> list[float]:
        """The alphas by which violations are counted."""
        return sorted({*self.watched, *(spec.alpha for spec in self.entrants if spec.alpha is not None)})

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
            "policies": [self._described(spec) for spec in self.entrants],
            "runs": self.runs,
            "horizon": self.horizon,
            "seed": self.seed,
            "watched": list(self.watched),
        }

    def _described(self, entrant: Entrant) -> dict[str, Any]:
        if isinstance(entrant, Spec):
            described = asdict(entrant)
            # A setting that came later is left out where it is not used, so that older results go on.
            return {name: value for name, value in described.items() if name != "exploration" or value is not None}
        (realisation,) = self.world.realisations(self.seed, [0])
        policy = entrant.new_policy(realisation.problem(realisation.take(1)))
        settings = {name: repr(value) for name, value in getattr(policy, "settings", {}).items()}
        return {
            "name": entrant.policy,
            "alpha": entrant.alpha,
            "knows_baseline": entrant.knows_baseline,
            "factory": None if entrant.is_object or isinstance(entrant.make, type) else plain(entrant.make),
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
    """What results are made by: the core's sources, and the modules that draw worlds and play runs, all of this room.

    Read once, and not the whole package: from a cold disk each file takes a millisecond or two.
    """
    digest = hashlib.sha256(native.SOURCES.encode())
    for path in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def claim_folder(sweep: Sweep, folder: ResultFolder) -> None:
    """Make the folder this sweep's, or raise if it holds a result of other settings, or of another version."""
    settings = json.dumps(sweep.describe(), indent=2, sort_keys=True).encode()
    found = folder.read("settings.json")
    if found == settings:
        return
    # Where files do not appear whole, a kill leaves the beginning of them; of this one, nothing lay beside it yet.
    is_begun = found is not None and settings.startswith(found) and folder.names() == ["settings.json"]
    if found is not None and not is_begun:
        other = "another version of surefoot" if _differs_in_code(found, sweep) else "other settings"
        raise ConfigError(
            f"`{folder}` must be empty or hold this very sweep, but it holds a result of {other}. "
            "Nothing was changed: choose another folder, or remove that one."
        )
    if found is None and folder.names():
        raise ConfigError(
            f"`{folder}` must be empty or hold this very sweep, but it holds other files. "
            "Nothing was changed: choose another folder."
        )
    folder.write("settings.json", settings)


def _differs_in_code(found: bytes, sweep: Sweep) -> bool:
    try:
        told = json.loads(found)
    except ValueError:
        return False
    asked: dict[str, Any] = json.loads(json.dumps(sweep.describe()))
    return isinstance(told, dict) and {**told, "code": asked["code"]} == asked


def run_sweep(
    sweep: Sweep,
    folder: Place,
    *,
    threads: int | None = None,
    progress: Progress | None = None,
    on: Where = None,
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
    kept = folder_at(folder)
    # What makes the table is loaded while others play.
    threading.Thread(target=import_module, args=("polars",), daemon=True).start()
    with workers_on(on, threads=threads) as executor:
        claim_folder(sweep, kept)
        _play_missing(sweep, kept, executor, progress or (lambda finished, whole: None))
    table = to_table(rows for part in sweep.parts for rows in _collect(part, kept))
    with kept.filled() as path:
        write_table(table, path, "results")
    return table


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptChunk(ChunkTask):
    """A chunk that becomes a file: its worker writes it, or without a folder sends it back."""

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

    def hand_in(self, kept: list[NDArray[np.float64]]) -> NDArray[np.float64] | None:
        """Write what was counted, or send it back."""
        if self.folder is None:
            return np.stack(kept)
        self.folder.write(self.name, *npy(kept))
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
        for place, kept in answers:
            if kept is not None:
                folder.write(tasks[place].name, *npy(kept))
            elif done == 0:
                _check_shared(tasks[place], folder)
            done += tasks[place].rounds
            report(done, total)


def _tasks(part: Part, folder: ResultFolder | None) -> Iterator[KeptChunk]:
    policies, told = part.entrants, (part.horizon, part.seed, part.alphas, part.checkpoints)
    for chunk, name in _names(part):
        yield KeptChunk(part.world, policies, chunk, *told, name=name, folder=folder)


def _names(part: Part) -> Iterator[tuple[range, str]]:
    text = json.dumps([FORMAT, code_of_results(), part.describe()], sort_keys=True)
    described = hashlib.sha256(text.encode()).hexdigest()[:16]
    for chunk in chunks_of(part.runs):
        yield chunk, f"cells/{described}-{chunk.start:06d}.npy"


def _check_shared(task: KeptChunk, folder: ResultFolder) -> None:
    """The first chunk that a worker wrote must be here: better now than after an hour."""
    if not folder.whole({task.name: task.shape}):
        raise ConfigError(
            f"`{folder}` must be a folder that workers share with this program, but what one wrote there is not here. "
            "Give an address that all of them can reach."
        )


def _collect(part: Part, folder: ResultFolder) -> Iterator[Columns]:
    """The rows of every policy, of which only as many are in memory as there is room for."""
    with folder.arrays([name for _, name in _names(part)]) as chunks:

        def rows(i: int, spec: Entrant) -> Columns:
            found = outcome(spec, part.checkpoints, part.alphas, [chunk[i] for chunk in chunks])
            return columns_of(part.name, part.seed, found)

        policies = part.entrants
        room = available_memory() // (COPIES * sum(chunk[0].nbytes for chunk in chunks))
        with ThreadPoolExecutor(max(1, min(room, os.cpu_count() or 1, len(policies)))) as threads:
            yield from threads.map(rows, range(len(policies)), policies)
