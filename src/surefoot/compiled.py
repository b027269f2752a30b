"""Compiled functions, on demand: numba is imported when one is first called, and machine code is cached on disk.

A function marked `@compiled` is the one definition of its formula: policies call it, the simulator loops over it,
and `.function` is the plain Python behind it. Importing this package therefore stays cheap, and only the first
call ever, on a machine, compiles.
"""

import hashlib
import types
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, ParamSpec, TypeVar

FORMAT = 2  # counts the ways of compiling, so that code made in an older one is never used
P = ParamSpec("P")
R = TypeVar("R")


class Compiled(Generic[P, R]):
    """A function that numba compiles on its first call, together with the compiled functions it calls."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        inline: bool = False,
        view: bool = False,
        fuse: bool = False,
        reorder: bool = False,
        allocate: bool = False,
    ) -> None:
        self.function = function
        # Any order of a sum obeys the same rounding bound; NaN and infinity stay exact in all of them.
        self._options: dict[str, Any] = {
            "forceinline": inline or fuse,
            "inline": "always" if view else "never",
            "fastmath": {"reassoc", "contract"} if reorder else {"contract"} if fuse else False,
            "_nrt": allocate,
        }
        modes = {"sum": reorder, "large": allocate, "view": view, "fused": fuse, "inline": inline}
        self._mode = next((mode for mode, is_on in modes.items() if is_on), "apart")
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

        from surefoot.counting import Compiler

        callees = {name: callee.dispatcher for name, callee in self._callees().items()}
        linked = types.FunctionType(self.function.__code__, {**self.function.__globals__, **callees})
        # numba's cache knows a function by its name and its own file. The digest in the name makes it know all that the
        # function is compiled from, so that a change in a callee or a constant is never answered with old code.
        linked.__qualname__ = f"{self.function.__qualname__}_{self._mode}_{self.digest}"
        linked.__module__ = self.function.__module__
        jit: Any = numba.njit
        # numpy's error model divides without a test for 0; without the GIL, threads run side by side.
        dispatcher = jit(linked, cache=True, error_model="numpy", nogil=True, pipeline_class=Compiler, **self._options)
        self._drop_old_code(Path(dispatcher.stats.cache_path))
        _forget_literals(dispatcher)
        compiled: Callable[P, R] = dispatcher
        return compiled

    @cached_property
    def digest(self) -> str:
        """What this function is compiled from: its bytecode, the constants it reads, and the same of its callees."""
        code = self.function.__code__
        known = {name: self.function.__globals__.get(name) for name in code.co_names}
        scalars = {name: value for name, value in known.items() if isinstance(value, (int, float, str, tuple))}
        callees = {name: callee.digest for name, callee in self._callees().items()}
        parts = (
            code.co_code.hex(),
            # The repr of a code object holds its address, which differs in every process.
            [value for value in code.co_consts if not isinstance(value, types.CodeType)],
            code.co_names,
            scalars,
            callees,
            self._mode,
            FORMAT,
        )
        return hashlib.sha256(repr(parts).encode()).hexdigest()[:12]

    def _callees(self) -> dict[str, "Compiled[..., Any]"]:
        names = self.function.__code__.co_names
        found = {name: self.function.__globals__.get(name) for name in names}
        return {name: value for name, value in found.items() if isinstance(value, Compiled)}

    def _drop_old_code(self, folder: Path) -> None:
        name = f"{self.function.__qualname__}_{self._mode}"
        for file in folder.glob(f"*.{name}_????????????-*.nb?"):
            if f"{name}_{self.digest}-" not in file.name:
                # Another process may be dropping it, too.
                file.unlink(missing_ok=True)


def _forget_literals(dispatcher: Any) -> None:
    """Let compiled callers pass a constant as a plain number: numba would compile the function anew for each value.

    A function that becomes part of its callers is still optimised for the constant there.
    """
    from numba.core import types

    plain: Any = types.unliteral
    find = dispatcher.get_call_template
    dispatcher.get_call_template = lambda args, kws: find(
        tuple(plain(arg) for arg in args), {name: plain(arg) for name, arg in kws.items()}
    )


def compiled(function: Callable[P, R]) -> Compiled[P, R]:
    """Mark a function to be compiled on its first call, as part of its callers.

    Floating point keeps its order, and nothing may be allocated: compiled code then counts no references.
    """
    return Compiled(function, inline=True)


def compiled_view(function: Callable[P, R]) -> Compiled[P, R]:
    """Like `compiled`, for what returns a view of an array that it was given."""
    return Compiled(function, view=True)


def compiled_fused(function: Callable[P, R]) -> Compiled[P, R]:
    """Like `compiled`, but a product and the sum that takes it may be rounded once instead of twice."""
    return Compiled(function, fuse=True)


def compiled_apart(function: Callable[P, R]) -> Compiled[P, R]:
    """Like `compiled`, for what is long: its callers call it instead of containing it."""
    return Compiled(function)


def compiled_sum(function: Callable[P, R]) -> Compiled[P, R]:
    """Like `compiled_apart`, but sums may be reordered, so that the processor adds several terms at once.

    Never part of its callers, whose order of operations may have to stay exact.
    """
    return Compiled(function, reorder=True)


def compiled_large(function: Callable[P, R]) -> Compiled[P, R]:
    """Like `compiled_apart`, for rare or large work that may allocate arrays."""
    return Compiled(function, allocate=True)
