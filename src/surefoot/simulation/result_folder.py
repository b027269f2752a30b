"""Where results are kept: a folder of this machine, or any address that fsspec knows, such as s3://bucket/folder.

To an address workers write their chunks themselves, and share nothing else.
"""

import io
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from surefoot.atomic_files import is_left_behind, whole_file
from surefoot.errors import ConfigError

Place: TypeAlias = str | os.PathLike[str]
Counts: TypeAlias = NDArray[np.float64]
Piece: TypeAlias = bytes | memoryview
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


class ResultFolder(ABC):
    """Files by their names, with "/" between folders."""

    @abstractmethod
    def names(self) -> list[str]:
        """What lies in the folder itself."""

    @abstractmethod
    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""

    @abstractmethod
    def write(self, name: str, *content: Piece) -> None:
        """Write a file, piece after piece."""

    @abstractmethod
    def whole(self, shapes: Shapes) -> set[str]:
        """The names under which an array of that shape lies; what a power cut or a lost connection left is none."""

    @abstractmethod
    def arrays(self, names: Sequence[str]) -> AbstractContextManager[list[Counts]]:
        """Arrays as long as the block lasts, mapped into memory and not read."""

    @abstractmethod
    def filled(self) -> AbstractContextManager[Path]:
        """A folder of this machine to write into, whose files are here when the block ends."""


class LocalFolder(ResultFolder):
    """A folder of this machine, whose files appear whole or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __str__(self) -> str:
        return str(self._path)

    def names(self) -> list[str]:
        """What lies in the folder itself, without what a kill left of writing a file."""
        names = sorted(each.name for each in self._path.iterdir()) if self._path.exists() else []
        return [name for name in names if not is_left_behind(name, self._path / "settings.json")]

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""
        path = self._path / name
        return path.read_bytes() if path.exists() else None

    def write(self, name: str, *content: Piece) -> None:
        """Write a file, whole or not at all."""
        path = self._path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as file:
            file.writelines(content)

    def whole(self, shapes: Shapes) -> set[str]:
        """The names under which an array of that shape lies."""
        return {name for name, shape in shapes.items() if self._is_whole(name, shape)}

    def _is_whole(self, name: str, shape: tuple[int, ...]) -> bool:
        try:
            # Mapped: the header and the length are checked, and nothing is read.
            counts: Counts = np.load(self._path / name, mmap_mode="r")
        except (OSError, ValueError, EOFError):
            return False
        return counts.shape == shape

    @contextmanager
    def arrays(self, names: Sequence[str]) -> Iterator[list[Counts]]:
        """Arrays as long as the block lasts, mapped into memory and not read."""
        yield [np.load(self._path / name, mmap_mode="r") for name in names]

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """The folder itself."""
        yield self._path


class RemoteFolder(ResultFolder):
    """A folder at an address of fsspec, whose own settings and environment say how to log in."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")
        self._files, self._root = _file_system(self.address)

    def __str__(self) -> str:
        return self.address

    def __reduce__(self) -> tuple[type["RemoteFolder"], tuple[str]]:
        # A connection stays where it is: every worker opens its own.
        return RemoteFolder, (self.address,)

    def names(self) -> list[str]:
        """What lies in the folder itself."""
        return sorted(self._sizes(""))

    def _sizes(self, folder: str) -> dict[str, int]:
        self._files.invalidate_cache()  # other workers wrote meanwhile
        try:
            files = self._files.ls(f"{self._root}/{folder}".rstrip("/"), detail=True)
        except FileNotFoundError:
            return {}
        return {each["name"].rstrip("/").rpartition("/")[2]: each["size"] for each in files}

    def read(self, name: str) -> bytes | None:
        """What a file holds; None where there is none."""
        try:
            content: bytes = self._files.cat_file(f"{self._root}/{name}")
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, *content: Piece) -> None:
        """Write a file; an object store shows it when it is whole."""
        path, whole = f"{self._root}/{name}", b"".join(content)
        try:
            self._files.pipe_file(path, whole)
        except FileNotFoundError as error:
            # Folders are made, a bucket is not: its name may be mistyped, and somebody pays for it.
            if not path.startswith("/"):
                raise ConfigError(
                    f"`{self.address}` must lie in a bucket that exists, but there is no {path.split('/')[0]!r}. "
                    "Create it first, or correct the name."
                ) from error
            self._files.makedirs(path.rpartition("/")[0], exist_ok=True)
            self._files.pipe_file(path, whole)

    def whole(self, shapes: Shapes) -> set[str]:
        """The names under which as many bytes lie as an array of that shape takes; nothing is read."""
        folders = {name[: name.rfind("/") + 1] for name in shapes}
        sizes = {folder + name: size for folder in folders for name, size in self._sizes(folder).items()}
        return {name for name, shape in shapes.items() if sizes.get(name) == _npy_size(shape)}

    @contextmanager
    def arrays(self, names: Sequence[str]) -> Iterator[list[Counts]]:
        """Arrays as long as the block lasts, fetched into files of this machine."""
        with tempfile.TemporaryDirectory() as fetched:
            paths = [Path(fetched) / f"{place}.npy" for place, _ in enumerate(names)]
            for name, path in zip(names, paths, strict=True):
                self._files.get_file(f"{self._root}/{name}", str(path))
            yield [np.load(path, mmap_mode="r") for path in paths]

    @contextmanager
    def filled(self) -> Iterator[Path]:
        """A folder of this machine whose files are sent when the block ends."""
        with tempfile.TemporaryDirectory() as made:
            yield Path(made)
            for path in sorted(Path(made).iterdir()):
                self.write(path.name, path.read_bytes())


def folder_at(place: Place) -> ResultFolder:
    """The folder of a path or of an address.

    >>> str(folder_at("results/mine")), str(folder_at("file:///tmp/mine"))
    ('results/mine', '/tmp/mine')
    """
    text = os.fspath(place)
    if text.startswith("file://"):
        return LocalFolder(Path(text.removeprefix("file://")))
    return RemoteFolder(text) if "://" in text else LocalFolder(Path(text))


def npy(arrays: Sequence[Counts]) -> list[Piece]:
    """Arrays of one shape as one in a file of NumPy's: its header, and each where it lies."""
    whole = [np.ascontiguousarray(array) for array in arrays]
    return [_npy_header((len(whole), *whole[0].shape)), *(array.data.cast("B") for array in whole)]


def _npy_header(shape: tuple[int, ...]) -> bytes:
    header = io.BytesIO()
    described = np.lib.format.header_data_from_array_1_0(np.broadcast_to(np.float64(0), shape))
    np.lib.format.write_array_header_1_0(header, described | {"fortran_order": False})
    return header.getvalue()


def _npy_size(shape: tuple[int, ...]) -> int:
    return len(_npy_header(shape)) + 8 * int(np.prod(shape))


def _file_system(address: str) -> tuple[Any, str]:
    try:
        from fsspec.core import url_to_fs
    except ImportError as error:
        raise ImportError(f"`{address}` needs fsspec. Install it with: pip install fsspec") from error
    try:
        files, root = url_to_fs(address)
    except (ImportError, ValueError) as error:
        raise ConfigError(
            f"A folder must be a path or an address that fsspec can open, but {address!r} is not: {error!s:.300}"
        ) from error
    return files, root.rstrip("/")
