"""Where the work runs: threads of this machine, a Ray or Dask cluster, or any `concurrent.futures.Executor`.

An executor is the whole interface. A task is a function without arguments that can be pickled, and its answer depends
on nothing but the task: so the bits are those of one machine, whoever plays it, in which order and how often. An engine
of another kind is an executor, too: it knows the tasks that it can play by their class (`engine.ChunkTask`), may gather
several before it begins, and leaves all others to threads.
"""

import hashlib
import os
import pickle
import re
import threading
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    InvalidStateError,
    ThreadPoolExecutor,
)
from concurrent.futures import wait as wait_for
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar

from surefoot.arrays import count
from surefoot.core import native
from surefoot.errors import ConfigError, MissingPackageError, WorkerError

P = ParamSpec("P")
T = TypeVar("T")
Where: TypeAlias = str | Executor | None
Progress: TypeAlias = Callable[[int, int], None]  # rounds done, rounds in all
FORMS = {"local": r"(?::(\d+))?", "ray": r"(?:://(.+:\d+))?", "dask": r"://(.+:\d+)", "gpu": r"(?::(\d+))?"}
LISTEN_SECONDS = 0.5
SHOWN = "local[:threads], ray[://host:port], dask://host:port or gpu[:index]"


@contextmanager
def workers_on(on: Where, *, threads: int | None = None) -> Iterator[Executor]:
    """The executor that an address names, until the block ends; one that was given stays open, for it is the caller's.

    >>> with workers_on("local:2") as executor:
    ...     sorted(answer for _, answer in completed(executor, [lambda: "one", lambda: "two"]))
    ['one', 'two']
    """
    if isinstance(on, Executor) and threads is None:
        yield on
        return
    executor = _open(on, threads)
    try:
        yield executor
    except BaseException:
        # Ctrl-C waits for nothing: what threads have begun cannot be stopped; its chunk is kept whole or not at all.
        executor.shutdown(wait=False, cancel_futures=True)
        raise
    executor.shutdown()


def _open(on: Where, threads: int | None) -> Executor:
    if on is None:
        return _local(threads)
    if threads is not None:
        raise ConfigError(
            f"`threads` must not be given beside `on`, but got {threads} and {on!r}. Say local:{threads}."
        )
    for kind, form in FORMS.items():
        if isinstance(on, str) and (match := re.fullmatch(kind + form, on)):
            return _OPENERS[kind](match[1])
    raise ConfigError(f"`on` must be {SHOWN}, or in Python any Executor, but got {on!r}.")


def _local(threads: int | str | None) -> Executor:
    if threads is not None:
        threads = count("threads", int(threads), hint="It is the number of threads.")
    return ThreadPoolExecutor(threads or os.cpu_count() or 1, thread_name_prefix="surefoot-simulation")


def _gpu(index: str | None) -> Executor:
    from surefoot.simulation.gpu_engine import GpuExecutor

    return GpuExecutor(int(index or 0))


_OPENERS: dict[str, Callable[[Any], Executor]] = {
    "local": _local,
    "ray": lambda address: RayExecutor(address and f"ray://{address}"),
    "dask": lambda address: DaskExecutor(address),
    "gpu": _gpu,
}


def is_of_this_process(executor: Executor) -> bool:
    """Whether this very process plays the tasks, so that its files are theirs; an executor of our own says so."""
    return isinstance(executor, ThreadPoolExecutor) or getattr(executor, "is_of_this_process", False)


@cache
def version_of_code() -> str:
    """What the mathematics are made of here: the core's sources, and the package's own modules."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256(native.SOURCES.encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def check_version(code: str | None) -> None:
    """Refuse work for another version of surefoot than this worker's, whose bits might differ."""
    if code is not None and code != version_of_code():
        raise ConfigError(
            "Workers must have the surefoot of the program that sends them work, but one has another version. "
            "Install the same on all of them."
        )


def completed(executor: Executor, tasks: Sequence[Callable[[], T]]) -> Generator[tuple[int, T], None, None]:
    """Answers as they come, each with the place of its task; whoever stops listening cancels what has not begun.

    Ray and Dask play the tasks of a lost worker again by themselves; a WorkerError says that this did not help.
    """
    places: dict[Future[T], int] = {}
    try:
        for place, task in enumerate(tasks):
            places[executor.submit(task)] = place
        while places:
            # A wait without an end may not notice Ctrl-C, whose signal can reach any thread.
            for future in wait_for(places, timeout=LISTEN_SECONDS, return_when=FIRST_COMPLETED).done:
                # Removed, so that an answer can be freed before the last one arrives.
                place = places.pop(future)
                yield place, _answer(future, tasks[place])
    except BrokenExecutor as error:
        raise _lost(error) from error
    finally:
        for future in places:
            future.cancel()


def reported(
    answers: Iterable[tuple[int, T]], sizes: Sequence[int], report: Progress | None
) -> Iterator[tuple[int, T]]:
    """The answers as they come; before the first and after each, how much is done, by the sizes of the tasks."""
    done, total, report = 0, sum(sizes), report or (lambda finished, whole: None)
    report(done, total)
    for place, answer in answers:
        done += sizes[place]
        report(done, total)
        yield place, answer


def _answer(future: "Future[T]", task: Callable[[], T]) -> T:
    try:
        return future.result()
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        _check_picklable(task, error)
        raise
    except Exception as error:
        # Dask has errors of its own for workers that die again and again.
        if isinstance(error, CancelledError) or type(error).__module__.startswith("distributed."):
            raise _lost(error) from error
        raise


