"""Writers that are killed at random moments, and what they had been told before."""

import os
import random
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from surefoot.journal import START, Head, Journal, verify
from tests.journal.writer import NAME


@dataclass
class Told:
    """Keys that were sent, those of them that were acknowledged, and those found in the journal up to `checked`."""

    sent: set[str] = field(default_factory=set)
    done: set[str] = field(default_factory=set)
    kept: Counter[str] = field(default_factory=Counter)
    checked: Head = START

    def listen(self, output: bytes) -> None:
        for line in output.split(b"\n")[:-1]:
            word, _, key = line.decode().partition(" ")
            if word in ("sent", "done"):
                getattr(self, word).add(key)

    @property
    def unsure(self) -> set[str]:
        return self.sent - self.done


def crash(journal: Any) -> None:
    """End a file journal as a kill would: nothing is flushed, the mark says so, and no lock is left."""
    log = journal._log
    for descriptor in (log._file, log._mark):
        os.close(descriptor)
    log._file = log._mark = -1


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
    """Check what came since the last check: one chain, every acknowledged key in it, and no key twice."""
    new = list(journal.read(NAME, told.checked.number))
    verify(NAME, new, after=told.checked)
    told.kept.update(event.key for event in new if event.key is not None)
    told.checked = new[-1].head if new else told.checked
    # A server may still be writing what a killed process had sent: the head can only have moved on.
    assert journal.view(NAME).follows(told.checked)
    assert told.done <= set(told.kept)
    assert set(told.kept) <= told.sent
    assert max(told.kept.values()) == 1
