"""Replays on workers: each policy in a pass of its own, to the bits of one pass for all."""

import json
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from surefoot.cli.commands import app
from surefoot.errors import ConfigError, EvidenceError, LogError
from surefoot.replay import Declared, estimate_propensities, guarded, read_log, replay
from surefoot.replay.batch import Log
from surefoot.simulation import Spec
from tests.replay.logs import linear_log

SPECS = [Spec("LUCB"), Spec("CLUCB", alpha=0.2), Spec("CLUCB2", alpha=0.1), Spec("SafeLUCB", alpha=0.1)]


@pytest.fixture(scope="module")
def processes() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("forkserver")) as pool:
        yield pool


def clicks(folder: Path, rows: int = 1_500) -> list[Path]:
    rng = np.random.default_rng(8)
    actions = rng.choice(["a", "b", "c"], size=rows)
    x = rng.random(rows).round(3)
    frame = pl.DataFrame({
        "x": x,
        "action": actions,
        "reward": (rng.random(rows) < 0.2 + 0.5 * x * (actions == "b")).astype(float),
        "propensity": np.full(rows, 1 / 3),
    })  # fmt: skip
    paths = [folder / "monday.csv", folder / "tuesday.csv"]
    frame[: rows // 3].write_csv(paths[0])
    frame[rows // 3 :].write_csv(paths[1])
    return paths


def told(log: Log) -> Declared:
    return Declared(noise=0.5, theta_bound=2.0, baseline_reward=0.2, reward_bounds=(0.0, 1.0))


@pytest.mark.parametrize("evaluator", ["rejection", "importance", "full"])
def test_policies_side_by_side_do_what_they_do_together(evaluator: Any, processes: ProcessPoolExecutor) -> None:
    truth = linear_log(800, seed=4, full=evaluator == "full", chances=None if evaluator == "full" else _uneven)
    common: dict[str, Any] = {"declared": truth.declared, "evaluator": evaluator, "seed": 3, "watched": [0.4]}
    together = [outcome.as_dict() for outcome in replay(truth.log, SPECS, **common)]
    for on in ("local:2", processes):
        seen: list[tuple[int, int]] = []
        apart = replay(truth.log, SPECS, on=on, progress=lambda done, all_: seen.append((done, all_)), **common)  # noqa: B023
        assert json.dumps([outcome.as_dict() for outcome in apart]) == json.dumps(together)
        assert [outcome.spec for outcome in apart] == SPECS
        assert seen == [(800 * done, 800 * len(SPECS)) for done in range(1, len(SPECS) + 1)]


def _uneven(means: Any) -> Any:
    return np.exp(means) / np.exp(means).sum(axis=1, keepdims=True)


def test_a_log_of_several_files_is_read_by_every_worker(processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    log = read_log(clicks(tmp_path), baseline="a")
    for read in (log, estimate_propensities(log)):
        here = [outcome.as_dict() for outcome in replay(read, SPECS, declared=told(read))]
        there = [outcome.as_dict() for outcome in replay(read, SPECS, declared=told(read), on=processes)]
        assert json.dumps(there) == json.dumps(here)


def test_bad_rows_that_only_workers_met_are_counted_here(processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    paths = clicks(tmp_path)
    with paths[1].open("a") as file:
        file.write("0.5,a,much,0.3\n")
    surveyed = read_log(paths, baseline="a", max_bad=1)
    log = read_log(paths, baseline="a", max_bad=1, actions=surveyed.actions, encoder=surveyed.encoder)  # type: ignore[attr-defined]
    assert log.bad.count == 0
    replay(log, SPECS[:2], declared=told(log), uniform=True, on=processes)
    assert (log.bad.count, log.bad.shown) == (1, surveyed.bad.shown)
    assert "tuesday.csv, line 1,002" in log.bad.shown[0][1]


def test_a_question_that_the_log_cannot_answer_is_refused_by_workers_too(processes: ProcessPoolExecutor) -> None:
    truth = linear_log(50, seed=1, full=True)
    with pytest.raises(EvidenceError, match="`rejection` needs the chance with which each logged action was drawn"):
        replay(truth.log, SPECS, declared=truth.declared, on=processes)
    with pytest.raises(ConfigError, match="`on` must be local"):
        replay(truth.log, SPECS, declared=truth.declared, evaluator="full", on="nowhere")


def test_a_guard_plays_in_threads_beside_the_others(tmp_path: Path) -> None:
    log = read_log(clicks(tmp_path, 600), baseline="a")
    entries: list[Any] = [SPECS[0], guarded(0.2, delta=0.01, ridge=1.0, reward_bounds=(0.0, 1.0))]
    here, there = (
        [outcome.as_dict() for outcome in replay(log, entries, declared=told(log), on=on)] for on in (None, "local:2")
    )
    assert json.dumps(there) == json.dumps(here)


def test_the_command_takes_several_files_and_workers(tmp_path: Path) -> None:
    paths = clicks(tmp_path)
    merged = tmp_path / "both.csv"
    merged.write_text(paths[0].read_text() + paths[1].read_text().partition("\n")[2])
    options = ["--baseline", "a", "--policy", "LUCB", "--policy", "CLUCB2", "--json"]
    answers = []
    for arguments in ([str(merged)], [*map(str, paths)], [*map(str, paths), "--on", "local:2"]):
        done = CliRunner().invoke(app, ["replay", *arguments, *options])
        assert done.exit_code == 0, done.output
        answers.append(json.loads(done.stdout))
    one, many, elsewhere = answers
    assert many == elsewhere
    assert (one["settings"]["log"], many["settings"]["log"]) == ("both.csv", "monday.csv and 1 more")
    # Sums along other batches end in other bits; decisions and counts do not.
    for name in ("rows", "rounds", "learner_rounds", "free_from", "below_floor"):
        assert [policy[name] for policy in one["policies"]] == [policy[name] for policy in many["policies"]]


def test_a_log_that_is_gone_is_not_sent(processes: ProcessPoolExecutor, tmp_path: Path) -> None:
    log = read_log(clicks(tmp_path), baseline="a")
    (tmp_path / "tuesday.csv").unlink()
    with pytest.raises(LogError, match=r"tuesday.csv` must stay where it is while it is read, but it is gone"):
        replay(log, SPECS, declared=told(log), on=processes)
