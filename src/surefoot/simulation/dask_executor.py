"""A Dask cluster as an executor. Dask itself plays the tasks of lost workers again."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

from surefoot.errors import WorkerError

P = ParamSpec("P")
T = TypeVar("T")


class DaskExecutor(Executor):
    """Tasks on the cluster of a Dask scheduler."""

    def __init__(self, address: str) -> None:
        self._client = _connect(address)
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


def _connect(address: str) -> Any:
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError("`on='dask://...'` needs Dask. Install it with: pip install 'surefoot[dask]'") from error
    try:
        return Client(f"tcp://{address}", set_as_default=False)
    except OSError as error:
        raise WorkerError(
            f"`on` must be a Dask scheduler that answers, but dask://{address} does not: {error!s:.300}"
        ) from error
