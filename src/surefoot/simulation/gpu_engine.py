"""The engine on a GPU: every run of every policy at once, by the core's own headers, with the bits of a CPU.

A run is played by a lane, or by a team of lanes that share its actions and, in the paper's worlds, the coordinates of
its vectors. Draws are functions of seed and round, so a GPU makes its own. What it cannot play, `refusal` says, and a
CPU does.
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
from surefoot.linear.ridge import FIXED
from surefoot.simulation.engine import LEARNED, MEASURES, ChunkTask, Played, check_owed, play_chunk, too_long
from surefoot.simulation.policy_specs import Spec, seed_of_run
from surefoot.simulation.rewards import GAUSSIAN
from surefoot.simulation.workers import available_memory
from surefoot.simulation.worlds import Block, Realisation, World

# Their types in `core/gpu/play.cu`: the paper's are one, and each is one `Which` of it.
TYPES = {"LUCB": "PaperPolicy", "CLUCB": "PaperPolicy", "CLUCB2": "PaperPolicy", "SafeLUCB": "SafeLucb"}
WHICH = ("LUCB", "CLUCB", "CLUCB2")
# Lanes that play one run. More would share its rows, and repeat the rest of its rounds.
TEAMS = {"PaperPolicy": 4, "SafeLucb": 4}
BLOCKS = {"PaperPolicy": 8, "SafeLucb": 1}  # that a multiprocessor must have registers for
BLOCK = 32  # threads that are started together
ARENA_BYTES = 32 * BLOCK  # of a block's shared memory: where its threads take room from
BOARD_BYTES = 14240  # and what they tell each other where vectors are dealt
MOST_DEALT = 128  # rows that a warp scores together
ORDINARY = 2.0**60  # the largest number that their quotients are made for

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
        ("groups", np.int32),
        ("slices", np.int32),
        ("tickets", np.uint64),
        ("done", np.uint64),
    ],
    align=True,
)


def task_dtype(settings: int) -> np.dtype[np.void]:
    """One run as the kernel reads it, with so many bytes of settings."""
    return np.dtype(
        [
            ("settings", np.void, settings),
            ("features", np.uint64),
            ("columns", np.uint64),
            ("means", np.uint64),
            ("baselines", np.uint64),
            ("draws", np.uint64),
            ("kept", np.uint64),
            ("learned", np.uint64),
            ("scale", np.float64),
            ("rewards", np.int32),
            ("is_told", np.int32),
            ("which", np.int64),
        ]
    )


# The others look at more than an ellipsoid and its widths.
DEALT_RADII = {RADII[name] for name in ("paper", "logdet", "amm")}


class Kind(NamedTuple):
    """What a program is compiled for: a policy's type in the core, a radius, and whether its runs are ordinary."""

    policy: str
    radius: int
    is_ordinary: bool


def engine_of(
    policy: str, radius: int = 0, is_ordinary: bool = True, *, fixed: bool = True, actions: int = MOST_DEALT
) -> Engine:
    """The engine for a policy's type and radius in the core, in worlds whose rows stay the same or not."""
    task = task_dtype(len(native.LinearSettings().raw())).itemsize
    team = team_of(policy, radius, fixed=fixed)
    dealt = policy == "PaperPolicy" and is_ordinary and fixed and radius in DEALT_RADII and actions <= MOST_DEALT
    shared = ARENA_BYTES + BOARD_BYTES * dealt
    return Engine(policy, radius, fixed, FIXED, team, BLOCK, BLOCKS[policy], task, ROUNDS.itemsize, shared, dealt)


def are_ordinary(blocks: Sequence[Block]) -> bool:
    """Whether all features lie between 1/ORDINARY and ORDINARY, or are zero.

    Where vectors are dealt, quotients and roots are rounded correctly as long as nothing on the way leaves the normal
    numbers. With such features, and a ridge within the same bounds, a row's leverage stays below 2^182, and det V
    grows by less than 2^800 between two factorisations of 1,024 observations.
    """
    sizes = np.abs(np.concatenate([block.features.ravel() for block in blocks]))
    return bool(np.all((sizes == 0.0) | ((sizes >= 1 / ORDINARY) & (sizes <= ORDINARY))))


