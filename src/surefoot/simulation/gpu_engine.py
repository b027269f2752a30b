"""The engine on a GPU: every run of every policy at once, by the core's own headers, with the bits of a CPU.

A run is played by a lane, or by a team of lanes that share its actions. Programs are compiled for the world's own
dimension. Draws are functions of seed and round, so a GPU makes its own. What it cannot play, `refusal` says, and a CPU
does.
"""

import queue
import threading
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from surefoot.core import native
from surefoot.core.gpu_program import Engine, program
from surefoot.errors import ConfigError, WorkerError
from surefoot.linear.radius import RADII
from surefoot.simulation.engine import MEASURES, ChunkTask, Played, check_owed, learned_size, play_chunk, too_long
from surefoot.simulation.policy_specs import Spec, seed_of_run
from surefoot.simulation.rewards import GAUSSIAN
from surefoot.simulation.workers import available_memory
from surefoot.simulation.worlds import Block, Realisation, World

TYPES = {"LUCB": "Lucb", "CLUCB": "Clucb", "CLUCB2": "Clucb2", "SafeLUCB": "SafeLucb"}  # in the core
MOST_DIMENSIONS = 16  # of a world: the compiler unrolls every loop over them
TEAM = 4  # lanes that play one run; more would share its rows, and repeat the rest of its rounds
BLOCK = 32  # threads that are started together
ARENA_BYTES = 32 * BLOCK  # of a block's shared memory: where its threads take room from
LANE_ROOM = 32 * 1024  # bytes that a lane may take for itself
TRIAL_RUNS, TRIAL_ROUNDS = 8, 512  # which a CPU plays as well, every time
MEMORY_SHARE = 0.7  # of what the device has free
MOST_TOGETHER = 65_535  # runs: the most that CUDA numbers in a second dimension
DRAW_THREADS = 256
MOST_RUNS = 1_000  # that are played together, and lost together on an interruption
GATHER = 0.05  # seconds without another chunk after which a GPU begins

# The structs of `gpu/play.cu`.
ROUNDS = np.dtype(
    [
        ("rounds", np.int32),
        ("actions", np.int32),
        ("checkpoints", np.uint64),
        ("checkpoint_count", np.int32),
        ("watched", np.uint64),
        ("watched_count", np.int32),
        ("memory", np.uint64),
        ("lane_room", np.uint64),
        ("team_room", np.uint64),
    ],
    align=True,
)


def task_dtype(settings: int) -> np.dtype[np.void]:
    """One run as the kernel reads it, with so many bytes of settings."""
    return np.dtype(
        [
            ("settings", np.void, settings),
            ("features", np.uint64),
            ("means", np.uint64),
            ("baselines", np.uint64),
            ("draws", np.uint64),
            ("kept", np.uint64),
            ("learned", np.uint64),
            ("scale", np.float64),
            ("rewards", np.int32),
            ("is_told", np.int32),
        ]
    )


def engine_of(policy: str, radius: int, *, fixed: bool, dim: int) -> Engine:
    """The engine for a policy's type in the core with a radius, in worlds whose rows stay the same or not."""
    task = task_dtype(len(native.LinearSettings().raw())).itemsize
    # One lane alone prepares new rows, and chooses the sets of the `dual` radius.
    team = TEAM if fixed and radius != RADII["dual"] else 1
    return Engine(policy, radius, fixed, dim, team, BLOCK, task, ROUNDS.itemsize)


