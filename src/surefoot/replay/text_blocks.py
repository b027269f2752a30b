"""Text files in blocks of whole lines, plain or gzipped, with the number of each block's first line."""

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from surefoot.errors import LogError
from surefoot.replay.shared_file import WHOLE, Span

BLOCK_BYTES = 8 * 2**20
SPAN_BYTES = 64 * 2**20  # what one worker reads at a time
LONGEST = 64 * 2**20  # bytes of one row: beyond it, a quote that never closes is the likelier story


def line_blocks(
    path: Path, *, quoted: bool = False, size: int | None = None, span: Span = WHOLE
) -> Iterator[tuple[int, bytes]]:
    """Blocks that end where a line ends; with `quoted`, never at a line's end inside quotes."""
    size = size or BLOCK_BYTES
    carry, line = b"", span.line
    with _open(path) as file:
        file.seek(span.start)
        while True:
            more = _read(file, size if span.stop is None else min(size, span.stop - file.tell()), path, line)
            if not more:
                break
            carry += more
            cut = _cut(carry, quoted=quoted)
            if cut:
                yield line, carry[:cut]
                line += carry.count(b"\n", 0, cut)
                carry = carry[cut:]
            elif len(carry) > LONGEST:
                raise LogError(
                    f"A row of `{path}` must end within {LONGEST // 2**20} MB, but the one that begins at line {line:,}"
                    " does not. Look for a quote that is never closed."
                )
    if carry:
        yield line, carry


def line_spans(path: Path, *, quoted: bool = False) -> list[Span]:
    """Spans of whole rows that workers can read beside each other; one of all where the file is packed."""
    if path.suffix == ".gz":
        return [WHOLE]
    starts, at = [WHOLE], 0
    for line, data in line_blocks(path, quoted=quoted):
        at += len(data)
        if at - starts[-1].start >= SPAN_BYTES:
            starts.append(Span(at, line=line + data.count(b"\n")))
    if starts[-1].start == at:
        starts.pop()
    stops = [*(span.start for span in starts[1:]), at]
    return [span._replace(stop=stop) for span, stop in zip(starts, stops, strict=True)]


def _cut(block: bytes, *, quoted: bool) -> int:
    """Where the last whole row ends."""
    end = block.rfind(b"\n") + 1
    # An odd number of quotes before a line's end means that it stands inside of them.
    while quoted and end and block.count(b'"', 0, end) % 2:
        end = block.rfind(b"\n", 0, end - 1) + 1
    return end


def _open(path: Path) -> IO[bytes]:
    try:
        return cast("IO[bytes]", gzip.open(path, "rb")) if path.suffix == ".gz" else path.open("rb")
    except OSError as error:
        raise LogError(f"`{path}` must be a log that can be read, but it cannot: {error.strerror}.") from None


def _read(file: IO[bytes], size: int, path: Path, line: int) -> bytes:
    try:
        return file.read(size)
    except (EOFError, zlib.error, OSError) as error:
        raise LogError(
            f"`{path}` must be whole, but it breaks off or is damaged after line {line:,}: {error}. Fetch it again."
        ) from None