def is_ordinary(settings: Any) -> bool:
    """Whether a ridge lies within those bounds, and nothing is declared that programs with dealt vectors leave out."""
    within = 1 / ORDINARY <= settings.ridge <= ORDINARY
    return bool(within and settings.misfit == 0.0 and settings.exploration == 0.0)


def team_of(policy: str, radius: int, *, fixed: bool) -> int:
    """How many lanes play a run; one alone prepares new rows, and chooses the sets of the `dual` radius."""
    return TEAMS[policy] if fixed and radius != RADII["dual"] else 1


CARVEOUT, DEALT_CARVEOUT = 14, 58  # percent of the memory of a multiprocessor that is not to be a cache
SLICES = 8  # of the rounds of dealt runs: more blocks than a device plays at once take turns, and all end together
LANE_ROOM = 32 * 1024  # bytes that a lane may take for itself
TRIAL_RUNS, TRIAL_ROUNDS = 8, 512  # which a CPU plays as well, every time
MEMORY_SHARE = 0.7  # of what the device has free
MOST_TOGETHER = 65_535  # runs: the most that CUDA numbers in a second dimension
DRAW_THREADS = 256
WIDE = 8  # places that the core pads actions to


def refusal(world: World, specs: Sequence[Spec]) -> str | None:
    """Why a GPU cannot play this; None if it can."""
    if world.delay > 0:
        return "delayed rewards wait in a queue that only a CPU has"
    if world.dim != FIXED:
        return f"its programs are for {FIXED} dimensions, and this world has {world.dim}"
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
            found = cupy.cuda.runtime.getDeviceCount()
        except Exception as error:  # CuPy has errors of its own for drivers that are missing or too old
            raise ConfigError(f"A GPU needs NVIDIA's driver, but CuPy says: {error}.") from error
        if not 0 <= self.index < found:
            raise ConfigError(f"`gpu:{self.index}` must be one of the GPUs of this machine, but it has {found}.")

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
            with ThreadPoolExecutor(1) as beside:
                # A device takes as long to start as Python takes to set up thousands of policies.
                trial = (world, specs, runs[:TRIAL_RUNS], min(horizon, TRIAL_ROUNDS), seed, watched)
                tried = beside.submit(self._try_out, *trial)
                cast = set_up(world, specs, seed, runs, 1) if world.fixed else None
                tried.result()
            with self._cupy.cuda.Device(self.index):
                stage = _Stage(self._cupy, world, horizon, watched, checkpoints)
                waves = [
                    stage.play(specs, cast.of(wave) if cast else set_up(world, specs, seed, runs[wave], horizon))
                    for wave in stage.waves(len(runs), len(specs))
                ]
        except Exception as error:
            if not type(error).__module__.startswith("cupy"):
                raise
            raise WorkerError(f"A GPU must play to the end, but it failed: {error}. Play with `on='local'`.") from error
        return waves[0] if len(waves) == 1 else Played.joined(waves)

    def _try_out(
        self,
        world: World,
        specs: Sequence[Spec],
        runs: Sequence[int],
        horizon: int,
        seed: int,
        watched: Sequence[float],
    ) -> None:
        """Play the first rounds of a few runs here and there: a program that is compiled on the way must earn trust."""
        points = np.array([horizon], dtype=np.int64)
        with self._cupy.cuda.Device(self.index):
            cast = set_up(world, specs, seed, runs, 1 if world.fixed else horizon)
            there = _Stage(self._cupy, world, horizon, watched, points).play(specs, cast)
        here = play_chunk(world, specs, runs=runs, horizon=horizon, seed=seed, watched=watched, checkpoints=points)
        for spec, is_equal in zip(specs, there.equals(here), strict=True):
            if not is_equal:
                raise WorkerError(
                    f"A GPU must give the bits of a CPU, but of {spec.label} the first {horizon} rounds differ: its "
                    "compiler or driver cannot be relied on. Play with `on='local'`, and please report it."
                )