def refusal(world: World, specs: Sequence[Spec]) -> str | None:
    """Why a GPU cannot play this; None if it can."""
    if world.delay > 0:
        return "delayed rewards wait in a queue that only a CPU has"
    if world.dim > MOST_DIMENSIONS:
        return f"its programs are for up to {MOST_DIMENSIONS} dimensions, and this world has {world.dim}"
    for spec in specs:
        if spec.is_own or spec.policy not in TYPES:
            return f"{spec.label} is not one of {', '.join(TYPES)}"
        if spec.reward_bounds is not None or spec.radius in ("likelihood", "best"):
            return f"{spec.label} uses the likelihood set of bounded rewards"
    return None


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU, through CuPy."""

    index: int = 0

    def __post_init__(self) -> None:
        cupy = self._cupy
        try:
            count = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:  # CuPy has errors of its own for drivers that are missing or too old
            raise ConfigError(f"A GPU needs NVIDIA's driver, but CuPy says: {error}.") from error
        if not 0 <= self.index < count:
            raise ConfigError(f"`gpu:{self.index}` must be one of the GPUs of this machine, but it has {count}.")

    @property
    def _cupy(self) -> Any:
        try:
            import cupy
        except ImportError as error:
            raise ConfigError("The GPU engine needs CuPy. Install it with `pip install 'surefoot[gpu]'`.") from error
        return cupy

    def play(
        self,
        world: World,
        specs: Sequence[Spec],
        *,
        runs: Sequence[int],
        horizon: int,
        seed: int,
        watched: Sequence[float],
        checkpoints: NDArray[np.int64],
    ) -> Played:
        """Play some runs to the horizon, as `surefoot.simulation.engine.play_chunk` does."""
        if (why := refusal(world, specs)) is not None:
            raise ConfigError(f"A GPU must be able to play this, but {why}.")
        try:
            self._try_out(world, specs, runs[:TRIAL_RUNS], min(horizon, TRIAL_ROUNDS), seed, watched)
            with self._cupy.cuda.Device(self.index):
                stage = Stage(self._cupy, world, horizon, watched, checkpoints)
                waves = [
                    stage.play(specs, set_up(world, specs, seed, runs[wave], 1 if world.fixed else horizon))
                    for wave in stage.waves(len(runs), len(specs))
                ]
        except Exception as error:
            if not type(error).__module__.startswith("cupy"):
                raise
            raise WorkerError(f"A GPU must play to the end, but it failed: {error}. Play with `on='local'`.") from error
        return Played.joined(waves)

    def _try_out(
        self,
        world: World,
        specs: Sequence[Spec],
        runs: Sequence[int],
        horizon: int,
        seed: int,
        watched: Sequence[float],
    ) -> None:
        """Play the first rounds of a few runs on both: a program that is compiled on the way must earn trust."""
        points = np.array([horizon], dtype=np.int64)
        with self._cupy.cuda.Device(self.index):
            setup = set_up(world, specs, seed, runs, 1 if world.fixed else horizon)
            on_gpu = Stage(self._cupy, world, horizon, watched, points).play(specs, setup)
        on_cpu = play_chunk(world, specs, runs=runs, horizon=horizon, seed=seed, watched=watched, checkpoints=points)
        for spec, is_equal in zip(specs, on_gpu.equals(on_cpu), strict=True):
            if not is_equal:
                raise WorkerError(
                    f"A GPU must give the bits of a CPU, but of {spec.label} the first {horizon} rounds differ: its "
                    "compiler or driver cannot be relied on. Play with `on='local'`, and please report it."
                )


class Setup(NamedTuple):
    """Some runs before a device is needed: worlds and their first rounds, and for each policy its settings in each."""

    realisations: list[Realisation]
    blocks: list[Block]
    engines: list[Engine]
    settings: list[list[bytes]]


def set_up(world: World, specs: Sequence[Spec], seed: int, runs: Sequence[int], rounds: int) -> Setup:
    """The worlds of some runs, of which so many rounds are drawn, and the settings of each policy."""
    realisations = list(world.realisations(seed, runs))
    blocks = [one.take(rounds) for one in realisations]
    if any(spec.is_conservative for spec in specs):
        for block in blocks:
            check_owed(block)
    problems = [
        one.problem(block, seed=seed_of_run(seed, run))
        for one, block, run in zip(realisations, blocks, runs, strict=True)
    ]
    engines, settings = [], []
    for spec in specs:
        in_runs = [spec.new_policy(problem).core.settings for problem in problems]
        for one in in_runs:
            one.watchful = False  # the means are the world's own: no row can contradict what was declared
        engines.append(engine_of(TYPES[spec.policy], in_runs[0].radius, fixed=world.fixed, dim=world.dim))
        settings.append([one.raw() for one in in_runs])
    return Setup(realisations, blocks, engines, settings)


class Stage:
    """One simulation on one device."""

    def __init__(
        self, cupy: Any, world: World, horizon: int, watched: Sequence[float], checkpoints: NDArray[np.int64]
    ) -> None:
        self._cupy, self._world, self._horizon = cupy, world, horizon
        self._watched = cupy.asarray(np.array([float(alpha) for alpha in watched]))
        self._checkpoints = cupy.asarray(checkpoints)
        self._columns = len(MEASURES) + len(watched)
        self._architecture = f"sm_{cupy.cuda.Device().compute_capability}"
        self._modules: dict[Engine, Any] = {}
        size = world.actions * world.dim
        self._team_room = 8 * (6 * size + 16 * world.actions) + 16 * 1024

    def waves(self, runs: int, policies: int) -> list[slice]:
        """The runs, as many together as the device has memory for."""
        free = int(self._cupy.cuda.Device().mem_info[0] * MEMORY_SHARE)
        per_round = 2 if self._world.fixed else 2 + self._world.actions * (self._world.dim + 1)
        rounds, counts = 8 * per_round * self._horizon, 8 * self._checkpoints.size * self._columns
        one = rounds + policies * (counts + TEAM * LANE_ROOM + self._team_room)
        together = min(free // one, MOST_TOGETHER)
        if not self._world.fixed:  # the CPU draws them, and has them twice for a moment
            together = min(together, int(available_memory() * MEMORY_SHARE) // (2 * rounds))
        together = max(1, together)
        return [slice(start, start + together) for start in range(0, runs, together)]

    def play(self, specs: Sequence[Spec], setup: Setup) -> Played:
        """Play the runs of a setup to the horizon."""
        cupy, runs = self._cupy, len(setup.realisations)
        rounds = self._rounds_of(setup)
        counts = cupy.zeros((len(specs), runs, self._checkpoints.size, self._columns))
        learned = cupy.zeros((len(specs), runs, learned_size(self._world.dim)))
        by_engine: dict[Engine, list[NDArray[np.void]]] = {}
        for spec, engine, settings, *ends in zip(specs, setup.engines, setup.settings, counts, learned, strict=True):
            by_engine.setdefault(engine, []).append(self._tasks(spec, settings, setup.realisations, rounds, *ends))
        starts = [self._prepare(engine, np.concatenate(tasks)) for engine, tasks in by_engine.items()]
        cupy.cuda.Stream.null.synchronize()  # the other streams do not wait for this one
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in starts]
        for stream, (start, _) in zip(streams, starts, strict=True):
            with stream:
                start()
        for stream, (_, failed) in zip(streams, starts, strict=True):
            stream.synchronize()
            self._check(failed, setup.realisations)
        return Played(list(cupy.asnumpy(counts)), list(cupy.asnumpy(learned)))

    def _rounds_of(self, setup: Setup) -> dict[str, Any]:
        """Features, means, baselines and draws of all runs on the device."""
        cupy, horizon, blocks = self._cupy, self._horizon, setup.blocks
        rounds = {
            name: cupy.asarray(np.stack([getattr(one, name) for one in blocks])) for name in ("features", "means")
        }
        if not self._world.fixed:
            return rounds | {
                name: cupy.asarray(np.stack([getattr(one, name) for one in blocks])) for name in ("baselines", "draws")
            }
        baselines = np.array([[block.baselines[0]] for block in blocks], dtype=np.int64)
        seeds = cupy.asarray(np.array([one.noise_seed for one in setup.realisations], dtype=np.uint64))
        draws = cupy.empty((len(blocks), horizon))
        grid = ((horizon + DRAW_THREADS - 1) // DRAW_THREADS, len(blocks))
        is_normal = np.int32(setup.realisations[0].rewards.kind == GAUSSIAN)
        draw = self._module(setup.engines[0]).get_function("draw")  # every program has one
        draw(grid, (DRAW_THREADS,), (seeds, is_normal, np.int32(horizon), draws))
        return rounds | {"baselines": cupy.asarray(baselines), "draws": draws}

    def _tasks(
        self,
        spec: Spec,
        settings: list[bytes],
        realisations: list[Realisation],
        rounds: dict[str, Any],
        counts: Any,
        learned: Any,
    ) -> NDArray[np.void]:
        tasks = np.zeros(len(settings), dtype=task_dtype(len(settings[0])))
        tasks["settings"] = np.array(settings, dtype=tasks.dtype["settings"])
        for name, array in {**rounds, "kept": counts, "learned": learned}.items():
            tasks[name] = array.data.ptr + np.arange(len(settings), dtype=np.uint64) * np.uint64(array.strides[0])
        tasks["scale"] = [one.rewards.scale for one in realisations]
        tasks["rewards"] = [one.rewards.kind for one in realisations]
        tasks["is_told"] = spec.knows_baseline
        return tasks

    def _prepare(self, engine: Engine, tasks: NDArray[np.void]) -> tuple[Callable[[], None], Any]:
        """What starts the runs of one kind of policy, and where failures are written.

        All memory is taken before anything starts: a device takes some only between kernels.
        """
        cupy = self._cupy
        grid = (tasks.size * engine.team + BLOCK - 1) // BLOCK
        teams = grid * BLOCK // engine.team
        memory = cupy.empty(teams * (engine.team * LANE_ROOM + self._team_room), dtype=np.uint8)
        rounds = np.zeros(1, dtype=ROUNDS)
        rounds[0] = (
            self._horizon,
            self._world.actions,
            self._checkpoints.data.ptr,
            self._checkpoints.size,
            self._watched.data.ptr,
            self._watched.size,
            memory.data.ptr,
            LANE_ROOM,
            self._team_room,
        )
        failed = cupy.full(tasks.size, -1, dtype=np.int64)
        arguments = (
            cupy.asarray(tasks.view(np.uint8)),
            np.int32(tasks.size),
            cupy.asarray(rounds.view(np.uint8)),
            failed,
        )
        kernel = self._module(engine).get_function("play")

        def start(_memory: Any = memory) -> None:
            kernel((grid,), (BLOCK,), arguments, shared_mem=ARENA_BYTES)

        return start, failed

    def _module(self, engine: Engine) -> Any:
        if engine not in self._modules:
            self._modules[engine] = self._cupy.RawModule(path=str(program(engine, self._architecture)))
        return self._modules[engine]

    def _check(self, failed: Any, realisations: list[Realisation]) -> None:
        rounds = self._cupy.asnumpy(failed)
        for task in np.flatnonzero(rounds >= 0):
            raise too_long(realisations[task % len(realisations)], int(rounds[task]))


Job = tuple[ChunkTask, "Future[Any]"]


class GpuExecutor(Executor):
    """Plays chunks of runs on one GPU, and everything that it cannot play on the threads of this machine."""

    is_of_this_process = True

    def __init__(self, index: int = 0) -> None:
        # Results are handed in by threads of their own, so that a cancelled task takes none along.
        self.device, self._threads, self._handing_in = Device(index), ThreadPoolExecutor(), ThreadPoolExecutor()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._player = threading.Thread(target=self._play_all, name="surefoot-gpu", daemon=True)
        self._warnings: set[str] = set()
        self._lock, self._is_closed = threading.Lock(), False
        self._player.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Take a task; chunks of runs wait a moment for others of the same simulation."""
        if not isinstance(fn, ChunkTask) or args or kwargs:
            return self._threads.submit(fn, *args, **kwargs)
        if (why := refusal(fn.world, fn.policies)) is not None:
            self._warn(f"A GPU cannot play this, so the CPU does: {why}.")
            return self._threads.submit(fn)
        future: Future[Any] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._jobs.put((fn, future))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End, once everything is played, or without what has not begun."""
        with self._lock:
            self._is_closed = True
            while cancel_futures and (job := self._next(wait=False)) is not LATER:
                if job is not None:
                    job[1].cancel()
            self._jobs.put(None)
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
        if wait:
            self._player.join()
        self._handing_in.shutdown(wait)

    def _warn(self, text: str) -> None:
        if text not in self._warnings:
            self._warnings.add(text)
            warnings.warn(text, RuntimeWarning, stacklevel=3)

    def _play_all(self) -> None:
        left: Job | None = None
        while (first := left or self._jobs.get()) is not None:
            gathered, left = [first], None
            runs = len(first[0].runs)
            while left is None and runs < MOST_RUNS and (job := self._next(wait=True)) is not LATER:
                if job is None:  # the end, after these
                    self._jobs.put(None)
                    break
                if _belong_together(first[0], job[0]):
                    gathered.append(job)
                    runs += len(job[0].runs)
                else:
                    left = job
            self._play([job for job in gathered if job[1].set_running_or_notify_cancel()])

    def _next(self, *, wait: bool) -> Any:
        """The next job, if it is there or comes soon."""
        try:
            return self._jobs.get(timeout=GATHER) if wait else self._jobs.get_nowait()
        except queue.Empty:
            return LATER

    def _play(self, jobs: list[Job]) -> None:
        if not jobs:
            return
        task = jobs[0][0]
        try:
            played = self.device.play(
                task.world,
                task.policies,
                runs=[run for one, _ in jobs for run in one.runs],
                horizon=task.horizon,
                seed=task.seed,
                watched=task.watched,
                checkpoints=task.checkpoints,
            ).counts
        except BaseException as error:
            for _, future in jobs:
                future.set_exception(error)
            return
        start = 0
        for one, future in jobs:
            end = start + len(one.runs)
            counts = [several[start:end] for several in played]
            try:
                self._handing_in.submit(_hand_in, one, counts, future)
            except RuntimeError:  # shut down meanwhile, by somebody who does not wait
                _hand_in(one, counts, future)
            start = end


def _hand_in(task: ChunkTask, counts: list[Any], future: "Future[Any]") -> None:
    try:
        future.set_result(task.hand_in(counts))
    except BaseException as error:
        future.set_exception(error)


LATER: Any = object()  # no job for now


def _belong_together(one: ChunkTask, other: ChunkTask) -> bool:
    """Whether two chunks are runs of one simulation, by the very objects: what only looks equal is played apart."""
    return (
        one.world is other.world
        and len(one.policies) == len(other.policies)
        and all(mine is its for mine, its in zip(one.policies, other.policies, strict=True))
        and (one.horizon, one.seed, tuple(one.watched)) == (other.horizon, other.seed, tuple(other.watched))
        and np.array_equal(one.checkpoints, other.checkpoints)
    )
