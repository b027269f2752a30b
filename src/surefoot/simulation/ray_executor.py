"""A Ray cluster as an executor. Ray itself plays the tasks of lost workers and nodes again."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, InvalidStateError
from concurrent.futures import wait as wait_for
from contextlib import suppress
from typing import Any, ParamSpec, TypeVar

from surefoot.errors import ConfigError, WorkerError

P = ParamSpec("P")
T = TypeVar("T")
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
            _connect(self._ray, address)
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
                self.set_exception(_told(self._ray, error))


def _call(function: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    return function(*args, **kwargs)


def _told(ray: Any, error: BaseException) -> BaseException:
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
        raise ImportError("`on='ray'` needs Ray. Install it with: pip install 'surefoot[ray]'") from error
    return ray


def _connect(ray: Any, address: str | None) -> None:
    # Nobody was asked whether a cluster that we start may report its use.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        ray.init(address, log_to_driver=False, logging_level="ERROR")
    except (ImportError, ConnectionError, RuntimeError, ValueError) as error:
        raise WorkerError(
            f"`on` must be a Ray cluster that answers, but {address or 'ray'} does not: {error!s:.300}"
        ) from error
