"""Where the work runs: addresses, executors of all kinds, and what becomes of a folder when workers are lost."""

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from surefoot.arrays import Matrix
from surefoot.errors import ConfigError, PolicyError, WorkerError
from surefoot.simulation import FunctionWorld, PaperWorld, Part, Spec, Sweep, plan_guard, run_sweep, simulate, workers
from surefoot.simulation.engine import ChunkTask, default_checkpoints
from surefoot.simulation.rollout_plan import plan
from surefoot.simulation.workers import available_memory, completed, workers_on
from surefoot.simulation.worlds import Baseline

FORKS = multiprocessing.get_context("forkserver")
SPECS = [Spec("LUCB"), Spec("CLUCB", alpha=0.1), Spec("SafeLUCB", alpha=0.1)]
DEADLY = "SUREFOOT_TEST_DEADLY"  # set where a worker is to die in its second chunk


def small(runs: int = 70) -> Sweep:
    return Sweep([Part("paper", PaperWorld(), SPECS, runs=runs, horizon=150, seed=3, watched=(0.4,))])


drawn: list[int] = []


def rows(rng: np.random.Generator) -> Matrix:
    drawn.append(1)
    if DEADLY in os.environ and len(drawn) > 600:
        os.kill(os.getpid(), signal.SIGKILL)
    return np.column_stack([np.full(3, 0.5), rng.uniform(0, 0.5, size=3)])


def own(function: Callable[[np.random.Generator], Matrix] = rows) -> Sweep:
    world = FunctionWorld(
        dim=2, actions=3, function=function, theta=(0.4, 0.6), feature_bound=1.0, baseline=Baseline(action=0)
    )
    return Sweep([Part("own", world, [Spec("LUCB")], runs=60, horizon=20)])


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=FORKS) as pool:
        yield pool


@pytest.mark.parametrize(
    "on", ["", "lokal", "local:", "local:x", "local:-1", "ray:", "ray://head", "dask", "dask://head", "gpu:a", 3]
)
def test_an_address_that_is_none_is_refused_before_any_work(on: Any, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"`on` must be local\[:threads\], ray\[://host:port\], dask://host:port"):
        run_sweep(small(), tmp_path / "out", on=on)
    assert not (tmp_path / "out").exists()


def test_threads_are_counted_once_and_from_one() -> None:
    with pytest.raises(ConfigError, match="`threads` must not be given beside `on`, but got 2 and 'local:3'"):
        simulate(PaperWorld(), SPECS, runs=1, horizon=5, threads=2, on="local:3")
    with pytest.raises(ConfigError, match="`threads` must be a whole number >= 1"):
        simulate(PaperWorld(), SPECS, runs=1, horizon=5, on="local:0")
    with workers_on("local:3") as executor:
        assert isinstance(executor, ThreadPoolExecutor)
        assert executor._max_workers == 3


