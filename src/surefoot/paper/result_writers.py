"""Figures and report of a sweep, each written by a process of its own, which starts while the simulation runs.

Matplotlib takes longer to load than to draw. What no process wrote, for want of processors or for any other reason, is
written here, so that errors are those of one process.
"""

import os
import pickle
import subprocess
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

if find_spec("matplotlib") is None:  # lest it be missed after the simulation
    raise ModuleNotFoundError("matplotlib draws the figures, and is missing", name="matplotlib")

FIGURES = (1, 2, 3, 4)
REPORT = 0
FEWEST_PROCESSORS = 4  # of which a simulation does not miss the seconds that loading takes
# -P, lest a file of the current folder be taken for a module.
COMMAND = ("-P", "-c", "import sys; from surefoot.paper.result_writers import serve; serve(int(sys.argv[1]))")


@dataclass(frozen=True, eq=False, slots=True)
class Results:
    """What figures and report are made of, and the folder that they go to."""

    table: "pl.DataFrame"
    folder: Path
    settings: Mapping[str, object]
    rivals: Mapping[str, str]
    note: str | None = None

    def write(self, what: int) -> None:
        """One of the figures, or the report."""
        if what == REPORT:
            from surefoot.paper.paper_report import write_report

            page = self.folder / "report.html"
            write_report(self.table, page, settings=self.settings, note=self.note, rivals=self.rivals)
        else:
            from surefoot.paper.paper_figures import save_figure

            save_figure(what, self.table, self.folder, note=self.note)


class ResultWriters:
    """Processes that wait for results."""

    def __init__(self, processes: Mapping[int, "subprocess.Popen[bytes]"]) -> None:
        self._processes = processes

    def write(self, results: Results) -> None:
        """Write all figures and the report."""
        sent = pickle.dumps(results)
        with ThreadPoolExecutor(1 + len(FIGURES)) as threads:
            handed = {what: threads.submit(_hand_over, one, sent) for what, one in self._processes.items()}
        for what in (*FIGURES, REPORT):
            if what not in handed or not handed[what].result():
                results.write(what)


def _hand_over(process: "subprocess.Popen[bytes]", sent: bytes) -> bool:
    try:
        process.communicate(sent)
    except OSError:  # it ended before
        return False
    return process.returncode == 0


@contextmanager
def result_writers() -> Iterator[ResultWriters]:
    """Writers that load what they need meanwhile, until the block ends."""
    started: dict[int, subprocess.Popen[bytes]] = {}
    try:
        if (os.cpu_count() or 1) >= FEWEST_PROCESSORS and sys.executable:
            started |= {what: _start(what) for what in (*FIGURES, REPORT)}
    except OSError:  # no more processes are allowed
        pass
    try:
        yield ResultWriters(started)
    finally:
        for process in started.values():
            process.kill()
            process.communicate()


def _start(what: int) -> "subprocess.Popen[bytes]":
    # In a session of its own: Ctrl-C is for the simulation, and a writer ends when nobody is left to send it anything.
    quiet = subprocess.DEVNULL
    return subprocess.Popen(
        (sys.executable, *COMMAND, str(what)),
        stdin=subprocess.PIPE,
        stdout=quiet,
        stderr=quiet,
        start_new_session=True,
    )


def serve(what: int) -> None:
    """The process: load, wait for the results, write."""
    if what == REPORT:
        import_module("surefoot.paper.paper_report")
    else:
        from surefoot.paper.paper_figures import warm_up

        warm_up()
    if sent := sys.stdin.buffer.read():
        results: Results = pickle.loads(sent)
        results.write(what)
