"""Compiled functions, on demand: numba is imported when one is first called, and machine code is cached on disk.

A function marked `@compiled` is the one definition of its formula: policies call it, the simulator loops over it,
and `.function` is the plain Python behind it. Importing this package therefore stays cheap, and only the first
call ever, on a machine, compiles.
"""

import inspect
import types
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """A function that numba compiles on its first call, together with the compiled functions it calls."""

    def __init__(self, function: Callable[P, R], *, parallel: bool, reassociate: bool) -> None:
        self.function = function
        self._parallel = parallel
        self._reassociate = reassociate
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the machine code."""
        return self.dispatcher(*args, **kwargs)

    @cached_property
    def dispatcher(self) -> Callable[P, R]:
        """The numba dispatcher: call this one where every 100 ns count."""
        import numba

        callees = {name: callee.dispatcher for name, callee in self._callees().items()}
        linked = types.FunctionType(self.function.__code__, {**self.function.__globals__, **callees})
        linked.__qualname__ = self.function.__qualname__
        linked.__module__ = self.function.__module__
        # Sums may be reordered for speed (any order obeys the same rounding bound); NaN and infinity stay exact.
        fastmath: Any = {"reassoc", "contract"} if self._reassociate else False
        dispatcher: Any = numba.njit(
            linked, cache=True, error_model="numpy", fastmath=fastmath, parallel=self._parallel, nogil=True
        )
        self._drop_stale_cache(Path(dispatcher.stats.cache_path))
        compiled: Callable[P, R] = dispatcher
        return compiled

    def _callees(self) -> dict[str, "Compiled[..., Any]"]:
        names = self.function.__code__.co_names
        found = {name: self.function.__globals__.get(name) for name in names}
        return {name: value for name, value in found.items() if isinstance(value, Compiled)}

    def _sources(self) -> set[str]:
        own = {inspect.getfile(self.function)}
        return own.union(*(callee._sources() for callee in self._callees().values()))

    def _drop_stale_cache(self, folder: Path) -> None:
        # numba looks at the caller's own file only, so a change in a callee's file must drop the caller's code here.
        newest = max(Path(source).stat().st_mtime for source in self._sources())
        for index in folder.glob(f"*.{self.function.__qualname__}-*.nbi"):
            if index.stat().st_mtime < newest:
                index.unlink(missing_ok=True)


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Mark a function to be compiled on its first call, with exact floating-point order."""
    return Compiled(function, parallel=False, reassociate=False)


def compiled_sum(function: Callable[P, R]) -> Compiled[P, R]:
    """Like `compiled`, but sums may be reordered, so that the processor adds several terms at once."""
    return Compiled(function, parallel=False, reassociate=True)
