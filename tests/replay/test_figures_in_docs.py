"""The figures in docs/replay.md are those of a run: each table is computed again here, line by line."""

import importlib.util
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from surefoot.replay import datasets
from surefoot.replay.baseline_fit import fit_baseline
from surefoot.replay.evaluation import ReplayOutcome, replay
from surefoot.replay.replayed_policy import PLAYABLE
from surefoot.simulation.policy_specs import Spec

PAGE = Path(__file__).parents[2] / "docs" / "replay.md"
ALPHA = 0.2


def specs() -> list[Spec]:
    return [Spec(name, alpha=None if name == "LUCB" else ALPHA) for name in PLAYABLE]


def lines(outcomes: Sequence[ReplayOutcome]) -> list[str]:
    """Rows of a table in Markdown."""
    found = []
    for outcome in outcomes:
        free = "not yet" if outcome.free_from is None else f"{outcome.free_from:,}"
        reward, gain = outcome.main["reward"], outcome.main["gain"]
        found.append(
            f"| {outcome.spec.policy} | {outcome.rounds:,} | {outcome.learner_share:.0%} | {free} "
            f"| {outcome.below[ALPHA]:,} | {outcome.worst_share:.0%} "
            f"| {reward.value:.3f} ± {reward.high - reward.value:.3f} "
            + (f"| {gain.value:+.3f} ± {gain.high - gain.value:.3f} |" if math.isfinite(gain.value) else "| – |")
        )
    return found


def trial() -> list[ReplayOutcome]:
    log = datasets.actg175()
    return replay(log.shuffled(0), specs(), declared=fit_baseline(log).declared)


def trial_as_world() -> list[ReplayOutcome]:
    log = datasets.actg175()
    return replay(log.resampled(100_000, seed=0), specs(), declared=fit_baseline(log).declared)


def pictures() -> list[ReplayOutcome]:
    log = datasets.digits()
    return replay(log.resampled(100_000, seed=0), specs(), declared=fit_baseline(log).declared, evaluator="full")


@pytest.mark.parametrize(
    ("run", "package"),
    [(trial, "lifelines"), (trial_as_world, "lifelines"), pytest.param(pictures, "sklearn", marks=pytest.mark.long)],
)
def test_the_table_in_the_docs_is_what_the_run_gives(run: Callable[[], list[ReplayOutcome]], package: str) -> None:
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"the package {package} is not installed")
    expected = lines(run())
    page = PAGE.read_text(encoding="utf-8")
    missing = [line for line in expected if line not in page]
    assert not missing, "docs/replay.md must hold these lines:\n" + "\n".join(expected)


def test_the_tutorial_needs_fifteen_lines_from_a_file_to_a_running_policy() -> None:
    blocks = (PAGE.parent / "tutorial-csv.md").read_text(encoding="utf-8").split("```python\n")[1:]
    (core,) = [block for block in blocks if "read_log" in block]  # test_docs.py runs it
    lines_of_code = [line for line in core.split("```")[0].splitlines() if line.startswith((">>> ", "... "))]
    assert len(lines_of_code) <= 15


if __name__ == "__main__":
    for run in (trial, trial_as_world, pictures):
        print(run.__name__, *lines(run()), sep="\n")
