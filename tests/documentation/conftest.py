"""The site, built once from the sources, without a network."""

import fcntl
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]
# Whoever asks for a connection is told that there is none, and the build fails.
OFFLINE = """
import runpy, socket, sys
def refuse(*_): raise OSError("a site must be built without a network")
socket.socket.connect = socket.getaddrinfo = refuse
sys.argv = ["mkdocs", "build", "--strict", "--quiet", "--site-dir", sys.argv[1]]
runpy.run_module("mkdocs", run_name="__main__")
"""


class Built(NamedTuple):
    """The folder of the site, and the seconds of processor time that it took."""

    folder: Path
    seconds: float

    @property
    def pages(self) -> list[Path]:
        return sorted(path for path in self.folder.rglob("*.html") if path.name != "404.html")


def child_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Built:
    """One build for all workers: the first makes it, the others wait and take it."""
    mine = tmp_path_factory.getbasetemp()
    shared = mine if worker_id == "master" else mine.parent
    folder, took = shared / "site", shared / "site-seconds"
    with (shared / "site-lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not took.exists():
            took.write_text(str(build(folder)))
    return Built(folder, float(took.read_text()))


def build(folder: Path) -> float:
    before = child_seconds()
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1", "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return child_seconds() - before
