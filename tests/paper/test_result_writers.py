import subprocess
from pathlib import Path
from typing import Any

import pytest

from surefoot.paper import result_writers as module
from surefoot.paper.result_writers import Results, result_writers
from tests.paper import made_table

FILES = {*(f"figure{number}.{suffix}" for number in (1, 2, 3, 4) for suffix in ("png", "pdf")), "report.html"}


def results(folder: Path) -> Results:
    folder.mkdir()
    return Results(made_table(), folder, {"title": "made"}, {}, "quick")


def written(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.fixture
def alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bytes]:
    """What one process writes."""
    monkeypatch.setattr(module, "FEWEST_PROCESSORS", 1_000_000)
    with result_writers() as writers:
        writers.write(results(tmp_path / "alone"))
    return written(tmp_path / "alone")


def started(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Every process that is started from now on."""
    processes: list[Any] = []
    start = module._start
    monkeypatch.setattr(module, "FEWEST_PROCESSORS", 1)

    def noted(what: int) -> Any:
        processes.append(start(what))
        return processes[-1]

    monkeypatch.setattr(module, "_start", noted)
    return processes


def test_processes_write_the_bytes_of_one(
    alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes, mine = started(monkeypatch), []
    with result_writers() as writers:
        asked = results(tmp_path / "together")
        monkeypatch.setattr(Results, "write", lambda _, what: mine.append(what))  # of this process alone
        writers.write(asked)
    assert [process.returncode for process in processes] == [0] * 5
    assert mine == []
    assert set(alone) == FILES
    assert written(tmp_path / "together") == alone


@pytest.mark.parametrize("command", ["raise SystemExit(3)", "import os; os.close(0); raise SystemExit(1)"])
def test_what_a_process_does_not_write_is_written_here(
    alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    started(monkeypatch)
    monkeypatch.setattr(module, "COMMAND", ("-c", command))
    with result_writers() as writers:
        writers.write(results(tmp_path / "after"))
    assert written(tmp_path / "after") == alone


def test_no_process_outlives_a_simulation_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    processes = started(monkeypatch)
    with pytest.raises(KeyboardInterrupt), result_writers():
        raise KeyboardInterrupt
    assert len(processes) == 5
    assert all(process.poll() is not None for process in processes)


def test_a_machine_that_starts_no_process_writes_by_itself(
    alone: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any, **__: Any) -> Any:
        raise BlockingIOError("no more processes")

    monkeypatch.setattr(module, "FEWEST_PROCESSORS", 1)
    monkeypatch.setattr(subprocess, "Popen", refused)
    with result_writers() as writers:
        writers.write(results(tmp_path / "here"))
    assert written(tmp_path / "here") == alone


def test_a_writer_to_whom_nothing_is_sent_ends_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "DEVNULL", subprocess.PIPE)
    said, failed = (process := module._start(0)).communicate()
    assert (process.returncode, said, failed) == (0, b"", b"")