class Cast(NamedTuple):
    """Some runs as Python sets them up, before a device is needed: worlds, and for each policy its settings in each."""

    realisations: list[Realisation]
    blocks: list[Block]
    kinds: list[Kind]
    settings: list[list[bytes]]

    def of(self, runs: slice) -> "Cast":
        """Some of them."""
        return Cast(self.realisations[runs], self.blocks[runs], self.kinds, [told[runs] for told in self.settings])


def set_up(world: World, specs: Sequence[Spec], seed: int, runs: Sequence[int], rounds: int) -> Cast:
    """The worlds of some runs, of which so many rounds are drawn, and what each policy is told."""
    realisations = list(world.realisations(seed, runs))
    blocks = [one.take(rounds) for one in realisations]
    if any(spec.is_conservative for spec in specs):
        for block in blocks:
            check_owed(block)
    problems = [
        one.problem(block, seed=seed_of_run(seed, run))
        for one, block, run in zip(realisations, blocks, runs, strict=True)
    ]
    rows_are_ordinary = world.fixed and are_ordinary(blocks)
    kinds, told = [], []
    for spec in specs:
        several = [spec.new_policy(problem).core.settings for problem in problems]
        for settings in several:
            settings.watchful = False  # the means are those of the world: no row can contradict what was declared
        kinds.append(Kind(TYPES[spec.policy], several[0].radius, rows_are_ordinary and all(map(is_ordinary, several))))
        told.append([settings.raw() for settings in several])
    return Cast(realisations, blocks, kinds, told)


