"""In the places of NVIDIA's compiler and of CuPy: g++ and NumPy, with a GPU's warps as fibers (`warp.hpp`)."""

import ctypes
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace, TracebackType
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from surefoot.core.gpu_program import LIBRARY
from surefoot.errors import ConfigError

SHIM = Path(__file__).with_name("warp.hpp")
CXX = os.environ.get("CXX", "g++")
FLAGS = ("-std=c++20", "-O1", "-w", "-fPIC", "-ffp-contract=off", "-fno-math-errno")
KERNELS = ("play", "draw")
GRAIN = 256  # bytes: where a device's memory begins


class WarpError(Exception):
    """A kernel that came to no end: lanes that wait for others, or that touch what is another's."""


class Compiler:
    """Makes of a GPU's program a library for this machine."""

    def __init__(self, *, changed: Mapping[str, tuple[str, str]] | None = None, watched: bool = False) -> None:
        self.changed, self.watched = changed or {}, watched
        self.version = (SHIM.read_text(), self.changed, watched)  # what a program depends on beside its sources

    def compile(self, text: str, headers: Mapping[str, str], options: Sequence[str]) -> bytes:
        constants = [option for option in options if option.startswith("-D")]
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            for name, header in headers.items():
                if name not in LIBRARY:  # g++ has a standard library of its own
                    (folder / name).write_text(self.change(name, header))
            named = "".join(f"KERNEL({name})\n" for name in KERNELS)
            (folder / "play.cpp").write_text(f'#include "{SHIM}"\n#line 1 "play.cu"\n{text}\n{named}')
            watch = ["-fsanitize=thread"] if self.watched else []
            self.run(*FLAGS, *watch, *constants, "-c", "play.cpp", "-I.", "-o", "play.o", folder=folder)
            # Without the sanitizer's own library: the shim answers its calls.
            self.run("-shared", "-Wl,-z,defs", "play.o", "-o", "play.so", folder=folder)
            return (folder / "play.so").read_bytes()

    def change(self, name: str, header: str) -> str:
        if name not in self.changed:
            return header
        old, new = self.changed[name]
        assert header.count(old) == 1
        return header.replace(old, new)

    def run(self, *arguments: str, folder: Path) -> None:
        done = subprocess.run([CXX, *arguments], cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise ConfigError(f"The GPU engine must compile, but {CXX} says:\n{done.stderr[:4000]}")


class Array(np.ndarray):
    """One of a device's arrays, which here is one of NumPy's."""

    @property
    def data(self) -> Any:
        return SimpleNamespace(ptr=self.ctypes.data)


def empty(shape: Any, dtype: DTypeLike = np.float64) -> Array:
    """Memory that nobody has written to: no numbers."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    room = np.full(size + GRAIN, 0xFF, dtype=np.uint8)
    first = -room.ctypes.data % GRAIN
    return room[first : first + size].view(dtype).reshape(shape).view(Array)


def full(shape: Any, value: Any, dtype: DTypeLike = np.float64) -> Array:
    made = empty(shape, dtype)
    made[...] = value
    return made


def asarray(given: Any) -> Array:
    return full(np.shape(given), given, np.asarray(given).dtype)


class _Entered:
    def __enter__(self) -> "_Entered":
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass


class _Device(_Entered):
    compute_capability = "00"
    mem_info = (1 << 32, 1 << 32)

    def __init__(self, index: int = 0) -> None:
        pass


class _Stream(_Entered):
    """Everything is done when it is asked for."""

    null: "_Stream"

    def __init__(self, *, non_blocking: bool = False) -> None:
        pass

    def synchronize(self) -> None:
        pass


_Stream.null = _Stream()


class _Kernel:
    def __init__(self, launch: Any, seed: int) -> None:
        self.launch, self.seed = launch, seed
        self.launch.restype = ctypes.c_char_p
        self.preferred_shared_memory_carveout = 0

    def __call__(self, grid: Sequence[int], block: Sequence[int], given: Sequence[Any], shared_mem: int = 0) -> None:
        (threads,) = block
        x, y = (*grid, 1)[:2]
        values = [np.array(one.data.ptr if isinstance(one, Array) else one) for one in given]
        places = (ctypes.c_void_p * len(values))(*(value.ctypes.data for value in values))
        trouble = self.launch(x, y, threads, ctypes.c_uint64(self.seed), ctypes.c_size_t(shared_mem), places)
        if trouble is not None:
            raise WarpError(trouble.decode())


def cupy(seed: int) -> Any:
    """As much of CuPy as the engine uses; the seed is that of the order in which lanes take turns."""

    class RawModule:
        def __init__(self, *, path: str) -> None:
            self.library = ctypes.CDLL(path)

        def get_function(self, name: str) -> _Kernel:
            return _Kernel(self.library[f"launch_{name}"], seed)

    return SimpleNamespace(
        asarray=asarray,
        asnumpy=np.array,
        empty=empty,
        full=full,
        zeros=lambda shape, dtype=np.float64: full(shape, 0, dtype),
        RawModule=RawModule,
        cuda=SimpleNamespace(Device=_Device, Stream=_Stream, runtime=SimpleNamespace(getDeviceCount=lambda: 1)),
    )
