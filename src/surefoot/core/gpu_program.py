"""The core compiled for a GPU: its own headers, by NVIDIA's run-time compiler, kept in a cache folder."""

import ctypes
import hashlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

from surefoot.errors import ConfigError

MISSING = (
    "The GPU engine needs NVIDIA's run-time compiler (NVRTC) and standard library (libcu++), but they were not found. "
    "Install them with `pip install 'surefoot[gpu]'`."
)
# No contraction and nothing but correctly rounded + - * / and sqrt: the bits of a CPU.
OPTIONS = ("-std=c++20", "-default-device", "-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-w")
# What a CPU must or must not inline is inlined on a GPU, where calls cost more, as this compiler spells it.
INLINED, SPELLED = re.compile(r"\[\[gnu::(always_inline|noinline)\]\]( inline)?"), "__forceinline__"
VERSIONS = ("13", "12")  # of CUDA, newest first
# Where the core's standard headers lead to: libcu++ under its own names, and vectors in arenas.
LIBRARY = (
    "algorithm", "array", "bit", "cmath", "concepts", "cstddef", "cstdint", "cstring", "initializer_list", "limits",
    "optional", "span", "string_view", "type_traits", "utility",
)  # fmt: skip
STANDARD = dict.fromkeys(LIBRARY, "std.hpp") | dict.fromkeys(("deque", "vector"), "arena_vector.hpp")


def sources() -> dict[str, str]:
    """The headers that the compiler sees, by the names in their `#include` lines.

    A header of the folder `gpu` replaces the core's of the same name.
    """
    core = files("surefoot.core")
    headers = {name: f'#include "{header}"\n' for name, header in STANDARD.items()}
    for folder in (core, core / "gpu"):
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".hpp"):
                headers[file.name] = INLINED.sub(SPELLED, file.read_text(encoding="utf-8"))
    return headers


@dataclass(frozen=True, slots=True)
class Engine:
    """What a program is compiled for.

    policy: the type of the policy in the core, such as "Clucb"
    radius: the kind of radius, by its number in the core
    is_fixed: whether the world has the same rows in every round
    dim: the dimension of the world
    team: lanes that play one run
    block: threads that are started together
    task_bytes, rounds_bytes: sizes of the two structs, as the host writes them
    """

    policy: str
    radius: int
    is_fixed: bool
    dim: int
    team: int
    block: int
    task_bytes: int
    rounds_bytes: int

    def options(self, architecture: str) -> tuple[str, ...]:
        """Options of the compiler; the architecture is that of a device, such as "sm_90"."""
        constants = {
            name.upper(): int(value) if isinstance(value, bool) else value for name, value in asdict(self).items()
        }
        return (*OPTIONS, f"-arch={architecture}", *(f"-D{name}={value}" for name, value in constants.items()))


def source() -> str:
    """The engine itself."""
    return (files("surefoot.core") / "gpu" / "play.cu").read_text(encoding="utf-8")


def program(engine: Engine, architecture: str) -> Path:
    """The file with an engine for one architecture, compiled at its first use."""
    options, text = engine.options(architecture), source()
    headers, compiler = sources(), Compiler()
    parts = [text, *options, *(part for header in headers.items() for part in header), str(compiler.version)]
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
    kept = _elsewhere.get(key, cache_folder() / f"{key}.cubin")
    if not _is_ours(kept):
        _elsewhere[key] = kept = _keep(kept, compiler.compile(text, headers, options))
    return kept


_elsewhere: dict[str, Path] = {}  # where programs of this process lie


def cache_folder() -> Path:
    """Where compiled programs are kept: `surefoot` in the user's cache folder."""
    root = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    return Path(root) / "surefoot"


def _keep(path: Path, code: bytes) -> Path:
    """Keep a program, whole or not at all; where the cache cannot be used, in a file of this process alone."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _write(path, code)
    except OSError:
        return _write(Path(tempfile.mkdtemp(prefix="surefoot-")) / path.name, code)


def _write(path: Path, code: bytes) -> Path:
    with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
        file.write(code)
    return Path(file.name).replace(path)


def _is_ours(path: Path) -> bool:
    """Whether a program was kept by this user, in a folder that is this user's: nobody else's code is run."""
    try:
        return all(place.stat().st_uid == os.getuid() for place in (path, path.parent))
    except OSError:
        return False


class Compiler:
    """NVRTC through its C interface, with libcu++ beside it."""

    def __init__(self) -> None:
        self._library, self._includes = _library(), _includes()
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value, (self._includes / "cuda/std/__cccl/version.h").read_text())

    def compile(self, text: str, headers: Mapping[str, str], options: Sequence[str], *, kind: str = "CUBIN") -> bytes:
        """Machine code for the architecture that the options name, or with kind "PTX" what it is made of."""
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        options = (*options, f"-I{self._includes}")
        flags = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        handle = ctypes.c_void_p()
        pointer = ctypes.byref(handle)
        self._call("nvrtcCreateProgram", pointer, text.encode(), b"play.cu", len(headers), texts, names)
        try:
            if self._library.nvrtcCompileProgram(handle, len(options), flags):
                log = self._read(handle, "ProgramLog").rstrip(b"\0").decode(errors="replace")
                raise ConfigError(f"The GPU engine must compile, but NVRTC {self.version[:2]} says:\n{log[:4000]}")
            return self._read(handle, kind)
        finally:
            self._call("nvrtcDestroyProgram", pointer)

    def _read(self, handle: ctypes.c_void_p, what: str) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", handle, ctypes.byref(size))
        text = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", handle, text)
        return text.raw

    def _call(self, name: str, *arguments: object) -> None:
        code = getattr(self._library, name)(*arguments)
        if code:
            raise ConfigError(f"NVRTC must answer {name}, but it failed with code {code}.")


@cache
def _library() -> ctypes.CDLL:
    """NVRTC from the Python package that brings it, or from a CUDA toolkit."""
    names = [name for version in VERSIONS for name in (f"lib/libnvrtc.so.{version}", f"lib64/libnvrtc.so.{version}")]
    for path in [*_candidates("nvidia.cuda_nvrtc", names), *(Path(f"libnvrtc.so.{version}") for version in VERSIONS)]:
        try:
            return ctypes.CDLL(str(path))
        except OSError:
            continue
    raise ConfigError(MISSING)


@cache
def _includes() -> Path:
    """The folder with the headers of libcu++, from the same places."""
    for path in _candidates("nvidia.cuda_cccl", ("include/cccl", "include")):
        if (path / "cuda" / "std" / "span").is_file():
            return path
    raise ConfigError(MISSING)


def _candidates(package: str, names: Sequence[str]) -> Iterator[Path]:
    """Paths of those names in the packages of CUDA 13 and 12, and in a toolkit."""
    folders: list[Path] = []
    for name in ("nvidia.cu13", package):
        try:
            spec = importlib.util.find_spec(name)
        except ModuleNotFoundError:
            continue
        folders += map(Path, (spec.submodule_search_locations or ()) if spec else ())
    roots = [root for root in (os.environ.get("CUDA_PATH"), "/usr/local/cuda") if root]
    for folder in (*folders, *map(Path, roots)):
        yield from (folder / name for name in names)
