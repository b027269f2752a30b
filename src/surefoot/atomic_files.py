"""Files that appear whole or not at all, so that no reader ever sees half of one."""

import os
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that replaces `path` only when the block ends without an error; otherwise `path` stays as it was.

    It is written beside `path` under a hidden name, which a kill may leave behind.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with whole_file(folder / "answer.txt") as file:
    ...     _ = file.write(b"42")
    ...     [path.name for path in folder.glob("[!.]*")]
    []
    >>> [path.name for path in folder.iterdir()]
    ['answer.txt']
    """
    # In the same folder, since a rename is atomic within one file system only.
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with beside.open("xb") as file:
            yield file
        os.replace(beside, path)
    except BaseException:  # Ctrl-C as well
        beside.unlink(missing_ok=True)
        raise


def write_together(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder, all of them or none; a folder that was made for them is removed again.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp()) / "new"
    >>> write_together(folder, {"a.txt": b"1", "b.txt": b"2"})
    >>> sorted(path.name for path in folder.iterdir())
    ['a.txt', 'b.txt']
    """
    new = [one for one in (folder, *folder.parents) if not one.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with ExitStack() as stack:
            for name, content in files.items():
                file = stack.enter_context(whole_file(folder / name))
                file.write(content)
                file.flush()
    except BaseException:
        for one in new:
            one.rmdir()
        raise


def is_left_behind(name: str, path: Path) -> bool:
    """Whether a file of that name is what a kill left of writing `path`."""
    return name.startswith(f".{path.name}.") and name.endswith(".tmp")
