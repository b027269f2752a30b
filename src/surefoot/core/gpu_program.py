"""The core compiled for a GPU: its own headers, by NVIDIA's run-time compiler, kept in a cache folder."""

import ctypes
import hashlib
import importlib.util
import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from surefoot.errors import ConfigError

MISSING = (
    "The GPU engine needs NVIDIA's run-time compiler (NVRTC), but it was not found. Install it with "
    "`pip install 'surefoot[gpu]'`."
)
# No contraction and nothing but correctly rounded + - * / and sqrt: the bits of a CPU.
OPTIONS = ("-std=c++20", "-default-device", "-fmad=false", "-prec-div=true", "-prec-sqrt=true", "-w")
# What a CPU must or must not inline is inlined on a GPU, where calls cost more, as this compiler spells it.
INLINED, SPELLED = re.compile(r"\[\[gnu::(always_inline|noinline)\]\]( inline)?"), "__forceinline__"
VERSIONS = ("13", "12")  # of CUDA, newest first


def sources(*, dealt: bool = False) -> dict[str, str]:
    """The headers that the compiler sees, by the names in their `#include` lines.

    A header of the folder `gpu` stands in the place of the core's of the same name, and so does one of `gpu/dealt`
    where vectors are dealt to lanes; what it replaces is then found under `core/`. `gpu/std` holds as much of the
    standard library as the core uses.
    """
    core = files("surefoot.core")
    gpu = core / "gpu"
    found: dict[str, str] = {}
    for folder, endings in ((core, (".hpp",)), (gpu, (".hpp",)), (gpu / "std", ("",))):
        found |= _texts(folder, endings)
    if dealt:
        own = _texts(gpu / "dealt", (".hpp",))
        found |= {f"core/{name}": found[name] for name in own if name in found} | own
    return found


def _texts(folder: Traversable, endings: tuple[str, ...]) -> dict[str, str]:
    return {
        entry.name: INLINED.sub(SPELLED, entry.read_text(encoding="utf-8"))
        for entry in _files(folder)
        if entry.name.endswith(endings)
    }


def _files(folder: Traversable) -> Iterator[Traversable]:
    return (entry for entry in sorted(folder.iterdir(), key=lambda entry: entry.name) if entry.is_file())


@dataclass(frozen=True, slots=True)
class Engine:
    """One kind of engine: the policy that it plays, and how the device shares its work.

    policy: the type of the policy in the core, such as "Clucb"
    radius: the kind of radius, by its number in the core
    is_fixed: whether the world has the same rows in every round
    dim: the dimension that it is compiled for; -1 for any, as in the core
    team: lanes that play one run
    block: threads that are started together
    blocks: how many of those a multiprocessor must have registers for
    task_bytes, rounds_bytes: sizes of the two structs, as the host writes them
    shared_bytes: memory of a block that its threads share
    dealt: whether the coordinates of vectors are dealt to the lanes of a team
    """

    policy: str
    radius: int
    is_fixed: bool
    dim: int
    team: int
    block: int
    blocks: int
    task_bytes: int
    rounds_bytes: int
    shared_bytes: int
    dealt: bool = False

    def options(self, architecture: str) -> tuple[str, ...]:
        """What the compiler is told; the architecture is that of a device, such as "sm_90"."""
        given = {
            "POLICY": self.policy,
            "RADIUS": self.radius,
            "IS_FIXED": str(self.is_fixed).lower(),
            "DIM": self.dim,
            "TEAM": self.team,
            "BLOCK": self.block,
            "BLOCKS": self.blocks,
            "TASK_BYTES": self.task_bytes,
            "ROUNDS_BYTES": self.rounds_bytes,
            "SHARED_BYTES": self.shared_bytes,
        }
        return (*OPTIONS, f"-arch={architecture}", *(f"-D{name}={value}" for name, value in given.items()))


def source() -> str:
    """The engine itself."""
    return (files("surefoot.core") / "gpu" / "play.cu").read_text(encoding="utf-8")


def program(engine: Engine, architecture: str) -> Path:
    """The file with an engine for one architecture, compiled at its first use."""
    options, text = engine.options(architecture), source()
    headers, compiler = sources(dealt=engine.dealt), Compiler()
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
    """NVRTC through its C interface."""

    def __init__(self) -> None:
        self._library = _library()
        major, minor = ctypes.c_int(), ctypes.c_int()
        self._call("nvrtcVersion", ctypes.byref(major), ctypes.byref(minor))
        self.version = (major.value, minor.value)

    def compile(self, text: str, headers: Mapping[str, str], options: Sequence[str], *, kind: str = "CUBIN") -> bytes:
        """Machine code for the architecture that the options name, or with kind "PTX" what it is made of."""
        names = (ctypes.c_char_p * len(headers))(*(name.encode() for name in headers))
        texts = (ctypes.c_char_p * len(headers))(*(text.encode() for text in headers.values()))
        given = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
        handle = ctypes.c_void_p()
        made = ctypes.byref(handle)
        self._call("nvrtcCreateProgram", made, text.encode(), b"play.cu", len(headers), texts, names)
        try:
            if self._library.nvrtcCompileProgram(handle, len(options), given):
                log = self._read(handle, "ProgramLog").rstrip(b"\0").decode(errors="replace")
                raise ConfigError(f"The GPU engine must compile, but NVRTC {self.version} says:\n{log[:4000]}")
            return self._read(handle, kind)
        finally:
            self._call("nvrtcDestroyProgram", made)

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
    for path in _candidates():
        try:
            return ctypes.CDLL(path)
        except OSError:
            continue
    raise ConfigError(MISSING)


def _candidates() -> Iterator[str]:
    for package in ("nvidia.cu13", "nvidia.cuda_nvrtc"):
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        for folder in (spec.submodule_search_locations or ()) if spec else ():
            yield from (str(path) for path in sorted(Path(folder, "lib").glob("libnvrtc.so.*"), reverse=True))
    for version in VERSIONS:
        yield f"libnvrtc.so.{version}"
        for root in (os.environ.get("CUDA_PATH"), "/usr/local/cuda"):
            if root:
                yield str(Path(root, "lib64", f"libnvrtc.so.{version}"))
