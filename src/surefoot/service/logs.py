"""Structured logs: one JSON object a line, on standard error. The content of requests is never logged, so no token is.

>>> import logging
>>> record = logging.LogRecord("surefoot.service", logging.INFO, "", 0, "request", (), None)
>>> record.created, record.decision_id = 0.0, "visit-1"
>>> JsonFormatter().format(record)
'{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"request","decision_id":"visit-1"}'
"""

import asyncio
import logging
import sys
import time
from collections.abc import Callable
from typing import Any

import msgspec

log = logging.getLogger("surefoot.service")
SOON, MOST_WAITING = 0.05, 200  # seconds and lines that requests may wait to be written together
# What every record has; all else came as `extra`, and is logged.
PLAIN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "color_message"}
# A value that JSON does not know must not cost the line, let alone the request.
_encode = msgspec.json.Encoder(enc_hook=repr).encode


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        seconds, part = divmod(record.created, 1)
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
        found: dict[str, Any] = {
            "time": f"{stamp}.{int(part * 1000):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        found.update((key, value) for key, value in vars(record).items() if key not in PLAIN)
        if record.exc_info:
            found["trace"] = self.formatException(record.exc_info)
        return _encode(found).decode()


class RequestLog:
    """One line per request, written together with those that follow soon: a write for each would cost more than some
    requests do. `write` is where they go; None keeps none. Log-ins that were refused are kept at every level.
    """

    def __init__(self, write: Callable[[bytes], object] | None, level: str = "info") -> None:
        self._write, self._waiting, self._is_brief = write, list[bytes](), level not in ("debug", "info")
        self._second, self._stamp = -1, ""

    def note(self, fields: dict[str, Any]) -> None:
        """Log a request."""
        is_refusal = fields["status"] in (401, 403)
        if self._write is None or (self._is_brief and not is_refusal):
            return
        now = time.time()
        if int(now) != self._second:
            self._second = int(now)
            self._stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(now))
        head = {"time": f"{self._stamp}.{int(now % 1 * 1000):03d}Z", "level": "info", "event": "request"}
        if is_refusal:
            head["level"] = "warning"
        self._waiting.append(_encode(head | fields))
        if len(self._waiting) == 1:
            asyncio.get_running_loop().call_later(SOON, self.flush)
        elif len(self._waiting) >= MOST_WAITING:
            self.flush()

    def flush(self) -> None:
        """Write what waits."""
        lines, self._waiting = self._waiting, []
        if lines and self._write is not None:
            self._write(b"\n".join(lines) + b"\n")


def standard_error(lines: bytes) -> None:
    """Where logs go."""
    sys.stderr.buffer.write(lines)
    sys.stderr.buffer.flush()


def configure(level: str) -> None:
    """Send what this service and its server log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("surefoot.service", "uvicorn", "litestar"):
        logger = logging.getLogger(name)
        # Otherwise the root logger would show every line once more.
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
    # Its lines name users and databases, and what they tell of is raised as well.
    driver = logging.getLogger("psycopg")
    driver.handlers, driver.propagate = [logging.NullHandler()], False
