"""Writers that are killed at random moments, and what they had been told before."""

import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field

from surefoot.journal import Journal, verify
from tests.journal.writer import NAME


@dataclass
class Told:
    """Keys that were sent, and those of them that were acknowledged."""

    sent: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)

    def listen(self, output: bytes) -> None:
        for line in output.split(b"\n")[:-1]:
            word, _, key = line.decode().partition(" ")
            if word in ("sent", "done"):
                getattr(self, word).add(key)

    @property
    def unsure(self) -> set[str]:
        return self.sent - self.done


def start(address: str, prefix: str, unsure: set[str]) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.journal.writer", address, prefix, *sorted(unsure)]
    return subprocess.Popen(command, stdout=subprocess.PIPE)


def kill_at_random(writers: list[subprocess.Popen[bytes]], random: random.Random, told: Told, seconds: float) -> None:
    """Wait until every writer writes, then a random moment, then end them the hard way."""
    first = [writer.stdout.readline() for writer in writers if writer.stdout]
    time.sleep(random.uniform(0.0, seconds))
    for writer in writers:
        writer.kill()
    for line, writer in zip(first, writers, strict=True):
        rest, _ = writer.communicate()
        told.listen(line + rest)


def nothing_lost_nothing_twice(journal: Journal, told: Told) -> None:
    events = list(journal.read(NAME))
    verify(NAME, events)
    assert journal.head(NAME) == events[-1].head
    keys = Counter(event.key for event in events[1:])
    assert told.done <= set(keys)
    assert set(keys) <= told.sent
    assert max(keys.values()) == 1