def test_processes_give_the_table_of_threads_and_stay_open(processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    there = run_sweep(small(), tmp_path / "there", on=processes, progress=lambda done, all_: seen.append((done, all_)))
    assert there.equals(run_sweep(small(), tmp_path / "here", on="local:2"))
    assert seen[0] == (0, 70 * 150 * 3)
    assert seen[-1] == (70 * 150 * 3, 70 * 150 * 3)
    assert sorted(seen) == seen
    assert len(seen) == 1 + 4
    for name in ("results.csv", "results.parquet"):
        assert (tmp_path / "there" / name).read_bytes() == (tmp_path / "here" / name).read_bytes()
    assert processes.submit(int, "4").result() == 4


def test_a_simulation_and_both_plans_are_the_same_in_other_processes(processes: ProcessPoolExecutor) -> None:
    settings: dict[str, Any] = {"runs": 45, "horizon": 60, "seed": 5}
    for here, there in zip(
        simulate(PaperWorld(), SPECS, **settings), simulate(PaperWorld(), SPECS, on=processes, **settings), strict=True
    ):
        assert all(np.array_equal(here.measures[name], there.measures[name]) for name in here.measures)
        assert np.array_equal(here.violations, there.violations)
    asked: dict[str, Any] = {"baseline_reward": 0.3, "lift": 0.3, "per_day": 100, "alphas": [0.3, 0.1], "days": 2}
    assert plan_guard(delta=0.05, runs=5, **asked) == plan_guard(delta=0.05, runs=5, on=processes, **asked)
    asked |= {"dim": 3, "actions": 5, "noise": 0.4, "runs": 25}
    assert plan(**asked).answers == plan(on=processes, **asked).answers


def test_what_cannot_be_pickled_is_refused_for_processes(processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    sweep = own(lambda rng: np.ones((3, 2)) / 2)
    with pytest.raises(ConfigError, match=r"What other processes are to play must be picklable, .* or use threads"):
        run_sweep(sweep, tmp_path / "out", on=processes)


def failing(problem: Any) -> Any:
    raise ValueError("no policy today")


def test_the_error_of_a_policy_is_that_of_one_machine(processes: ProcessPoolExecutor) -> None:
    entry = Spec(failing, name="mine")
    with pytest.raises(PolicyError, match="No policy could be made for 'mine': no policy today"):
        simulate(PaperWorld(), [entry], runs=2, horizon=5, on=processes)


def test_lost_workers_leave_a_folder_that_continues(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn.clear()
    monkeypatch.setenv(DEADLY, "1")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        with pytest.raises(WorkerError, match=r"these were lost: BrokenProcessPool: .* the same call continues it"):
            run_sweep(own(), tmp_path / "out", on=pool)
        with pytest.raises(WorkerError, match="these were lost: BrokenProcessPool"):
            simulate(PaperWorld(), SPECS, runs=1, horizon=5, on=pool)
    monkeypatch.delenv(DEADLY)
    assert len(list((tmp_path / "out" / "cells").iterdir())) == 1
    assert run_sweep(own(), tmp_path / "out").equals(run_sweep(own(), tmp_path / "whole"))


def stop(least: int, done: int, total: int) -> None:
    if done >= least:
        raise KeyboardInterrupt


@pytest.mark.parametrize("is_here", [True, False])
def test_ctrl_c_leaves_a_folder_that_continues_elsewhere(
    is_here: bool, processes: ProcessPoolExecutor, tmp_path: Path
) -> None:
    first: Any
    then: Any
    first, then = ("local:1", processes) if is_here else (processes, "local:1")
    sweep = small(400)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(sweep, tmp_path / "out", on=first, progress=partial(stop, sweep.rounds // 20))
    assert 1 <= len(list((tmp_path / "out" / "cells").iterdir())) < 20
    seen: list[int] = []
    table = run_sweep(sweep, tmp_path / "out", on=then, progress=lambda done, total: seen.append(done))
    assert seen[0] > 0
    assert table.equals(run_sweep(sweep, tmp_path / "whole"))


def test_a_worker_of_another_version_refuses() -> None:
    task = ChunkTask(PaperWorld(), SPECS, [0], 5, 0, [0.1], default_checkpoints(5), code="of yesterday")
    with pytest.raises(ConfigError, match="Workers must have the surefoot of the program that sends them work"):
        task()


def test_what_is_sent_names_its_version_and_what_stays_reads_no_file(monkeypatch: pytest.MonkeyPatch) -> None:
    task = ChunkTask(PaperWorld(), SPECS, [0], 5, 0, [0.1], default_checkpoints(5))
    sent = pickle.loads(pickle.dumps(task))
    assert (task.code, sent.code) == (None, workers.version_of_code())
    assert pickle.loads(pickle.dumps(sent)).code == sent.code
    assert all(np.array_equal(here, there) for here, there in zip(task(), sent(), strict=True))
    read: list[bool] = []

    def another() -> str:
        read.append(True)
        return "of tomorrow"

    monkeypatch.setattr(workers, "version_of_code", another)
    with workers.workers_on("local:2") as executor:
        assert len(list(workers.completed(executor, [task, task]))) == 2
    assert not read
    with pytest.raises(ConfigError, match="one has another version"):
        sent()
    assert read


class Gathering(Executor):
    """An engine of another kind: it waits for four chunks, plays them together, and the last one is done first."""

    def __init__(self) -> None:
        self.played: list[int] = []
        self.waiting: list[tuple[ChunkTask, Future[Any]]] = []

    def submit(self, task: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        self.waiting.append((task, future))
        if len(self.waiting) == 4:
            threading.Timer(0.1, self.play).start()
        return future

    def play(self) -> None:
        for chunk, promised in reversed(self.waiting):
            self.played.append(len(chunk.runs))
            promised.set_result(chunk.hand_in(chunk.play()))
        self.waiting = []


def test_an_engine_of_another_kind_is_an_executor_that_knows_chunks(tmp_path: Path) -> None:
    engine = Gathering()
    table = run_sweep(small(), tmp_path / "there", on=engine)
    assert engine.played == [10, 20, 20, 20]
    assert table.equals(run_sweep(small(), tmp_path / "here"))
    (there,) = simulate(PaperWorld(), SPECS[:1], runs=70, horizon=20, on=engine)
    (here,) = simulate(PaperWorld(), SPECS[:1], runs=70, horizon=20)
    assert np.array_equal(there.measures["regret"], here.measures["regret"])


def test_whoever_stops_listening_cancels_what_has_not_begun() -> None:
    begun: list[int] = []
    go_on = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        tasks: list[Callable[[], Any]] = [lambda: True, go_on.wait]
        answers = completed(pool, tasks + [partial(begun.append, place) for place in range(9)])
        assert next(answers) == (0, True)
        answers.close()
        go_on.set()
    assert begun == []


def test_a_container_limits_the_available_memory(tmp_path: Path) -> None:
    free = available_memory(tmp_path)
    assert 300 < free < 2**50
    (tmp_path / "memory.current").write_text("300\n")
    (tmp_path / "memory.max").write_text("max\n")
    assert available_memory(tmp_path) > 1000
    (tmp_path / "memory.max").write_text("1000\n")
    assert available_memory(tmp_path) == 700
    (tmp_path / "memory.stat").write_text("anon 100\nfile 200\ninactive_file 150\nactive_file 50\n")
    assert available_memory(tmp_path) == 850  # cached files make room