def _lost(error: Exception) -> WorkerError:
    return WorkerError(
        f"Workers must outlive their tasks, but these were lost: {type(error).__name__}: {error!s:.300}. What a folder "
        "holds is kept: the same call continues it."
    )


def _check_picklable(task: Callable[[], T], error: Exception) -> None:
    """Say so where an executor failed only because the task could not be sent."""
    try:
        pickle.dumps(task)
    except Exception as reason:
        raise ConfigError(
            f"What other processes are to play must be picklable, but it is not: {reason!s:.300}. Define functions and "
            "classes at the top of a module, or use threads, Ray or Dask."
        ) from error


RETRIES = 5  # of a task whose worker was lost


class RayExecutor(Executor):
    """Tasks on a Ray cluster, one core each: the one that this program is connected to, or that of the address.

    Without either, the cluster of this machine (`ray start`) or of RAY_ADDRESS; where there is none, Ray starts one on
    this machine, until `shutdown`.
    """

    def __init__(self, address: str | None = None) -> None:
        self._ray = _import_ray()
        self._pending: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._connected = not self._ray.is_initialized()
        if self._connected:
            _connect_ray(self._ray, address)
        elif address is not None:
            raise ConfigError(f"This program is connected to Ray already, so `on` must be ray, but got {address}.")
        self._remote = self._ray.remote(num_cpus=1, max_retries=RETRIES)(_call)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Send one task."""
        future: Future[T] = _RayFuture(self._ray, self._remote.remote(fn, args, kwargs))
        with self._lock:
            self._pending.add(future)
        future.add_done_callback(self._forget)
        return future

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._pending.discard(future)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster, if this executor went there; one that it started ends."""
        with self._lock:
            pending = list(self._pending)
        if cancel_futures:
            for future in pending:
                future.cancel()
        if wait:
            wait_for(pending)
        if self._connected:
            self._connected = False
            self._ray.shutdown()


class _RayFuture(Future[T]):
    """The answer of one remote task; cancelling it cancels the task."""

    def __init__(self, ray: Any, ref: Any) -> None:
        super().__init__()
        self._ray, self._ref = ray, ref
        ref.future().add_done_callback(self._take)

    def cancel(self) -> bool:
        """Take the task back; one that has begun is interrupted."""
        if self.cancelled():
            return True
        if not super().cancel():
            return False
        self._ray.cancel(self._ref)
        self.set_running_or_notify_cancel()
        return True

    def _take(self, answer: "Future[T]") -> None:
        error = answer.exception()
        with suppress(InvalidStateError):  # it was cancelled
            if error is None:
                self.set_result(answer.result())
            else:
                self.set_exception(_own_error(self._ray, error))


def _call(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    return function(*args, **kwargs)


def _own_error(ray: Any, error: BaseException) -> BaseException:
    """A task's own error as it was raised, and one of the cluster in our words."""
    if isinstance(error, ray.exceptions.RayTaskError):
        cause: BaseException = error.cause
        return cause
    if isinstance(error, ray.exceptions.RayError):
        return WorkerError(
            f"A task must end within {RETRIES + 1} tries, but Ray lost its worker each time: {type(error).__name__}: "
            f"{error!s:.300}. Look at the nodes' memory. What a folder holds is kept: the same call continues it."
        )
    return error


def _import_ray() -> Any:
    try:
        import ray
    except ImportError as error:
        raise MissingPackageError("`on='ray'` needs Ray: pip install 'surefoot[ray]'") from error
    return ray


def _connect_ray(ray: Any, address: str | None) -> None:
    # Nobody was asked whether a cluster that we start may report its use.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except (ImportError, ConnectionError, RuntimeError, ValueError) as error:
        raise WorkerError(
            f"`on` must be a Ray cluster that answers, but {address or 'ray'} does not: {error!s:.300}"
        ) from error


class DaskExecutor(Executor):
    """Tasks on the cluster of a Dask scheduler."""

    def __init__(self, address: str) -> None:
        self._client = _connect_dask(address)
        # Not pure: Dask would give tasks that look alike one answer.
        self._executor = self._client.get_executor(pure=False)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Send one task."""
        future: Future[T] = self._executor.submit(fn, *args, **kwargs)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Leave the cluster; without `wait`, or with `cancel_futures`, what has not ended is cancelled."""
        self._executor.shutdown(wait=wait and not cancel_futures)
        self._client.close()


def _connect_dask(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise MissingPackageError(
            "`on='dask://...'` needs Dask. Install it with: pip install 'surefoot[dask]'"
        ) from error
    try:
        return Client(f"tcp://{address}", set_as_default=False)
    except OSError as error:
        raise WorkerError(
            f"`on` must be a Dask scheduler that answers, but dask://{address} does not: {error!s:.300}"
        ) from error


def available_memory(container: Path = Path("/sys/fs/cgroup")) -> int:
    """Bytes that programs may still take: of the machine, and of a container where it has a limit."""
    try:
        lines = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
        free = 1024 * int(lines["MemAvailable"].split()[0])
    except (OSError, KeyError, ValueError):
        free = os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return min([free, *_left_in_container(container)])


def _left_in_container(folder: Path) -> list[int]:
    try:
        limit, used = ((folder / f"memory.{name}").read_text().strip() for name in ("max", "current"))
        # Cached files count as used, but make room for whoever needs it.
        return [] if limit == "max" else [int(limit) - int(used) + _inactive_files(folder)]
    except (OSError, ValueError):
        return []


def _inactive_files(folder: Path) -> int:
    try:
        lines = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        return int(lines.get("inactive_file", 0))
    except (OSError, ValueError):
        return 0