class _Stage:
    """One simulation on one device."""

    def __init__(
        self, cupy: Any, world: World, horizon: int, watched: Sequence[float], checkpoints: NDArray[np.int64]
    ) -> None:
        self._cupy, self._world, self._horizon = cupy, world, horizon
        self._watched = cupy.asarray(np.array([float(alpha) for alpha in watched]))
        self._checkpoints = cupy.asarray(checkpoints)
        self._columns = len(MEASURES) + len(watched)
        self._architecture = f"sm_{cupy.cuda.Device().compute_capability}"
        self._loaded: dict[Kind, Any] = {}
        size = world.actions * world.dim
        self._team_room = 8 * (6 * size + 16 * world.actions) + 16 * 1024

    def waves(self, runs: int, policies: int) -> list[slice]:
        """The runs, as many together as the device has memory for."""
        free = int(self._cupy.cuda.Device().mem_info[0] * MEMORY_SHARE)
        per_round = 2 if self._world.fixed else 2 + self._world.actions * (self._world.dim + 1)
        drawn, kept = 8 * per_round * self._horizon, 8 * self._checkpoints.size * self._columns
        one = drawn + policies * (kept + max(TEAMS.values()) * LANE_ROOM + self._team_room)
        together = min(free // one, MOST_TOGETHER)
        if not self._world.fixed:  # the CPU draws them, and has them twice for a moment
            together = min(together, int(available_memory() * MEMORY_SHARE) // (2 * drawn))
        together = max(1, together)
        return [slice(start, start + together) for start in range(0, runs, together)]

    def play(self, specs: Sequence[Spec], cast: Cast) -> Played:
        cupy, realisations = self._cupy, cast.realisations
        rounds = self._rounds_of(realisations, cast.blocks, cast.kinds)
        kept = cupy.zeros((len(specs), len(realisations), self._checkpoints.size, self._columns))
        learned = cupy.zeros((len(specs), len(realisations), LEARNED))
        by_kind: dict[Kind, list[NDArray[np.void]]] = {}
        for spec, kind, told, *ends in zip(specs, cast.kinds, cast.settings, kept, learned, strict=True):
            by_kind.setdefault(kind, []).append(self._tasks(spec, kind, told, realisations, rounds, *ends))
        starts = [self._prepare(kind, np.concatenate(several)) for kind, several in by_kind.items()]
        cupy.cuda.Stream.null.synchronize()  # the others wait for nobody
        streams = [cupy.cuda.Stream(non_blocking=True) for _ in starts]
        for stream, (start, _) in zip(streams, starts, strict=True):
            with stream:
                start()
        for stream, (_, failed) in zip(streams, starts, strict=True):
            stream.synchronize()
            self._check(failed, realisations)
        return Played(list(cupy.asnumpy(kept)), list(cupy.asnumpy(learned)))

    def _rounds_of(self, realisations: list[Realisation], blocks: list[Block], kinds: list[Kind]) -> tuple[Any, ...]:
        """Features, means, baselines and draws of all runs on the device."""
        cupy, horizon = self._cupy, self._horizon
        features = cupy.asarray(np.stack([block.features for block in blocks]))
        means = cupy.asarray(np.stack([block.means for block in blocks]))
        if not self._world.fixed:
            baselines = cupy.asarray(np.stack([block.baselines for block in blocks]))
            draws = cupy.asarray(np.stack([block.draws for block in blocks]))
            return features, {}, means, list(baselines), draws
        rows = [int(block.baselines[0]) for block in blocks]
        played = {row: cupy.full(horizon, row, dtype=np.int64) for row in set(rows)}
        seeds = cupy.asarray(np.array([one.noise_seed for one in realisations], dtype=np.uint64))
        draws = cupy.empty((len(blocks), horizon))
        grid = ((horizon + DRAW_THREADS - 1) // DRAW_THREADS, len(blocks))
        is_normal = np.int32(realisations[0].rewards.kind == GAUSSIAN)
        draw = self._module(kinds[0]).get_function("draw")  # each has one
        draw(grid, (DRAW_THREADS,), (seeds, is_normal, np.int32(horizon), np.int64(0), draws))
        arranged = {}
        for dealt, kind in {self._engine(kind).dealt: kind for kind in kinds}.items():
            arranged[dealt] = cupy.empty((len(blocks), self._world.dim * max(MOST_DEALT, self._world.actions + WIDE)))
            many, apart = ((len(blocks) + BLOCK - 1) // BLOCK,), np.int64(arranged[dealt].shape[1])
            given = (features, np.int32(self._world.actions), np.int32(len(blocks)), apart, arranged[dealt])
            self._module(kind).get_function("arrange")(many, (BLOCK,), given, shared_mem=ARENA_BYTES)
        return features, arranged, means, [played[row] for row in rows], draws

    def _tasks(
        self,
        spec: Spec,
        kind: Kind,
        told: list[bytes],
        realisations: list[Realisation],
        rounds: Any,
        kept: Any,
        learned: Any,
    ) -> NDArray[np.void]:
        features, arranged, means, baselines, draws = rounds
        tasks = np.zeros(len(told), dtype=task_dtype(len(told[0])))
        tasks["settings"] = np.array(told, dtype=tasks.dtype["settings"])
        for name, array in (
            ("features", features),
            ("columns", arranged.get(self._engine(kind).dealt, features)),
            ("means", means),
            ("draws", draws),
            ("kept", kept),
            ("learned", learned),
        ):
            tasks[name] = array.data.ptr + np.arange(len(told), dtype=np.uint64) * np.uint64(array.strides[0])
        tasks["baselines"] = [array.data.ptr for array in baselines]
        tasks["scale"] = [one.rewards.scale for one in realisations]
        tasks["rewards"] = [one.rewards.kind for one in realisations]
        tasks["is_told"] = spec.knows_baseline
        tasks["which"] = WHICH.index(spec.policy) if spec.policy in WHICH else 0
        return tasks

    def _prepare(self, kind: Kind, tasks: NDArray[np.void]) -> tuple[Callable[[], None], Any]:
        """What starts the runs of one kind of policy, and where failures are told.

        All memory is taken before anything starts: a device takes some only between kernels.
        """
        cupy, world = self._cupy, self._world
        team = team_of(kind.policy, kind.radius, fixed=world.fixed)
        grid = (tasks.size * team + BLOCK - 1) // BLOCK
        teams = grid * BLOCK // team
        memory = cupy.empty(teams * (team * LANE_ROOM + self._team_room), dtype=np.uint8)
        turns = cupy.zeros(1 + grid, dtype=np.uint32)  # taken, and slices that each group has behind it
        length = -(-self._horizon // (SLICES if self._engine(kind).dealt else 1))
        slices = -(-self._horizon // length)  # of which none is empty
        all_ = np.zeros(1, dtype=ROUNDS)
        all_[0] = (
            self._horizon,
            world.actions,
            self._checkpoints.data.ptr,
            self._checkpoints.size,
            self._watched.data.ptr,
            self._watched.size,
            memory.data.ptr,
            LANE_ROOM,
            self._team_room,
            grid,
            slices,
            turns.data.ptr,
            turns.data.ptr + turns.itemsize,
        )
        there, shared = cupy.asarray(tasks.view(np.uint8)), cupy.asarray(all_.view(np.uint8))
        failed = cupy.full(tasks.size, -1, dtype=np.int64)
        kernel, shared_bytes = self._module(kind).get_function("play"), self._engine(kind).shared_bytes
        given = (there, np.int32(tasks.size), shared, failed)

        def start(_used: Any = (memory, turns)) -> None:
            kernel((grid * slices,), (BLOCK,), given, shared_mem=shared_bytes)

        return start, failed

    def _engine(self, kind: Kind) -> Engine:
        return engine_of(*kind, fixed=self._world.fixed, actions=self._world.actions)

    def _module(self, kind: Kind) -> Any:
        if kind not in self._loaded:
            engine = self._engine(kind)
            module = self._cupy.RawModule(path=str(program(engine, self._architecture)))
            carveout = DEALT_CARVEOUT if engine.dealt else CARVEOUT
            module.get_function("play").preferred_shared_memory_carveout = carveout
            self._loaded[kind] = module
        return self._loaded[kind]

    def _check(self, failed: Any, realisations: list[Realisation]) -> None:
        rounds = self._cupy.asnumpy(failed)
        for task in np.flatnonzero(rounds >= 0):
            raise too_long(realisations[task % len(realisations)], int(rounds[task]))


MOST_RUNS = 1_000  # that are played together, and lost together where somebody stops them
GATHER = 0.05  # seconds without another chunk after which a GPU begins

Job = tuple[ChunkTask, "Future[Any]"]


class GpuExecutor(Executor):
    """Plays chunks of runs on one GPU, and everything that it cannot play on the threads of this machine."""

    is_of_this_process = True

    def __init__(self, index: int = 0) -> None:
        # What was played is handed in by threads of its own, which no cancelled task takes along.
        self._device, self._threads, self._handing_in = Device(index), ThreadPoolExecutor(), ThreadPoolExecutor()
        self._jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._player = threading.Thread(target=self._play_all, name="surefoot-gpu", daemon=True)
        self._said: set[str] = set()
        self._lock, self._is_closed = threading.Lock(), False
        self._player.start()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Take a task; chunks of runs wait a moment for others of the same simulation."""
        if not isinstance(fn, ChunkTask) or args or kwargs:
            return self._threads.submit(fn, *args, **kwargs)
        if (why := refusal(fn.world, fn.policies)) is not None:
            self._say(f"A GPU cannot play this, so the CPU does: {why}.")
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

    def _say(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
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
            played = self._device.play(
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
