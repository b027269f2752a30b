"""Structured logs: one JSON object a line, on standard error. What a request carried is never logged: no token can be.

>>> import logging
>>> record = logging.LogRecord("surefoot.service", logging.INFO, "", 0, "request", (), None)
>>> record.created, record.decision_id = 0.0, "visit-1"
>>> JsonFormatter().format(record)
'{"time":"1970-01-01T00:00:00.000Z","level":"info","event":"request","decision_id":"visit-1"}'
"""

import logging
import sys
import time
from typing import Any

import msgspec

log = logging.getLogger("surefoot.service")
PLAIN = frozenset(vars(logging.LogRecord("", 0, "", 0, "", (), None))) | {"message", "asctime", "color_message"}
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


def configure(level: str) -> None:
    """Send what this service and its server log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter())
    for name in ("surefoot.service", "uvicorn", "litestar"):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level.upper())
