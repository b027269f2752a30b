"""Files that appear whole or not at all, so that no reader ever sees half of one."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
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


def is_left_behind(name: str, path: Path) -> bool:
    """Whether a file of that name is what a kill left of writing `path`."""
    return name.startswith(f".{path.name}.") and name.endswith(".tmp")
