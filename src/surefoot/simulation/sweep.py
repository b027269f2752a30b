"""Sweeps: policies x alphas x worlds x seeds into one table, resumable after any interruption.

Every finished chunk of runs is a file. A sweep that was stopped, by Ctrl-C or by a kill, continues from those files
with the same call, and ends with the same table as one that was never stopped.
"""

import hashlib
import json
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from surefoot.arrays import count
from surefoot.core import native
from surefoot.errors import ConfigError
from surefoot.simulation.atomic_files import is_left_behind, whole_file
from surefoot.simulation.contestants import Entrant, Entry, entrants
from surefoot.simulation.engine import Outcome, chunks_of, default_checkpoints, outcome, play_chunk
from surefoot.simulation.object_runner import new_object
from surefoot.simulation.plain_settings import code_of, plain
from surefoot.simulation.policy_specs import Spec
from surefoot.simulation.result_table import shown_name, to_table, write_table
from surefoot.simulation.worlds import World

if TYPE_CHECKING:
    import polars as pl

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
        count("runs", self.runs, hint="runs is the number of realisations.")
        count("horizon", self.horizon, hint="horizon is the number of rounds of a run.")
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
            return asdict(entrant)
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
        return {"format": FORMAT, "code": native.SOURCES, "title": self.title, "parts": parts}

    @property
    def rounds(self) -> int:
        """Rounds of all policies and runs together."""
        return sum(part.runs * part.horizon * len(part.specs) for part in self.parts)


def claim_folder(sweep: Sweep, folder: Path) -> None:
    """Make the folder this sweep's, or raise if it holds a result of other settings."""
    settings = json.dumps(sweep.describe(), indent=2, sort_keys=True)
    path = folder / "settings.json"
    if path.exists():
        if path.read_text() != settings:
            raise ConfigError(
                f"`{folder}` must be empty or hold this very sweep, but it holds a result of other settings. "
                "Nothing was changed: choose another folder, or remove that one."
            )
        return
    # A kill while the settings were written leaves a hidden file, which is no reason to refuse.
    if folder.exists() and not all(is_left_behind(found.name, path) for found in folder.iterdir()):
        raise ConfigError(
            f"`{folder}` must be empty or hold this very sweep, but it holds other files. "
            "Nothing was changed: choose another folder."
        )
    folder.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as file:
        file.write(settings.encode())


def run_sweep(
    sweep: Sweep, folder: Path, *, threads: int | None = None, progress: Progress | None = None
) -> "pl.DataFrame":
    """Run what is not there yet, write results.csv and results.parquet, and return the table.

    Parameters
    ----------
    sweep : Sweep
        What to simulate.
    folder : Path
        Where chunks and results are kept; empty, or of this very sweep.
    threads : int, optional
        All cores by default.
    progress : callable, optional
        Called with rounds done and rounds in all.

    Returns
    -------
    polars.DataFrame
        One row per policy, checkpoint and measure, with mean, standard error and quantiles.

    Raises
    ------
    ConfigError
        If the folder holds other files, or a result of other settings.

    Examples
    --------
    >>> import tempfile
    >>> from surefoot.simulation import ArmsWorld, Baseline, Spec
    >>> world = ArmsWorld(actions=3, dim=3, baseline=Baseline(rank=2))
    >>> sweep = Sweep([Part("arms", world, [Spec("UCB")], runs=2, horizon=20)])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = run_sweep(sweep, Path(folder), threads=1)
    >>> table["policy"].unique().to_list()
    ['UCB']
    """
    claim_folder(sweep, folder)
    cells = folder / "cells"
    cells.mkdir(exist_ok=True)
    tasks = list(_tasks(sweep, cells))
    total, done = sweep.rounds, 0
    stop = threading.Event()
    report = progress or (lambda finished, whole: None)
    with ThreadPoolExecutor(threads or os.cpu_count() or 1) as pool:
        waiting: dict[Future[None], int] = {}
        for part, chunk, path in tasks:
            size = len(chunk) * part.horizon * len(part.specs)
            if _is_whole(path):
                done += size
            else:
                waiting[pool.submit(_play_and_keep, part, chunk, path, stop)] = size
        report(done, total)
        try:
            while waiting:
                finished, _ = wait(waiting, return_when=FIRST_COMPLETED)
                for task in finished:
                    task.result()
                    done += waiting.pop(task)
                report(done, total)
        except BaseException:
            stop.set()
            for task in waiting:
                task.cancel()
            raise
    table = to_table((part.name, part.seed, found) for part in sweep.parts for found in _collect(part, cells))
    write_table(table, folder, "results")
    return table


def _tasks(sweep: Sweep, cells: Path) -> Iterator[tuple[Part, range, Path]]:
    for part in sweep.parts:
        for chunk in chunks_of(part.runs):
            yield part, chunk, _path(part, chunk, cells)


def _path(part: Part, chunk: range, cells: Path) -> Path:
    text = json.dumps([FORMAT, native.SOURCES, part.describe()], sort_keys=True)
    return cells / f"{hashlib.sha256(text.encode()).hexdigest()[:16]}-{chunk.start:06d}.npy"


def _is_whole(path: Path) -> bool:
    """Whether a chunk is there; one that a power cut left unreadable is not."""
    try:
        # Mapped: the header and the length are checked, and nothing is read.
        np.load(path, mmap_mode="r")
    except (OSError, ValueError, EOFError):
        return False
    return True


def _play_and_keep(part: Part, chunk: range, path: Path, stop: threading.Event) -> None:
    # Cancelling reaches only what no thread has taken yet.
    if stop.is_set():
        return
    kept = play_chunk(
        part.world,
        part.entrants,
        runs=chunk,
        horizon=part.horizon,
        seed=part.seed,
        watched=part.alphas,
        checkpoints=part.checkpoints,
    )
    with whole_file(path) as file:
        np.save(file, np.stack(kept))


def _collect(part: Part, cells: Path) -> Iterator[Outcome]:
    """One policy after the other, so that only one is in memory."""
    chunks = [np.load(_path(part, chunk, cells), mmap_mode="r") for chunk in chunks_of(part.runs)]
    for i, spec in enumerate(part.entrants):
        yield outcome(spec, part.checkpoints, part.alphas, [chunk[i] for chunk in chunks])
