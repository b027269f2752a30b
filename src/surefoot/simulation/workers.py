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
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from surefoot.arrays import count
from surefoot.core import native
from surefoot.errors import ConfigError, WorkerError

T = TypeVar("T")
Where: TypeAlias = str | Executor | None
FORMS = {"local": r"(?::(\d+))?", "ray": r"(?:://(.+:\d+))?", "dask": r"://(.+:\d+)", "gpu": r"(?::(\d+))?"}
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
        # Ctrl-C waits for what threads have begun, which cannot be stopped, and for nothing else.
        executor.shutdown(wait=isinstance(executor, ThreadPoolExecutor), cancel_futures=True)
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
        if isinstance(on, str) and (found := re.fullmatch(kind + form, on)):
            return _OPENERS[kind](found[1])
    raise ConfigError(f"`on` must be {SHOWN}, or in Python any Executor, but got {on!r}.")


def _local(threads: int | str | None) -> Executor:
    if threads is not None:
        threads = count("threads", int(threads), hint="It is the number of threads.")
    return ThreadPoolExecutor(threads or os.cpu_count() or 1)


def _ray(address: str | None) -> Executor:
    from surefoot.simulation.ray_executor import RayExecutor

    return RayExecutor(None if address is None else f"ray://{address}")


def _dask(address: str) -> Executor:
    from surefoot.simulation.dask_executor import DaskExecutor

    return DaskExecutor(address)


def _gpu(index: str | None) -> Executor:
    from surefoot.simulation.gpu_executor import GpuExecutor

    return GpuExecutor(int(index or 0))


_OPENERS: dict[str, Callable[[Any], Executor]] = {"local": _local, "ray": _ray, "dask": _dask, "gpu": _gpu}


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


class VersionedTask:
    """A task that is told which surefoot it is of when it is sent; one that stays in its process is of that process.

    So the package is read where work leaves a process, and nowhere else: on a cold disk that takes most of a second.
    """

    code: str | None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "code": self.code or version_of_code()}


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
        for future in as_completed(places):
            # Out of the table, lest all answers be kept until the last one comes.
            place = places.pop(future)
            yield place, _answer(future, tasks[place])
    except BrokenExecutor as error:
        raise _lost(error) from error
    finally:
        for future in places:
            future.cancel()


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
